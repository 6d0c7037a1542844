// SPDX-License-Identifier: BSD-2-Clause
/*
 * The queues of pending signals, of a process and of each thread. A standard signal is pending at
 * most once. Without memory, its siginfo is lost, but not the signal. Many signals are dropped in
 * steps between which interrupts are on.
 */

#include <lego/signal.h>

#include "signal.h"
#include <lego/assert.h>
#include <lego/atomic.h>
#include <lego/errno.h>
#include <lego/process.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/wait.h>

/* Signals caused by what the thread itself has just done. They are handled before others. */
#define SYNCHRONOUS                                                                            \
	(SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(SIGILL) | SIGNAL_BIT(SIGTRAP) | \
	 SIGNAL_BIT(SIGFPE) | SIGNAL_BIT(SIGSYS))

static atomic_t nr_queued = ATOMIC_INIT(0);

/*
 * Wait queues for readers of signalfds, by a hash of the process. They are not in struct process,
 * because an epoll that a child has inherited may stay on a queue longer than the process lives.
 */
#define NR_ARRIVALS 64

static struct wait_queue arrivals[NR_ARRIVALS];
static struct wake_timer announcers[NR_ARRIVALS];

void signal_init(void)
{
	for (int i = 0; i < NR_ARRIVALS; i++) {
		wait_queue_init_at(&arrivals[i], "signalfd", LOCK_PLACE("signal_arrivals"));
		wake_timer_init(&announcers[i], &arrivals[i]);
	}
}

static struct wait_queue *arrivals_of(struct process *proc)
{
	return &arrivals[(u32)proc->pid % NR_ARRIVALS];
}

struct wait_queue *signal_arrivals(void)
{
	return arrivals_of(current->proc);
}

