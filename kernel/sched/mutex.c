// SPDX-License-Identifier: BSD-2-Clause
#include <lego/mutex.h>

#include <lego/atomic.h>
#include <lego/bug.h>
#include <lego/sched.h>

/*
 * A free mutex is taken with one cmpxchg. Unlocking hands the mutex to the first waiter, so that nobody
 * overtakes: owner is never NULL while someone waits.
 */

void mutex_init(struct mutex *mutex)
{
	mutex->owner = NULL;
	wait_queue_init(&mutex->wq);
}

bool mutex_trylock(struct mutex *mutex)
{
	return cmpxchg(&mutex->owner, NULL, current) == NULL;
}

void mutex_lock(struct mutex *mutex)
{
	struct waiter waiter = { .task = current };
	unsigned long flags;

	if (likely(mutex_trylock(mutex)))
		return;
	BUG_ON(READ_ONCE(mutex->owner) == current);
	flags = spin_lock_irqsave(&mutex->wq.lock);
	if (mutex_trylock(mutex)) {
		spin_unlock_irqrestore(&mutex->wq.lock, flags);
		return;
	}
	list_add_tail(&waiter.node, &mutex->wq.waiters);
	WRITE_ONCE(current->state, TASK_UNINTERRUPTIBLE);
	spin_unlock_irqrestore(&mutex->wq.lock, flags);
	/* Pairs with the release in mutex_unlock(). */
	while (smp_load_acquire(&mutex->owner) != current) {
		schedule();
		(void)xchg(&current->state, TASK_UNINTERRUPTIBLE);
	}
	WRITE_ONCE(current->state, TASK_RUNNING);
	/* The waker may still use the waiter and the task: it is done when it drops the lock. */
	flags = spin_lock_irqsave(&mutex->wq.lock);
	spin_unlock_irqrestore(&mutex->wq.lock, flags);
}

void mutex_unlock(struct mutex *mutex)
{
	unsigned long flags = spin_lock_irqsave(&mutex->wq.lock);
	struct task *next = NULL;

	BUG_ON(mutex->owner != current);
	if (!list_empty(&mutex->wq.waiters)) {
		struct waiter *waiter = list_first_entry(&mutex->wq.waiters, struct waiter, node);

		list_del(&waiter->node);
		next = waiter->task;
	}
	/* Pairs with the acquire in mutex_lock(). */
	smp_store_release(&mutex->owner, next);
	if (next)
		task_wake(next);
	spin_unlock_irqrestore(&mutex->wq.lock, flags);
}
