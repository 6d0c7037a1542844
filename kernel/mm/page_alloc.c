// SPDX-License-Identifier: BSD-2-Clause
/*
 * Buddy allocator: one list per order of free blocks of 2^order pages. A freed block is merged with
 * its buddy while that is free, too. Single pages go through a small per-CPU stack, which only its
 * CPU uses, with interrupts off. Pages move between it and the lists in batches.
 */

#include <lego/page.h>

#include <asm/irqflags.h>
#include <lego/assert.h>
#include <lego/boot.h>
#include <lego/bug.h>
#include <lego/fail_alloc.h>
#include <lego/percpu.h>
#include <lego/printk.h>
#include <lego/process.h>
#include <lego/smp.h>
#include <lego/spinlock.h>
#include <lego/string.h>

#include "internal.h"
#include "slab_debug.h"

#define CACHE_PAGES 64
#define CACHE_BATCH 32

/* See page_is_scarce(). */
#define RESERVE_PAGES  256  /* 1 MiB for the kernel */
#define MAX_ROOT_PAGES 2048 /* 8 MiB more for root; less on a small machine */

struct page_cache {
	unsigned int nr;
	struct page *pages[CACHE_PAGES];
};

struct page *page_map __read_mostly;

static u64 nr_frames __read_mostly; /* length of page_map */
static DEFINE_SPINLOCK(buddy_lock);
static struct list_head free_lists[MAX_PAGE_ORDER + 1];
/* Guarded by buddy_lock; nr_free is without the pages in the caches. */
static u64 nr_free, nr_total;
static u64 nr_reserved; /* both reserves */
static DEFINE_PER_CPU(struct page_cache, page_cache);

static void list_block(struct page *page, unsigned int order)
{
	ASSERT_HELD(&buddy_lock);
	DEBUG_ASSERT(!((page - page_map) & ((1UL << order) - 1)));
	page->order = order;
	page->flags = PAGE_FLAG_FREE;
	list_add(&page->node, &free_lists[order]);
}

static void unlist_block(struct page *page)
{
	ASSERT_HELD(&buddy_lock);
	DEBUG_ASSERT(page->flags & PAGE_FLAG_FREE);
	list_del(&page->node);
	page->flags = 0;
}

static struct page *buddy_alloc(unsigned int order)
{
	unsigned int have = order;
	struct page *page;

	ASSERT_HELD(&buddy_lock);
	while (have <= MAX_PAGE_ORDER && list_empty(&free_lists[have]))
		have++;
	if (have > MAX_PAGE_ORDER)
		return NULL;
	page = list_first_entry(&free_lists[have], struct page, node);
	DEBUG_ASSERT(page->order == have && nr_free >= 1UL << have);
	unlist_block(page);
	while (have > order) {
		have--;
		list_block(page + (1UL << have), have);
	}
	page->order = order;
	nr_free -= 1UL << order;
	return page;
}

static void buddy_free(struct page *page, unsigned int order)
{
	u64 frame = page - page_map;

	ASSERT_HELD(&buddy_lock);
	BUG_ON(page->flags & PAGE_FLAG_FREE || atomic_read(&page->refs));
	DEBUG_ASSERT(frame + (1UL << order) <= nr_frames);
	nr_free += 1UL << order;
	for (; order < MAX_PAGE_ORDER; order++) {
		u64 buddy_frame = frame ^ (1UL << order);
		struct page *buddy = &page_map[buddy_frame];

		if (buddy_frame + (1UL << order) > nr_frames || !(buddy->flags & PAGE_FLAG_FREE) ||
		    buddy->order != order)
			break;
		unlist_block(buddy);
		frame &= ~(1UL << order);
	}
	list_block(&page_map[frame], order);
}

static void cache_fill(struct page_cache *cache)
{
	struct page *page;

	ASSERT_IRQS_OFF();
	spin_lock(&buddy_lock);
	while (cache->nr < CACHE_BATCH && (page = buddy_alloc(0)))
		cache->pages[cache->nr++] = page;
	spin_unlock(&buddy_lock);
}

