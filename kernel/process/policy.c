// SPDX-License-Identifier: BSD-2-Clause
/*
 * Scheduling policies of threads: SCHED_OTHER with priority 0, and SCHED_FIFO and SCHED_RR with 1
 * to 99. Root may set all; others may set real-time policies up to RLIMIT_RTPRIO, which is 0 at
 * first, and may always leave them. kernel/sched/real_time.c does what they say.
 */

#include <lego/process.h>

#include "process.h"
#include <lego/errno.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

#define SCHED_BATCH 3
#define SCHED_IDLE  5

#define SCHED_RESET_ON_FORK 0x40000000
#define KEEP_POLICY	    (-1)

#define RT_PRIORITY_MAX 99

#define SLICE_NS (4 * NSEC_PER_MSEC) /* of kernel/sched/core.c */

#define SCHED_FLAG_RESET_ON_FORK 0x01
#define SCHED_FLAG_KEEP_POLICY	 0x08
#define SCHED_FLAG_KEEP_PARAMS	 0x10

static const u64 known_flags = SCHED_FLAG_RESET_ON_FORK | SCHED_FLAG_KEEP_POLICY |
			       SCHED_FLAG_KEEP_PARAMS;

/* Linux's layout. Programs may use the first 48 bytes only, or more than there are. */
struct sched_attr {
	u32 size;
	u32 policy;
	u64 flags;
	s32 nice;
	u32 priority;
	u64 runtime, deadline, period; /* SCHED_DEADLINE: not supported */
	u32 util_min, util_max;	       /* not supported */
};

#define SCHED_ATTR_SIZE_VER0 48

static bool is_real_time(int policy)
{
	return policy == SCHED_FIFO || policy == SCHED_RR;
}

/* Returns 0 if the caller may change a thread's policy in this way, or -EPERM. */
static int check_rights(struct task *task, int policy, u32 priority, bool reset_on_fork)
{
	u64 limit = READ_ONCE(task->proc->rlimits[RLIMIT_RTPRIO].cur);

	if (process_is_root(current->proc))
		return 0;
	if (is_real_time(policy) && policy != task->policy && !limit)
		return -EPERM;
	if (priority > task->rt_priority && priority > limit)
		return -EPERM;
	if (task->reset_on_fork && !reset_on_fork)
		return -EPERM;
	return process_may_schedule(task->proc) ? 0 : -EPERM;
}

/* policy: may be KEEP_POLICY. */
static int set_policy(struct task *task, int policy, u32 priority, bool reset_on_fork)
{
	int error;

	if (policy == KEEP_POLICY) {
		policy = task->policy;
		reset_on_fork = task->reset_on_fork;
	}
	if (policy != SCHED_OTHER && !is_real_time(policy))
		return -EINVAL;
	if (priority > RT_PRIORITY_MAX || is_real_time(policy) != (priority > 0))
		return -EINVAL;
	error = check_rights(task, policy, priority, reset_on_fork);
	if (!error)
		sched_set_policy(task, policy, priority, reset_on_fork);
	return error;
}

static long set_policy_of(pid_t tid, int policy, const s32 __user *uparam)
{
	bool reset_on_fork = policy != KEEP_POLICY && (policy & SCHED_RESET_ON_FORK);
	struct task *task;
	s32 priority;
	long error;

	if (tid < 0 || !uparam)
		return -EINVAL;
	if (get_user(priority, uparam))
		return -EFAULT;
	task = task_find(tid);
	if (!task)
		return -ESRCH;
	if (reset_on_fork)
		policy &= ~SCHED_RESET_ON_FORK;
	error = set_policy(task, policy, (u32)priority, reset_on_fork);
	task_put(task);
	return error;
}

SYSCALL_DEFINE3(sched_setscheduler, pid_t, tid, int, policy, const s32 __user *, param)
{
	return policy < 0 ? -EINVAL : set_policy_of(tid, policy, param);
}

SYSCALL_DEFINE2(sched_setparam, pid_t, tid, const s32 __user *, param)
{
	return set_policy_of(tid, KEEP_POLICY, param);
}

SYSCALL_DEFINE1(sched_getscheduler, pid_t, tid)
{
	struct task *task = tid < 0 ? NULL : task_find(tid);
	long policy;

	if (!task)
		return tid < 0 ? -EINVAL : -ESRCH;
	policy = task->policy | (task->reset_on_fork ? SCHED_RESET_ON_FORK : 0);
	task_put(task);
	return policy;
}

SYSCALL_DEFINE2(sched_getparam, pid_t, tid, s32 __user *, param)
{
	struct task *task;
	s32 priority;

	if (tid < 0 || !param)
		return -EINVAL;
	task = task_find(tid);
	if (!task)
		return -ESRCH;
	priority = task->rt_priority;
	task_put(task);
	return put_user(priority, param);
}

