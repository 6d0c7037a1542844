// SPDX-License-Identifier: BSD-2-Clause
/*
 * Handles a thread's signals before it returns to user mode. The thread takes each signal from its
 * queue, together with its action, with proc->lock held. A stop is for the whole process: the
 * thread that takes the signal marks the process, every thread sleeps at its next return to user
 * mode, and the last one tells the parent.
 */

#include <lego/signal.h>

#include "process.h"
#include "signal.h"
#include <asm/signal.h>
#include <lego/assert.h>
#include <lego/atomic.h>
#include <lego/errno.h>
#include <lego/process.h>
#include <lego/sched.h>

#define SS_MIN_BYTES 2048

#define NOTIFY_STEP 32 /* threads that are notified with interrupts off */

/* The status that wait4() returns. */
#define STOPPED_STATUS(sig) ((sig) << 8 | 0x7f)
#define CONTINUED_STATUS    0xffff

/* Does not report a stop that has already ended. */
void signal_tell_stopped(struct process *proc, bool continued)
{
	unsigned long flags = spin_lock_irqsave(&process_tree_lock);
	bool tell;

	spin_lock(&proc->lock);
	tell = proc->stopped != continued;
	spin_unlock(&proc->lock);
	if (tell) {
		proc->wait_event = continued ? CONTINUED_STATUS : STOPPED_STATUS(proc->stop_signal);
		family_set_waitable(proc);
	}
	spin_unlock_irqrestore(&process_tree_lock, flags);
	if (tell)
		process_notify_stopped(proc, continued);
}

/* Returns true if the other threads must be notified. */
static bool begin_stop(struct process *proc, int sig)
{
	ASSERT_HELD(&proc->lock);
	if (proc->exiting || !signal_begin_stop(proc))
		return false;
	proc->stop_told = false;
	proc->continued = false;
	proc->stop_signal = sig;
	return true;
}

static void notify_of_stop(struct task *task, void *unused)
{
	if (task != current && task->proc->stopped)
		signal_notify_thread(task);
}

/*
 * Takes a stop signal. Whether the group is orphaned is checked without proc->lock, so looks for
 * the signal again: a SIGCONT may have removed it.
 */
static void take_stop_signal(int sig)
{
	struct process *proc = current->proc;
	bool stops = sig == SIGSTOP || !process_group_is_orphaned(READ_ONCE(proc->pgid));
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	struct sigpending *pending;
	struct siginfo info;
	bool begins = false;

	if (signal_find(~current->blocked_signals, &pending) == sig &&
	    proc->sigactions[sig - 1].handler == SIG_DFL) {
		signal_take(pending, sig, &info);
		signal_count(proc, sig, stops ? SIGNAL_STOPPED : SIGNAL_IGNORED);
		begins = stops && begin_stop(proc, sig);
	}
	spin_unlock_irqrestore(&proc->lock, flags);
	if (begins)
		process_for_each_thread(proc, NOTIFY_STEP, notify_of_stop, NULL);
}

static void sleep_stopped(void)
{
	struct task *task = current;
	struct process *proc = task->proc;
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	bool tell;

	DEBUG_ASSERT(list_empty(&task->stop_node));
	while (proc->stopped && !task->killed) {
		if (list_empty(&task->stop_node)) {
			list_add_tail(&task->stop_node, &proc->stopped_threads);
			proc->nr_stopped_threads++;
		}
		tell = signal_stop_is_complete(proc);
		/* The thread that continues the process wakes this one with the same lock held. */
		WRITE_ONCE(task->state, TASK_STOPPED);
		spin_unlock_irqrestore(&proc->lock, flags);
		if (tell)
			signal_tell_stopped(proc, false);
		task_waits_for("stopped", 0);
		schedule();
		flags = spin_lock_irqsave(&proc->lock);
	}
	if (!list_empty(&task->stop_node)) {
		list_del(&task->stop_node);
		proc->nr_stopped_threads--;
	}
	if (!proc->stopped)
		signal_wake_stopped(proc, 2); /* so many threads wake soon, each after few others */
	tell = proc->continued && !task->killed;
	if (tell)
		proc->continued = false;
	spin_unlock_irqrestore(&proc->lock, flags);
	if (tell)
		signal_tell_stopped(proc, true);
}

enum verdict {
	NOTHING, /* no signal is left to act on */
	HANDLER, /* *sig, *info and *action say which */
	ENDS,	 /* *sig ends the process */
	STOPS,	 /* the process has stopped */
	MAY_STOP,
	AGAIN, /* a signal was ignored: look for the next */
};

