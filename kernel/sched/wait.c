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

static void add(struct wait_queue *wq, struct waiter *waiter, struct task *task)
{
	unsigned long flags = spin_lock_irqsave(&wq->lock);

	waiter->task = task;
	if (list_empty(&waiter->node))
		list_add_tail(&waiter->node, &wq->waiters);
	spin_unlock_irqrestore(&wq->lock, flags);
}

void wait_queue_add(struct wait_queue *wq, struct waiter *waiter)
{
	add(wq, waiter, current);
}

void wait_queue_add_callback(struct wait_queue *wq, struct callback_waiter *waiter)
{
	add(wq, &waiter->waiter, NULL);
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

static void wake_first(struct wait_queue *wq)
{
	struct waiter *waiter = list_first_entry(&wq->waiters, struct waiter, node);

	ASSERT_HELD(&wq->lock);
	list_del(&waiter->node);
	if (likely(waiter->task))
		task_wake(waiter->task);
	else
		call_back(container_of(waiter, struct callback_waiter, waiter));
}

static void wake_all(struct wait_queue *wq)
{
	while (!list_empty(&wq->waiters))
		wake_first(wq);
}

/* Wakes all, except that exclusive waiters stay queued once one of them woke a task. */
static noinline void wake_once(struct wait_queue *wq)
{
	struct list_head *at = wq->waiters.next;
	bool has_woken = false;

	ASSERT_HELD(&wq->lock);
	while (at != &wq->waiters) {
		struct waiter *waiter = list_entry(at, struct waiter, node);
		struct callback_waiter *other =
			container_of(waiter, struct callback_waiter, waiter);
		bool exclusive = !waiter->task && other->exclusive;

		at = at->next;
		if (exclusive && has_woken)
			continue;
		list_del(&waiter->node);
		if (waiter->task)
			task_wake(waiter->task);
		else
			has_woken |= call_back(other) && exclusive;
	}
}

void wake_up(struct wait_queue *wq)
{
	unsigned long flags = spin_lock_irqsave(&wq->lock);

	while (!list_empty(&wq->waiters)) {
		if (unlikely(!list_first_entry(&wq->waiters, struct waiter, node)->task)) {
			wake_once(wq);
			break;
		}
		wake_first(wq);
	}
	spin_unlock_irqrestore(&wq->lock, flags);
}

void wake_up_all(struct wait_queue *wq)
{
	unsigned long flags = spin_lock_irqsave(&wq->lock);

	wake_all(wq);
	spin_unlock_irqrestore(&wq->lock, flags);
}

void wake_up_all_nested(struct wait_queue *wq)
{
	ASSERT_IRQS_OFF();
	spin_lock_ordered(&wq->lock);
	wake_all(wq);
	spin_unlock(&wq->lock);
}

bool wake_up_one(struct wait_queue *wq)
{
	unsigned long flags = spin_lock_irqsave(&wq->lock);
	bool any = !list_empty(&wq->waiters);

	if (any)
		wake_first(wq);
	spin_unlock_irqrestore(&wq->lock, flags);
	return any;
}
