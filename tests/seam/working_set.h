/* SPDX-License-Identifier: BSD-2-Clause */
/* Needed by the profiler of used memory, besides common.h. There is no worker thread here. */
typedef struct space os_mm_t;
#define os_mm_get(proc)			       space_of(proc)
#define os_mm_put(mm)			       space_put(mm)
#define os_mm_ranges(mm, ranges, max)	       space_ranges(mm, ranges, max)
#define os_mm_count_pages(mm, start, end)      space_count(mm, start, end)
#define os_mm_begin(mm)			       space_lock(mm)
#define os_mm_end(mm)			       space_unlock(mm)
#define os_mm_clear_used(mm, addr, end, flush) space_clear(mm, addr, end, flush)
#define os_mm_use(mm, addr)		       space_use(mm, addr)
#define os_mm_flush(mm)			       space_flush(mm)
#define os_sleep_ms(ms)			       nap(ms)
#define OS_PAGE_BYTES			       4096
