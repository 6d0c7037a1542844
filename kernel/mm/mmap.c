// SPDX-License-Identifier: BSD-2-Clause
/*
 * mmap, munmap, mprotect, brk and madvise, with Linux's arguments and errors. mlock, msync and so
 * on need to do nothing: memory is always resident, and files are in memory.
 */

#include <lego/mm.h>

#include <asm/pgtable.h>
#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/fs.h>
#include <lego/sched.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

#include "internal.h"

#define MAP_TYPE_MASK	    0x0f
#define MAP_SHARED_VALIDATE 0x03
#define MAP_ABOVE4G	    0x80
#define MAP_EXECUTABLE	    0x1000
#define MAP_NONBLOCK	    0x10000
#define MAP_HUGETLB	    0x40000
#define MAP_HUGE_SIZES	    0x7c000000 /* the bits of MAP_HUGE_2MB and MAP_HUGE_1GB */

/*
 * The flags that MAP_SHARED_VALIDATE allows. MAP_SHARED and MAP_PRIVATE allow all, and ignore the
 * ones that have no effect: there is no swap, and stacks are mapped as a whole.
 */
#define MAP_VALID                                                                              \
	(MAP_TYPE_MASK | MAP_FIXED | MAP_ANONYMOUS | MAP_32BIT | MAP_ABOVE4G | MAP_GROWSDOWN | \
	 MAP_DENYWRITE | MAP_EXECUTABLE | MAP_LOCKED | MAP_NORESERVE | MAP_POPULATE |          \
	 MAP_NONBLOCK | MAP_STACK | MAP_HUGE_SIZES)

#define MADV_DONTNEED 4
#define MADV_FREE     8

#define MADV_DONTFORK	10
#define MADV_DOFORK	11
#define MADV_WIPEONFORK 18
#define MADV_KEEPONFORK 19

/*
 * Advice that is accepted and ignored, by bit number: Linux has it, but it needs no action without
 * swap and huge pages.
 */
#define MADV_IGNORED                                                                           \
	(BIT(0) | BIT(1) | BIT(2) | BIT(3) | BIT(14) | BIT(15) | BIT(16) | BIT(17) | BIT(20) | \
	 BIT(21))

#define MS_ASYNC      1
#define MS_INVALIDATE 2
#define MS_SYNC	      4

#define MLOCK_ONFAULT 1
#define MCL_CURRENT   1
#define MCL_FUTURE    2
#define MCL_ONFAULT   4

/* Checks what mmap may do with the file (NULL: none). Sets *type to MAP_SHARED or MAP_PRIVATE. */
static int check_mmap(const struct file *file, u64 prot, u64 flags, u32 *type)
{
	*type = flags & MAP_TYPE_MASK;
	if (file && !file_may_read(file))
		return -EACCES;
	if (file && prot & PROT_EXEC && file_is_noexec(file))
		return -EPERM;
	if (flags & MAP_HUGETLB) /* there are no huge pages */
		return -EINVAL;
	if (file && *type == MAP_SHARED_VALIDATE) {
		*type = MAP_SHARED;
		if (flags & ~(u64)MAP_VALID)
			return -EOPNOTSUPP;
	}
	return *type == MAP_SHARED || *type == MAP_PRIVATE ? 0 : -EINVAL;
}

SYSCALL_DEFINE6(mmap, u64, addr, u64, len, u64, prot, u64, flags, int, fd, u64, offset)
{
	struct file *file = NULL;
	u32 type;
	long place;

	if (offset % PAGE_SIZE)
		return -EINVAL;
	if (!(flags & MAP_ANONYMOUS)) {
		file = fd_get(fd);
		if (!file)
			return -EBADF;
	}
	place = check_mmap(file, prot, flags, &type);
	if (!place)
		place = mm_map(current->mm, addr, len, prot & PROT_MASK,
			       ((u32)flags & ~MAP_TYPE_MASK) | type, file, offset);
	if (file)
		file_put(file);
	return place;
}

SYSCALL_DEFINE2(munmap, u64, addr, u64, len)
{
	return mm_unmap(current->mm, addr, len);
}

