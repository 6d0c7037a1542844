/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROCESS_PROCESS_H
#define PROCESS_PROCESS_H

/* Shared by the files of kernel/process/ only. */

#include <lego/process.h>

/*
 * pid.c: numbers. Any context but NMI. pid_get() and pid_put() count uses of a number that is in
 * use; 0, the group and session of init at first, is none and never counted.
 */
pid_t pid_alloc(
	unsigned int max); /* a free number, with one use; -EAGAIN: max are in use; -ENOMEM */
void pid_get(pid_t nr);
void pid_put(pid_t nr);
/* A member of a group uses its number. process_tree_lock held. */
void pid_join_group(struct process *proc, pid_t nr);
void pid_leave_group(struct process *proc);
/* Whose number, or thread's number, it is; NULL: nobody's any more. */
void pid_set_process(pid_t nr, struct process *proc);
/* The process that has a process or thread of that number, with a reference, or NULL. */
struct process *pid_find_process(pid_t nr);

/*
 * A sleeping task with a stack and one reference, on task_list; of a process: with a number, which
 * is not known to pid_find_process() yet. ERR_PTR: -EAGAIN when there are too many tasks, -ENOMEM.
 */
struct task *task_alloc(const char *comm, struct process *proc);

/* Most numbers of threads, zombies and groups together, and how many threads there are. */
unsigned int task_nr_users(void);

/* A process with one reference and nothing in it; not in the list. NULL when out of memory. */
struct process *process_alloc(const char *comm);

/* The current process may change on which CPUs, and how, that process runs: it is its user's. */
bool process_may_schedule(struct process *proc);

/*
 * Waits until the reports that have begun, or whose process waits for its turn, are printed, keeps
 * others from beginning, and logs how many processes end without one. Called before the machine is
 * switched off. Process context.
 */
void process_end_reports(void);

/* Give the process the mm; it takes over the reference. */
void process_set_mm(struct process *proc, struct mm *mm);

/* Take the process's mm, files and fs_info away and drop them. Process context. */
void process_drop_mm(struct process *proc);
void process_drop_files(struct process *proc);

/*
 * open_files.c. A new thread, which nobody knows yet, shares the current one's descriptors;
 * task_put_own_files() undoes that if the thread cannot start. task_leave_files() is for the
 * current thread, about to end: it uses no descriptor any more. process_replace_files() gives the
 * only thread of a process other ones, and takes over the reference. Process context.
 */
void task_share_files(struct task *task);
void task_put_own_files(struct task *task);
void task_leave_files(struct task *task);
void process_replace_files(struct process *proc, struct files *files);

/* -EAGAIN when the process is ending or the current task has to leave. */
int process_add_thread(struct process *proc, struct task *task);

/* Make all threads but the current one leave and wait until they are gone. 0, -EAGAIN or -EINTR. */
int process_kill_others(struct process *proc);

/*
 * 0: the current thread itself; else the thread of that number, of any process, with a reference.
 * NULL: no such thread.
 */
struct task *task_find(pid_t tid);

/*
 * family.c. Add a process whose first thread has its number; the thread is added, too. The list
 * takes over the process's reference. parent NULL: init. -ERESTARTNOINTR when a signal must be
 * acted on first: one that was sent to the group has reached the parent, or it reaches the child.
 */
int family_add(struct process *proc, struct task *task, struct process *creator, bool as_sibling);

/*
 * The process's last thread is leaving: its children are init's, its parent is told, and it is a
 * zombie or, when the parent wants none, gone.
 */
void family_exit(struct process *proc);

/* The process has something to wait for. process_tree_lock held. */
void family_set_waitable(struct process *proc);

/* Take a zombie out of the family under process_tree_lock; then, without the lock, drop it. */
void family_detach(struct process *proc);
void family_release(struct process *proc);

void process_init_limits(struct process *proc);

/*
 * user.c: how many threads a user has. A new process gets its parent's credentials, and counts as
 * one thread; each further thread is charged before it is there. 0, -EAGAIN: the user's limit, or
 * -ENOMEM. What is charged is given back, for a process all of it once it has been waited for.
 * proc->lock is held where it says so, else it is taken.
 */
int user_charge_process(struct process *proc, struct process *parent);
void user_uncharge_process(struct process *proc);
int user_charge_thread(struct process *proc);
void user_uncharge_thread(struct process *proc);
void user_uncharge_locked(struct process *proc, unsigned int nr);
void user_charge_init(struct process *init);
/* Sets the real user; proc->lock is held. 0, or -EAGAIN: no memory. */
int user_change(struct process *proc, u32 uid);

/* Before user mode, interrupts on: tell the thread's rseq area its CPU, end a critical section. */
void rseq_resume(struct pt_regs *regs);

/* The child of fork has its parent's registration: the copied memory has the same area. */
void rseq_copy(struct task *child, const struct task *parent);

#endif
