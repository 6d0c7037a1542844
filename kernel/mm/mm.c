// SPDX-License-Identifier: BSD-2-Clause
/*
 * Address spaces: chooses places for areas, and changes ranges. Memory for areas is allocated
 * before anything changes, because only that can fail.
 */

#include <lego/mm.h>

#include <asm/pgtable.h>
#include <asm/tlb.h>
#include <lego/assert.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/fs.h>
#include <lego/leak.h>
#include <lego/page.h>
#include <lego/slab.h>

#include "internal.h"

#define STACK_ROOM (256UL << 20) /* for the first thread's stack, above mmap_base */

/* Where MAP_32BIT puts areas, as on Linux: addresses there need no sign extension. */
#define LOW_START (1UL << 30)
#define LOW_END	  (2UL << 30)

#define MAP_TYPE (MAP_SHARED | MAP_PRIVATE)

void mm_init(void)
{
	BUILD_BUG_ON(TASK_SIZE % PAGE_SIZE);
}

static struct mm *alloc_mm(void)
{
	struct mm *mm = kzalloc(sizeof(*mm));

	if (!mm)
		return NULL;
	mm->pgd = pgd_alloc();
	if (!mm->pgd) {
		kfree(mm);
		return NULL;
	}
	tlb_mm_init(mm);
	atomic_set(&mm->refs, 1);
	rw_mutex_init(&mm->lock);
	spin_lock_init(&mm->pt_lock);
	mm->mmap_base = TASK_SIZE - STACK_ROOM;
	list_init(&mm->node);
	leak_count(LEAK_MMS, 1);
	return mm;
}

void mm_set_exe_file(struct mm *mm, struct file *file)
{
	BUG_ON(file_deny_writing(file));
	file_get(file);
	mm->exe_file = file;
}

struct mm *mm_alloc(void)
{
	struct mm *mm = alloc_mm();

	if (mm)
		mm_list_add(mm);
	return mm;
}

static void unmap_all(struct mm *mm)
{
	struct vma *vma;

	tlb_leave_mm(mm);
	for_each_vma(vma, mm) {
		u64 start = vma->start;

		/* Adjacent areas need only one walk of the page table. */
		while (vma->next && vma->next->start == vma->end)
			vma = vma->next;
		pages_free(mm, start, vma->end);
	}
}

void mm_drop_pages(struct mm *mm)
{
	mm_lock_write(mm);
	if (atomic_read(&mm->refs) == 1) {
		mm->gets_no_pages = true;
		unmap_all(mm);
	}
	mm_unlock_write(mm);
}

void mm_put(struct mm *mm)
{
	DEBUG_ASSERT(atomic_read(&mm->refs) > 0);
	might_sleep();
	if (!atomic_dec_and_test(&mm->refs))
		return;
	mm_list_remove(mm);
	DEBUG_ASSERT(vma_tree_is_sound(&mm->areas, mm->nr_vmas));
	DEBUG_ASSERT(!atomic_read(&mm->nr_unflushed));
	unmap_all(mm);
	BUG_ON(mm->nr_pages);
	for (enum mm_kind kind = 0; kind < NR_MM_AREA_KINDS; kind++)
		DEBUG_ASSERT(!mm->nr_of_kind[kind]);
	vma_free_all(mm);
	pgd_free(mm->pgd);
	if (mm->exe_file) {
		file_allow_writing(mm->exe_file);
		file_put(mm->exe_file);
	}
	kfree(mm);
	leak_count(LEAK_MMS, -1);
}

/* Copies everything except the lock and the page table. */
static int copy_locked(struct mm *to, struct mm *from)
{
	int error = vma_copy_all(to, from);
	bool changed = false;
	struct vma *vma;

	for_each_vma(vma, to) {
		if (error)
			break;
		error = pages_copy(to, from, vma, &changed);
	}
	if (changed || atomic_read(&from->nr_unflushed))
		flush_tlb_mm_range(from, 0, TASK_SIZE);
	to->brk_start = from->brk_start;
	to->brk = from->brk;
	to->mmap_base = from->mmap_base;
	to->layout = from->layout;
	profile_mm_copy(&to->profile, &from->profile);
	DEBUG_ASSERT(vma_tree_is_sound(&to->areas, to->nr_vmas));
	return error;
}

