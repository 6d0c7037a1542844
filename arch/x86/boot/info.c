// SPDX-License-Identifier: BSD-2-Clause
/*
 * Collects the loader's information about the machine. pvh.c and multiboot2.c read their protocols
 * and pass it on item by item. The entries of the physical memory map may be in any order, overlap,
 * and end anywhere.
 */
#include "info.h"

#include <asm/setup.h>
#include <lego/boot.h>
#include <lego/bug.h>
#include <lego/printk.h>
#include <lego/sort.h>
#include <lego/string.h>

#define MAPPED_BYTES (4ULL << 30)
#define MAX_PHYS     (64ULL << 40) /* what fits between PAGE_OFFSET and VMAP_START */
#define MAX_MEMMAP   MAX_BOOT_REGIONS

#define MIN_RSDP_BYTES 20 /* version 1 */
#define MAX_RSDP_BYTES 64

static struct boot_region raw[MAX_MEMMAP]; /* the loader's map, in pages */
static unsigned int nr_raw, nr_ignored;

const void *boot_data(u64 phys, u64 size_bytes)
{
	if (!phys || size_bytes > MAPPED_BYTES || phys > MAPPED_BYTES - size_bytes)
		return NULL;
	return phys_to_virt(phys);
}

void boot_set_cmdline(const char *cmdline)
{
	if (strscpy(boot_info.cmdline, cmdline, MAX_CMDLINE) < 0)
		printk("boot: the command line is cut to %d characters\n", MAX_CMDLINE - 1);
	printk("Command line: %s\n", boot_info.cmdline);
}

/* Rounds to pages: RAM shrinks to whole pages, everything else grows. */
void boot_add_memory(u64 start, u64 size_bytes, bool usable)
{
	u64 end;

	start = min(start, (u64)MAX_PHYS);
	end = start + min(size_bytes, MAX_PHYS - start);
	start = usable ? ALIGN_UP(start, PAGE_SIZE) : ALIGN_DOWN(start, PAGE_SIZE);
	end = usable ? ALIGN_DOWN(end, PAGE_SIZE) : ALIGN_UP(end, PAGE_SIZE);
	if (start >= end)
		return;
	if (nr_raw == MAX_MEMMAP) {
		nr_ignored++;
		return;
	}
	raw[nr_raw++] = (struct boot_region){
		.start = start,
		.size_bytes = end - start,
		.usable = usable,
	};
}

void boot_set_initrd(u64 start, u64 size_bytes)
{
	boot_info.initrd_start = start;
	boot_info.initrd_size_bytes = size_bytes;
}

void boot_set_rsdp(const void *rsdp, u32 size_bytes)
{
	static u8 copy[MAX_RSDP_BYTES] __aligned(16);

	if (size_bytes < MIN_RSDP_BYTES || size_bytes > sizeof(copy))
		return;
	memcpy(copy, rsdp, size_bytes);
	/*
	 * acpi_init() maps it uncached, like firmware tables, so it must be written back to memory.
	 */
	asm volatile("wbinvd" ::: "memory");
	boot_info.rsdp = virt_to_phys(copy);
}

static int compare_u64(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

static void add_region(u64 start, u64 end, bool usable)
{
	struct boot_region *last = &boot_info.regions[boot_info.nr_regions];

	if (boot_info.nr_regions && last[-1].usable == usable &&
	    last[-1].start + last[-1].size_bytes == start) {
		last[-1].size_bytes = end - last[-1].start;
		return;
	}
	if (boot_info.nr_regions == MAX_BOOT_REGIONS) {
		printk("boot: memory map too long, memory at %#llx ignored\n",
		       (unsigned long long)start);
		return;
	}
	*last = (struct boot_region){ .start = start, .size_bytes = end - start, .usable = usable };
	boot_info.nr_regions++;
}

/* Adds [start, end), which no entry covers partially. If entries disagree, it is not RAM. */
static void add_interval(u64 start, u64 end)
{
	bool covered = false, usable = true;

	for (unsigned int i = 0; i < nr_raw; i++) {
		if (raw[i].start > start || raw[i].start + raw[i].size_bytes < end)
			continue;
		covered = true;
		usable &= raw[i].usable;
	}
	if (covered)
		add_region(start, end, usable);
}

/* Splits all entries at the borders of every entry, and merges equal neighbours again. */
static void sanitise_memmap(void)
{
	static u64 borders[2 * MAX_MEMMAP];

	for (unsigned int i = 0; i < nr_raw; i++) {
		borders[2 * i] = raw[i].start;
		borders[2 * i + 1] = raw[i].start + raw[i].size_bytes;
	}
	sort(borders, 2 * nr_raw, sizeof(borders[0]), compare_u64);
	for (unsigned int i = 1; i < 2 * nr_raw; i++)
		if (borders[i - 1] != borders[i])
			add_interval(borders[i - 1], borders[i]);
}

static void make_memmap(void)
{
	u64 nr_bytes = 0;

	if (nr_ignored)
		printk("boot: only %u of %u memory map entries are used\n", nr_raw,
		       nr_raw + nr_ignored);
	if (!nr_raw)
		panic("the loader gave no memory map");
	sanitise_memmap();

	for (unsigned int i = 0; i < boot_info.nr_regions; i++) {
		const struct boot_region *region = &boot_info.regions[i];

		printk("Memory: [0x%012llx-0x%012llx] %s\n", (unsigned long long)region->start,
		       (unsigned long long)(region->start + region->size_bytes - 1),
		       region->usable ? "usable" : "reserved");
		if (region->usable)
			nr_bytes += region->size_bytes;
	}
	printk("Memory: %llu KiB usable\n", (unsigned long long)nr_bytes >> 10);
}

static bool is_ram(u64 start, u64 size_bytes)
{
	for (unsigned int i = 0; i < boot_info.nr_regions; i++) {
		const struct boot_region *region = &boot_info.regions[i];

		if (region->usable && start >= region->start && size_bytes <= region->size_bytes &&
		    start - region->start <= region->size_bytes - size_bytes)
			return true;
	}
	return false;
}

static void check_initrd(void)
{
	unsigned long long start = boot_info.initrd_start, bytes = boot_info.initrd_size_bytes;

	if (!bytes)
		return;
	if (!is_ram(start, bytes)) {
		printk("boot: initramfs at %#llx, %llu bytes, is not in RAM: ignored\n", start,
		       bytes);
		boot_info.initrd_size_bytes = 0;
		return;
	}
	printk("Initramfs: %#llx, %llu KiB\n", start, bytes >> 10);
}

void boot_info_init(void)
{
	if (boot_loader_magic == MULTIBOOT2_BOOT_MAGIC)
		multiboot2_read(boot_start_info);
	else
		pvh_read(boot_start_info);
	make_memmap();
	check_initrd();
}