/* Takes the next signal, unless the thread must stop or end first. */
static enum verdict take_next(int *sig, struct siginfo *info, struct kernel_sigaction *action)
{
	struct task *task = current;
	struct process *proc = task->proc;
	struct sigpending *pending;

	ASSERT_HELD(&proc->lock);
	if (task->killed)
		return NOTHING;
	if (proc->stopped)
		return STOPS;
	*sig = signal_find(~task->blocked_signals, &pending);
	if (!*sig)
		return NOTHING;
	*action = proc->sigactions[*sig - 1];
	if (action->handler == SIG_DFL && SIGNAL_BIT(*sig) & SIGNALS_STOP && proc->pid != INIT_PID)
		return MAY_STOP;
	signal_take(pending, *sig, info);
	profile_trace(signal_deliver, *sig, info, action->handler, action->flags);
	if (signal_action_ignores(action, *sig) || signal_spares_init(proc, *sig, info)) {
		signal_count(proc, *sig, SIGNAL_IGNORED);
		return AGAIN;
	}
	if (action->handler == SIG_DFL) {
		signal_count(proc, *sig, SIGNAL_FATAL);
		return ENDS;
	}
	signal_count(proc, *sig, SIGNAL_HANDLED);
	if (action->flags & SA_RESETHAND)
		proc->sigactions[*sig - 1].handler = SIG_DFL;
	return HANDLER;
}

/* Returns the next signal whose handler must run; 0: none. */
static int next_handled(struct siginfo *info, struct kernel_sigaction *action)
{
	struct process *proc = current->proc;

	for (;;) {
		unsigned long flags = spin_lock_irqsave(&proc->lock);
		enum verdict verdict;
		int sig;

		verdict = take_next(&sig, info, action);
		signal_recalc(current);
		spin_unlock_irqrestore(&proc->lock, flags);
		switch (verdict) {
		case NOTHING:
			return 0;
		case HANDLER:
			return sig;
		case ENDS:
			process_kill(proc, sig);
			break;
		case STOPS:
			sleep_stopped();
			break;
		case MAY_STOP:
			take_stop_signal(sig);
			break;
		case AGAIN:
			break;
		}
	}
}

/*
 * Called if the stack has no room for a signal frame. If that was a frame for SIGSEGV, the handler
 * of SIGSEGV cannot run, either.
 */
static void fail_frame(int sig, struct pt_regs *regs)
{
	static const char why[] = "no stack for a signal handler";

	if (sig == SIGSEGV)
		process_fault(SIGSEGV, why, regs->rsp, regs);
	else
		signal_force_fault(SIGSEGV, SI_KERNEL, 0, regs, why);
}

void signal_deliver(struct pt_regs *regs)
{
	struct task *task = current;
	struct kernel_sigaction action;
	struct siginfo info;
	u64 mask;
	int sig = next_handled(&info, &action);

	might_sleep();
	if (!sig) {
		signal_settle_call(regs, NULL);
		signal_restore_mask();
		return;
	}
	signal_settle_call(regs, &action);
	/* Abort a restartable sequence: the handler returns to its abort address. */
	if (task->rseq_area)
		rseq_resume(regs);
	mask = task->has_saved_blocked ? task->saved_blocked : task->blocked_signals;
	if (signal_push_frame(regs, sig, &action, &info, mask)) {
		fail_frame(sig, regs);
		return;
	}
	task->has_saved_blocked = false;
	mask = task->blocked_signals | action.mask;
	if (!(action.flags & SA_NODEFER))
		mask |= SIGNAL_BIT(sig);
	signal_set_blocked(mask);
}

bool signal_on_altstack(u64 sp)
{
	const struct kernel_sigaltstack *stack = &current->altstack;

	return !(stack->flags & SS_AUTODISARM) && sp > stack->sp &&
	       sp - stack->sp <= stack->size_bytes;
}

int signal_set_altstack(const struct kernel_sigaltstack *new, u64 sp)
{
	struct kernel_sigaltstack *stack = &current->altstack;
	u32 mode = new->flags & ~SS_AUTODISARM;

	if (signal_on_altstack(sp))
		return -EPERM;
	if (mode != SS_DISABLE && mode != SS_ONSTACK && mode)
		return -EINVAL;
	if (mode == SS_DISABLE)
		*stack = (struct kernel_sigaltstack){ .flags = new->flags };
	else if (new->size_bytes < SS_MIN_BYTES)
		return -ENOMEM;
	else
		*stack = *new;
	return 0;
}
