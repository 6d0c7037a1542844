/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MM_SLAB_SITES_H
#define MM_SLAB_SITES_H

/*
 * Keeps for each object of kmalloc the counter of its site (CONFIG_PROFILE_MEMORY): 4 bytes behind
 * the object or, for a block of pages, in its struct page. If the option is off, there is no code.
 */

#include <lego/page.h>

/* Returns the distance of two objects, a multiple of their alignment. */
static inline unsigned int slab_stride(unsigned int size)
{
	if (!IS_ENABLED(CONFIG_PROFILE_MEMORY))
		return size;
	return size + (size < SLAB_LARGE_SIZE ? sizeof(u64) : SLAB_LARGE_ALIGN);
}

#ifdef CONFIG_PROFILE_MEMORY

/* Returns where the counter of an object is kept. size: that of its class. */
static inline s32 *slab_site_slot(void *object, unsigned int size)
{
	return object + size;
}

static inline void slab_site_count_alone(s32 *slot, u64 *count)
{
	profile_memory_count_alloc(*slot, count);
}

static inline void slab_site_count(s32 *slot, u64 *count)
{
	profile_memory_find_counter(count);
	slab_site_count_alone(slot, count);
}

static inline void slab_site_uncount(const s32 *slot, bool is_slow)
{
	profile_memory_count_free(*slot, PROFILE_MEMORY_SIZES);
	if (is_slow)
		profile_memory_freed(profile_memory_of(*slot));
}

/*
 * Count an object of a class; the same while the kernel's call chains are not recorded; and its
 * free, on the slow path or on the other one, where they are not.
 */
#define slab_site_alloc(object, class) \
	slab_site_count(slab_site_slot(object, classes[class].size), site + (class))
#define slab_site_alloc_alone(object, class) \
	slab_site_count_alone(slab_site_slot(object, classes[class].size), site + (class))
#define slab_site_free(object, cache, is_slow) \
	slab_site_uncount(slab_site_slot(object, (cache)->size), is_slow)

/* The same for objects that are blocks of pages. */
#define slab_site_alloc_large(page) \
	slab_site_count(&(page)->object_site, site + SLAB_NR_CLASSES + (page)->order)
#define slab_site_free_large(page, is_slow) slab_site_uncount(&(page)->object_site, is_slow)

#else

#define slab_site_alloc(object, class)	       ((void)0)
#define slab_site_alloc_alone(object, class)   ((void)0)
#define slab_site_free(object, cache, is_slow) ((void)0)
#define slab_site_alloc_large(page)	       ((void)0)
#define slab_site_free_large(page, is_slow)    ((void)0)

#endif

#endif
