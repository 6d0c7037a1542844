// SPDX-License-Identifier: BSD-2-Clause
#include <lego/mutex.h>

#include <lego/atomic.h>
#include <lego/bug.h>
#include <lego/sched.h>

/*
 * A free mutex is taken with one cmpxchg, by whoever comes first: handing it to the first
 * sleeper would leave it idle for a whole context switch each time. Who finds it taken spins
 * for a while as long as the owner runs, and sleeps then. A sleeper that was overtaken several
 * times gets it handed over.
 *
 * Unlocking clears ->owner and then looks for sleepers; a sleeper queues itself and then tries
 * to take the mutex. Each has a full barrier in between, so one of them sees the other.
 */

#define MAX_SPIN_US	30
#define MAX_OVERTAKINGS 16

/* On the sleeper's stack, in wq.waiters until it owns the mutex; guarded by wq.lock. */
struct sleeper {
	struct list_head node;
	struct task *task;
	bool woken; /* on its way: needs no second wake-up */
	unsigned int nr_overtaken;
};

void mutex_init(struct mutex *mutex)
{
	mutex->owner = NULL;
	wait_queue_init(&mutex->wq);
}

bool mutex_trylock(struct mutex *mutex)
{
	return !READ_ONCE(mutex->owner) && cmpxchg(&mutex->owner, NULL, current) == NULL;
}

/*
 * The owner may end meanwhile. Then on_cpu is read from freed memory, which is still mapped:
 * whatever it says costs at most the limit's time.
 */
static bool spin_for_mutex(struct mutex *mutex)
{
	u64 start = rdtsc(), limit = tsc_khz * MAX_SPIN_US / 1000;

	while (rdtsc() - start < limit && !need_resched()) {
		struct task *owner = READ_ONCE(mutex->owner);

		if (!owner && mutex_trylock(mutex))
			return true;
		if (owner && !READ_ONCE(owner->on_cpu))
			return false;
		cpu_relax();
	}
	return false;
}

/* True when the mutex is ours: taken, or handed over. */
static bool sleeper_try(struct mutex *mutex, struct sleeper *sleeper)
{
	unsigned long flags = spin_lock_irqsave(&mutex->wq.lock);
	bool ours = mutex->owner == sleeper->task || mutex_trylock(mutex);

	if (ours)
		list_del(&sleeper->node);
	else if (sleeper->woken)
		sleeper->nr_overtaken++;
	sleeper->woken = false;
	spin_unlock_irqrestore(&mutex->wq.lock, flags);
	return ours;
}

static void sleep_for_mutex(struct mutex *mutex)
{
	struct sleeper sleeper = { .task = current };
	unsigned long flags = spin_lock_irqsave(&mutex->wq.lock);

	list_add_tail(&sleeper.node, &mutex->wq.waiters);
	spin_unlock_irqrestore(&mutex->wq.lock, flags);
	for (;;) {
		/* Full barrier: pairs with the xchg of owner in mutex_unlock(). */
		(void)xchg(&current->state, TASK_UNINTERRUPTIBLE);
		if (sleeper_try(mutex, &sleeper))
			break;
		schedule();
	}
	WRITE_ONCE(current->state, TASK_RUNNING);
}

void mutex_lock(struct mutex *mutex)
{
	if (likely(mutex_trylock(mutex)))
		return;
	BUG_ON(READ_ONCE(mutex->owner) == current);
	if (!spin_for_mutex(mutex))
		sleep_for_mutex(mutex);
}

/* Wake the first sleeper; a starving one gets the mutex if it is still ours to give. */
static void wake_sleeper(struct mutex *mutex, bool may_give)
{
	unsigned long flags = spin_lock_irqsave(&mutex->wq.lock);
	struct sleeper *first = NULL;

	if (!list_empty(&mutex->wq.waiters))
		first = list_first_entry(&mutex->wq.waiters, struct sleeper, node);
	if (may_give)
		(void)xchg(&mutex->owner,
			   first && first->nr_overtaken >= MAX_OVERTAKINGS ? first->task : NULL);
	if (first && !first->woken) {
		first->woken = true;
		task_wake(first->task);
	}
	spin_unlock_irqrestore(&mutex->wq.lock, flags);
}

void mutex_unlock(struct mutex *mutex)
{
	BUG_ON(mutex->owner != current);
	if (unlikely(!list_empty(&mutex->wq.waiters))) {
		wake_sleeper(mutex, true);
		return;
	}
	/* Full barrier: pairs with the xchg of state in sleep_for_mutex(). */
	(void)xchg(&mutex->owner, NULL);
	if (unlikely(!list_empty(&mutex->wq.waiters)))
		wake_sleeper(mutex, false);
}
