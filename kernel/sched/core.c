// SPDX-License-Identifier: BSD-2-Clause
/*
 * The scheduler: round robin on each CPU, after real-time tasks (real_time.c). A task runs for a
 * time slice, then goes to the end of its CPU's queue. The tick only requests that; the task itself
 * calls schedule() on its way to user mode. rq.h describes the lock. Tasks that wake are in a
 * separate queue, which is served first, because other tasks may be waiting for what they slept
 * for, such as a mutex. From time to time the head of the other queue is served in between.
 *
 * A sleeper sets ->state, checks its condition and calls schedule(). A waker makes the condition
 * true and calls task_wake(), which changes ->state under the queue's lock. If the sleeper has not
 * reached schedule() yet, it finds itself running there and does not sleep.
 */

#include <lego/sched.h>

#include "rq.h"
#include <lego/assert.h>
#include <lego/bug.h>
#include <lego/cputime.h>
#include <lego/irq.h>
#include <lego/printk.h>
#include <lego/slab.h>
#include <lego/vmap.h>

#define SLICE_NS (4 * NSEC_PER_MSEC)

/* How long a task may run while woken tasks wait, and how long woken tasks may delay the others. */
#define WOKEN_GRACE_NS (1 * NSEC_PER_MSEC)
#define QUEUE_DUE_NS   (2 * SLICE_NS)
#define RUNS_NOW       (~0ull) /* queue_due_ns: the running task was the head of the queue */

/*
 * Measures from the entry of schedule() until the next task runs, on the same CPU but another
 * stack.
 */
DEFINE_PROFILE_POINT(context_switch)
PROFILE_POINT_CPU_TIME(context_switch)

struct rq rqs[CONFIG_NR_CPUS] = {
	[0 ... CONFIG_NR_CPUS - 1] = { .lock = SPINLOCK_INIT_AT(LOCK_PLACE("rq")) },
};
cpumask_t sched_cpus __read_mostly;

/* The boot CPU's idle task: it runs from the first instruction on. */
static struct task boot_idle = {
	.comm = "idle/0",
	.on_cpu = true,
	.cpus_allowed = 1,
	.refs = ATOMIC_INIT(1),
};

DEFINE_PER_CPU(struct task *, current_task) = &boot_idle;

static struct task *idle_tasks[CONFIG_NR_CPUS] = { &boot_idle };

struct task *sched_idle_task(unsigned int cpu)
{
	struct task *task = READ_ONCE(idle_tasks[cpu]);

	if (likely(task))
		return task;
	task = kzalloc(sizeof(*task));
	if (!task)
		panic("no memory for the idle task of CPU %u", cpu);
	task->kernel_stack = kernel_stack_alloc();
	if (!task->kernel_stack)
		panic("no memory for the idle stack of CPU %u", cpu);
	snprintf(task->comm, sizeof(task->comm), "idle/%u", cpu);
	task->cpu = cpu;
	task->on_cpu = true;
	task->cpus_allowed = BIT(cpu);
	atomic_set(&task->refs, 1);
	idle_tasks[cpu] = task;
	return task;
}

/* For profilers, keeps the time off a CPU of a task that begins to run. */
static void keep_off_cycles(struct task *task)
{
	profile_keep_off_cycles(task->off_cycles, task->exec_start_cycles - task->sum_exec_cycles);
}

void sched_init_cpu(void)
{
	unsigned int cpu = smp_processor_id();
	struct rq *rq = &rqs[cpu];

	list_init(&rq->woken);
	list_init(&rq->queue);
	list_init(&rq->real_time);
	rq->idle = sched_idle_task(cpu);
	rq->curr = rq->idle;
	rq->idle->exec_start_cycles = rdtsc();
	keep_off_cycles(rq->idle);
	cputime_init_cpu();
	this_cpu_write(current_task, rq->idle);
	atomic_or_bits(&sched_cpus, BIT(cpu));
}

void sched_init(void)
{
	sched_init_cpu();
}

struct rq *task_rq_lock(struct task *task)
{
	ASSERT_IRQS_OFF();
	for (;;) {
		unsigned int cpu = READ_ONCE(task->cpu);
		struct rq *rq = &rqs[cpu];

		spin_lock(&rq->lock);
		if (likely(task->cpu == cpu))
			return rq;
		spin_unlock(&rq->lock);
	}
}

