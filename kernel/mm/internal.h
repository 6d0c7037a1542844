/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MM_INTERNAL_H
#define MM_INTERNAL_H

/* What the files of kernel/mm share. */

#include <lego/assert.h>
#include <lego/mm.h>

#include "vma_tree.h"

struct process;

/* Early memory (early.c): a range that is still free, for page_init() to take over. */
struct early_range {
	phys_addr_t start, end;
};

/*
 * As page_alloc_early(), contiguous; anywhere in RAM, so only with the final direct map. Not
 * zeroed.
 */
phys_addr_t early_alloc_pages(u64 nr_pages);

/* What is left, and the end of RAM; nothing may be allocated early after this. */
const struct early_range *early_ranges(unsigned int *nr);
phys_addr_t early_ram_end(void);

/*
 * Most functions here need mm->lock. An address space that is not in the list of all needs none, as
 * nobody else knows it.
 */
#define ASSERT_MM_HELD(mm)                                                        \
	ASSERT_NAMED(list_empty(&(mm)->node) || lock_check_held(&(mm)->lock.map), \
		     #mm "->lock is held")
#define ASSERT_MM_HELD_WRITE(mm)                                                         \
	ASSERT_NAMED(list_empty(&(mm)->node) || (lock_check_held(&(mm)->lock.map) &&     \
						 (mm)->lock.holders == RW_MUTEX_WRITER), \
		     #mm "->lock is held for writing")

/* The areas (vma.c), guarded by mm->lock; nothing here touches the page table. */

/* Returns the first area that ends behind addr: the one that holds it, if any does. Or NULL. */
struct vma *vma_find_from(const struct mm *mm, u64 addr);

/*
 * For each area that has a part in [from, to), in the order of addresses. The body may change the
 * area, but neither add nor remove one.
 */
#define for_each_vma_in(vma, mm, from, to) \
	for ((vma) = vma_find_from(mm, from); (vma) && (vma)->start < (to); (vma) = (vma)->next)

#define for_each_vma(vma, mm) for ((vma) = (mm)->areas.first; (vma); (vma) = (vma)->next)

/* A program may write through it to a file, or to memory that is shared as one. */
static inline bool vma_writes_file(const struct vma *vma)
{
	return vma->flags & MAP_SHARED && vma->prot & PROT_WRITE;
}

/* The area that holds addr, or NULL. */
struct vma *vma_find(const struct mm *mm, u64 addr);

/* True when no area touches [start, end), and when areas cover all of it. */
bool vma_range_free(const struct mm *mm, u64 start, u64 end);
bool vma_range_mapped(const struct mm *mm, u64 start, u64 end);

/*
 * Make start and end, where they fall into areas, boundaries of areas. 0 or -ENOMEM (nothing
 * done).
 */
int vma_split_range(struct mm *mm, u64 start, u64 end);

/*
 * Remove what areas have in [start, end). first is vma_find_from(start), not NULL. What can fail
 * comes first: the split of an area that is on both sides. 0 or -ENOMEM (nothing done).
 */
int vma_split_around(struct mm *mm, struct vma *first, u64 start, u64 end);
void vma_remove_range(struct mm *mm, struct vma *first, u64 start, u64 end);

/* Insert an area (kmalloc) where nothing is, and merge it with its neighbours. */
void vma_insert(struct mm *mm, struct vma *vma);

/* Merge equal neighbours that meet in [start, end]. */
void vma_merge_range(struct mm *mm, u64 start, u64 end);

void vma_free(struct vma *vma);
void vma_free_all(struct mm *mm);

/* Copy all areas into a space that has none. 0 or -ENOMEM (some are copied). */
int vma_copy_all(struct mm *to, struct mm *from);

/* Pages (pages.c), changed with mm->lock held for writing. */

/*
 * The entry of addr, its table made if need be; NULL when out of memory. A holder of the read lock
 * has pt_lock.
 */
u64 *pages_alloc_entry(struct mm *mm, u64 addr);

/* Drop all pages in [start, end), from every CPU. */
void pages_unmap(struct mm *mm, u64 start, u64 end);

/* Give the pages in [start, end) the access prot. */
void pages_protect(struct mm *mm, u64 start, u64 end, u32 prot);

/*
 * Give the private pages of an area of from to the empty area of to as well, borrowed in both. Sets
 * *changed when from has lost a right to write, which the caller flushes, after a failure too. 0 or
 * -ENOMEM (some are copied).
 */
int pages_copy(struct mm *to, struct mm *from, const struct vma *vma, bool *changed);

/*
 * Move the pages of an area to an empty place. What can fail comes first: the page tables for the
 * place, which may be left over. 0 or -ENOMEM (no page moved).
 */
int pages_prepare_move(struct mm *mm, u64 start, u64 len, u64 to);
void pages_move(struct mm *mm, const struct vma *vma, u64 to);

/* All address spaces (cut.c). No lock needed. */
void mm_list_add(struct mm *mm);
void mm_list_remove(struct mm *mm);

/* Areas (mm.c). */

/* Where a mapping goes: an address or a negative errno. len is a multiple of pages, not 0. */
long mm_choose_place(const struct mm *mm, u64 addr, u64 len, u32 flags);

/* Unmap all in [start, end). 0 or -ENOMEM (nothing done). */
int mm_unmap_locked(struct mm *mm, u64 start, u64 end);

/*
 * True when this much more private memory to write to is more than the machine has: the only limit,
 * as most programs use a small part of what they map.
 */
bool mm_too_large(u64 bytes, u32 prot, u32 flags);

/*
 * RLIMIT_AS and RLIMIT_DATA: true when the current process may have bytes of such a mapping in
 * place of what is in [start, end).
 */
bool mm_fits(const struct mm *mm, u64 start, u64 end, u64 bytes, u32 prot, u32 flags);

/* As far as RLIMIT_DATA goes, it may make that writable. */
bool mm_fits_writable(const struct mm *mm, u64 start, u64 end);

/*
 * Estimates the memory that the end of a process would free (oom_count.c). Process context, no
 * mm->lock held; one caller at a time.
 */
struct oom_size {
	u64 user_bytes, kernel_bytes;
};
void oom_count(struct process *proc, struct oom_size *size);

#endif
