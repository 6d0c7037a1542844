// SPDX-License-Identifier: BSD-2-Clause
/*
 * How much of the machine's memory programs use: each resident page of the sampled processes is
 * used if its region was. The worker visits these pages once a second, some in each round, so that
 * samples go on. A page that several processes have counts once, as the most recently used of them:
 * two bits for each page of RAM, 1/16384 of it, say what is known of it. Pages are counted by block
 * of RAM: at most 16 of equal size, divided at holes and where a NUMA node ends.
 */

#include "working_set.h"

#define MAX_BLOCKS_OF_RAM 16 /* without holes and the ends of nodes */
#define PAGES_AT_A_TIME	  256
#define PAGES_IN_ROUND	  1024
#define VISIT_NS	  (1000 * NS_PER_MSEC)
#define FIRST_VISIT_NS	  (200 * NS_PER_MSEC) /* regions are known by then */
#define ALL		  (~0ull)
#define LEVEL_BITS	  2
#define LEVELS_IN_BYTE	  (8 / LEVEL_BITS)

static struct working_set_memory memory; /* of the worker */
static struct working_set_block *block;	 /* that of the last page */
static u64 ram_end, block_bytes;
static u8 *levels;   /* by page: an enum working_set_level, or 0 */
static u64 nr_bytes; /* of these */
static bool is_ready;

static struct {
	bool is_on;
	u32 slot; /* of the next page */
	u64 addr; /* and its address */
	u64 generation;
	u64 next_ns; /* when the next visit begins */
} visit;

static struct working_set_memory shown;
static os_lock_t memory_lock = OS_LOCK_INIT; /* guards what is shown */

static struct working_set_block *last_block(void)
{
	return memory.nr_blocks ? &memory.blocks[memory.nr_blocks - 1] : NULL;
}

/* Adds a range of RAM to the blocks. When these run out, the last one takes the rest. */
static void add_ram(u64 start, u64 end, u32 node)
{
	while (start < end) {
		u64 stop = pf_min(end, (start / block_bytes + 1) * block_bytes);
		struct working_set_block *last = last_block();

		if ((!last || last->node != node || last->end != start ||
		     start % block_bytes == 0) &&
		    memory.nr_blocks < WORKING_SET_BLOCKS) {
			last = &memory.blocks[memory.nr_blocks++];
			*last = (struct working_set_block){ .start = start, .node = node };
		}
		if (last->node != node)
			last->node = OS_NO_NODE;
		memory.has_nodes |= last->node != memory.blocks[0].node;
		last->nr_pages += (stop - start) / OS_PAGE_BYTES;
		last->end = stop;
		start = stop;
	}
}

/* Finds out what RAM there is. */
static void prepare(void)
{
	u64 end = 0;
	u32 node;

	is_ready = true;
	for (u64 start = 0; os_ram_next(&start, &end, &node); start = end)
		ram_end = end;
	block_bytes = OS_PAGE_BYTES;
	while (block_bytes * MAX_BLOCKS_OF_RAM < ram_end)
		block_bytes *= 2;
	for (u64 start = 0; os_ram_next(&start, &end, &node); start = end)
		add_ram(start, end, node);
	nr_bytes = (ram_end / OS_PAGE_BYTES + LEVELS_IN_BYTE - 1) / LEVELS_IN_BYTE;
	if (nr_bytes)
		levels = os_zalloc(nr_bytes);
	memory.no_room = nr_bytes && !levels;
	shown.no_room = memory.no_room;
}

static bool has_page(const struct working_set_block *in, u64 page)
{
	return page >= in->start && page < in->end;
}

static struct working_set_block *find_block(u64 page)
{
	for (u32 i = 0; i < memory.nr_blocks; i++) {
		if (has_page(&memory.blocks[i], page))
			return &memory.blocks[i];
	}
	return NULL;
}

