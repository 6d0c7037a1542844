// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sends signals. Some take effect at once: an ignored signal is dropped, a signal that ends the
 * process marks its threads, and SIGCONT and the stop signals cancel each other. Any other signal
 * is queued for the process or for one thread (signal_queue.c), and a thread that does not block it
 * is notified (signal_deliver.c).
 *
 * Any thread may set ->signal_pending. Only the thread itself clears it, with proc->lock held, when
 * its queues have no signal to handle. So if a sender sees the flag set, the thread will look at
 * the queues once more.
 */

#include <lego/signal.h>

#include "process.h"
#include "signal.h"
#include <lego/assert.h>
#include <lego/atomic.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/percpu.h>
#include <lego/process.h>
#include <lego/sched.h>
#include <lego/smp.h>
#include <lego/string.h>
#include <lego/wait.h>

#define DEFAULT_IGNORED \
	(SIGNAL_BIT(SIGCHLD) | SIGNAL_BIT(SIGCONT) | SIGNAL_BIT(SIGURG) | SIGNAL_BIT(SIGWINCH))

#define WAKE_STEP 32 /* threads that are woken with interrupts off */

static DEFINE_PER_CPU(struct signal_counts, signal_counts); /* of all processes */

void signal_count(struct process *proc, int sig, enum signal_fate fate)
{
	u32 kind = min(sig, NR_SIGNAL_KINDS) - 1;

	ASSERT_HELD(&proc->lock);
	proc->signal_counts.kinds[kind]++;
	proc->signal_counts.fates[fate]++;
	this_cpu_inc(signal_counts.kinds[kind]);
	this_cpu_inc(signal_counts.fates[fate]);
}

static void add_counts(struct signal_counts *to, const struct signal_counts *from)
{
	for (u32 i = 0; i < NR_SIGNAL_KINDS; i++)
		to->kinds[i] += READ_ONCE(from->kinds[i]);
	for (u32 i = 0; i < NR_SIGNAL_FATES; i++)
		to->fates[i] += READ_ONCE(from->fates[i]);
}

void signal_read_counts(struct process *proc, struct signal_counts *counts)
{
	u32 cpu;

	*counts = (struct signal_counts){ 0 };
	if (proc) {
		add_counts(counts, &proc->signal_counts);
		return;
	}
	for_each_possible_cpu(cpu)
		add_counts(counts, &per_cpu(signal_counts, cpu));
}

bool signal_action_ignores(const struct kernel_sigaction *action, int sig)
{
	if (action->handler == SIG_IGN)
		return true;
	return action->handler == SIG_DFL && SIGNAL_BIT(sig) & DEFAULT_IGNORED;
}

bool signal_spares_init(struct process *proc, int sig, const struct siginfo *info)
{
	ASSERT_HELD(&proc->lock);
	if (proc->pid != INIT_PID || proc->sigactions[sig - 1].handler != SIG_DFL)
		return false;
	return info || (sig != SIGKILL && sig != SIGINT && sig != SIGQUIT);
}

void signal_notify_thread(struct task *task)
{
	ASSERT_HELD(&task->proc->lock);
	if (task->signal_pending)
		return;
	WRITE_ONCE(task->signal_pending, true);
	/* Takes a lock, so the mark is visible before the task's state is read. */
	task_kick(task);
}

void signal_recalc(struct task *task)
{
	struct process *proc = task->proc;
	u64 waiting = signal_own_pending(task) | proc->pending.set;

	ASSERT_HELD(&proc->lock);
	WRITE_ONCE(task->signal_pending, waiting & ~signal_blocked_by(task) || proc->stopped);
}

void signal_set_blocked(u64 blocked)
{
	struct task *task = current;
	struct process *proc = task->proc;
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	u64 leaves;

	ASSERT_PROCESS_CONTEXT();
	blocked &= ~SIGNALS_SOVEREIGN;
	leaves = task->signal_pending ? blocked & ~task->blocked_signals : 0;
	task->blocked_signals = blocked;
	if (proc->nr_threads == 1)
		proc->blocked_by_all = blocked;
	else
		signal_takes(proc, ~blocked);
	if (unlikely(leaves))
		signal_find_threads(proc, leaves);
	signal_recalc(task);
	spin_unlock_irqrestore(&proc->lock, flags);
}

void signal_set_temporary_mask(u64 blocked)
{
	struct task *task = current;

	DEBUG_ASSERT(!task->has_saved_blocked);
	task->saved_blocked = task->blocked_signals;
	task->has_saved_blocked = true;
	signal_set_blocked(blocked);
}

void signal_restore_mask(void)
{
	struct task *task = current;

	if (!task->has_saved_blocked)
		return;
	task->has_saved_blocked = false;
	signal_set_blocked(task->saved_blocked);
}

bool signal_stop_is_complete(struct process *proc)
{
	ASSERT_HELD(&proc->lock);
	DEBUG_ASSERT(proc->nr_stopped_threads <= proc->nr_threads);
	if (!proc->stopped || proc->stop_told || !proc->nr_threads ||
	    proc->nr_stopped_threads < proc->nr_threads)
		return false;
	proc->stop_told = true;
	return true;
}

