/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_TIMER_H
#define LEGO_TIMER_H

/* One-shot kernel timers, one sorted queue per CPU, run by that CPU's tick: late by up to one tick.
 */

#include <lego/list.h>

struct timer {
	struct list_head node;
	u64 expires_ns; /* clock_monotonic_ns() */
	unsigned int cpu;
	void (*fn)(struct timer *timer); /* interrupt context */
};

void timer_setup(struct timer *timer, void (*fn)(struct timer *timer));

/* Queue on this CPU. The timer must not be queued. Any context but NMI. */
void timer_start(struct timer *timer, u64 expires_ns);

/* Dequeue and wait for a handler running on another CPU. Not from the handler itself. */
void timer_cancel(struct timer *timer);

/* Run what is due on this CPU. From the tick, interrupts off. */
void timer_tick(void);

#endif
