// SPDX-License-Identifier: BSD-2-Clause
/*
 * wait4 and waitid. With process_tree_lock held, the caller looks for a change of state of the
 * given child, or of any child that has one (family_set_waitable()). If there is none, it sleeps in
 * child_wait, until a child ends, stops or continues. Children belong to the process, not to the
 * thread that created them, so __WNOTHREAD has no effect.
 */

#include <lego/process.h>

#include "process.h"
#include "usage.h"
#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/string.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>
#include <lego/wait.h>

#define WNOHANG	    0x00000001
#define WUNTRACED   0x00000002 /* of wait4; WSTOPPED of waitid */
#define WEXITED	    0x00000004
#define WCONTINUED  0x00000008
#define WNOWAIT	    0x01000000
#define __WNOTHREAD 0x20000000
#define __WALL	    0x40000000
#define __WCLONE    0x80000000U

#define P_ALL	0
#define P_PID	1
#define P_PGID	2
#define P_PIDFD 3

#define STATUS_STOPPED	 0x7f /* low byte; the signal is above */
#define STATUS_CONTINUED 0xffff

struct wait_request {
	int type; /* P_* */
	pid_t id;
	u32 options;
	bool has_child; /* that is meant */

	/* The result. */
	pid_t pid; /* 0: nothing */
	u32 uid;
	int status; /* as wait4 gives it */
	struct usage usage;
	struct process *gone; /* dropped after the lock is released */
};

static bool is_meant(const struct wait_request *req, const struct process *child)
{
	bool clone_child = child->exit_signal != SIGCHLD;

	ASSERT_HELD(&process_tree_lock);
	if (req->type == P_PID && child->pid != req->id)
		return false;
	if (req->type == P_PGID && child->pgid != req->id)
		return false;
	return (req->options & __WALL) || clone_child == !!(req->options & __WCLONE);
}

static void take_zombie(struct wait_request *req, struct process *child)
{
	ASSERT_HELD(&process_tree_lock);
	req->status = child->exit_status;
	usage_of_process(child, &req->usage);
	if (req->options & WNOWAIT)
		return;
	usage_add_child(current->proc, &req->usage);
	family_detach(child);
	req->gone = child;
}

static bool event_is_wanted(const struct wait_request *req, int event)
{
	if (!event)
		return false;
	return req->options & (event == STATUS_CONTINUED ? WCONTINUED : WUNTRACED);
}

static bool take_child(struct wait_request *req, struct process *child)
{
	ASSERT_HELD(&process_tree_lock);
	DEBUG_ASSERT(child->parent == current->proc);
	if (child->zombie) {
		if (!(req->options & WEXITED))
			return false;
		req->pid = child->pid;
		req->uid = child->creds.uid;
		take_zombie(req, child);
		return true;
	}
	if (!event_is_wanted(req, child->wait_event))
		return false;
	req->pid = child->pid;
	req->uid = child->creds.uid;
	req->status = child->wait_event;
	usage_of_process(child, &req->usage);
	if (req->options & WNOWAIT)
		return true;
	child->wait_event = 0;
	process_leave_list(&child->wait_node);
	return true;
}

static int look_at(struct wait_request *req, pid_t pid)
{
	struct process *child = process_find(pid);
	int ret = -ECHILD;

	if (child && child->parent == current->proc && is_meant(req, child))
		ret = take_child(req, child);
	if (child)
		process_put(child); /* not the last reference: at least req->gone has one */
	return ret;
}

static bool take_waitable(struct process *child, void *arg)
{
	struct wait_request *req = arg;

	return !(is_meant(req, child) && take_child(req, child));
}

static bool find_meant(struct process *child, void *arg)
{
	struct wait_request *req = arg;

	req->has_child = is_meant(req, child);
	return !req->has_child;
}

/* A child that ends or stops meanwhile and is missed wakes this thread afterwards. */
static int look_at_all(struct wait_request *req, unsigned long flags)
{
	struct process *parent = current->proc;

	process_walk(&parent->waitable, offsetof(struct process, wait_node), take_waitable, req,
		     flags);
	if (req->pid)
		return 1;
	req->has_child = false;
	process_walk(&parent->children, offsetof(struct process, sibling), find_meant, req, flags);
	return req->has_child ? 0 : -ECHILD;
}

