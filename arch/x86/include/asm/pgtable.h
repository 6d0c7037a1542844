/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_PGTABLE_H
#define ASM_PGTABLE_H

/*
 * Four-level page tables (SDM vol. 3, 4.5). The upper half of every top table is a copy of
 * kernel_pgd's, whose entries are final once paging_init() returns: no mm has to follow later
 * changes.
 */

#include <lego/page.h>

#define PTE_PRESENT   BIT(0)
#define PTE_WRITE     BIT(1)
#define PTE_USER      BIT(2)
#define PTE_PWT	      BIT(3)
#define PTE_PCD	      BIT(4)
#define PTE_ACCESSED  BIT(5)
#define PTE_DIRTY     BIT(6)
#define PTE_LARGE     BIT(7) /* in a level 2 entry: a 2 MiB page */
#define PTE_BORROWED  BIT(9) /* ours: others may have the page too, copied before the first write */
#define PTE_NO_ACCESS BIT(10) /* ours: holds a page though not present */
#define PTE_NX	      BIT(63)
#define PTE_ADDR_MASK 0x000ffffffffff000ULL

#define PTE_KERNEL	  (PTE_PRESENT | PTE_WRITE | PTE_ACCESSED | PTE_DIRTY | PTE_NX)
#define PTE_KERNEL_RO	  (PTE_PRESENT | PTE_ACCESSED | PTE_NX)
#define PTE_KERNEL_TEXT	  (PTE_PRESENT | PTE_ACCESSED)
#define PTE_KERNEL_DEVICE (PTE_KERNEL | PTE_PCD | PTE_PWT)

#define PTRS_PER_TABLE 512

/* The kernel's own top table: idle CPUs and kernel threads; its physical address is below 4 GiB. */
extern u64 kernel_pgd[PTRS_PER_TABLE];

/* The entry holds a page, whoever may reach it. */
static inline bool pte_has_page(u64 pte)
{
	return pte & (PTE_PRESENT | PTE_NO_ACCESS);
}

static inline struct page *pte_page(u64 pte)
{
	return phys_to_page(pte & PTE_ADDR_MASK);
}

/* A user page's entry bits for PROT_*; a borrowed page is never writable. */
u64 pte_user_bits(u32 prot, bool borrowed);

/*
 * The last-level entry of addr. find: NULL when there is no table; alloc: makes tables, NULL
 * when out of memory. The owner of the table keeps others out. Not for addresses in 2 MiB
 * pages.
 */
u64 *pgtable_find(u64 *pgd, u64 addr);
u64 *pgtable_alloc(u64 *pgd, u64 addr);

/* The same for a table of the given level (1: last, 4: top). */
u64 *pgtable_alloc_level(u64 *pgd, u64 addr, int level);

/*
 * The first entry with a page at or behind *addr and before end; *addr becomes its address.
 * NULL, and *addr end, when there is none. Skips missing tables, so that huge empty ranges
 * cost little.
 */
u64 *pgtable_next(u64 *pgd, u64 *addr, u64 end);

/*
 * Map [virt, virt + size_bytes) of the kernel half to phys, 4 KiB pages. 0 or -ENOMEM (part is
 * mapped).
 */
int kernel_map(u64 virt, phys_addr_t phys, u64 size_bytes, u64 bits);

/* The entry that maps a kernel address, of whatever level; 0 when there is none. */
u64 kernel_pte(u64 virt);

/* A new user address space's top table; NULL when out of memory. */
u64 *pgd_alloc(void);

/* Free all tables of the user half, which holds no pages any more, and the top. */
void pgd_free(u64 *pgd);

/*
 * Physical 0..2 MiB is mapped at its own address, for starting the other CPUs, until this is
 * called: process context or boot, interrupts on, after the last CPU is up.
 */
void paging_drop_identity(void);

/* Load a top table, and forget all translations of the last one. */
static inline void load_pgd(const u64 *pgd)
{
	asm volatile("mov %0, %%cr3" ::"r"(virt_to_phys(pgd)) : "memory");
}

/* Forget one page of the loaded tables on this CPU. */
static inline void invlpg(u64 addr)
{
	asm volatile("invlpg (%0)" ::"r"(addr) : "memory");
}
#endif
