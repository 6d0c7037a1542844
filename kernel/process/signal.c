// SPDX-License-Identifier: BSD-2-Clause
#include <lego/sched.h>

#include "process.h"
#include <lego/errno.h>
#include <lego/printk.h>
#include <lego/string.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

/*
 * Signals as far as static programs need them without handlers being run: actions and masks are
 * kept and reported, a signal whose action is fatal ends the process, one that is blocked
 * waits. A signal with a handler ends the process too, with a log line that says why.
 */

#define SIGKILL	 9
#define SIGCHLD	 17
#define SIGCONT	 18
#define SIGSTOP	 19
#define SIGTSTP	 20
#define SIGTTIN	 21
#define SIGTTOU	 22
#define SIGURG	 23
#define SIGWINCH 28

#define SIG_DFL 0
#define SIG_IGN 1

#define SIG_BLOCK   0
#define SIG_UNBLOCK 1
#define SIG_SETMASK 2

#define SIGNAL_BIT(sig) BIT((sig)-1)
#define UNBLOCKABLE	(SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP))
#define DEFAULT_IGNORED \
	(SIGNAL_BIT(SIGCHLD) | SIGNAL_BIT(SIGCONT) | SIGNAL_BIT(SIGURG) | SIGNAL_BIT(SIGWINCH))
/* Nothing could continue the process: stopping is not done. */
#define DEFAULT_STOPS \
	(SIGNAL_BIT(SIGSTOP) | SIGNAL_BIT(SIGTSTP) | SIGNAL_BIT(SIGTTIN) | SIGNAL_BIT(SIGTTOU))

static bool signal_is_ignored(u64 handler, int sig)
{
	if (handler == SIG_IGN)
		return true;
	return handler == SIG_DFL && SIGNAL_BIT(sig) & (DEFAULT_IGNORED | DEFAULT_STOPS);
}

/* A signal nobody blocks: it ends the process unless it is ignored. */
static void deliver(struct process *proc, int sig)
{
	u64 handler = READ_ONCE(proc->sigactions[sig - 1].handler);

	if (signal_is_ignored(handler, sig))
		return;
	if (handler != SIG_DFL)
		printk("%s[%d]: signal %d: handlers are not run, it is fatal\n", proc->comm,
		       proc->pid, sig);
	process_kill(proc, sig);
}

static void send_signal(struct task *task, int sig)
{
	if (READ_ONCE(task->blocked_signals) & SIGNAL_BIT(sig)) {
		atomic_or_bits(&task->pending_signals, SIGNAL_BIT(sig));
		/* The task may have unblocked it meanwhile without seeing it. */
		if (READ_ONCE(task->blocked_signals) & SIGNAL_BIT(sig))
			return;
		if (!(atomic_and_bits(&task->pending_signals, ~SIGNAL_BIT(sig)) & SIGNAL_BIT(sig)))
			return;
	}
	deliver(task->proc, sig);
}

static void deliver_unblocked(struct task *task)
{
	u64 ready = READ_ONCE(task->pending_signals) & ~task->blocked_signals;

	ready &= atomic_and_bits(&task->pending_signals, ~ready);
	for (int sig = 1; ready; sig++, ready >>= 1) {
		if (ready & 1)
			deliver(task->proc, sig);
	}
}

/* execve: what was ignored stays so, handlers are gone. */
void process_reset_signals(struct process *proc)
{
	for (int i = 0; i < NR_SIGNALS; i++) {
		bool ignored = proc->sigactions[i].handler == SIG_IGN;

		memset(&proc->sigactions[i], 0, sizeof(proc->sigactions[i]));
		if (ignored)
			proc->sigactions[i].handler = SIG_IGN;
	}
}

/* Signal to the thread found, or only the checks for signal 0. Takes over the reference. */
static long signal_task(struct task *task, int sig)
{
	long error = sig < 0 || sig > NR_SIGNALS ? -EINVAL : 0;

	if (!error && sig)
		send_signal(task, sig);
	task_put(task);
	return error;
}

SYSCALL_DEFINE3(tgkill, pid_t, tgid, pid_t, tid, int, sig)
{
	struct task *task;

	if (tgid <= 0 || tid <= 0)
		return -EINVAL;
	task = tgid == current->proc->pid ? process_find_thread(current->proc, tid) : NULL;
	return task ? signal_task(task, sig) : -ESRCH;
}

SYSCALL_DEFINE2(tkill, pid_t, tid, int, sig)
{
	struct task *task;

	if (tid <= 0)
		return -EINVAL;
	task = process_find_thread(current->proc, tid);
	return task ? signal_task(task, sig) : -ESRCH;
}

/* There is one process, alone in its group, and -1 means everyone else. */
SYSCALL_DEFINE2(kill, pid_t, pid, int, sig)
{
	pid_t self = current->proc->pid;

	if (pid != self && pid != 0 && pid != -self)
		return -ESRCH;
	if (pid == -1 && self == 1)
		return -ESRCH;
	task_get(current);
	return signal_task(current, sig);
}

SYSCALL_DEFINE4(rt_sigaction, int, sig, const struct kernel_sigaction __user *, act,
		struct kernel_sigaction __user *, oldact, size_t, sigsetsize)
{
	struct process *proc = current->proc;
	struct kernel_sigaction new, old;
	unsigned long flags;

	if (sigsetsize != sizeof(u64))
		return -EINVAL;
	if (act && copy_from_user(&new, act, sizeof(new)))
		return -EFAULT;
	if (sig < 1 || sig > NR_SIGNALS || (act && SIGNAL_BIT(sig) & UNBLOCKABLE))
		return -EINVAL;
	flags = spin_lock_irqsave(&proc->lock);
	old = proc->sigactions[sig - 1];
	if (act) {
		new.mask &= ~UNBLOCKABLE;
		proc->sigactions[sig - 1] = new;
	}
	spin_unlock_irqrestore(&proc->lock, flags);
	return oldact ? copy_to_user(oldact, &old, sizeof(old)) : 0;
}

static int new_mask(int how, u64 set, u64 *mask)
{
	switch (how) {
	case SIG_BLOCK:
		*mask |= set;
		break;
	case SIG_UNBLOCK:
		*mask &= ~set;
		break;
	case SIG_SETMASK:
		*mask = set;
		break;
	default:
		return -EINVAL;
	}
	*mask &= ~UNBLOCKABLE;
	return 0;
}

SYSCALL_DEFINE4(rt_sigprocmask, int, how, const u64 __user *, set, u64 __user *, oldset, size_t,
		sigsetsize)
{
	struct task *task = current;
	u64 old = task->blocked_signals, mask = old, bits;

	if (sigsetsize != sizeof(u64))
		return -EINVAL;
	if (set) {
		if (get_user(bits, set))
			return -EFAULT;
		if (new_mask(how, bits, &mask))
			return -EINVAL;
		/*
		 * Full barrier: pairs with the one between the bit and the mask in
		 * send_signal().
		 */
		(void)xchg(&task->blocked_signals, mask);
		deliver_unblocked(task);
	}
	return oldset ? put_user(old, oldset) : 0;
}
