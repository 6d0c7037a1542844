/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PORT_TASK_H
#define PORT_TASK_H

/*
 * Tasks on several CPUs. They belong to processes and make system calls. A tick may take the CPU
 * from a task, but not within a system call.
 */

#include "kernel.h"

#include <profile/profile.h>

#define SYSCALLS(X) X(exit) X(getpid) X(read) X(sleep) X(checksum) X(put) X(get)

#define SYSCALL_NUMBER(name) SYS_##name,
enum syscall {
	SYSCALLS(SYSCALL_NUMBER) NR_SYSCALLS
};
#undef SYSCALL_NUMBER

#define NO_SYSCALL 0xffff

struct process {
	int pid;
	char name[16];
	u32 nr_tasks;
	u64 start_cycles;
	struct profile_process profile;
};

enum task_state {
	TASK_IDLE, /* the state of idle tasks */
	TASK_READY,
	TASK_RUNS,
	TASK_SLEEPS,
	TASK_DEAD,
};

struct task {
	u64 sp; /* while it does not run */
	u32 tid;
	char name[16];
	struct process *proc; /* NULL: an idle task */
	void (*run)(void);
	struct task *next; /* all tasks but idle ones, in a ring */
	enum task_state state;
	const char *sleeps_for; /* or slept for */
	u64 wake_tick;
	u32 cpu;     /* where it runs, or ran last */
	u32 syscall; /* the current call, or NO_SYSCALL */
	u64 arg;     /* of it */
	/*
	 * The CPU time up to now, in cycles; or, with TIME_RUNS, while the task runs, the time off
	 * a CPU. It is one word, so that other CPUs never see half of a switch.
	 */
	u64 time;
	struct profile_task profile;
};

#define TIME_RUNS (1ul << 63)

extern const char scheduler_begin[], scheduler_end[]; /* its code */

struct process *process_create(const char *name);
/* Creates a task, which starts when all are there: a process ends with the last of its tasks. */
void task_create(struct process *proc, const char *name, void (*run)(void));
/* Starts all CPUs and the profilers. */
void start_cpus_and_profilers(const char *boot_line);
/* Runs tasks on this CPU, until those of all CPUs have exited. The caller is the idle task. */
void run_until_all_exit(void);

/* Makes a system call, as a user program would. strace counts it. */
long syscall(enum syscall nr, u64 arg);
const char *syscall_name(u64 nr);

static inline u64 process_age_ns(const struct process *proc)
{
	return cycles_to_ns(read_cycles() - proc->start_cycles);
}

/* Returns the CPU time of any task so far. */
static inline u64 task_exec_cycles(const struct task *task)
{
	u64 time = pf_read_once(task->time);

	return time & TIME_RUNS ? read_cycles() - (time & ~TIME_RUNS) : time;
}

/* Returns how long a running task has been off a CPU since the clock was 0. */
static inline u64 task_off_cycles(const struct task *task)
{
	return pf_read_once(task->time) & ~TIME_RUNS;
}

#endif
