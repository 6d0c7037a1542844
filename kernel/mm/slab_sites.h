/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MM_SLAB_SITES_H
#define MM_SLAB_SITES_H

/*
 * Keeps for each object of kmalloc the counter of its site (CONFIG_PROFILE_MEMORY): 4 bytes in an
 * array at the end of its page or, from 1 KiB on, in an array for all of RAM. An object's place in
 * the array is its offset, shifted by the class's power of two, so no division is needed: the
 * distance of two objects is at least that. If the option is off, there is no code.
 */

#include <lego/page.h>

#ifdef CONFIG_PROFILE_MEMORY

#define SITE_MAX_SHIFT 10 /* from here on in page_object_sites[] */

static inline unsigned int slab_site_shift(unsigned int size)
{
	unsigned int shift = 31 - __builtin_clz(size);

	return min(shift, (unsigned int)SITE_MAX_SHIFT);
}

/* Returns the size of the array at the end of a slab's page. */
static inline unsigned int slab_site_bytes(unsigned int size)
{
	unsigned int shift = slab_site_shift(size);

	return shift < SITE_MAX_SHIFT ? (PAGE_SIZE >> shift) * sizeof(s32) : 0;
}

/* Keeps the counter of an object, and returns it. */
static inline void slab_site_keep(const void *object, unsigned int shift, s32 kept)
{
	u64 addr = (u64)object, from_end = addr | -PAGE_SIZE;

	if (unlikely(shift == SITE_MAX_SHIFT))
		page_object_sites[(addr - PAGE_OFFSET) >> SITE_MAX_SHIFT] = kept;
	else /* The offset from the end of the page is negative, and so is the index. */
		((s32 *)(addr - from_end))[(s64)from_end >> shift] = kept;
}

static inline s32 slab_site_kept(const void *object, unsigned int shift)
{
	u64 addr = (u64)object, from_end = addr | -PAGE_SIZE;

	if (unlikely(shift == SITE_MAX_SHIFT))
		return page_object_sites[(addr - PAGE_OFFSET) >> SITE_MAX_SHIFT];
	return ((s32 *)(addr - from_end))[(s64)from_end >> shift];
}

static inline void slab_site_count_alone(const void *object, unsigned int shift, u64 *count)
{
	slab_site_keep(object, shift, (s32)(s64)count);
	profile_memory_count_alloc(count);
}

static inline void slab_site_count(const void *object, unsigned int shift, u64 *count)
{
	profile_memory_find_counter(count);
	slab_site_count_alone(object, shift, count);
}

/* Returns the pointer, see profile_memory_freed(). */
static inline void *slab_site_uncount(const void *object, unsigned int shift, void *pointer)
{
	profile_memory_count_free(slab_site_kept(object, shift), PROFILE_MEMORY_SIZES, pointer);
	return pointer;
}

/*
 * Count an object of a class; the same while the kernel's call chains are not recorded; and its
 * free. `cache`, a variable, is set to its value.
 */
#define slab_site_alloc(object, class) slab_site_count(object, site_shifts[class], site + (class))
#define slab_site_alloc_alone(object, class) \
	slab_site_count_alone(object, site_shifts[class], site + (class))
#define slab_site_free(object, cache) \
	(cache = slab_site_uncount(object, site_shifts[cache - caches], cache))

/* The same for objects that are blocks of pages. */
#define slab_site_alloc_large(page) \
	slab_site_count(page_address(page), SITE_MAX_SHIFT, site + SLAB_NR_CLASSES + (page)->order)
#define slab_site_free_large(page) \
	(page = slab_site_uncount(page_address(page), SITE_MAX_SHIFT, page))

#else

static inline unsigned int slab_site_bytes(unsigned int size)
{
	return 0;
}

#define slab_site_alloc(object, class)	     ((void)0)
#define slab_site_alloc_alone(object, class) ((void)0)
#define slab_site_free(object, cache)	     ((void)0)
#define slab_site_alloc_large(page)	     ((void)0)
#define slab_site_free_large(page)	     ((void)0)

#endif

#endif
