/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TEST_BUSY_H
#define TEST_BUSY_H

/*
 * Threads that keep CPUs busy while a suite does something else. Only one busy_start() at a time.
 */

#include <lego/atomic.h>
#include <lego/errno.h>
#include <lego/sched.h>
#include <lego/selftest.h>
#include <lego/smp.h>

#include "sleep.h"

static bool busy_stopping;
static atomic_t nr_busy, nr_busy_begun;

static int busy_main(void *arg)
{
	void (*round)(void) = arg;

	round();
	atomic_inc(&nr_busy_begun);
	while (!READ_ONCE(busy_stopping)) {
		round();
		cond_resched();
	}
	atomic_dec(&nr_busy);
	return 0;
}

/*
 * Starts a thread on each of the CPUs. The thread calls round() again and again. Returns when each
 * thread has called it once. Process context.
 */
static void busy_start(cpumask_t cpus, void (*round)(void))
{
	unsigned int cpu;

	WRITE_ONCE(busy_stopping, false);
	atomic_set(&nr_busy_begun, 0);
	for_each_cpu_in(cpu, cpus) {
		struct task *task = kthread_create(busy_main, round, "busy");

		if (IS_ERR(task)) {
			EXPECT(!IS_ERR(task));
			continue;
		}
		task->cpus_allowed = BIT(cpu);
		atomic_inc(&nr_busy);
		task_wake(task);
	}
	EXPECT(becomes(atomic_read(&nr_busy_begun) == atomic_read(&nr_busy)));
}

/* Stops the threads and waits until they have exited. */
static void busy_stop(void)
{
	WRITE_ONCE(busy_stopping, true);
	EXPECT(becomes(!atomic_read(&nr_busy)));
}

#endif
