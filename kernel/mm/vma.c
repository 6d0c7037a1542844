// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <lego/assert.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/fs.h>
#include <lego/slab.h>
#include <lego/string.h>

/*
 * The areas of an address space: an array of pointers sorted by address, searched by halving.
 * Changing a range splits the areas at its ends, works on whole areas, and merges equal
 * neighbours again.
 */

#define FIRST_MAX_VMAS 32

unsigned int vma_index(const struct mm *mm, u64 addr)
{
	unsigned int low = 0, high = mm->nr_vmas;

	ASSERT_MM_HELD(mm);
	while (low < high) {
		unsigned int mid = low + (high - low) / 2;

		if (mm->vmas[mid]->end > addr)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

struct vma *vma_find(const struct mm *mm, u64 addr)
{
	unsigned int i = vma_index(mm, addr);

	return i < mm->nr_vmas && mm->vmas[i]->start <= addr ? mm->vmas[i] : NULL;
}

bool vma_range_free(const struct mm *mm, u64 start, u64 end)
{
	unsigned int i = vma_index(mm, start);

	return i == mm->nr_vmas || mm->vmas[i]->start >= end;
}

bool vma_range_mapped(const struct mm *mm, u64 start, u64 end)
{
	unsigned int i;

	ASSERT_MM_HELD(mm);
	for (i = vma_index(mm, start); start < end; i++) {
		if (i == mm->nr_vmas || mm->vmas[i]->start > start)
			return false;
		start = mm->vmas[i]->end;
	}
	return true;
}

static int reserve(struct mm *mm, unsigned int nr, unsigned int limit)
{
	unsigned int max_vmas = max(mm->max_vmas, FIRST_MAX_VMAS);
	struct vma **vmas;

	ASSERT_MM_HELD_WRITE(mm);
	if (mm->nr_vmas + nr > limit)
		return -ENOMEM;
	if (mm->nr_vmas + nr <= mm->max_vmas)
		return 0;
	while (max_vmas < mm->nr_vmas + nr)
		max_vmas *= 2;
	vmas = kmalloc(max_vmas * sizeof(*vmas));
	if (!vmas)
		return -ENOMEM;
	if (mm->nr_vmas)
		memcpy(vmas, mm->vmas, mm->nr_vmas * sizeof(*vmas));
	kfree(mm->vmas);
	mm->vmas = vmas;
	mm->max_vmas = max_vmas;
	return 0;
}

int vma_reserve(struct mm *mm, unsigned int nr)
{
	return reserve(mm, nr, MM_MAX_AREAS);
}

void vma_free(struct vma *vma)
{
	if (vma->file)
		file_put(vma->file);
	kfree(vma);
}

int vma_copy_all(struct mm *to, const struct mm *from)
{
	int error = reserve(to, from->nr_vmas, from->nr_vmas);

	ASSERT_MM_HELD_WRITE(to);
	ASSERT_MM_HELD_WRITE(from);
	DEBUG_ASSERT(!to->nr_vmas);
	if (error)
		return error;
	for (unsigned int i = 0; i < from->nr_vmas; i++) {
		struct vma *vma;

		if (from->vmas[i]->flags & VMA_DONT_FORK)
			continue;
		vma = kmalloc(sizeof(*vma));
		if (!vma)
			return -ENOMEM;
		*vma = *from->vmas[i];
		if (vma->file)
			file_get(vma->file);
		to->vmas[to->nr_vmas++] = vma;
	}
	return 0;
}

static void array_insert(struct mm *mm, unsigned int at, struct vma *vma)
{
	ASSERT_MM_HELD_WRITE(mm);
	BUG_ON(mm->nr_vmas == mm->max_vmas);
	DEBUG_ASSERT(vma->start < vma->end && !((vma->start | vma->end) % PAGE_SIZE));
	DEBUG_ASSERT(!at || mm->vmas[at - 1]->end <= vma->start);
	DEBUG_ASSERT(at == mm->nr_vmas || vma->end <= mm->vmas[at]->start);
	memmove(&mm->vmas[at + 1], &mm->vmas[at], (mm->nr_vmas - at) * sizeof(vma));
	mm->vmas[at] = vma;
	mm->nr_vmas++;
}

static void array_remove(struct mm *mm, unsigned int at, unsigned int nr)
{
	ASSERT_MM_HELD_WRITE(mm);
	DEBUG_ASSERT(at + nr <= mm->nr_vmas);
	mm->nr_vmas -= nr;
	memmove(&mm->vmas[at], &mm->vmas[at + nr], (mm->nr_vmas - at) * sizeof(mm->vmas[0]));
}

/* Room in the array is reserved. */
static int split_at(struct mm *mm, u64 addr)
{
	struct vma *vma = vma_find(mm, addr), *upper;
	u64 lower_bytes;

	if (!vma || vma->start == addr)
		return 0;
	upper = kmalloc(sizeof(*upper));
	if (!upper)
		return -ENOMEM;
	lower_bytes = addr - vma->start;
	*upper = *vma;
	upper->start = addr;
	vma->end = addr;
	if (vma->file) {
		file_get(vma->file);
		upper->file_offset += lower_bytes;
		upper->file_bytes -= min(upper->file_bytes, lower_bytes);
		vma->file_bytes = min(vma->file_bytes, lower_bytes);
	}
	array_insert(mm, vma_index(mm, addr - 1) + 1, upper);
	return 0;
}

int vma_split_range(struct mm *mm, u64 start, u64 end)
{
	const struct vma *first = vma_find(mm, start), *last = vma_find(mm, end);
	unsigned int nr = (first && first->start < start) + (last && last->start < end);
	/* Once the range is unmapped, a hole in an area leaves one more, all else no more areas. */
	bool hole = nr == 2 && first == last;
	int error = reserve(mm, nr, MM_MAX_AREAS + (hole ? 1 : nr));

	if (!error)
		error = split_at(mm, start);
	if (!error)
		error = split_at(mm, end);
	return error;
}

void vma_remove_range(struct mm *mm, u64 start, u64 end)
{
	unsigned int first = vma_index(mm, start), behind = first;

	ASSERT_MM_HELD_WRITE(mm);
	while (behind < mm->nr_vmas && mm->vmas[behind]->start < end) {
		BUG_ON(mm->vmas[behind]->start < start || mm->vmas[behind]->end > end);
		vma_free(mm->vmas[behind++]);
	}
	array_remove(mm, first, behind - first);
}

static bool can_merge(const struct vma *a, const struct vma *b)
{
	return a->end == b->start && a->prot == b->prot && a->flags == b->flags && !a->file &&
	       !b->file;
}

void vma_merge_range(struct mm *mm, u64 start, u64 end)
{
	unsigned int i = vma_index(mm, start ? start - 1 : 0);

	ASSERT_MM_HELD_WRITE(mm);
	while (i + 1 < mm->nr_vmas && mm->vmas[i]->end <= end) {
		struct vma *lower = mm->vmas[i], *upper = mm->vmas[i + 1];

		if (!can_merge(lower, upper)) {
			i++;
			continue;
		}
		lower->end = upper->end;
		vma_free(upper);
		array_remove(mm, i + 1, 1);
	}
}

void vma_insert(struct mm *mm, struct vma *vma)
{
	u64 start = vma->start, end = vma->end;

	DEBUG_ASSERT(vma_range_free(mm, start, end));
	array_insert(mm, vma_index(mm, start), vma);
	profile_area_changed(&mm->profile, vma);
	vma_merge_range(mm, start, end);
}
