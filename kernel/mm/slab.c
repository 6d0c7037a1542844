// SPDX-License-Identifier: BSD-2-Clause
#include <lego/slab.h>

#include <asm/irqflags.h>
#include <lego/bug.h>
#include <lego/page.h>
#include <lego/percpu.h>
#include <lego/profile.h>
#include <lego/smp.h>
#include <lego/spinlock.h>
#include <lego/string.h>

/*
 * Each size has a cache of slabs (2^order pages cut into objects) and, on every CPU, a list of
 * free objects, touched by that CPU only with interrupts off. Lists are filled from and
 * spilled to the slabs in batches under the cache's lock; a slab whose objects are all back
 * goes to the page allocator unless it is one of a few kept. Free objects are linked through
 * their first word.
 */

DEFINE_PROFILE_POINT(kmalloc_slow)

#define MIN_SIZE	16
#define MAX_SIZE	4096
#define BATCH_BYTES	16384 /* moved at a time, within the limits of the next two */
#define MIN_BATCH	4
#define MAX_BATCH	32
#define MAX_EMPTY_SLABS 2 /* of one cache */

struct slab_cache {
	spinlock_t lock; /* taken with interrupts off; guards the rest and the slabs */
	unsigned int size;
	unsigned int order;
	unsigned int nr_objects; /* in a slab */
	unsigned int batch;
	unsigned int nr_empty;
	struct list_head slabs; /* with free objects */
};

/* Two sizes per power of two: it, and its middle. */
static const struct {
	unsigned int size, order;
} classes[] = {
	{ 16, 0 },   { 32, 0 },	  { 48, 0 },   { 64, 0 },   { 96, 0 },	{ 128, 0 },
	{ 192, 0 },  { 256, 0 },  { 384, 0 },  { 512, 0 },  { 768, 0 }, { 1024, 0 },
	{ 1536, 1 }, { 2048, 1 }, { 3072, 2 }, { 4096, 2 },
};

#define NR_CLASSES ARRAY_SIZE(classes)

struct object {
	struct object *next;
};

struct slab_cpu {
	struct object *head;
	unsigned int nr;
};

static struct slab_cache caches[NR_CLASSES];
static u8 class_of_chunk[MAX_SIZE / MIN_SIZE + 1]; /* by size in units of MIN_SIZE, rounded up */
static DEFINE_PER_CPU(struct slab_cpu[NR_CLASSES], slab_cpu);
static DEFINE_PER_CPU(s64, slab_live_bytes); /* may be negative where others' objects are freed */

void slab_init(void)
{
	unsigned int chunk = 0;

	for (unsigned int i = 0; i < NR_CLASSES; i++) {
		struct slab_cache *cache = &caches[i];

		cache->size = classes[i].size;
		cache->order = classes[i].order;
		cache->nr_objects = (PAGE_SIZE << cache->order) / cache->size;
		cache->batch = min(max(BATCH_BYTES / cache->size, MIN_BATCH), MAX_BATCH);
		list_init(&cache->slabs);
		for (; chunk <= cache->size / MIN_SIZE; chunk++)
			class_of_chunk[chunk] = i;
	}
}

/* The functions down to cache_put() are called with the cache's lock held. */
static struct page *slab_create(struct slab_cache *cache)
{
	struct page *slab = page_alloc(cache->order, 0);
	char *base;

	if (!slab)
		return NULL;
	for (unsigned int i = 0; i < 1u << cache->order; i++) {
		slab[i].flags = PAGE_FLAG_SLAB;
		slab[i].owner = cache;
	}
	base = page_address(slab);
	slab->free_objects = NULL;
	for (unsigned int i = cache->nr_objects; i-- > 0;) {
		struct object *object = (struct object *)(base + i * cache->size);

		object->next = slab->free_objects;
		slab->free_objects = object;
	}
	slab->nr_free_objects = cache->nr_objects;
	list_add(&slab->node, &cache->slabs);
	cache->nr_empty++;
	return slab;
}

static void slab_destroy(struct slab_cache *cache, struct page *slab)
{
	list_del(&slab->node);
	for (unsigned int i = 0; i < 1u << cache->order; i++) {
		slab[i].flags = 0;
		slab[i].owner = NULL;
	}
	page_put(slab);
}

static struct object *cache_get(struct slab_cache *cache)
{
	struct page *slab = NULL;
	struct object *object;

	if (!list_empty(&cache->slabs))
		slab = list_first_entry(&cache->slabs, struct page, node);
	else
		slab = slab_create(cache);
	if (!slab)
		return NULL;
	if (slab->nr_free_objects == cache->nr_objects)
		cache->nr_empty--;
	object = slab->free_objects;
	slab->free_objects = object->next;
	if (!--slab->nr_free_objects)
		list_del(&slab->node);
	return object;
}

