// SPDX-License-Identifier: BSD-2-Clause
/*
 * Page tables, accessed through the direct map (head.S maps the low 4 GiB). Entries of the upper
 * levels grant all rights; last-level entries decide. Before page_init(), tables are allocated from
 * early memory.
 */

#include <asm/pgtable.h>

#include <lego/errno.h>
#include <lego/mm.h>
#include <lego/string.h>

#define PTE_TABLE	 (PTE_PRESENT | PTE_WRITE | PTE_USER | PTE_ACCESSED)
#define LEVEL_SHIFT(lvl) (PAGE_SHIFT + 9 * ((lvl)-1))
#define LEVEL_SIZE(lvl)	 (1UL << LEVEL_SHIFT(lvl))
#define TOP_LEVEL	 4
#define KERNEL_HALF	 256 /* top table entries from here */

u64 kernel_pgd[PTRS_PER_TABLE] __aligned(PAGE_SIZE);
u64 trampoline_pgd[PTRS_PER_TABLE] __aligned(PAGE_SIZE);

static u64 *entry_of(u64 *table, u64 addr, int level)
{
	return &table[addr >> LEVEL_SHIFT(level) & (PTRS_PER_TABLE - 1)];
}

static u64 *table_of(u64 entry)
{
	return phys_to_virt(entry & PTE_ADDR_MASK);
}

/*
 * Returns the physical address of an empty table, or 0 without memory. The tables of a process are
 * in a list that begins at its top table's page.
 */
static phys_addr_t table_alloc(u64 *pgd)
{
	struct page *page;

	if (!page_map)
		return page_alloc_early();
	page = page_alloc(0, PAGE_ZERO);
	if (!page)
		return 0;
	if (pgd != kernel_pgd && pgd != trampoline_pgd)
		list_add_tail(&page->node, &virt_to_page(pgd)->node);
	return page_to_phys(page);
}

u64 *pgtable_alloc_level(u64 *pgd, u64 addr, int level)
{
	u64 *table = pgd;

	for (int at = TOP_LEVEL; at > level; at--) {
		u64 *entry = entry_of(table, addr, at);

		if (!*entry) {
			phys_addr_t phys = table_alloc(pgd);

			if (!phys)
				return NULL;
			WRITE_ONCE(*entry, phys | PTE_TABLE);
		}
		table = table_of(*entry);
	}
	return entry_of(table, addr, level);
}

u64 *pgtable_find(u64 *pgd, u64 addr)
{
	u64 *table = pgd;

	for (int level = TOP_LEVEL; level > 1; level--) {
		u64 entry = *entry_of(table, addr, level);

		if (!entry)
			return NULL;
		table = table_of(entry);
	}
	return entry_of(table, addr, 1);
}

static bool eight_are_empty(const u64 *entry)
{
	return !(entry[0] | entry[1] | entry[2] | entry[3] | entry[4] | entry[5] | entry[6] |
		 entry[7]);
}

/* Skips empty entries, eight at a time where it can. Returns the first other one, or stop. */
static u64 *skip_empty(u64 *entry, u64 *stop)
{
	if (entry < stop && *entry)
		return entry;
	while (stop - entry >= 8 && eight_are_empty(entry))
		entry += 8;
	while (entry < stop && !*entry)
		entry++;
	return entry;
}

u64 *pgtable_next(u64 *pgd, u64 *addr, u64 end)
{
	u64 at = *addr;

	while (at < end) {
		u64 *table = pgd, *entry, *found, nr;
		int level = TOP_LEVEL, shift;

		for (;; level--) {
			entry = entry_of(table, at, level);
			if (level == 1 || !*entry)
				break;
			table = table_of(*entry);
		}
		if (level == 1 && pte_has_page(*entry)) {
			*addr = at;
			return entry;
		}
		/* Most entries are empty. The next ones of a table need no walk from the top. */
		shift = LEVEL_SHIFT(level);
		at = ALIGN_DOWN(at, LEVEL_SIZE(level));
		nr = min(((end - 1 - at) >> shift) + 1,
			 PTRS_PER_TABLE - (at >> shift) % PTRS_PER_TABLE);
		found = skip_empty(entry + 1, entry + nr);
		at += (u64)(found - entry) << shift;
		if (level == 1 && found < entry + nr && pte_has_page(*found)) {
			*addr = at;
			return found;
		}
	}
	*addr = end;
	return NULL;
}

int kernel_map(u64 virt, phys_addr_t phys, u64 size_bytes, u64 bits)
{
	for (u64 done = 0; done < size_bytes; done += PAGE_SIZE) {
		u64 *pte = pgtable_alloc(kernel_pgd, virt + done);

		if (!pte)
			return -ENOMEM;
		WRITE_ONCE(*pte, (phys + done) | bits);
	}
	return 0;
}

u64 kernel_pte(u64 virt)
{
	u64 *table = kernel_pgd;

	for (int level = TOP_LEVEL;; level--) {
		u64 entry = *entry_of(table, virt, level);

		if (!(entry & PTE_PRESENT))
			return 0;
		if (level == 1 || (level == 2 && entry & PTE_LARGE))
			return entry;
		table = table_of(entry);
	}
}

u64 *pgd_alloc(void)
{
	struct page *page = page_alloc(0, PAGE_ZERO);
	u64 *pgd;

	if (!page)
		return NULL;
	list_init(&page->node);
	pgd = page_address(page);
	memcpy(pgd + KERNEL_HALF, kernel_pgd + KERNEL_HALF, PAGE_SIZE / 2);
	return pgd;
}

void pgd_free(u64 *pgd)
{
	struct page *top = virt_to_page(pgd), *page, *next;

	list_for_each_entry_safe(page, next, &top->node, node)
		page_put(page);
	page_put(top);
}
