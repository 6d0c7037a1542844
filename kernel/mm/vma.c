// SPDX-License-Identifier: BSD-2-Clause
/*
 * The areas of an address space. A change of a range splits the areas at its ends, changes whole
 * areas, and merges equal neighbours again. Memory for a split is allocated before anything
 * changes, so a failed call has changed nothing.
 */

#include "internal.h"

#include <lego/assert.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/fs.h>
#include <lego/slab.h>

#define MAX_AREAS_CHECKED 64 /* after each change, by the debug kernel */

/* For assertions. Returns true if the areas are consistent. */
static __maybe_unused bool areas_are_sound(const struct mm *mm)
{
	return mm->nr_vmas > MAX_AREAS_CHECKED || vma_tree_is_sound(&mm->areas, mm->nr_vmas);
}

/* A change of areas that page faults without mm->lock see as a whole. */
static void begin_change(struct mm *mm)
{
	spin_lock(&mm->pt_lock);
	mm->nr_changes++;
}

static void end_change(struct mm *mm)
{
	spin_unlock(&mm->pt_lock);
}

bool vma_range_free(const struct mm *mm, u64 start, u64 end)
{
	const struct vma *vma = vma_find_from(mm, start);

	return !vma || vma->start >= end;
}

bool vma_range_mapped(const struct mm *mm, u64 start, u64 end)
{
	const struct vma *vma = vma_find_from(mm, start);

	for (; start < end; vma = vma->next) {
		if (!vma || vma->start > start)
			return false;
		start = vma->end;
	}
	return true;
}

void vma_free(struct vma *vma)
{
	if (vma->file)
		file_put(vma->file);
	kfree(vma);
}

void vma_free_all(struct mm *mm)
{
	struct vma *vma = mm->areas.first;

	ASSERT_MM_HELD_WRITE(mm);
	while (vma) {
		struct vma *next = vma->next;

		vma_free(vma);
		vma = next;
	}
	mm->areas = (struct vma_tree){ 0 };
	mm->nr_vmas = 0;
}

static void link_vma(struct mm *mm, struct vma *vma, struct vma *prev)
{
	ASSERT_MM_HELD_WRITE(mm);
	ASSERT_MAY_CHANGE_AREAS(mm);
	DEBUG_ASSERT(vma->start < vma->end && !((vma->start | vma->end) % PAGE_SIZE));
	DEBUG_ASSERT(vma->end <= TASK_SIZE);
	vma_tree_add(&mm->areas, vma, prev);
	mm->nr_vmas++;
	DEBUG_ASSERT(areas_are_sound(mm));
}

/* The caller has called pages_keep_peak_kernel(), or will call pages_unmap_areas(). */
static void unlink_vma(struct mm *mm, struct vma *vma)
{
	ASSERT_MM_HELD_WRITE(mm);
	ASSERT_MAY_CHANGE_AREAS(mm);
	vma_tree_remove(&mm->areas, vma);
	mm->nr_vmas--;
	DEBUG_ASSERT(areas_are_sound(mm));
}

void vma_remove(struct mm *mm, struct vma *vma)
{
	pages_keep_peak_kernel(mm);
	unlink_vma(mm, vma);
	vma_free(vma);
}

int vma_copy_all(struct mm *to, struct mm *from)
{
	struct vma *vma;
	int error = 0;

	ASSERT_MM_HELD_WRITE(to);
	ASSERT_MM_HELD_WRITE(from);
	DEBUG_ASSERT(!to->nr_vmas);
	for_each_vma(vma, from) {
		struct vma *copy;

		if (vma->flags & VMA_DONT_FORK)
			continue;
		copy = kmalloc(sizeof(*copy));
		if (!copy) {
			error = -ENOMEM;
			break;
		}
		*copy = *vma;
		if (copy->file)
			file_get(copy->file);
		vma_tree_append(&to->areas, copy);
		to->nr_vmas++;
	}
	vma_tree_build(&to->areas, to->nr_vmas);
	return error;
}

