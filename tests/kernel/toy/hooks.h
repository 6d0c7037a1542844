/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_TOY_HOOKS_H
#define PROFILE_TOY_HOOKS_H

/* The hook of the toy profiler, and what it keeps of threads and processes. */

struct profile_toy_task {
#ifdef CONFIG_PROFILE_TOY
	u64 nr_steps;
#endif
};

struct profile_toy_process {
#ifdef CONFIG_PROFILE_TOY
	u64 nr_steps; /* of its threads that have ended */
#endif
};

/* Counts a step of a thread, which calls this itself. A macro: struct profile_task comes later. */
#ifdef CONFIG_PROFILE_TOY
#define profile_toy_step(pt) ((void)(pt)->toy.nr_steps++)
#else
#define profile_toy_step(pt) ((void)0)
#endif

#endif
