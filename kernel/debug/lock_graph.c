// SPDX-License-Identifier: BSD-2-Clause
/*
 * A bit for each pair of classes, and a list of the pairs with the places where they were first
 * seen. A known pair, which is the usual case, costs one load. A new pair is searched breadth first
 * for a path back, so that the shortest cycle is reported.
 *
 * The lock here is a raw word, because the graph cannot check its own lock.
 */

#include "lock_graph.h"

#include <asm/processor.h>
#include <lego/kernel.h>
#include <lego/string.h>

#define MAX_CLASSES 512
#define MAX_PAIRS   4096
#define NR_WORDS    (MAX_CLASSES / 64)

static const char *places[MAX_CLASSES] = { [LOCK_CLASS_IRQ] = "[interrupts]" };
static unsigned int nr_classes = LOCK_CLASS_IRQ + 1;
static u64 follows[MAX_CLASSES][NR_WORDS];
static struct lock_pair pairs[MAX_PAIRS];
static unsigned int nr_pairs;
static const char *overflow;
static bool overflow_told;
static bool locked; /* guards the variables above for writers */

static void lock(void)
{
	/* Pairs with the release in unlock(): sees the last holder's changes. */
	while (__atomic_exchange_n(&locked, true, __ATOMIC_ACQUIRE))
		cpu_relax();
}

static void unlock(void)
{
	smp_store_release(&locked, false);
}

/* Compares addresses first: two places are rarely equal strings. */
static unsigned int find_class(const char *place)
{
	/* Pairs with the release in add_class(): every class below nr_classes is complete. */
	unsigned int nr = smp_load_acquire(&nr_classes);

	for (unsigned int class = LOCK_CLASS_IRQ + 1; class < nr; class ++) {
		if (places[class] == place)
			return class;
	}
	for (unsigned int class = LOCK_CLASS_IRQ + 1; class < nr; class ++) {
		if (!strcmp(places[class], place))
			return class;
	}
	return 0;
}

static unsigned int add_class(const char *place)
{
	unsigned int class = find_class(place);

	if (class)
		return class;
	if (nr_classes == MAX_CLASSES) {
		overflow = "classes of locks";
		return 0;
	}
	class = nr_classes;
	places[class] = place;
	/* Pairs with the acquire in find_class(): publishes the class after its place is stored. */
	smp_store_release(&nr_classes, class + 1);
	return class;
}

unsigned int lock_class_of(struct lock_map *map)
{
	unsigned int class = READ_ONCE(map->class);

	if (likely(class))
		return class;
	class = find_class(map->place);
	if (!class) {
		lock();
		class = add_class(map->place);
		unlock();
	}
	WRITE_ONCE(map->class, class);
	return class;
}

const char *lock_class_place(unsigned int class)
{
	return places[class];
}

static bool is_known(unsigned int from, unsigned int to)
{
	return READ_ONCE(follows[from][to / 64]) >> to % 64 & 1;
}

static struct lock_pair find_pair(unsigned int from, unsigned int to)
{
	for (unsigned int i = 0; i < nr_pairs; i++) {
		if (pairs[i].from == from && pairs[i].to == to)
			return pairs[i];
	}
	return (struct lock_pair){ .from = from, .to = to };
}

/* Finds the shortest path between two classes. before[]: each class's predecessor. */
static bool search(unsigned int from, unsigned int to, u16 *before)
{
	static u16 queue[MAX_CLASSES];
	unsigned int head = 0, tail = 0;

	memset(before, 0, MAX_CLASSES * sizeof(*before));
	queue[tail++] = from;
	while (head < tail) {
		unsigned int at = queue[head++];

		for (unsigned int next = 1; next < nr_classes; next++) {
			if (next == from || before[next] || !is_known(at, next))
				continue;
			before[next] = at;
			if (next == to)
				return true;
			queue[tail++] = next;
		}
	}
	return false;
}

static void collect(unsigned int from, unsigned int to, const u16 *before, struct lock_chain *chain)
{
	unsigned int length = 0, i;

	for (unsigned int at = to; at != from; at = before[at])
		length++;
	chain->nr = min(length, MAX_CHAIN);
	i = length;
	for (unsigned int at = to; at != from; at = before[at]) {
		if (--i < MAX_CHAIN)
			chain->pairs[i] = find_pair(before[at], at);
	}
}

bool lock_graph_add(const struct lock_pair *pair, struct lock_chain *chain)
{
	static u16 before[MAX_CLASSES];
	bool circle = false;

	if (likely(is_known(pair->from, pair->to)))
		return false;
	lock();
	if (!is_known(pair->from, pair->to)) {
		circle = search(pair->to, pair->from, before);
		if (circle)
			collect(pair->to, pair->from, before, chain);
		WRITE_ONCE(follows[pair->from][pair->to / 64],
			   follows[pair->from][pair->to / 64] | BIT(pair->to % 64));
		if (nr_pairs < MAX_PAIRS)
			pairs[nr_pairs++] = *pair;
		else
			overflow = "pairs of locks";
	}
	unlock();
	return circle;
}

const char *lock_graph_overflow(void)
{
	const char *what = NULL;

	if (likely(!READ_ONCE(overflow)))
		return NULL;
	lock();
	if (!overflow_told) {
		overflow_told = true;
		what = overflow;
	}
	unlock();
	return what;
}