struct mm *mm_copy(struct mm *mm)
{
	struct mm *copy = alloc_mm();
	int error;

	if (!copy)
		return NULL;
	error = mm_lock_write_killable(mm);
	if (error)
		goto out_put;
	error = copy_locked(copy, mm);
	if (mm->exe_file)
		mm_set_exe_file(copy, mm->exe_file);
	if (!error)
		mm_list_add(copy); /* before a file of mm can be truncated: see file_mappings.c */
	mm_unlock_write(mm);
	if (!error)
		return copy;
out_put:
	mm_put(copy);
	return NULL;
}

/* Returns true if no area overlaps [start, start + len), and sets *next to the area after it. */
static bool is_free(const struct mm *mm, u64 start, u64 len, struct vma **next)
{
	*next = vma_find_from(mm, start);
	return !*next || (*next)->start >= start + len;
}

/* Chooses a place for MAP_32BIT: the hint if it is below LOW_END, or a place above LOW_START. */
static int choose_low_place(struct mm *mm, u64 *addr, u64 len, struct vma **next)
{
	if (len > LOW_END)
		return -ENOMEM;
	if (*addr >= MM_MIN_ADDR && *addr <= LOW_END - len && is_free(mm, *addr, len, next))
		return 0;
	*addr = vma_tree_place(&mm->areas, LOW_END, len, next);
	return *addr >= LOW_START ? 0 : -ENOMEM;
}

static noinline int choose_special_place(struct mm *mm, u64 *addr, u64 len, u32 flags,
					 struct vma **next)
{
	if (!(flags & (MAP_FIXED | MAP_FIXED_NOREPLACE))) {
		*addr = ALIGN_DOWN(*addr, PAGE_SIZE);
		return choose_low_place(mm, addr, len, next);
	}
	if (*addr > TASK_SIZE - len)
		return -ENOMEM;
	if (*addr % PAGE_SIZE)
		return -EINVAL;
	if (*addr < MM_MIN_ADDR)
		return -EPERM;
	if (!is_free(mm, *addr, len, next) && flags & MAP_FIXED_NOREPLACE)
		return -EEXIST;
	return 0;
}

/* Inline in map_area(), which holds the lock meanwhile. */
__always_inline int mm_choose_place(struct mm *mm, u64 *addr, u64 len, u32 flags, struct vma **next)
{
	ASSERT_MM_HELD_WRITE(mm);
	DEBUG_ASSERT(len && len <= TASK_SIZE && !(len % PAGE_SIZE));
	if (unlikely(flags & (MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_32BIT)))
		return choose_special_place(mm, addr, len, flags, next);
	if (*addr >= MM_MIN_ADDR) {
		*addr = ALIGN_DOWN(*addr, PAGE_SIZE);
		if (*addr <= TASK_SIZE - len && is_free(mm, *addr, len, next))
			return 0;
	}
	*addr = vma_tree_place(&mm->areas, mm->mmap_base, len, next);
	return *addr ? 0 : -ENOMEM;
}

int mm_unmap_locked(struct mm *mm, u64 start, u64 end)
{
	struct vma_removed removed;
	int error = vma_remove_range(mm, start, end, &removed);

	pages_unmap_areas(mm, &removed);
	vma_free_removed(&removed);
	return error;
}

/*
 * Maps *vma, whose start and end have been chosen: directly before next, or in place of what is
 * there if flags have MAP_FIXED. Sets *vma to NULL unless the caller has to free it.
 */
