/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_ACCOUNT_H
#define LEGO_ACCOUNT_H

/*
 * Where time goes, in the small: by the timer tick, for times(), getrusage() and /proc. A task's
 * CPU time is exact (task_exec_cycles()). So is its split into user and system if the profilers
 * know the user time; else it is in proportion to ticks.
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

#define USER_CYCLES_UNKNOWN (~0ULL) /* the profilers have stored nothing */

/*
 * Divides total_ns into user_ns and the rest. *times is the result of the last time, 0 at first: no
 * part gets smaller, even if user_ns is not exact. The caller keeps others from *times.
 */
void cpu_times_set_user(struct cpu_times *times, u64 total_ns, u64 user_ns);

/* The same, in proportion to ticks. */
void cpu_times_divide(struct cpu_times *times, u64 total_ns, u64 user_ticks, u64 system_ticks);

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
