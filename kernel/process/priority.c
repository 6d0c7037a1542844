// SPDX-License-Identifier: BSD-2-Clause
/*
 * Nice values. The scheduler has none: the nice value of a process is only stored. policy.c has the
 * priorities of real-time threads.
 */

#include <lego/process.h>

#include "process.h"
#include <lego/errno.h>
#include <lego/syscall.h>

#define PRIO_PROCESS 0
#define PRIO_PGRP    1
#define PRIO_USER    2

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