static int map_locked(struct mm *mm, struct vma **vma, struct vma *next, u32 flags)
{
	/* As in Linux, this may be one more than the limit. */
	int error = mm->nr_vmas > MM_MAX_AREAS ? -ENOMEM : 0;

	if (!error && flags & MAP_FIXED) {
		error = mm_unmap_locked(mm, (*vma)->start, (*vma)->end);
		next = vma_find_from(mm, (*vma)->start);
	}
	if (error)
		return error;
	might_sleep(); /* in the next line, if the area is code */
	profile_area_changed(&mm->profile, *vma);
	if (vma_insert(mm, *vma, next))
		*vma = NULL;
	return 0;
}

static struct vma *vma_alloc(u32 prot, u32 flags, struct file *file, u64 offset, u64 file_bytes)
{
	struct vma *vma = kzalloc(sizeof(*vma));

	if (!vma)
		return NULL;
	vma->prot = prot;
	/* Private zero pages have few flags, so that areas merge. */
	vma->flags = file ? flags & (MAP_TYPE | MAP_ANONYMOUS) :
			    MAP_PRIVATE | (flags & (MAP_STACK | VMA_HEAP));
	if (file) {
		file_get(file);
		vma->file = file;
		vma->file_offset = offset;
		vma->file_bytes = file_bytes;
	}
	return vma;
}

static long map_area(struct mm *mm, u64 addr, u64 len, u32 flags, struct vma *vma)
{
	bool limited = mm_is_limited();
	struct vma *next;
	int error;

	if (!vma)
		return -ENOMEM;
	error = flags & MAP_FIXED ? mm_lock_write_killable(mm) :
				    rw_mutex_lock_write_killable(&mm->lock);
	if (error)
		goto out_free;
	error = mm_choose_place(mm, &addr, len, flags, &next);
	if (vma_writes_file(vma) && file_is_write_sealed(vma->file))
		error = -EPERM;
	if (error)
		goto out_unlock;
	error = -ENOMEM;
	if (limited && addr + len < TASK_SIZE &&
	    !mm_fits(mm, addr, addr + len, len, vma->prot, vma->flags))
		goto out_unlock;
	vma->start = addr;
	vma->end = addr + len;
	error = map_locked(mm, &vma, next, flags);
out_unlock:
	mm_unlock_write(mm);
out_free:
	if (vma)
		vma_free(vma);
	return error ?: (long)addr;
}

bool mm_too_large(u64 bytes, u32 prot, u32 flags)
{
	if (!(prot & PROT_WRITE) || flags & (MAP_SHARED | MAP_NORESERVE))
		return false;
	return bytes >> PAGE_SHIFT > page_nr_total();
}

/* Maps anonymous memory that fork shares: an unnamed file that only its areas refer to. */
static long map_shared(struct mm *mm, u64 addr, u64 bytes, u32 prot, u32 flags)
{
	struct file *file = file_create_unnamed("/dev/zero (deleted)", 0600, bytes);
	long place;

	if (IS_ERR(file))
		return -ENOMEM;
	place = map_area(mm, addr, bytes, flags, vma_alloc(prot, flags, file, 0, bytes));
	file_put(file);
	return place;
}

long mm_map(struct mm *mm, u64 addr, u64 len, u32 prot, u32 flags, struct file *file, u64 offset)
{
	u64 bytes = ALIGN_UP(len, PAGE_SIZE);

	if (!len || prot & ~PROT_MASK || offset % PAGE_SIZE)
		return -EINVAL;
	if (!bytes || bytes > TASK_SIZE)
		return -ENOMEM;
	if (mm_too_large(bytes, prot, flags))
		return -ENOMEM;
	if (file) {
		flags &= ~MAP_ANONYMOUS;
		if (offset > INT64_MAX - bytes)
			return -EOVERFLOW;
		if (flags & MAP_SHARED && prot & PROT_WRITE && !file_may_write(file))
			return -EACCES;
		if (file_is_zero_device(file))
			file = NULL;
		else if (!file_has_pages(file))
			return -ENODEV;
	}
	if (!file && flags & MAP_SHARED)
		return map_shared(mm, addr, bytes, prot, flags | MAP_ANONYMOUS);
	return map_area(mm, addr, bytes, flags, vma_alloc(prot, flags, file, offset, bytes));
}

