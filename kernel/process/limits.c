// SPDX-License-Identifier: BSD-2-Clause
/*
 * Resource limits. NOFILE, SIGPENDING, FSIZE, AS, DATA and CPU are enforced, NPROC and RTPRIO for
 * users other than root, and STACK from the next execve on. The others are only stored: no process
 * locks memory or dumps core here.
 */

#include <lego/sched.h>

#include "exec.h"
#include "process.h"
#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/fs.h>
#include <lego/process.h>
#include <lego/signal.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

void process_init_limits(struct process *proc)
{
	for (int i = 0; i < NR_RLIMITS; i++)
		proc->rlimits[i] = (struct rlimit64){ RLIM_INFINITY, RLIM_INFINITY };
	proc->rlimits[RLIMIT_STACK].cur = EXEC_STACK_BYTES;
	proc->rlimits[RLIMIT_CORE].cur = 0;
	proc->rlimits[RLIMIT_NPROC] = (struct rlimit64){ task_limit() / 2, task_limit() / 2 };
	proc->rlimits[RLIMIT_SIGPENDING] =
		(struct rlimit64){ SIGNAL_MAX_QUEUED, SIGNAL_MAX_QUEUED };
	proc->rlimits[RLIMIT_RTPRIO] = (struct rlimit64){ 0, 0 };
	proc->rlimits[RLIMIT_NOFILE] = (struct rlimit64){ FILE_SOFT_LIMIT, FILE_HARD_LIMIT };
}

u64 process_limit(unsigned int resource)
{
	return current->proc ? READ_ONCE(current->proc->rlimits[resource].cur) : RLIM_INFINITY;
}

/* Sends SIGXCPU, and again after each further second: as in Linux, the soft limit grows with it. */
void process_limit_cpu(struct process *proc)
{
	struct rlimit64 *limit = &proc->rlimits[RLIMIT_CPU];
	unsigned long flags;
	u64 seconds;
	int sig = 0;

	ASSERT_IRQS_OFF();
	if (likely(READ_ONCE(limit->cur) == RLIM_INFINITY))
		return;
	seconds = cycles_to_ns(process_exec_cycles(proc)) / NSEC_PER_SEC;
	flags = spin_lock_irqsave(&proc->lock);
	if (seconds >= limit->max) {
		sig = SIGKILL;
	} else if (seconds >= limit->cur) {
		sig = SIGXCPU;
		limit->cur = seconds + 1;
	}
	spin_unlock_irqrestore(&proc->lock, flags);
	if (sig)
		signal_send(proc, sig, NULL);
}

/* Returns true for root, and for a process with exactly the same IDs. */
static bool may_change_locked(struct process *proc)
{
	const struct credentials *self = &current->proc->creds, *other = &proc->creds;

	ASSERT_HELD(&proc->lock);
	return proc == current->proc || process_is_root(current->proc) ||
	       (self->uid == other->uid && self->uid == other->euid && self->uid == other->suid &&
		self->gid == other->gid && self->gid == other->egid && self->gid == other->sgid);
}

/* Only root may raise a hard limit. */
static int check_change_locked(struct process *proc, unsigned int resource,
			       const struct rlimit64 *new)
{
	if (!may_change_locked(proc))
		return -EPERM;
	if (resource >= NR_RLIMITS || (new &&new->cur > new->max))
		return -EINVAL;
	if (resource == RLIMIT_NOFILE && new &&new->max > FILE_MAX_FDS)
		return -EPERM;
	return new &&new->max > proc->rlimits[resource].max && !process_is_root(current->proc) ?
		       -EPERM :
		       0;
}

/* Reads a limit, and sets it if `new` is given. */
static int change_limit(struct process *proc, unsigned int resource, const struct rlimit64 *new,
			struct rlimit64 *old)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	int error = check_change_locked(proc, resource, new);

	if (!error)
		*old = proc->rlimits[resource];
	if (!error && new)
		proc->rlimits[resource] = *new;
	spin_unlock_irqrestore(&proc->lock, flags);
	return error;
}

static int change_limit_of(pid_t pid, unsigned int resource, const struct rlimit64 *new,
			   struct rlimit64 *old)
{
	struct process *proc = process_find(pid);
	int error;

	if (!proc)
		return -ESRCH;
	error = change_limit(proc, resource, new, old);
	process_put(proc);
	return error;
}

SYSCALL_DEFINE4(prlimit64, pid_t, pid, unsigned int, resource, const struct rlimit64 __user *, unew,
		struct rlimit64 __user *, uold)
{
	struct rlimit64 new, old;
	int error;

	if (unew && copy_from_user(&new, unew, sizeof(new)))
		return -EFAULT;
	error = change_limit_of(pid ? pid : current->proc->pid, resource, unew ? &new : NULL, &old);
	if (error)
		return error;
	return uold ? copy_to_user(uold, &old, sizeof(old)) : 0;
}

SYSCALL_DEFINE2(getrlimit, unsigned int, resource, struct rlimit64 __user *, ulimit)
{
	struct rlimit64 limit;
	int error = change_limit(current->proc, resource, NULL, &limit);

	return error ? error : copy_to_user(ulimit, &limit, sizeof(limit));
}

SYSCALL_DEFINE2(setrlimit, unsigned int, resource, const struct rlimit64 __user *, ulimit)
{
	struct rlimit64 new, old;

	if (copy_from_user(&new, ulimit, sizeof(new)))
		return -EFAULT;
	return change_limit(current->proc, resource, &new, &old);
}
