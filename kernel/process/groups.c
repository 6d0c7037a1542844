// SPDX-License-Identifier: BSD-2-Clause
/*
 * Process groups and sessions. Each process has the numbers of its group and its session, guarded
 * by process_tree_lock. A group consists of all processes with its number, and so does a session.
 * All processes of a group are in the same session.
 */

#include <lego/process.h>

#include "process.h"
#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/syscall.h>

static struct process *find_member(pid_t pgid)
{
	struct list_head *members = process_group(pgid);

	return list_empty(members) ? NULL : list_first_entry(members, struct process, group_node);
}

static void set_group(struct process *proc, pid_t pgid)
{
	ASSERT_HELD(&process_tree_lock);
	if (proc->pgid == pgid)
		return;
	pid_leave_group(proc);
	pid_join_group(proc, pgid);
}

/* Changes the group of the caller, or of a child that has not called execve yet: setpgid(2). */
static int change_group(struct process *proc, pid_t pgid)
{
	struct process *self = current->proc, *member;

	ASSERT_HELD(&process_tree_lock);
	if (proc != self) {
		if (proc->parent != self)
			return -ESRCH;
		if (proc->sid != self->sid)
			return -EPERM;
		if (proc->has_execed)
			return -EACCES;
	}
	if (proc->sid == proc->pid)
		return -EPERM;
	if (pgid != proc->pid) {
		member = find_member(pgid);
		if (!member || member->sid != self->sid)
			return -EPERM;
	}
	set_group(proc, pgid);
	return 0;
}

SYSCALL_DEFINE2(setpgid, pid_t, pid, pid_t, pgid)
{
	struct process *proc;
	unsigned long flags;
	int error = -ESRCH;

	if (!pid)
		pid = current->proc->pid;
	if (!pgid)
		pgid = pid;
	if (pgid < 0)
		return -EINVAL;
	proc = process_find(pid);
	if (!proc)
		return -ESRCH;
	flags = spin_lock_irqsave(&process_tree_lock);
	if (!list_empty(&proc->all_node))
		error = change_group(proc, pgid);
	spin_unlock_irqrestore(&process_tree_lock, flags);
	process_put(proc);
	return error;
}

SYSCALL_DEFINE0(setsid)
{
	struct process *self = current->proc;
	unsigned long flags = spin_lock_irqsave(&process_tree_lock);
	long ret = -EPERM;

	/* The new group must be empty. A session leader already leads a group with its number. */
	if (self->sid != self->pid && !find_member(self->pid)) {
		set_group(self, self->pid);
		pid_get(self->pid);
		pid_put(self->sid);
		self->sid = self->pid;
		self->tty = NULL;
		ret = self->pid;
	}
	spin_unlock_irqrestore(&process_tree_lock, flags);
	return ret;
}

/*
 * Returns a number of a process; pid 0 is the caller. Needs no lock, because the numbers are single
 * words.
 */
static long get_number(pid_t pid, const pid_t *(*field)(const struct process *proc))
{
	struct process *proc;
	long ret;

	if (!pid)
		return READ_ONCE(*field(current->proc));
	proc = process_find(pid);
	if (!proc)
		return -ESRCH;
	ret = READ_ONCE(*field(proc));
	process_put(proc);
	return ret;
}

static const pid_t *group_of(const struct process *proc)
{
	return &proc->pgid;
}

static const pid_t *session_of(const struct process *proc)
{
	return &proc->sid;
}

SYSCALL_DEFINE1(getpgid, pid_t, pid)
{
	return get_number(pid, group_of);
}

SYSCALL_DEFINE0(getpgrp)
{
	return get_number(0, group_of);
}

SYSCALL_DEFINE1(getsid, pid_t, pid)
{
	return get_number(pid, session_of);
}

/* 0 for init. The parent may end, and init become it, at any time. */
SYSCALL_DEFINE0(getppid)
{
	unsigned long flags = spin_lock_irqsave(&process_tree_lock);
	struct process *parent = current->proc->parent;
	long pid = parent ? parent->pid : 0;

	spin_unlock_irqrestore(&process_tree_lock, flags);
	return pid;
}
