// SPDX-License-Identifier: BSD-2-Clause
/*
 * CPU times for programs: user and system time of threads, processes and CPUs, computed from the
 * accounts of <lego/cputime.h> when a program asks. At each tick, the timers and limits of CPU time
 * are checked and, on the boot CPU, the load averages updated.
 */

#include <lego/account.h>

#include <lego/assert.h>
#include <lego/cputime.h>
#include <lego/irq.h>
#include <lego/process.h>
#include <lego/smp.h>
#include <lego/string.h>

#define LOAD_INTERVAL_NS (5 * NSEC_PER_SEC)
#define LOAD_SHIFT	 16
#define NR_LOADS	 3

static u64 loads[NR_LOADS];
static u64 next_load_ns = LOAD_INTERVAL_NS;

/* The share of the old value that remains after an interval: e^(-5 s / 1, 5, 15 min), in 2^-16. */
static const u32 load_decay[NR_LOADS] = { 60297, 64453, 65173 };

static u64 nr_runnable(void)
{
	unsigned int cpu;
	u64 nr = 0;

	for_each_online_cpu(cpu)
		nr += sched_nr_runnable(cpu);
	return nr;
}

static void sample_load(void)
{
	u64 now_ns = clock_monotonic_ns(), active;

	if (now_ns < next_load_ns)
		return;
	active = nr_runnable() << LOAD_SHIFT;
	for (; next_load_ns <= now_ns; next_load_ns += LOAD_INTERVAL_NS) {
		for (int i = 0; i < NR_LOADS; i++) {
			u64 load = loads[i] * load_decay[i] +
				   active * ((1u << LOAD_SHIFT) - load_decay[i]);

			WRITE_ONCE(loads[i], load >> LOAD_SHIFT);
		}
	}
}

/* Without exact accounts, the owner that the tick has interrupted gets all of the period. */
static void charge_period(void)
{
	u32 owner = this_cpu_read(cpu_account.interrupted);

	if (!IS_ENABLED(CONFIG_CPU_ACCOUNTING) && owner != CPUTIME_SYSTEM)
		this_cpu_add(cpu_account.sums.cycles[owner], tsc_khz * 1000 / tick_hz);
}

void account_tick(const struct pt_regs *regs)
{
	struct task *task = current;

	ASSERT_IRQS_OFF();
	this_cpu_inc(cpu_account.nr_ticks);
	late_kill_tick(regs);
	charge_period();
	/* A kernel thread of a test has an mm, but no process. */
	if (task->proc && task->mm && irq_depth() == 1) {
		signal_charge_tick(task->proc, user_mode(regs));
		process_limit_cpu(task->proc);
	}
	if (smp_processor_id() == 0)
		sample_load();
}

u64 account_nr_ticks(unsigned int cpu)
{
	return READ_ONCE(per_cpu(cpu_account, cpu).nr_ticks);
}

static u64 clock_ticks(u64 cycles)
{
	return cycles_to_ns(cycles) / NSEC_PER_TICK;
}

void account_cpu_times(unsigned int cpu, struct cpu_ticks *ticks)
{
	struct cputime all = { 0 }, idle;
	u64 total = cputime_add_cpu(cpu, &all), idle_cycles, irq, user;

	cputime_of_task(sched_idle_task(cpu), &idle);
	idle_cycles = idle.cycles[CPUTIME_SYSTEM];
	user = all.cycles[CPUTIME_USER];
	irq = all.cycles[CPUTIME_IRQ] + all.cycles[CPUTIME_NMI];
	*ticks = (struct cpu_ticks){
		.user = clock_ticks(user),
		.irq = clock_ticks(irq),
		.idle = clock_ticks(idle_cycles),
		.system = clock_ticks(total - min(total, user + irq + idle_cycles)),
	};
}

void account_load_averages(u64 averages[3])
{
	for (int i = 0; i < NR_LOADS; i++)
		averages[i] = READ_ONCE(loads[i]);
}

void cpu_times_set(struct cpu_times *times, const struct cputime *time)
{
	u64 total_ns = cycles_to_ns(cputime_own(time));
	u64 user_ns = cycles_to_ns(time->cycles[CPUTIME_USER]);

	/* Another thread has stored a later total. */
	if (total_ns < times->user_ns + times->system_ns)
		return;
	times->user_ns = min(max(user_ns, times->user_ns), total_ns - times->system_ns);
	times->system_ns = total_ns - times->user_ns;
}

void task_cpu_times(struct task *task, struct cpu_times *times)
{
	struct cputime time;

	ASSERT_HELD(&task->proc->lock);
	cputime_of_task(task, &time);
	cpu_times_set(&task->cpu_times, &time);
	*times = task->cpu_times;
}

void task_add_events(const struct task *task, u64 events[NR_CPU_EVENTS])
{
	events[CPU_VOLUNTARY] += READ_ONCE(task->nr_voluntary);
	events[CPU_INVOLUNTARY] += READ_ONCE(task->nr_involuntary);
	events[CPU_FAULTS] += fault_counts_sum(&task->faults);
}

struct cputime process_cputime(struct process *proc, u64 events[NR_CPU_EVENTS])
{
	struct cputime time;
	struct task *task;

	ASSERT_HELD(&proc->lock);
	if (proc->group.has_begun) {
		cputime_of_group(&proc->group, &time, events);
		return time;
	}
	memset(&time, 0, sizeof(time));
	memset(events, 0, NR_CPU_EVENTS * sizeof(*events));
	/* There is no more than one. */
	list_for_each_entry(task, &proc->threads, thread_node) {
		cputime_of_task(task, &time);
		task_add_events(task, events);
	}
	return time;
}

void process_cpu_times(struct process *proc, struct cpu_times *times, u64 events[NR_CPU_EVENTS])
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	struct cputime time = process_cputime(proc, events);

	cpu_times_set(&proc->cpu_times, &time);
	*times = proc->cpu_times;
	spin_unlock_irqrestore(&proc->lock, flags);
}