void signal_thread_gone(struct process *proc)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	bool complete;

	ASSERT_PROCESS_CONTEXT();
	signal_find_threads(proc, ~0ULL);
	complete = signal_stop_is_complete(proc);
	spin_unlock_irqrestore(&proc->lock, flags);
	if (complete)
		signal_tell_stopped(proc, false);
}

static atomic_t nr_stopped_processes;

static bool change_stop(struct process *proc, bool stopped)
{
	ASSERT_HELD(&proc->lock);
	if (proc->stopped == stopped)
		return false;
	WRITE_ONCE(proc->stopped, stopped);
	atomic_add_return(&nr_stopped_processes, stopped ? 1 : -1);
	return true;
}

bool signal_begin_stop(struct process *proc)
{
	return change_stop(proc, true);
}

bool signal_end_stop(struct process *proc)
{
	return change_stop(proc, false);
}

bool signal_any_stopped(void)
{
	return atomic_read(&nr_stopped_processes);
}

void signal_wake_stopped(struct process *proc, unsigned int nr)
{
	ASSERT_HELD(&proc->lock);
	while (nr-- && !list_empty(&proc->stopped_threads)) {
		struct list_head *first = proc->stopped_threads.next;
		struct task *task = list_entry(first, struct task, stop_node);

		list_del(first);
		proc->nr_stopped_threads--;
		task_wake(task);
	}
}

bool signal_wake_continued(struct process *proc, unsigned int nr)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	bool more;

	if (!proc->stopped)
		signal_wake_stopped(proc, nr);
	more = !proc->stopped && !list_empty(&proc->stopped_threads);
	spin_unlock_irqrestore(&proc->lock, flags);
	return more;
}

/*
 * Wakes one thread, which wakes others. It may have to wait long for a CPU, so the sender wakes
 * them, too, once no lock is held. Nobody does if a timer or the end of a group's shell continues
 * the process.
 */
static void continue_process(struct process *proc)
{
	ASSERT_HELD(&proc->lock);
	signal_discard_all(proc, SIGNALS_STOP);
	if (!signal_end_stop(proc))
		return;
	proc->continued = proc->stop_told;
	signal_wake_stopped(proc, 1);
}

/*
 * Returns true if no thread will ever see the signal. `to` is the thread, or the first thread of
 * the process.
 */
static bool is_dropped(struct process *proc, struct task *to, int sig, const struct siginfo *info)
{
	ASSERT_HELD(&proc->lock);
	if (to->blocked_signals & SIGNAL_BIT(sig))
		return false;
	return signal_action_ignores(&proc->sigactions[sig - 1], sig) ||
	       signal_spares_init(proc, sig, info);
}

/* Returns true if the signal ends the process. */
static bool is_fatal(struct process *proc, struct task *task, int sig, const struct siginfo *info)
{
	ASSERT_HELD(&proc->lock);
	if (proc->sigactions[sig - 1].handler != SIG_DFL || SIGNAL_BIT(sig) & SIGNALS_STOP ||
	    task->blocked_signals & SIGNAL_BIT(sig))
		return false;
	return !signal_action_ignores(&proc->sigactions[sig - 1], sig) &&
	       !signal_spares_init(proc, sig, info);
}

/* Sends to task or, if NULL, to any thread. Sets *fatal if process_kill() must be called. */
static int send_locked(struct process *proc, struct task *task, int sig, const struct siginfo *info,
		       bool *fatal)
{
	struct task *any = task ?: list_first_entry(&proc->threads, struct task, thread_node);
	struct sigpending *pending = task ? &task->pending : &proc->pending;
	struct task *to = any;
	int error;

	ASSERT_HELD(&proc->lock);
	DEBUG_ASSERT(!task || task->proc == proc);
	if (sig == SIGCONT)
		continue_process(proc);
	else if (SIGNAL_BIT(sig) & SIGNALS_STOP)
		signal_discard_all(proc, SIGNAL_BIT(SIGCONT));
	if (task)
		signal_own_pending(task);
	if (is_dropped(proc, to, sig, info)) {
		signal_count(proc, sig, SIGNAL_IGNORED);
		profile_trace(signal_generate, sig, info, to, !task, PROFILE_SIGNAL_IGNORED);
		return 0;
	}
	to = signal_choose_thread(proc, task, sig);
	*fatal = to && is_fatal(proc, to, sig, info);
	if (*fatal) {
		/* SIGKILL ends all threads, so no call returns after it. */
		WRITE_ONCE(to->took_signal, sig != SIGKILL);
		signal_count(proc, sig, SIGNAL_FATAL);
		profile_trace(signal_generate, sig, info, to, !task, PROFILE_SIGNAL_DELIVERED);
		return 0;
	}
	if (signal_is_pending(pending, sig)) {
		error = 0;
		profile_trace(signal_generate, sig, info, to ?: any, !task, PROFILE_SIGNAL_PENDING);
	} else {
		error = signal_enqueue(proc, pending, sig, info);
		profile_trace(signal_generate, sig, info, to ?: any, !task, error);
	}
	if (!error && to)
		signal_notify_thread(to);
	else if (!error && !task && !proc->stopped)
		signal_find_threads(proc, SIGNAL_BIT(sig));
	return error;
}

