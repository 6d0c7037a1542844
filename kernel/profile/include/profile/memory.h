/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_INCLUDE_MEMORY_H
#define PROFILE_INCLUDE_MEMORY_H

/*
 * The hooks of the memory profiler in the kernel's allocators. Each place that calls an allocator
 * is a site: it has a static counter on each CPU, for each size. An allocator is a function with
 * one more parameter, the site's counters, and a macro of the same name that supplies them:
 *
 *	struct page *(page_alloc)(unsigned int order, unsigned int flags PROFILE_MEMORY_SITE_PARAM);
 *	#define page_alloc(order, flags) (page_alloc)(order, flags PROFILE_MEMORY_SITE_OF_PAGES)
 *
 * The allocator keeps the address of the counter with the memory, where its free finds it. If the
 * profiler is compiled out, parameter and argument are empty.
 */

#ifdef CONFIG_PROFILE_MEMORY

#include "../../os_hooks.h"

/* All CPUs know a counter by one address. In arrays, each CPU's copy is somewhere else. */
#if defined OS_EACH_CPU_RANGE && OS_NR_CPUS > 1
#error "profile: MEMORY needs per-CPU variables: define OS_DEFINE_PER_CPU and others (os_hooks.h)"
#endif

/* Sizes: the classes of kmalloc, then the orders of blocks of pages. */
#define PROFILE_MEMORY_CLASSES 17
#define PROFILE_MEMORY_ORDERS  11
#define PROFILE_MEMORY_SIZES   (PROFILE_MEMORY_CLASSES + PROFILE_MEMORY_ORDERS)

/* Who uses the memory of a site. */
enum profile_memory_use {
	PROFILE_MEMORY_OF_KERNEL,
	PROFILE_MEMORY_OF_PROGRAMS,
	PROFILE_MEMORY_OF_KMALLOC, /* their bytes belong to the sites of the objects, too */
	PROFILE_MEMORY_OF_PROFILERS,
};
/* For objects that this file allocates: the profilers' files say that it is theirs. */
#define PROFILE_MEMORY_OBJECTS_OF PROFILE_MEMORY_OF_KERNEL

/* A place in the code that calls an allocator. */
struct profile_memory_site {
	/*
	 * For each of nr_sizes sizes: how often it was allocated on this CPU; then, how often it
	 * was freed on this CPU, whichever had allocated it. Each CPU writes its own copy, with
	 * interrupts off.
	 */
	const OS_PER_CPU(u64) * counts;
	const char *file, *function;
	u32 line;
	u32 first_size, nr_sizes;
	enum profile_memory_use use;
};

/*
 * The counter to which a block of pages belongs. To keep a counter, the low half of its address is
 * enough: the kernel is linked in the upper 2 GiB.
 */
struct profile_memory_page {
	s32 kept;
};

#define profile_memory_kept(count) ((s32)(s64)(count))
#define profile_memory_of(kept)	   ((u64 *)(s64)(kept))

/* Defines a site here. Returns its counters. */
#define PROFILE_MEMORY_SITE(first, nr, use)                                                        \
	({                                                                                         \
		static OS_DEFINE_PER_CPU(u64[2 * (nr)], _site_counts);                             \
		static const struct profile_memory_site _site pf_used pf_section("memory_sites")   \
			pf_aligned(8) = {                                                          \
				(void *)_site_counts, __FILE__, __func__, __LINE__, first, nr, use \
			};                                                                         \
		(u64 *)_site_counts;                                                               \
	})
#define PROFILE_MEMORY_SITE_FOR(use) \
	, PROFILE_MEMORY_SITE(PROFILE_MEMORY_CLASSES, PROFILE_MEMORY_ORDERS, use)

#define PROFILE_MEMORY_SITE_PARAM	  , u64 *site
#define PROFILE_MEMORY_SITE_ARG		  , site
#define PROFILE_MEMORY_SITE_OF_PAGES	  PROFILE_MEMORY_SITE_FOR(PROFILE_MEMORY_OF_KERNEL)
#define PROFILE_MEMORY_SITE_OF_USER_PAGES PROFILE_MEMORY_SITE_FOR(PROFILE_MEMORY_OF_PROGRAMS)
#define PROFILE_MEMORY_SITE_OF_SLABS	  PROFILE_MEMORY_SITE_FOR(PROFILE_MEMORY_OF_KMALLOC)
#define PROFILE_MEMORY_SITE_OF_OBJECTS \
	, PROFILE_MEMORY_SITE(0, PROFILE_MEMORY_SIZES, PROFILE_MEMORY_OBJECTS_OF)

/*
 * While the kernel's call chains are recorded (profile_asks()), the first one makes a variable,
 * which points to a counter of the site, point to that of the allocation's call chain. Frees are
 * counted behind either in the same way. Then the second one counts who frees. Interrupts are off.
 */
