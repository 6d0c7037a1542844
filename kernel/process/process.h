/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROCESS_PROCESS_H
#define PROCESS_PROCESS_H

/* Declarations for the files of kernel/process/ only. */

#include <lego/process.h>

/*
 * pid.c: numbers. Any context but NMI. pid_get() and pid_put() count the uses of a number that is
 * in use. 0, the first group and session of init, is not counted.
 */
pid_t pid_alloc(
	unsigned int max); /* a free number, with one use; -EAGAIN: max are in use; -ENOMEM */
void pid_get(pid_t nr);
void pid_put(pid_t nr);
/* Adds a process to a group, and counts the use of its number. process_tree_lock is held. */
void pid_join_group(struct process *proc, pid_t nr);
void pid_leave_group(struct process *proc);
/*
 * Sets the process that has this number or a thread with it, and the thread that has it; NULL: none
 * any more. The process's lock is held, or the thread is the current one or has not started.
 */
void pid_set_owner(pid_t nr, struct process *proc, struct task *task);
/* Returns the process with this number or with such a thread, with a reference, or NULL. */
struct process *pid_find_process(pid_t nr);

/*
 * Returns a new sleeping task, on task_list, with a stack and one reference. A task of a process
 * has a number, which pid_find_process() does not find yet. ERR_PTR: -EAGAIN if there are too many
 * tasks, or -ENOMEM.
 */
struct task *task_alloc(const char *comm, struct process *proc);

/* Return the limit of numbers in use (threads, zombies and groups), and the number of threads. */
unsigned int task_nr_users(void);

/* Returns an empty process with one reference, which is not in the list. NULL: out of memory. */
struct process *process_alloc(const char *comm);

/* Returns true if the current process may change the scheduling of proc: same user, or root. */
bool process_may_schedule(struct process *proc);

#define NICE_MIN (-20)
#define NICE_MAX 19

/*
 * Returns 0 if a part of a program's structure that this kernel does not know is zero, else -E2BIG,
 * or -EFAULT.
 */
int check_zero_user(const u8 __user *rest, size_t n);

/* Takes all other processes but root's the right to inspect proc. proc->lock is held. */
void process_close_locked(struct process *proc);

/*
 * Waits until all reports that have begun or wait for their turn are printed, lets no new one
 * begin, and logs how many processes end without a report. Called before power off. Process
 * context.
 */
void process_end_reports(void);

/* Sets the process's mm, and takes over the reference. */
void process_set_mm(struct process *proc, struct mm *mm);

/* Remove the process's mm, files and fs_info, and drop them. Process context. */
void process_drop_mm(struct process *proc);
void process_drop_files(struct process *proc);

/*
 * open_files.c. task_share_files() makes a new thread, which no other thread can find yet, share
 * the current thread's descriptors; task_put_own_files() undoes that if the thread cannot start.
 * task_leave_files() is called by a thread that ends, and uses no descriptor any more.
 * process_replace_files() gives the only thread of a process another table, and takes over the
 * reference. Process context.
 */
void task_share_files(struct task *task);
void task_put_own_files(struct task *task);
void task_leave_files(struct task *task);
void process_replace_files(struct process *proc, struct files *files);

/* Adds a thread. Returns -EAGAIN if the process is ending or the current task is killed. */
int process_add_thread(struct process *proc, struct task *task);

/* Ends all threads except the current one, and waits for them. Returns 0, -EAGAIN or -EINTR. */
int process_kill_others(struct process *proc);

/*
 * Returns the thread with this number, of any process, with a reference; 0 is the current thread.
 * NULL: there is no such thread.
 */
struct task *task_find(pid_t tid);

/*
 * family.c: adds a process and its first thread, which has the same number. The list takes over the
 * process's reference. A creator of NULL is for init. Returns -ERESTARTNOINTR if a signal must be
 * handled first, so that a signal to the group reaches either the parent before the fork, or the
 * child, too.
 */
int family_add(struct process *proc, struct task *task, struct process *creator, bool as_sibling);

/*
 * Called by the last thread of a process. Gives its children to init or a subreaper, tells its
 * parent, and makes it a zombie or, if the parent wants none, removes it.
 */
void family_exit(struct process *proc);

/*
 * Removes a process from process_list or its group, by its node there. Walks through the list go on
 * behind it. process_tree_lock is held.
 */
void process_leave_list(struct list_head *node);

/*
 * Calls fn for each process of a list, `offset` bytes before its node there, until it returns
 * false. process_tree_lock is held, taken with these flags, and free for a moment after a number of
 * processes. The list must stay; processes leave it by process_leave_list().
 */
void process_walk(struct list_head *list, size_t offset,
		  bool (*fn)(struct process *proc, void *arg), void *arg, unsigned long flags);

/* Marks a process for which the parent's wait can return. process_tree_lock is held. */
void family_set_waitable(struct process *proc);

/*
 * Removes a zombie from the family, with process_tree_lock held. The caller drops it later, without
 * the lock.
 */
void family_detach(struct process *proc);
void family_release(struct process *proc);

void process_init_limits(struct process *proc);

/*
 * late_kill.c: from the first signal that kills a process, with proc->lock held, until its last
 * thread has left, without that lock.
 */
void late_kill_watch(struct process *proc);
void late_kill_end(struct process *proc);

/*
 * user.c: how many threads a user has. A new process gets its parent's credentials, and counts as
 * one thread; each further thread is charged before it is created. Return 0, -EAGAIN at the user's
 * limit, or -ENOMEM. Every charge is given back; the last one of a process when it has been waited
 * for. user_change() and user_uncharge_locked() are called with proc->lock held; the others take
 * it.
 */
int user_charge_process(struct process *proc, struct process *parent);
void user_uncharge_process(struct process *proc);
int user_charge_thread(struct process *proc);
void user_uncharge_thread(struct process *proc);
void user_uncharge_locked(struct process *proc, unsigned int nr);
void user_charge_init(struct process *init);
/* Sets the real user; proc->lock is held. Returns 0, or -EAGAIN: no memory. */
int user_change(struct process *proc, u32 uid);

/*
 * Called before user mode, interrupts on. Stores the CPU in the thread's rseq area, and aborts a
 * critical section.
 */
void rseq_resume(struct pt_regs *regs);

/*
 * Returns true if rseq_resume() would do nothing: the current thread is on the CPU that its area
 * names, and in no critical section. Interrupts are off.
 */
bool rseq_is_unchanged(const struct task *task);

/* Copies the parent's registration to a child of fork, whose memory has the same area. */
void rseq_copy(struct task *child, const struct task *parent);

#endif