SYSCALL_DEFINE3(mprotect, u64, addr, u64, len, u64, prot)
{
	if (prot & ~(u64)PROT_MASK)
		return -EINVAL;
	return mm_protect(current->mm, addr, len, prot);
}

SYSCALL_DEFINE1(brk, u64, addr)
{
	return mm_set_brk(current->mm, addr);
}

/* Takes the next pages in [*start, end), and moves *start behind them. May set *error. */
static bool take_pages(struct mm *mm, u64 *start, u64 end, bool anonymous_only,
		       struct pages_taken *taken, long *error)
{
	struct vma *vma;

	for_each_vma_in(vma, mm, *start, end) {
		if (anonymous_only && vma->file) {
			*error = -EINVAL;
			return false;
		}
		*start = max(*start, vma->start);
		/* Empty tables are skipped without pt_lock. */
		if (pgtable_next(mm->pgd, start, min(end, vma->end))) {
			pages_take(mm, vma, start, min(end, vma->end), taken);
			return true;
		}
	}
	return false;
}

/* Drops the mapped pages in the range. If the range has holes, returns an error afterwards. */
static long mm_discard(struct mm *mm, u64 start, u64 end, bool anonymous_only)
{
	struct pages_taken taken;
	long error = rw_mutex_lock_read_killable(&mm->lock);
	u64 first = start;
	long result = 0;

	if (!error && !vma_range_mapped(mm, start, end))
		result = -ENOMEM;
	/* Areas may change between two steps. */
	while (!error && take_pages(mm, &start, end, anonymous_only, &taken, &result)) {
		rw_mutex_unlock_read(&mm->lock);
		pages_free_taken(mm, &taken);
		if (start >= end)
			goto out;
		error = rw_mutex_lock_read_killable(&mm->lock);
	}
	if (error)
		return error;
	rw_mutex_unlock_read(&mm->lock);
out:
	pages_flush_unflushed(mm, first, end);
	return result;
}

static void change_flags(struct mm *mm, u64 start, u64 end, u32 clear, u32 set)
{
	struct vma *vma;

	ASSERT_MM_HELD_WRITE(mm);
	for_each_vma_in(vma, mm, start, end)
		vma->flags = (vma->flags & ~clear) | set;
}

static bool has_file(const struct mm *mm, u64 start, u64 end)
{
	struct vma *vma;

	ASSERT_MM_HELD(mm);
	for_each_vma_in(vma, mm, start, end) {
		if (vma->file)
			return true;
	}
	return false;
}

/* Sets what fork does with a range from now on. Only private anonymous pages can be wiped. */
static long advise_fork(struct mm *mm, u64 start, u64 end, int advice)
{
	u32 flag = advice <= MADV_DOFORK ? VMA_DONT_FORK : VMA_WIPE_ON_FORK;
	bool set = advice == MADV_DONTFORK || advice == MADV_WIPEONFORK;
	long error = mm_lock_write_killable(mm);

	if (error)
		return error;
	error = -ENOMEM;
	if (!vma_range_mapped(mm, start, end))
		goto out_unlock;
	error = -EINVAL;
	if (advice == MADV_WIPEONFORK && has_file(mm, start, end))
		goto out_unlock;
	error = vma_split_range(mm, start, end);
	if (error)
		goto out_unlock;
	change_flags(mm, start, end, flag, set ? flag : 0);
	vma_merge_range(mm, start, end);
out_unlock:
	mm_unlock_write(mm);
	return error;
}

static bool advice_known(int advice)
{
	switch (advice) {
	case MADV_DONTNEED:
	case MADV_FREE:
	case MADV_DONTFORK:
	case MADV_DOFORK:
	case MADV_WIPEONFORK:
	case MADV_KEEPONFORK:
		return true;
	}
	return advice >= 0 && advice < 64 && MADV_IGNORED >> advice & 1;
}

static long range_mapped(struct mm *mm, u64 start, u64 end)
{
	bool mapped;

	rw_mutex_lock_read(&mm->lock);
	mapped = vma_range_mapped(mm, start, end);
	rw_mutex_unlock_read(&mm->lock);
	return mapped ? 0 : -ENOMEM;
}