/* Looks for a child. Returns 1: found; 0: not yet; -ECHILD: there will be none. */
static int look_for_child(struct wait_request *req)
{
	unsigned long flags = spin_lock_irqsave(&process_tree_lock);
	int ret = req->type == P_PID ? look_at(req, req->id) : look_at_all(req, flags);

	spin_unlock_irqrestore(&process_tree_lock, flags);
	return ret;
}

/*
 * Waits for a child. Returns 0 and sets req->pid, which is 0 if WNOHANG found none, or returns a
 * negative errno.
 */
static int wait_for_child(struct wait_request *req)
{
	int ret = 0, error = 0;

	if (req->options & WNOHANG)
		ret = look_for_child(req);
	else
		error = wait_event_interruptible(&current->proc->child_wait,
						 (ret = look_for_child(req)));
	if (req->gone) {
		profile_process_waited(req->gone);
		family_release(req->gone);
	}
	if (error)
		return error;
	return min(ret, 0);
}

static int copy_usage(struct rusage __user *user, const struct wait_request *req)
{
	return user ? usage_copy_to_user(user, &req->usage) : 0;
}

static void set_wait4_target(struct wait_request *req, pid_t pid)
{
	req->type = pid == -1 ? P_ALL : pid > 0 ? P_PID : P_PGID;
	req->id = pid > 0 ? pid : -pid;
	if (pid == 0)
		req->id = READ_ONCE(current->proc->pgid);
}

SYSCALL_DEFINE4(wait4, pid_t, pid, int __user *, status, u32, options, struct rusage __user *,
		usage)
{
	struct wait_request req = { .options = options | WEXITED };
	int error;

	if (options & ~(WNOHANG | WUNTRACED | WCONTINUED | __WNOTHREAD | __WCLONE | __WALL))
		return -EINVAL;
	if (pid == (pid_t)(1U << 31))
		return -ESRCH;
	set_wait4_target(&req, pid);
	error = wait_for_child(&req);
	if (error || !req.pid)
		return error;
	if (status && put_user(req.status, status))
		return -EFAULT;
	if (copy_usage(usage, &req))
		return -EFAULT;
	return req.pid;
}

static void fill_siginfo(const struct wait_request *req, struct siginfo *info)
{
	int status = req->status, code = CLD_EXITED, value = status >> 8 & 0xff;

	if (status == STATUS_CONTINUED) {
		code = CLD_CONTINUED;
		value = SIGCONT;
	} else if ((status & 0xff) == STATUS_STOPPED) {
		code = CLD_STOPPED;
	} else if (status & 0x7f) {
		code = CLD_KILLED;
		value = status & 0x7f;
	}
	info->si_signo = SIGCHLD;
	info->si_code = code;
	info->child.pid = req->pid;
	info->child.uid = req->uid;
	info->child.status = value;
}

static int set_waitid_target(struct wait_request *req, int type, pid_t id)
{
	req->type = type;
	req->id = id;
	switch (type) {
	case P_ALL:
		return 0;
	case P_PID:
		return id > 0 ? 0 : -EINVAL;
	case P_PGID:
		if (!id)
			req->id = READ_ONCE(current->proc->pgid);
		return id >= 0 ? 0 : -EINVAL;
	case P_PIDFD:
		return -EBADF; /* there are no pidfds */
	default:
		return -EINVAL;
	}
}

SYSCALL_DEFINE5(waitid, int, type, pid_t, id, struct siginfo __user *, uinfo, u32, options,
		struct rusage __user *, usage)
{
	struct wait_request req = { .options = options };
	struct siginfo info;
	int error;

	if (options & ~(WNOHANG | WNOWAIT | WEXITED | WUNTRACED | WCONTINUED | __WNOTHREAD |
			__WCLONE | __WALL))
		return -EINVAL;
	if (!(options & (WEXITED | WUNTRACED | WCONTINUED)))
		return -EINVAL;
	error = set_waitid_target(&req, type, id);
	if (!error)
		error = wait_for_child(&req);
	if (error)
		return error;
	memset(&info, 0, sizeof(info));
	if (req.pid)
		fill_siginfo(&req, &info);
	if (req.pid && copy_usage(usage, &req))
		return -EFAULT;
	/* Linux writes only these members, too. */
	return uinfo ? copy_to_user(uinfo, &info, offsetof(struct siginfo, child.utime)) : 0;
}
