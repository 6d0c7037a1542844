// SPDX-License-Identifier: BSD-2-Clause
#include <lego/mutex.h>

#include <lego/atomic.h>
#include <lego/bug.h>
#include <lego/sched.h>

/*
 * A free mutex is taken with one cmpxchg, by whoever comes first: handing it to the first sleeper
 * would leave it idle for a whole context switch each time.
 *
 * Unlocking clears ->owner and then looks for sleepers; a sleeper queues itself and then tries to
 * take the mutex. Each has a full barrier in between, so one of them sees the other.
 */

void mutex_init(struct mutex *mutex)
{
	mutex->owner = NULL;
	wait_queue_init(&mutex->wq);
}

bool mutex_trylock(struct mutex *mutex)
{
	return !READ_ONCE(mutex->owner) && cmpxchg(&mutex->owner, NULL, current) == NULL;
}

void mutex_lock(struct mutex *mutex)
{
	if (likely(mutex_trylock(mutex)))
		return;
	BUG_ON(READ_ONCE(mutex->owner) == current);
	wait_event(&mutex->wq, mutex_trylock(mutex));
}

void mutex_unlock(struct mutex *mutex)
{
	BUG_ON(mutex->owner != current);
	/* Full barrier: pairs with the xchg of state in prepare_wait(). */
	(void)xchg(&mutex->owner, NULL);
	if (unlikely(!list_empty(&mutex->wq.waiters)))
		wake_up_one(&mutex->wq);
}
