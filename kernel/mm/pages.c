// SPDX-License-Identifier: BSD-2-Clause
/*
 * Changes all pages of a range. Dropping pages takes two passes: first the entries lose their
 * access, and all TLBs are flushed; then the entries are cleared and the pages freed. So any number
 * of pages costs one flush and needs no memory. MADV_DONTNEED clears the entries of at most 128
 * pages at a time instead, and frees the pages after a flush without mm->lock.
 */

#include "internal.h"

#include <asm/pgtable.h>
#include <asm/tlb.h>
#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/page.h>
#include <lego/sched.h>
#include <lego/string.h>

#define RESCHED_INTERVAL 1024 /* pages; sleeping with mm->lock held blocks other threads */

/* The range that has to be flushed from the TLBs. */
struct flush_range {
	u64 start, end;
};

static void flush_range_add(struct flush_range *range, u64 addr)
{
	if (range->start == range->end)
		range->start = addr;
	range->end = addr + PAGE_SIZE;
}

static void flush_range_done(struct mm *mm, const struct flush_range *range)
{
	if (range->start < range->end)
		flush_tlb_mm_range(mm, range->start, range->end);
}

static noinline void add_unflushed(struct mm *mm, struct flush_range *range, u64 start, u64 end)
{
	bool overlap;

	spin_lock(&mm->pt_lock);
	overlap = mm->unflushed_start < end && start < mm->unflushed_end;
	spin_unlock(&mm->pt_lock);
	if (!overlap)
		return;
	range->start = range->start < range->end ? min(range->start, start) : start;
	range->end = max(range->end, end);
}

/*
 * Adds [start, end) if a call of pages_take() has unmapped pages there, dropped mm->lock and not
 * yet flushed the TLBs: after the caller's change, no CPU may use those old entries either.
 */
static __always_inline void flush_range_add_unflushed(struct mm *mm, struct flush_range *range,
						      u64 start, u64 end)
{
	if (unlikely(atomic_read(&mm->nr_unflushed)))
		add_unflushed(mm, range, start, end);
}

u64 *pages_alloc_entry(struct mm *mm, u64 addr)
{
	u64 *pte = pgtable_find(mm->pgd, addr);

	DEBUG_ASSERT(lock_check_held(&mm->pt_lock.map) || list_empty(&mm->node) || mm->faults_wait);
	if (pte)
		return pte;
	pte = pgtable_alloc(mm->pgd, addr);
	if (pte) {
		mm->nr_tables++;
		profile_memory_touched(MM_TABLES, false);
	}
	return pte;
}

/*
 * The kernel's pages change while the number of mapped pages is at its maximum. The peak is the
 * most of them: peak_kernel has pages_at_peak() in its upper bits, of which the maximum never
 * falls, so it is a maximum of all such moments.
 */
#define KERNEL_PAGES_BITS 24

static u64 add_kernel_pages(const struct mm *mm, u64 nr_pages, unsigned int nr_vmas)
{
	u64 bytes = (u64)atomic_read(&mm->nr_threads) * (KERNEL_STACK_SIZE + sizeof(struct task)) +
		    nr_vmas * sizeof(struct vma);

	return nr_pages << KERNEL_PAGES_BITS | DIV_ROUND_UP(bytes, PAGE_SIZE);
}

static u64 kernel_pages_now(const struct mm *mm)
{
	return add_kernel_pages(mm, pages_at_peak(mm), READ_ONCE(mm->nr_vmas));
}

static void raise_peak_kernel(struct mm *mm, u64 peak)
{
	u64 kept = READ_ONCE(mm->peak_kernel), old;

	while (peak > kept && (old = cmpxchg(&mm->peak_kernel, kept, peak)) != kept)
		kept = old;
}

void pages_keep_peak_kernel(struct mm *mm)
{
	raise_peak_kernel(mm, kernel_pages_now(mm));
}

void mm_add_threads(struct mm *mm, int nr)
{
	if (nr < 0)
		pages_keep_peak_kernel(mm);
	atomic_add_return(&mm->nr_threads, nr);
}

void mm_get_peak(const struct mm *mm, u64 nr[NR_MM_KINDS])
{
	bool is_now = READ_ONCE(mm->nr_pages) == READ_ONCE(mm->max_pages);
	const u64 *of_kind = is_now ? mm->nr_of_kind : mm->peak_of_kind;

#pragma GCC unroll 8
	for (enum mm_kind kind = 0; kind < NR_MM_AREA_KINDS; kind++)
		nr[kind] = READ_ONCE(of_kind[kind]);
	nr[MM_TABLES] = is_now ? READ_ONCE(mm->nr_tables) : READ_ONCE(mm->peak_of_kind[MM_TABLES]);
	nr[MM_KERNEL] = max(READ_ONCE(mm->peak_kernel), kernel_pages_now(mm)) &
			(BIT(KERNEL_PAGES_BITS) - 1);
}

