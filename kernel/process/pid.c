// SPDX-License-Identifier: BSD-2-Clause
/*
 * Numbers of threads, processes, groups and sessions, which share one range. A number is in a hash
 * table while it is in use: as a thread's or a process's number, or by a process in the group or
 * session of that number. So the number of a live group is never reused as a pid. Each number has a
 * list of the members of its group, so no search is needed. A bit map of the numbers in use leads
 * to the next free one in constant time. Kernel threads have other numbers, which users never see
 * and which are not stored here.
 */

#include "process.h"

#include <lego/assert.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/process.h>
#include <lego/slab.h>

#define PID_FIRST  300 /* the first number after a wrap-around, as in Linux */
#define NR_BUCKETS 4096

struct pid_number {
	struct pid_number *next;
	pid_t nr;
	unsigned int nr_uses;
	/*
	 * The process with this number, or with such a thread; NULL: only a group or session has
	 * it.
	 */
	struct process *proc;
	struct task *task; /* the thread with this number; changed with its process's lock, too */
	struct list_head members; /* of the group; changed with process_tree_lock, too */
};

/* Guards everything here. Taken with interrupts off, inside all other locks. */
static DEFINE_SPINLOCK(pid_lock);
static struct pid_number *buckets[NR_BUCKETS];
static u64 used[PID_MAX / 64];
static unsigned int nr_numbers;
static pid_t last_pid;

/* Returns the link that points to the number, or the one at the end, which is NULL. */
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

/* Returns the first number from nr on that is in use, or is not, or PID_MAX. */
static pid_t next_number(pid_t nr, bool in_use)
{
	ASSERT_HELD(&pid_lock);
	for (; nr < PID_MAX; nr = ALIGN_DOWN(nr, 64) + 64) {
		u64 bits = (in_use ? used[nr / 64] : ~used[nr / 64]) >> nr % 64;

		if (bits)
			return nr + __builtin_ctzll(bits);
	}
	return PID_MAX;
}

static void set_used(pid_t nr, bool in_use)
{
	u64 *word = &used[nr / 64];

	ASSERT_HELD(&pid_lock);
	*word = (*word & ~BIT(nr % 64)) | (u64)in_use << nr % 64;
}

pid_t pid_alloc(unsigned int max)
{
	struct pid_number *number = kzalloc(sizeof(*number)), **link;
	unsigned long flags;
	pid_t nr;

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
	nr = next_number(last_pid + 1, false);
	if (nr == PID_MAX)
		nr = next_number(PID_FIRST, false);
	WRITE_ONCE(last_pid, nr);
	set_used(nr, true);
	link = find_link(nr);
	number->nr = nr;
	number->nr_uses = 1;
	list_init(&number->members);
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
		DEBUG_ASSERT(!unused->proc && list_empty(&unused->members));
		*link = unused->next;
		set_used(nr, false);
		nr_numbers--;
	}
	spin_unlock_irqrestore(&pid_lock, flags);
	kfree(unused);
}

static LIST_HEAD(group_zero); /* members of group 0, which has no struct pid_number */

void pid_join_group(struct process *proc, pid_t nr)
{
	unsigned long flags;

	ASSERT_HELD(&process_tree_lock);
	pid_get(nr);
	flags = spin_lock_irqsave(&pid_lock);
	proc->pgid = nr;
	list_add_tail(&proc->group_node, nr ? &find_number(nr)->members : &group_zero);
	spin_unlock_irqrestore(&pid_lock, flags);
}

void pid_leave_group(struct process *proc)
{
	unsigned long flags;

	ASSERT_HELD(&process_tree_lock);
	flags = spin_lock_irqsave(&pid_lock);
	process_leave_list(&proc->group_node);
	spin_unlock_irqrestore(&pid_lock, flags);
	pid_put(proc->pgid);
}

struct list_head *process_group(pid_t pgid)
{
	static LIST_HEAD(nobody);
	struct list_head *members = &group_zero;
	struct pid_number *number;
	unsigned long flags;

	ASSERT_HELD(&process_tree_lock);
	if (!pgid)
		return members;
	flags = spin_lock_irqsave(&pid_lock);
	number = *find_link(pgid);
	/* A number without members may be freed as soon as the lock is released. */
	members = number && !list_empty(&number->members) ? &number->members : &nobody;
	spin_unlock_irqrestore(&pid_lock, flags);
	return members;
}

void pid_set_owner(pid_t nr, struct process *proc, struct task *task)
{
	unsigned long flags = spin_lock_irqsave(&pid_lock);
	struct pid_number *number = find_number(nr);

	number->proc = proc;
	number->task = task;
	spin_unlock_irqrestore(&pid_lock, flags);
}

struct task *process_thread(struct process *proc, pid_t tid)
{
	struct task *task = NULL;
	struct pid_number *number;
	unsigned long flags;

	ASSERT_HELD(&proc->lock);
	flags = spin_lock_irqsave(&pid_lock);
	number = *find_link(tid);
	if (number && number->proc == proc)
		task = number->task;
	spin_unlock_irqrestore(&pid_lock, flags);
	return task;
}

struct process *pid_find_process(pid_t nr)
{
	unsigned long flags = spin_lock_irqsave(&pid_lock);
	struct pid_number *number = *find_link(nr);
	struct process *proc = number ? number->proc : NULL;

	/* The last reference is dropped only after the process was removed from the table. */
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
	unsigned long flags;

	while (!proc && pid < PID_MAX) {
		flags = spin_lock_irqsave(&pid_lock);
		pid = next_number(pid + 1, true);
		spin_unlock_irqrestore(&pid_lock, flags);
		proc = process_find(pid);
	}
	return proc;
}
