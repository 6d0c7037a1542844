// SPDX-License-Identifier: BSD-2-Clause
/* Reads and switches the clocks of <lego/cputime.h>, and adds up the sums of tasks and CPUs. */

#include <lego/cputime.h>

#include "rq.h"
#include <asm/irqflags.h>
#include <asm/tsc.h>
#include <lego/assert.h>
#include <lego/bug.h>
#include <lego/string.h>

DEFINE_PER_CPU(struct cpu_account, cpu_account);

void cputime_init_cpu(void)
{
	this_cpu_write(cpu_account.start_cycles, rdtsc());
}

/* Reads again if an NMI came in between. The entry code's reads are repeated by the NMI itself. */
u64 cputime_clock(u64 *tsc)
{
	u64 nmi_cycles;

	do {
		nmi_cycles = this_cpu_read(cpu_account.sums.cycles[CPUTIME_NMI]);
		*tsc = rdtsc();
	} while (this_cpu_read(cpu_account.sums.cycles[CPUTIME_NMI]) != nmi_cycles);
	return *tsc - nmi_cycles;
}

static void unlock_task(struct rq *rq)
{
	if (rq)
		spin_unlock(&rq->lock);
}

/*
 * With the locks that readers take: otherwise a reader between the read of the clock and the change
 * would give the time since then to the owner before, and the next reader would take it away.
 */
u32 cputime_set_owner(u32 owner)
{
	unsigned long flags = local_irq_save();
	struct rq *rq = panic_in_progress() ? NULL : this_rq();
	struct group_account *group = rq ? current->group : NULL;
	u32 before;
	u64 tsc;

	if (rq)
		spin_lock(&rq->lock);
	if (group)
		spin_lock(&group->lock);
	before = cputime_enter(owner, cputime_clock(&tsc));
	if (group)
		spin_unlock(&group->lock);
	unlock_task(rq);
	local_irq_restore(flags);
	return before;
}

/* Returns what an owner has had on a CPU. clock_cycles is that CPU's clock. */
static u64 read_sum(const struct cpu_account *account, u32 owner, u64 clock_cycles)
{
	u64 cycles = READ_ONCE(account->sums.cycles[owner]);

	return (s64)cycles < 0 ? cycles + clock_cycles : cycles;
}

/*
 * Adds this CPU's account to sums, or subtracts it. The times are those of cputime_clock(): an NMI
 * since then belongs to later.
 */
static __always_inline void move_account(struct cpu_sums *sums, s64 sign, u64 tsc, u64 now_cycles)
{
	const struct cpu_account *account = this_cpu_ptr(&cpu_account);

	ASSERT_IRQS_OFF();
	for (u32 i = CPUTIME_SYSTEM + 1; i < NR_CPUTIMES; i++) {
		u64 cycles = i == CPUTIME_NMI ? tsc - now_cycles : account->sums.cycles[i];

		sums->time.cycles[i] += sign * cycles;
	}
	/* The sum of the present owner is that much less. CPUTIME_SYSTEM has none. */
	if (IS_ENABLED(CONFIG_CPU_ACCOUNTING))
		sums->time.cycles[account->owner] += sign * now_cycles;
	sums->exec_cycles += sign * tsc;
	for (u32 i = 0; i < NR_CPU_EVENTS; i++)
		sums->events[i] += sign * account->events[i];
}

u64 cputime_leave_group(struct group_account *group, u64 *tsc)
{
	u64 now_cycles;

	spin_lock(&group->lock);
	now_cycles = cputime_clock(tsc);
	move_account(&group->sums, 1, *tsc, now_cycles);
	group->cpus &= ~BIT(smp_processor_id());
	spin_unlock(&group->lock);
	return now_cycles;
}

void cputime_join_group(struct group_account *group, u64 tsc, u64 now_cycles)
{
	spin_lock(&group->lock);
	move_account(&group->sums, -1, tsc, now_cycles);
	group->cpus |= BIT(smp_processor_id());
	spin_unlock(&group->lock);
}

