// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sends signals. Some take effect at once: an ignored signal is dropped, a signal that ends the
 * process marks its threads, and SIGCONT and the stop signals cancel each other. Any other signal
 * is queued for the process or for one thread, and a thread that does not block it is notified
 * (signal_deliver.c). A standard signal is pending at most once. Without memory, its siginfo is
 * lost, but not the signal.
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
#include <lego/slab.h>
#include <lego/smp.h>
#include <lego/string.h>
#include <lego/wait.h>

#define DEFAULT_IGNORED \
	(SIGNAL_BIT(SIGCHLD) | SIGNAL_BIT(SIGCONT) | SIGNAL_BIT(SIGURG) | SIGNAL_BIT(SIGWINCH))

/* Signals caused by what the thread itself has just done. They are handled before others. */
#define SYNCHRONOUS                                                                            \
	(SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(SIGILL) | SIGNAL_BIT(SIGTRAP) | \
	 SIGNAL_BIT(SIGFPE) | SIGNAL_BIT(SIGSYS))

struct signal_entry {
	struct list_head node;
	struct signal_owner *owner; /* NULL: none */
	struct siginfo info;
};

static atomic_t nr_queued = ATOMIC_INIT(0);

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

/*
 * Wait queues for readers of signalfds, by a hash of the process. They are not in struct process,
 * because an epoll that a child has inherited may stay on a queue longer than the process lives.
 */
#define NR_ARRIVALS 64

static struct wait_queue arrivals[NR_ARRIVALS];

void signal_init(void)
{
	for (int i = 0; i < NR_ARRIVALS; i++)
		wait_queue_init_at(&arrivals[i], "signalfd", LOCK_PLACE("signal_arrivals"));
}

static struct wait_queue *arrivals_of(struct process *proc)
{
	return &arrivals[(u32)proc->pid % NR_ARRIVALS];
}

struct wait_queue *signal_arrivals(void)
{
	return arrivals_of(current->proc);
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

void sigpending_init(struct sigpending *pending)
{
	pending->set = 0;
	list_init(&pending->queue);
}

void signal_disown(struct signal_owner *owner)
{
	if (owner->entry)
		owner->entry->owner = NULL;
	owner->entry = NULL;
}

static noinline void tell_owner(struct signal_owner *owner)
{
	struct siginfo *info = &owner->entry->info;

	signal_disown(owner);
	owner->gone(owner, info);
}

static void drop_entry(struct signal_entry *entry)
{
	DEBUG_ASSERT(atomic_read(&nr_queued) > 0);
	if (unlikely(entry->owner))
		tell_owner(entry->owner);
	list_del(&entry->node);
	kfree(entry);
	atomic_dec(&nr_queued);
}

void signal_discard(struct sigpending *pending, u64 signals)
{
	struct signal_entry *entry, *next;

	if (!(pending->set & signals))
		return;
	pending->set &= ~signals;
	list_for_each_entry_safe(entry, next, &pending->queue, node) {
		if (SIGNAL_BIT(entry->info.si_signo) & signals)
			drop_entry(entry);
	}
}

void sigpending_flush(struct sigpending *pending)
{
	signal_discard(pending, ~0ULL);
	DEBUG_ASSERT(!pending->set && list_empty(&pending->queue));
}

void signal_discard_all(struct process *proc, u64 signals)
{
	struct task *task;

	ASSERT_HELD(&proc->lock);
	signal_discard(&proc->pending, signals);
	list_for_each_entry(task, &proc->threads, thread_node)
		signal_discard(&task->pending, signals);
}

/*
 * The limit applies only to signals that user code sends. The number of other signals has bounds of
 * its own.
 */
static struct signal_entry *alloc_entry(struct process *proc, bool limited)
{
	/* Users leave some to root. */
	u64 most = proc->creds.uid ? SIGNAL_MAX_QUEUED * 15 / 16 : SIGNAL_MAX_QUEUED;
	u64 limit = min(proc->rlimits[RLIMIT_SIGPENDING].cur, most);
	struct signal_entry *entry = NULL;

