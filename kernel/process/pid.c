// SPDX-License-Identifier: BSD-2-Clause
#include "process.h"

#include <lego/assert.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/process.h>
#include <lego/slab.h>

/*
 * Numbers of threads, processes, groups and sessions, which share one range. A number is in a hash
 * table while it has a use: as a thread's, as a process's, or by a process that is in the group or
 * session of that number. So what one has heard of as a group is not soon somebody's pid. Kernel
 * threads have numbers of their own, which users never see and which are not kept here.
 */

#define PID_FIRST  300 /* after the first turn; Linux's */
#define NR_BUCKETS 1024

struct pid_number {
	struct pid_number *next;
	pid_t nr;
	unsigned int nr_uses;
	struct process *proc; /* whose, or whose thread's; NULL: a group's or session's only */
};

/* Guards all here; taken with interrupts off, last of all locks. */
static DEFINE_SPINLOCK(pid_lock);
static struct pid_number *buckets[NR_BUCKETS];
static unsigned int nr_numbers;
static pid_t last_pid;

/* The link that points to the number, or to NULL. */
static struct pid_number **find_link(pid_t nr)
{
	struct pid_number **link = &buckets[(unsigned int)nr % NR_BUCKETS];

	ASSERT_HELD(&pid_lock);
	while (*link && (*link)->nr != nr)
		link = &(*link)->next;
	return link;
}

static struct pid_number *find_number(pid_t nr)
{
	struct pid_number *number = *find_link(nr);

	BUG_ON(!number);
	return number;
}

pid_t pid_alloc(unsigned int max)
{
	struct pid_number *number = kzalloc(sizeof(*number)), **link;
	unsigned long flags;

	BUG_ON(max >= PID_MAX - PID_FIRST);
	if (!number)
		return -ENOMEM;
	flags = spin_lock_irqsave(&pid_lock);
	if (nr_numbers >= max) {
		spin_unlock_irqrestore(&pid_lock, flags);
		kfree(number);
		return -EAGAIN;
	}
	nr_numbers++;
	do {
		if (++last_pid >= PID_MAX)
			last_pid = PID_FIRST;
		link = find_link(last_pid);
	} while (*link);
	number->nr = last_pid;
	number->nr_uses = 1;
	*link = number;
	spin_unlock_irqrestore(&pid_lock, flags);
	return number->nr;
}

pid_t pid_last(void)
{
	return READ_ONCE(last_pid);
}

void pid_get(pid_t nr)
{
	unsigned long flags;

	if (!nr)
		return;
	flags = spin_lock_irqsave(&pid_lock);
	DEBUG_ASSERT(find_number(nr)->nr_uses);
	find_number(nr)->nr_uses++;
	spin_unlock_irqrestore(&pid_lock, flags);
}

void pid_put(pid_t nr)
{
	struct pid_number *unused = NULL, **link;
	unsigned long flags;

	if (!nr)
		return;
	flags = spin_lock_irqsave(&pid_lock);
	link = find_link(nr);
	BUG_ON(!*link);
	DEBUG_ASSERT((*link)->nr_uses && nr_numbers);
	if (--(*link)->nr_uses == 0) {
		unused = *link;
		DEBUG_ASSERT(!unused->proc);
		*link = unused->next;
		nr_numbers--;
	}
	spin_unlock_irqrestore(&pid_lock, flags);
	kfree(unused);
}

void pid_set_process(pid_t nr, struct process *proc)
{
	unsigned long flags = spin_lock_irqsave(&pid_lock);

	find_number(nr)->proc = proc;
	spin_unlock_irqrestore(&pid_lock, flags);
}

struct process *pid_find_process(pid_t nr)
{
	unsigned long flags = spin_lock_irqsave(&pid_lock);
	struct pid_number *number = *find_link(nr);
	struct process *proc = number ? number->proc : NULL;

	/* Whoever drops the last reference has taken the process out of the table before. */
	if (proc)
		process_get(proc);
	spin_unlock_irqrestore(&pid_lock, flags);
	return proc;
}

struct process *process_find(pid_t pid)
{
	struct process *proc = pid_find_process(pid);

	if (!proc || proc->pid == pid)
		return proc;
	process_put(proc);
	return NULL;
}

struct process *process_next(pid_t pid)
{
	struct process *proc = NULL;

	while (!proc && ++pid < PID_MAX)
		proc = process_find(pid);
	return proc;
}
