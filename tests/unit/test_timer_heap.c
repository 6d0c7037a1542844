// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests kernel/time/timer_heap.c: timers leave in the order of their times, equal ones in the order
 * they were added, whichever others are removed meanwhile; and the cost does not grow with their
 * number. Cost is counted in basic blocks (blocks.h).
 */

#include "unit_test.h"

#include "blocks.h"
#include "../../kernel/time/timer_heap.h"
#include <lego/kernel.h>

#define MAX_TIMERS 100000

/* Limits in basic blocks: for one step along a path, and for the rest of an operation. */
#define BLOCKS_PER_STEP 24
#define BLOCKS_MORE	40

static struct timer timers[MAX_TIMERS];
static struct timer_heap heap;

static int set_up(void **state)
{
	for (u64 n = 0; n < MAX_TIMERS; n++)
		timers[n].queued = false;
	heap = (struct timer_heap){ 0 };
	random_state = 1;
	return 0;
}

/*
 * Checks the links and ranks of the queued ones of the first nr timers, and that there are nr_in.
 * Not recursive, since a path may be very long.
 */
static void check_heap(u64 nr, u64 nr_in)
{
	for (u64 n = 0; n < nr; n++) {
		const struct timer *timer = &timers[n], *parent = timer->parent;
		u32 left = timer->left ? timer->left->rank : 0;
		u32 right = timer->right ? timer->right->rank : 0;

		if (!timer->queued)
			continue;
		nr_in--;
		assert_true(left >= right);
		assert_int_equal(timer->rank, right + 1);
		assert_int_equal(timer == heap.first, !parent);
		if (parent) {
			assert_true(parent->left == timer || parent->right == timer);
			assert_true(parent->expires_cycles <= timer->expires_cycles);
		}
	}
	assert_int_equal(nr_in, 0);
}

static void add(u64 n, u64 expires_cycles)
{
	timers[n].expires_cycles = expires_cycles;
	timers[n].queued = true;
	timer_heap_add(&heap, &timers[n]);
}

static void take(struct timer *timer)
{
	timer_heap_remove(&heap, timer);
	timer->queued = false;
}

static u64 take_first(void)
{
	struct timer *first = heap.first;

	take(first);
	return first - timers;
}

#define TEST(name) HOST_TEST_WITH(name, set_up, NULL)

TEST(equal_times_keep_their_order)
{
	for (u64 n = 0; n < 200; n++)
		add(n, n % 3);
	for (u64 expires = 0; expires < 3; expires++) {
		for (u64 n = expires; n < 200; n += 3)
			assert_int_equal(take_first(), n);
	}
	assert_null(heap.first);
}

/* Compares the heap with a search for the earliest of all its timers. */
TEST(random_changes)
{
	const u64 nr = 60;
	u64 nr_in = 0;

	for (int round = 0; round < 20000; round++) {
		u64 n = next_random(nr);
		const struct timer *earliest = NULL;

		if (timers[n].queued) {
			take(&timers[n]);
			nr_in--;
		} else {
			add(n, next_random(40));
			nr_in++;
		}
		check_heap(nr, nr_in);
		for (u64 i = 0; i < nr; i++) {
			if (timers[i].queued &&
			    (!earliest || timers[i].expires_cycles < earliest->expires_cycles ||
			     (timers[i].expires_cycles == earliest->expires_cycles &&
			      timers[i].order < earliest->order)))
				earliest = &timers[i];
		}
		assert_ptr_equal(heap.first, earliest);
	}
}

static u64 log2_up(u64 n)
{
	u64 bits = 0;

	while (n >> bits)
		bits++;
	return bits;
}

/* Returns the limit in blocks for an operation with nr timers: two merged paths and the way up. */
static u64 limit(u64 nr)
{
	return BLOCKS_MORE + BLOCKS_PER_STEP * log2_up(nr);
}

enum times {
	RISING,
	FALLING,
	RANDOM,
	NR_TIMES,
};

static u64 time_of(enum times times, u64 n, u64 nr)
{
	switch (times) {
	case RISING:
		return n;
	case FALLING:
		return nr - n;
	default:
		return next_random(1ull << 30);
	}
}

/* Returns the highest cost of any operation with nr timers in the heap. */
static u64 worst_cost(enum times times, u64 nr)
{
	u64 worst = 0, last = 0;

	set_up(NULL);
	for (u64 n = 0; n < nr; n++) {
		u64 expires_cycles = time_of(times, n, nr);

		nr_blocks = 0;
		add(n, expires_cycles);
		worst = max(worst, nr_blocks);
	}
	for (int i = 0; i < 1000; i++) {
		u64 n = next_random(nr), expires_cycles = time_of(times, n, nr);

		nr_blocks = 0;
		take(&timers[n]);
		worst = max(worst, nr_blocks);
		nr_blocks = 0;
		add(n, expires_cycles);
		worst = max(worst, nr_blocks);
	}
	check_heap(nr, nr);
	while (heap.first) {
		assert_true(heap.first->expires_cycles >= last);
		last = heap.first->expires_cycles;
		nr_blocks = 0;
		take_first();
		worst = max(worst, nr_blocks);
	}
	return worst;
}

HOST_TEST(cost_is_logarithmic)
{
	static const u64 nrs[] = { 100, 10000, MAX_TIMERS };

	for (enum times times = RISING; times < NR_TIMES; times++) {
		for (size_t i = 0; i < ARRAY_SIZE(nrs); i++) {
			u64 worst = worst_cost(times, nrs[i]);

			/* At least 10, to show that blocks are counted. */
			assert_in_range(worst, 10, limit(nrs[i]));
		}
	}
}
