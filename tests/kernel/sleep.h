/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TEST_SLEEP_H
#define TEST_SLEEP_H

#include <lego/sched.h>
#include <lego/time.h>

/* Sleeps for at least ns. Process context; nothing may wake the thread earlier. */
static inline void sleep_ns(u64 ns)
{
	WRITE_ONCE(current->state, TASK_UNINTERRUPTIBLE);
	schedule_timeout_ns(ns);
}

/*
 * How long a test waits for an expected result before it fails. A busy host can stop a CPU and its
 * timers for seconds.
 */
#define PATIENCE_NS (30 * NSEC_PER_SEC)

/* Limits work that is slow on a busy host and may stop early. */
#define ENOUGH_NS (2 * NSEC_PER_SEC)

/* Checks the condition every millisecond. Returns true once it holds, false after PATIENCE_NS. */
#define becomes(condition) becomes_between(condition, sleep_ns(NSEC_PER_MSEC))

/* Like becomes(), but calls cond_resched() between checks instead of sleeping. */
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
