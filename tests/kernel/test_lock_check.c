// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests the reports of the lock checker, and the cases without a report. Each test has its own
 * locks, because an order stays known for ever and a cycle is reported once.
 */

#include <lego/selftest.h>

#include <asm/irqflags.h>
#include <lego/errno.h>
#include <lego/lock_check.h>
#include <lego/mutex.h>
#include <lego/rw_mutex.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/timer.h>

#include "sleep.h"

/* Expects this to be the report so far; NULL expects none. */
#define EXPECT_REPORT(want)                                                     \
	do {                                                                    \
		const char *_got = lock_check_trapped(), *_want = (want);       \
		if (_want ? !_got || strcmp(_got, _want) : _got != NULL)        \
			selftest_fail(__FILE__, __LINE__, _got ?: "no report"); \
	} while (0)

static void take_two(spinlock_t *first, spinlock_t *second)
{
	spin_lock(first);
	spin_lock(second);
	spin_unlock(second);
	spin_unlock(first);
}

SELFTEST(lock_check, two_orders)
{
	static DEFINE_SPINLOCK(a);
	static DEFINE_SPINLOCK(b);

	lock_check_set_trap(true);
	take_two(&a, &b);
	take_two(&a, &b);
	EXPECT_REPORT(NULL);
	take_two(&b, &a);
	EXPECT_REPORT("lock order");
	take_two(&b, &a);
	EXPECT_REPORT(NULL);
	lock_check_set_trap(false);
}

SELFTEST(lock_check, circle_of_three)
{
	static DEFINE_SPINLOCK(a);
	static DEFINE_SPINLOCK(b);
	static DEFINE_SPINLOCK(c);

	lock_check_set_trap(true);
	take_two(&a, &b);
	take_two(&b, &c);
	EXPECT_REPORT(NULL);
	take_two(&c, &a);
	EXPECT_REPORT("lock order");
	lock_check_set_trap(false);
}

static bool others_answer;

static int ask_from_outside(void *mutex)
{
	WRITE_ONCE(others_answer, lock_check_held(&((struct mutex *)mutex)->map));
	return 0;
}

/* A lock is held only for the thread that took it; another thread does not hold it. */
SELFTEST(lock_check, held_only_by_its_holder)
{
	static DEFINE_SPINLOCK(lock);
	static DEFINE_MUTEX(mutex);
	struct task *task;

	EXPECT(!lock_check_held(&lock.map) && !lock_check_owned(&lock.map));
	spin_lock(&lock);
	EXPECT(lock_check_held(&lock.map) && lock_check_owned(&lock.map));
	spin_unlock(&lock);
	EXPECT(!lock_check_held(&lock.map));
	mutex_lock(&mutex);
	EXPECT(lock_check_held(&mutex.map) && lock_check_owned(&mutex.map));
	WRITE_ONCE(others_answer, true);
	task = kthread_create(ask_from_outside, &mutex, "other_thread");
	EXPECT(!IS_ERR(task));
	if (!IS_ERR(task)) {
		task_wake(task);
		EXPECT(becomes(!READ_ONCE(others_answer)));
	}
	mutex_unlock(&mutex);
}

/*
 * Locks may be released in any order. A new lock makes pairs only with locks that are still held.
 */
SELFTEST(lock_check, only_held_locks_make_pairs)
{
	static DEFINE_SPINLOCK(a);
	static DEFINE_SPINLOCK(b);
	static DEFINE_SPINLOCK(c);

	lock_check_set_trap(true);
	spin_lock(&a);
	EXPECT(spin_trylock(&b));
	spin_unlock(&a);
	spin_lock(&c);
	spin_unlock(&b);
	spin_unlock(&c);
	take_two(&c, &a);
	EXPECT_REPORT(NULL);
	take_two(&c, &b);
	EXPECT_REPORT("lock order");
	lock_check_set_trap(false);
}

SELFTEST(lock_check, trylock_ignores_order)
{
	static DEFINE_SPINLOCK(a);
	static DEFINE_SPINLOCK(b);

	lock_check_set_trap(true);
	take_two(&a, &b);
	spin_lock(&b);
	EXPECT(spin_trylock(&a));
	spin_unlock(&a);
	spin_unlock(&b);
	EXPECT_REPORT(NULL);
	lock_check_set_trap(false);
}

SELFTEST(lock_check, mutexes_take_part)
{
	static DEFINE_MUTEX(mutex);
	static struct rw_mutex rw;

	rw_mutex_init(&rw);
	lock_check_set_trap(true);
	mutex_lock(&mutex);
	rw_mutex_lock_read(&rw);
	rw_mutex_unlock_read(&rw);
	mutex_unlock(&mutex);
	EXPECT_REPORT(NULL);
	rw_mutex_lock_write(&rw);
	mutex_lock(&mutex);
	mutex_unlock(&mutex);
	rw_mutex_unlock_write(&rw);
	EXPECT_REPORT("lock order");
	lock_check_set_trap(false);
}

/* All locks initialised at one place in the code are of one class. */
SELFTEST(lock_check, class_is_the_place_of_init)
{
	static DEFINE_SPINLOCK(other);
	spinlock_t locks[3];

	for (int i = 0; i < ARRAY_SIZE(locks); i++)
		spin_lock_init(&locks[i]);
	lock_check_set_trap(true);
	take_two(&other, &locks[0]);
	EXPECT_REPORT(NULL);
	take_two(&locks[1], &other);
	EXPECT_REPORT("lock order");
	take_two(&locks[0], &locks[1]);
	EXPECT_REPORT("two locks of one class, not in order");
	spin_lock(&locks[0]);
	spin_lock_nested(&locks[1]);
	spin_lock_nested(&locks[2]);
	spin_unlock(&locks[0]);
	EXPECT_REPORT(NULL);
	spin_lock_nested(&locks[0]);
	EXPECT_REPORT("two locks of one class, not in order");
	for (int i = 0; i < ARRAY_SIZE(locks); i++)
		spin_unlock(&locks[i]);
	EXPECT_REPORT(NULL);
	lock_check_set_trap(false);
}

