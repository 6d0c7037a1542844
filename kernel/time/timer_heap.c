// SPDX-License-Identifier: BSD-2-Clause
/*
 * A leftist heap: a binary tree in which no timer is due before its parent. A node's rank is the
 * length of the path down to the nearest missing child; it is never lower on the left than on the
 * right. So the path that goes right at every step visits at most log2(n + 1) timers.
 *
 * Both operations merge two heaps along these paths: adding a timer merges it with the heap,
 * removing one merges its two children. Both cost O(log n). The timers themselves are the nodes, so
 * nothing is allocated.
 */
#include "timer_heap.h"

#include <lego/kernel.h>

static bool is_before(const struct timer *a, const struct timer *b)
{
	if (a->expires_cycles != b->expires_cycles)
		return a->expires_cycles < b->expires_cycles;
	return a->order < b->order;
}

static u32 rank_of(const struct timer *timer)
{
	return timer ? timer->rank : 0;
}

/* Puts the child of higher rank on the left. Returns whether the timer's own rank has changed. */
static bool fix_rank(struct timer *timer)
{
	u32 old = timer->rank;

	if (rank_of(timer->left) < rank_of(timer->right)) {
		struct timer *left = timer->left;

		timer->left = timer->right;
		timer->right = left;
	}
	timer->rank = rank_of(timer->right) + 1;
	return timer->rank != old;
}

/* Merges two heaps, either of which may be empty. Returns the first timer, now below `above`. */
static struct timer *merge_heaps(struct timer *a, struct timer *b, struct timer *above)
{
	struct timer *first = NULL, *parent = above, **link = &first;

	while (a && b) {
		struct timer *next = is_before(b, a) ? b : a;

		if (next == b)
			b = a;
		a = next->right;
		*link = next;
		next->parent = parent;
		parent = next;
		link = &next->right;
	}
	if (!a)
		a = b;
	*link = a;
	if (a)
		a->parent = parent;
	for (; parent != above; parent = parent->parent)
		fix_rank(parent);
	return first;
}

void timer_heap_add(struct timer_heap *heap, struct timer *timer)
{
	timer->left = NULL;
	timer->right = NULL;
	timer->rank = 1;
	timer->order = heap->nr_added++;
	heap->first = merge_heaps(heap->first, timer, NULL);
}

void timer_heap_remove(struct timer_heap *heap, struct timer *timer)
{
	struct timer *parent = timer->parent;
	struct timer *child = merge_heaps(timer->left, timer->right, parent);

	if (!parent)
		heap->first = child;
	else if (parent->left == timer)
		parent->left = child;
	else
		parent->right = child;
	/* If a rank has not changed, those above have not changed either. */
	while (parent && fix_rank(parent))
		parent = parent->parent;
}
