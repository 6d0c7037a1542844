/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TEST_SLEEP_H
#define TEST_SLEEP_H

#include <lego/sched.h>
#include <lego/time.h>

/* Process context. Nothing wakes the thread before. */
static inline void sleep_ns(u64 ns)
{
	WRITE_ONCE(current->state, TASK_UNINTERRUPTIBLE);
	schedule_timeout_ns(ns);
}

/*
 * A busy host lets a CPU stand still for seconds, and timers with it. So a test waits until what it
 * expects is there, and has failed when it still is not after this.
 */
#define PATIENCE_NS (30 * NSEC_PER_SEC)

/* For work that a busy host makes slow, and that may end before all of it is done. */
#define ENOUGH_NS (4 * NSEC_PER_SEC)

/* True as soon as the condition, which is looked at again and again, is; false out of patience. */
#define becomes(condition) becomes_between(condition, sleep_ns(NSEC_PER_MSEC))

/* The same, without a pause between the looks. */
#define soon_becomes(condition) becomes_between(condition, cond_resched())

#define becomes_between(condition, pause)                                          \
	({                                                                         \
		u64 _give_up_ns = clock_monotonic_ns() + PATIENCE_NS;              \
		bool _is;                                                          \
                                                                                   \
		while (!(_is = (condition)) && clock_monotonic_ns() < _give_up_ns) \
			pause;                                                     \
		_is;                                                               \
	})

#endif