static int send_signal(struct process *proc, struct task *task, int sig, const struct siginfo *info)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	bool fatal = false;
	int error = 0;

	BUG_ON(sig < 1 || sig > NR_SIGNALS);
	if (list_empty(task ? &task->thread_node : &proc->threads))
		error = -ESRCH;
	else if (!proc->exiting)
		error = send_locked(proc, task, sig, info, &fatal);
	spin_unlock_irqrestore(&proc->lock, flags);
	if (fatal)
		process_kill(proc, sig);
	if (sig == SIGCONT && !irqs_disabled_flags(flags)) {
		while (signal_wake_continued(proc, WAKE_STEP))
			;
	}
	return error;
}

bool signal_send_owned(struct process *proc, struct task *task, int sig, const struct siginfo *info,
		       struct signal_owner *owner)
{
	struct list_head *queue = task ? &task->pending.queue : &proc->pending.queue;
	struct signal_entry *entry;
	bool fatal = false;

	ASSERT_HELD(&proc->lock);
	DEBUG_ASSERT(!owner->entry);
	if (list_empty(task ? &task->thread_node : &proc->threads) || proc->exiting)
		return false;
	send_locked(proc, task, sig, info, &fatal);
	if (list_empty(queue))
		return fatal;
	/* If the signal is pending, it is at an end of the queue: see signal_enqueue(). */
	entry = sig < SIGRTMIN ? list_first_entry(queue, struct signal_entry, node) :
				 list_last_entry(queue, struct signal_entry, node);
	if (!entry->owner && !memcmp(&entry->info, info, sizeof(*info))) {
		owner->entry = entry;
		entry->owner = owner;
	}
	return fatal;
}

int signal_send(struct process *proc, int sig, const struct siginfo *info)
{
	return send_signal(proc, NULL, sig, info);
}

int signal_send_thread(struct task *task, int sig, const struct siginfo *info)
{
	return send_signal(task->proc, task, sig, info);
}

struct group_signal {
	int sig;
	const struct siginfo *info;
	int ret;
};

static bool send_member(struct process *proc, void *arg)
{
	struct group_signal *signal = arg;
	int error = signal_send(proc, signal->sig, signal->info);

	if (signal->ret && error != -ESRCH)
		signal->ret = error;
	return true;
}

int signal_send_group(pid_t pgid, int sig, const struct siginfo *info)
{
	struct group_signal signal = { sig, info, -ESRCH };

	process_for_each_member(pgid, send_member, &signal);
	return signal.ret;
}

void signal_send_init(int sig)
{
	struct process *proc = process_find(INIT_PID);

	if (!proc)
		return;
	signal_send(proc, sig, NULL);
	process_put(proc);
}

void signal_force_fault(int sig, int code, u64 addr, struct pt_regs *regs, const char *why)
{
	struct siginfo info = { .si_code = code, .fault.addr = addr };
	struct task *task = current;
	struct process *proc = task->proc;
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	u64 handler = proc->sigactions[sig - 1].handler;
	bool ends = handler == SIG_DFL || handler == SIG_IGN ||
		    task->blocked_signals & SIGNAL_BIT(sig);

	ASSERT_PROCESS_CONTEXT();
	profile_trace(signal_generate, sig, &info, task, false, PROFILE_SIGNAL_DELIVERED);
	if (ends) {
		signal_count(proc, sig, SIGNAL_FATAL);
	} else {
		signal_enqueue(proc, &task->pending, sig, &info);
		WRITE_ONCE(task->signal_pending, true);
	}
	spin_unlock_irqrestore(&proc->lock, flags);
	/* If the signal has no address, the instruction is the best one to log. */
	if (ends)
		process_fault(sig, why, code == SI_KERNEL ? regs->rip : addr, regs);
}

void signal_copy_actions(struct process *child, struct process *parent, bool all_default)
{
	unsigned long flags;

	if (all_default) {
		memset(child->sigactions, 0, sizeof(child->sigactions));
		return;
	}
	flags = spin_lock_irqsave(&parent->lock);
	memcpy(child->sigactions, parent->sigactions, sizeof(child->sigactions));
	spin_unlock_irqrestore(&parent->lock, flags);
}

void signal_reset_actions(struct process *proc)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);

	for (int i = 0; i < NR_SIGNALS; i++) {
		u64 handler = proc->sigactions[i].handler == SIG_IGN ? SIG_IGN : SIG_DFL;

		proc->sigactions[i] = (struct kernel_sigaction){ .handler = handler };
	}
	spin_unlock_irqrestore(&proc->lock, flags);
}

bool signal_is_ignored(struct process *proc, int sig)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	bool ignored = signal_action_ignores(&proc->sigactions[sig - 1], sig);

	spin_unlock_irqrestore(&proc->lock, flags);
	return ignored;
}
