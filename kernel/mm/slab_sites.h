/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MM_SLAB_SITES_H
#define MM_SLAB_SITES_H

/*
 * Keeps for each object of kmalloc the counter of its site (CONFIG_PROFILE_MEMORY): 4 bytes in an
 * array at the end of its page or, from 1 KiB on, in its struct page. An object's place in the
 * array is its offset, shifted by the class's power of two, so no division is needed: the distance
 * of two objects is at least that. If the option is off, there is no code.
 */

#include <lego/page.h>

#ifdef CONFIG_PROFILE_MEMORY

#define SITE_MAX_SHIFT 10 /* from here on in struct page */
BUILD_BUG_ON(sizeof(((struct page *)0)->object_sites) !=
	     (PAGE_SIZE >> SITE_MAX_SHIFT) * sizeof(s32));

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

/* Returns where the counter of an object is kept. */
static inline s32 *slab_site_slot(const void *object, unsigned int shift)
{
	u64 addr = (u64)object;

	if (unlikely(shift == SITE_MAX_SHIFT))
		return &phys_to_page(addr - PAGE_OFFSET)
				->object_sites[addr % PAGE_SIZE >> SITE_MAX_SHIFT];
	/* The offset from the end of the page is negative, and so is the index. */
	return (s32 *)((addr | (PAGE_SIZE - 1)) + 1) + ((s64)(addr | -PAGE_SIZE) >> shift);
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

/* Returns the pointer, see profile_memory_freed(). */
static inline void *slab_site_uncount(const s32 *slot, void *pointer)
{
	profile_memory_count_free(*slot, PROFILE_MEMORY_SIZES, pointer);
	return pointer;
}

/*
 * Count an object of a class; the same while the kernel's call chains are not recorded; and its
 * free. `cache`, a variable, is set to its value.
 */
#define slab_site_alloc(object, class) \
	slab_site_count(slab_site_slot(object, site_shifts[class]), site + (class))
#define slab_site_alloc_alone(object, class) \
	slab_site_count_alone(slab_site_slot(object, site_shifts[class]), site + (class))
#define slab_site_free(object, cache) \
	(cache = slab_site_uncount(slab_site_slot(object, site_shifts[cache - caches]), cache))

/* The same for objects that are blocks of pages. */
#define slab_site_alloc_large(page) \
	slab_site_count(&(page)->object_sites[0], site + SLAB_NR_CLASSES + (page)->order)
#define slab_site_free_large(page) (page = slab_site_uncount(&(page)->object_sites[0], page))

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