static void add_page(u64 page, u32 level)
{
	u64 nr = page / OS_PAGE_BYTES;
	u32 shift = nr % LEVELS_IN_BYTE * LEVEL_BITS, before;
	u8 *byte = &levels[nr / LEVELS_IN_BYTE];

	/* Neighbors are often in one block. */
	if (!block || !has_page(block, page))
		block = find_block(page);
	if (!block) {
		memory.nr_outside++;
		return;
	}
	before = *byte >> shift & ((1u << LEVEL_BITS) - 1);
	if (level <= before)
		return;
	*byte += (level - before) << shift;
	if (before)
		block->nr[before]--;
	block->nr[level]++;
}

static enum working_set_level level_of(const struct region *region, u64 now_ns)
{
	if (region_was_used_in(region, now_ns, WORKING_SET_SHORT_NS))
		return WORKING_SET_USED_SHORT;
	if (region_was_used_in(region, now_ns, WORKING_SET_LONG_NS))
		return WORKING_SET_USED_LONG;
	return WORKING_SET_RESIDENT;
}

/*
 * Adds the next pages of a process, at most PAGES_AT_A_TIME, from *addr on. Moves *addr behind
 * them, or to ALL if there are none. Returns their number.
 */
static u32 add_pages(const struct regions *regions, os_mm_t *mm, u64 *addr, u64 now_ns)
{
	static u64 pages[PAGES_AT_A_TIME];

	for (u32 i = 0; i < regions->nr; i++) {
		const struct region *region = &regions->all[i];
		enum working_set_level level = level_of(region, now_ns);
		u32 nr = 0;

		if (region->end <= *addr)
			continue;
		*addr = pf_max(*addr, region->start);
		while (!nr && *addr < region->end)
			nr = os_mm_physical(mm, addr, region->end, pages, PAGES_AT_A_TIME);
		for (u32 k = 0; k < nr; k++)
			add_page(pages[k], level);
		if (nr)
			return nr;
	}
	*addr = ALL;
	return 0;
}

static void begin_visit(u64 now_ns)
{
	visit.is_on = true;
	visit.slot = 0;
	visit.addr = 0;
	visit.next_ns = now_ns + VISIT_NS;
	memset(levels, 0, nr_bytes);
	memory.nr_outside = 0;
	for (u32 i = 0; i < memory.nr_blocks; i++)
		memset(memory.blocks[i].nr, 0, sizeof(memory.blocks[i].nr));
}

static void end_visit(u64 now_ns)
{
	unsigned long flags = os_lock(&memory_lock);

	visit.is_on = false;
	memory.ns = now_ns;
	memory.generation = visit.generation;
	shown = memory;
	os_unlock(&memory_lock, flags);
}

/* Goes on where the last round ended. */
static void visit_some(u64 now_ns)
{
	u32 nr = 0;

	while (nr < PAGES_IN_ROUND && visit.slot < WORKING_SET_SLOTS) {
		struct working_set_slot *slot = working_set_slot_at(visit.slot);
		os_mm_t *mm = slot ? working_set_slot_mm(slot) : NULL;

		if (mm && slot->generation == visit.generation)
			nr += add_pages(&slot->regions, mm, &visit.addr, now_ns);
		else
			visit.addr = ALL;
		if (mm)
			os_mm_put(mm);
		if (visit.addr != ALL)
			continue;
		visit.slot++;
		visit.addr = 0;
	}
	if (visit.slot == WORKING_SET_SLOTS)
		end_visit(now_ns);
}

void working_set_visit_memory(u64 generation, u64 now_ns)
{
	if (!is_ready)
		prepare();
	if (!levels)
		return;
	if (visit.generation != generation) {
		visit.generation = generation;
		visit.is_on = false;
		visit.next_ns = now_ns + FIRST_VISIT_NS;
	}
	if (!visit.is_on && now_ns >= visit.next_ns)
		begin_visit(now_ns);
	if (visit.is_on)
		visit_some(now_ns);
}

bool working_set_copy_memory(struct working_set_memory *to)
{
	bool locked;
	unsigned long flags = snapshot_lock(&memory_lock, &locked);

	*to = shown;
	snapshot_unlock(&memory_lock, locked, flags);
	return to->ns && to->generation == pf_read_once(working_set_generation);
}
