// SPDX-License-Identifier: BSD-2-Clause
#include <lego/wait.h>

#include <lego/assert.h>
#include <lego/atomic.h>
#include <lego/sched.h>

/*
 * A waiter lives on its task's stack. A waker takes it off the queue and wakes the task under the
 * queue's lock, so finish_wait(), which always takes the lock, keeps the stack frame until then.
 */

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

void wait_queue_add(struct wait_queue *wq, struct waiter *waiter)
{
	unsigned long flags = spin_lock_irqsave(&wq->lock);

	waiter->task = current;
	if (list_empty(&waiter->node))
		list_add_tail(&waiter->node, &wq->waiters);
	spin_unlock_irqrestore(&wq->lock, flags);
}

void wait_queue_remove(struct wait_queue *wq, struct waiter *waiter)
{
	unsigned long flags = spin_lock_irqsave(&wq->lock);

	DEBUG_ASSERT(waiter->task == current);
	list_del(&waiter->node);
	spin_unlock_irqrestore(&wq->lock, flags);
}

static void wake_first(struct wait_queue *wq)
{
	struct waiter *waiter = list_first_entry(&wq->waiters, struct waiter, node);

	ASSERT_HELD(&wq->lock);
	list_del(&waiter->node);
	task_wake(waiter->task);
}

void wake_up_all(struct wait_queue *wq)
{
	unsigned long flags = spin_lock_irqsave(&wq->lock);

	while (!list_empty(&wq->waiters))
		wake_first(wq);
	spin_unlock_irqrestore(&wq->lock, flags);
}

void wake_up_one(struct wait_queue *wq)
{
	unsigned long flags = spin_lock_irqsave(&wq->lock);

	if (!list_empty(&wq->waiters))
		wake_first(wq);
	spin_unlock_irqrestore(&wq->lock, flags);
}
