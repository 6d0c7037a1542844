// SPDX-License-Identifier: BSD-2-Clause
/*
 * kmalloc. Each size class has a cache of slabs (2^order pages, divided into objects) and, on every
 * CPU, a list of free objects, which only that CPU uses, with interrupts off. The lists are filled
 * from the slabs, and emptied into them, in batches under the cache's lock. A slab whose objects
 * are all free goes back to the page allocator, except for a few that are kept. Free objects are
 * linked through their first word (but see slab_debug.h).
 */

#include <lego/slab.h>

#include <asm/irqflags.h>
#include <lego/assert.h>
#include <lego/bug.h>
#include <lego/fail_alloc.h>
#include <lego/page.h>
#include <lego/percpu.h>
#include <lego/profile.h>
#include <lego/smp.h>
#include <lego/spinlock.h>
#include <lego/string.h>

#include "slab_debug.h"
#include "slab_sites.h"

DEFINE_PROFILE_POINT(kmalloc_slow)

#define MIN_SIZE  16
#define LAST_SIZE 6144
/* Freed objects of the debug kernel wait in a queue, where large ones would keep much memory. */
#define MAX_SIZE	(IS_ENABLED(CONFIG_DEBUG_SLAB) ? 4096 : LAST_SIZE)
#define BATCH_BYTES	16384 /* moved at a time; the next two limit the number of objects */
#define MIN_BATCH	4
#define MAX_BATCH	32
#define MAX_EMPTY_SLABS 2 /* that a cache keeps */
#define RESERVE_ORDER	2 /* larger blocks are not taken from the reserve */

/* Two sizes for each power of two: 2^n, and 1.5 times 2^n. */
static const struct {
	unsigned int size, order;
} classes[] = {
	{ 16, 0 },   { 32, 0 },	  { 48, 0 },   { 64, 0 },   { 96, 0 },	 { 128, 0 },
	{ 192, 0 },  { 256, 0 },  { 384, 0 },  { 512, 0 },  { 768, 0 },	 { 1024, 1 },
	{ 1536, 1 }, { 2048, 2 }, { 3072, 2 }, { 4096, 2 }, { 6144, 2 },
};

#define NR_CLASSES ARRAY_SIZE(classes)
BUILD_BUG_ON(NR_CLASSES != SLAB_NR_CLASSES);

#define next_of(object) (*slab_debug_link(object))

struct slab_cpu {
	void *head;
	unsigned int nr;
	s32 nr_live; /* negative if this CPU frees objects of other CPUs */
};

static struct slab_cache caches[NR_CLASSES];
#ifdef CONFIG_PROFILE_MEMORY
BUILD_BUG_ON(NR_CLASSES != PROFILE_MEMORY_CLASSES);
BUILD_BUG_ON(MAX_PAGE_ORDER + 1 != PROFILE_MEMORY_ORDERS);
#endif
static u8 class_of_chunk[LAST_SIZE / MIN_SIZE + 1]; /* by size in units of MIN_SIZE, rounded up */
static DEFINE_PER_CPU(struct slab_cpu[NR_CLASSES], slab_cpu);
static DEFINE_PER_CPU(s64, large_live_bytes); /* as nr_live */

void slab_init(void)
{
	unsigned int chunk = 0;

	for (unsigned int i = 0; i < NR_CLASSES; i++) {
		struct slab_cache *cache = &caches[i];

		cache->size = classes[i].size;
		cache->stride = slab_stride(cache->size);
		cache->order = classes[i].order;
		cache->nr_objects =
			(PAGE_SIZE << cache->order) / (cache->stride + OBJECT_DEBUG_BYTES);
		cache->batch = min(max(BATCH_BYTES / cache->size, MIN_BATCH), MAX_BATCH);
		spin_lock_init(&cache->lock);
		list_init(&cache->slabs);
		for (; chunk <= cache->size / MIN_SIZE; chunk++)
			class_of_chunk[chunk] = i;
	}
}

static struct page *slab_create(struct slab_cache *cache)
{
	struct page *slab = page_alloc_slab(cache->order);
	char *base;

