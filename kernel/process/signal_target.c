// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finds threads for the signals that are pending for a process. Among many threads, the search goes
 * on in timer interrupts: each looks at some of them.
 */

#include <lego/signal.h>

#include "signal.h"
#include <lego/assert.h>
#include <lego/time.h>

/* Bounds the work with interrupts off. A look at a thread, up to 50 instructions, costs 1. */
#define SEARCH_BUDGET 256
#define NOTIFY_COST   32

static bool can_take(const struct task *task, u64 signals)
{
	return !task->killed && signals & ~signal_blocked_by(task);
}

struct task *signal_choose_thread(struct process *proc, struct task *only, int sig)
{
	struct task *task, *chosen = NULL;
	int budget = SEARCH_BUDGET;

	ASSERT_HELD(&proc->lock);
	/* A stopped thread finds the signal when it continues. */
	if (proc->stopped && sig != SIGKILL)
		return NULL;
	if (only)
		return can_take(only, SIGNAL_BIT(sig)) ? only : NULL;
	if (proc->blocked_by_all & SIGNAL_BIT(sig))
		return NULL;
	list_for_each_entry(task, &proc->threads, thread_node) {
		if (!budget--)
			return chosen;
		if (!can_take(task, SIGNAL_BIT(sig)))
			continue;
		if (!task->signal_pending)
			return task;
		chosen = chosen ?: task;
	}
	if (!chosen)
		proc->blocked_by_all |= SIGNAL_BIT(sig);
	return chosen;
}

/* Looks at some threads. Returns true if there are more. */
static bool search(struct process *proc)
{
	struct signal_search *search = &proc->search;
	int budget = SEARCH_BUDGET;

	ASSERT_HELD(&proc->lock);
	for (; search->nr_left && !list_empty(&proc->threads); search->nr_left--) {
		struct task *task;

		search->signals &= proc->pending.set;
		if (!search->signals)
			break;
		if (budget-- <= 0)
			return true;
		if (search->walk.next == &proc->threads)
			search->walk.next = proc->threads.next;
		task = list_entry(search->walk.next, struct task, thread_node);
		search->walk.next = search->walk.next->next;
		if (!can_take(task, search->signals))
			continue;
		signal_notify_thread(task);
		search->signals &= signal_blocked_by(task);
		budget -= NOTIFY_COST;
	}
	proc->blocked_by_all |= search->signals;
	search->signals = 0;
	return false;
}

static void continue_search(struct timer *timer)
{
	struct process *proc = container_of(timer, struct process, search.timer);
	unsigned long flags = spin_lock_irqsave(&proc->lock);

	if (search(proc))
		timer_start(timer, clock_monotonic_ns());
	else
		list_del(&proc->search.walk.node);
	spin_unlock_irqrestore(&proc->lock, flags);
}

void signal_search_end(struct process *proc)
{
	if (proc->search.timer.fn)
		timer_cancel_everywhere(&proc->search.timer);
}

void signal_find_threads(struct process *proc, u64 signals)
{
	struct signal_search *this = &proc->search;

	ASSERT_HELD(&proc->lock);
	signals &= proc->pending.set & ~proc->blocked_by_all;
	if (!signals)
		return;
	this->signals |= signals;
	this->nr_left = proc->nr_threads; /* all of them, from where a search is that goes on */
	if (!list_empty(&this->walk.node))
		return;
	this->walk.next = proc->threads.next;
	if (!search(proc))
		return;
	list_add(&this->walk.node, &proc->thread_walks);
	if (!this->timer.fn)
		timer_setup(&this->timer, continue_search);
	timer_start(&this->timer, clock_monotonic_ns());
}