static void cache_put(struct slab_cache *cache, struct object *object)
{
	u64 frame = virt_to_page(object) - page_map;
	struct page *slab = &page_map[ALIGN_DOWN(frame, 1UL << cache->order)];
	size_t offset = (char *)object - (char *)page_address(slab);

	BUG_ON(offset % cache->size || slab->nr_free_objects >= cache->nr_objects);
	object->next = slab->free_objects;
	slab->free_objects = object;
	if (!slab->nr_free_objects++)
		list_add(&slab->node, &cache->slabs);
	if (slab->nr_free_objects < cache->nr_objects)
		return;
	if (cache->nr_empty == MAX_EMPTY_SLABS) {
		slab_destroy(cache, slab);
		return;
	}
	cache->nr_empty++;
	/* Last in turn, so that slabs in use fill up first. */
	list_del(&slab->node);
	list_add_tail(&slab->node, &cache->slabs);
}

/* The two below: interrupts off. */
static noinline void cpu_fill(struct slab_cache *cache, struct slab_cpu *cpu)
{
	struct object *object;
	PROFILE_SCOPE(kmalloc_slow);

	spin_lock(&cache->lock);
	while (cpu->nr < cache->batch && (object = cache_get(cache))) {
		object->next = cpu->head;
		cpu->head = object;
		cpu->nr++;
	}
	spin_unlock(&cache->lock);
}

static noinline void cpu_spill(struct slab_cache *cache, struct slab_cpu *cpu)
{
	spin_lock(&cache->lock);
	while (cpu->nr > cache->batch) {
		struct object *object = cpu->head;

		cpu->head = object->next;
		cpu->nr--;
		cache_put(cache, object);
	}
	spin_unlock(&cache->lock);
}

static void *alloc_large(size_t size)
{
	unsigned int order = 0;
	struct page *page;

	while (order <= MAX_PAGE_ORDER && PAGE_SIZE << order < size)
		order++;
	page = page_alloc(order, 0);
	if (!page)
		return NULL;
	this_cpu_add(slab_live_bytes, (s64)(PAGE_SIZE << order));
	return page_address(page);
}

void *kmalloc(size_t size)
{
	unsigned int class;
	unsigned long flags;
	struct slab_cpu *cpu;
	struct object *object;

	if (unlikely(size > MAX_SIZE))
		return alloc_large(size);
	class = class_of_chunk[DIV_ROUND_UP(size, MIN_SIZE)];
	flags = local_irq_save();
	cpu = &per_cpu(slab_cpu, smp_processor_id())[class];
	if (unlikely(!cpu->head))
		cpu_fill(&caches[class], cpu);
	object = cpu->head;
	if (likely(object)) {
		cpu->head = object->next;
		cpu->nr--;
		this_cpu_add(slab_live_bytes, (s64)caches[class].size);
	}
	local_irq_restore(flags);
	return object;
}

void *kzalloc(size_t size)
{
	void *ptr = kmalloc(size);

	return ptr ? memset(ptr, 0, size) : NULL;
}

void kfree(const void *ptr)
{
	struct object *object = (struct object *)ptr;
	struct slab_cache *cache;
	struct slab_cpu *cpu;
	unsigned long flags;
	struct page *page;

	if (!ptr)
		return;
	page = virt_to_page(ptr);
	if (!(page->flags & PAGE_FLAG_SLAB)) {
		BUG_ON(!IS_ALIGNED((unsigned long)ptr, PAGE_SIZE) || atomic_read(&page->refs) != 1);
		this_cpu_add(slab_live_bytes, -(s64)(PAGE_SIZE << page->order));
		page_put(page);
		return;
	}
	cache = page->owner;
	flags = local_irq_save();
	cpu = &per_cpu(slab_cpu, smp_processor_id())[cache - caches];
	BUG_ON(cpu->head == object);
	object->next = cpu->head;
	cpu->head = object;
	this_cpu_add(slab_live_bytes, -(s64)cache->size);
	if (unlikely(++cpu->nr > 2 * cache->batch))
		cpu_spill(cache, cpu);
	local_irq_restore(flags);
}

char *kstrdup(const char *s)
{
	size_t bytes = strlen(s) + 1;
	char *copy = kmalloc(bytes);

	return copy ? memcpy(copy, s, bytes) : NULL;
}

u64 slab_bytes_live(void)
{
	s64 bytes = 0;
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		bytes += READ_ONCE(per_cpu(slab_live_bytes, cpu));
	return bytes;
}
