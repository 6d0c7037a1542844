// SPDX-License-Identifier: BSD-2-Clause
/*
 * mremap: shrinks or grows an area, or a part of one, in place, or moves it with its pages. Page
 * table entries move to other tables; no page is copied.
 */

#include "internal.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/fs.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/syscall.h>

#define MREMAP_MAYMOVE 1
#define MREMAP_FIXED   2

#define MAX_NEW_AREAS 3 /* for a move, as in Linux: two ends are split off, and the move may fail */

/* Finds the one area that contains len bytes at addr. Returns -EFAULT if there is none. */
static int find_part(struct mm *mm, u64 addr, u64 len, struct vma **vma)
{
	ASSERT_MM_HELD_WRITE(mm);
	*vma = vma_find(mm, addr);
	return *vma && len <= (*vma)->end - addr ? 0 : -EFAULT;
}

/*
 * Sets the length of an area. A file mapping that grows shows more of the file, but an ELF segment
 * nothing after its end.
 */
static void set_length(struct vma *vma, u64 len)
{
	u64 old_len = vma->end - vma->start;

	if (vma->file && vma->file_bytes >= old_len)
		vma->file_bytes = len;
	vma->end = vma->start + len;
}

/* Grows the area that ends at addr + len. Returns false if there is no room. */
static bool grow_in_place(struct mm *mm, struct vma *vma, u64 addr, u64 len, u64 new_len)
{
	u64 end = addr + new_len;

	ASSERT_MM_HELD_WRITE(mm);
	if (vma->end != addr + len || addr > TASK_SIZE - new_len ||
	    !vma_range_free(mm, vma->end, end))
		return false;
	set_length(vma, end - vma->start);
	profile_area_changed(&mm->profile, vma);
	vma_merge_range(mm, addr, end);
	return true;
}

/* Moves a whole area to a free place. moved becomes the area there. */
static void move_area(struct mm *mm, struct vma *vma, struct vma *moved, u64 new_len, u64 to)
{
	u64 len = vma->end - vma->start;

	DEBUG_ASSERT(vma_range_free(mm, to, to + new_len));
	pages_move(mm, vma, to);
	*moved = *vma;
	moved->start = to;
	moved->end = to + len;
	set_length(moved, new_len);
	if (moved->file)
		file_get(moved->file);
	vma_remove(mm, vma);
	profile_area_changed(&mm->profile, moved);
	if (!vma_insert(mm, moved, vma_find_from(mm, to)))
		vma_free(moved);
}

static long move_part(struct mm *mm, u64 addr, u64 len, u64 new_len, u32 flags, u64 new_addr)
{
	struct vma *moved, *next;
	u64 to = new_addr;
	int error;

	error = mm_choose_place(mm, &to, new_len, flags & MREMAP_FIXED ? MAP_FIXED : 0, &next);
	if (error)
		return error;
	if (mm->nr_vmas + MAX_NEW_AREAS >= MM_MAX_AREAS)
		return -ENOMEM;
	moved = kmalloc(sizeof(*moved));
	if (!moved || pages_prepare_move(mm, addr, len, to) ||
	    vma_split_range(mm, addr, addr + len)) {
		kfree(moved);
		return -ENOMEM;
	}
	move_area(mm, vma_find(mm, addr), moved, new_len, to);
	return to;
}

/* Cuts the end off. What is behind it may be other areas, or nothing. */
static long shrink_locked(struct mm *mm, u64 addr, u64 len, u64 new_len,
			  struct vma_removed *removed)
{
	int error = 0;

	if (!vma_find(mm, addr))
		return -EFAULT;
	if (new_len < len)
		error = vma_remove_range(mm, addr + new_len, addr + len, removed);
	return error ?: addr;
}

static long move_locked(struct mm *mm, u64 addr, u64 len, u64 new_len, u32 flags, u64 new_addr)
{
	struct vma *vma;
	int error;

	if (!vma_find(mm, addr))
		return -EFAULT;
	if (flags & MREMAP_FIXED) {
		if (mm->nr_vmas + MAX_NEW_AREAS + 2 >= MM_MAX_AREAS)
			return -ENOMEM;
		error = mm_unmap_locked(mm, new_addr, new_addr + new_len);
		if (error)
			return error;
	}
	if (new_len < len) {
		error = mm_unmap_locked(mm, addr + new_len, addr + len);
		if (error)
			return error;
		len = new_len;
	}
	error = find_part(mm, addr, len, &vma);
	if (error)
		return error;
	if (mm_too_large(new_len, vma->prot, vma->flags) ||
	    (new_len > len && !mm_fits(mm, addr, addr + len, new_len, vma->prot, vma->flags)))
		return -ENOMEM;
	if (!(flags & MREMAP_FIXED) && grow_in_place(mm, vma, addr, len, new_len))
		return addr;
	if (!(flags & MREMAP_MAYMOVE))
		return -ENOMEM;
	return move_part(mm, addr, len, new_len, flags, flags & MREMAP_FIXED ? new_addr : 0);
}

/* A len of 0, which maps a shared area a second time, is not supported. */
long mm_move(struct mm *mm, u64 addr, u64 len, u64 new_len, u32 flags, u64 new_addr)
{
	struct vma_removed removed;
	long place;

	if (flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED) || addr % PAGE_SIZE || len > TASK_SIZE ||
	    (flags & MREMAP_FIXED && !(flags & MREMAP_MAYMOVE)))
		return -EINVAL;
	if (new_len > TASK_SIZE)
		return flags & MREMAP_FIXED ? -EINVAL : -ENOMEM;
	len = ALIGN_UP(len, PAGE_SIZE);
	new_len = ALIGN_UP(new_len, PAGE_SIZE);
	if (!len || !new_len || addr > TASK_SIZE - len)
		return -EINVAL;
	if (flags & MREMAP_FIXED) {
		if (new_addr % PAGE_SIZE || new_addr > TASK_SIZE - new_len)
			return -EINVAL;
		if (new_addr < addr + len && addr < new_addr + new_len)
			return -EINVAL;
	}
	place = mm_lock_write_killable(mm);
	if (place)
		return place;
	removed.first = NULL;
	if (new_len <= len && !(flags & MREMAP_FIXED))
		place = shrink_locked(mm, addr, len, new_len, &removed);
	else
		place = move_locked(mm, addr, len, new_len, flags, new_addr);
	mm_unlock_write_and_unmap(mm, &removed);
	return place;
}

SYSCALL_DEFINE5(mremap, u64, addr, u64, len, u64, new_len, u64, flags, u64, new_addr)
{
	if (flags >> 32)
		return -EINVAL;
	return mm_move(current->mm, addr, len, new_len, flags, new_addr);
}
