// SPDX-License-Identifier: BSD-2-Clause
/*
 * Wait queues. A waiter is on its task's stack. A waker removes it from the queue and wakes the
 * task with the queue's lock held. finish_wait() always takes that lock, so the waiter's stack
 * frame stays valid until the waker has finished. A waker with interrupts off leaves many waiters
 * to a timer, whose interrupts wake some each.
 */

#include <lego/wait.h>

#include <lego/assert.h>
#include <lego/atomic.h>
#include <lego/sched.h>
#include <lego/time.h>

#define WAKE_STEP 32 /* waiters that are woken with interrupts off */

void wait_queue_reset(struct wait_queue *wq, const char *name)
{
	wq->name = name + (*name == '&');
	spin_lock_init(&wq->lock);
	list_init(&wq->waiters);
}

static bool is_exclusive_callback(const struct waiter *waiter)
{
	return waiter->exclusive && !waiter->task;
}

/* Returns the place behind which the exclusive callbacks are. */
static struct list_head *before_callbacks(struct wait_queue *wq)
{
	struct list_head *at = wq->waiters.prev;

	while (at != &wq->waiters && is_exclusive_callback(list_entry(at, struct waiter, node)))
		at = at->prev;
	return at;
}

static bool goes_before(const struct waiter *waiter, const struct waiter *last)
{
	return waiter->exclusive ? waiter->task && is_exclusive_callback(last) : last->exclusive;
}

static noinline void queue_before_others(struct wait_queue *wq, struct waiter *waiter)
{
	list_add(&waiter->node, waiter->exclusive ? before_callbacks(wq) : &wq->waiters);
}

/*
 * Exclusive waiters come last, so that a wake-up that has woken one of them is done; behind them,
 * exclusive callbacks, which may have no use for what has come.
 */
static __always_inline void queue_waiter(struct wait_queue *wq, struct waiter *waiter)
{
	struct list_head *waiters = &wq->waiters;

	if (!list_empty(&waiter->node))
		return;
	if (unlikely(!list_empty(waiters) &&
		     goes_before(waiter, list_last_entry(waiters, struct waiter, node))))
		queue_before_others(wq, waiter);
	else
		list_add_tail(&waiter->node, waiters);
}

void prepare_wait(struct wait_queue *wq, struct waiter *waiter, int state)
{
	unsigned long flags;

	might_sleep();
	flags = spin_lock_irqsave(&wq->lock);
	waiter->task = current;
	queue_waiter(wq, waiter);
	task_waits_for(wq->name, 0);
	/* Full barrier: the state is visible before the caller reads its condition. */
	(void)xchg(&current->state, state);
	spin_unlock_irqrestore(&wq->lock, flags);
}

void finish_wait(struct wait_queue *wq, struct waiter *waiter)
{
	unsigned long flags;

	DEBUG_ASSERT(waiter->task == current);
	WRITE_ONCE(current->state, TASK_RUNNING);
	flags = spin_lock_irqsave(&wq->lock);
	list_del(&waiter->node);
	spin_unlock_irqrestore(&wq->lock, flags);
}

static void add_waiter(struct wait_queue *wq, struct waiter *waiter, struct task *task)
{
	unsigned long flags = spin_lock_irqsave(&wq->lock);

	waiter->task = task;
	queue_waiter(wq, waiter);
	spin_unlock_irqrestore(&wq->lock, flags);
}

void wait_queue_add(struct wait_queue *wq, struct waiter *waiter)
{
	add_waiter(wq, waiter, current);
}

void wait_queue_add_callback(struct wait_queue *wq, struct callback_waiter *waiter)
{
	add_waiter(wq, &waiter->waiter, NULL);
}

void wait_queue_remove(struct wait_queue *wq, struct waiter *waiter)
{
	unsigned long flags = spin_lock_irqsave(&wq->lock);

	DEBUG_ASSERT(!waiter->task || waiter->task == current);
	list_del(&waiter->node);
	spin_unlock_irqrestore(&wq->lock, flags);
}

static noinline bool call_back(struct waiter *waiter)
{
	struct callback_waiter *callback = container_of(waiter, struct callback_waiter, waiter);

	return callback->woken(callback);
}

/* Wakes the waiter. Returns whether that was an exclusive one that woke a task. */
static bool wake_waiter(struct waiter *waiter)
{
	bool exclusive = waiter->exclusive;

	list_del(&waiter->node);
	if (unlikely(!waiter->task))
		return call_back(waiter) && exclusive;
	task_wake(waiter->task);
	return exclusive;
}

static struct waiter *first_of(const struct list_head *waiters)
{
	return list_first_entry(waiters, struct waiter, node);
}

/* Returns whether a waiter must be woken. If keeps, the exclusive ones stay. */
static bool has_more(const struct list_head *waiters, bool keeps)
{
	return !list_empty(waiters) && !(keeps && first_of(waiters)->exclusive);
}

/*
 * Wakes up to nr waiters of a list that was the queue's. If it returns true, there are more, else
 * those that stay are back in the queue.
 */
