/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_TIMER_H
#define LEGO_TIMER_H

/*
 * One-shot kernel timers. Each CPU has a queue, and runs the timers that it started in its timer
 * interrupt, which is set for the first of them. A timer never runs early. It runs late only if
 * interrupts are off when it is due.
 */

#include <lego/types.h>

struct timer {
	void (*fn)(struct timer *timer); /* interrupt context */
	unsigned int cpu;
	bool queued;
	/* Private to the queue (kernel/time/timer_heap.c). */
	u32 rank;
	u64 expires_cycles; /* TSC */
	u64 order;
	struct timer *parent, *left, *right;
};

void timer_setup(struct timer *timer, void (*fn)(struct timer *timer));

/*
 * Queues the timer on this CPU, to run when clock_monotonic_ns() has reached expires_ns. The timer
 * must not be queued already. Any context but NMI.
 */
void timer_start(struct timer *timer, u64 expires_ns);

/*
 * Dequeues the timer, and waits for its handler if that is running on another CPU. Must not be
 * called by the handler itself.
 */
void timer_cancel(struct timer *timer);

/*
 * Does the same for a timer that other code than its handler may have started again while the
 * handler ran. Looks at every CPU.
 */
void timer_cancel_everywhere(struct timer *timer);

/*
 * Runs this CPU's timers that were due at now_cycles (TSC). Called from the timer interrupt,
 * interrupts off.
 */
void timer_run(u64 now_cycles);

/* Returns the TSC at which this CPU's first timer is due, or ~0 without a timer. Interrupts off. */
u64 timer_next_cycles(void);

#endif