void sigpending_init(struct sigpending *pending)
{
	pending->set = 0;
	list_init(&pending->queue);
	pending->mark = &pending->queue;
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

static void drop_entry(struct sigpending *pending, struct signal_entry *entry)
{
	DEBUG_ASSERT(atomic_read(&nr_queued) > 0);
	if (unlikely(entry->owner))
		tell_owner(entry->owner);
	if (unlikely(pending->mark == &entry->node))
		pending->mark = entry->node.prev;
	list_del(&entry->node);
	kfree(entry);
	atomic_dec(&nr_queued);
}

/* Bounds the work with interrupts off. A look at a queue or an entry, 20 instructions, costs 1. */
#define DROP_BUDGET 512
#define DROP_COST   16 /* of an entry that is dropped */

/*
 * Drops pending signals of this set, behind the mark. Returns true if none of them are left, false
 * if the budget is used up.
 */
static bool drop_some(struct sigpending *pending, u64 signals, int *budget)
{
	struct signal_entry *entry;

	--*budget;
	while (pending->set & signals && pending->mark->next != &pending->queue) {
		if (*budget <= 0)
			return false;
		entry = list_entry(pending->mark->next, struct signal_entry, node);
		if (entry->info.si_signo >= SIGRTMIN && !(signals >> (SIGRTMIN - 1)))
			break;
		if (SIGNAL_BIT(entry->info.si_signo) & signals) {
			drop_entry(pending, entry);
			*budget -= DROP_COST;
		} else {
			pending->mark = &entry->node;
			--*budget;
		}
	}
	pending->mark = &pending->queue;
	pending->set &= ~signals;
	return true;
}

/* The same from the start of the queue, whatever a walk in steps has looked at. */
static bool drop_from_start(struct sigpending *pending, u64 signals, int budget)
{
	pending->mark = &pending->queue;
	return drop_some(pending, signals, &budget);
}

void signal_discard(struct sigpending *pending, u64 signals)
{
	drop_from_start(pending, signals, INT32_MAX);
}

void signal_discard_in_steps(struct process *proc, struct sigpending *pending)
{
	unsigned long flags;
	bool at_end;

	do {
		flags = spin_lock_irqsave(&proc->lock);
		at_end = drop_from_start(pending, ~0ULL, DROP_BUDGET);
		spin_unlock_irqrestore(&proc->lock, flags);
	} while (!at_end);
}

/*
 * The same for the queue of the process and, if walk is not NULL, those of its threads. The budget
 * is for each time that the lock is held. Returns false if the action has changed meanwhile.
 */
static bool drop_all(struct process *proc, int sig, struct list_walk *walk, unsigned long flags)
{
	struct sigpending *pending = &proc->pending;
	int budget = DROP_BUDGET;

	ASSERT_HELD(&proc->lock);
	for (;;) {
		bool at_end = drop_some(pending, SIGNAL_BIT(sig), &budget);

		if (at_end && pending != &proc->pending)
			walk->next = walk->next->next;
		if (budget <= 0) {
			spin_unlock_irqrestore(&proc->lock, flags);
			flags = spin_lock_irqsave(&proc->lock);
			budget = DROP_BUDGET;
		}
		if (at_end || pending != &proc->pending) {
			if (!walk || walk->next == &proc->threads)
				return true;
			/* The same thread's if there is more, unless it is gone. */
			pending = &list_entry(walk->next, struct task, thread_node)->pending;
		}
		if (!signal_action_ignores(&proc->sigactions[sig - 1], sig)) {
			pending->mark = &pending->queue;
			return false;
		}
	}
}

void signal_drop_ignored(struct process *proc, int sig)
{
	struct list_walk walk;
	unsigned long flags;
	u64 nr_sent;

	mutex_lock(&proc->drop_lock);
	flags = spin_lock_irqsave(&proc->lock);
	walk.next = proc->threads.next;
	list_add(&walk.node, &proc->thread_walks);
	nr_sent = proc->nr_thread_signals;
	if (!(proc->thread_signals & SIGNAL_BIT(sig)))
		drop_all(proc, sig, NULL, flags);
	else if (drop_all(proc, sig, &walk, flags) && proc->nr_thread_signals == nr_sent)
		proc->thread_signals &= ~SIGNAL_BIT(sig);
	list_del(&walk.node);
	spin_unlock_irqrestore(&proc->lock, flags);
	mutex_unlock(&proc->drop_lock);
}

void sigpending_flush(struct sigpending *pending)
{
	signal_discard(pending, ~0ULL);
	DEBUG_ASSERT(!pending->set && list_empty(&pending->queue));
}

void signal_discard_all(struct process *proc, u64 signals)
{
	ASSERT_HELD(&proc->lock);
	signal_discard(&proc->pending, signals);
	if (proc->thread_signals & signals)
		proc->pending.nr_discards += signals & SIGNALS_STOP ? 1 : 1ULL << 32;
	proc->thread_signals &= ~signals;
}

u64 signal_pending_of(struct task *task)
{
	struct sigpending *own = &task->pending, *all = &task->proc->pending;

	ASSERT_HELD(&task->proc->lock);
	if ((u32)own->nr_discards != (u32)all->nr_discards)
		signal_discard(own, SIGNALS_STOP);
	if (own->nr_discards >> 32 != all->nr_discards >> 32)
		signal_discard(own, SIGNAL_BIT(SIGCONT));
	own->nr_discards = all->nr_discards;
	return own->set;
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
		wake_up_in_steps(&announcers[queue - arrivals], true);
}

bool signal_is_pending(const struct sigpending *pending, int sig)
{
	return sig < SIGRTMIN && pending->set & SIGNAL_BIT(sig);
}

int signal_enqueue(struct process *proc, struct sigpending *pending, int sig,
		   const struct siginfo *info)
{
	static const struct siginfo from_kernel = { .si_code = SI_KERNEL };
	struct signal_entry *entry;

	ASSERT_HELD(&proc->lock);
	if (signal_is_pending(pending, sig))
		return 0;
	entry = alloc_entry(proc, sig >= SIGRTMIN || (info && info->si_code < 0));
	if (!entry && sig >= SIGRTMIN && info && info->si_code != SI_USER)
		return -EAGAIN;
	pending->set |= SIGNAL_BIT(sig);
	if (pending != &proc->pending) {
		proc->thread_signals |= SIGNAL_BIT(sig);
		proc->nr_thread_signals++;
	}
	announce(proc);
	if (!entry)
		return 0;
	entry->info = info ? *info : from_kernel;
	entry->info.si_signo = sig;
	entry->owner = NULL;
	/* The standard signals, of which there are few, come first. */
	if (sig < SIGRTMIN)
		list_add(&entry->node, &pending->queue);
	else
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
	if (!(signal_own_pending(task) & set))
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
		first = first ?: entry;
		if (more || sig < SIGRTMIN)
			break;
	}
	if (!more)
		pending->set &= ~SIGNAL_BIT(sig);
	if (first) {
		if (unlikely(first->owner))
			tell_owner(first->owner);
		*info = first->info;
		drop_entry(pending, first);
	} else {
		*info = (struct siginfo){ .si_signo = sig };
	}
}
