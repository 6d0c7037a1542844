/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SCHED_RQ_H
#define SCHED_RQ_H

/* Shared by the files of kernel/sched/ only. */

#include <lego/sched.h>
#include <lego/smp.h>

/*
 * One CPU's queue. The lock is taken with interrupts off and held across switch_to():
 * schedule() takes it on the old task's stack, finish_switch() drops it on the new one's.
 * Whoever gets the lock therefore knows that every task but ->curr has left its stack and may
 * be moved.
 *
 * Locks of two queues are held at once only by trying the second.
 */
struct rq {
	spinlock_t lock;
	struct list_head woken; /* runnable tasks that have slept: first, but see pick_next() */
	struct list_head queue; /* other runnable tasks, without curr */
	unsigned int nr_queued; /* in both */
	u64 queue_due_ns;	/* the head of queue waits no longer than this for the woken */
	struct task *curr;
	struct task *idle;
	struct task *prev; /* during a switch: who is leaving */
	bool push_prev;	   /* prev may not run here: finish_switch() sends it away */
	u64 next_balance_ns;
	u64 nr_switches; /* from one task to another */
} __aligned(64);

extern struct rq rqs[CONFIG_NR_CPUS];
extern cpumask_t sched_cpus; /* CPUs whose queue works */

static inline struct rq *this_rq(void)
{
	return &rqs[smp_processor_id()];
}

static inline bool task_allowed(const struct task *task, unsigned int cpu)
{
	return READ_ONCE(task->cpus_allowed) >> cpu & 1;
}

/* A guess when the lock is not held. */
static inline bool rq_is_idle(const struct rq *rq)
{
	return READ_ONCE(rq->curr) == rq->idle && !READ_ONCE(rq->nr_queued);
}

static inline unsigned int rq_load(const struct rq *rq)
{
	return READ_ONCE(rq->nr_queued) + (READ_ONCE(rq->curr) != rq->idle);
}

/* task is runnable, and on no queue but the one it is taken from. */
void rq_enqueue(struct rq *rq, struct task *task, struct list_head *list);
void rq_dequeue(struct rq *rq, struct task *task);

/* Where a task that becomes runnable should go. No locks needed. */
unsigned int sched_select_cpu(struct task *task);

/*
 * Move one task from the queue that is longest, and has more than ours, to rq.
 */
bool sched_pull(struct rq *rq, unsigned int min_queued);

/* From the tick. */
void sched_balance_tick(struct rq *rq);

#endif
