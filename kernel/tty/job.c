// SPDX-License-Identifier: BSD-2-Clause
/*
 * Job control. The terminal belongs to at most one session; one of the session's groups is in the
 * foreground. process_tree_lock guards these relations. Sending signals takes that lock, so signals
 * are sent after it is dropped.
 */

#include "internal.h"

#include <lego/errno.h>
#include <lego/process.h>
#include <lego/signal.h>
#include <lego/uaccess.h>

/* TIOCSCTTY with this argument may take the terminal from another session. */
#define STEAL 1

struct group_search {
	pid_t pgid, sid;
	bool found; /* a process that matches */
};

int tty_check_foreground(struct tty *tty, int sig)
{
	struct process *proc = current->proc;
	pid_t foreground = READ_ONCE(tty->foreground), pgid;

	if (!proc || READ_ONCE(proc->tty) != tty)
		return 0;
	pgid = READ_ONCE(proc->pgid);
	if (!foreground || pgid == foreground)
		return 0;
	/*
	 * A caller that ignores or blocks SIGTTOU may write. One that ignores or blocks SIGTTIN
	 * gets -EIO.
	 */
	if (current->blocked_signals & SIGNAL_BIT(sig) || signal_is_ignored(proc, sig))
		return sig == SIGTTIN ? -EIO : 0;
	if (process_group_is_orphaned(pgid))
		return -EIO;
	signal_send_group(pgid, sig, NULL);
	/* Any thread of the group may take the signal; in each case this call is restarted. */
	WRITE_ONCE(current->signal_pending, true);
	return -ERESTARTSYS;
}

static bool is_leader(const struct process *proc)
{
	return proc->sid == proc->pid;
}

/* Called with process_tree_lock. */
static void set_controlling(struct tty *tty, struct process *leader)
{
	tty->session = leader->sid;
	tty->foreground = leader->pgid;
	leader->tty = tty;
}

void tty_open_controlling(struct tty *tty)
{
	struct process *proc = current->proc;
	unsigned long flags;

	if (!proc)
		return;
	flags = spin_lock_irqsave(&process_tree_lock);
	if (is_leader(proc) && !proc->tty && !tty->session)
		set_controlling(tty, proc);
	spin_unlock_irqrestore(&process_tree_lock, flags);
}

/* Takes the terminal away from all processes of the session. Called with process_tree_lock. */
static void release_session(struct tty *tty, pid_t session)
{
	struct process *proc;

	list_for_each_entry(proc, &process_list, all_node) {
		if (proc->sid == session && proc->tty == tty)
			proc->tty = NULL;
	}
	tty->session = 0;
	tty->foreground = 0;
}

static long take_terminal(struct tty *tty, unsigned long arg, bool may_read)
{
	struct process *proc = current->proc;
	unsigned long flags = spin_lock_irqsave(&process_tree_lock);
	bool root = !proc->creds.euid;
	long error = 0;

	if (is_leader(proc) && tty->session == proc->sid)
		goto out_unlock;
	error = -EPERM;
	if (!is_leader(proc) || proc->tty)
		goto out_unlock;
	if (!root && (tty->session || !may_read))
		goto out_unlock;
	if (tty->session && arg != STEAL)
		goto out_unlock;
	if (tty->session)
		release_session(tty, tty->session);
	set_controlling(tty, proc);
	error = 0;
out_unlock:
	spin_unlock_irqrestore(&process_tree_lock, flags);
	return error;
}

/*
 * Gives the terminal up: a leader for its whole session, another process for itself. Returns
 * whether the process had it.
 */
static bool give_up(struct process *proc, struct tty *tty, pid_t *foreground)
{
	unsigned long flags = spin_lock_irqsave(&process_tree_lock);
	bool had = proc->tty == tty;

	*foreground = 0;
	if (had && is_leader(proc)) {
		*foreground = tty->foreground;
		release_session(tty, proc->sid);
	}
	if (had)
		proc->tty = NULL;
	spin_unlock_irqrestore(&process_tree_lock, flags);
	return had;
}

static void hang_up(pid_t group)
{
	if (!group)
		return;
	signal_send_group(group, SIGHUP, NULL);
	signal_send_group(group, SIGCONT, NULL);
}

static long drop_terminal(struct tty *tty)
{
	pid_t foreground;

	if (!give_up(current->proc, tty, &foreground))
		return -ENOTTY;
	hang_up(foreground);
	return 0;
}

void tty_session_exit(struct process *leader)
{
	pid_t foreground;

	if (give_up(leader, &console_tty, &foreground))
		hang_up(foreground);
}

static bool find_session(struct process *proc, void *arg)
{
	struct group_search *search = arg;

	search->sid = proc->sid;
	search->found = true;
	return false;
}

static long set_foreground(struct tty *tty, const pid_t __user *arg)
{
	struct process *proc = current->proc;
	struct group_search search = {};
	unsigned long flags;
	int error = tty_check_foreground(tty, SIGTTOU);

	if (error)
		return error == -EIO ? -ENOTTY : error;
	if (get_user(search.pgid, arg))
		return -EFAULT;
	if (search.pgid < 0)
		return -EINVAL;
	if (READ_ONCE(proc->tty) != tty)
		return -ENOTTY;
	process_for_each_member(search.pgid, find_session, &search);
	if (!search.found)
		return -ESRCH;
	if (search.sid != proc->sid)
		return -EPERM;
	flags = spin_lock_irqsave(&process_tree_lock);
	if (proc->tty == tty && tty->session == proc->sid)
		tty->foreground = search.pgid;
	else
		error = -ENOTTY;
	spin_unlock_irqrestore(&process_tree_lock, flags);
	return error;
}

long tty_job_ioctl(struct tty *tty, unsigned int command, unsigned long arg, bool may_read)
{
	struct process *proc = current->proc;
	pid_t __user *pid = (pid_t __user *)arg;

	switch (command) {
	case TIOCSCTTY:
		return take_terminal(tty, arg, may_read);
	case TIOCNOTTY:
		return drop_terminal(tty);
	case TIOCSPGRP:
		return set_foreground(tty, pid);
	case TIOCGPGRP:
		if (READ_ONCE(proc->tty) != tty)
			return -ENOTTY;
		return put_user(READ_ONCE(tty->foreground), pid);
	case TIOCGSID:
		if (READ_ONCE(proc->tty) != tty || !READ_ONCE(tty->session))
			return -ENOTTY;
		return put_user(READ_ONCE(tty->session), pid);
	default:
		return -ENOTTY;
	}
}
