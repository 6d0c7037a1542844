// SPDX-License-Identifier: BSD-2-Clause
/*
 * Real-time threads: SCHED_FIFO and SCHED_RR, with priorities from 1 to 99. A run queue has one
 * list of those that wait, the highest priority first, in the order of arrival among equals. They
 * run before all other threads, which rq->priority says: it is 0 without real-time threads, and
 * then the scheduler is as in core.c.
 *
 * A thread that becomes runnable goes to the CPU whose highest priority is the lowest. One that is
 * preempted leaves for another CPU if that has less to do, and a CPU that gets less to do pulls
 * one that waits. Such a move tries the other queue's lock only once; the tick tries again.
 *
 * A CPU gives real-time threads at most sched_rt_runtime_us of each sched_rt_period_us while other
 * threads wait for it, so that a thread in an endless loop stops neither the kernel's threads nor
 * a shell. The tick measures that.
 */

#include "rq.h"

#include <lego/assert.h>

#define RR_SLICE_NS (100 * NSEC_PER_MSEC)

int sched_rt_period_us = 1000000;
int sched_rt_runtime_us = 950000; /* -1: no limit */

cpumask_t rt_waiting_cpus __read_mostly;

/* The time of real-time threads on a CPU; guarded by the lock of its queue. */
static struct rt_time {
	u64 cycles;	/* what they have had, without the present stretch of curr */
	u64 granted_ns; /* as much of that belongs to periods that have ended */
	u64 period_end_ns;
} __aligned(64) rt_times[CONFIG_NR_CPUS];

static struct rt_time *time_of(const struct rq *rq)
{
	return &rt_times[rq - rqs];
}

u64 sched_rr_interval_ns(const struct task *task)
{
	return READ_ONCE(task->policy) == SCHED_RR ? RR_SLICE_NS : 0;
}

static struct task *first_waiting(struct rq *rq)
{
	return list_empty(&rq->real_time) ? NULL :
					    list_first_entry(&rq->real_time, struct task, run_node);
}

/* Sets rq->priority to the highest of the thread that runs, or will, and those that wait. */
static void update_priority(struct rq *rq, const struct task *curr)
{
	const struct task *first = first_waiting(rq);

	ASSERT_HELD(&rq->lock);
	WRITE_ONCE(rq->priority, max(curr->rt_priority, first ? first->rt_priority : 0));
}

/* Queues a thread behind, or if it was preempted before, those with its priority. */
static void enqueue(struct rq *rq, struct task *task)
{
	struct list_head *at = &rq->real_time;
	struct task *other;

	list_for_each_entry(other, &rq->real_time, run_node) {
		if (other->rt_priority < task->rt_priority + task->was_preempted) {
			at = &other->run_node;
			break;
		}
	}
	task->was_preempted = false;
	rq_enqueue(rq, task, at);
	if (rq->priority < task->rt_priority)
		WRITE_ONCE(rq->priority, task->rt_priority);
	if (!(READ_ONCE(rt_waiting_cpus) >> (rq - rqs) & 1))
		atomic_or_bits(&rt_waiting_cpus, BIT(rq - rqs));
}

/* The caller calls update_priority(). */
static void dequeue(struct rq *rq, struct task *task)
{
	rq_dequeue(rq, task);
	if (list_empty(&rq->real_time))
		atomic_and_bits(&rt_waiting_cpus, ~BIT(rq - rqs));
}

void sched_dequeue(struct rq *rq, struct task *task)
{
	if (!task->rt_priority) {
		rq_dequeue(rq, task);
		return;
	}
	dequeue(rq, task);
	update_priority(rq, rq->curr);
}

static bool others_wait(const struct rq *rq)
{
	return !list_empty(&rq->woken) || !list_empty(&rq->queue);
}

/* Returns true if the first that waits must run instead of the thread that runs. */
static bool preempts(struct rq *rq, const struct task *curr)
{
	const struct task *first = first_waiting(rq);

	return first && first->rt_priority > curr->rt_priority &&
	       (!rq->is_throttled || curr->rt_priority || curr == rq->idle);
}

