/* SPDX-License-Identifier: BSD-2-Clause */
/* The structures of the "kernel", with the profiler's members. */
#ifndef HOST_TASK_H
#define HOST_TASK_H

#include <profile/profile.h>

#define CALL_SUM  0
#define CALL_FAIL 1

struct process {
	int pid;
	const char *name;
	struct profile_process profile;
};

struct task {
	struct process *process;
	struct profile_task profile;
};

extern struct task *current;

#endif
