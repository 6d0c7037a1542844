/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_ACCOUNT_H
#define LEGO_ACCOUNT_H

/*
 * Where time goes, in the small: by the timer tick, for times(), getrusage() and /proc. A task's
 * CPU time is exact (task_exec_cycles()); its split into user and system is in proportion to ticks.
 */

#include <lego/types.h>

struct process;
struct pt_regs;

/* From the timer interrupt, interrupts off: charge this tick to what it interrupted. */
void account_tick(const struct pt_regs *regs);

struct cpu_times {
	u64 user_ns;
	u64 system_ns;
};

/* Of all threads of a process, gone ones included. Any context but NMI. */
void process_cpu_times(struct process *proc, struct cpu_times *times);

/* A CPU's ticks since boot. */
struct cpu_ticks {
	u64 user, system, irq, idle;
};
void account_cpu_ticks(unsigned int cpu, struct cpu_ticks *ticks);

/* Runnable tasks averaged over 1, 5 and 15 minutes, fixed point with 16 bits of fraction. */
void account_load_averages(u64 loads[3]);

#endif