static void set_start(struct vma *vma, u64 addr)
{
	u64 nr_bytes = addr - vma->start;

	if (vma->file) {
		vma->file_offset += nr_bytes;
		vma->file_bytes -= min(vma->file_bytes, nr_bytes);
	}
	vma->start = addr;
}

static void set_end(struct vma *vma, u64 addr)
{
	if (vma->file)
		vma->file_bytes = min(vma->file_bytes, addr - vma->start);
	vma->end = addr;
}

/* Splits an area in two. upper becomes the part from addr on. */
static void split_vma(struct mm *mm, struct vma *vma, u64 addr, struct vma *upper)
{
	*upper = *vma;
	if (upper->file)
		file_get(upper->file);
	set_start(upper, addr);
	begin_change(mm);
	set_end(vma, addr);
	link_vma(mm, upper, vma);
	end_change(mm);
}

/* Returns the area that contains addr but does not begin there, or NULL. */
static struct vma *find_around(const struct mm *mm, u64 addr)
{
	struct vma *vma = vma_find(mm, addr);

	return vma && vma->start < addr ? vma : NULL;
}

int vma_split_range(struct mm *mm, u64 start, u64 end)
{
	struct vma *first = find_around(mm, start), *last = find_around(mm, end);
	struct vma *upper = NULL, *behind = NULL;

	ASSERT_MM_HELD_WRITE(mm);
	if (!first && !last)
		return 0;
	if (mm->nr_vmas + !!first + !!last > MM_MAX_AREAS)
		return -ENOMEM;
	if (first)
		upper = kmalloc(sizeof(*upper));
	if (last)
		behind = kmalloc(sizeof(*behind));
	if (!upper != !first || !behind != !last) {
		kfree(upper);
		kfree(behind);
		return -ENOMEM;
	}
	if (first)
		split_vma(mm, first, start, upper);
	if (last)
		split_vma(mm, last == first ? upper : last, end, behind);
	return 0;
}

/* Takes the end of an area from it, and sets *part to that. */
static void cut_end(struct mm *mm, struct vma *vma, u64 addr, struct vma *part)
{
	*part = *vma;
	part->start = addr;
	begin_change(mm);
	set_end(vma, addr);
	vma_tree_raise_gap(&mm->areas, vma->next);
	end_change(mm);
}

static void cut_start(struct mm *mm, struct vma *vma, u64 addr, struct vma *part)
{
	*part = *vma;
	part->end = addr;
	begin_change(mm);
	set_start(vma, addr);
	vma_tree_raise_gap(&mm->areas, vma);
	end_change(mm);
}

/* Splits an area that extends beyond the end of a range. Returns 0, or -ENOMEM. */
static int split_behind(struct mm *mm, struct vma *vma, u64 end)
{
	struct vma *upper;

	if (vma->end <= end)
		return 0;
	upper = mm->nr_vmas < MM_MAX_AREAS ? kmalloc(sizeof(*upper)) : NULL;
	if (!upper)
		return -ENOMEM;
	split_vma(mm, vma, end, upper);
	return 0;
}

static noinline int remove_areas(struct mm *mm, struct vma *vma, u64 start, u64 end,
				 struct vma_removed *removed)
{
	struct vma **link = &removed->first, *part = removed->parts, *next;

	removed->first = NULL;
	removed->peak_pages = 0;
	if (vma && vma->start < start) {
		if (split_behind(mm, vma, end))
			return -ENOMEM;
		cut_end(mm, vma, start, part);
		*link = part;
		link = &part->next;
		part++;
		vma = vma->next;
	}
	for (; vma && vma->end <= end; vma = next) {
		next = vma->next;
		begin_change(mm);
		pages_keep_peak_kernel(mm);
		unlink_vma(mm, vma);
		end_change(mm);
		*link = vma;
		link = &vma->next;
	}
	if (vma && vma->start < end) {
		cut_start(mm, vma, end, part);
		*link = part;
		link = &part->next;
	}
	*link = NULL;
	DEBUG_ASSERT(areas_are_sound(mm));
	return 0;
}

