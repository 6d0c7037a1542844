/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_SLAB_H
#define LEGO_SLAB_H

/*
 * kmalloc: powers of two and their middles from 16 to 6144 bytes from per-CPU free lists, larger
 * sizes from the page allocator. Any context but NMI; never sleeps. Memory is aligned to 8 bytes,
 * from SLAB_LARGE_SIZE on to SLAB_LARGE_ALIGN.
 */

#include <lego/types.h>
#include <profile/memory.h>

void slab_init(void);

/* NULL when out of memory; size 0 gives a valid unique pointer */
void *(kmalloc)(size_t size PROFILE_MEMORY_SITE_PARAM);
void *(kzalloc)(size_t size PROFILE_MEMORY_SITE_PARAM);
char *(kstrdup)(const char *s PROFILE_MEMORY_SITE_PARAM);
void kfree(const void *ptr); /* NULL is allowed */

#define kmalloc(size) (kmalloc)(size PROFILE_MEMORY_SITE_OF_OBJECTS)
#define kzalloc(size) (kzalloc)(size PROFILE_MEMORY_SITE_OF_OBJECTS)
#define kstrdup(s)    (kstrdup)(s PROFILE_MEMORY_SITE_OF_OBJECTS)

#define SLAB_NR_CLASSES	 17
#define SLAB_LARGE_SIZE	 1024
#define SLAB_LARGE_ALIGN 64

/*
 * For leak checks: return the bytes in live objects; the live objects of a size class, and its
 * largest size; the pages of all slabs. Exact only while no other code allocates.
 */
u64 slab_bytes_live(void);
s64 slab_nr_live(unsigned int class);
unsigned int slab_class_size(unsigned int class);
u64 slab_nr_pages(void);

/* The state of a size class, for /proc/slabinfo. An object is live if it was allocated. */
struct slab_class {
	unsigned int size, order; /* of an object; of a slab */
	unsigned int nr_per_slab, batch;
	u64 nr_live, nr_slabs, nr_empty; /* nr_empty: slabs of which no CPU has an object */
};
void slab_get_class(unsigned int class, struct slab_class *info);

#endif
