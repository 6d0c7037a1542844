// SPDX-License-Identifier: BSD-2-Clause
#include <lego/timer.h>

#include <asm/processor.h>
#include <lego/bug.h>
#include <lego/percpu.h>
#include <lego/spinlock.h>
#include <lego/time.h>

/*
 * A sorted list per CPU. The tick takes what is due off the list, one by one, and calls it
 * without the lock, so that a handler may start timers. While a handler runs, ->running names
 * its timer for timer_cancel(); it is compared, never followed, because the handler may be the
 * timer's end.
 */

struct timer_queue {
	spinlock_t lock;
	struct list_head timers;
	struct timer *running;
	u64 next_expires_ns; /* of the first timer; read without the lock */
};

static struct timer_queue queues[CONFIG_NR_CPUS] = {
	[0 ... CONFIG_NR_CPUS - 1] = { .lock = SPINLOCK_INIT_AT(LOCK_PLACE("timer_queue")) },
};

void timer_setup(struct timer *timer, void (*fn)(struct timer *timer))
{
	list_init(&timer->node);
	timer->expires_ns = 0;
	timer->cpu = 0;
	timer->fn = fn;
}

static void update_next(struct timer_queue *queue)
{
	u64 next_ns = ~0ULL;

	if (!list_empty(&queue->timers))
		next_ns = list_first_entry(&queue->timers, struct timer, node)->expires_ns;
	WRITE_ONCE(queue->next_expires_ns, next_ns);
}

void timer_start(struct timer *timer, u64 expires_ns)
{
	unsigned long flags = local_irq_save();
	unsigned int cpu = smp_processor_id();
	struct timer_queue *queue = &queues[cpu];
	struct list_head *after;

	spin_lock(&queue->lock);
	if (!queue->timers.next)
		list_init(&queue->timers);
	BUG_ON(!list_empty(&timer->node));
	timer->cpu = cpu;
	timer->expires_ns = expires_ns;
	/* From the end: a later timer is usually due later, and equal ones keep their order. */
	for (after = queue->timers.prev; after != &queue->timers; after = after->prev) {
		if (list_entry(after, struct timer, node)->expires_ns <= expires_ns)
			break;
	}
	list_add(&timer->node, after);
	update_next(queue);
	spin_unlock_irqrestore(&queue->lock, flags);
}

void timer_cancel(struct timer *timer)
{
	struct timer_queue *queue = &queues[timer->cpu];

	for (;;) {
		unsigned long flags = spin_lock_irqsave(&queue->lock);
		bool running = queue->running == timer;

		if (!list_empty(&timer->node)) {
			list_del(&timer->node);
			update_next(queue);
		}
		spin_unlock_irqrestore(&queue->lock, flags);
		if (!running)
			return;
		cpu_relax();
	}
}

void timer_tick(void)
{
	struct timer_queue *queue = &queues[smp_processor_id()];
	u64 now = clock_monotonic_ns();

	if (!queue->timers.next || READ_ONCE(queue->next_expires_ns) > now)
		return;
	spin_lock(&queue->lock);
	while (!list_empty(&queue->timers)) {
		struct timer *timer = list_first_entry(&queue->timers, struct timer, node);

		if (timer->expires_ns > now)
			break;
		list_del(&timer->node);
		queue->running = timer;
		spin_unlock(&queue->lock);
		timer->fn(timer);
		spin_lock(&queue->lock);
		queue->running = NULL;
	}
	update_next(queue);
	spin_unlock(&queue->lock);
}
