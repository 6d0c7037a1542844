// SPDX-License-Identifier: BSD-2-Clause
/*
 * Wait queues. A waiter is on its task's stack. A waker removes it from the queue and wakes the
 * task with the queue's lock held. finish_wait() always takes that lock, so the waiter's stack
 * frame stays valid until the waker has finished.
 */

#include <lego/wait.h>

#include <lego/assert.h>
#include <lego/atomic.h>
#include <lego/sched.h>

#define WAKE_STEP 32 /* waiters that are woken with interrupts off */

void wait_queue_reset(struct wait_queue *wq, const char *name)
{
	wq->name = name + (*name == '&');
	spin_lock_init(&wq->lock);
	list_init(&wq->waiters);
}

void prepare_wait(struct wait_queue *wq, struct waiter *waiter, int state)
{
	unsigned long flags;

	might_sleep();
	flags = spin_lock_irqsave(&wq->lock);
	waiter->task = current;
	if (list_empty(&waiter->node))
		list_add_tail(&waiter->node, &wq->waiters);
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
	if (list_empty(&waiter->node))
		list_add_tail(&waiter->node, &wq->waiters);
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

static noinline bool call_back(struct callback_waiter *waiter)
{
	return waiter->woken(waiter);
}

static struct callback_waiter *callback_of(struct waiter *waiter)
{
	return container_of(waiter, struct callback_waiter, waiter);
}

static bool is_exclusive(struct waiter *waiter)
{
	return !waiter->task && callback_of(waiter)->exclusive;
}

/* Wakes the first waiter. Returns whether that was an exclusive one that woke a task. */
static bool wake_first(struct list_head *waiters)
{
	struct waiter *waiter = list_first_entry(waiters, struct waiter, node);
	bool exclusive;

	list_del(&waiter->node);
	if (likely(waiter->task)) {
		task_wake(waiter->task);
		return false;
	}
	exclusive = is_exclusive(waiter);
	return call_back(callback_of(waiter)) && exclusive;
}

/*
 * Wakes many waiters in steps. They are on lists of their own meanwhile, so that new waiters do not
 * prolong this. They may leave those as they would leave the queue, with the queue's lock held. If
 * keeps, exclusive waiters stay queued.
 */
static noinline void wake_many(struct wait_queue *wq, unsigned long flags, bool all, bool keeps)
{
	unsigned int step = irqs_disabled_flags(flags) ? ~0u : WAKE_STEP;
	struct list_head waiters, kept = LIST_HEAD_INIT(kept);

	ASSERT_HELD(&wq->lock);
	list_splice(&wq->waiters, &waiters);
	for (unsigned int nr = 1; !list_empty(&waiters); nr++) {
		struct waiter *first = list_first_entry(&waiters, struct waiter, node);

		if (keeps && is_exclusive(first)) {
			list_del(&first->node);
			list_add_tail(&first->node, &kept);
		} else {
			keeps |= wake_first(&waiters) && !all;
		}
		if (nr % step == 0) {
			spin_unlock_irqrestore(&wq->lock, flags);
			flags = spin_lock_irqsave(&wq->lock);
		}
	}
	list_prepend(&kept, &wq->waiters);
	spin_unlock_irqrestore(&wq->lock, flags);
}

static __always_inline void wake(struct wait_queue *wq, bool all)
{
	unsigned long flags = spin_lock_irqsave(&wq->lock);
	bool keeps = false;

	if (!list_empty(&wq->waiters))
		keeps = wake_first(&wq->waiters) && !all;
	if (unlikely(!list_empty(&wq->waiters)))
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

void wake_up_all_nested(struct wait_queue *wq)
{
	ASSERT_IRQS_OFF();
	spin_lock_ordered(&wq->lock);
	while (!list_empty(&wq->waiters))
		wake_first(&wq->waiters);
	spin_unlock(&wq->lock);
}

bool wake_up_one(struct wait_queue *wq)
{
	unsigned long flags = spin_lock_irqsave(&wq->lock);
	bool any = !list_empty(&wq->waiters);

	if (any)
		wake_first(&wq->waiters);
	spin_unlock_irqrestore(&wq->lock, flags);
	return any;
}
