// SPDX-License-Identifier: BSD-2-Clause
/*
 * Each CPU has a heap of timers, ordered by the TSC at which they are due. timer_start() sets the
 * CPU's timer interrupt if the new timer is the earliest. timer_run() takes the timers that are due
 * off the heap, one by one, and calls each without the lock, so that a handler may start timers.
 * After a number of them the interrupt ends, and comes again soon for the rest.
 * While a handler runs, ->running names its timer for timer_cancel(). It is compared, never
 * dereferenced: the handler may free the timer.
 *
 * Cancelling a timer leaves the interrupt as it is set; it will find nothing to do. Setting it
 * again would cost a write to the APIC in every system call that ends before its timeout.
 */
#include <lego/timer.h>

#include "timer_heap.h"
#include <asm/processor.h>
#include <asm/tick.h>
#include <lego/bug.h>
#include <lego/percpu.h>
#include <lego/profile.h>
#include <lego/smp.h>
#include <lego/spinlock.h>
#include <lego/time.h>

struct timer_queue {
	spinlock_t lock;
	struct timer_heap heap;
	struct timer *running;
	u64 next_cycles; /* the first timer's; the queue's CPU reads it without the lock */
};

static struct timer_queue queues[CONFIG_NR_CPUS] = {
	[0 ... CONFIG_NR_CPUS - 1] = { .lock = SPINLOCK_INIT_AT(LOCK_PLACE("timer_queue")),
				       .next_cycles = ~0ULL },
};

void timer_setup(struct timer *timer, void (*fn)(struct timer *timer))
{
	*timer = (struct timer){ .fn = fn };
}

static void update_next(struct timer_queue *queue)
{
	const struct timer *first = queue->heap.first;

	WRITE_ONCE(queue->next_cycles, first ? first->expires_cycles : ~0ULL);
}

static void dequeue(struct timer_queue *queue, struct timer *timer)
{
	timer_heap_remove(&queue->heap, timer);
	timer->queued = false;
	update_next(queue);
}

void timer_start(struct timer *timer, u64 expires_ns)
{
	u64 expires_cycles = ns_to_cycles_up(expires_ns);
	unsigned long flags = local_irq_save();
	unsigned int cpu = smp_processor_id();
	struct timer_queue *queue = &queues[cpu];

	spin_lock(&queue->lock);
	BUG_ON(timer->queued);
	timer->cpu = cpu;
	timer->queued = true;
	timer->expires_cycles = expires_cycles;
	timer_heap_add(&queue->heap, timer);
	update_next(queue);
	spin_unlock(&queue->lock);
	tick_interrupt_by(expires_cycles);
	local_irq_restore(flags);
}

void timer_cancel(struct timer *timer)
{
	struct timer_queue *queue = &queues[timer->cpu];

	for (;;) {
		unsigned long flags = spin_lock_irqsave(&queue->lock);
		bool running = queue->running == timer;

		if (timer->queued)
			dequeue(queue, timer);
		spin_unlock_irqrestore(&queue->lock, flags);
		if (!running)
			return;
		cpu_relax();
	}
}

void timer_cancel_everywhere(struct timer *timer)
{
	unsigned int cpu;

	timer_cancel(timer);
	for_each_online_cpu(cpu) {
		while (READ_ONCE(queues[cpu].running) == timer)
			cpu_relax();
	}
}

#define MAX_EXPIRED 16 /* in an interrupt: each takes up to 1,500 instructions */

void timer_run(u64 now_cycles)
{
	struct timer_queue *queue = &queues[smp_processor_id()];
	struct timer *timer;

	if (READ_ONCE(queue->next_cycles) > now_cycles)
		return;
	spin_lock(&queue->lock);
	for (int i = 0; i < MAX_EXPIRED; i++) {
		timer = queue->heap.first;
		if (!timer || timer->expires_cycles > now_cycles)
			break;
		dequeue(queue, timer);
		queue->running = timer;
		spin_unlock(&queue->lock);
		profile_trace(timer_expire_entry, timer, timer->fn, now_cycles);
		timer->fn(timer);
		profile_trace(timer_expire_exit, timer);
		spin_lock(&queue->lock);
		queue->running = NULL;
	}
	spin_unlock(&queue->lock);
}

u64 timer_next_cycles(void)
{
	return READ_ONCE(queues[smp_processor_id()].next_cycles);
}