static void cache_drain(struct page_cache *cache)
{
	ASSERT_IRQS_OFF();
	spin_lock(&buddy_lock);
	while (cache->nr > CACHE_PAGES - CACHE_BATCH)
		buddy_free(cache->pages[--cache->nr], 0);
	DEBUG_ASSERT(nr_free <= nr_total);
	spin_unlock(&buddy_lock);
}

/*
 * Makes the current thread call the out-of-memory killer before it returns to user mode, where it
 * can wait.
 */
static void notice_shortage(void)
{
	if (likely(READ_ONCE(nr_free) >= nr_reserved))
		return;
	if (current && current->proc) {
		current->memory_short = true;
		current->need_resched = true;
	}
}

static struct page *alloc_single(void)
{
	struct page_cache *cache = this_cpu_ptr(&page_cache);

	ASSERT_IRQS_OFF();
	if (!cache->nr) {
		cache_fill(cache);
		profile_memory_pages_used(READ_ONCE(nr_total) - READ_ONCE(nr_free));
		notice_shortage();
	}
	return cache->nr ? cache->pages[--cache->nr] : NULL;
}

static __always_inline void free_single(struct page *page, unsigned long flags, bool is_slow)
{
	struct page_cache *cache = this_cpu_ptr(&page_cache);

	ASSERT_IRQS_OFF();
	DEBUG_ASSERT(cache->nr <= CACHE_PAGES);
	if (is_slow) {
		profile_memory_free_pages(page);
	} else {
		profile_memory_free_page_alone(page);
	}
	if (cache->nr == CACHE_PAGES)
		cache_drain(cache);
	cache->pages[cache->nr++] = page;
	local_irq_restore(flags);
}

static __always_inline struct page *begin_use(struct page *page, unsigned int order,
					      unsigned int flags)
{
	BUG_ON(atomic_read(&page->refs));
	page_debug_alloc(page, order);
	atomic_set(&page->refs, 1);
	if (flags & PAGE_ZERO)
		memset(page_address(page), 0, PAGE_SIZE << order);
	return page;
}

/* The slow path: a block, an empty stack, or a profiler wants to see the allocation. */
static noinline struct page *page_alloc_slow(unsigned int order,
					     unsigned int flags PROFILE_MEMORY_SITE_PARAM)
{
	struct page *page = NULL;
	unsigned long irq_flags;

	if (!order) {
		irq_flags = local_irq_save();
		page = alloc_single();
		if (page) {
			profile_memory_alloc_pages(page, 0);
		}
		local_irq_restore(irq_flags);
	} else if (order <= MAX_PAGE_ORDER) {
		irq_flags = spin_lock_irqsave(&buddy_lock);
		page = buddy_alloc(order);
		if (page) {
			profile_memory_alloc_pages(page, order);
		}
		spin_unlock_irqrestore(&buddy_lock, irq_flags);
		profile_memory_pages_used(READ_ONCE(nr_total) - READ_ONCE(nr_free));
		notice_shortage();
	}
	if (!page)
		return NULL;
	profile_trace(mm_page_alloc, page - page_map, order);
	return begin_use(page, order, flags);
}

struct page *(page_alloc)(unsigned int order, unsigned int flags PROFILE_MEMORY_SITE_PARAM)
{
	unsigned long irq_flags;
	struct page_cache *cache;
	struct page *page;
	bool is_slow;

	ASSERT_NOT_NMI();
	if (fail_alloc())
		return NULL;
	if (unlikely(order))
		return page_alloc_slow(order, flags PROFILE_MEMORY_SITE_ARG);
	irq_flags = local_irq_save();
	cache = this_cpu_ptr(&page_cache);
	is_slow = !cache->nr;
	profile_asks(page_alloc, is_slow);
	if (unlikely(is_slow)) {
		local_irq_restore(irq_flags);
		return page_alloc_slow(0, flags PROFILE_MEMORY_SITE_ARG);
	}
	page = cache->pages[--cache->nr];
	profile_memory_alloc_page_alone(page);
	local_irq_restore(irq_flags);
	return begin_use(page, 0, flags);
}

/* The slow path: several pages, or a profiler wants to see the free. */
static noinline void page_free_slow(struct page *page)
{
	unsigned long flags;

	profile_trace(mm_page_free, page - page_map, page->order);
	if (!page->order) {
		free_single(page, local_irq_save(), true);
		return;
	}
	flags = spin_lock_irqsave(&buddy_lock);
	profile_memory_free_pages(page);
	buddy_free(page, page->order);
	DEBUG_ASSERT(nr_free <= nr_total);
	spin_unlock_irqrestore(&buddy_lock, flags);
}

