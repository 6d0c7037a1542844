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

#endif
