/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BARE_TASK_H
#define BARE_TASK_H

/* The imaginary kernel's processes and tasks, with the members of the profiler. */

#include "kernel.h"

#include <batteries/cpu_time.h>
#include <profile/profile.h>

struct process {
	int pid;
	char name[16];
	struct profile_process profile;
};

struct task {
	u32 tid;
	char name[16];
	struct process *process; /* NULL: an idle task */
	u64 args[6];		 /* of its system call */
	struct battery_cpu_time time;
	u64 wait_channel; /* 0: it is ready or runs */
	struct profile_task profile;
};

#endif