void rq_enqueue(struct rq *rq, struct task *task, struct list_head *list)
{
	ASSERT_HELD(&rq->lock);
	DEBUG_ASSERT(!task->on_rq && list_empty(&task->run_node));
	DEBUG_ASSERT(task->state == TASK_RUNNING && task->cpu == rq - rqs);
	task->on_rq = true;
	list_add_tail(&task->run_node, list);
	WRITE_ONCE(rq->nr_queued, rq->nr_queued + 1);
}

void rq_dequeue(struct rq *rq, struct task *task)
{
	ASSERT_HELD(&rq->lock);
	DEBUG_ASSERT(task->on_rq && rq->nr_queued);
	task->on_rq = false;
	list_del(&task->run_node);
	WRITE_ONCE(rq->nr_queued, rq->nr_queued - 1);
}

void resched_rq(struct rq *rq)
{
	unsigned int cpu = rq - rqs;

	ASSERT_HELD(&rq->lock);
	if (rq->curr->need_resched)
		return;
	WRITE_ONCE(rq->curr->need_resched, true);
	if (cpu != smp_processor_id())
		smp_send_reschedule(cpu);
}

static void activate(struct rq *rq, struct task *task)
{
	if (unlikely(task->rt_priority)) {
		rt_activate(rq, task);
		return;
	}
	rq_enqueue(rq, task, &rq->woken);
	if (rq->curr == rq->idle)
		resched_rq(rq);
}

/* Queues a runnable task. It is on no queue and no CPU, so no other CPU uses it. */
static void place_task(struct task *task, unsigned int cpu)
{
	struct rq *rq = &rqs[cpu];

	ASSERT_IRQS_OFF();
	spin_lock(&rq->lock);
	profile_trace_if(sched_migrate_task, task->cpu != cpu, task, task->cpu, cpu);
	WRITE_ONCE(task->cpu, cpu);
	activate(rq, task);
	spin_unlock(&rq->lock);
}

void sched_place(struct task *task)
{
	place_task(task, sched_select_cpu(task));
}

static __always_inline bool wake_locked(struct rq *rq, struct task *task)
{
	unsigned int cpu;

	ASSERT_HELD(&rq->lock);
	WRITE_ONCE(task->state, TASK_RUNNING);
	if (rq->curr == task)
		return false;
	task->ready_since_cycles = rdtsc();
	profile_wake(task);
	cpu = sched_select_cpu(task);
	profile_trace(sched_wakeup, task, cpu);
	if (cpu == task->cpu) {
		activate(rq, task);
		return false;
	}
	return true;
}

bool task_wake(struct task *task)
{
	unsigned long flags = local_irq_save();
	struct rq *rq = task_rq_lock(task);
	bool slept = task->state != TASK_RUNNING && task->state != TASK_DEAD;
	bool move = slept && wake_locked(rq, task);

	ASSERT_NOT_NMI();
	spin_unlock(&rq->lock);
	if (move)
		sched_place(task);
	local_irq_restore(flags);
	return slept;
}

static void kick_sleeper(struct task *task, bool fatal)
{
	unsigned long flags = local_irq_save();
	struct rq *rq = task_rq_lock(task);
	bool move = false;

	if (rq->curr == task && task->cpu != smp_processor_id())
		smp_send_reschedule(task->cpu);
	if (task->state == TASK_INTERRUPTIBLE ||
	    (fatal && (task->state == TASK_KILLABLE || task->state == TASK_STOPPED)))
		move = wake_locked(rq, task);
	spin_unlock(&rq->lock);
	if (move)
		sched_place(task);
	local_irq_restore(flags);
}

void task_kick(struct task *task)
{
	kick_sleeper(task, false);
}

void task_kick_fatal(struct task *task)
{
	kick_sleeper(task, true);
}

/* Does the second half of a switch, on the new task's stack. Frees the stack of a dead task. */
static void finish_switch(void)
{
	struct rq *rq = this_rq();
	struct task *prev = rq->prev;
	bool dead = prev->state == TASK_DEAD;
	bool push = rq->push_prev;

	ASSERT_HELD(&rq->lock);
	DEBUG_ASSERT(prev && prev != current && prev->on_cpu && current->on_cpu);
	DEBUG_ASSERT(rq->curr == current);
	rq->prev = NULL;
	rq->push_prev = false;
	prev->on_cpu = false;
	spin_unlock(&rq->lock);
	profile_point_leave_cpu(context_switch);
	if (push)
		sched_place(prev);
	if (dead) {
		u32 owner = cputime_set_owner(CPUTIME_EXIT);

		task_put(prev);
		cputime_set_owner(owner);
	}
}

void schedule_tail(void)
{
	ASSERT_IRQS_OFF();
	finish_switch();
	profile_switch_in(current->exec_start_cycles);
	local_irq_enable();
}