/* Cycles that real-time threads have had on this CPU. */
static u64 used_cycles(const struct rq *rq, u64 now)
{
	return time_of(rq)->cycles +
	       (rq->curr->rt_priority ? now - rq->curr->exec_start_cycles : 0);
}

/*
 * Ends all periods until now. What real-time threads have had beyond their share of these, because
 * a tick was late, is part of the next period if others had to wait.
 */
static void end_periods(struct rq *rq, u64 now_ns, u64 used_ns)
{
	u64 period_ns = READ_ONCE(sched_rt_period_us) * NSEC_PER_USEC;
	int runtime_us = READ_ONCE(sched_rt_runtime_us);
	struct rt_time *time = time_of(rq);
	u64 nr = (now_ns - time->period_end_ns) / period_ns + 1;
	bool others = others_wait(rq) || (!rq->curr->rt_priority && rq->curr != rq->idle);

	time->period_end_ns += nr * period_ns;
	time->granted_ns += nr * max(runtime_us, 0) * NSEC_PER_USEC;
	if (time->granted_ns > used_ns || !others || runtime_us < 0)
		time->granted_ns = used_ns;
}

/* Begins and ends the times in which real-time threads have used up their share. */
static void throttle(struct rq *rq)
{
	u64 now = rdtsc(), now_ns = cycles_to_ns(now), used_ns = cycles_to_ns(used_cycles(rq, now));
	int runtime_us = READ_ONCE(sched_rt_runtime_us);
	struct rt_time *time = time_of(rq);
	s64 spent_ns;

	if (now_ns >= time->period_end_ns)
		end_periods(rq, now_ns, used_ns);
	/* Negative if the caller's TSC is a little behind that of the queue's CPU. */
	spent_ns = max((s64)(used_ns - time->granted_ns), (s64)0);
	rq->is_throttled = runtime_us >= 0 && spent_ns >= runtime_us * (s64)NSEC_PER_USEC;
}

void rt_activate(struct rq *rq, struct task *task)
{
	if (rq->is_throttled)
		throttle(rq); /* the last tick with a real-time thread may be long ago */
	enqueue(rq, task);
	if (preempts(rq, rq->curr))
		resched_rq(rq);
}

unsigned int rt_select_cpu(const struct task *task)
{
	cpumask_t allowed = READ_ONCE(sched_cpus) & READ_ONCE(task->cpus_allowed);
	unsigned int best = task->cpu, cpu;

	if (!(allowed >> best & 1))
		best = allowed ? __builtin_ctzll(allowed) : best;
	if (rq_is_idle(&rqs[best]))
		return best;
	for_each_cpu_in(cpu, allowed) {
		if (rq_is_idle(&rqs[cpu]))
			return cpu;
		if (READ_ONCE(rqs[cpu].priority) < READ_ONCE(rqs[best].priority))
			best = cpu;
	}
	return best;
}

/* Returns true if a slice of SCHED_RR has ended; the next one begins. */
static bool end_rr_slice(struct task *task, u64 now)
{
	u64 runs = task->sum_exec_cycles + now - task->exec_start_cycles;
	bool has_begun = task->rr_end_cycles;

	if (task->policy != SCHED_RR || (has_begun && runs < task->rr_end_cycles))
		return false;
	task->rr_end_cycles = runs + ns_to_cycles_up(RR_SLICE_NS);
	return has_begun;
}

bool rt_put_prev(struct rq *rq, struct task *prev)
{
	unsigned int cpu = rt_select_cpu(prev);
	bool yields = prev->yields || prev->rr_expired;

	prev->yields = prev->rr_expired = false;
	prev->was_preempted = !yields;
	if (cpu != prev->cpu && preempts(rq, prev) &&
	    READ_ONCE(rqs[cpu].priority) < prev->rt_priority)
		return true;
	enqueue(rq, prev);
	return false;
}

