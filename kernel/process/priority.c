// SPDX-License-Identifier: BSD-2-Clause
/*
 * Priorities. The scheduler has none: the nice value of a process is only stored, and the only
 * policy is SCHED_OTHER, with priority 0.
 */

#include <lego/process.h>

#include "process.h"
#include <lego/errno.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

#define PRIO_PROCESS 0
#define PRIO_PGRP    1
#define PRIO_USER    2

#define NICE_MIN (-20)
#define NICE_MAX 19

#define SCHED_OTHER 0
#define SCHED_FIFO  1
#define SCHED_RR    2
#define SCHED_BATCH 3
#define SCHED_IDLE  5

#define SLICE_NS (4 * NSEC_PER_MSEC) /* of kernel/sched/core.c */

struct priority_request {
	int which;
	u32 who;
	bool set;
	int nice;
	int best;  /* for getpriority: 20 - the lowest nice value; 0: no process */
	int error; /* for setpriority: 0 if a process was found */
};

static int set_nice(struct process *proc, int nice)
{
	if (!process_may_schedule(proc))
		return -EPERM;
	if (nice < proc->nice && !process_is_root(current->proc))
		return -EACCES;
	WRITE_ONCE(proc->nice, nice);
	return 0;
}

static bool look_at(struct process *proc, void *arg)
{
	struct priority_request *req = arg;
	int error;

	if (req->which == PRIO_USER && proc->creds.uid != req->who)
		return true;
	if (!req->set) {
		req->best = max(req->best, NICE_MAX + 1 - proc->nice);
		return true;
	}
	error = set_nice(proc, req->nice);
	if (error || req->error == -ESRCH)
		req->error = error;
	return true;
}

static int for_each_meant(struct priority_request *req)
{
	struct process *proc = NULL;

	if (req->which != PRIO_PROCESS && req->which != PRIO_PGRP && req->which != PRIO_USER)
		return -EINVAL;
	if (!req->who && req->which == PRIO_PROCESS)
		req->who = current->proc->pid;
	if (!req->who && req->which == PRIO_PGRP)
		req->who = READ_ONCE(current->proc->pgid);
	if (!req->who && req->which == PRIO_USER)
		req->who = current->proc->creds.uid;
	if (req->which == PRIO_USER)
		process_for_each(look_at, req);
	else if (req->which == PRIO_PGRP)
		process_for_each_member((pid_t)req->who, look_at, req);
	else if ((proc = process_find((pid_t)req->who)))
		look_at(proc, req);
	if (proc)
		process_put(proc);
	return 0;
}

/* Returns 40 for -20 to 1 for 19, so that no value looks like an error. */
SYSCALL_DEFINE2(getpriority, int, which, u32, who)
{
	struct priority_request req = { .which = which, .who = who };
	int error = for_each_meant(&req);

	if (error)
		return error;
	return req.best ? req.best : -ESRCH;
}

SYSCALL_DEFINE3(setpriority, int, which, u32, who, int, nice)
{
	struct priority_request req = {
		.which = which,
		.who = who,
		.set = true,
		.nice = min(max(nice, NICE_MIN), NICE_MAX),
		.error = -ESRCH,
	};
	int error = for_each_meant(&req);

	return error ? error : req.error;
}

/* Returns 0 if there is such a thread. */
static long check_thread(pid_t tid)
{
	struct task *task;

	if (tid < 0)
		return -EINVAL;
	task = task_find(tid);
	if (!task)
		return -ESRCH;
	task_put(task);
	return 0;
}

static long set_policy(pid_t tid, int policy, const s32 __user *uparam)
{
	struct task *task;
	s32 priority;
	long error = 0;

	if (tid < 0 || !uparam)
		return -EINVAL;
	if (get_user(priority, uparam))
		return -EFAULT;
	task = task_find(tid);
	if (!task)
		return -ESRCH;
	if (policy != SCHED_OTHER || priority)
		error = -EINVAL;
	else if (!process_may_schedule(task->proc))
		error = -EPERM;
	task_put(task);
	return error;
}

SYSCALL_DEFINE3(sched_setscheduler, pid_t, tid, int, policy, const s32 __user *, param)
{
	return policy < 0 ? -EINVAL : set_policy(tid, policy, param);
}

SYSCALL_DEFINE2(sched_setparam, pid_t, tid, const s32 __user *, param)
{
	return set_policy(tid, SCHED_OTHER, param);
}

SYSCALL_DEFINE1(sched_getscheduler, pid_t, tid)
{
	long error = check_thread(tid);

	return error ? error : SCHED_OTHER;
}

SYSCALL_DEFINE2(sched_getparam, pid_t, tid, s32 __user *, param)
{
	long error = param ? check_thread(tid) : -EINVAL;

	return error ? error : put_user(0, param);
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
	return policy_limit(policy, 99);
}

SYSCALL_DEFINE1(sched_get_priority_min, int, policy)
{
	return policy_limit(policy, 1);
}

SYSCALL_DEFINE2(sched_rr_get_interval, pid_t, tid, struct timespec64 __user *, interval)
{
	struct timespec64 slice = { .tv_nsec = SLICE_NS };
	long error = check_thread(tid);

	return error ? error : copy_to_user(interval, &slice, sizeof(slice));
}
