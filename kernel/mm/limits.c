// SPDX-License-Identifier: BSD-2-Clause
/*
 * Checks a process's limits of its address space (RLIMIT_AS) and of its private writable memory
 * (RLIMIT_DATA). Areas are added up only while a limit is set. The stack of the first thread does
 * not count: it is mapped as a whole, and has its own limit.
 */

#include "internal.h"

#include <lego/process.h>
#include <lego/sched.h>

static bool is_private(u32 prot, u32 flags)
{
	return !(flags & MAP_SHARED);
}

static bool is_data(u32 prot, u32 flags)
{
	return prot & PROT_WRITE && is_private(prot, flags);
}

static bool is_any(u32 prot, u32 flags)
{
	return true;
}

/* Returns the bytes in [start, end) of all areas of a kind. */
static u64 count(const struct mm *mm, u64 start, u64 end, bool (*is_kind)(u32 prot, u32 flags))
{
	struct vma *vma;
	u64 bytes = 0;

	for_each_vma_in(vma, mm, start, end) {
		if (vma->end < TASK_SIZE && is_kind(vma->prot, vma->flags))
			bytes += min(end, vma->end) - max(start, vma->start);
	}
	return bytes;
}

static bool fits(const struct mm *mm, unsigned int resource, u64 start, u64 end, u64 bytes,
		 bool (*is_kind)(u32 prot, u32 flags))
{
	u64 limit = process_limit(resource);

	if (limit == RLIM_INFINITY)
		return true;
	bytes += count(mm, 0, TASK_SIZE, is_kind) - count(mm, start, end, is_kind);
	return bytes <= limit;
}

bool mm_is_limited(void)
{
	return process_limit(RLIMIT_AS) != RLIM_INFINITY ||
	       process_limit(RLIMIT_DATA) != RLIM_INFINITY;
}

bool mm_fits(const struct mm *mm, u64 start, u64 end, u64 bytes, u32 prot, u32 flags)
{
	ASSERT_MM_HELD(mm);
	return fits(mm, RLIMIT_AS, start, end, bytes, is_any) &&
	       (!is_data(prot, flags) || fits(mm, RLIMIT_DATA, start, end, bytes, is_data));
}

bool mm_fits_writable(const struct mm *mm, u64 start, u64 end)
{
	u64 bytes = count(mm, start, end, is_private);

	ASSERT_MM_HELD(mm);
	return bytes == count(mm, start, end, is_data) ||
	       fits(mm, RLIMIT_DATA, start, end, bytes, is_data);
}
