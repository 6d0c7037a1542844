// SPDX-License-Identifier: BSD-2-Clause
/*
 * W^X: walks all mappings of the kernel, at all their addresses. None is writable and executable,
 * code has no writable alias, and only code is executable.
 */

#include <lego/selftest.h>

#include <asm/msr.h>
#include <asm/pgtable.h>
#include <asm/setup.h>
#include <asm/text_patch.h>
#include <lego/smp.h>

#define TOP_LEVEL 4
#define CR0_WP	  BIT(16)
#define FREE_VIRT (VMAP_END - 8 * PAGE_SIZE) /* below the alias for patches: not allocated */

struct wx_counts {
	u64 writable_code; /* pages that are writable and executable */
	u64 aliases;	   /* writable pages of code or constants */
	u64 executable, all;
};

static bool overlaps(phys_addr_t phys, u64 size_bytes, const char *start, const char *end)
{
	return phys < virt_to_phys(end) && phys + size_bytes > virt_to_phys(start);
}

static void count_leaf(u64 entry, u64 size_bytes, struct wx_counts *counts)
{
	phys_addr_t phys = entry & PTE_ADDR_MASK & ~(size_bytes - 1);
	bool writable = entry & PTE_WRITE, executable = !(entry & PTE_NX);

	counts->all += size_bytes / PAGE_SIZE;
	counts->executable += executable ? size_bytes / PAGE_SIZE : 0;
	counts->writable_code += writable && executable;
	counts->aliases += writable && (overlaps(phys, size_bytes, _text, _etext) ||
					overlaps(phys, size_bytes, __rodata_start, __rodata_end));
}

/* All upper levels allow everything, so the last one decides. */
static void walk(const u64 *table, int level, struct wx_counts *counts)
{
	for (int i = 0; i < PTRS_PER_TABLE; i++) {
		u64 entry = READ_ONCE(table[i]);

		if (!(entry & PTE_PRESENT))
			continue;
		if (level > 1 && !(entry & PTE_LARGE))
			walk(phys_to_virt(entry & PTE_ADDR_MASK), level - 1, counts);
		else
			count_leaf(entry, PAGE_SIZE << 9 * (level - 1), counts);
	}
}

static struct wx_counts count_pages(const u64 *pgd)
{
	struct wx_counts counts = { 0 };

	walk(pgd, TOP_LEVEL, &counts);
	return counts;
}

SELFTEST(wx, no_page_is_writable_and_executable)
{
	struct wx_counts counts = count_pages(kernel_pgd);

	EXPECT_EQ(counts.writable_code, 0);
	EXPECT_EQ(counts.aliases, 0);
	EXPECT_EQ(counts.executable, ALIGN_UP((u64)_etext - (u64)_text, PAGE_SIZE) / PAGE_SIZE);
	EXPECT(counts.all > (u64)(_end - _text) / PAGE_SIZE);
}

SELFTEST(wx, no_page_of_a_starting_cpu_is_either)
{
	struct wx_counts counts = count_pages(trampoline_pgd), usual = count_pages(kernel_pgd);

	EXPECT_EQ(counts.writable_code, 0);
	EXPECT_EQ(counts.aliases, 0);
	EXPECT_EQ(counts.executable - usual.executable, LARGE_PAGE_SIZE / PAGE_SIZE);
}

static void map_page(u64 virt, const void *page, u64 bits)
{
	struct wx_counts before = count_pages(kernel_pgd), counts;
	u64 *pte;

	ASSERT(!kernel_map(virt, virt_to_phys(page), PAGE_SIZE, bits));
	counts = count_pages(kernel_pgd);
	EXPECT_EQ(counts.writable_code - before.writable_code, !(bits & PTE_NX));
	EXPECT_EQ(counts.aliases - before.aliases, (char *)page < _etext);
	pte = pgtable_find(kernel_pgd, virt);
	WRITE_ONCE(*pte, 0);
	invlpg(virt);
}

SELFTEST(wx, the_walk_finds_forbidden_pages)
{
	map_page(FREE_VIRT, kernel_pgd, PTE_PRESENT | PTE_WRITE);
	map_page(FREE_VIRT, _text, PTE_PRESENT | PTE_WRITE | PTE_NX);
}

SELFTEST(wx, a_patch_leaves_no_alias)
{
	u8 *code = (u8 *)walk, byte = *code;
	struct wx_counts counts;

	text_write(code, &byte, 1);
	counts = count_pages(kernel_pgd);
	EXPECT_EQ(counts.writable_code + counts.aliases, 0);
}

static void check_cpu(void *nr_bad)
{
	u64 cr0;

	asm volatile("mov %%cr0, %0" : "=r"(cr0));
	if (!(cr0 & CR0_WP) || !(rdmsr(MSR_EFER) & EFER_NXE))
		__atomic_fetch_add((u32 *)nr_bad, 1, __ATOMIC_RELAXED);
}

SELFTEST(wx, every_cpu_obeys_the_page_tables)
{
	u32 nr_bad = 0;

	smp_call_mask(cpu_online_mask, check_cpu, &nr_bad);
	EXPECT_EQ(nr_bad, 0);
}
