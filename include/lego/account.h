/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_ACCOUNT_H
#define LEGO_ACCOUNT_H

/*
 * CPU times for times(), getrusage() and /proc, from the accounts of <lego/cputime.h>.
 */

#include <lego/cputime.h>

struct process;
struct pt_regs;
struct task;

/*
 * Charges this tick to the context that it interrupted. Called by the timer interrupt, interrupts
 * off.
 */
void account_tick(const struct pt_regs *regs);

/* Called by account_tick(): prints what this CPU runs if a killed process is late to end. */
void late_kill_tick(const struct pt_regs *regs);

struct cpu_times {
	u64 user_ns;
	u64 system_ns;
};

/*
 * Divides a thread's or a process's own time into user time and the rest. *times has the result
 * before, 0 at first: neither part becomes less, though the clocks of two CPUs may differ a little.
 * The caller guards *times.
 */
void cpu_times_set(struct cpu_times *times, const struct cputime *time);

/*
 * Returns the times of all threads of a process, including ended ones, and stores what they have
 * counted. proc->lock is held.
 */
struct cputime process_cputime(struct process *proc, u64 events[NR_CPU_EVENTS]);

/* Adds what a thread has counted. */
void task_add_events(const struct task *task, u64 events[NR_CPU_EVENTS]);

/*
 * Compute the times of a thread, whose proc->lock is held, and of all threads of a process,
 * including ended ones, and store what these have counted. No part of the times is ever less than
 * the one that was returned before. Any context but NMI.
 */
void task_cpu_times(struct task *task, struct cpu_times *times);
void process_cpu_times(struct process *proc, struct cpu_times *times, u64 events[NR_CPU_EVENTS]);

/* A CPU's times since boot, in clock ticks (100 a second). Any context but NMI. */
struct cpu_ticks {
	u64 user, system, irq, idle;
};
void account_cpu_times(unsigned int cpu, struct cpu_ticks *ticks);

/* Returns how many ticks a CPU has had. */
u64 account_nr_ticks(unsigned int cpu);

/*
 * Returns the runnable tasks averaged over 1, 5 and 15 minutes, as fixed point with 16 bits of
 * fraction.
 */
void account_load_averages(u64 loads[3]);

#endif
