// SPDX-License-Identifier: BSD-2-Clause
/*
 * CPU affinity: the CPU that a thread runs on, and those that it may run on. User masks are
 * multiples of 8 bytes, as in Linux.
 */

#include <lego/sched.h>

#include "process.h"
#include <lego/errno.h>
#include <lego/smp.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

SYSCALL_DEFINE0(sched_yield)
{
	sched_yield();
	return 0;
}

SYSCALL_DEFINE3(getcpu, u32 __user *, cpu, u32 __user *, node, void __user *, unused)
{
	if (cpu && put_user(smp_processor_id(), cpu))
		return -EFAULT;
	return node ? put_user(0, node) : 0;
}

SYSCALL_DEFINE3(sched_getaffinity, pid_t, tid, u32, len, u64 __user *, mask)
{
	struct task *task;
	cpumask_t cpus;

	if (len % sizeof(cpus) || !len)
		return -EINVAL;
	task = task_find(tid);
	if (!task)
		return -ESRCH;
	cpus = READ_ONCE(task->cpus_allowed) & READ_ONCE(cpu_online_mask);
	task_put(task);
	if (put_user(cpus, mask))
		return -EFAULT;
	return sizeof(cpus);
}

SYSCALL_DEFINE3(sched_setaffinity, pid_t, tid, u32, len, const void __user *, mask)
{
	struct task *task;
	cpumask_t cpus = 0;
	long error = 0;

	if (copy_from_user(&cpus, mask, min((size_t)len, sizeof(cpus))))
		return -EFAULT;
	task = task_find(tid);
	if (!task)
		return -ESRCH;
	cpus &= READ_ONCE(cpu_online_mask);
	if (!process_may_schedule(task->proc))
		error = -EPERM;
	else if (!cpus)
		error = -EINVAL;
	else
		sched_set_affinity(task, cpus);
	task_put(task);
	return error;
}