	ASSERT_HELD(&cache->lock);
	if (!slab)
		return NULL;
	for (unsigned int i = 0; i < 1u << cache->order; i++) {
		slab[i].flags = PAGE_FLAG_SLAB;
		slab[i].owner = cache;
	}
	base = page_address(slab);
	slab->free_objects = NULL;
	for (unsigned int i = cache->nr_objects; i-- > 0;) {
		void *object = base + i * cache->stride;

		slab_debug_init(object);
		next_of(object) = slab->free_objects;
		slab->free_objects = object;
	}
	slab->nr_free_objects = cache->nr_objects;
	list_add(&slab->node, &cache->slabs);
	cache->nr_empty++;
	cache->nr_slabs++;
	return slab;
}

static void slab_destroy(struct slab_cache *cache, struct page *slab)
{
	ASSERT_HELD(&cache->lock);
	DEBUG_ASSERT(slab->nr_free_objects == cache->nr_objects && cache->nr_slabs);
	list_del(&slab->node);
	cache->nr_slabs--;
	for (unsigned int i = 0; i < 1u << cache->order; i++) {
		slab[i].flags = 0;
		slab[i].owner = NULL;
	}
	page_put(slab);
}

static void *cache_get(struct slab_cache *cache)
{
	struct page *slab = NULL;
	void *object;

	ASSERT_HELD(&cache->lock);
	if (!list_empty(&cache->slabs))
		slab = list_first_entry(&cache->slabs, struct page, node);
	else
		slab = slab_create(cache);
	if (!slab)
		return NULL;
	if (slab->nr_free_objects == cache->nr_objects)
		cache->nr_empty--;
	DEBUG_ASSERT(slab->nr_free_objects && slab->free_objects);
	object = slab->free_objects;
	slab->free_objects = next_of(object);
	if (!--slab->nr_free_objects)
		list_del(&slab->node);
	return object;
}

static void cache_put(struct slab_cache *cache, void *object)
{
	u64 frame = virt_to_page(object) - page_map;
	struct page *slab = &page_map[ALIGN_DOWN(frame, 1UL << cache->order)];
	size_t offset = (char *)object - (char *)page_address(slab);

	ASSERT_HELD(&cache->lock);
	BUG_ON(offset % cache->stride || slab->nr_free_objects >= cache->nr_objects);
	next_of(object) = slab->free_objects;
	slab->free_objects = object;
	if (!slab->nr_free_objects++)
		list_add(&slab->node, &cache->slabs);
	if (slab->nr_free_objects < cache->nr_objects)
		return;
	DEBUG_ASSERT(cache->nr_empty <= MAX_EMPTY_SLABS && cache->nr_empty < cache->nr_slabs);
	if (cache->nr_empty == MAX_EMPTY_SLABS) {
		slab_destroy(cache, slab);
		return;
	}
	cache->nr_empty++;
	/* At the end of the list, so that slabs in use fill up first. */
	list_del(&slab->node);
	list_add_tail(&slab->node, &cache->slabs);
}

static noinline void cpu_fill(struct slab_cache *cache, struct slab_cpu *cpu)
{
	void *object;
	PROFILE_SCOPE(kmalloc_slow);

	ASSERT_IRQS_OFF();
	DEBUG_ASSERT(!cpu->nr);
	spin_lock(&cache->lock);
	while (cpu->nr < cache->batch && (object = cache_get(cache))) {
		next_of(object) = cpu->head;
		cpu->head = object;
		cpu->nr++;
	}
	spin_unlock(&cache->lock);
}

static noinline void cpu_spill(struct slab_cache *cache, struct slab_cpu *cpu)
{
	ASSERT_IRQS_OFF();
	spin_lock(&cache->lock);
	while (cpu->nr > cache->batch) {
		void *object = cpu->head;

		cpu->head = next_of(object);
		cpu->nr--;
		cache_put(cache, object);
	}
	spin_unlock(&cache->lock);
}

