/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SCHED_RQ_H
#define SCHED_RQ_H

/* The run queue of a CPU. Only for the files of kernel/sched/. */

#include <lego/sched.h>
#include <lego/smp.h>

/*
 * One CPU's queue. The lock is taken with interrupts off and held across switch_to(): schedule()
 * takes it on the old task's stack, finish_switch() releases it on the new task's stack. So a CPU
 * that gets the lock knows that every task except ->curr has left its stack and may be moved.
 *
 * A CPU that holds the lock of one queue takes the lock of another only by trylock.
 */
struct rq {
	spinlock_t lock;
	struct list_head woken; /* runnable tasks that have slept: served first, see pick_next() */
	struct list_head queue; /* other runnable tasks, without curr */
	unsigned int nr_queued; /* in all lists */
	/* The highest of the real-time tasks that run or wait here; 0: there are none. */
	u8 priority;
	bool is_throttled; /* real-time tasks have used up their share of the period */
	/*
	 * From then on, the head of queue is served before woken tasks, but not twice in a row: if
	 * CPUs take turns, it is due again whenever the CPU gets its turn. See RUNS_NOW.
	 */
	u64 queue_due_ns;
	struct task *curr;
	struct task *idle;
	struct task *prev; /* during a switch: the task that leaves */
	bool push_prev;	   /* prev may not run here: finish_switch() sends it away */
	u64 next_balance_ns;
	u64 nr_switches;	    /* from one task to another */
	struct list_head real_time; /* those that wait, the highest priority first */
} __aligned(64);

extern struct rq rqs[CONFIG_NR_CPUS];
extern cpumask_t sched_cpus; /* CPUs whose queue can be used */

static inline struct rq *this_rq(void)
{
	return &rqs[smp_processor_id()];
}

static inline bool task_allowed(const struct task *task, unsigned int cpu)
{
	return READ_ONCE(task->cpus_allowed) >> cpu & 1;
}

/* Locks the queue of the task's CPU, and returns it. Interrupts are off. */
struct rq *task_rq_lock(struct task *task);

/* Returns true if the CPU is idle. Only a guess if the lock is not held. */
static inline bool rq_is_idle(const struct rq *rq)
{
	return READ_ONCE(rq->curr) == rq->idle && !READ_ONCE(rq->nr_queued);
}

static inline unsigned int rq_load(const struct rq *rq)
{
	return READ_ONCE(rq->nr_queued) + (READ_ONCE(rq->curr) != rq->idle);
}

/* Queues a task that is runnable, and on no queue except the one that it is taken from. */
void rq_enqueue(struct rq *rq, struct task *task, struct list_head *list);
void rq_dequeue(struct rq *rq, struct task *task);

/* Returns the CPU for a task that becomes runnable. Needs no lock. */
unsigned int sched_select_cpu(struct task *task);

/* Moves one task from the longest queue, which must be longer than ours, to rq. */
bool sched_pull(struct rq *rq, unsigned int min_queued);

/* Takes a task from whichever list of the queue it is in. */
void sched_dequeue(struct rq *rq, struct task *task);

/* Queues a runnable task that is on no queue and no CPU, where it belongs. Interrupts are off. */
void sched_place(struct task *task);

/* Makes the CPU of the queue call schedule() soon. The lock is held. */
void resched_rq(struct rq *rq);

/* CPUs on whose queues real-time tasks wait. */
extern cpumask_t rt_waiting_cpus;

/*
 * The same as sched_select_cpu(), activate(), put_prev() and pick_next(), for real-time tasks.
 * rt_put_prev() returns true if another CPU should run the task. rt_pick_next() is called if
 * rq->priority is not 0; it returns NULL if another task is to run.
 */
unsigned int rt_select_cpu(const struct task *task);
void rt_activate(struct rq *rq, struct task *task);
bool rt_put_prev(struct rq *rq, struct task *prev);
struct task *rt_pick_next(struct rq *rq, struct task *prev, u64 now);

/* Called by the tick, if rq->priority is not 0. Returns true if another task should run now. */
bool rt_tick(struct rq *rq, struct task *curr);

/* Called by the tick, if real-time tasks wait anywhere: one of them may come here. */
void rt_balance_tick(struct rq *rq);

/* Called by the tick. */
void sched_balance_tick(struct rq *rq);

#endif