/* Begins the sums with those of the current thread, which has been alone until now. */
static void begin_sums(struct group_account *group, u64 tsc, u64 clock_cycles)
{
	const struct task *task = current;

	DEBUG_ASSERT(!task->group && !group->has_begun);
	group->has_begun = true;
	group->sums.time = task->cputime;
	group->sums.exec_cycles = task->sum_exec_cycles - task->exec_start_cycles;
	move_account(&group->sums, 1, tsc, clock_cycles);
	memset(group->sums.events, 0, sizeof(group->sums.events));
	task_add_events(task, group->sums.events);
}

void cputime_begin_group(struct group_account *group)
{
	unsigned long flags = local_irq_save();
	u64 tsc, clock = cputime_clock(&tsc);

	begin_sums(group, tsc, clock);
	current->group = group;
	cputime_join_group(group, tsc, clock);
	local_irq_restore(flags);
}

void cputime_end_thread(struct group_account *group)
{
	unsigned long flags = local_irq_save();
	u64 tsc, clock;

	if (group->has_begun) {
		cputime_leave_group(group, &tsc);
	} else {
		clock = cputime_clock(&tsc);
		begin_sums(group, tsc, clock);
	}
	current->group = NULL;
	local_irq_restore(flags);
}

void cputime_switch(struct task *prev, struct task *next, u64 tsc, u64 now_cycles)
{
	struct cpu_account *account = this_cpu_ptr(&cpu_account);
	u64 *sums = account->sums.cycles;

	ASSERT_IRQS_OFF();
	if (IS_ENABLED(CONFIG_CPU_ACCOUNTING))
		sums[account->owner] += now_cycles;
	for (u32 i = CPUTIME_SYSTEM + 1; i < NR_CPUTIMES; i++) {
		/* An NMI since the clock was read belongs to next. */
		u64 cycles = i == CPUTIME_NMI ? tsc - now_cycles : sums[i];

		prev->cputime.cycles[i] += cycles;
		next->cputime.cycles[i] -= cycles;
	}
	prev->cputime_owner = account->owner;
	account->owner = next->cputime_owner;
	if (IS_ENABLED(CONFIG_CPU_ACCOUNTING))
		sums[account->owner] -= now_cycles;
}

static u64 exec_cycles(const struct task *task, bool runs, u64 now)
{
	return task->sum_exec_cycles +
	       (runs && now > task->exec_start_cycles ? now - task->exec_start_cycles : 0);
}

/*
 * Locks the queue of a task, unless other CPUs are stopped, or the task is the current one: only
 * this CPU, whose interrupts are off, changes its times. Stores whether the task runs.
 */
static struct rq *lock_task(struct task *task, bool *runs)
{
	struct rq *rq;

	if (task == current) {
		*runs = true;
		return NULL;
	}
	if (panic_in_progress()) {
		*runs = READ_ONCE(task->on_cpu);
		return NULL;
	}
	rq = task_rq_lock(task);
	*runs = rq->curr == task;
	return rq;
}

u64 task_exec_cycles(struct task *task)
{
	unsigned long flags = local_irq_save();
	bool runs;
	struct rq *rq = lock_task(task, &runs);
	u64 cycles = exec_cycles(task, runs, rdtsc());

	unlock_task(rq);
	local_irq_restore(flags);
	return cycles;
}

void cputime_limit_sums(struct cputime *time, s64 total)
{
	u64 rest = max(total, 0);

	for (u32 i = NR_CPUTIMES - 1; i > CPUTIME_SYSTEM; i--) {
		time->cycles[i] = min((u64)max((s64)time->cycles[i], 0), rest);
		rest -= time->cycles[i];
	}
	time->cycles[CPUTIME_SYSTEM] = rest;
}

void cputime_of_group(struct group_account *group, struct cputime *time, u64 events[NR_CPU_EVENTS])
{
	unsigned long flags = spin_lock_irqsave(&group->lock);
	u64 now = rdtsc(), total = group->sums.exec_cycles;

	*time = group->sums.time;
	memcpy(events, group->sums.events, sizeof(group->sums.events));
	for (cpumask_t cpus = group->cpus; cpus; cpus &= cpus - 1) {
		unsigned int cpu = (unsigned int)__builtin_ctzll(cpus);
		const struct cpu_account *account = &per_cpu(cpu_account, cpu);
		u64 clock_cycles = now - READ_ONCE(account->sums.cycles[CPUTIME_NMI]);

		total += now;
		for (u32 i = CPUTIME_SYSTEM + 1; i < NR_CPUTIMES; i++)
			time->cycles[i] += read_sum(account, i, clock_cycles);
		for (u32 i = 0; i < NR_CPU_EVENTS; i++)
			events[i] += READ_ONCE(account->events[i]);
	}
	spin_unlock_irqrestore(&group->lock, flags);
	cputime_add_rest(time, total);
}

