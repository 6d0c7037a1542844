/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PORT_TASK_H
#define PORT_TASK_H

/*
 * Tasks on several CPUs. They belong to processes and make system calls. A tick may take the CPU
 * from a task, but not within a system call.
 */

#include "kernel.h"

#include <batteries/cpu_time.h>
#include <profile/profile.h>

#define SYSCALLS(X) X(exit) X(read) X(sleep) X(checksum) X(put) X(get)

#define SYSCALL_NUMBER(name) SYS_##name,
enum syscall {
	SYSCALLS(SYSCALL_NUMBER) NR_SYSCALLS
};

#define NO_SYSCALL 0xffff

struct process {
	int pid;
	const char *name;
	u32 nr_tasks; /* that have not exited */
	u64 start_cycles;
	struct profile_process profile;
};

struct task {
	u64 sp; /* while it does not run */
	u32 tid;
	char name[16];
	struct process *proc; /* NULL: an idle task */
	void (*run)(void);
	bool is_awake, is_on_cpu; /* idle tasks are never awake */
	const char *sleeps_for;	  /* or slept for; NULL: for its start */
	u32 wake_tick;
	u32 syscall; /* the current call, or NO_SYSCALL */
	u64 arg;     /* of it */
	struct battery_cpu_time time;
	struct profile_task profile;
};

/* main.c: all tasks but idle ones. They start when all CPUs have. */
#define NR_TASKS 11
extern struct task tasks[NR_TASKS];

/* The scheduler's code. */
extern const char scheduler_begin[], scheduler_end[];

/* Makes a system call, as a user program would. strace counts it. */
long syscall(enum syscall nr, u64 arg);
extern const char *const syscall_names[];

#endif