static bool sleep_is_over(const struct task *task)
{
	switch (task->state) {
	case TASK_INTERRUPTIBLE:
		return task_interrupted(task);
	case TASK_KILLABLE:
	case TASK_STOPPED:
		return task_killed(task);
	default:
		return false;
	}
}

/* Queues the task that calls schedule(), here or on another CPU, or lets it sleep. */
static void put_prev(struct rq *rq, struct task *prev)
{
	ASSERT_HELD(&rq->lock);
	if (prev->state != TASK_RUNNING) {
		if (likely(!sleep_is_over(prev)))
			return;
		/* A task with a signal must not sleep. Pairs with the store before task_kick(). */
		WRITE_ONCE(prev->state, TASK_RUNNING);
	}
	if (prev == rq->idle)
		return;
	if (unlikely(!task_allowed(prev, prev->cpu)))
		rq->push_prev = true;
	else if (unlikely(prev->rt_priority))
		rq->push_prev = rt_put_prev(rq, prev);
	else
		rq_enqueue(rq, prev, &rq->queue);
}

static struct task *pick_next(struct rq *rq, struct task *prev, u64 now, u64 now_ns)
{
	struct list_head *list = &rq->woken;
	struct task *next;

	ASSERT_HELD(&rq->lock);
	if (unlikely(rq->priority) && (next = rt_pick_next(rq, prev, now)))
		return next;
	if (!rq->nr_queued && !sched_pull(rq, 1))
		return rq->idle;
	if (list_empty(list) || (!list_empty(&rq->queue) && now_ns >= rq->queue_due_ns)) {
		list = &rq->queue;
		rq->queue_due_ns = RUNS_NOW;
	} else if (rq->queue_due_ns == RUNS_NOW) {
		/* Since the start of the slice that ends here. */
		rq->queue_due_ns = rq->curr->slice_end_ns - SLICE_NS + QUEUE_DUE_NS;
	}
	next = list_first_entry(list, struct task, run_node);
	DEBUG_ASSERT(!next->on_cpu || next == current);
	rq_dequeue(rq, next);
	return next;
}

static void switch_task(struct rq *rq, struct task *prev, struct task *next)
{
	ASSERT_HELD(&rq->lock);
	DEBUG_ASSERT(!rq->prev && rq->curr == prev && !next->on_cpu);
	DEBUG_ASSERT(next->cpu == smp_processor_id());
	rq->prev = prev;
	WRITE_ONCE(rq->nr_switches, rq->nr_switches + 1);
	WRITE_ONCE(rq->curr, next);
	next->on_cpu = true;
	prev->rseq_event = prev->rseq_area;
	if (prev->mm != next->mm)
		mm_switch(prev->mm, next->mm);
	profile_switch(prev, next, next->exec_start_cycles);
	switch_to(prev, next);
	finish_switch();
}

/* As Linux does: a thread that goes on sleeping has left its CPU voluntarily. */
static void count_switch(struct task *task)
{
	if (task->state == TASK_RUNNING) {
		task->nr_involuntary++;
		this_cpu_inc(cpu_account.events[CPU_INVOLUNTARY]);
	} else {
		task->nr_voluntary++;
		this_cpu_inc(cpu_account.events[CPU_VOLUNTARY]);
	}
}

/* If prev sleeps, its wake-up sets the time again. Idle tasks have no use for theirs. */
static void count_ready(struct task *prev, struct task *next, u64 now)
{
	prev->ready_since_cycles = now;
	if (now > next->ready_since_cycles) /* else the TSC of another CPU is ahead */
		WRITE_ONCE(next->sum_ready_cycles,
			   next->sum_ready_cycles + now - next->ready_since_cycles);
}

void schedule(void)
{
	unsigned long flags = local_irq_save();
	struct task *prev = current, *next;
	struct rq *rq = this_rq();
	u64 clock, now, now_ns;

	profile_point_start_cpu(context_switch);
	BUG_ON(in_irq());
	DEBUG_ASSERT(prev == rq->curr && prev->on_cpu && !prev->on_rq);
	lock_check_schedule(flags);
	spin_lock(&rq->lock);
	WRITE_ONCE(prev->need_resched, false);
	put_prev(rq, prev);
	clock = cputime_clock(&now);
	now_ns = cycles_to_ns(now);
	next = pick_next(rq, prev, now, now_ns);
	if (next != prev) {
		count_switch(prev); /* before prev's process leaves this CPU's counts */
		if (prev->group && prev->group != next->group)
			clock = cputime_leave_group(prev->group, &now);
		count_ready(prev, next, now);
	}

	prev->sum_exec_cycles += now - prev->exec_start_cycles;
	next->exec_start_cycles = now;
	next->slice_end_ns = now_ns + SLICE_NS;
	if (next != prev) {
		keep_off_cycles(next);
		cputime_switch(prev, next, now, clock);
		if (next->group && next->group != prev->group)
			cputime_join_group(next->group, now, clock);
		switch_task(rq, prev, next);
		profile_switch_in(prev->exec_start_cycles);
	} else {
		spin_unlock(&rq->lock);
	}
	prev->wait_name = NULL;
	local_irq_restore(flags);
}

