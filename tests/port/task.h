/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PORT_TASK_H
#define PORT_TASK_H

/* Cooperative tasks on one CPU. They belong to processes and make system calls. */

#include "kernel.h"

#include <profile/profile.h>

#define SYSCALLS(X) X(exit) X(getpid) X(read) X(sleep) X(checksum)

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

struct task {
	u64 sp; /* while it does not run */
	u32 tid;
	char name[16];
	struct process *proc; /* NULL: the idle task */
	void (*run)(void);
	struct task *next; /* all tasks, in a ring */
	u64 wake_tick;	   /* the task sleeps until this tick */
	bool dead;
	u32 syscall; /* the current call, or NO_SYSCALL */
	u64 on_since_cycles;
	u64 ran_cycles; /* in earlier turns */
	struct profile_task profile;
};

extern struct task *current;

struct process *process_create(const char *name);
void task_create(struct process *proc, const char *name, void (*run)(void));
void run_until_all_exit(void);

/* Makes a system call, as a user program would. strace counts it. */
long syscall(enum syscall nr, u64 arg);
const char *syscall_name(u64 nr);

static inline u32 task_pid(const struct task *task)
{
	return task->proc ? task->proc->pid : 0;
}

static inline u64 process_age_ns(const struct process *proc)
{
	return cycles_to_ns(read_cycles() - proc->start_cycles);
}

/* Returns the CPU time of any task so far. */
static inline u64 task_exec_cycles(const struct task *task)
{
	return task->ran_cycles + (task == current ? read_cycles() - task->on_since_cycles : 0);
}

/* In schedule(), this difference grows by the time that the task was not running. */
static inline u64 task_off_cycles(const struct task *task)
{
	return task->on_since_cycles - task->ran_cycles;
}

#endif
