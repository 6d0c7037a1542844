// SPDX-License-Identifier: BSD-2-Clause
/* Reads address spaces from outside: for /proc, debuggers and reports. */

#include "internal.h"

#include <asm/pgtable.h>
#include <lego/errno.h>
#include <lego/fs.h>
#include <lego/page.h>
#include <lego/sched.h>
#include <lego/string.h>

unsigned int mm_get_areas(struct mm *mm, u64 addr, struct mm_area_info *areas, unsigned int nr)
{
	unsigned int done = 0;
	struct vma *vma;

	rw_mutex_lock_read(&mm->lock);
	for_each_vma_in(vma, mm, addr, TASK_SIZE) {
		if (done == nr)
			break;
		if (vma->file)
			file_get(vma->file);
		areas[done++] = (struct mm_area_info){
			.start = vma->start,
			.end = vma->end,
			.prot = vma->prot,
			.flags = vma->flags & (MAP_SHARED | MAP_PRIVATE),
			.file = vma->file,
			.file_offset = vma->file_offset,
			.anonymous_shared = vma->flags & MAP_ANONYMOUS,
		};
	}
	rw_mutex_unlock_read(&mm->lock);
	return done;
}

void mm_put_areas(struct mm_area_info *areas, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++) {
		if (areas[i].file)
			file_put(areas[i].file);
	}
}

/* A page of an area as it was when it was read. It may have been freed since. */
struct seen_page {
	const struct page *page;
	u64 addr, entry;
	unsigned int nr_refs;
};

#define PAGES_AT_A_TIME 64

/* Reads the next pages before end, and moves *addr after them. Returns their number. */
static unsigned int look_at_pages(struct mm *mm, u64 *addr, u64 end, struct seen_page *seen)
{
	unsigned int nr = 0;
	u64 *pte;

	rw_mutex_lock_read(&mm->lock);
	spin_lock(&mm->pt_lock);
	while (nr < PAGES_AT_A_TIME && (pte = pgtable_next(mm->pgd, addr, end))) {
		const struct page *page = pte_page(*pte);

		seen[nr++] = (struct seen_page){ page, *addr, *pte, atomic_read(&page->refs) };
		*addr += PAGE_SIZE;
	}
	spin_unlock(&mm->pt_lock);
	rw_mutex_unlock_read(&mm->lock);
	return nr;
}

/* Returns true if the page belongs to the mapped file, which then has a reference to it, too. */
static bool is_of_file(const struct mm_area_info *area, const struct seen_page *seen)
{
	u64 offset = area->file_offset + (seen->addr - area->start);

	if (!area->file || (area->flags & MAP_PRIVATE && !(seen->entry & PTE_BORROWED)))
		return false;
	return file_has_page(area->file, offset >> PAGE_SHIFT, seen->page);
}

static void add_page(const struct mm_area_info *area, const struct seen_page *seen,
		     struct mm_usage *usage)
{
	bool of_file = is_of_file(area, seen);
	bool dirty = !of_file || seen->entry & PTE_WRITE;
	unsigned int nr_users = max(seen->nr_refs - of_file, 1U);
	u64 share = (PAGE_SIZE << MM_USAGE_SHIFT) / nr_users;

	if (nr_users > 1)
		*(dirty ? &usage->shared_dirty : &usage->shared_clean) += PAGE_SIZE;
	else
		*(dirty ? &usage->private_dirty : &usage->private_clean) += PAGE_SIZE;
	usage->anonymous += of_file ? 0 : PAGE_SIZE;
	usage->proportional += share;
	usage->proportional_dirty += dirty ? share : 0;
}

void mm_get_usage(struct mm *mm, const struct mm_area_info *area, struct mm_usage *usage)
{
	struct seen_page seen[PAGES_AT_A_TIME];
	u64 addr = area->start;
	unsigned int nr;

	*usage = (struct mm_usage){ 0 };
	while ((nr = look_at_pages(mm, &addr, area->end, seen))) {
		for (unsigned int i = 0; i < nr; i++)
			add_page(area, &seen[i], usage);
		cond_resched();
	}
}

#ifdef CONFIG_PROFILE_MEMORY_CHAINS
/* A table that is there stays until the address space ends, so this needs no lock. */
u32 mm_read_chains(const struct mm *mm, u64 *addr, u16 *chains, u32 max)
{
	u64 end = TASK_SIZE, *pte;
	u32 nr = 0;

	if (READ_ONCE(mm->nr_tables) > PTRS_PER_TABLE)
		end = min(ALIGN_DOWN(*addr, BIT(30)) + BIT(30), TASK_SIZE); /* 512 tables */
	for_each_page_entry(pte, mm->pgd, *addr, end) {
		chains[nr++] = (u16)pte_chain(READ_ONCE(*pte));
		if (nr == max) {
			*addr += PAGE_SIZE;
			break;
		}
	}
	return nr;
}
#endif

/* Returns the page at addr, with a reference, or NULL if it is not mapped for reading. */
static struct page *get_present_page(struct mm *mm, u64 addr)
{
	struct page *page = NULL;
	u64 *pte;

	rw_mutex_lock_read(&mm->lock);
	spin_lock(&mm->pt_lock);
	pte = pgtable_find(mm->pgd, addr);
	if (pte && *pte & PTE_PRESENT) {
		page = pte_page(*pte);
		page_get(page);
	}
	spin_unlock(&mm->pt_lock);
	rw_mutex_unlock_read(&mm->lock);
	return page;
}

ssize_t mm_access(struct mm *mm, u64 addr, void *buf, size_t n)
{
	size_t done = 0;

	while (done < n && addr < TASK_SIZE) {
		size_t bytes = min(n - done, (size_t)(PAGE_SIZE - addr % PAGE_SIZE));
		struct page *page;

		if (mm_fault(mm, addr, PROT_READ, true) < 0)
			break;
		page = get_present_page(mm, addr);
		if (!page)
			/* Unmapped again: the next mm_fault() tells whether it can come back. */
			continue;
		memcpy((char *)buf + done, (char *)page_address(page) + addr % PAGE_SIZE, bytes);
		page_put(page);
		done += bytes;
		addr += bytes;
	}
	return done || !n ? (ssize_t)done : -EFAULT;
}

struct mm_key mm_key_of(struct mm *mm, u64 addr)
{
	struct mm_key key = { NULL, addr };
	const struct vma *vma;

	rw_mutex_lock_read(&mm->lock);
	vma = vma_find(mm, addr);
	if (vma && vma->prot & PROT_READ)
		key.object = mm;
	if (key.object && vma->flags & MAP_SHARED) {
		key.object = vma->file->inode;
		key.offset = vma->file_offset + (addr - vma->start);
	}
	rw_mutex_unlock_read(&mm->lock);
	return key;
}
