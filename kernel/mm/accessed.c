// SPDX-License-Identifier: BSD-2-Clause
/*
 * The accessed and dirty bits of user pages, for the profiler of used memory. The CPU sets a bit
 * when it walks the page table, so a cleared bit needs a TLB flush (SDM vol. 3, 4.8 and 4.10.4.2).
 *
 * An entry whose bits were cleared is marked. All code that changes an entry writes it anew,
 * without the mark, and often with bits that no access has set. So the bits of a marked entry are
 * the CPU's, and others are not used. Nothing else in the kernel depends on these bits.
 */

#include "internal.h"

#include <asm/pgtable.h>
#include <asm/tlb.h>
#include <lego/atomic.h>
#include <lego/profile.h>
#include <lego/sched.h>

#define PAGES_AT_A_TIME 4096

static void add_range(struct profile_user_range *ranges, unsigned int *nr, unsigned int max,
		      const struct vma *vma)
{
	struct profile_user_range *last = &ranges[*nr - 1], *new = &ranges[*nr];
	u32 kind = vma_kind(vma);

	if (*nr && ((last->end == vma->start && last->kind == kind) || *nr == max)) {
		last->end = vma->end;
		return;
	}
	*new = (struct profile_user_range){ vma->start, vma->end, kind };
	(*nr)++;
}

unsigned int mm_get_ranges(struct mm *mm, struct profile_user_range *ranges, unsigned int max)
{
	const struct vma *vma;
	unsigned int nr = 0;

	rw_mutex_lock_read(&mm->lock);
	for_each_vma(vma, mm)
		add_range(ranges, &nr, max, vma);
	rw_mutex_unlock_read(&mm->lock);
	return nr;
}

/* Counts from *addr on, and moves it behind the last page that was looked at. */
static u64 count_some(struct mm *mm, u64 *addr, u64 end)
{
	u64 nr = 0;
	const u64 *pte;

	rw_mutex_lock_read(&mm->lock);
	while (nr < PAGES_AT_A_TIME && (pte = pgtable_next(mm->pgd, addr, end))) {
		/* The other entries of its table follow. */
		u64 stop = min(end, ALIGN_DOWN(*addr, TABLE_BYTES) + TABLE_BYTES);

		for (; *addr < stop; *addr += PAGE_SIZE)
			nr += pte_has_page(READ_ONCE(*pte++));
	}
	rw_mutex_unlock_read(&mm->lock);
	return nr;
}

u64 mm_count_pages(struct mm *mm, u64 start, u64 end)
{
	u64 nr = 0;

	while (start < end) {
		nr += count_some(mm, &start, end);
		cond_resched();
	}
	return nr;
}

unsigned int mm_copy_physical(struct mm *mm, u64 *addr, u64 end, u64 *pages, unsigned int max)
{
	unsigned int nr = 0;
	const u64 *pte;

	rw_mutex_lock_read(&mm->lock);
	while (nr < max && (pte = pgtable_next(mm->pgd, addr, end))) {
		u64 stop = min(end, ALIGN_DOWN(*addr, TABLE_BYTES) + TABLE_BYTES);

		for (; *addr < stop && nr < max; *addr += PAGE_SIZE) {
			u64 entry = READ_ONCE(*pte++);

			if (pte_has_page(entry))
				pages[nr++] = entry & PTE_ADDR_MASK;
		}
	}
	rw_mutex_unlock_read(&mm->lock);
	cond_resched();
	return nr;
}

bool mm_begin_accessed(struct mm *mm)
{
	rw_mutex_lock_read(&mm->lock);
	if (!mm->gets_no_pages)
		return true;
	rw_mutex_unlock_read(&mm->lock);
	return false;
}

void mm_end_accessed(struct mm *mm)
{
	rw_mutex_unlock_read(&mm->lock);
}

bool mm_clear_accessed(struct mm *mm, u64 *addr, u64 end, bool *flush)
{
	u64 *pte, old, seen;

	ASSERT_HELD(&mm->lock);
	while ((pte = pgtable_next(mm->pgd, addr, end))) {
		/* CPUs set bits at any time; page faults and calls that unmap replace the entry. */
		for (old = READ_ONCE(*pte); pte_has_page(old); old = seen) {
			seen = cmpxchg(pte, old, (old & ~(PTE_ACCESSED | PTE_DIRTY)) | PTE_SAMPLED);
			if (seen == old) {
				*flush |= !!(old & (PTE_ACCESSED | PTE_DIRTY));
				return true;
			}
		}
	}
	return false;
}

enum profile_page_use mm_page_use(struct mm *mm, u64 addr)
{
	const u64 *pte = pgtable_find(mm->pgd, addr);
	u64 entry = pte ? READ_ONCE(*pte) : 0;

	ASSERT_HELD(&mm->lock);
	if (!(entry & PTE_SAMPLED))
		return PROFILE_PAGE_CHANGED;
	if (entry & PTE_DIRTY)
		return PROFILE_PAGE_WRITTEN;
	return entry & PTE_ACCESSED ? PROFILE_PAGE_READ : PROFILE_PAGE_UNUSED;
}

unsigned int mm_flush_accessed(struct mm *mm)
{
	cpumask_t others = READ_ONCE(mm->cpus) & ~BIT(smp_processor_id());
	unsigned int cpu, nr = 0;

	for_each_cpu_in(cpu, others)
		nr++;
	flush_tlb_mm_range(mm, 0, TASK_SIZE);
	return nr;
}
