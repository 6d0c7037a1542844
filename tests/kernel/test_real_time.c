// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests real-time threads with threads of the kernel: their order on a CPU, that they run at once
 * on another CPU, that one that waits comes to a CPU with less to do, and that they leave others
 * some time. tests/user/abi/realtime.c has what programs see.
 */

#include <lego/selftest.h>

#include <lego/atomic.h>
#include <lego/errno.h>
#include <lego/sched.h>
#include <lego/smp.h>
#include <lego/time.h>

#include "sleep.h"

#define NR_WORKERS 6

static struct worker {
	void (*work)(struct worker *worker);
	u64 start_ns; /* when it ran first; 0: not yet */
	unsigned int cpu, position;
	u64 count;
} workers[NR_WORKERS];

static atomic_t nr_left, nr_started;
static bool is_over;
static int runtime_us, period_us; /* what begin() found */

static int run_worker(void *arg)
{
	struct worker *worker = arg;

	worker->cpu = smp_processor_id();
	worker->position = (unsigned int)atomic_add_return(&nr_started, 1);
	WRITE_ONCE(worker->start_ns, clock_monotonic_ns());
	if (worker->work)
		worker->work(worker);
	atomic_dec(&nr_left);
	return 0;
}

/* Wakes a new thread on some CPUs. A priority of 0 is for SCHED_OTHER. */
static struct task *start(unsigned int id, void (*work)(struct worker *worker),
			  unsigned int priority, cpumask_t cpus)
{
	struct task *task = kthread_create(run_worker, &workers[id], "selftest");

	EXPECT(!IS_ERR(task));
	if (IS_ERR(task))
		return NULL;
	workers[id] = (struct worker){ .work = work };
	atomic_inc(&nr_left);
	sched_set_affinity(task, cpus);
	sched_set_policy(task, priority ? SCHED_FIFO : SCHED_OTHER, priority, false);
	task_wake(task);
	return task;
}

/*
 * This thread is higher than all, and real-time threads get all time: with two CPUs, the workers of
 * one test can take both, and their share before the next one.
 */
static void begin(void)
{
	atomic_set(&nr_started, 0);
	WRITE_ONCE(is_over, false);
	runtime_us = sched_rt_runtime_us;
	period_us = sched_rt_period_us;
	WRITE_ONCE(sched_rt_runtime_us, -1);
	sched_set_policy(current, SCHED_FIFO, 99, false);
}

static bool end(void)
{
	bool ended;

	WRITE_ONCE(is_over, true);
	ended = becomes(!atomic_read(&nr_left));
	sched_set_policy(current, SCHED_OTHER, 0, false);
	WRITE_ONCE(sched_rt_runtime_us, runtime_us);
	WRITE_ONCE(sched_rt_period_us, period_us);
	return ended;
}

static void spin_until_over(struct worker *worker)
{
	while (!READ_ONCE(is_over)) {
		WRITE_ONCE(worker->count, worker->count + 1);
		cond_resched();
	}
}

/* The highest first, and of equals those that were woken first. */
SELFTEST(sched, real_time_is_in_order)
{
	static const unsigned int priorities[NR_WORKERS] = { 5, 0, 20, 5, 20, 50 };
	static const unsigned int positions[NR_WORKERS] = { 4, 6, 2, 5, 3, 1 };
	cpumask_t cpus = current->cpus_allowed;
	unsigned int cpu = smp_processor_id();

	begin();
	sched_set_affinity(current, BIT(cpu));
	for (unsigned int id = 0; id < NR_WORKERS; id++)
		start(id, NULL, priorities[id], BIT(cpu));
	EXPECT_EQ(atomic_read(&nr_started), 0);
	EXPECT(end());
	sched_set_affinity(current, cpus);
	for (unsigned int id = 0; id < NR_WORKERS; id++)
		EXPECT_EQ(workers[id].position, positions[id]);
}

static unsigned int other_cpu(void)
{
	return smp_processor_id() ? 0 : 1;
}

/* Threads that spin on another CPU are preempted by an interrupt from this one. */
SELFTEST(sched, real_time_preempts_other_cpus)
{
	cpumask_t cpus;

	if (nr_cpus < 2)
		return;
	begin();
	cpus = BIT(other_cpu());
	start(0, spin_until_over, 0, cpus);
	EXPECT(soon_becomes(READ_ONCE(workers[0].start_ns)));
	start(1, spin_until_over, 10, cpus);
	EXPECT(soon_becomes(READ_ONCE(workers[1].start_ns)));
	start(2, NULL, 20, cpus);
	EXPECT(soon_becomes(READ_ONCE(workers[2].start_ns)));
	EXPECT_EQ(atomic_read(&nr_left), 2);
	/* A lower one waits until then. */
	start(3, NULL, 5, cpus);
	sleep_ns(20 * NSEC_PER_MSEC);
	EXPECT_EQ(workers[3].start_ns, 0);
	EXPECT(end());
}

/* A real-time thread that waits behind another one comes to a CPU with less to do. */
SELFTEST(sched, real_time_is_pulled)
{
	cpumask_t all = READ_ONCE(cpu_online_mask), cpus;
	struct task *task;

	if (nr_cpus < 2)
		return;
	begin();
	cpus = BIT(other_cpu());
	start(0, spin_until_over, 10, cpus);
	EXPECT(soon_becomes(READ_ONCE(workers[0].start_ns)));
	task = start(1, spin_until_over, 5, cpus);
	ASSERT(task);
	sleep_ns(5 * NSEC_PER_MSEC);
	EXPECT_EQ(workers[1].start_ns, 0);
	sched_set_affinity(task, all);
	EXPECT(becomes(READ_ONCE(workers[1].start_ns)));
	EXPECT(!(BIT(workers[1].cpu) & cpus));
	EXPECT_EQ(atomic_read(&nr_left), 2);
	EXPECT(end());
}

/*
 * Both get time: the real-time thread at most its share, a fortieth, and the other one the rest.
 * Not in each period: an emulator that the host stops may have lost most of the other one's share.
 * The first share is shorter than what a busy host lets the emulator run at a time.
 */
SELFTEST(sched, real_time_is_throttled)
{
	cpumask_t cpus = BIT(smp_processor_id());

	begin();
	WRITE_ONCE(sched_rt_runtime_us, 1000);
	WRITE_ONCE(sched_rt_period_us, 40000);
	start(0, spin_until_over, 50, cpus);
	start(1, spin_until_over, 0, cpus);
	EXPECT(becomes(READ_ONCE(workers[0].count)));
	EXPECT(becomes(READ_ONCE(workers[0].count) < READ_ONCE(workers[1].count)));
	EXPECT(end());
}
