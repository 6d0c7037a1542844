/* SPDX-License-Identifier: BSD-2-Clause */
/* Needed by the profiler of memory, besides common.h and the hooks in the allocators. */
#define os_page_bytes_live()	     heap_live(0)
#define os_kmalloc_bytes_live()	     heap_live(1)
#define os_kmalloc_class_size(class) (16u << (class))
#define OS_PAGE_BYTES		     4096
