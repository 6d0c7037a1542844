// SPDX-License-Identifier: BSD-2-Clause
/*
 * Makes the kernel's final page tables: code is read-only, constants and data are not executable,
 * and nothing is both writable and executable, also in the direct map's alias of the image. The
 * direct map has 4 KiB pages for the image, and 2 MiB pages elsewhere, which may include addresses
 * next to RAM.
 */

#include <lego/boot.h>

#include <asm/cpufeature.h>
#include <asm/msr.h>
#include <asm/pgtable.h>
#include <asm/setup.h>
#include <asm/smap.h>
#include <asm/tlb.h>
#include <lego/bug.h>
#include <lego/string.h>

#define DIRECT_MAP_BYTES (64ULL << 40)

/* Returns the bits for a page of the image; alias: in the direct map. */
static u64 image_bits(u64 virt, bool alias)
{
	if (virt < ALIGN_UP((u64)_etext, PAGE_SIZE))
		return alias ? PTE_KERNEL_RO : PTE_KERNEL_TEXT;
	if (virt >= (u64)__rodata_start && virt < (u64)__rodata_end)
		return PTE_KERNEL_RO;
	return PTE_KERNEL;
}

static void map_image(void)
{
	for (u64 virt = (u64)_text; virt < (u64)_end; virt += PAGE_SIZE)
		kernel_map(virt, virt_to_phys((void *)virt), PAGE_SIZE, image_bits(virt, false));
}

static void map_large(phys_addr_t phys)
{
	u64 *entry = pgtable_alloc_level(kernel_pgd, (u64)phys_to_virt(phys), 2);

	*entry = phys | PTE_KERNEL | PTE_LARGE;
}

/* Maps 2 MiB that contain a part of the image. */
static void map_around_image(phys_addr_t phys)
{
	phys_addr_t end = phys + LARGE_PAGE_SIZE;

	for (; phys < end; phys += PAGE_SIZE) {
		u64 virt = KERNEL_MAP_BASE + phys;
		bool inside = virt >= (u64)_text && virt < (u64)_end;

		kernel_map((u64)phys_to_virt(phys), phys, PAGE_SIZE,
			   inside ? image_bits(virt, true) : PTE_KERNEL);
	}
}

static void map_direct(const struct boot_region *region)
{
	phys_addr_t image_start = virt_to_phys(_text), image_end = virt_to_phys(_end);
	phys_addr_t phys = ALIGN_DOWN(region->start, LARGE_PAGE_SIZE);
	phys_addr_t end = min(region->start + region->size_bytes, DIRECT_MAP_BYTES);

	for (; phys < end; phys += LARGE_PAGE_SIZE) {
		if (phys < image_end && phys + LARGE_PAGE_SIZE > image_start)
			map_around_image(phys);
		else
			map_large(phys);
	}
}

void paging_init(void)
{
	if (!cpu_has_nx() || !(rdmsr(MSR_EFER) & EFER_NXE))
		panic("this CPU cannot protect data from execution (NX)");
	smap_init();
	map_image();
	for (unsigned int i = 0; i < boot_info.nr_regions; i++)
		if (boot_info.regions[i].usable)
			map_direct(&boot_info.regions[i]);
	/* Make all top-level entries now, before the table is copied for the first time. */
	for (u64 virt = VMAP_START; virt < VMAP_END; virt += 1UL << 39)
		pgtable_alloc_level(kernel_pgd, virt, 3);
	memcpy(trampoline_pgd, kernel_pgd, PAGE_SIZE);
	*pgtable_alloc_level(trampoline_pgd, 0, 2) = PTE_KERNEL_TEXT | PTE_LARGE;
	load_pgd(kernel_pgd);
	tlb_init();
}
