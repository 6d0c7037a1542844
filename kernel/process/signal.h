/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROCESS_SIGNAL_H
#define PROCESS_SIGNAL_H

/* Shared by the files about signals. "Locked": proc->lock is held. */

#include <lego/sched.h>

/* Neither can be blocked, ignored or handled. */
#define SIGNALS_SOVEREIGN (SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP))

#define SIGNALS_STOP \
	(SIGNAL_BIT(SIGSTOP) | SIGNAL_BIT(SIGTSTP) | SIGNAL_BIT(SIGTTIN) | SIGNAL_BIT(SIGTTOU))

/* A signal that nobody needs to see: ignored, by the program or by default. */
bool signal_action_ignores(const struct kernel_sigaction *action, int sig);

/*
 * Init, without a handler, lives on whatever signal comes, but for the kernel's own SIGKILL (info
 * NULL); it is its own faults that end it. Locked.
 */
bool signal_spares_init(struct process *proc, int sig, const struct siginfo *info);

/* Drop what waits of these signals. Locked. */
void signal_discard(struct sigpending *pending, u64 signals);
void signal_discard_all(struct process *proc, u64 signals); /* the process's and the threads' */

/* Put a signal, with what is known about it (NULL: from the kernel), into a queue. Locked. */
int signal_enqueue(struct process *proc, struct sigpending *pending, int sig,
		   const struct siginfo *info);

/*
 * As signal_send(), or with a task signal_send_thread(), locked, for an owner of whom no signal
 * waits. owner->entry is not NULL if this one waits afterwards; the owner is told when it no longer
 * does. Returns true if process_kill() has to be called. info names the signal and the owner.
 */
bool signal_send_owned(struct process *proc, struct task *task, int sig, const struct siginfo *info,
		       struct signal_owner *owner);
void signal_disown(struct signal_owner *owner); /* its signal is nobody's. Locked. */

/*
 * The signal of the set that the current thread should act on first, and the queue it is in; 0:
 * there is none. And take it out of there. Locked.
 */
int signal_find(u64 set, struct sigpending **pending);
void signal_take(struct sigpending *pending, int sig, struct siginfo *info);

/* As signal_recalc(), locked. */
void signal_recalc_locked(struct task *task);

/* The thread has a signal to act on: make it look. Locked. */
void signal_notify_thread(struct task *task);

/* All threads are in the stop now, and nobody has been told. Locked. */
bool signal_stop_is_complete(struct process *proc);

/* Tell the parent. No lock held. */
void signal_tell_stopped(struct process *proc, bool continued);

#endif
