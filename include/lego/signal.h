/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_SIGNAL_H
#define LEGO_SIGNAL_H

/*
 * Signals, with Linux's numbers and structures. A signal is sent to a process (any of its threads
 * that does not block it takes it) or to one thread; it is acted on when the thread goes to user
 * mode.
 */

#include <lego/list.h>
#include <lego/types.h>

struct process;
struct pt_regs;
struct task;
struct wait_queue;

#define SIGHUP	   1
#define SIGINT	   2
#define SIGQUIT	   3
#define SIGILL	   4
#define SIGTRAP	   5
#define SIGABRT	   6
#define SIGBUS	   7
#define SIGFPE	   8
#define SIGKILL	   9
#define SIGUSR1	   10
#define SIGSEGV	   11
#define SIGUSR2	   12
#define SIGPIPE	   13
#define SIGALRM	   14
#define SIGTERM	   15
#define SIGSTKFLT  16
#define SIGCHLD	   17
#define SIGCONT	   18
#define SIGSTOP	   19
#define SIGTSTP	   20
#define SIGTTIN	   21
#define SIGTTOU	   22
#define SIGURG	   23
#define SIGXCPU	   24
#define SIGXFSZ	   25
#define SIGVTALRM  26
#define SIGPROF	   27
#define SIGWINCH   28
#define SIGIO	   29
#define SIGPWR	   30
#define SIGSYS	   31
#define SIGRTMIN   32
#define NR_SIGNALS 64

#define SIGNAL_BIT(sig) (1ULL << ((sig)-1))

#define SIG_DFL 0
#define SIG_IGN 1

#define SA_NOCLDSTOP 0x00000001
#define SA_NOCLDWAIT 0x00000002
#define SA_SIGINFO   0x00000004
#define SA_RESTORER  0x04000000
#define SA_ONSTACK   0x08000000
#define SA_RESTART   0x10000000
#define SA_NODEFER   0x40000000
#define SA_RESETHAND 0x80000000

/* si_code: who sent it, or what the fault was. */
#define SI_USER	      0
#define SI_KERNEL     0x80
#define SI_QUEUE      (-1)
#define SI_TIMER      (-2)
#define SI_TKILL      (-6)
#define ILL_ILLOPN    2
#define FPE_INTDIV    1
#define FPE_INTOVF    2
#define FPE_FLTDIV    3
#define FPE_FLTOVF    4
#define FPE_FLTUND    5
#define FPE_FLTRES    6
#define FPE_FLTINV    7
#define SEGV_MAPERR   1
#define SEGV_ACCERR   2
#define BUS_ADRALN    1
#define BUS_ADRERR    2
#define TRAP_BRKPT    1
#define TRAP_TRACE    2
#define CLD_EXITED    1
#define CLD_KILLED    2
#define CLD_DUMPED    3
#define CLD_STOPPED   5
#define CLD_CONTINUED 6

/* Linux's siginfo_t: what matters depends on si_code. */
struct siginfo {
	s32 si_signo;
	s32 si_errno;
	s32 si_code;
	s32 pad;
	union {
		struct {
			s32 pid;
			u32 uid;
			u64 value; /* SI_QUEUE */
		} sender;
		struct {
			s32 pid;
			u32 uid;
			s32 status;
			s64 utime, stime; /* clock ticks, 100 a second */
		} child;
		struct {
			u64 addr;
		} fault;
		struct {
			s32 id;
			s32 overrun;
			u64 value;
		} timer; /* SI_TIMER */
		u8 room[112];
	};
};

/* Linux's struct sigaction as the kernel call sees it. */
struct kernel_sigaction {
	u64 handler;
	u64 flags;
	u64 restorer;
	u64 mask;
};

struct kernel_sigaltstack {
	u64 sp;
	u32 flags;
	u32 pad;
	u64 size_bytes; /* 0: there is none */
};

#define SS_ONSTACK    1
#define SS_DISABLE    2
#define SS_AUTODISARM 0x80000000

/* Signals that wait: of a process or a thread. Guarded by proc->lock. */
struct sigpending {
	u64 set;
	struct list_head queue; /* struct signal_entry: one of a standard signal, all of others */
};

struct signal_entry;

