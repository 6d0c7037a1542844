// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reader-writer mutexes. A thread that finds the lock free takes it with one cmpxchg. Otherwise it
 * spins for a moment, because the holders may be running, unless others sleep already. Then it
 * sleeps in a queue. When the lock becomes free, it is given to the reader at the head and the
 * readers directly after it; a writer at the head is woken to take it. Until the writer runs, other
 * threads may overtake it, because a lock that waits for each sleeper is unused most of the time.
 *
 * The unlocking thread changes ->holders and then looks for sleepers. A sleeper queues itself and
 * then tries to take the lock. Each has a full barrier in between, so at least one of them sees the
 * other. Without the barriers, a sleeper could miss its wake-up.
 */

#include <lego/rw_mutex.h>

#include <lego/assert.h>
#include <lego/atomic.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/sched.h>
#include <lego/smp.h>

#define MAX_SPIN_US	30
#define MAX_OVERTAKINGS 16

/* On the sleeper's stack, in wq.waiters until it has the lock; guarded by wq.lock. */
struct sleeper {
	struct list_head node;
	struct task *task;
	bool writer;
	bool has_lock;
};

static bool add_reader(struct rw_mutex *lock)
{
	for (;;) {
		u32 holders = READ_ONCE(lock->holders);

		if (holders == RW_MUTEX_WRITER)
			return false;
		if (cmpxchg(&lock->holders, holders, holders + 1) == holders)
			return true;
		cpu_relax();
	}
}

static bool set_writer(struct rw_mutex *lock)
{
	return !READ_ONCE(lock->holders) && cmpxchg(&lock->holders, 0, RW_MUTEX_WRITER) == 0;
}

/* Takes the lock without sleeping. May overtake sleepers, but not too often in a row. */
static bool try_lock(struct rw_mutex *lock, bool writer)
{
	bool overtakes = !list_empty(&lock->wq.waiters);

	if (overtakes && READ_ONCE(lock->nr_overtakings) >= MAX_OVERTAKINGS)
		return false;
	if (!(writer ? set_writer(lock) : add_reader(lock)))
		return false;
	if (overtakes) /* an increment lost to another CPU does not matter */
		WRITE_ONCE(lock->nr_overtakings, READ_ONCE(lock->nr_overtakings) + 1);
	return true;
}

/*
 * Spins for the lock. With one CPU, no holder can run and unlock while we spin. And if a task has
 * spun in vain and sleeps now, the lock is held for long, or by many tasks in turn, so do not spin.
 */
static bool spin(struct rw_mutex *lock, bool writer)
{
	u64 start = rdtsc(), limit = tsc_khz * MAX_SPIN_US / 1000;

	while (nr_cpus > 1 && list_empty(&lock->wq.waiters) && rdtsc() - start < limit &&
	       !need_resched()) {
		if (try_lock(lock, writer))
			return true;
		cpu_relax();
	}
	return false;
}

static struct sleeper *first_sleeper(struct rw_mutex *lock)
{
	if (list_empty(&lock->wq.waiters))
		return NULL;
	return list_first_entry(&lock->wq.waiters, struct sleeper, node);
}

static void leave_queue(struct rw_mutex *lock, struct sleeper *sleeper)
{
	ASSERT_HELD(&lock->wq.lock);
	DEBUG_ASSERT(!sleeper->has_lock);
	list_del(&sleeper->node);
	sleeper->has_lock = true;
	WRITE_ONCE(lock->nr_overtakings, 0);
}

/* Gives the lock to the readers at the head of the queue, or wakes the writer there to take it. */
static void serve_queue(struct rw_mutex *lock)
{
	struct sleeper *first;

	ASSERT_HELD(&lock->wq.lock);
	while ((first = first_sleeper(lock)) && !first->writer && add_reader(lock)) {
		struct task *task = first->task;

		leave_queue(lock, first);
		task_wake(task);
	}
	if (first && first->writer && !READ_ONCE(lock->holders))
		task_wake(first->task);
}

/* Returns -EINTR, without the lock, if the sleep is killable and the thread is killed; else 0. */
static int sleep_for_lock(struct rw_mutex *lock, bool writer, bool killable)
{
	struct sleeper sleeper = { .task = current, .writer = writer };
	unsigned long flags = spin_lock_irqsave(&lock->wq.lock);
	int error = 0;

	list_add_tail(&sleeper.node, &lock->wq.waiters);
	for (;;) {
		/* Full barrier: pairs with the atomic operation on holders in the unlocks. */
		(void)xchg(&current->state, killable ? TASK_KILLABLE : TASK_UNINTERRUPTIBLE);
		task_waits_for(lock->wq.name, 0);
		if (first_sleeper(lock) == &sleeper && writer && set_writer(lock)) {
			leave_queue(lock, &sleeper);
			break;
		}
		if (!writer)
			serve_queue(lock);
		if (sleeper.has_lock)
			break;
		if (killable && task_killed(current)) {
			list_del(&sleeper.node);
			serve_queue(lock); /* the next sleeper may have waited only for this one */
			error = -EINTR;
			break;
		}
		spin_unlock_irqrestore(&lock->wq.lock, flags);
		schedule();
		flags = spin_lock_irqsave(&lock->wq.lock);
	}
	WRITE_ONCE(current->state, TASK_RUNNING);
	spin_unlock_irqrestore(&lock->wq.lock, flags);
	return error;
}