/* Returns true if another task should run now. */
static bool curr_is_done(struct rq *rq, struct task *curr)
{
	u64 now_ns;

	ASSERT_HELD(&rq->lock);
	if (!task_allowed(curr, curr->cpu))
		return true;
	if (unlikely(rq->priority)) {
		if (rt_tick(rq, curr))
			return true;
		if (curr->rt_priority)
			return false;
	}
	if (!rq->nr_queued || curr == rq->idle)
		return rq->nr_queued;
	now_ns = clock_monotonic_ns();
	if (now_ns >= curr->slice_end_ns)
		return true;
	return !list_empty(&rq->woken) && now_ns < rq->queue_due_ns &&
	       now_ns >= curr->slice_end_ns - SLICE_NS + WOKEN_GRACE_NS;
}

u64 sched_nr_switches(void)
{
	unsigned int cpu;
	u64 nr = 0;

	for_each_online_cpu(cpu)
		nr += READ_ONCE(rqs[cpu].nr_switches);
	return nr;
}

unsigned int sched_nr_runnable(unsigned int cpu)
{
	return rq_load(&rqs[cpu]);
}

/* Returns true if a real-time task is where it belongs, behind those with a priority of `most`. */
static __maybe_unused bool in_order(const struct task *task, unsigned int *most)
{
	bool is_in_order = task->rt_priority && task->rt_priority <= *most;

	*most = task->rt_priority;
	return is_in_order;
}

/*
 * For an assertion. Returns true if nr_queued is the length of all lists, all tasks in them are
 * marked as queued, and those in real_time are in order.
 */
static __maybe_unused bool queues_are_sound(const struct rq *rq)
{
	const struct list_head *lists[] = { &rq->woken, &rq->queue, &rq->real_time };
	const struct task *task;
	unsigned int most = rq->priority;
	unsigned int nr = 0;

	for (int i = 0; i < ARRAY_SIZE(lists); i++) {
		list_for_each_entry(task, lists[i], run_node) {
			if (!task->on_rq || task->cpu != rq - rqs || task == rq->curr)
				return false;
			if (lists[i] != &rq->real_time ? task->rt_priority : !in_order(task, &most))
				return false;
			nr++;
		}
	}
	return nr == rq->nr_queued;
}

void sched_tick(void)
{
	struct rq *rq = this_rq();

	ASSERT_IRQS_OFF();
	if (unlikely(!rq->curr))
		return;
	spin_lock(&rq->lock);
	DEBUG_ASSERT(queues_are_sound(rq));
	if (unlikely(READ_ONCE(rt_waiting_cpus)))
		rt_balance_tick(rq);
	sched_balance_tick(rq);
	if (curr_is_done(rq, rq->curr))
		WRITE_ONCE(rq->curr->need_resched, true);
	spin_unlock(&rq->lock);
}

void sched_set_affinity(struct task *task, cpumask_t cpus)
{
	unsigned long flags = local_irq_save();
	struct rq *rq = task_rq_lock(task);
	bool move = false;

	ASSERT_PROCESS_CONTEXT();
	DEBUG_ASSERT(cpus & sched_cpus);
	WRITE_ONCE(task->cpus_allowed, cpus);
	if (!task_allowed(task, task->cpu)) {
		if (rq->curr == task)
			resched_rq(rq);
		move = task->on_rq;
		if (move)
			sched_dequeue(rq, task);
	}
	spin_unlock(&rq->lock);
	if (move)
		sched_place(task);
	local_irq_restore(flags);
	cond_resched();
}

bool task_is_off_cpu(struct task *task, bool *asleep)
{
	unsigned long flags = local_irq_save();
	struct rq *rq = task_rq_lock(task);
	bool off = !READ_ONCE(task->on_cpu);

	*asleep = task->state != TASK_RUNNING;
	spin_unlock(&rq->lock);
	local_irq_restore(flags);
	return off;
}
