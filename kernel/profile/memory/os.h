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
/* Returns whether the function of this name allocates for its callers. Rows leave it out. */
#ifndef os_is_allocator
#define os_is_allocator(function) false
#endif
#ifndef OS_PAGE_BYTES
#error "profile: define OS_PAGE_BYTES: the bytes of a page"
#endif

#endif