/* Inline in mm_unmap(), which holds the lock meanwhile. */
__always_inline int vma_remove_range(struct mm *mm, u64 start, u64 end, struct vma_removed *removed)
{
	struct vma *above = mm->areas.place_above, *vma = above ? above->prev : NULL;

	ASSERT_MM_HELD_WRITE(mm);
	/* Often, the area is the last one that mmap() has placed. */
	if (!vma || vma->start != start)
		vma = vma_find_from(mm, start);
	if (!vma || vma->start != start || vma->end != end)
		return remove_areas(mm, vma, start, end, removed);
	/* Most often, the range is one area. */
	begin_change(mm);
	removed->nr_vmas = mm->nr_vmas;
	removed->peak_pages = pages_at_peak(mm);
	unlink_vma(mm, vma);
	end_change(mm);
	vma->next = NULL;
	removed->first = vma;
	return 0;
}

void vma_free_removed(struct vma_removed *removed)
{
	struct vma *vma, *next;

	for (vma = removed->first; vma; vma = next) {
		next = vma->next;
		if (vma < removed->parts || vma >= removed->parts + ARRAY_SIZE(removed->parts))
			vma_free(vma);
	}
}

long mm_unmap(struct mm *mm, u64 addr, u64 len)
{
	struct vma_removed removed;
	long error;

	len = len > TASK_SIZE ? 0 : ALIGN_UP(len, PAGE_SIZE);
	if (addr % PAGE_SIZE || !len || addr > TASK_SIZE || len > TASK_SIZE - addr)
		return -EINVAL;
	error = rw_mutex_lock_write_killable(&mm->lock);
	if (error)
		return error;
	error = vma_remove_range(mm, addr, addr + len, &removed);
	mm_unlock_write_and_unmap(mm, &removed);
	return error;
}

static bool can_merge(const struct vma *a, const struct vma *b)
{
	return a->end == b->start && a->prot == b->prot && a->flags == b->flags && !a->file &&
	       !b->file;
}

/* Merges an area with the next one, which is equal and begins at its end. */
static void merge_with_next(struct mm *mm, struct vma *vma)
{
	struct vma *upper = vma->next;

	/*
	 * The upper area becomes empty before it is removed, so that no hole changes its size.
	 * Nobody else sees that: page faults wait, or pt_lock is held.
	 */
	vma->end = upper->start = upper->end;
	vma_remove(mm, upper);
}

void vma_merge_range(struct mm *mm, u64 start, u64 end)
{
	struct vma *vma = vma_find_from(mm, start - 1);

	ASSERT_FAULTS_WAIT(mm);
	while (vma && vma->next && vma->end <= end) {
		if (can_merge(vma, vma->next))
			merge_with_next(mm, vma);
		else
			vma = vma->next;
	}
}

/* Lets neighbours grow over a free place, or one of them if the other is NULL. */
static noinline void grow_over(struct mm *mm, const struct vma *vma, struct vma *prev,
			       struct vma *next)
{
	begin_change(mm);
	if (!prev)
		next->start = vma->start;
	else
		prev->end = vma->end;
	if (prev && next)
		merge_with_next(mm, prev);
	end_change(mm);
}

bool vma_insert(struct mm *mm, struct vma *vma, struct vma *next)
{
	struct vma *prev = next ? next->prev : mm->areas.last;
	bool equals_prev = prev && can_merge(prev, vma);
	bool equals_next = next && can_merge(vma, next);

	DEBUG_ASSERT(vma_range_free(mm, vma->start, vma->end));
	DEBUG_ASSERT(next == vma_find_from(mm, vma->start));
	if (equals_prev || equals_next) {
		grow_over(mm, vma, equals_prev ? prev : NULL, equals_next ? next : NULL);
		return false;
	}
	begin_change(mm);
	link_vma(mm, vma, prev);
	end_change(mm);
	return true;
}
