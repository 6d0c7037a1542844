/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROCESS_PROCESS_H
#define PROCESS_PROCESS_H

/* Shared by the files of kernel/process/ only. */

#include <lego/sched.h>

/* A sleeping task with a stack and one reference, on task_list. NULL when out of memory. */
struct task *task_alloc(const char *comm, struct process *proc);

/* A task that never ran: drops it with its number and its place in the process. */
void task_abandon(struct task *task);

/* The number of the next user thread: 1, 2, 3, ... */
pid_t pid_alloc(void);

struct process *process_alloc(const char *comm);
void process_put(struct process *proc);

/* -EAGAIN when the process is ending or the current task has to leave. */
int process_add_thread(struct process *proc, struct task *task);

/* Make all threads but the current one leave and wait until they are gone. 0, -EAGAIN or -EINTR. */
int process_kill_others(struct process *proc);

/* A thread of the process by tid, with a reference, or NULL. */
struct task *process_find_thread(struct process *proc, pid_t tid);

/*
 * 0 or the current thread itself, or another of its process, with a reference; NULL: no such
 * thread.
 */
struct task *task_find(pid_t tid);

void process_reset_signals(struct process *proc);
void process_init_limits(struct process *proc);

/* Unpredictable bytes; see random.c. Any context but NMI. */
void random_bytes(void *buf, size_t n);

/* Before user mode, interrupts on: tell the thread's rseq area its CPU, end a critical section. */
void rseq_resume(struct pt_regs *regs);

#endif