	if ((u64)atomic_add_return(&nr_queued, 1) <= limit || !limited)
		entry = kmalloc(sizeof(*entry));
	if (!entry)
		atomic_dec(&nr_queued);
	return entry;
}

/*
 * Wakes readers of signalfds. A reader queues itself and then looks for a signal with proc->lock
 * held, so none misses this wake-up.
 */
static void announce(struct process *proc)
{
	struct wait_queue *queue = arrivals_of(proc);

	ASSERT_HELD(&proc->lock);
	if (unlikely(!list_empty(&queue->waiters)))
		wake_up_all(queue);
}

/* Returns whether a standard signal is pending already: it is not queued twice. */
static bool is_pending(const struct sigpending *pending, int sig)
{
	return sig < SIGRTMIN && pending->set & SIGNAL_BIT(sig);
}

int signal_enqueue(struct process *proc, struct sigpending *pending, int sig,
		   const struct siginfo *info)
{
	static const struct siginfo from_kernel = { .si_code = SI_KERNEL };
	struct signal_entry *entry;

	ASSERT_HELD(&proc->lock);
	if (is_pending(pending, sig))
		return 0;
	entry = alloc_entry(proc, sig >= SIGRTMIN || (info && info->si_code < 0));
	if (!entry && sig >= SIGRTMIN && info && info->si_code != SI_USER)
		return -EAGAIN;
	pending->set |= SIGNAL_BIT(sig);
	announce(proc);
	if (!entry)
		return 0;
	entry->info = info ? *info : from_kernel;
	entry->info.si_signo = sig;
	entry->owner = NULL;
	list_add_tail(&entry->node, &pending->queue);
	return 0;
}

static int first_signal(u64 set)
{
	if (set & SYNCHRONOUS)
		set &= SYNCHRONOUS;
	return __builtin_ctzll(set) + 1;
}

int signal_find(u64 set, struct sigpending **pending)
{
	struct task *task = current;

	ASSERT_HELD(&task->proc->lock);
	*pending = &task->pending;
	if (!(task->pending.set & set))
		*pending = &task->proc->pending;
	set &= (*pending)->set;
	return set ? first_signal(set) : 0;
}

void signal_take(struct sigpending *pending, int sig, struct siginfo *info)
{
	struct signal_entry *entry, *first = NULL;
	bool more = false;

	ASSERT_HELD(&current->proc->lock);
	DEBUG_ASSERT(pending->set & SIGNAL_BIT(sig));
	list_for_each_entry(entry, &pending->queue, node) {
		if (entry->info.si_signo != sig)
			continue;
		more = first;
		if (more)
			break;
		first = entry;
	}
	if (!more)
		pending->set &= ~SIGNAL_BIT(sig);
	if (first) {
		if (unlikely(first->owner))
			tell_owner(first->owner);
		*info = first->info;
		drop_entry(first);
	} else {
		*info = (struct siginfo){ .si_signo = sig };
	}
}

/* Returns the signals that the thread blocks now. */
static u64 blocked_by(const struct task *task)
{
	return task->blocked_signals & ~task->waited_signals;
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
	u64 waiting = task->pending.set | proc->pending.set;

	ASSERT_HELD(&proc->lock);
	WRITE_ONCE(task->signal_pending, waiting & ~blocked_by(task) || proc->stopped);
}

/* Notifies other threads of the process's signals that the current thread will not take. */
static void retarget_signals(struct process *proc, u64 signals)
{
	struct task *task;

	ASSERT_HELD(&proc->lock);
	signals &= proc->pending.set;
	if (!signals)
		return;
	list_for_each_entry(task, &proc->threads, thread_node) {
		if (task != current && signals & ~blocked_by(task))
			signal_notify_thread(task);
	}
}

void signal_set_blocked(u64 blocked)
{
	struct task *task = current;
	struct process *proc = task->proc;
	unsigned long flags = spin_lock_irqsave(&proc->lock);

	ASSERT_PROCESS_CONTEXT();
	blocked &= ~SIGNALS_SOVEREIGN;
	if (task->signal_pending)
		retarget_signals(proc, blocked & ~task->blocked_signals);
	task->blocked_signals = blocked;
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
	struct task *task;

	ASSERT_HELD(&proc->lock);
	if (!proc->stopped || proc->stop_told || list_empty(&proc->threads))
		return false;
	list_for_each_entry(task, &proc->threads, thread_node) {
		if (!task->in_stop)
			return false;
	}
	proc->stop_told = true;
	return true;
}

void signal_thread_gone(struct process *proc)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	bool complete;

	ASSERT_PROCESS_CONTEXT();
	retarget_signals(proc, ~0ULL);
	complete = signal_stop_is_complete(proc);
	spin_unlock_irqrestore(&proc->lock, flags);
	if (complete)
		signal_tell_stopped(proc, false);
}

static void continue_process(struct process *proc)
{
	struct task *task;

	ASSERT_HELD(&proc->lock);
	signal_discard_all(proc, SIGNALS_STOP);
	if (!proc->stopped)
		return;
	proc->stopped = false;
	proc->continued = proc->stop_told;
	list_for_each_entry(task, &proc->threads, thread_node) {
		if (task->in_stop)
			task_wake(task);
	}
}

static bool can_take(const struct task *task, int sig)
{
	return !task->killed && !(blocked_by(task) & SIGNAL_BIT(sig));
}

/*
 * Returns a thread that does not block the signal. Takes the first one that has no other signal to
 * handle, or else the first one. If `only` is given, considers only that thread. NULL: all block
 * it.
 */
static struct task *choose_thread(struct process *proc, struct task *only, int sig)
{
	struct task *task, *chosen = NULL;

	ASSERT_HELD(&proc->lock);
	/* A stopped thread finds the signal when it continues. */
	if (proc->stopped && sig != SIGKILL)
		return NULL;
	if (only)
		return can_take(only, sig) ? only : NULL;
	list_for_each_entry(task, &proc->threads, thread_node) {
		if (!can_take(task, sig))
			continue;
		if (!task->signal_pending)
			return task;
		chosen = chosen ?: task;
	}
	return chosen;
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
	if (is_dropped(proc, to, sig, info)) {
		signal_count(proc, sig, SIGNAL_IGNORED);
		profile_trace(signal_generate, sig, info, to, !task, PROFILE_SIGNAL_IGNORED);
		return 0;
	}
	to = choose_thread(proc, task, sig);
	*fatal = to && is_fatal(proc, to, sig, info);
	if (*fatal) {
		/* SIGKILL ends all threads, so no call returns after it. */
		WRITE_ONCE(to->took_signal, sig != SIGKILL);
		signal_count(proc, sig, SIGNAL_FATAL);
		profile_trace(signal_generate, sig, info, to, !task, PROFILE_SIGNAL_DELIVERED);
		return 0;
	}
	if (is_pending(pending, sig)) {
		error = 0;
		profile_trace(signal_generate, sig, info, to ?: any, !task, PROFILE_SIGNAL_PENDING);
	} else {
		error = signal_enqueue(proc, pending, sig, info);
		profile_trace(signal_generate, sig, info, to ?: any, !task, error);
	}
	if (!error && to)
		signal_notify_thread(to);
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
	/* If the signal is pending, it is the last in the queue. */
	entry = list_last_entry(queue, struct signal_entry, node);
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