void cputime_of_task(struct task *task, struct cputime *time)
{
	unsigned long flags = local_irq_save();
	bool runs;
	struct rq *rq = lock_task(task, &runs);
	const struct cpu_account *account = &per_cpu(cpu_account, task->cpu);
	u64 now = rdtsc(), total = exec_cycles(task, runs, now);
	u64 clock_cycles = now - READ_ONCE(account->sums.cycles[CPUTIME_NMI]);

#pragma GCC unroll 8
	for (u32 i = CPUTIME_SYSTEM + 1; i < NR_CPUTIMES; i++) {
		u64 cycles = runs ? read_sum(account, i, clock_cycles) : 0;

		time->cycles[i] = task->cputime.cycles[i] + cycles;
	}
	cputime_add_rest(time, total);
	unlock_task(rq);
	local_irq_restore(flags);
}

u64 cputime_add_cpu(unsigned int cpu, struct cputime *sum)
{
	const struct cpu_account *account = &per_cpu(cpu_account, cpu);
	u64 now = rdtsc(), total = now - account->start_cycles, known = 0;
	u64 clock_cycles = now - READ_ONCE(account->sums.cycles[CPUTIME_NMI]);

	for (u32 i = CPUTIME_SYSTEM + 1; i < NR_CPUTIMES; i++) {
		u64 cycles = read_sum(account, i, clock_cycles);

		sum->cycles[i] += cycles;
		known += cycles;
	}
	sum->cycles[CPUTIME_SYSTEM] += total > known ? total - known : 0;
	return total;
}

static u64 ended_cycles; /* CPUTIME_SYSTEM of kernel threads that have ended */

void cputime_end_kernel_thread(struct task *task)
{
	struct cputime time;

	cputime_of_task(task, &time);
	__atomic_fetch_add(&ended_cycles, time.cycles[CPUTIME_SYSTEM], __ATOMIC_RELAXED);
}

static u64 system_cycles(struct task *task)
{
	struct cputime time;

	cputime_of_task(task, &time);
	return time.cycles[CPUTIME_SYSTEM];
}

/* The parts were read after the whole, and have grown meanwhile. */
static void limit_parts(struct cputime_machine *machine)
{
	u64 cycles = machine->all.cycles[CPUTIME_SYSTEM];

	machine->kernel_thread_cycles = min(machine->kernel_thread_cycles, cycles);
	machine->idle_cycles = min(machine->idle_cycles, cycles - machine->kernel_thread_cycles);
}

void cputime_of_machine(struct cputime_machine *machine)
{
	bool locks = !panic_in_progress();
	unsigned long flags = locks ? spin_lock_irqsave(&task_list_lock) : 0;
	struct task *task;
	unsigned int cpu;

	*machine = (struct cputime_machine){ .kernel_thread_cycles = ended_cycles };
	for_each_online_cpu(cpu) {
		machine->nr_cpus++;
		cputime_add_cpu(cpu, &machine->all);
		machine->idle_cycles += system_cycles(sched_idle_task(cpu));
	}
	list_for_each_entry(task, &kernel_threads, thread_node) {
		if (!READ_ONCE(task->is_gone))
			machine->kernel_thread_cycles += system_cycles(task);
	}
	if (locks)
		spin_unlock_irqrestore(&task_list_lock, flags);
	limit_parts(machine);
}

u64 cputime_own(const struct cputime *time)
{
	u64 cycles = 0;

#pragma GCC unroll 8
	for (u32 i = 0; i < NR_CPUTIMES; i++) {
		if (i != CPUTIME_REPORT && i != CPUTIME_EXIT)
			cycles += time->cycles[i];
	}
	return cycles;
}

u64 task_own_cycles(struct task *task)
{
	struct cputime time;

	cputime_of_task(task, &time);
	return cputime_own(&time);
}