/* Copies a program's structure. One that is longer must be zero where this kernel knows nothing. */
static int copy_attr(struct sched_attr *attr, void __user *uattr)
{
	u32 size;
	int error;

	*attr = (struct sched_attr){ 0 };
	if (get_user(size, (u32 __user *)uattr))
		return -EFAULT;
	size = size ?: SCHED_ATTR_SIZE_VER0;
	if (size < SCHED_ATTR_SIZE_VER0 || size > PAGE_SIZE)
		goto out_size;
	if (copy_from_user(attr, uattr, min((size_t)size, sizeof(*attr))))
		return -EFAULT;
	error = size > sizeof(*attr) ?
			check_zero_user((u8 __user *)uattr + sizeof(*attr), size - sizeof(*attr)) :
			0;
	if (error != -E2BIG)
		return error;
out_size:
	return put_user((u32)sizeof(*attr), (u32 __user *)uattr) ? -EFAULT : -E2BIG;
}

static int set_attr(struct task *task, const struct sched_attr *attr)
{
	bool keeps_policy = attr->flags & SCHED_FLAG_KEEP_POLICY;
	int policy = keeps_policy ? task->policy : (int)attr->policy;
	int nice = min(max(attr->nice, NICE_MIN), NICE_MAX), error;
	bool reset_on_fork = attr->flags & SCHED_FLAG_RESET_ON_FORK;
	struct process *proc = task->proc;
	u32 priority = attr->priority;
	bool sets_nice;

	if (attr->flags & SCHED_FLAG_KEEP_PARAMS)
		priority = task->rt_priority;
	sets_nice = policy == SCHED_OTHER && !(attr->flags & SCHED_FLAG_KEEP_PARAMS);
	if (sets_nice && nice < proc->nice && !process_is_root(current->proc))
		return -EPERM;
	error = set_policy(task, keeps_policy ? KEEP_POLICY : policy, priority, reset_on_fork);
	if (!error && sets_nice)
		WRITE_ONCE(proc->nice, nice);
	return error;
}

SYSCALL_DEFINE3(sched_setattr, pid_t, tid, void __user *, uattr, unsigned int, flags)
{
	struct sched_attr attr;
	struct task *task;
	int error;

	if (tid < 0 || !uattr || flags)
		return -EINVAL;
	error = copy_attr(&attr, uattr);
	if (error)
		return error;
	if ((int)attr.policy < 0 || (attr.flags & ~known_flags))
		return -EINVAL;
	task = task_find(tid);
	if (!task)
		return -ESRCH;
	error = set_attr(task, &attr);
	task_put(task);
	return error;
}

SYSCALL_DEFINE4(sched_getattr, pid_t, tid, void __user *, uattr, unsigned int, size, unsigned int,
		flags)
{
	struct sched_attr attr = { .size = min(size, (unsigned int)sizeof(attr)) };
	struct task *task;

	if (tid < 0 || !uattr || size < SCHED_ATTR_SIZE_VER0 || size > PAGE_SIZE || flags)
		return -EINVAL;
	task = task_find(tid);
	if (!task)
		return -ESRCH;
	attr.policy = task->policy;
	attr.priority = task->rt_priority;
	attr.flags = task->reset_on_fork ? SCHED_FLAG_RESET_ON_FORK : 0;
	if (!is_real_time((int)attr.policy))
		attr.nice = task->proc->nice;
	task_put(task);
	return copy_to_user(uattr, &attr, attr.size);
}

/* Returns Linux's ranges, also for policies that are not supported. */
static long policy_limit(int policy, long real_time)
{
	switch (policy) {
	case SCHED_FIFO:
	case SCHED_RR:
		return real_time;
	case SCHED_OTHER:
	case SCHED_BATCH:
	case SCHED_IDLE:
		return 0;
	default:
		return -EINVAL;
	}
}

SYSCALL_DEFINE1(sched_get_priority_max, int, policy)
{
	return policy_limit(policy, RT_PRIORITY_MAX);
}

SYSCALL_DEFINE1(sched_get_priority_min, int, policy)
{
	return policy_limit(policy, 1);
}

SYSCALL_DEFINE2(sched_rr_get_interval, pid_t, tid, struct timespec64 __user *, interval)
{
	struct timespec64 slice = { .tv_nsec = SLICE_NS };
	struct task *task = tid < 0 ? NULL : task_find(tid);

	if (!task)
		return tid < 0 ? -EINVAL : -ESRCH;
	if (is_real_time(task->policy))
		slice.tv_nsec = (s64)sched_rr_interval_ns(task);
	task_put(task);
	return copy_to_user(interval, &slice, sizeof(slice));
}
