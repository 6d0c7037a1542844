// SPDX-License-Identifier: BSD-2-Clause
/* The calls for signals, except those that send (kill.c) and timers (itimer.c). */

#include <lego/signal.h>

#include "process.h"
#include "signal.h"
#include <lego/assert.h>
#include <lego/atomic.h>
#include <lego/errno.h>
#include <lego/process.h>
#include <lego/sched.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

#define SIG_BLOCK   0
#define SIG_UNBLOCK 1
#define SIG_SETMASK 2

#define SA_EXPOSE_TAGBITS 0x00000800 /* x86 has no tag bits */
#define SA_KNOWN                                                                                   \
	(SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO | SA_EXPOSE_TAGBITS | SA_RESTORER | SA_ONSTACK | \
	 SA_RESTART | SA_NODEFER | SA_RESETHAND)

/* Returns true if pending signals must be dropped. */
static bool set_action(struct process *proc, int sig, const struct kernel_sigaction *new)
{
	struct kernel_sigaction *action = &proc->sigactions[sig - 1];

	*action = *new;
	/* Programs read the flags back to find out which ones are supported. */
	action->flags &= SA_KNOWN;
	action->mask &= ~SIGNALS_SOVEREIGN;
	return signal_action_ignores(action, sig) &&
	       SIGNAL_BIT(sig) & (proc->pending.set | proc->thread_signals);
}

SYSCALL_DEFINE4(rt_sigaction, int, sig, const struct kernel_sigaction __user *, act,
		struct kernel_sigaction __user *, oldact, size_t, sigsetsize)
{
	struct process *proc = current->proc;
	struct kernel_sigaction new, old;
	bool drops = false;
	unsigned long flags;

	if (sigsetsize != sizeof(u64))
		return -EINVAL;
	if (act && copy_from_user(&new, act, sizeof(new)))
		return -EFAULT;
	if (sig < 1 || sig > NR_SIGNALS || (act && SIGNAL_BIT(sig) & SIGNALS_SOVEREIGN))
		return -EINVAL;
	flags = spin_lock_irqsave(&proc->lock);
	old = proc->sigactions[sig - 1];
	if (act)
		drops = set_action(proc, sig, &new);
	spin_unlock_irqrestore(&proc->lock, flags);
	if (drops)
		signal_drop_ignored(proc, sig);
	return oldact ? copy_to_user(oldact, &old, sizeof(old)) : 0;
}

static int new_mask(int how, u64 set, u64 *mask)
{
	switch (how) {
	case SIG_BLOCK:
		*mask |= set & ~SIGNALS_SOVEREIGN;
		return 0;
	case SIG_UNBLOCK:
		*mask &= ~set;
		return 0;
	case SIG_SETMASK:
		*mask = set & ~SIGNALS_SOVEREIGN;
		return 0;
	default:
		return -EINVAL;
	}
}

SYSCALL_DEFINE4(rt_sigprocmask, int, how, const u64 __user *, set, u64 __user *, oldset, size_t,
		sigsetsize)
{
	u64 old = current->blocked_signals, mask = old, bits;

	if (sigsetsize != sizeof(u64))
		return -EINVAL;
	if (set) {
		if (get_user(bits, set))
			return -EFAULT;
		if (new_mask(how, bits, &mask))
			return -EINVAL;
		signal_set_blocked(mask);
	}
	return oldset ? put_user(old, oldset) : 0;
}

SYSCALL_DEFINE2(rt_sigpending, u64 __user *, uset, size_t, sigsetsize)
{
	struct task *task = current;
	unsigned long flags;
	u64 set;

	if (sigsetsize > sizeof(u64))
		return -EINVAL;
	flags = spin_lock_irqsave(&task->proc->lock);
	set = (signal_own_pending(task) | task->proc->pending.set) & task->blocked_signals;
	spin_unlock_irqrestore(&task->proc->lock, flags);
	return copy_to_user(uset, &set, sigsetsize);
}

/* Sleeps until there is a signal. The caller then returns -ERESTARTNOHAND. */
static void wait_for_signal(void)
{
	for (;;) {
		/* Full barrier: pairs with the lock that the sender takes in task_kick(). */
		(void)xchg(&current->state, TASK_INTERRUPTIBLE);
		if (task_interrupted(current))
			break;
		task_waits_for("signal", 0);
		schedule();
	}
	WRITE_ONCE(current->state, TASK_RUNNING);
}

SYSCALL_DEFINE0(pause)
{
	wait_for_signal();
	return -ERESTARTNOHAND;
}

SYSCALL_DEFINE2(rt_sigsuspend, const u64 __user *, uset, size_t, sigsetsize)
{
	u64 set;

	if (sigsetsize != sizeof(u64))
		return -EINVAL;
	if (get_user(set, uset))
		return -EFAULT;
	signal_set_temporary_mask(set);
	wait_for_signal();
	return -ERESTARTNOHAND;
}

