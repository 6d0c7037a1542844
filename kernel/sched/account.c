// SPDX-License-Identifier: BSD-2-Clause
#include <lego/account.h>

#include <lego/assert.h>
#include <lego/irq.h>
#include <lego/math64.h>
#include <lego/process.h>
#include <lego/smp.h>

/*
 * Accounts CPU time by ticks. Each tick is charged as a whole to the context that it interrupted,
 * in the counters of its CPU and, for a user thread, of the thread. Only that CPU writes to either.
 * The boot CPU samples the load every few seconds.
 */

#define LOAD_INTERVAL_NS (5 * NSEC_PER_SEC)
#define LOAD_SHIFT	 16
#define NR_LOADS	 3

static DEFINE_PER_CPU(struct cpu_ticks, cpu_ticks);

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

void account_tick(const struct pt_regs *regs)
{
	struct task *task = current;

	ASSERT_IRQS_OFF();
	if (user_mode(regs)) {
		this_cpu_inc(cpu_ticks.user);
		WRITE_ONCE(task->user_ticks, task->user_ticks + 1);
	} else if (irq_depth() > 1) {
		this_cpu_inc(cpu_ticks.irq);
	} else if (task == sched_idle_task(smp_processor_id())) {
		this_cpu_inc(cpu_ticks.idle);
	} else {
		this_cpu_inc(cpu_ticks.system);
		WRITE_ONCE(task->system_ticks, task->system_ticks + 1);
	}
	/*
	 * A thread without an mm is exiting. A kernel thread of a test has an mm, but no process.
	 */
	if (task->proc && task->mm && irq_depth() == 1) {
		signal_charge_tick(task->proc, user_mode(regs));
		process_limit_cpu(task->proc);
	}
	if (smp_processor_id() == 0)
		sample_load();
}

void account_cpu_ticks(unsigned int cpu, struct cpu_ticks *ticks)
{
	const struct cpu_ticks *from = &per_cpu(cpu_ticks, cpu);

	ticks->user = READ_ONCE(from->user);
	ticks->system = READ_ONCE(from->system);
	ticks->irq = READ_ONCE(from->irq);
	ticks->idle = READ_ONCE(from->idle);
}

void account_load_averages(u64 averages[3])
{
	for (int i = 0; i < NR_LOADS; i++)
		averages[i] = READ_ONCE(loads[i]);
}

void cpu_times_set_user(struct cpu_times *times, u64 total_ns, u64 user_ns)
{
	/* Another thread has stored a later total. */
	if (total_ns < times->user_ns + times->system_ns)
		return;
	times->user_ns = min(max(user_ns, times->user_ns), total_ns - times->system_ns);
	DEBUG_ASSERT(times->user_ns + times->system_ns <= total_ns);
	times->system_ns = total_ns - times->user_ns;
}

void cpu_times_divide(struct cpu_times *times, u64 total_ns, u64 user_ticks, u64 system_ticks)
{
	u64 nr_ticks = user_ticks + system_ticks, user_ns = 0;

	/*
	 * No tick has hit the process: it has run only briefly, in system calls or on the way to
	 * exec.
	 */
	if (nr_ticks)
		user_ns = mul_div_u64(total_ns, user_ticks, nr_ticks);
	cpu_times_set_user(times, total_ns, user_ns);
}

void process_cpu_times(struct process *proc, struct cpu_times *times)
{
	u64 user_cycles = USER_CYCLES_UNKNOWN, user, system, total_ns;
	struct task *task;
	unsigned long flags;

	/* Read before the total, so that the total is not less. */
	profile_get_user_cycles(proc, &user_cycles);
	total_ns = cycles_to_ns(process_exec_cycles(proc));
	flags = spin_lock_irqsave(&proc->lock);
	user = proc->exited_user_ticks;
	system = proc->exited_system_ticks;
	list_for_each_entry(task, &proc->threads, thread_node) {
		user += READ_ONCE(task->user_ticks);
		system += READ_ONCE(task->system_ticks);
	}
	if (user_cycles != USER_CYCLES_UNKNOWN)
		cpu_times_set_user(&proc->cpu_times, total_ns, cycles_to_ns(user_cycles));
	else
		cpu_times_divide(&proc->cpu_times, total_ns, user, system);
	*times = proc->cpu_times;
	spin_unlock_irqrestore(&proc->lock, flags);
}