long mm_map_segment(struct mm *mm, u64 addr, u64 len, u32 prot, struct file *file, u64 offset,
		    u64 file_bytes)
{
	u64 bytes = ALIGN_UP(len, PAGE_SIZE);

	if (!len || prot & ~PROT_MASK || offset % PAGE_SIZE || file_bytes > len)
		return -EINVAL;
	if (!bytes || bytes > TASK_SIZE || offset + bytes < offset)
		return -ENOMEM;
	return map_area(mm, addr, bytes, MAP_PRIVATE | MAP_FIXED,
			vma_alloc(prot, MAP_PRIVATE, file, offset, file_bytes));
}

/* Returns true if the rights are allowed: a shared file must have been opened for writing. */
static bool may_protect(const struct mm *mm, u64 start, u64 end, u32 prot)
{
	struct vma *vma;

	ASSERT_MM_HELD(mm);
	for_each_vma_in(vma, mm, start, end) {
		if (vma->flags & MAP_SHARED && prot & PROT_WRITE &&
		    (!file_may_write(vma->file) || file_is_write_sealed(vma->file)))
			return false;
		if (prot & PROT_EXEC && vma->file && file_is_noexec(vma->file))
			return false;
	}
	return true;
}

static int protect_locked(struct mm *mm, u64 start, u64 end, u32 prot)
{
	int error = vma_split_range(mm, start, end);
	struct vma *vma;

	if (error)
		return error;
	for_each_vma_in(vma, mm, start, end) {
		vma->prot = prot;
		profile_area_changed(&mm->profile, vma);
	}
	pages_protect(mm, start, end, prot);
	vma_merge_range(mm, start, end);
	return 0;
}

long mm_protect(struct mm *mm, u64 addr, u64 len, u32 prot)
{
	u64 end = addr + ALIGN_UP(len, PAGE_SIZE);
	long error;

	if (prot & ~PROT_MASK || addr % PAGE_SIZE)
		return -EINVAL;
	if (!len)
		return 0;
	if (len > TASK_SIZE || addr > TASK_SIZE || end > TASK_SIZE)
		return -ENOMEM;
	error = mm_lock_write_killable(mm);
	if (error)
		return error;
	error = -ENOMEM;
	if (!vma_range_mapped(mm, addr, end))
		goto out_unlock;
	if (!may_protect(mm, addr, end, prot))
		error = -EACCES;
	else if (!(prot & PROT_WRITE) || mm_fits_writable(mm, addr, end))
		error = protect_locked(mm, addr, end, prot);
out_unlock:
	mm_unlock_write(mm);
	return error;
}

static bool set_brk(struct mm *mm, u64 addr, struct vma_removed *removed)
{
	u64 old_end = ALIGN_UP(mm->brk, PAGE_SIZE), end = ALIGN_UP(addr, PAGE_SIZE);
	struct vma *vma, *next;
	int error;

	ASSERT_MM_HELD_WRITE(mm);
	if (end <= old_end)
		return end == old_end || !vma_remove_range(mm, end, old_end, removed);
	if (!is_free(mm, old_end, end - old_end, &next) ||
	    !mm_fits(mm, old_end, end, end - old_end, PROT_WRITE, MAP_PRIVATE) ||
	    mm_too_large(end - mm->brk_start, PROT_WRITE, MAP_PRIVATE))
		return false;
	vma = vma_alloc(PROT_READ | PROT_WRITE, MAP_PRIVATE | VMA_HEAP, NULL, 0, 0);
	if (!vma)
		return false;
	vma->start = old_end;
	vma->end = end;
	error = map_locked(mm, &vma, next, 0);
	if (vma)
		vma_free(vma);
	return !error;
}

long mm_set_brk(struct mm *mm, u64 addr)
{
	struct vma_removed removed;
	long brk;

	removed.first = NULL;
	mm_lock_write(mm);
	if (addr >= mm->brk_start && addr <= TASK_SIZE && set_brk(mm, addr, &removed))
		mm->brk = addr;
	brk = mm->brk;
	mm_unlock_write_and_unmap(mm, &removed);
	return brk;
}
