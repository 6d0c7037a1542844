/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_PROCESS_H
#define LEGO_PROCESS_H

/*
 * Processes and their relations: parents and children, groups, sessions. A process is in the
 * list from its creation until its parent (or init) has waited for it.
 */

#include <lego/account.h>
#include <lego/sched.h>

#define INIT_PID 1

/* USER_HZ: the clock ticks in times(), siginfo and /proc. */
#define USER_HZ	      100
#define NSEC_PER_TICK (NSEC_PER_SEC / USER_HZ)

/*
 * Guards every process's family fields, process_list, and membership in groups and sessions. Taken
 * with interrupts off, before proc->lock.
 */
extern spinlock_t process_tree_lock;
extern struct list_head process_list; /* by all_node */

/*
 * Returns the process with this pid, zombies included, with a reference, or NULL. Any context but
 * NMI.
 */
struct process *process_find(pid_t pid);
/*
 * Returns the process with the next higher pid, in the same way. Allows a walk over all processes
 * without a lock.
 */
struct process *process_next(pid_t pid);
/* Returns the thread of the process with this tid, with a reference, or NULL. */
struct task *process_find_thread(struct process *proc, pid_t tid);
/* The same without a reference. proc->lock is held while the thread is used. */
struct task *process_thread(struct process *proc, pid_t tid);
/*
 * Sets the name of a thread of proc, which must be the current process (else -EINVAL). A longer
 * name is truncated. -ESRCH: no such thread. Process context.
 */
int process_name_thread(struct process *proc, pid_t tid, const char *name);
void process_get(struct process *proc);
void process_put(struct process *proc);

/*
 * Call fn for each process, or each member of the group, with process_tree_lock held, until it
 * returns false. After a number of them the lock is free for a moment, and interrupts are on if the
 * caller has them on. A process that is created or joins meanwhile comes last.
 */
void process_for_each(bool (*fn)(struct process *proc, void *arg), void *arg);
void process_for_each_member(pid_t pgid, bool (*fn)(struct process *proc, void *arg), void *arg);

/*
 * Calls fn for each thread with proc->lock held. After each `step` threads the lock is free for a
 * moment, and interrupts are on if the caller has them on. A thread that is created meanwhile comes
 * last.
 */
void process_for_each_thread(struct process *proc, unsigned int step,
			     void (*fn)(struct task *task, void *arg), void *arg);

/* Returns the list of members, by group_node. It may be empty. process_tree_lock is held. */
struct list_head *process_group(pid_t pgid);

/* Tells the parent that a process has stopped or continued. Takes process_tree_lock. */
void process_notify_stopped(struct process *proc, bool continued);

/*
 * Returns true if no member has a parent in another group of the same session, so that no shell
 * could continue a stopped member. Takes process_tree_lock.
 */
bool process_group_is_orphaned(pid_t pgid);

/*
 * Returns true if the effective user is 0: the process may do everything that Linux allows a
 * privileged process.
 */
bool process_is_root(struct process *proc);

/*
 * Returns true if the current process may inspect the other one's memory and files: all their user
 * and group IDs are equal and the other one is dumpable, or it is root. Linux's PTRACE_MODE_READ.
 * Stores a version for process_was_inspected(). Any context but NMI, as the next.
 */
bool process_may_inspect(struct process *proc, u32 *version);
/*
 * Called after the current process has looked at the other one, and before it uses what it has
 * seen. Returns true if it had the right to inspect all the time: else it must forget all, because
 * the other process may have become a set-user-ID program meanwhile.
 */
bool process_was_inspected(struct process *proc, u32 version);

/* Returns the most pages that the process had mapped at a time. Any context but NMI. */
u64 process_max_pages(struct process *proc);
/* Fills in the bytes that it had then, by kind, and the page tables. Any context but NMI. */
void process_get_peak(struct process *proc, u64 bytes[NR_MM_KINDS]);

/*
 * For the profiler of memory, as its os_process_pages(). Any context but NMI.
 */
bool process_read_chains(struct process *proc, u64 pass, u64 *addr, u16 *chains, u32 *nr);

/* Returns the process's mm with a reference; NULL: it has none any more. Any context but NMI. */
struct mm *process_get_mm(struct process *proc);
/*
 * Returns the open files of a thread in the same way. tid 0: the table of the process
 * (open_files.c).
 */
struct files *process_get_files(struct process *proc, pid_t tid);
/*
 * Returns the memory that the process's open files hold: see files_held_bytes(). Process context.
 */
u64 process_files_held_bytes(struct process *proc, u32 count);
/* Gives the current thread a descriptor table of its own. Returns 0 or -ENOMEM. */
int task_unshare_files(void);

/* Calls profile_task_changed() for all threads of the current process. */
void process_change_task_keys(void);

/* The fields of uname(), in its order. */
enum system_name {
	SYSTEM_NAME,
	SYSTEM_NODE,
	SYSTEM_RELEASE,
	SYSTEM_VERSION,
	SYSTEM_MACHINE,
	SYSTEM_DOMAIN,
};
#define SYSTEM_NAME_LEN 65 /* with the NUL */
void system_get_name(enum system_name which, char name[SYSTEM_NAME_LEN]);

/* All numbers are below PID_MAX; at most task_limit() of them are in use. */
#define PID_MAX 32768 /* Linux's, on small machines */
unsigned int task_limit(void);

#define LAST_CAPABILITY 40 /* CAP_CHECKPOINT_RESTORE, of Linux 6.1 */

/* Return how many processes were ever created, and the last number given to a thread. */
u64 process_nr_created(void);
pid_t pid_last(void);

/* Returns the CPU time so far of all threads, including ended ones. Any context but NMI. */
u64 process_exec_cycles(struct process *proc);
u64 process_exec_cycles_locked(struct process *proc); /* proc->lock is held */

/*
 * Returns the current process's soft limit (RLIMIT_*); RLIM_INFINITY in a kernel thread. Any
 * context.
 */
u64 process_limit(unsigned int resource);

/* The inodes and bytes of a user's files: see kernel/fs/space.c. */
struct user_files {
	u64 nr_bytes; /* atomic */
};

/* Counts an inode. Returns NULL if the user has as many as max, or without memory. */
struct user_files *user_charge_inode(u32 uid, u64 max);
void user_uncharge_inode(struct user_files *files);
u64 user_file_bytes(u32 uid);

/*
 * printk() for a line that a program of this user causes, to be at most 256 characters long. There
 * are at most burst lines in five seconds for each user (0: no such limit), and only as many as the
 * log has room for. Lines left out are counted, and the next one says how many. Root's lines are
 * never left out. Any context but NMI.
 */
void user_printk(u32 uid, u32 burst, const char *fmt, ...) __printf(3, 4);

/* Sends a signal to a process that has used up its RLIMIT_CPU. Called by the timer interrupt. */
void process_limit_cpu(struct process *proc);

#endif
