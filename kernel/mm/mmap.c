// SPDX-License-Identifier: BSD-2-Clause
#include <lego/mm.h>

#include <lego/errno.h>
#include <lego/fs.h>
#include <lego/sched.h>
#include <lego/syscall.h>

#include "internal.h"

/* mmap, munmap, mprotect, brk and madvise: Linux's arguments and errors. */

#define MAP_TYPE_MASK	    0x0f
#define MAP_SHARED_VALIDATE 0x03
#define MAP_EXECUTABLE	    0x1000
#define MAP_NONBLOCK	    0x10000

/* Known, and without a meaning here: there is no swap, and stacks are mapped whole. */
#define MAP_IGNORED                                                                    \
	(MAP_GROWSDOWN | MAP_DENYWRITE | MAP_EXECUTABLE | MAP_LOCKED | MAP_NORESERVE | \
	 MAP_POPULATE | MAP_NONBLOCK | MAP_STACK)
#define MAP_KNOWN (MAP_TYPE_MASK | MAP_FIXED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_IGNORED)

#define MADV_DONTNEED 4
#define MADV_FREE     8

/*
 * Advice that may be ignored: by bit number, what Linux accepts and needs no action without
 * swap or fork.
 */
#define MADV_IGNORED                                                                           \
	(BIT(0) | BIT(1) | BIT(2) | BIT(3) | BIT(10) | BIT(11) | BIT(14) | BIT(15) | BIT(16) | \
	 BIT(17) | BIT(18) | BIT(19) | BIT(20) | BIT(21))

SYSCALL_DEFINE6(mmap, u64, addr, u64, len, u64, prot, u64, flags, int, fd, u64, offset)
{
	u32 type = flags & MAP_TYPE_MASK;
	struct file *file = NULL;
	long place = -EINVAL;

	if (offset % PAGE_SIZE)
		return -EINVAL;
	if (!(flags & MAP_ANONYMOUS)) {
		file = fd_get(fd);
		if (!file)
			return -EBADF;
	}
	if (type == MAP_SHARED_VALIDATE)
		type = MAP_SHARED;
	if (file && !file_may_read(file))
		place = -EACCES;
	else if ((type == MAP_SHARED || type == MAP_PRIVATE) && !(flags & ~(u64)MAP_KNOWN) &&
		 !(prot & ~(u64)PROT_MASK))
		place = mm_map(current->mm, addr, len, prot, (flags & ~MAP_TYPE_MASK) | type, file,
			       offset);
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

/* Drop the pages of what is mapped in the range; holes in it are an error afterwards. */
static long discard(struct mm *mm, u64 start, u64 end, bool anonymous_only)
{
	long error = 0;

	rw_mutex_lock_write(&mm->lock);
	if (!vma_range_mapped(mm, start, end))
		error = -ENOMEM;
	for (unsigned int i = vma_index(mm, start); i < mm->nr_vmas; i++) {
		const struct vma *vma = mm->vmas[i];

		if (vma->start >= end)
			break;
		if (anonymous_only && vma->file) {
			error = -EINVAL;
			break;
		}
		pages_unmap(mm, max(start, vma->start), min(end, vma->end));
	}
	rw_mutex_unlock_write(&mm->lock);
	return error;
}

SYSCALL_DEFINE3(madvise, u64, addr, u64, len, int, advice)
{
	struct mm *mm = current->mm;
	u64 end = addr + ALIGN_UP(len, PAGE_SIZE);
	bool drops = advice == MADV_DONTNEED || advice == MADV_FREE;
	bool mapped;

	if (!drops && (advice < 0 || advice > 63 || !(MADV_IGNORED >> advice & 1)))
		return -EINVAL;
	if (addr % PAGE_SIZE || end < addr || (len && end == addr))
		return -EINVAL;
	if (end == addr)
		return 0;
	if (end > TASK_SIZE)
		return -ENOMEM;
	if (drops)
		return discard(mm, addr, end, advice == MADV_FREE);
	rw_mutex_lock_read(&mm->lock);
	mapped = vma_range_mapped(mm, addr, end);
	rw_mutex_unlock_read(&mm->lock);
	return mapped ? 0 : -ENOMEM;
}
