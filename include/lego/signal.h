/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_SIGNAL_H
#define LEGO_SIGNAL_H

/*
 * Signals, with Linux's numbers and structures. A signal is sent to a process (any thread that does
 * not block it takes it) or to one thread. It is handled when the thread returns to user mode.
 */

#include <lego/list.h>
#include <lego/timer.h>
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

/* The fates of a process's signals. */
enum signal_fate {
	SIGNAL_HANDLED, /* a handler ran */
	SIGNAL_WAITED,	/* sigwait() or a signalfd took it */
	SIGNAL_IGNORED, /* by the program or by default */
	SIGNAL_STOPPED, /* it stopped the process */
	SIGNAL_FATAL,	/* it ended the process */
	NR_SIGNAL_FATES,
};

/* Numbers of signals, for the profilers. All real-time signals are the last kind. */
#define NR_SIGNAL_KINDS 32
struct signal_counts {
	u64 kinds[NR_SIGNAL_KINDS]; /* by number, from 1 on */
	u64 fates[NR_SIGNAL_FATES];
};

/*
 * Reads how many signals a process has got or, if proc is NULL, all processes since boot. Any
 * context.
 */
void signal_read_counts(struct process *proc, struct signal_counts *counts);

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

/* si_code: the kind of sender, or of fault. */
#define SI_USER	      0
#define SI_KERNEL     0x80
#define SI_QUEUE      (-1)
#define SI_TIMER      (-2)
#define SI_TKILL      (-6)
#define ILL_ILLOPN    2
#define FPE_INTDIV    1
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
#define CLD_STOPPED   5
#define CLD_CONTINUED 6

/* Linux's siginfo_t. si_code says which members are valid. */
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

/* The pending signals of a process or a thread. Guarded by proc->lock. */
struct sigpending {
	u64 set;
	/* struct signal_entry: one of each standard signal, then all of others. */
	struct list_head queue;
	/*
	 * How often stop signals were discarded for all threads of the process, and in the upper
	 * 32 bits how often SIGCONT was. In a thread's queue: up to which of these it has dropped
	 * its own.
	 */
	u64 nr_discards;
	/* The last entry that signal_drop_ignored() has looked at and kept; &queue: none. */
	struct list_head *mark;
};

/* A search for threads that take pending signals of their process. Guarded by proc->lock. */
struct signal_search {
	struct list_walk walk; /* its node is in proc->thread_walks while the search goes on */
	u64 signals;
	unsigned int nr_left; /* threads to look at */
	struct timer timer;   /* not set up until a search must go on */
};

struct signal_entry;

/* A sender that must know when its signal is no longer pending. Guarded by proc->lock. */
struct signal_owner {
	struct signal_entry *entry; /* NULL: no signal is pending */
	/*
	 * Called when the signal is dropped, or taken with this info. Any context but NMI,
	 * proc->lock held.
	 */
	void (*gone)(struct signal_owner *owner, struct siginfo *info);
};

/* The limit of the whole system; RLIMIT_SIGPENDING may be lower for a process. */
#define SIGNAL_MAX_QUEUED 16384

void sigpending_init(struct sigpending *pending);
/* Returns the signals that are pending for the thread only. proc->lock is held. */
u64 signal_pending_of(struct task *task);
/* Drops all pending signals; any context but NMI. */
void sigpending_flush(struct sigpending *pending);

/*
 * Send a signal; info of NULL means that the kernel sends it. Return 0; -EAGAIN if there is no
 * memory for a queued (real-time or SI_QUEUE) signal, or too many are queued; -ESRCH if the target
 * has ended. Any context but NMI. Take proc->lock; signal_send_group() takes process_tree_lock,
 * too. The caller has a reference to the process, also when it signals a thread.
 */
int signal_send(struct process *proc, int sig, const struct siginfo *info);
int signal_send_thread(struct task *task, int sig, const struct siginfo *info);
void signal_send_self(int sig); /* to the current thread, as if by itself: SIGPIPE, SIGXFSZ */
int signal_send_group(pid_t pgid, int sig, const struct siginfo *info);
void signal_send_init(int sig); /* from the kernel, if init runs */

/*
 * Sends the signal of a fault of the current thread in user mode. If the signal is blocked or
 * ignored, ends the process, with one line in the log (why). regs are the user's. Process context,
 * interrupts on.
 */
void signal_force_fault(int sig, int code, u64 addr, struct pt_regs *regs, const char *why);

/*
 * For fork: copies the parent's actions to the child, or sets all to the default. For execve:
 * resets handlers.
 */
void signal_copy_actions(struct process *child, struct process *parent, bool all_default);
void signal_reset_actions(struct process *proc);

/*
 * Handles the thread's signals before user mode, interrupts on: stops, marks the thread for exit,
 * or changes *regs to enter a handler. Also decides whether an interrupted call is restarted.
 */
void signal_deliver(struct pt_regs *regs);

/* Sets the mask, without SIGKILL and SIGSTOP, and recomputes signal_pending. Takes proc->lock. */
void signal_set_blocked(u64 blocked);

/*
 * For calls that wait with a temporary mask (sigsuspend, ppoll, pselect6): sets the mask until the
 * end of the call. The old mask is restored at the end or, if a handler runs, after the handler.
 */
void signal_set_temporary_mask(u64 blocked);
void signal_restore_mask(void); /* the wait has ended without a signal */

/*
 * For signalfd(2), in process context. signal_dequeue() takes the first pending signal of the set
 * for the current thread, blocked or not; 0: there is none. The second returns whether there is
 * one. The third returns a queue that is woken when a signal becomes pending for the current
 * process, and sometimes for others.
 */
int signal_dequeue(u64 set, struct siginfo *info);
bool signal_waits(u64 set);
struct wait_queue *signal_arrivals(void);

void signal_init(void);

/*
 * Called after a thread was removed from its process: lets another thread take signals that only
 * this one would have taken, and completes a stop that waited for it. No lock is held.
 */
void signal_thread_gone(struct process *proc);

/* Stops the interval timers of a process that ends. Process context. */
void signal_stop_timers(struct process *proc);

/* Deletes the timers of timer_create() when the process ends or calls execve. Process context. */
void posix_timers_delete(struct process *proc);
u64 posix_timers_held_bytes(struct process *proc);
/*
 * Checks the process's timers of CPU time. Called by the tick in one of its threads, interrupts
 * off.
 */
void posix_timers_tick(struct process *proc);

/*
 * Charges a tick that has hit a thread of the process, in user mode or not. Called by the timer
 * interrupt.
 */
void signal_charge_tick(struct process *proc, bool user);

/*
 * Sets the alternative stack of the current thread; sp is the user's stack pointer. Returns 0,
 * -EPERM if the thread is on that stack, -EINVAL, or -ENOMEM if it is too small. The second returns
 * whether sp is on it; for an SS_AUTODISARM stack, never.
 */
int signal_set_altstack(const struct kernel_sigaltstack *new, u64 sp);
bool signal_on_altstack(u64 sp);

/*
 * Returns true if the signal is ignored now (SIG_IGN, or by default). For the tty's job control.
 * Any context.
 */
bool signal_is_ignored(struct process *proc, int sig);

#endif
