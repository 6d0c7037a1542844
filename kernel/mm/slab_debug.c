// SPDX-License-Identifier: BSD-2-Clause
/*
 * Checks for kmalloc's objects. The state of an object is stored outside of it. So any stray write
 * to a freed object changes the pattern, and free lists stay intact. The states of an object are
 * FREE, LIVE, WAITING, FREE, in this order; kfree() accepts only the start of a LIVE object.
 */

#include "slab_debug.h"

#include "internal.h"
#include <lego/assert.h>
#include <lego/bug.h>
#include <lego/kallsyms.h>
#include <lego/kernel.h>
#include <lego/leak.h>
#include <lego/percpu.h>
#include <lego/printk.h>
#include <lego/string.h>

#define FREE_BYTE  0x6b /* in free objects and pages */
#define FRESH_BYTE 0xa5 /* in objects that were allocated, but not written to */
#define GUARD_BYTE 0xbb /* after the requested bytes */

#define MIN_GUARD_BYTES 8
#define NR_WAITING	128 /* freed objects that wait on each CPU */

#define STATE_FREE    0xf1
#define STATE_LIVE    0x1f
#define STATE_WAITING 0x3c

struct waiting_queue {
	void *objects[NR_WAITING];
	unsigned int next; /* index of the oldest object, which is replaced next */
};

static DEFINE_PER_CPU(struct waiting_queue, waiting_queue);
static u32 last_serial;

/*
 * Marks of pages, in fields that only slabs use: page->owner points to large_mark, or
 * page->free_objects to filled_mark. The marks are in the kernel image, so no slab has such
 * pointers.
 */
static char filled_mark, large_mark;

static struct page *slab_of(const void *object)
{
	struct page *page = virt_to_page(object);
	struct slab_cache *cache = page->owner;
	u64 frame = page - page_map;

	return &page_map[ALIGN_DOWN(frame, 1UL << cache->order)];
}

static struct object_debug *debug_array(struct page *slab)
{
	struct slab_cache *cache = slab->owner;
	char *end = (char *)page_address(slab) + (PAGE_SIZE << cache->order);

	return (struct object_debug *)end - cache->nr_objects;
}

/* Returns the state of an object. object is any address in it. */
static struct object_debug *debug_of(const void *object)
{
	struct page *slab = slab_of(object);
	struct slab_cache *cache = slab->owner;
	size_t offset = (const char *)object - (char *)page_address(slab);

	return &debug_array(slab)[offset / cache->stride];
}

static void print_place(const char *what, u32 ip)
{
	u64 addr = 0xffffffff00000000 | ip, start = 0;
	const char *name = kallsyms_lookup(addr, &start, NULL);

	if (name)
		printk("slab: %s at %s+%#llx\n", what, name, (unsigned long long)(addr - start));
}

static void print_object(const void *object, const struct object_debug *debug, unsigned long ip)
{
	const struct slab_cache *cache = virt_to_page(object)->owner;

	printk("slab: object of %u bytes, in %u, at %016llx\n", debug->size_bytes, cache->size,
	       (unsigned long long)object);
	print_place("last allocated", debug->alloc_ip);
	print_place("last freed", debug->free_ip);
	print_place("found", ip);
}

/* Returns the index of the first byte that differs from `byte`, or size_bytes. */
static size_t find_other(const u8 *p, size_t size_bytes, u8 byte)
{
	u64 word = byte * 0x0101010101010101ULL;
	size_t i = 0;

	while (i < size_bytes && !IS_ALIGNED((u64)(p + i), 8) && p[i] == byte)
		i++;
	if (IS_ALIGNED((u64)(p + i), 8)) {
		while (i + 8 <= size_bytes && *(const u64 *)(p + i) == word)
			i += 8;
	}
	while (i < size_bytes && p[i] == byte)
		i++;
	return i;
}

static void check_pattern(const char *what, const void *object, size_t from, u8 byte,
			  unsigned long ip)
{
	const struct slab_cache *cache = virt_to_page(object)->owner;
	const u8 *bytes = object;
	size_t at = from + find_other(bytes + from, cache->size - from, byte);

	if (likely(at == cache->size))
		return;
	print_object(object, debug_of(object), ip);
	panic("BUG: %s: byte %zu of the object of %u at %016llx is %02x, not %02x", what, at,
	      debug_of(object)->size_bytes, (unsigned long long)object, bytes[at], byte);
}

size_t slab_debug_size(size_t size)
{
	return max(size, size + MIN_GUARD_BYTES); /* no overflow */
}

void **slab_debug_link(void *object)
{
	return &debug_of(object)->next;
}

void slab_debug_init(void *object)
{
	const struct slab_cache *cache = virt_to_page(object)->owner;

	*debug_of(object) = (struct object_debug){ .state = STATE_FREE };
	memset(object, FREE_BYTE, cache->size);
}

void slab_debug_alloc(void *object, size_t size_bytes, unsigned long ip)
{
	const struct slab_cache *cache = virt_to_page(object)->owner;
	struct object_debug *debug = debug_of(object);

	ASSERT_IRQS_OFF();
	BUG_ON(debug->state != STATE_FREE);
	check_pattern("write to freed memory", object, 0, FREE_BYTE, ip);
	debug->state = STATE_LIVE;
	debug->alloc_ip = ip;
	debug->size_bytes = size_bytes;
	debug->serial = __atomic_add_fetch(&last_serial, 1, __ATOMIC_RELAXED);
	memset(object, FRESH_BYTE, size_bytes);
	memset((char *)object + size_bytes, GUARD_BYTE, cache->size - size_bytes);
}

