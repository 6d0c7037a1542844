/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MM_SLAB_DEBUG_H
#define MM_SLAB_DEBUG_H

/*
 * Checks for kmalloc's objects and for free pages (CONFIG_DEBUG_SLAB). If the option is off, there
 * is no code. A freed object is filled with a pattern and waits in a queue of its CPU. The pattern
 * is checked when the object leaves the queue and when it is allocated again. After the requested
 * bytes is another pattern, which kfree() checks. An error is printed and ends in a panic.
 */

#include <lego/page.h>
#include <lego/spinlock.h>

struct slab_cache {
	spinlock_t lock;	   /* taken with interrupts off; guards the rest and the slabs */
	unsigned int size, stride; /* of an object; distance of two */
	unsigned int order;
	unsigned int nr_objects; /* in each slab */
	unsigned int batch;
	unsigned int nr_empty;
	unsigned int nr_slabs;
	struct list_head slabs; /* with free objects */
} __aligned(64);		/* so that its index is a shift */

#ifdef CONFIG_DEBUG_SLAB

struct object_debug {
	void *next; /* link of the free list: the object is filled with the pattern */
	u32 alloc_ip, free_ip;
	u32 serial;	/* of the allocation */
	u16 size_bytes; /* the requested size */
	u8 state;
};

/* One of these for each object, after the objects of a slab. */
#define OBJECT_DEBUG_BYTES sizeof(struct object_debug)

/* Returns the size of the object to allocate: at least a guard larger. */
size_t slab_debug_size(size_t size);

/* Returns an object's link of the free list. */
void **slab_debug_link(void *object);

/* Initializes an object of a new slab. */
void slab_debug_init(void *object);

/* Called for each allocated object. size_bytes is the requested size. */
void slab_debug_alloc(void *object, size_t size_bytes, unsigned long ip);
void slab_debug_alloc_large(struct page *page);

/* Called first by kfree(). Panics unless ptr was returned by an allocation and is not free. */
void slab_debug_check_free(const void *ptr, unsigned long ip);

/*
 * Puts the object into the queue. Returns true if another object has waited long enough and must be
 * freed now; then *object and *cache are set to it.
 */
bool slab_debug_free(struct slab_cache **cache, void **object, unsigned long ip);

/* Do the same for 2^order pages, without the queue. */
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
