/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_WORKING_SET_OS_H
#define PROFILE_WORKING_SET_OS_H

/*
 * The kernel's contract for the profiler of used memory, besides ../os.h: address spaces, their
 * page tables, and sleep; OS_WORKER() has to be a thread. os_mm_t is the type of an address space.
 * All functions are called in process context, without locks, and may sleep unless noted.
 */

#include "../os.h"

/*
 * Returns the address space of a process, with a reference, or NULL. Called with lists_lock held:
 * does not sleep.
 */
#ifndef os_mm_get
#error "profile: define os_mm_get(proc): a process's address space, with a reference, or NULL"
#endif
#ifndef os_mm_put
#error "profile: define os_mm_put(mm): drops a reference"
#endif
/*
 * Copies up to max ranges of an address space, in order. Neighbors of one kind are one range.
 * Ranges that do not fit are in the last one, which then covers what is between them, too.
 */
#ifndef os_mm_ranges
#error "profile: define os_mm_ranges(mm, ranges, max): copies ranges, returns their number"
#endif
/* Returns how many pages of [start, end) are resident. */
#ifndef os_mm_count_pages
#error "profile: define os_mm_count_pages(mm, start, end): number of resident pages"
#endif
/*
 * Enclose calls of the next two: pages are not unmapped between them. os_mm_begin() returns false
 * if it has not locked the address space, because it is about to end.
 */
#ifndef os_mm_begin
#error "profile: define os_mm_begin(mm): locks the page table, returns whether it has"
#endif
#ifndef os_mm_end
#error "profile: define os_mm_end(mm): unlocks it"
#endif
/*
 * Finds the first resident page at or after *addr and before end, stores its address in *addr, and
 * clears its accessed and dirty bits. Sets *flush if a TLB may have it with a bit set. Returns
 * false if there is no such page.
 */
#ifndef os_mm_clear_used
#error "profile: define os_mm_clear_used(mm, addr, end, flush): clears the bits of the next page"
#endif
/* Returns the use of a page since its bits were cleared: an enum profile_page_use. */
#ifndef os_mm_use
#error "profile: define os_mm_use(mm, addr): what has happened to a page"
#endif
/*
 * Flushes the address space from all TLBs. Returns how many other CPUs it has interrupted for that.
 */
#ifndef os_mm_flush
#error "profile: define os_mm_flush(mm): flushes all TLBs, returns the number of other CPUs"
#endif
/*
 * Copies the physical addresses of up to max resident pages at or after *addr and before end, and
 * moves *addr behind what it has looked at. Returns their number, which may be 0 before the end.
 */
#ifndef os_mm_physical
#define os_mm_physical(mm, addr, end, pages, max) ((void)(pages), *(addr) = (end), 0u)
#endif
/*
 * Finds the first range of RAM that ends after *start. Stores its start, its end, and its NUMA node
 * or OS_NO_NODE. A range may begin where the one before ends. Returns false if there is none. May
 * be left out, with os_mm_physical(): then nothing is said of physical memory.
 */
#ifndef os_ram_next
#define os_ram_next(start, end, node) ((void)(start), (void)(end), (void)(node), false)
#endif
#define OS_NO_NODE (~0u)
/* Sleeps. */
#ifndef os_sleep_ms
#error "profile: define os_sleep_ms(ms): lets the current thread sleep"
#endif
#ifndef OS_PAGE_BYTES
#error "profile: define OS_PAGE_BYTES: the bytes of a page"
#endif
/* Returns a number that changes with each execve of the process. 0: there was none, or unknown. */
#ifndef os_process_program
#define os_process_program(proc) 0
#endif

#endif
