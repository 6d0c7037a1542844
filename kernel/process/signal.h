/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROCESS_SIGNAL_H
#define PROCESS_SIGNAL_H

/* Declarations for the files about signals. "Locked" means that proc->lock is held. */

#include <lego/sched.h>

/* These two cannot be blocked, ignored or handled. */
#define SIGNALS_SOVEREIGN (SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP))

#define SIGNALS_STOP \
	(SIGNAL_BIT(SIGSTOP) | SIGNAL_BIT(SIGTSTP) | SIGNAL_BIT(SIGTTIN) | SIGNAL_BIT(SIGTTOU))

/* Returns true if the signal is ignored, by the program or by default. */
bool signal_action_ignores(const struct kernel_sigaction *action, int sig);

/*
 * Returns true if the signal has no effect because proc is init without a handler for it. Only its
 * own faults and, from the kernel (info NULL), SIGKILL and the terminal's SIGINT and SIGQUIT end
 * init. Locked.
 */
bool signal_spares_init(struct process *proc, int sig, const struct siginfo *info);

/* Counts a signal that the process has got. Locked. */
void signal_count(struct process *proc, int sig, enum signal_fate fate);

/* A pending signal, in a queue. */
struct signal_entry {
	struct list_head node;
	struct signal_owner *owner; /* NULL: none */
	struct siginfo info;
};

/* Drops pending signals of this set. Locked. */
void signal_discard(struct sigpending *pending, u64 signals);
/*
 * Drops the stop signals or SIGCONT of the process and its threads. Those of a thread stay in its
 * queue until signal_own_pending() is next called for it. Locked.
 */
void signal_discard_all(struct process *proc, u64 signals);
/* As signal_pending_of(), which it calls if there is something to drop. Locked. */
static inline u64 signal_own_pending(struct task *task)
{
	if (unlikely(task->pending.nr_discards != task->proc->pending.nr_discards))
		return signal_pending_of(task);
	return task->pending.set;
}

/* Drops all of a queue in steps between which interrupts are on. Not locked. */
void signal_discard_in_steps(struct process *proc, struct sigpending *pending);
/*
 * Drops a signal of the process and its threads in such steps, while its action ignores it. Process
 * context, not locked.
 */
void signal_drop_ignored(struct process *proc, int sig);

/* Returns whether a standard signal is pending already: it is not queued twice. */
bool signal_is_pending(const struct sigpending *pending, int sig);

/* Adds a signal with its siginfo (NULL: from the kernel) to a queue. Locked. */
int signal_enqueue(struct process *proc, struct sigpending *pending, int sig,
		   const struct siginfo *info);

/*
 * Like signal_send() or, with a task, signal_send_thread(), but locked, and for an owner that has
 * no pending signal. If the signal is pending afterwards, owner->entry is not NULL, and the owner
 * is notified when that ends. info names the signal and the owner. Returns true if process_kill()
 * must be called.
 */
bool signal_send_owned(struct process *proc, struct task *task, int sig, const struct siginfo *info,
		       struct signal_owner *owner);
/* Its pending signal no longer has an owner. Locked. */
void signal_disown(struct signal_owner *owner);

/*
 * The shortest interval of a timer whose signal is ignored. It runs on, in case the signal is no
 * longer ignored later.
 */
#define SIGNAL_MIN_UNSEEN_NS (10 * NSEC_PER_MSEC)

/*
 * signal_find() returns the signal of the set that the current thread should handle first, and its
 * queue; 0: there is none. signal_take() removes it from the queue. Locked.
 */
int signal_find(u64 set, struct sigpending **pending);
void signal_take(struct sigpending *pending, int sig, struct siginfo *info);

/* Recomputes task->signal_pending after a change of the mask. Locked. */
void signal_recalc(struct task *task);

/* Returns the signals that the thread blocks now. Locked. */
static inline u64 signal_blocked_by(const struct task *task)
{
	return task->blocked_signals & ~task->waited_signals;
}

/*
 * Returns a thread that does not block the signal. Takes the first one that has no other signal to
 * handle, or else the first one. If `only` is given, considers only that thread. NULL: all block
 * it, or it is in the care of signal_find_threads(), as there are many. Locked.
 */
struct task *signal_choose_thread(struct process *proc, struct task *only, int sig);
/* Notifies, for each of these signals of the process, a thread that does not block it. Locked. */
void signal_find_threads(struct process *proc, u64 signals);
/* The current thread blocks these signals no longer, and looks for them. Locked. */
static inline void signal_takes(struct process *proc, u64 signals)
{
	proc->blocked_by_all &= ~signals;
	proc->search.signals &= ~signals;
}
void signal_search_end(struct process *proc); /* before it is freed */

/* Makes a thread look for its signals. Locked. */
void signal_notify_thread(struct task *task);

/* Begin or end the stop of a process, unless it has begun or ended: returns false then. Locked. */
bool signal_begin_stop(struct process *proc);
bool signal_end_stop(struct process *proc);
/* Returns true if any process is stopped. */
bool signal_any_stopped(void);

/* Wakes some stopped threads of a process that has been continued. Each wakes others. Locked. */
void signal_wake_stopped(struct process *proc, unsigned int nr);
/* The same if it has been continued, not locked. Returns true if there are more. */
bool signal_wake_continued(struct process *proc, unsigned int nr);

/* Returns true if all threads have stopped and the parent has not been notified yet. Locked. */
bool signal_stop_is_complete(struct process *proc);

/* Notifies the parent that the process has stopped or continued. No lock is held. */
void signal_tell_stopped(struct process *proc, bool continued);

#endif
