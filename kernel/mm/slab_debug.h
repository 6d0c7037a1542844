/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MM_SLAB_DEBUG_H
#define MM_SLAB_DEBUG_H

/*
 * Checks of kmalloc's objects and of free pages (CONFIG_DEBUG_SLAB); all of it is nothing when the
 * option is off. A freed object is filled with a pattern and waits in a queue of its CPU; the
 * pattern is looked at when it leaves the queue and when the object is given out again. Behind the
 * bytes that were asked for stands another pattern, looked at by kfree(). What is wrong is printed
 * and ends in a panic.
 */

#include <lego/page.h>
#include <lego/spinlock.h>

struct slab_cache {
	spinlock_t lock; /* taken with interrupts off; guards the rest and the slabs */
	unsigned int size;
	unsigned int order;
	unsigned int nr_objects; /* in a slab */
	unsigned int batch;
	unsigned int nr_empty;
	unsigned int nr_slabs;
	struct list_head slabs; /* with free objects */
};

#ifdef CONFIG_DEBUG_SLAB

struct object_debug {
	void *next; /* the free list's link: the object itself is all pattern */
	u32 alloc_ip, free_ip;
	u32 serial;	/* of the allocation */
	u16 size_bytes; /* asked for */
	u8 state;
};

/* Behind the objects of a slab stands one of these for each. */
#define OBJECT_DEBUG_BYTES sizeof(struct object_debug)

/* The size of the object to take: at least a guard more, still aligned as the contract says. */
size_t slab_debug_size(size_t size);

/* An object's link in free lists. */
void **slab_debug_link(void *object);

/* A new slab's object. */
void slab_debug_init(void *object);

/* An object leaves the allocator; size_bytes as asked for. */
void slab_debug_alloc(void *object, size_t size_bytes, unsigned long ip);
void slab_debug_alloc_large(struct page *page);

/* Before anything else: panics unless ptr is what an allocation has returned, and not free. */
void slab_debug_check_free(const void *ptr, unsigned long ip);

/*
 * The object waits. False: nothing is to be freed now; else *object and *cache are what has waited
 * long enough instead.
 */
bool slab_debug_free(struct slab_cache **cache, void **object, unsigned long ip);

/* The same for 2^order pages, without the wait. */
void page_debug_alloc(struct page *page, unsigned int order);
void page_debug_free(struct page *page, unsigned int order);

#else

#define OBJECT_DEBUG_BYTES 0

static inline size_t slab_debug_size(size_t size)
{
	return size;
}

static inline void **slab_debug_link(void *object)
{
	return object;
}

static inline void slab_debug_init(void *object)
{
}

static inline void slab_debug_alloc(void *object, size_t size_bytes, unsigned long ip)
{
}

static inline void slab_debug_alloc_large(struct page *page)
{
}

static inline void slab_debug_check_free(const void *ptr, unsigned long ip)
{
}

static inline bool slab_debug_free(struct slab_cache **cache, void **object, unsigned long ip)
{
	return true;
}

static inline void page_debug_alloc(struct page *page, unsigned int order)
{
}

static inline void page_debug_free(struct page *page, unsigned int order)
{
}

#endif

#endif