/*
 * Called before pages are unmapped. So the way up to the peak costs nothing: what is mapped then is
 * the peak until it is left.
 */
static void keep_peak(struct mm *mm)
{
	ASSERT_MM_HELD(mm);
	if (mm->nr_pages != mm->max_pages)
		return;
	pages_keep_peak_kernel(mm);
	memcpy(mm->peak_of_kind, mm->nr_of_kind, sizeof(mm->nr_of_kind));
	mm->peak_of_kind[MM_TABLES] = mm->nr_tables;
}

void pages_free(struct mm *mm, u64 start, u64 end)
{
	const struct vma *vma = vma_find_from(mm, start);
	u64 *pte, addr = start, nr = 0;

	keep_peak(mm);
	for_each_page_entry(pte, mm->pgd, addr, end) {
		struct page *page = pte_page(*pte);

		while (vma->end <= addr)
			vma = vma->next;
		DEBUG_ASSERT(mm->nr_pages && mm->nr_pages <= mm->max_pages);
		WRITE_ONCE(*pte, 0);
		page_put(page);
		mm->nr_pages--;
		mm->nr_of_kind[vma_kind(vma)]--;
		if (++nr % RESCHED_INTERVAL == 0)
			cond_resched();
	}
}

/* Counts pages of an area as unmapped. pt_lock is held. */
static __always_inline void subtract_pages(struct mm *mm, const struct vma *vma, u64 nr)
{
	ASSERT_HELD(&mm->pt_lock);
	keep_peak(mm);
	DEBUG_ASSERT(nr <= mm->nr_pages && mm->nr_pages <= mm->max_pages);
	mm->nr_pages -= nr;
	mm->nr_of_kind[vma_kind(vma)] -= nr;
}

/* Removes the access to all pages, and adds them to the range that must be flushed. */
static void hide_pages(struct mm *mm, const struct vma *vma, u64 start, u64 end,
		       struct flush_range *range)
{
	u64 *pte, addr = start, nr = 0;

	ASSERT_MM_HELD(mm);
	for_each_page_entry(pte, mm->pgd, addr, end) {
		WRITE_ONCE(*pte, (*pte & PTE_PAGE_MASK) | pte_user_bits(0, *pte & PTE_BORROWED));
		flush_range_add(range, addr);
		if (++nr % RESCHED_INTERVAL == 0)
			cond_resched();
	}
	flush_range_add_unflushed(mm, range, start, end);
	/* A reader that found one of the pages under this lock has a reference to it by now. */
	if (nr) {
		spin_lock(&mm->pt_lock);
		subtract_pages(mm, vma, nr);
		spin_unlock(&mm->pt_lock);
	}
}

/* Flushes the TLBs, and frees the pages. There are no others in the range. */
static void free_hidden(struct mm *mm, const struct flush_range *range)
{
	u64 *pte, addr = range->start, nr = 0;

	flush_range_done(mm, range);
	for_each_page_entry(pte, mm->pgd, addr, range->end) {
		struct page *page = pte_page(*pte);

		WRITE_ONCE(*pte, 0);
		page_put(page);
		if (++nr % RESCHED_INTERVAL == 0)
			cond_resched();
	}
}

void pages_unmap(struct mm *mm, const struct vma *vma, u64 start, u64 end)
{
	struct flush_range range = { 0, 0 };

	hide_pages(mm, vma, start, end, &range);
	free_hidden(mm, &range);
}

void pages_unmap_areas(struct mm *mm, const struct vma_removed *removed)
{
	struct flush_range range = { 0, 0 };

	if (removed->peak_pages)
		raise_peak_kernel(mm, add_kernel_pages(mm, removed->peak_pages, removed->nr_vmas));
	for (const struct vma *vma = removed->first; vma; vma = vma->next)
		hide_pages(mm, vma, vma->start, vma->end, &range);
	free_hidden(mm, &range);
}

/* Before mm->lock is dropped, so that the next writer sees it in flush_range_add_unflushed(). */
static void note_unflushed(struct mm *mm, const struct flush_range *range)
{
	ASSERT_HELD(&mm->pt_lock);
	if (!atomic_read(&mm->nr_unflushed)) {
		mm->unflushed_start = range->start;
		mm->unflushed_end = range->end;
	}
	mm->unflushed_start = min(mm->unflushed_start, range->start);
	mm->unflushed_end = max(mm->unflushed_end, range->end);
	atomic_inc(&mm->nr_unflushed);
}

