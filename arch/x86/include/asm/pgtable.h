/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_PGTABLE_H
#define ASM_PGTABLE_H

/*
 * Four-level page tables (SDM vol. 3, 4.5). The upper half of every top table is a copy of
 * kernel_pgd's. Its entries are final once paging_init() returns, so no mm has to be updated later.
 */

#include <lego/mm.h>
#include <lego/page.h>

#define PTE_PRESENT   BIT(0)
#define PTE_WRITE     BIT(1)
#define PTE_USER      BIT(2)
#define PTE_PWT	      BIT(3)
#define PTE_PCD	      BIT(4)
#define PTE_ACCESSED  BIT(5)
#define PTE_DIRTY     BIT(6)
#define PTE_LARGE     BIT(7)  /* in a level 2 entry: a 2 MiB page */
#define PTE_BORROWED  BIT(9)  /* ours: may be shared, and is copied before the first write */
#define PTE_NO_ACCESS BIT(10) /* ours: has a page, though it is not present */
#define PTE_SAMPLED   BIT(11) /* ours: its accessed and dirty bits were cleared (accessed.c) */
#define PTE_CHAIN     (0x7ffULL << 52) /* ours: see pte_chain() */
#define PTE_NX	      BIT(63)
#define PTE_ADDR_MASK 0x000ffffffffff000ULL
#define PTE_PAGE_MASK (PTE_ADDR_MASK | PTE_CHAIN) /* what stays when the access rights change */

#define PTE_KERNEL	  (PTE_PRESENT | PTE_WRITE | PTE_ACCESSED | PTE_DIRTY | PTE_NX)
#define PTE_KERNEL_RO	  (PTE_PRESENT | PTE_ACCESSED | PTE_NX)
#define PTE_KERNEL_TEXT	  (PTE_PRESENT | PTE_ACCESSED)
#define PTE_KERNEL_DEVICE (PTE_KERNEL | PTE_PCD | PTE_PWT)

#define PTRS_PER_TABLE 512

/* The kernel's own top table, for idle CPUs and kernel threads. */
extern u64 kernel_pgd[PTRS_PER_TABLE];

/*
 * The top table of a CPU that starts: also maps physical 0..2 MiB at the same addresses, as code.
 * Like the rest of the image, it is below 4 GiB.
 */
extern u64 trampoline_pgd[PTRS_PER_TABLE];

/* Returns whether the entry has a page, accessible or not. */
static inline bool pte_has_page(u64 pte)
{
	return pte & (PTE_PRESENT | PTE_NO_ACCESS);
}

static inline struct page *pte_page(u64 pte)
{
	return phys_to_page(pte & PTE_ADDR_MASK);
}

/*
 * Return the number of the call chain that made an entry, less than 2048, and the bits that keep
 * it. The CPU ignores these bits, as long as it has no protection keys (CR4.PKE).
 */
static inline u32 pte_chain(u64 pte)
{
	return pte >> 52 & 0x7ff;
}

static inline u64 pte_chain_bits(u32 number)
{
	return (u64)number << 52;
}

/* Returns the entry bits of a user page for PROT_*. A borrowed page is never writable. */
static inline u64 pte_user_bits(u32 prot, bool borrowed)
{
	u64 bits = PTE_PRESENT | PTE_USER | PTE_ACCESSED;

	if (!(prot & PROT_MASK))
		bits = PTE_NO_ACCESS;
	if (!(prot & PROT_EXEC))
		bits |= PTE_NX;
	if (borrowed)
		bits |= PTE_BORROWED;
	else if (prot & PROT_WRITE)
		bits |= PTE_WRITE | PTE_DIRTY;
	return bits;
}

/*
 * Return the last-level entry of addr. pgtable_find() returns NULL if there is no table;
 * pgtable_alloc() makes tables, and returns NULL when out of memory. The caller owns the table and
 * prevents concurrent use. Not for addresses in 2 MiB pages.
 */
u64 *pgtable_find(u64 *pgd, u64 addr);
/* For a table of the given level (1: last, 4: top). */
u64 *pgtable_alloc_level(u64 *pgd, u64 addr, int level);
static inline u64 *pgtable_alloc(u64 *pgd, u64 addr)
{
	return pgtable_alloc_level(pgd, addr, 1);
}

/*
 * Returns the first entry with a page at or after *addr and before end, and stores its address in
 * *addr. Returns NULL, with *addr set to end, if there is none. Skips missing tables, so large
 * empty ranges cost little.
 */
u64 *pgtable_next(u64 *pgd, u64 *addr, u64 end);

/* The same for the entry behind that of *addr. A neighbor in its table needs no walk. */
static inline u64 *pgtable_next_after(u64 *pgd, u64 *entry, u64 *addr, u64 end)
{
	*addr += PAGE_SIZE;
	if (*addr < end && (u64)(entry + 1) % PAGE_SIZE && pte_has_page(READ_ONCE(entry[1])))
		return entry + 1;
	return pgtable_next(pgd, addr, end);
}

/*
 * Goes through the entries with pages from `addr`, a variable, which becomes the address of each,
 * up to end, its value after the last one. The body may change the entry.
 */
#define for_each_page_entry(entry, pgd, addr, end)                       \
	for ((entry) = pgtable_next(pgd, &(addr), end); (entry) != NULL; \
	     (entry) = pgtable_next_after(pgd, entry, &(addr), end))

/*
 * Maps [virt, virt + size_bytes) of the kernel half to phys, in 4 KiB pages. 0 or -ENOMEM (a part
 * may be mapped then).
 */
int kernel_map(u64 virt, phys_addr_t phys, u64 size_bytes, u64 bits);

/* Returns the entry, of any level, that maps a kernel address; 0: none. */
u64 kernel_pte(u64 virt);

/* Returns the top table of a new user address space; NULL when out of memory. */
u64 *pgd_alloc(void);

/* Frees the top table and all tables of the user half, which must not have pages any more. */
void pgd_free(u64 *pgd);

/* Loads a top table, and flushes the TLB entries of the last one. */
static inline void load_pgd(const u64 *pgd)
{
	asm volatile("mov %0, %%cr3" ::"r"(virt_to_phys(pgd)) : "memory");
}

/* Flushes one page of the loaded tables from this CPU's TLB. */
static inline void invlpg(u64 addr)
{
	asm volatile("invlpg (%0)" ::"r"(addr) : "memory");
}
#endif