static spinlock_t *timer_wants;

static void timer_takes_lock(struct timer *timer)
{
	spin_lock(timer_wants);
	spin_unlock(timer_wants);
	WRITE_ONCE(timer_wants, NULL);
}

static void take_in_interrupt(spinlock_t *lock)
{
	struct timer timer;

	WRITE_ONCE(timer_wants, lock);
	timer_setup(&timer, timer_takes_lock);
	timer_start(&timer, clock_monotonic_ns());
	while (READ_ONCE(timer_wants))
		sleep_until_ns(clock_monotonic_ns() + NSEC_PER_MSEC);
	timer_cancel(&timer);
}

SELFTEST(lock_check, interrupts_take_part)
{
	static DEFINE_SPINLOCK(irq_lock);
	static DEFINE_SPINLOCK(inner);
	unsigned long flags;

	lock_check_set_trap(true);
	take_in_interrupt(&irq_lock);
	/* No report while interrupts are off, even when another lock is taken inside. */
	flags = spin_lock_irqsave(&irq_lock);
	spin_lock(&inner);
	spin_unlock(&inner);
	spin_unlock_irqrestore(&irq_lock, flags);
	EXPECT_REPORT(NULL);
	/*
	 * The timer may interrupt this section and spin on irq_lock, whose holder may wait for
	 * `inner`.
	 */
	spin_lock(&inner);
	spin_unlock(&inner);
	EXPECT_REPORT("lock order: an interrupt can come in between");
	spin_lock(&irq_lock);
	spin_unlock(&irq_lock);
	EXPECT_REPORT("lock order: an interrupt can come in between");
	lock_check_set_trap(false);
}

SELFTEST(lock_check, interrupts_on_while_held)
{
	static DEFINE_SPINLOCK(irq_lock);

	lock_check_set_trap(true);
	take_in_interrupt(&irq_lock);
	local_irq_disable();
	spin_lock(&irq_lock);
	local_irq_enable();
	EXPECT_REPORT(NULL);
	spin_unlock(&irq_lock);
	EXPECT_REPORT("lock order: an interrupt can come in between");
	lock_check_set_trap(false);
}

SELFTEST(lock_check, unlocks)
{
	static DEFINE_SPINLOCK(lock);
	static struct rw_mutex rw;

	rw_mutex_init(&rw);
	lock_check_set_trap(true);
	spin_unlock(&lock);
	EXPECT_REPORT("unlock of a lock that is not held here");
	spin_lock(&lock);
	spin_unlock(&lock);
	EXPECT_REPORT(NULL);
	rw.holders = 1; /* as if another thread were reading */
	rw_mutex_unlock_read(&rw);
	EXPECT_REPORT("unlock of a lock that is not held here");
	lock_check_set_trap(false);
}

SELFTEST(lock_check, zeroed_lock)
{
	static spinlock_t lock;

	lock_check_set_trap(true);
	spin_lock(&lock);
	EXPECT_REPORT("lock was never initialised");
	spin_unlock(&lock);
	EXPECT_REPORT(NULL);
	lock_check_set_trap(false);
}

SELFTEST(lock_check, sleeping)
{
	static DEFINE_SPINLOCK(lock);
	static DEFINE_MUTEX(mutex);
	unsigned long flags;

	lock_check_set_trap(true);
	might_sleep();
	EXPECT_REPORT(NULL);
	spin_lock(&lock);
	might_sleep();
	EXPECT_REPORT("sleeping where that is forbidden");
	spin_unlock(&lock);
	flags = local_irq_save();
	mutex_lock(&mutex);
	mutex_unlock(&mutex);
	local_irq_restore(flags);
	EXPECT_REPORT("sleeping where that is forbidden");
	spin_lock(&lock);
	schedule();
	EXPECT_REPORT("schedule() with a spinlock held");
	spin_unlock(&lock);
	EXPECT_REPORT(NULL);
	mutex_lock(&mutex);
	might_sleep();
	schedule();
	mutex_unlock(&mutex);
	EXPECT_REPORT(NULL);
	lock_check_set_trap(false);
}

static int exit_with_lock(void *arg)
{
	mutex_lock(arg);
	return 0;
}

SELFTEST(lock_check, exit_with_a_lock)
{
	static DEFINE_MUTEX(mutex);
	struct task *task = kthread_create(exit_with_lock, &mutex, "exit_with_lock");
	const char *report = NULL;

	ASSERT(!IS_ERR(task));
	lock_check_set_trap(true);
	task_wake(task);
	EXPECT(becomes((report = lock_check_trapped())));
	EXPECT(report && !strcmp(report, "a lock is still held"));
	lock_check_set_trap(false);
}

/* Takes more locks than the checker tracks: it must not report any. */
SELFTEST(lock_check, many_locks)
{
	struct {
		spinlock_t lock;
	} locks[2 * MAX_HELD_SPINLOCKS];

	lock_check_set_trap(true);
	for (int i = 0; i < ARRAY_SIZE(locks); i++) {
		spin_lock_init(&locks[i].lock);
		spin_lock_nested(&locks[i].lock);
	}
	for (int i = 0; i < ARRAY_SIZE(locks); i++)
		spin_unlock(&locks[i].lock);
	EXPECT_REPORT(NULL);
	spin_lock(&locks[0].lock);
	spin_unlock(&locks[0].lock);
	EXPECT_REPORT(NULL);
	lock_check_set_trap(false);
}