void slab_debug_alloc_large(struct page *page)
{
	page->owner = &large_mark;
}

static void check_large(const void *ptr, unsigned long ip)
{
	struct page *page = virt_to_page(ptr);

	if (IS_ALIGNED((u64)ptr, PAGE_SIZE) && page->owner == &large_mark &&
	    atomic_read(&page->refs) == 1)
		return;
	print_place("found", ip);
	panic("BUG: free of what is not allocated: %016llx", (unsigned long long)ptr);
}

void slab_debug_check_free(const void *ptr, unsigned long ip)
{
	struct object_debug *debug;
	struct page *page;

	if ((u64)ptr - PAGE_OFFSET >= early_ram_end()) {
		print_place("found", ip);
		panic("BUG: free of an address outside of memory: %016llx",
		      (unsigned long long)ptr);
	}
	page = virt_to_page(ptr);
	if (!(page->flags & PAGE_FLAG_SLAB)) {
		check_large(ptr, ip);
		page->owner = NULL;
		return;
	}
	page = slab_of(ptr);
	debug = debug_of(ptr);
	if (((char *)ptr - (char *)page_address(page)) %
	    ((struct slab_cache *)page->owner)->stride) {
		print_object(ptr, debug, ip);
		panic("BUG: free of the middle of an object: %016llx", (unsigned long long)ptr);
	}
	if (debug->state != STATE_LIVE) {
		print_object(ptr, debug, ip);
		panic("BUG: second free of the object of %u at %016llx", debug->size_bytes,
		      (unsigned long long)ptr);
	}
	check_pattern("write behind the end", ptr, debug->size_bytes, GUARD_BYTE, ip);
}

bool slab_debug_free(struct slab_cache **cache, void **object, unsigned long ip)
{
	struct waiting_queue *queue = this_cpu_ptr(&waiting_queue);
	struct object_debug *debug = debug_of(*object);
	void *oldest = queue->objects[queue->next];

	ASSERT_IRQS_OFF();
	DEBUG_ASSERT(debug->state == STATE_LIVE);
	debug->state = STATE_WAITING;
	debug->free_ip = ip;
	memset(*object, FREE_BYTE, (*cache)->size);
	queue->objects[queue->next] = *object;
	queue->next = (queue->next + 1) % NR_WAITING;
	if (!oldest)
		return false;
	check_pattern("write to freed memory", oldest, 0, FREE_BYTE, ip);
	DEBUG_ASSERT(debug_of(oldest)->state == STATE_WAITING);
	debug_of(oldest)->state = STATE_FREE;
	*object = oldest;
	*cache = virt_to_page(oldest)->owner;
	return true;
}

void page_debug_free(struct page *page, unsigned int order)
{
	memset(page_address(page), FREE_BYTE, PAGE_SIZE << order);
	for (u64 i = 0; i < 1UL << order; i++)
		page[i].free_objects = &filled_mark;
}

void page_debug_alloc(struct page *page, unsigned int order)
{
	/* Pages that were never allocated are not filled, because that would take long. */
	for (u64 i = 0; i < 1UL << order; i++) {
		const u8 *bytes = page_address(&page[i]);
		size_t at;

		if (page[i].free_objects != &filled_mark)
			continue;
		page[i].free_objects = NULL;
		at = find_other(bytes, PAGE_SIZE, FREE_BYTE);
		if (unlikely(at != PAGE_SIZE))
			panic("BUG: write to a free page: byte %zu of %016llx is %02x, not %02x",
			      at, (unsigned long long)bytes, bytes[at], FREE_BYTE);
	}
}

u32 slab_debug_serial(void)
{
	return READ_ONCE(last_serial);
}

struct leak_site {
	u32 ip, nr, size_bytes;
};

#define MAX_LEAK_SITES 16

/* Counts a leaked object by the code that allocated it. Returns false if there is no room. */
static bool add_site(struct leak_site *sites, const struct object_debug *debug)
{
	for (unsigned int i = 0; i < MAX_LEAK_SITES; i++) {
		if (sites[i].nr && sites[i].ip != debug->alloc_ip)
			continue;
		sites[i].ip = debug->alloc_ip;
		sites[i].size_bytes = debug->size_bytes;
		sites[i].nr++;
		return true;
	}
	return false;
}

void slab_debug_print_since(u32 serial)
{
	struct leak_site sites[MAX_LEAK_SITES] = { 0 };
	u64 nr_frames = early_ram_end() >> PAGE_SHIFT;
	unsigned int nr_others = 0;

	for (u64 frame = 0; frame < nr_frames; frame++) {
		struct page *slab = &page_map[frame];
		struct slab_cache *cache = slab->owner;
		const struct object_debug *debug;

		if (!(slab->flags & PAGE_FLAG_SLAB) || slab_of(page_address(slab)) != slab)
			continue;
		debug = debug_array(slab);
		for (unsigned int i = 0; i < cache->nr_objects; i++) {
			if (debug[i].state == STATE_LIVE && (s32)(debug[i].serial - serial) > 0)
				nr_others += !add_site(sites, &debug[i]);
		}
	}
	for (unsigned int i = 0; i < MAX_LEAK_SITES && sites[i].nr; i++) {
		printk("leaks: %u objects of %u bytes\n", sites[i].nr, sites[i].size_bytes);
		print_place("allocated", sites[i].ip);
	}
	if (nr_others)
		printk("leaks: %u objects from other places\n", nr_others);
}