SYSCALL_DEFINE3(madvise, u64, addr, u64, len, int, advice)
{
	struct mm *mm = current->mm;
	u64 end = addr + ALIGN_UP(len, PAGE_SIZE);

	if (!advice_known(advice))
		return -EINVAL;
	if (addr % PAGE_SIZE || end < addr || (len && end == addr))
		return -EINVAL;
	if (end == addr)
		return 0;
	if (end > TASK_SIZE)
		return -ENOMEM;
	if (advice == MADV_DONTNEED || advice == MADV_FREE)
		return mm_discard(mm, addr, end, advice == MADV_FREE);
	if (MADV_IGNORED >> advice & 1)
		return range_mapped(mm, addr, end);
	return advise_fork(mm, addr, end, advice);
}

SYSCALL_DEFINE3(msync, u64, addr, u64, len, int, flags)
{
	u64 end = addr + ALIGN_UP(len, PAGE_SIZE);

	if (flags & ~(MS_ASYNC | MS_INVALIDATE | MS_SYNC) || addr % PAGE_SIZE ||
	    (flags & MS_ASYNC && flags & MS_SYNC))
		return -EINVAL;
	if (end < addr || end > TASK_SIZE)
		return -ENOMEM;
	return range_mapped(current->mm, addr, end);
}

static long lock_range(u64 addr, u64 len)
{
	u64 start = ALIGN_DOWN(addr, PAGE_SIZE), end = ALIGN_UP(addr + len, PAGE_SIZE);

	if (addr + len < addr || end < start)
		return -EINVAL;
	return end > TASK_SIZE ? -ENOMEM : range_mapped(current->mm, start, end);
}

SYSCALL_DEFINE2(mlock, u64, addr, u64, len)
{
	return lock_range(addr, len);
}

SYSCALL_DEFINE3(mlock2, u64, addr, u64, len, int, flags)
{
	return flags & ~MLOCK_ONFAULT ? -EINVAL : lock_range(addr, len);
}

SYSCALL_DEFINE2(munlock, u64, addr, u64, len)
{
	return lock_range(addr, len);
}

SYSCALL_DEFINE1(mlockall, int, flags)
{
	if (!flags || flags & ~(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) || flags == MCL_ONFAULT)
		return -EINVAL;
	return 0;
}

SYSCALL_DEFINE0(munlockall)
{
	return 0;
}

#define MINCORE_BATCH 256 /* pages to look at before the lock is released */

/*
 * Fills in whether pages are resident. Pages of files always are. Returns -ENOMEM if there is a
 * hole.
 */
static long look_at_pages(struct mm *mm, u64 addr, unsigned int nr, u8 *resident)
{
	long error = 0;

	rw_mutex_lock_read(&mm->lock);
	for (unsigned int i = 0; i < nr; i++, addr += PAGE_SIZE) {
		const struct vma *vma = vma_find(mm, addr);
		u64 *pte = pgtable_find(mm->pgd, addr);

		if (!vma) {
			error = -ENOMEM;
			break;
		}
		resident[i] = (pte && pte_has_page(READ_ONCE(*pte))) ||
			      (vma->file && addr - vma->start < vma->file_bytes);
	}
	rw_mutex_unlock_read(&mm->lock);
	return error;
}

SYSCALL_DEFINE3(mincore, u64, addr, u64, len, u8 __user *, vec)
{
	u64 nr = DIV_ROUND_UP(len, PAGE_SIZE);
	u8 resident[MINCORE_BATCH];

	if (addr % PAGE_SIZE)
		return -EINVAL;
	if (len > TASK_SIZE || addr > TASK_SIZE - len)
		return -ENOMEM;
	if (!access_ok(vec, nr))
		return -EFAULT;
	while (nr) {
		unsigned int batch = min(nr, (u64)MINCORE_BATCH);
		long error = look_at_pages(current->mm, addr, batch, resident);

		if (!error)
			error = copy_to_user(vec, resident, batch);
		if (error)
			return error;
		nr -= batch;
		vec += batch;
		addr += batch * PAGE_SIZE;
		cond_resched();
	}
	return 0;
}