static noinline void *alloc_large(size_t size, unsigned long caller PROFILE_MEMORY_SITE_PARAM)
{
	unsigned int order = 0;
	unsigned long flags;
	struct page *page;

	while (order <= MAX_PAGE_ORDER && PAGE_SIZE << order < size)
		order++;
	page = order > RESERVE_ORDER && page_is_scarce() ? NULL : page_alloc_slab(order);
	if (!page)
		return NULL;
	slab_debug_alloc_large(page);
	flags = local_irq_save();
	this_cpu_add(large_live_bytes, (s64)(PAGE_SIZE << order));
	slab_site_alloc_large(page);
	local_irq_restore(flags);
	profile_trace(kmalloc, caller, page_address(page), size, PAGE_SIZE << order);
	return page_address(page);
}

static __always_inline void *take_object(struct slab_cpu *cpu)
{
	void *object = cpu->head;

	DEBUG_ASSERT(!cpu->head == !cpu->nr);
	cpu->head = next_of(object);
	cpu->nr--;
	cpu->nr_live++;
	return object;
}

/* The slow path: the CPU's list is empty, or a profiler wants to see the allocation. */
static noinline void *slab_alloc(size_t size, unsigned long caller, size_t class,
				 unsigned long flags PROFILE_MEMORY_SITE_PARAM)
{
	struct slab_cpu *cpu = this_cpu_ptr(&slab_cpu[class]);
	void *object = NULL;

	if (!cpu->head)
		cpu_fill(&caches[class], cpu);
	if (cpu->head) {
		object = take_object(cpu);
		slab_site_alloc(object, class);
		slab_debug_alloc(object, size, caller);
		profile_trace(kmalloc, caller, object, size, classes[class].size);
	}
	local_irq_restore(flags);
	return object;
}

/*
 * Allocates an object. A part of the public functions, so the return address is theirs. It calls
 * other functions only at its end, so that the usual case need not save registers.
 */
static __always_inline void *alloc_object(size_t size PROFILE_MEMORY_SITE_PARAM)
{
	size_t object_size = slab_debug_size(size);
	size_t class;
	unsigned long flags;
	struct slab_cpu *cpu;
	void *object;
	bool is_slow;

	if (fail_alloc())
		return NULL;
	if (unlikely(object_size > MAX_SIZE))
		return alloc_large(size, RETURN_ADDRESS() PROFILE_MEMORY_SITE_ARG);
	class = class_of_chunk[DIV_ROUND_UP(object_size, MIN_SIZE)];
	flags = local_irq_save();
	ASSERT_NOT_NMI();
	cpu = this_cpu_ptr(&slab_cpu[class]);
	is_slow = !cpu->head;
	profile_asks(kmalloc, is_slow);
	if (unlikely(is_slow))
		return slab_alloc(size, RETURN_ADDRESS(), class, flags PROFILE_MEMORY_SITE_ARG);
	object = take_object(cpu);
	slab_site_alloc_alone(object, class);
	slab_debug_alloc(object, size, RETURN_ADDRESS());
	local_irq_restore(flags);
	return object;
}

void *(kmalloc)(size_t size PROFILE_MEMORY_SITE_PARAM)
{
	return alloc_object(size PROFILE_MEMORY_SITE_ARG);
}

void *(kzalloc)(size_t size PROFILE_MEMORY_SITE_PARAM)
{
	void *ptr = alloc_object(size PROFILE_MEMORY_SITE_ARG);

	return ptr ? memset(ptr, 0, size) : NULL;
}

static __always_inline void free_object(void *object, unsigned long caller, unsigned long flags,
					bool is_slow)
{
	struct page *page = virt_to_page(object);
	struct slab_cpu *cpus, *cpu;
	struct slab_cache *cache;

	ASSERT_IRQS_OFF();
	if (!(page->flags & PAGE_FLAG_SLAB)) {
		BUG_ON(!IS_ALIGNED((u64)object, PAGE_SIZE) || atomic_read(&page->refs) != 1);
		this_cpu_add(large_live_bytes, -(s64)(PAGE_SIZE << page->order));
		slab_site_free_large(page, is_slow);
		local_irq_restore(flags);
		page_put(page);
		return;
	}
	cache = page->owner;
	slab_site_free(object, cache, is_slow);
	cpus = this_cpu_ptr(&slab_cpu[0]);
	cpus[cache - caches].nr_live--;
	if (!slab_debug_free(&cache, &object, caller))
		goto out_restore;
	cpu = &cpus[cache - caches];
	BUG_ON(cpu->head == object);
	DEBUG_ASSERT(!cpu->head == !cpu->nr);
	next_of(object) = cpu->head;
	cpu->head = object;
	if (unlikely(++cpu->nr > 2 * cache->batch))
		cpu_spill(cache, cpu);
out_restore:
	local_irq_restore(flags);
}