/* A sender that wants to know when its signal no longer waits. Guarded by proc->lock. */
struct signal_owner {
	struct signal_entry *entry; /* NULL: none waits */
	/* It is dropped, or taken with this info. Any context but NMI, proc->lock held. */
	void (*gone)(struct signal_owner *owner, struct siginfo *info);
};

/* In the whole system; a process may be given less by RLIMIT_SIGPENDING. */
#define SIGNAL_MAX_QUEUED 16384

void sigpending_init(struct sigpending *pending);
void sigpending_flush(struct sigpending *pending); /* drops what waits; any context but NMI */

/*
 * Send: info NULL means "by the kernel". 0, -EAGAIN when a queued (real-time or SI_QUEUE) signal
 * finds no memory or is one too many, -ESRCH when there is nobody any more. Any context but NMI;
 * takes proc->lock, and signal_send_group() process_tree_lock. The caller keeps the process from
 * being freed, of a thread too.
 */
int signal_send(struct process *proc, int sig, const struct siginfo *info);
int signal_send_thread(struct task *task, int sig, const struct siginfo *info);
void signal_send_self(int sig); /* to the current thread, as if by itself: SIGPIPE, SIGXFSZ */
int signal_send_group(pid_t pgid, int sig, const struct siginfo *info);

/*
 * A fault of the current thread in user mode: the signal is delivered even if it is blocked or
 * ignored, which then ends the process, with one line in the log (why). regs: user registers.
 * Process context, interrupts on.
 */
void signal_force_fault(int sig, int code, u64 addr, struct pt_regs *regs, const char *why);

/* fork: the child has the parent's actions (or, flag, all default); execve: handlers are gone. */
void signal_copy_actions(struct process *child, struct process *parent, bool all_default);
void signal_reset_actions(struct process *proc);

/*
 * The thread has a signal to act on, before user mode, interrupts on: stops, is marked to leave, or
 * has *regs changed to enter a handler. Also settles an interrupted call's restart.
 */
void signal_deliver(struct pt_regs *regs);

/*
 * current->signal_pending again, from what waits and what is blocked. After a change of the mask.
 * Takes proc->lock.
 */
void signal_recalc(void);

/* Replace the mask (SIGKILL and SIGSTOP are never in it), with signal_recalc(). */
void signal_set_blocked(u64 blocked);

/*
 * For calls that wait under a mask of their own (sigsuspend, ppoll, pselect6): the mask in force
 * until the call's end; the old one comes back when no handler ran, or after the handler.
 */
void signal_set_temporary_mask(u64 blocked);
void signal_restore_mask(void); /* the wait has ended without a signal */

/*
 * For signalfd(2), in process context. Take the first signal of the set that waits for the current
 * thread, blocked or not; 0: none waits. Whether one waits. And a queue that is woken when a signal
 * begins to wait for the current process; those for some other processes wake it, too.
 */
int signal_dequeue(u64 set, struct siginfo *info);
bool signal_waits(u64 set);
struct wait_queue *signal_arrivals(void);

void signal_init(void);

/*
 * A thread has left the process's list: another one takes what only this one would have taken, and
 * a stop that waited for it is complete. No lock held.
 */
void signal_thread_gone(struct process *proc);

/* The process ends: its interval timers are stopped. Process context. */
void signal_stop_timers(struct process *proc);

/* The process ends, or executes a program: timer_create()'s are deleted. Process context. */
void posix_timers_delete(struct process *proc);
u64 posix_timers_held_bytes(const struct process *proc); /* about */
/* From the tick, interrupts off, of a thread of the process: its timers of CPU time. */
void posix_timers_tick(struct process *proc);

/* The tick has hit a thread of the process, in user mode or not. From the timer interrupt. */
void signal_charge_tick(struct process *proc, bool user);

/*
 * The alternative stack of the current thread; sp is the user's stack pointer. 0, -EPERM on that
 * stack, -EINVAL, -ENOMEM when too small. And whether sp is on it; an SS_AUTODISARM stack never is.
 */
int signal_set_altstack(const struct kernel_sigaltstack *new, u64 sp);
bool signal_on_altstack(u64 sp);

/* Any ignored right now (SIG_IGN, or by default)? For the tty's job control. Any context. */
bool signal_is_ignored(struct process *proc, int sig);

#endif
