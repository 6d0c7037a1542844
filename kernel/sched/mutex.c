// SPDX-License-Identifier: BSD-2-Clause
/*
 * Mutexes. The first thread that comes takes a free mutex, with one cmpxchg. Handing the mutex to
 * the first sleeper instead would leave it unused for a whole context switch each time.
 *
 * The unlocking thread clears ->owner and then looks for sleepers. A sleeper queues itself and then
 * tries to take the mutex. Each has a full barrier in between, so at least one of them sees the
 * other. Without the barriers, a sleeper could miss its wake-up.
 */

#include <lego/mutex.h>

#include <lego/assert.h>
#include <lego/atomic.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/sched.h>

static bool mutex_take(struct mutex *mutex)
{
	return !READ_ONCE(mutex->owner) && cmpxchg(&mutex->owner, NULL, current) == NULL;
}

bool mutex_trylock(struct mutex *mutex)
{
	ASSERT_PROCESS_CONTEXT();
	if (!mutex_take(mutex))
		return false;
	lock_check_acquire(&mutex->map, LOCK_SLEEP | LOCK_TRY, RETURN_ADDRESS());
	return true;
}

static void lock_mutex(struct mutex *mutex)
{
	if (likely(mutex_take(mutex)))
		return;
	BUG_ON(READ_ONCE(mutex->owner) == current);
	profile_trace(contention_begin, mutex, PROFILE_LOCK_MUTEX);
	wait_event(&mutex->wq, mutex_take(mutex));
	profile_trace(contention_end, mutex, 0);
}

void mutex_lock(struct mutex *mutex)
{
	might_sleep();
	lock_check_acquire(&mutex->map, LOCK_SLEEP, RETURN_ADDRESS());
	lock_mutex(mutex);
}

int mutex_lock_killable(struct mutex *mutex)
{
	int error = 0;

	might_sleep();
	lock_check_acquire(&mutex->map, LOCK_SLEEP, RETURN_ADDRESS());
	if (unlikely(!mutex_take(mutex))) {
		BUG_ON(READ_ONCE(mutex->owner) == current);
		profile_trace(contention_begin, mutex, PROFILE_LOCK_MUTEX);
		error = wait_event_killable(&mutex->wq, mutex_take(mutex));
		profile_trace(contention_end, mutex, error);
	}
	if (error)
		lock_check_release(&mutex->map, LOCK_SLEEP);
	return error;
}

void mutex_lock_ordered(struct mutex *mutex)
{
	might_sleep();
	lock_check_acquire(&mutex->map, LOCK_SLEEP | LOCK_ORDERED, RETURN_ADDRESS());
	lock_mutex(mutex);
}

void mutex_unlock(struct mutex *mutex)
{
	BUG_ON(mutex->owner != current);
	lock_check_release(&mutex->map, LOCK_SLEEP);
	/* Full barrier: pairs with the xchg of state in prepare_wait(). */
	(void)xchg(&mutex->owner, NULL);
	if (unlikely(!list_empty(&mutex->wq.waiters)))
		wake_up_one(&mutex->wq);
}