static noinline int take_slow(struct rw_mutex *lock, bool writer, bool killable)
{
	int error = 0;

	if (try_lock(lock, writer))
		return 0;
	profile_trace(contention_begin, lock, writer ? PROFILE_LOCK_WRITE : PROFILE_LOCK_READ);
	if (!spin(lock, writer))
		error = sleep_for_lock(lock, writer, killable);
	profile_trace(contention_end, lock, error);
	return error;
}

/* Takes the lock unless others hold it or wait for it. May fail beside other readers. */
static __always_inline bool take_free(struct rw_mutex *lock, bool writer)
{
	u32 holders = READ_ONCE(lock->holders);

	return (writer ? !holders : holders != RW_MUTEX_WRITER) && list_empty(&lock->wq.waiters) &&
	       cmpxchg(&lock->holders, holders, writer ? RW_MUTEX_WRITER : holders + 1) == holders;
}

/* Takes the lock. The fast path overtakes nobody. */
static __always_inline int rw_mutex_take(struct rw_mutex *lock, bool writer, bool killable)
{
	if (likely(take_free(lock, writer)))
		return 0;
	return take_slow(lock, writer, killable);
}

/* The rest of an unlock. was_held is false if the caller did not hold the lock. */
static noinline void rw_mutex_wake(struct rw_mutex *lock, bool was_held)
{
	unsigned long flags;

	BUG_ON(!was_held);
	flags = spin_lock_irqsave(&lock->wq.lock);
	serve_queue(lock);
	spin_unlock_irqrestore(&lock->wq.lock, flags);
}

void rw_mutex_lock_read(struct rw_mutex *rw)
{
	might_sleep();
	lock_check_acquire(&rw->map, LOCK_SLEEP, RETURN_ADDRESS());
	rw_mutex_take(rw, false, false);
}

bool rw_mutex_trylock_read(struct rw_mutex *rw)
{
	ASSERT_PROCESS_CONTEXT();
	if (!take_free(rw, false))
		return false;
	lock_check_acquire(&rw->map, LOCK_SLEEP | LOCK_TRY, RETURN_ADDRESS());
	return true;
}

void rw_mutex_lock_write(struct rw_mutex *rw)
{
	might_sleep();
	lock_check_acquire(&rw->map, LOCK_SLEEP, RETURN_ADDRESS());
	rw_mutex_take(rw, true, false);
}

static __always_inline int rw_mutex_take_killable(struct rw_mutex *rw, bool writer,
						  unsigned long caller)
{
	int error;

	might_sleep();
	lock_check_acquire(&rw->map, LOCK_SLEEP, caller);
	error = rw_mutex_take(rw, writer, true);
	if (unlikely(error))
		lock_check_release(&rw->map, LOCK_SLEEP);
	return error;
}

int rw_mutex_lock_read_killable(struct rw_mutex *rw)
{
	return rw_mutex_take_killable(rw, false, RETURN_ADDRESS());
}

int rw_mutex_lock_write_killable(struct rw_mutex *rw)
{
	return rw_mutex_take_killable(rw, true, RETURN_ADDRESS());
}

void rw_mutex_unlock_read(struct rw_mutex *rw)
{
	bool was_held;
	u32 left;

	lock_check_release(&rw->map, LOCK_SLEEP);
	left = __atomic_sub_fetch(&rw->holders, 1, __ATOMIC_SEQ_CST);
	was_held = left < RW_MUTEX_WRITER - 1;
	if (unlikely(!was_held) || (!left && unlikely(!list_empty(&rw->wq.waiters))))
		rw_mutex_wake(rw, was_held);
}

/* Changes the holders after a writer. */
static __always_inline void end_write(struct rw_mutex *rw, u32 holders)
{
	/* Full barrier: pairs with the xchg of state in sleep_for_lock(). */
	bool was_held = xchg(&rw->holders, holders) == RW_MUTEX_WRITER;

	if (unlikely(!was_held || !list_empty(&rw->wq.waiters)))
		rw_mutex_wake(rw, was_held);
}

void rw_mutex_downgrade(struct rw_mutex *rw)
{
	end_write(rw, 1);
}

void rw_mutex_unlock_write(struct rw_mutex *rw)
{
	lock_check_release(&rw->map, LOCK_SLEEP);
	end_write(rw, 0);
}
