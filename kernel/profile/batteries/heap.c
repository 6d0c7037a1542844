// SPDX-License-Identifier: BSD-2-Clause
/*
 * A heap without locks. New blocks are cut from an arena, by moving its end. Freed blocks wait in a
 * list for blocks of their size; they are never merged or split. There are four sizes for each
 * power of two, so a block is at most a quarter larger than asked for, and a header of 16 bytes.
 */

#include "heap.h"

#include "../base.h"

#define GRANULE	   16
#define NR_CLASSES 128

struct block {
	unsigned int class, next; /* next: as in a list */
	char padding[GRANULE - 8];
	char memory[];
};

static struct {
	char *memory;
	unsigned long nr_granules, nr_used;
	/*
	 * The first block of each list: the granule's number, counted from 1, in the lower half; 0:
	 * none. The upper half changes with each change of the list. So a CPU that is about to take
	 * a block notices that the block has been taken and freed again meanwhile.
	 */
	unsigned long lists[NR_CLASSES];
} heap;

void battery_heap_init(void *memory, size_t size)
{
	unsigned long skip = -(unsigned long)memory % GRANULE;

	heap.memory = (char *)memory + skip;
	heap.nr_granules = size < skip ? 0 : (size - skip) / GRANULE;
}

/* Rounds up a number of granules, at least 2, to a size of blocks, and returns its class. */
static unsigned int round_up(unsigned long *nr)
{
	unsigned int shift, quarters;

	if (*nr <= 4)
		return *nr;
	shift = pf_floor_log2(*nr - 1) - 2;
	quarters = ((*nr - 1) >> shift) + 1; /* 5 to 8 */
	*nr = (unsigned long)quarters << shift;
	return 4 * shift + quarters;
}

static struct block *block_at(unsigned int number)
{
	return (struct block *)(heap.memory + (number - 1ul) * GRANULE);
}

/* Changes the first block of a list, if it is still the same. */
static _Bool change_first(unsigned long *list, unsigned long *old, unsigned int number)
{
	unsigned long new = ((*old >> 32) + 1) << 32 | number;

	return __atomic_compare_exchange_n(list, old, new, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static struct block *take_freed(unsigned long *list)
{
	unsigned long first = pf_load_acquire(list);
	struct block *block;

	do {
		if (!(unsigned int)first)
			return NULL;
		block = block_at(first);
	} while (!change_first(list, &first, pf_read_once(block->next)));
	return block;
}

static struct block *take_new(unsigned long nr)
{
	unsigned long used = pf_read_once(heap.nr_used);

	do {
		if (nr > heap.nr_granules - used)
			return NULL;
	} while (!__atomic_compare_exchange_n(&heap.nr_used, &used, used + nr, 0, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return (struct block *)(heap.memory + used * GRANULE);
}

void *battery_zalloc(size_t size)
{
	unsigned long nr = size / GRANULE + (size % GRANULE != 0) + 1;
	struct block *block;
	unsigned int class;

	nr = pf_max(nr, 2ul);
	if (nr > heap.nr_granules)
		return NULL;
	class = round_up(&nr);
	block = take_freed(&heap.lists[class]);
	if (!block)
		block = take_new(nr);
	if (!block)
		return NULL;
	block->class = class;
	__builtin_memset(block->memory, 0, (nr - 1) * GRANULE);
	return block->memory;
}

void battery_free(void *ptr)
{
	struct block *block;
	unsigned long *list, first;

	if (!ptr)
		return;
	block = pf_container_of(ptr, struct block, memory);
	list = &heap.lists[block->class];
	first = pf_read_once(*list);
	do {
		pf_write_once(block->next, (unsigned int)first);
	} while (!change_first(list, &first, ((char *)block - heap.memory) / GRANULE + 1));
}
