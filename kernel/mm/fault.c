// SPDX-License-Identifier: BSD-2-Clause
#include <lego/mm.h>

#include <asm/pgtable.h>
#include <asm/tlb.h>
#include <lego/errno.h>
#include <lego/fs.h>
#include <lego/page.h>
#include <lego/sched.h>
#include <lego/string.h>

#include "internal.h"

/*
 * User pages, by the page table: made by the first access, changed and dropped by ranges. A
 * page of a file is borrowed, mapped read-only, where the area cannot be written; otherwise,
 * and by the first write after an mprotect(), it is copied. All entries have the access of
 * their area: the rest is up to the MMU.
 */

/* What a read may do: reading is allowed wherever anything is (x86 has no other way). */
static bool access_allowed(const struct vma *vma, u32 access)
{
	return vma->prot & (access == PROT_READ ? PROT_MASK : access);
}

/* The file's bytes in this page that the area shows. */
static u64 file_bytes_in_page(const struct vma *vma, u64 addr)
{
	u64 before = addr - vma->start;

	if (!vma->file || before >= vma->file_bytes)
		return 0;
	return min(vma->file_bytes - before, PAGE_SIZE);
}

/*
 * The page behind addr in a fresh state: the file's own (*borrowed), a copy, or zeros. NULL:
 * *error says why.
 */
static struct page *make_page(const struct vma *vma, u64 addr, bool *borrowed, int *error)
{
	u64 bytes = file_bytes_in_page(vma, addr);
	u64 position = vma->file_offset + (addr - vma->start);
	struct page *page, *source = NULL;

	*error = -ENOMEM;
	*borrowed = false;
	if (bytes) {
		source = file_get_page(vma->file, position >> PAGE_SHIFT);
		if (!source) {
			if (position >= file_size_bytes(vma->file))
				*error = -EFAULT;
			return NULL;
		}
		if (bytes == PAGE_SIZE && !(vma->prot & PROT_WRITE)) {
			*borrowed = true;
			return source;
		}
	}
	page = page_alloc(0, bytes == PAGE_SIZE ? 0 : PAGE_ZERO);
	if (source) {
		if (page)
			memcpy(page_address(page), page_address(source), bytes);
		page_put(source);
	}
	return page;
}

/*
 * A write to a borrowed page: drop it, and let the access make a copy of what the file has. Every
 * CPU must have forgotten the page before anyone can write to the copy.
 */
static void drop_borrowed(struct mm *mm, u64 addr, u64 *pte)
{
	struct page *page = NULL;

	spin_lock(&mm->pt_lock);
	if (*pte & PTE_BORROWED) {
		page = pte_page(*pte);
		WRITE_ONCE(*pte, 0);
		mm->nr_pages--;
	}
	spin_unlock(&mm->pt_lock);
	if (!page)
		return;
	flush_tlb_mm_range(mm, addr, addr + PAGE_SIZE);
	page_put(page);
}

/* Map a page that was made for addr, unless another thread was faster. */
static void install(struct mm *mm, const struct vma *vma, u64 *pte, struct page *page,
		    bool borrowed)
{
	bool installed = false;

	spin_lock(&mm->pt_lock);
	if (!pte_has_page(*pte)) {
		WRITE_ONCE(*pte, page_to_phys(page) | pte_user_bits(vma->prot, borrowed));
		mm->nr_pages++;
		installed = true;
	}
	spin_unlock(&mm->pt_lock);
	if (!installed)
		page_put(page);
}

static int fault_in(struct mm *mm, const struct vma *vma, u64 addr, u32 access)
{
	struct page *page;
	bool borrowed;
	int error;
	u64 *pte;

	spin_lock(&mm->pt_lock);
	pte = pgtable_alloc(mm->pgd, addr);
	spin_unlock(&mm->pt_lock);
	if (!pte)
		return -ENOMEM;
	if (access == PROT_WRITE && READ_ONCE(*pte) & PTE_BORROWED)
		drop_borrowed(mm, addr, pte);
	if (pte_has_page(READ_ONCE(*pte)))
		return 0; /* another thread was faster */
	page = make_page(vma, addr, &borrowed, &error);
	if (!page)
		return error;
	install(mm, vma, pte, page, borrowed);
	return 0;
}

int mm_fault(struct mm *mm, u64 addr, u32 access)
{
	int error = -EFAULT;
	struct vma *vma;

	rw_mutex_lock_read(&mm->lock);
	vma = vma_find(mm, addr);
	if (vma && access_allowed(vma, access))
		error = fault_in(mm, vma, ALIGN_DOWN(addr, PAGE_SIZE), access);
	rw_mutex_unlock_read(&mm->lock);
	return error;
}

#define MAX_GATHERED	 64   /* borrowed pages; the others are linked */
#define RESCHED_INTERVAL 1024 /* pages: to sleep with mm->lock held makes others queue for it */

/* Pages taken out of the table that CPUs may still use until the flush. */
struct gather {
	struct list_head own; /* by page->node */
	unsigned int nr_borrowed;
	struct page *borrowed[MAX_GATHERED];
	u64 start, end; /* of what has to be flushed */
};

static void gather_release(struct mm *mm, struct gather *gather)
{
	struct page *page, *tmp;
	u64 nr = 0;

	if (gather->start < gather->end)
		flush_tlb_mm_range(mm, gather->start, gather->end);
	list_for_each_entry_safe(page, tmp, &gather->own, node) {
		list_del(&page->node);
		page_put(page);
		if (++nr % RESCHED_INTERVAL == 0)
			cond_resched();
	}
	while (gather->nr_borrowed)
		page_put(gather->borrowed[--gather->nr_borrowed]);
	gather->start = gather->end = 0;
}

void pages_unmap(struct mm *mm, u64 start, u64 end)
{
	struct gather gather;
	u64 *pte, nr = 0;

	list_init(&gather.own);
	gather.nr_borrowed = 0;
	gather.start = gather.end = 0;
	for (u64 addr = start; (pte = pgtable_next(mm->pgd, &addr, end)); addr += PAGE_SIZE) {
		struct page *page = pte_page(*pte);

		if (*pte & PTE_BORROWED)
			gather.borrowed[gather.nr_borrowed++] = page;
		else
			list_add(&page->node, &gather.own);
		WRITE_ONCE(*pte, 0);
		mm->nr_pages--;
		if (gather.start == gather.end)
			gather.start = addr;
		gather.end = addr + PAGE_SIZE;
		if (gather.nr_borrowed == MAX_GATHERED)
			gather_release(mm, &gather);
		if (++nr % RESCHED_INTERVAL == 0)
			cond_resched();
	}
	gather_release(mm, &gather);
}

void pages_protect(struct mm *mm, u64 start, u64 end, u32 prot)
{
	u64 changed_start = 0, changed_end = 0, *pte;

	for (u64 addr = start; (pte = pgtable_next(mm->pgd, &addr, end)); addr += PAGE_SIZE) {
		u64 entry = (*pte & PTE_ADDR_MASK) | pte_user_bits(prot, *pte & PTE_BORROWED);

		if (entry == *pte)
			continue;
		WRITE_ONCE(*pte, entry);
		if (changed_start == changed_end)
			changed_start = addr;
		changed_end = addr + PAGE_SIZE;
	}
	if (changed_start < changed_end)
		flush_tlb_mm_range(mm, changed_start, changed_end);
}