void pages_take(struct mm *mm, const struct vma *vma, u64 *addr, u64 end, struct pages_taken *taken)
{
	struct flush_range range = { 0, 0 };
	unsigned int nr = 0;
	u64 *pte, stop;

	ASSERT_MM_HELD(mm);
	stop = min(end, ALIGN_DOWN(*addr, TABLE_BYTES) + TABLE_BYTES);
	spin_lock(&mm->pt_lock);
	while (nr < MAX_PAGES_TAKEN && (pte = pgtable_next(mm->pgd, addr, stop))) {
		taken->pages[nr++] = pte_page(*pte);
		WRITE_ONCE(*pte, 0);
		flush_range_add(&range, *addr);
		*addr += PAGE_SIZE;
	}
	subtract_pages(mm, vma, nr);
	if (nr)
		note_unflushed(mm, &range);
	/* Only these may be borrowed again: the other pages of an area without a file are zeros. */
	if (nr && vma_kind(vma) == MM_FILE)
		mm->nr_discards++;
	spin_unlock(&mm->pt_lock);
	taken->nr = nr;
	taken->start = range.start;
	taken->end = range.end;
	if (!pgtable_next(mm->pgd, addr, end))
		*addr = end;
}

void pages_free_taken(struct mm *mm, const struct pages_taken *taken)
{
	if (taken->nr) {
		flush_tlb_mm_range(mm, taken->start, taken->end);
		atomic_dec(&mm->nr_unflushed);
	}
	for (unsigned int i = 0; i < taken->nr; i++)
		page_put(taken->pages[i]);
	cond_resched();
}

void pages_flush_unflushed(struct mm *mm, u64 start, u64 end)
{
	struct flush_range range = { 0, 0 };

	/* The other call clears entries, and notes that, while it holds the lock. */
	spin_lock(&mm->pt_lock);
	spin_unlock(&mm->pt_lock);
	flush_range_add_unflushed(mm, &range, start, end);
	flush_range_done(mm, &range);
}

void pages_protect(struct mm *mm, u64 start, u64 end, u32 prot)
{
	struct flush_range range = { 0, 0 };
	u64 *pte, addr = start;

	ASSERT_FAULTS_WAIT(mm);
	for_each_page_entry(pte, mm->pgd, addr, end) {
		u64 entry = (*pte & PTE_PAGE_MASK) | pte_user_bits(prot, *pte & PTE_BORROWED);

		if (entry == *pte)
			continue;
		WRITE_ONCE(*pte, entry);
		flush_range_add(&range, addr);
	}
	flush_range_add_unflushed(mm, &range, start, end);
	flush_range_done(mm, &range);
}

int pages_copy(struct mm *to, struct mm *from, const struct vma *vma, bool *changed)
{
	u64 *pte, *last = NULL, *copy = NULL, addr = vma->start, nr = 0;

	ASSERT_FAULTS_WAIT(to);
	ASSERT_FAULTS_WAIT(from);
	/* Shared pages belong to the file: the copy gets them by page faults. */
	if (vma->flags & (MAP_SHARED | VMA_WIPE_ON_FORK))
		return 0;
	for_each_page_entry(pte, from->pgd, addr, vma->end) {
		u64 entry = (*pte & PTE_PAGE_MASK) | pte_user_bits(vma->prot, true);

		/* The copy of an entry in the same table is in the same table, too. */
		if (last && ALIGN_DOWN((u64)last, PAGE_SIZE) == ALIGN_DOWN((u64)pte, PAGE_SIZE))
			copy += pte - last;
		else
			copy = pages_alloc_entry(to, addr);
		if (!copy)
			return -ENOMEM;
		last = pte;
		if (*pte & PTE_WRITE)
			*changed = true;
		WRITE_ONCE(*pte, entry);
		page_get(pte_page(entry));
		DEBUG_ASSERT(!pte_has_page(*copy));
		WRITE_ONCE(*copy, entry);
		to->nr_pages++;
		to->nr_of_kind[vma_kind(vma)]++;
		to->max_pages = to->nr_pages;
		if (++nr % RESCHED_INTERVAL == 0)
			cond_resched();
	}
	return 0;
}

int pages_prepare_move(struct mm *mm, u64 start, u64 len, u64 to)
{
	u64 *pte, addr = start;

	for_each_page_entry(pte, mm->pgd, addr, start + len) {
		if (!pages_alloc_entry(mm, to + (addr - start)))
			return -ENOMEM;
	}
	return 0;
}

void pages_move(struct mm *mm, const struct vma *vma, u64 to)
{
	struct flush_range range = { 0, 0 };
	u64 *pte, addr = vma->start, nr = 0;

	ASSERT_FAULTS_WAIT(mm);
	for_each_page_entry(pte, mm->pgd, addr, vma->end) {
		u64 *target = pgtable_find(mm->pgd, to + (addr - vma->start));
		u64 bits = pte_user_bits(vma->prot, *pte & PTE_BORROWED);

		DEBUG_ASSERT(!pte_has_page(*target));
		WRITE_ONCE(*target, (*pte & PTE_PAGE_MASK) | bits);
		WRITE_ONCE(*pte, 0);
		flush_range_add(&range, addr);
		if (++nr % RESCHED_INTERVAL == 0)
			cond_resched();
	}
	/* Until then, other CPUs may reach the same pages at their old place. */
	flush_range_add_unflushed(mm, &range, vma->start, vma->end);
	flush_range_done(mm, &range);
}
