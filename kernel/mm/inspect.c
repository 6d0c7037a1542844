// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <asm/pgtable.h>
#include <lego/errno.h>
#include <lego/fs.h>
#include <lego/page.h>
#include <lego/string.h>

/* Address spaces seen from outside. */

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

/* The page behind addr, with a reference, if it is there to be read. */
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

		if (mm_fault(mm, addr, PROT_READ))
			break;
		page = get_present_page(mm, addr);
		if (!page)
			continue; /* gone again: the next fault says whether for good */
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