/* Takes a pending signal of the set, blocked or not; 0: there is none. */
static int take_one(u64 set, struct siginfo *info)
{
	struct sigpending *pending;
	int sig = signal_find(set, &pending);

	ASSERT_HELD(&current->proc->lock);
	if (sig) {
		signal_take(pending, sig, info);
		signal_count(current->proc, sig, SIGNAL_WAITED);
	}
	return sig;
}

int signal_dequeue(u64 set, struct siginfo *info)
{
	struct task *task = current;
	unsigned long flags = spin_lock_irqsave(&task->proc->lock);
	int sig = take_one(set, info);

	ASSERT_PROCESS_CONTEXT();
	signal_recalc(task);
	spin_unlock_irqrestore(&task->proc->lock, flags);
	return sig;
}

bool signal_waits(u64 set)
{
	struct sigpending *pending;
	spinlock_t *lock = &current->proc->lock;
	unsigned long flags = spin_lock_irqsave(lock);
	int sig = signal_find(set, &pending);

	ASSERT_PROCESS_CONTEXT();
	spin_unlock_irqrestore(lock, flags);
	return sig;
}

/* Returns the signal, -EAGAIN at the deadline, or -EINTR if another signal comes. */
static long wait_for_one(u64 set, u64 deadline_ns, struct siginfo *info)
{
	struct task *task = current;
	spinlock_t *lock = &task->proc->lock;
	unsigned long flags = spin_lock_irqsave(lock);
	u64 waited = set & task->blocked_signals;
	long ret;

	task->waited_signals = waited;
	signal_takes(task->proc, waited);
	for (;;) {
		u64 now = clock_monotonic_ns();

		ret = take_one(set, info);
		if (ret)
			break;
		signal_recalc(task);
		ret = -EAGAIN;
		if (now >= deadline_ns)
			break;
		ret = -EINTR;
		if (task_interrupted(task))
			break;
		/* A sender reads waited_signals and wakes this thread with the same lock held. */
		WRITE_ONCE(task->state, TASK_INTERRUPTIBLE);
		spin_unlock_irqrestore(lock, flags);
		task_waits_for("signal", 0);
		schedule_timeout_ns(deadline_ns - now);
		flags = spin_lock_irqsave(lock);
	}
	task->waited_signals = 0;
	signal_find_threads(task->proc, waited); /* it may have been chosen for more than one */
	signal_recalc(task);
	spin_unlock_irqrestore(lock, flags);
	return ret;
}

SYSCALL_DEFINE4(rt_sigtimedwait, const u64 __user *, uset, struct siginfo __user *, uinfo,
		const struct timespec64 __user *, timeout, size_t, sigsetsize)
{
	u64 set, ns, deadline_ns = TIME_NEVER_NS;
	struct timespec64 ts;
	struct siginfo info;
	long ret;

	if (sigsetsize != sizeof(u64))
		return -EINVAL;
	if (get_user(set, uset) || (timeout && get_user(ts, timeout)))
		return -EFAULT;
	if (timeout) {
		if (timespec_to_ns(&ts, &ns))
			return -EINVAL;
		deadline_ns = time_after_ns(ns);
	}
	ret = wait_for_one(set & ~SIGNALS_SOVEREIGN, deadline_ns, &info);
	if (ret > 0 && uinfo && copy_to_user(uinfo, &info, sizeof(info)))
		return -EFAULT;
	return ret;
}

SYSCALL_DEFINE2(sigaltstack, const struct kernel_sigaltstack __user *, unew,
		struct kernel_sigaltstack __user *, uold)
{
	u64 sp = task_pt_regs(current)->rsp;
	struct kernel_sigaltstack new, old = current->altstack;
	int error = 0;

	old.pad = 0;
	old.flags &= SS_AUTODISARM;
	if (!old.size_bytes)
		old.flags |= SS_DISABLE;
	else if (signal_on_altstack(sp))
		old.flags |= SS_ONSTACK;
	if (unew) {
		if (get_user(new, unew))
			return -EFAULT;
		error = signal_set_altstack(&new, sp);
	}
	if (!error && uold)
		error = copy_to_user(uold, &old, sizeof(old));
	return error;
}

/* Goes on with a call. Until it returns, the thread is in that call, for whoever asks. */
SYSCALL_DEFINE0(restart_syscall)
{
	long (*fn)(struct task * task) = current->restart.fn;

	if (!fn)
		return -EINTR;
	current->restart.fn = NULL;
	task_pt_regs(current)->orig_rax = current->restart.nr;
	return fn(current);
}