/* A profiler wants to see the free. */
static noinline void slab_free(void *object, unsigned long caller, unsigned long flags)
{
	local_irq_restore(flags);
	profile_trace(kfree, caller, object);
	free_object(object, caller, local_irq_save(), true);
}

void kfree(const void *ptr)
{
	bool is_slow = false;
	unsigned long flags;

	if (!ptr)
		return;
	slab_debug_check_free(ptr, RETURN_ADDRESS());
	flags = local_irq_save();
	profile_asks(kmalloc, is_slow);
	if (unlikely(is_slow))
		slab_free((void *)ptr, RETURN_ADDRESS(), flags);
	else
		free_object((void *)ptr, RETURN_ADDRESS(), flags, false);
}

char *(kstrdup)(const char *s PROFILE_MEMORY_SITE_PARAM)
{
	size_t bytes = strlen(s) + 1;
	char *copy = alloc_object(bytes PROFILE_MEMORY_SITE_ARG);

	return copy ? memcpy(copy, s, bytes) : NULL;
}

s64 slab_nr_live(unsigned int class)
{
	unsigned int cpu;
	s64 nr = 0;

	for_each_possible_cpu(cpu)
		nr += READ_ONCE(per_cpu(slab_cpu, cpu)[class].nr_live);
	return nr;
}

void slab_get_class(unsigned int class, struct slab_class *info)
{
	struct slab_cache *cache = &caches[class];
	unsigned long flags = spin_lock_irqsave(&cache->lock);
	s64 nr_live = max(slab_nr_live(class), (s64)0);

	*info = (struct slab_class){
		.size = cache->size,
		.order = cache->order,
		.nr_per_slab = cache->nr_objects,
		.batch = cache->batch,
		.nr_slabs = cache->nr_slabs,
		.nr_empty = cache->nr_empty,
	};
	/* Objects that move between CPUs meanwhile may be counted twice. */
	info->nr_live = min((u64)nr_live, info->nr_slabs * cache->nr_objects);
	spin_unlock_irqrestore(&cache->lock, flags);
}

unsigned int slab_class_size(unsigned int class)
{
	return classes[class].size;
}

u64 slab_bytes_live(void)
{
	unsigned int cpu;
	s64 bytes = 0;

	for_each_possible_cpu(cpu)
		bytes += READ_ONCE(per_cpu(large_live_bytes, cpu));
	for (unsigned int class = 0; class < NR_CLASSES; class ++)
		bytes += slab_nr_live(class) * classes[class].size;
	return bytes;
}

/*
 * For an assertion. Returns true if the numbers of slabs with free objects, and of empty slabs, are
 * right.
 */
static __maybe_unused bool slabs_are_sound(struct slab_cache *cache)
{
	unsigned long flags = spin_lock_irqsave(&cache->lock);
	unsigned int nr = 0, nr_empty = 0, nr_bad = 0;
	const struct page *slab;

	list_for_each_entry(slab, &cache->slabs, node) {
		nr_bad += slab->owner != cache || !slab->nr_free_objects ||
			  slab->nr_free_objects > cache->nr_objects;
		nr_empty += slab->nr_free_objects == cache->nr_objects;
		nr++;
	}
	nr_bad += nr > cache->nr_slabs || nr_empty != cache->nr_empty;
	spin_unlock_irqrestore(&cache->lock, flags);
	return !nr_bad;
}

u64 slab_nr_pages(void)
{
	u64 nr = 0;

	for (unsigned int i = 0; i < NR_CLASSES; i++) {
		DEBUG_ASSERT(slabs_are_sound(&caches[i]));
		nr += (u64)READ_ONCE(caches[i].nr_slabs) << caches[i].order;
	}
	return nr;
}