#ifdef CONFIG_PROFILE_MEMORY_CHAINS
extern os_key_t profile_kernel_chains_key;
u64 *profile_memory_find_chain(u64 *count);
void profile_memory_note_free(u64 *count);
#define profile_memory_find_counter(count)                          \
	do {                                                        \
		if (os_key_on(&profile_kernel_chains_key))          \
			(count) = profile_memory_find_chain(count); \
	} while (0)
#define profile_memory_freed(count)                        \
	do {                                               \
		if (os_key_on(&profile_kernel_chains_key)) \
			profile_memory_note_free(count);   \
	} while (0)
#else
#define profile_memory_find_counter(count) ((void)0)
#define profile_memory_freed(count)	   ((void)0)
#endif

/*
 * Count an allocation, whose counter is kept in `kept`, and its free at a site with nr_sizes sizes.
 * Interrupts are off. With profile=off they count, too: a switch would cost nearly as much.
 */
#define profile_memory_count_alloc(kept, count)      \
	do {                                         \
		(kept) = profile_memory_kept(count); \
		os_this_cpu_inc(*(count));           \
	} while (0)

#define profile_memory_count_free(kept, nr_sizes) os_this_cpu_inc(profile_memory_of(kept)[nr_sizes])

/*
 * Count a block of 2^order pages, and its free; and one page on the fast path, which is not taken
 * while chains are recorded.
 */
#define profile_memory_alloc_pages(page, order)                          \
	do {                                                             \
		u64 *_count = site + (order);                            \
                                                                         \
		profile_memory_find_counter(_count);                     \
		profile_memory_count_alloc((page)->memory.kept, _count); \
	} while (0)
#define profile_memory_alloc_page_alone(page) profile_memory_count_alloc((page)->memory.kept, site)
#define profile_memory_free_page_alone(page) \
	profile_memory_count_free((page)->memory.kept, PROFILE_MEMORY_ORDERS)
#define profile_memory_free_pages(page)                                       \
	do {                                                                  \
		profile_memory_free_page_alone(page);                         \
		profile_memory_freed(profile_memory_of((page)->memory.kept)); \
	} while (0)

/*
 * Called where the allocator takes pages from its lists, after it has given up its locks: nr is the
 * number of pages that are not in the lists now. Any context but NMI.
 */
#define profile_memory_pages_used(nr)                                           \
	do {                                                                    \
		if (pf_unlikely((nr) > pf_read_once(profile_memory_next_peak))) \
			profile_memory_note_peak(nr);                           \
	} while (0)
extern u64 profile_memory_next_peak;
void profile_memory_note_peak(u64 nr_pages);

#else

struct profile_memory_page {
};

#define PROFILE_MEMORY_SITE_PARAM
#define PROFILE_MEMORY_SITE_ARG
#define PROFILE_MEMORY_SITE_OF_PAGES
#define PROFILE_MEMORY_SITE_OF_USER_PAGES
#define PROFILE_MEMORY_SITE_OF_SLABS
#define PROFILE_MEMORY_SITE_OF_OBJECTS

#define profile_memory_alloc_pages(page, order) ((void)0)
#define profile_memory_alloc_page_alone(page)	((void)0)
#define profile_memory_free_page_alone(page)	((void)0)
#define profile_memory_free_pages(page)		((void)0)
#define profile_memory_pages_used(nr)		((void)0)

#endif

#ifdef CONFIG_PROFILE_MEMORY_CHAINS
extern os_key_t profile_memory_chains_key;
extern os_key_t profile_memory_ends_key;
u32 profile_memory_note_touch(u32 kind, bool is_copy);
void profile_memory_note_end(os_process_t *proc);
/*
 * Counts a page that the current task's program gets now, by the program's call chain. kind is an
 * index into the names of OS_MEMORY_KINDS. is_copy: a write has copied the page of somebody else.
 * The second one keeps the number of the chain with the mapping, by os_keep_chain(), so that
 * os_process_pages() knows it while the page is mapped. Any context but interrupts and NMIs.
 */
#define profile_memory_touched(kind, is_copy)                     \
	do {                                                      \
		if (os_key_on(&profile_memory_chains_key))        \
			profile_memory_note_touch(kind, is_copy); \
	} while (0)
#define profile_memory_mapped(kind, is_copy, entry)                                     \
	do {                                                                            \
		if (os_key_on(&profile_memory_chains_key))                              \
			os_keep_chain(entry, profile_memory_note_touch(kind, is_copy)); \
	} while (0)
/* Counts what a process has mapped, just before its last thread unmaps it. Process context. */
#define profile_memory_ends(proc)                        \
	do {                                             \
		if (os_key_on(&profile_memory_ends_key)) \
			profile_memory_note_end(proc);   \
	} while (0)
#else
#define profile_memory_touched(kind, is_copy)	    ((void)0)
#define profile_memory_mapped(kind, is_copy, entry) ((void)(entry))
#define profile_memory_ends(proc)		    ((void)0)
#endif

#endif
