/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_MEMORY_OS_H
#define PROFILE_MEMORY_OS_H

/*
 * The kernel's contract for counting memory, besides ../os.h and the hooks in <profile/memory.h>:
 * what the allocators themselves count. Exact while no allocation is under way.
 */

#include "../os.h"

/* Returns the bytes of all pages in use. */
#ifndef os_page_bytes_live
#error "profile: define os_page_bytes_live(): bytes of all pages in use"
#endif
/* Returns the bytes of all live objects of kmalloc, each with the whole size of its class. */
#ifndef os_kmalloc_bytes_live
#error "profile: define os_kmalloc_bytes_live(): bytes of all objects of kmalloc"
#endif
/* Returns the bytes of an object of a class. */
#ifndef os_kmalloc_class_size
#error "profile: define os_kmalloc_class_size(class): bytes of an object of a class of kmalloc"
#endif
/* Returns whether the function of this name allocates or frees for its callers: rows omit it. */
#ifndef os_is_allocator
#define os_is_allocator(function) false
#endif
/*
 * Reads which pages a process has mapped: os_process_pages(proc, pass, addr, chains, nr) copies the
 * numbers that os_keep_chain() has kept of up to *nr pages from *addr on. *addr is 0 at first. Sets
 * *nr to how many it has copied, and moves *addr behind them. Returns false at the end, for a
 * process without threads, for one whose memory was read in this pass as another one's and, in
 * pass 0, for one that shares its memory. Any context but NMI.
 */
#ifndef os_process_pages
#define os_process_pages(proc, pass, addr, chains, nr) \
	((void)(proc), (void)(pass), (void)(addr), (void)(chains), (void)(nr), false)
#endif
/* All numbers of chains are below this, at most 4096. The number 0 means: no chain. */
#ifndef OS_MAX_PAGE_CHAINS
#define OS_MAX_PAGE_CHAINS 1
#endif
/* Returns whether memory of a kind is mapped, so that os_process_pages() has it. */
#ifndef os_memory_kind_is_mapped
#define os_memory_kind_is_mapped(kind) ((void)(kind), false)
#endif
#ifndef OS_PAGE_BYTES
#error "profile: define OS_PAGE_BYTES: the bytes of a page"
#endif

#endif
