/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_ACCOUNT_H
#define LEGO_ACCOUNT_H

/*
 * CPU time accounting for times(), getrusage() and /proc. A task's CPU time is exact
 * (task_exec_cycles()). Its division into user and system time is exact if the profilers know the
 * user time; otherwise it is in proportion to timer ticks.
 */

#include <lego/types.h>

struct process;
struct pt_regs;

/*
 * Charges this tick to the context that it interrupted. Called by the timer interrupt, interrupts
 * off.
 */
void account_tick(const struct pt_regs *regs);

struct cpu_times {
	u64 user_ns;
	u64 system_ns;
};

#define USER_CYCLES_UNKNOWN (~0ULL) /* the profilers have stored nothing */

/*
 * Divides total_ns into user_ns and the rest. *times has the previous result, 0 at first: neither
 * part decreases, even if user_ns is not exact. The caller guards *times.
 */
void cpu_times_set_user(struct cpu_times *times, u64 total_ns, u64 user_ns);

/* Does the same in proportion to ticks. */
void cpu_times_divide(struct cpu_times *times, u64 total_ns, u64 user_ticks, u64 system_ticks);

/* Computes the times of all threads of a process, including ended ones. Any context but NMI. */
void process_cpu_times(struct process *proc, struct cpu_times *times);

/* A CPU's ticks since boot. */
struct cpu_ticks {
	u64 user, system, irq, idle;
};
void account_cpu_ticks(unsigned int cpu, struct cpu_ticks *ticks);

/*
 * Returns the runnable tasks averaged over 1, 5 and 15 minutes, as fixed point with 16 bits of
 * fraction.
 */
void account_load_averages(u64 loads[3]);

#endif