void page_free(struct page *page)
{
	bool is_slow = page->order;
	unsigned long flags;

	ASSERT_NOT_NMI();
	page->flags = 0;
	page_debug_free(page, page->order);
	flags = local_irq_save();
	profile_asks(page_alloc, is_slow);
	if (likely(!is_slow)) {
		free_single(page, flags, false);
		return;
	}
	local_irq_restore(flags);
	page_free_slow(page);
}

void page_free_range(phys_addr_t start, phys_addr_t end)
{
	u64 frame = ALIGN_UP(start, PAGE_SIZE) >> PAGE_SHIFT;
	u64 end_frame = min(end >> PAGE_SHIFT, nr_frames);
	unsigned long flags = spin_lock_irqsave(&buddy_lock);

	while (frame < end_frame) {
		unsigned int order = 0;

		while (order < MAX_PAGE_ORDER && !(frame >> order & 1) &&
		       frame + (2UL << order) <= end_frame)
			order++;
		buddy_free(&page_map[frame], order);
		frame += 1UL << order;
		nr_total += 1UL << order;
	}
	nr_reserved = RESERVE_PAGES + min(nr_total / 32, (u64)MAX_ROOT_PAGES);
	spin_unlock_irqrestore(&buddy_lock, flags);
}

void page_init(void)
{
	u64 frames = early_ram_end() >> PAGE_SHIFT;
	u64 map_bytes = ALIGN_UP(frames * sizeof(struct page), PAGE_SIZE);
	phys_addr_t map = early_alloc_pages(map_bytes >> PAGE_SHIFT);
	const struct early_range *ranges;
	unsigned int nr_ranges;

	for (unsigned int order = 0; order <= MAX_PAGE_ORDER; order++)
		list_init(&free_lists[order]);
	memset(phys_to_virt(map), 0, map_bytes);
	nr_frames = frames;
	page_map = phys_to_virt(map);
	ranges = early_ranges(&nr_ranges);
	for (unsigned int i = 0; i < nr_ranges; i++)
		page_free_range(ranges[i].start, ranges[i].end);
	printk("mm: %llu MiB of RAM free, page map of %llu KiB\n",
	       (unsigned long long)nr_free >> (20 - PAGE_SHIFT),
	       (unsigned long long)map_bytes >> 10);
}

/* For an assertion. Returns true if the lists have nr_free pages, and all of them are free. */
static __maybe_unused bool lists_are_sound(void)
{
	unsigned long flags = spin_lock_irqsave(&buddy_lock);
	u64 nr = 0, nr_bad = 0;
	const struct page *page;

	for (unsigned int order = 0; order <= MAX_PAGE_ORDER; order++) {
		list_for_each_entry(page, &free_lists[order], node) {
			nr_bad += page->flags != PAGE_FLAG_FREE || page->order != order ||
				  atomic_read(&page->refs);
			nr += 1UL << order;
		}
	}
	nr_bad += nr != nr_free;
	spin_unlock_irqrestore(&buddy_lock, flags);
	return !nr_bad;
}

u64 page_nr_free(void)
{
	u64 nr = READ_ONCE(nr_free);
	unsigned int cpu;

	/* In a panic, a CPU may have been stopped while it held the lock. */
	DEBUG_ASSERT(panic_in_progress() || lists_are_sound());
	for_each_possible_cpu(cpu)
		nr += READ_ONCE(per_cpu(page_cache, cpu).nr);
	return nr;
}

u64 page_root_reserve(void)
{
	return nr_reserved - RESERVE_PAGES;
}

bool page_is_scarce(void)
{
	u64 nr = READ_ONCE(nr_free);

	if (likely(nr >= nr_reserved))
		return false;
	return nr < RESERVE_PAGES || (current && current->proc && !process_is_root(current->proc));
}

bool page_is_scarce_for_files(void)
{
	return READ_ONCE(nr_free) < RESERVE_PAGES + nr_total / 16;
}

u64 page_nr_total(void)
{
	return READ_ONCE(nr_total);
}