static bool wake_some(struct wait_queue *wq, struct list_head *waiters, unsigned int nr, bool all,
		      bool *keeps)
{
	ASSERT_HELD(&wq->lock);
	while (has_more(waiters, *keeps)) {
		if (!nr--)
			return true;
		*keeps |= wake_waiter(first_of(waiters)) && !all;
	}
	list_append(waiters, &wq->waiters);
	return false;
}

/*
 * Wakes many waiters in steps. They are on a list of their own meanwhile, so that new waiters do
 * not prolong this. They may leave it as they would leave the queue, with the queue's lock held. A
 * wake_up_all() meanwhile is for them, too.
 */
static noinline void wake_many(struct wait_queue *wq, unsigned long flags, bool all, bool keeps)
{
	unsigned int step = irqs_disabled_flags(flags) ? ~0u : WAKE_STEP;
	struct list_head waiters;
	u32 nr_alls = wq->nr_alls;

	list_splice(&wq->waiters, &waiters);
	while (wake_some(wq, &waiters, step, all, &keeps)) {
		spin_unlock_irqrestore(&wq->lock, flags);
		flags = spin_lock_irqsave(&wq->lock);
		if (wq->nr_alls != nr_alls) {
			all = true;
			keeps = false;
		}
	}
	spin_unlock_irqrestore(&wq->lock, flags);
}

static __always_inline void wake(struct wait_queue *wq, bool all)
{
	unsigned long flags = spin_lock_irqsave(&wq->lock);
	bool keeps = false;

	wq->nr_alls += all;
	if (!list_empty(&wq->waiters))
		keeps = wake_waiter(first_of(&wq->waiters)) && !all;
	if (unlikely(has_more(&wq->waiters, keeps)))
		wake_many(wq, flags, all, keeps);
	else
		spin_unlock_irqrestore(&wq->lock, flags);
}

void wake_up(struct wait_queue *wq)
{
	wake(wq, false);
}

void wake_up_all(struct wait_queue *wq)
{
	wake(wq, true);
}

bool wake_up_one(struct wait_queue *wq)
{
	unsigned long flags = spin_lock_irqsave(&wq->lock);
	bool any = !list_empty(&wq->waiters);

	if (any)
		wake_waiter(first_of(&wq->waiters));
	spin_unlock_irqrestore(&wq->lock, flags);
	return any;
}

void wake_up_exclusive(struct wait_queue *wq)
{
	unsigned long flags = spin_lock_irqsave(&wq->lock);
	struct list_head *at = before_callbacks(wq);
	struct waiter *last = list_entry(at, struct waiter, node);

	if (at == &wq->waiters || !last->exclusive || !wake_waiter(last)) {
		do {
			last = list_last_entry(&wq->waiters, struct waiter, node);
		} while (!list_empty(&wq->waiters) && last->exclusive && !wake_waiter(last));
	}
	spin_unlock_irqrestore(&wq->lock, flags);
}

void wake_timer_expired(struct timer *timer)
{
	struct wake_timer *wake = container_of(timer, struct wake_timer, timer);
	unsigned long flags = spin_lock_irqsave(&wake->wq->lock);

	wake->runs = wake_some(wake->wq, &wake->rest, WAKE_STEP, wake->all, &wake->keeps);
	if (wake->runs)
		timer_start(timer, clock_monotonic_ns());
	spin_unlock_irqrestore(&wake->wq->lock, flags);
}

void wake_timer_init(struct wake_timer *wake, struct wait_queue *wq)
{
	*wake = (struct wake_timer){ .wq = wq };
	list_init(&wake->rest);
	timer_setup(&wake->timer, wake_timer_expired);
}

void wake_timer_end(struct wake_timer *wake)
{
	timer_cancel_everywhere(&wake->timer);
	DEBUG_ASSERT(list_empty(&wake->rest));
}

/* If some waiters are left from an earlier call, all are woken. */
static void wake_in_steps(struct wake_timer *wake, bool all)
{
	struct list_head *waiters = &wake->wq->waiters;
	bool keeps;

	ASSERT_HELD(&wake->wq->lock);
	wake->all |= all;
	wake->keeps &= !all;
	if (list_empty(waiters))
		return;
	keeps = wake_waiter(first_of(waiters)) && !all;
	if (likely(!has_more(waiters, keeps)))
		return;
	list_append(waiters, &wake->rest);
	wake->all = all || wake->runs;
	wake->keeps = keeps && !wake->runs;
	if (!wake->runs)
		timer_start(&wake->timer, clock_monotonic_ns());
	wake->runs = true;
}

void wake_up_in_steps(struct wake_timer *wake, bool all)
{
	unsigned long flags = spin_lock_irqsave(&wake->wq->lock);

	wake_in_steps(wake, all);
	spin_unlock_irqrestore(&wake->wq->lock, flags);
}

void wake_up_in_steps_nested(struct wake_timer *wake)
{
	ASSERT_IRQS_OFF();
	spin_lock_ordered(&wake->wq->lock);
	wake_in_steps(wake, true);
	spin_unlock(&wake->wq->lock);
}
