/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TIMER_HEAP_H
#define TIMER_HEAP_H

/* The timers of one CPU, the earliest first. The caller holds the queue's lock. */

#include <lego/timer.h>

struct timer_heap {
	struct timer *first;
	u64 nr_added; /* orders timers that are due at the same time by when they were added */
};

/* Adds a timer whose expires_cycles is set. */
void timer_heap_add(struct timer_heap *heap, struct timer *timer);

/* Removes a timer that is in the heap, whether it is the first or not. */
void timer_heap_remove(struct timer_heap *heap, struct timer *timer);

#endif
