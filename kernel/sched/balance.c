// SPDX-License-Identifier: BSD-2-Clause
/*
 * Chooses the CPU on which a task runs. A task that wakes goes back to its CPU if that is idle,
 * else to an idle CPU. A CPU that would become idle pulls a task. Busy CPUs compare their loads
 * from time to time, and pull a task from a CPU that has at least two tasks more.
 */

#include "rq.h"

#include <lego/assert.h>

#define BALANCE_NS (20 * NSEC_PER_MSEC)

/*
 * A waking task leaves its CPU if that has so many tasks more than the CPU with the shortest queue.
 */
#define WAKE_IMBALANCE 2

unsigned int sched_select_cpu(struct task *task)
{
	cpumask_t allowed = READ_ONCE(sched_cpus) & READ_ONCE(task->cpus_allowed);
	unsigned int home = task->cpu, home_load = rq_load(&rqs[home]);
	unsigned int best = home, least = INT32_MAX, cpu;
	bool home_allowed = allowed >> home & 1;

	if (unlikely(task->rt_priority))
		return rt_select_cpu(task);
	if (home_allowed && !home_load)
		return home;
	for_each_cpu_in(cpu, allowed & ~BIT(home)) {
		unsigned int load = rq_load(&rqs[cpu]);

		if (!load)
			return cpu;
		if (load < least) {
			least = load;
			best = cpu;
		}
	}
	return home_allowed && home_load < least + WAKE_IMBALANCE ? home : best;
}

static struct rq *busiest_rq(struct rq *rq)
{
	struct rq *busiest = NULL;
	unsigned int cpu;

	for_each_cpu_in(cpu, READ_ONCE(sched_cpus)) {
		if (&rqs[cpu] != rq &&
		    (!busiest || READ_ONCE(rqs[cpu].nr_queued) > READ_ONCE(busiest->nr_queued)))
			busiest = &rqs[cpu];
	}
	return busiest;
}

static struct task *find_allowed(struct list_head *list, unsigned int cpu)
{
	struct task *task;

	list_for_each_entry(task, list, run_node) {
		if (task_allowed(task, cpu))
			return task;
	}
	return NULL;
}

bool sched_pull(struct rq *rq, unsigned int min_queued)
{
	struct rq *from = busiest_rq(rq);
	unsigned int cpu = rq - rqs, nr;
	struct task *task;

	ASSERT_HELD(&rq->lock);
	nr = from ? READ_ONCE(from->nr_queued) : 0;
	/* Behind a real-time task, others may wait for long. */
	if (nr && READ_ONCE(from->priority))
		nr++;
	if (!from || nr < min_queued || !spin_trylock(&from->lock))
		return false;
	task = find_allowed(&from->woken, cpu) ?: find_allowed(&from->queue, cpu);
	if (task) {
		DEBUG_ASSERT(!task->on_cpu);
		rq_dequeue(from, task);
		profile_trace(sched_migrate_task, task, task->cpu, cpu);
		WRITE_ONCE(task->cpu, cpu);
		rq_enqueue(rq, task, &rq->queue);
	}
	spin_unlock(&from->lock);
	return task != NULL;
}

void sched_balance_tick(struct rq *rq)
{
	u64 now;

	ASSERT_HELD(&rq->lock);
	if (rq->curr == rq->idle) {
		if (!rq->nr_queued)
			sched_pull(rq, 1);
		return;
	}
	now = clock_monotonic_ns();
	if (now < rq->next_balance_ns)
		return;
	rq->next_balance_ns = now + BALANCE_NS;
	sched_pull(rq, rq->nr_queued + 2);
}
