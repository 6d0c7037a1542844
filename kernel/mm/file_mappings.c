// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finds the mappings of a file, by a walk over all address spaces in the order of their creation:
 * to remove the pages of a truncated file, and to find writable mappings before a file is sealed.
 * An address space that is being copied is locked until the copy is in the list, after it, so the
 * walk misses none.
 */

#include "internal.h"

#include <lego/fs.h>

/* Guards the list; an mm in it may have lost its last user already. */
static DEFINE_SPINLOCK(list_lock);
static LIST_HEAD(mm_list);

void mm_list_add(struct mm *mm)
{
	DEBUG_ASSERT(list_empty(&mm->node));
	spin_lock(&list_lock);
	list_add_tail(&mm->node, &mm_list);
	spin_unlock(&list_lock);
}

void mm_list_remove(struct mm *mm)
{
	spin_lock(&list_lock);
	list_del(&mm->node);
	spin_unlock(&list_lock);
}

static bool get_unless_dying(struct mm *mm)
{
	int refs = atomic_read(&mm->refs);

	while (refs) {
		int seen = cmpxchg(&mm->refs.counter, refs, refs + 1);

		if (seen == refs)
			return true;
		refs = seen;
	}
	return false;
}

/*
 * Returns the address space after last (NULL: the first), with a reference. The caller has a
 * reference to last, so last is in the list.
 */
static struct mm *next_mm(struct mm *last)
{
	struct list_head *node;
	struct mm *mm = NULL;

	DEBUG_ASSERT(!last || atomic_read(&last->refs) > 0);
	spin_lock(&list_lock);
	for (node = last ? last->node.next : mm_list.next; node != &mm_list; node = node->next) {
		mm = list_entry(node, struct mm, node);
		if (get_unless_dying(mm))
			break;
	}
	spin_unlock(&list_lock);
	return node == &mm_list ? NULL : mm;
}

/* Unmaps the part of the area that maps the file from position on. */
static void cut_area(struct mm *mm, const struct vma *vma, u64 position)
{
	u64 skip = position > vma->file_offset ? position - vma->file_offset : 0;
	u64 bytes = min(ALIGN_UP(vma->file_bytes, PAGE_SIZE), vma->end - vma->start);

	ASSERT_FAULTS_WAIT(mm);
	if (skip < bytes)
		pages_unmap(mm, vma, vma->start + skip, vma->start + bytes);
}

/* Returns the address space after mm (NULL: the first) with a reference, and drops that of mm. */
static struct mm *step(struct mm *mm)
{
	struct mm *next = next_mm(mm);

	if (mm)
		mm_put(mm);
	return next;
}

void mm_cut_file(const struct inode *inode, u64 position)
{
	struct vma *vma;

	might_sleep();
	DEBUG_ASSERT(!(position % PAGE_SIZE));
	for (struct mm *mm = step(NULL); mm; mm = step(mm)) {
		mm_lock_write(mm);
		for_each_vma(vma, mm) {
			if (vma->file && vma->file->inode == inode)
				cut_area(mm, vma, position);
		}
		mm_unlock_write(mm);
	}
}

bool mm_may_write_file(const struct inode *inode)
{
	struct mm *mm = NULL;
	struct vma *vma;
	bool found = false;

	might_sleep();
	while (!found && (mm = step(mm))) {
		/* munmap() and mremap() are readers while they unmap pages that have no area. */
		mm_lock_write(mm);
		for_each_vma(vma, mm)
			found |= vma_writes_file(vma) && vma->file->inode == inode;
		mm_unlock_write(mm);
	}
	if (mm)
		mm_put(mm);
	return found;
}
