/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_PAGE_H
#define LEGO_PAGE_H

/* Physical pages: a buddy allocator with a cache of single pages per CPU. */

#include <asm/page.h>
#include <lego/assert.h>
#include <lego/atomic.h>
#include <lego/list.h>
#include <profile/memory.h>

#define MAX_PAGE_ORDER 10 /* 4 MiB */

struct page {
	struct list_head node; /* in a free list, or used by the owner */
	atomic_t refs;	       /* 0 while free */
	u8 order;	       /* of a free block's head, or of the allocation */
	u8 flags;	       /* PAGE_FLAG_* */
	u16 nr_free_objects;   /* slab, first page: objects on free_objects */
	void *owner;	       /* slab, every page: its cache */
	void *free_objects;    /* slab, first page: list through the objects */
	struct profile_memory_page memory;
#ifdef CONFIG_PROFILE_MEMORY
	s32 object_site __aligned(16); /* of kmalloc; makes the structure 64 bytes long */
#endif
};

#define PAGE_FLAG_FREE BIT(0) /* head of a block on a buddy list */
#define PAGE_FLAG_SLAB BIT(1)

extern struct page *page_map; /* one per page frame from 0 to the end of RAM */

static inline struct page *phys_to_page(phys_addr_t phys)
{
	return &page_map[phys >> PAGE_SHIFT];
}

static inline phys_addr_t page_to_phys(const struct page *page)
{
	return (phys_addr_t)(page - page_map) << PAGE_SHIFT;
}

static inline void *page_address(const struct page *page)
{
	return phys_to_virt(page_to_phys(page));
}

/* Returns the page of an address in the direct map. */
static inline struct page *virt_to_page(const void *addr)
{
	return phys_to_page((phys_addr_t)addr - PAGE_OFFSET);
}

#define PAGE_ZERO BIT(0) /* allocation flag: the memory is zeroed */

/*
 * Allocates a zeroed page before page_init(), directly from boot_info's free RAM (not the image,
 * not the initramfs, not below 1 MiB). It is never freed. Panics if there is none.
 */
phys_addr_t page_alloc_early(void);

/* Gives all remaining RAM to the allocator. Boot only; needs the direct map. */
void page_init(void);

/* Allocates 2^order contiguous pages with refs 1, or returns NULL. Any context but NMI. */
struct page *(page_alloc)(unsigned int order, unsigned int flags PROFILE_MEMORY_SITE_PARAM);
#define page_alloc(order, flags) (page_alloc)(order, flags PROFILE_MEMORY_SITE_OF_PAGES)
/* The same for a page of a program, and for pages of kmalloc. */
#define page_alloc_user(flags) (page_alloc)(0, flags PROFILE_MEMORY_SITE_OF_USER_PAGES)
#define page_alloc_slab(order) (page_alloc)(order, 0 PROFILE_MEMORY_SITE_OF_SLABS)

/* Frees the 2^order pages of an allocation that has no references. For page_put() alone. */
void page_free(struct page *page);

/* Drops a reference; the last one frees the pages. Any context but NMI. */
static inline void page_put(struct page *page)
{
	ASSERT_NOT_NMI();
	DEBUG_ASSERT(atomic_read(&page->refs) > 0);
	if (atomic_dec_and_test(&page->refs))
		page_free(page);
}

static inline void page_get(struct page *page)
{
	DEBUG_ASSERT(atomic_read(&page->refs) > 0);
	atomic_inc(&page->refs);
}

/*
 * Gives the pages between two addresses, which were never allocated (the unpacked initramfs), to
 * the allocator.
 */
void page_free_range(phys_addr_t start, phys_addr_t end);

u64 page_nr_free(void);

/*
 * Returns true if only a reserve is left: then allocations that a program can repeat without limit
 * must wait. One reserve is for the kernel. Another one, 1/32 of RAM but at most 8 MiB, is for
 * root, so that root can always stop programs of other users. Any context but NMI.
 */
bool page_is_scarce(void);
u64 page_root_reserve(void); /* in pages */

/* The same for content of files, with a higher limit: a sixteenth of RAM. */
bool page_is_scarce_for_files(void);
u64 page_nr_total(void);

#endif
