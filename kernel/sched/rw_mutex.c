// SPDX-License-Identifier: BSD-2-Clause
#include <lego/rw_mutex.h>

#include <lego/atomic.h>
#include <lego/bug.h>
#include <lego/sched.h>
#include <lego/smp.h>

/*
 * Whoever finds the lock free for it takes it with one cmpxchg. Who does not spins for a moment, as
 * the holders may be running, and sleeps then. The last one out wakes all sleepers, who try again.
 *
 * Unlocking changes ->holders and then looks for sleepers; a sleeper queues itself and then tries.
 * Each has a full barrier in between, so one of them sees the other.
 */

#define MAX_SPIN_US 30

void rw_mutex_init(struct rw_mutex *lock)
{
	lock->holders = 0;
	lock->nr_writers_waiting = 0;
	wait_queue_init(&lock->wq);
}

static bool try_read(struct rw_mutex *lock)
{
	for (;;) {
		u32 holders = READ_ONCE(lock->holders);

		if (holders == RW_MUTEX_WRITER || READ_ONCE(lock->nr_writers_waiting))
			return false;
		if (cmpxchg(&lock->holders, holders, holders + 1) == holders)
			return true;
		cpu_relax();
	}
}

static bool try_write(struct rw_mutex *lock)
{
	return !READ_ONCE(lock->holders) && cmpxchg(&lock->holders, 0, RW_MUTEX_WRITER) == 0;
}

/* On one CPU nobody can let go while we spin. */
static bool spin(struct rw_mutex *lock, bool (*try)(struct rw_mutex *lock))
{
	u64 start = rdtsc(), limit = tsc_khz * MAX_SPIN_US / 1000;

	while (nr_cpus > 1 && rdtsc() - start < limit && !need_resched()) {
		if (try(lock))
			return true;
		cpu_relax();
	}
	return false;
}

void rw_mutex_lock_read(struct rw_mutex *lock)
{
	if (likely(try_read(lock)) || spin(lock, try_read))
		return;
	wait_event(&lock->wq, try_read(lock));
}

void rw_mutex_lock_write(struct rw_mutex *lock)
{
	if (likely(try_write(lock)))
		return;
	__atomic_fetch_add(&lock->nr_writers_waiting, 1, __ATOMIC_SEQ_CST);
	if (!spin(lock, try_write))
		wait_event(&lock->wq, try_write(lock));
	__atomic_fetch_sub(&lock->nr_writers_waiting, 1, __ATOMIC_SEQ_CST);
}

static void wake_sleepers(struct rw_mutex *lock)
{
	if (!list_empty(&lock->wq.waiters))
		wake_up_all(&lock->wq);
}

void rw_mutex_unlock_read(struct rw_mutex *lock)
{
	u32 left = __atomic_sub_fetch(&lock->holders, 1, __ATOMIC_SEQ_CST);

	BUG_ON(left >= RW_MUTEX_WRITER - 1);
	if (!left)
		wake_sleepers(lock);
}

void rw_mutex_unlock_write(struct rw_mutex *lock)
{
	BUG_ON(lock->holders != RW_MUTEX_WRITER);
	/* Full barrier: pairs with the xchg of state in prepare_wait(). */
	(void)xchg(&lock->holders, 0);
	wake_sleepers(lock);
}
