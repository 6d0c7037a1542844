// SPDX-License-Identifier: BSD-2-Clause
/*
 * If a process has not ended one second after a signal that kills it, logs what all threads are
 * doing: the list of tasks at once, what each CPU runs at its next tick, and, by the sysrq thread,
 * what each thread waits for. So the log has the cause, even if it does not happen again. Costs a
 * timer for each killed process.
 */
#include "process.h"

#include <asm/traps.h>
#include <lego/assert.h>
#include <lego/printk.h>
#include <lego/process.h>
#include <lego/smp.h>
#include <lego/sysrq.h>
#include <lego/timer.h>

#define LATE_NS	 NSEC_PER_SEC
#define MAX_TOLD 4 /* a machine that is only slow does not flood its log */

static DEFINE_PER_CPU(bool, tell_stack);

static void is_late(struct timer *timer)
{
	struct process *proc = container_of(timer, struct process, late_kill_timer);
	static unsigned int nr_told;
	unsigned int cpu;

	if (__atomic_fetch_add(&nr_told, 1, __ATOMIC_RELAXED) >= MAX_TOLD)
		return;
	printk("process %d: killed by signal %d 1 s ago, but has %u threads yet\n", proc->pid,
	       proc->exit_status & 0x7f, READ_ONCE(proc->nr_threads));
	for_each_online_cpu(cpu)
		WRITE_ONCE(per_cpu(tell_stack, cpu), true);
	sysrq_run('t');
	sysrq_list_waits();
}

void late_kill_watch(struct process *proc)
{
	ASSERT_HELD(&proc->lock);
	timer_setup(&proc->late_kill_timer, is_late);
	timer_start(&proc->late_kill_timer, clock_monotonic_ns() + LATE_NS);
}

void late_kill_end(struct process *proc)
{
	if (proc->late_kill_timer.fn)
		timer_cancel(&proc->late_kill_timer);
}

void late_kill_tick(const struct pt_regs *regs)
{
	if (likely(!this_cpu_read(tell_stack)))
		return;
	this_cpu_write(tell_stack, false);
	dump_cpu(regs);
}