/* Pulls a thread that waits on another CPU, if its priority is higher than `floor`. */
static bool pull(struct rq *rq, unsigned int floor)
{
	unsigned int to = rq - rqs, cpu;
	struct task *task, *found = NULL;

	for_each_cpu_in(cpu, READ_ONCE(rt_waiting_cpus) & ~BIT(to)) {
		struct rq *from = &rqs[cpu];

		if (READ_ONCE(from->priority) <= floor || !spin_trylock(&from->lock))
			continue;
		list_for_each_entry(task, &from->real_time, run_node) {
			if (task->rt_priority <= floor)
				break;
			if (!task_allowed(task, to))
				continue;
			found = task;
			break;
		}
		if (found) {
			dequeue(from, found);
			update_priority(from, from->curr);
			profile_trace(sched_migrate_task, found, found->cpu, to);
			WRITE_ONCE(found->cpu, to);
			enqueue(rq, found);
		}
		spin_unlock(&from->lock);
		if (found)
			return true;
	}
	return false;
}

struct task *rt_pick_next(struct rq *rq, struct task *prev, u64 now)
{
	struct task *next;

	ASSERT_HELD(&rq->lock);
	if (prev->rt_priority)
		time_of(rq)->cycles += now - prev->exec_start_cycles;
	next = first_waiting(rq);
	/* The CPU gets less to do: other CPUs may have threads that were too low to come here. */
	if (!rq->is_throttled && prev->rt_priority > (next ? next->rt_priority : 0) &&
	    pull(rq, next ? next->rt_priority : 0))
		next = first_waiting(rq);
	if (next && rq->is_throttled && others_wait(rq))
		next = NULL;
	if (next)
		dequeue(rq, next);
	update_priority(rq, next ?: rq->idle);
	return next;
}

bool rt_tick(struct rq *rq, struct task *curr)
{
	const struct task *first;

	ASSERT_HELD(&rq->lock);
	throttle(rq);
	if (!curr->rt_priority)
		return preempts(rq, curr);
	if (rq->is_throttled && others_wait(rq))
		return true;
	if (end_rr_slice(curr, rdtsc())) {
		first = first_waiting(rq);
		curr->rr_expired = first && first->rt_priority == curr->rt_priority;
	}
	return curr->rr_expired || preempts(rq, curr);
}

void rt_balance_tick(struct rq *rq)
{
	if (!rq->is_throttled)
		pull(rq, rq->priority);
}

/*
 * Takes the lock of a task's queue. The task runs, waits or sleeps then, but is not on its way from
 * one queue to another, where place_task() reads its priority.
 */
static struct rq *lock_settled(struct task *task)
{
	for (;;) {
		struct rq *rq = task_rq_lock(task);

		if (task->on_rq || rq->curr == task || task->state != TASK_RUNNING)
			return rq;
		spin_unlock(&rq->lock);
		cpu_relax();
	}
}

void sched_set_policy(struct task *task, int policy, unsigned int priority, bool reset_on_fork)
{
	unsigned long flags = local_irq_save();
	struct rq *rq = lock_settled(task);
	bool move = task->on_rq;
	u64 now = rdtsc();

	ASSERT_PROCESS_CONTEXT();
	if (move)
		sched_dequeue(rq, task);
	/* The present stretch counts by the policy at its end: so it begins or ends now. */
	if (rq->curr == task && !task->rt_priority && priority)
		time_of(rq)->cycles -= now - task->exec_start_cycles;
	if (rq->curr == task && task->rt_priority && !priority)
		time_of(rq)->cycles += now - task->exec_start_cycles;
	if (task->policy != policy)
		task->rr_end_cycles = 0;
	/* As in Linux, a thread that gets a lower priority goes before its new equals. */
	task->was_preempted = move && priority < task->rt_priority;
	task->yields = task->rr_expired = false;
	task->policy = policy;
	task->rt_priority = priority;
	task->reset_on_fork = reset_on_fork;
	update_priority(rq, rq->curr);
	if (rq->curr == task)
		resched_rq(rq);
	spin_unlock(&rq->lock);
	if (move)
		sched_place(task);
	local_irq_restore(flags);
	cond_resched();
}

void sched_inherit_policy(struct task *task, const struct task *parent)
{
	if (parent->reset_on_fork)
		return;
	task->policy = parent->policy;
	task->rt_priority = parent->rt_priority;
}
