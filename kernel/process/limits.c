// SPDX-License-Identifier: BSD-2-Clause
#include <lego/sched.h>

#include "exec.h"
#include "process.h"
#include <lego/errno.h>
#include <lego/fs.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

/*
 * Resource limits: kept and reported. They describe the fixed limits of this kernel, and set
 * none.
 */

#define RLIM_INFINITY (~0ULL)

void process_init_limits(struct process *proc)
{
	for (int i = 0; i < NR_RLIMITS; i++)
		proc->rlimits[i] = (struct rlimit64){ RLIM_INFINITY, RLIM_INFINITY };
	proc->rlimits[RLIMIT_STACK].cur = EXEC_STACK_BYTES;
	proc->rlimits[RLIMIT_NOFILE] = (struct rlimit64){ FILE_MAX_FDS, FILE_MAX_FDS };
}

/* Read, then set if new is given. A hard limit is never raised. */
static int change_limit(unsigned int resource, const struct rlimit64 *new, struct rlimit64 *old)
{
	struct process *proc = current->proc;
	unsigned long flags;
	int error = 0;

	if (resource >= NR_RLIMITS || (new &&new->cur > new->max))
		return -EINVAL;
	flags = spin_lock_irqsave(&proc->lock);
	*old = proc->rlimits[resource];
	if (new &&new->max > old->max)
		error = -EPERM;
	else if (new)
		proc->rlimits[resource] = *new;
	spin_unlock_irqrestore(&proc->lock, flags);
	return error;
}

SYSCALL_DEFINE4(prlimit64, pid_t, pid, unsigned int, resource, const struct rlimit64 __user *, unew,
		struct rlimit64 __user *, uold)
{
	struct rlimit64 new, old;
	int error;

	if (unew && copy_from_user(&new, unew, sizeof(new)))
		return -EFAULT;
	if (pid && pid != current->proc->pid)
		return -ESRCH;
	error = change_limit(resource, unew ? &new : NULL, &old);
	if (error)
		return error;
	return uold ? copy_to_user(uold, &old, sizeof(old)) : 0;
}

SYSCALL_DEFINE2(getrlimit, unsigned int, resource, struct rlimit64 __user *, ulimit)
{
	struct rlimit64 limit;
	int error = change_limit(resource, NULL, &limit);

	return error ? error : copy_to_user(ulimit, &limit, sizeof(limit));
}

SYSCALL_DEFINE2(setrlimit, unsigned int, resource, const struct rlimit64 __user *, ulimit)
{
	struct rlimit64 new, old;

	if (copy_from_user(&new, ulimit, sizeof(new)))
		return -EFAULT;
	return change_limit(resource, &new, &old);
}
