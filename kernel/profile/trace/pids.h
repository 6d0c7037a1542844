/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_TRACE_PIDS_H
#define PROFILE_TRACE_PIDS_H

/*
 * Sets of threads to be traced, which are files of /sys/kernel/tracing: set_event_pid, and
 * set_ftrace_pid of functions/. A set that no number was written to stands for all threads.
 */

#include "trace.h"

struct trace_pids {
	const char *path;		 /* "set_event_pid" */
	const char *when_empty;		 /* what the file shows then */
	struct trace_option fork_option; /* "event-fork": switches follows_forks */
	/*
	 * Called when the set begins or ends to select threads, with the lock of all sets held.
	 * Returns 0 or a negative errno, and then it stays as it was.
	 */
	int (*select)(bool on);
	u64 *bits; /* a bit for each number; NULL: never used */
	bool selects;
	bool follows_forks; /* a new thread is in the set if its creator is */
	struct trace_pids *next;
};

extern struct trace_pids trace_event_pids; /* set_event_pid */

/* Adds the two files of a set, which stays. Called once, by init() of a profiler. */
void trace_pids_init(struct trace_pids *pids);

/* Puts a new thread into the sets that its creator, the running thread, is in. */
void trace_pids_fork(os_task_t *task);

/* Returns whether a thread is in a set that selects. Any context. */
static pf_always_inline bool trace_pids_have(const struct trace_pids *pids, u32 tid)
{
	return tid < OS_MAX_TID && pids->bits[tid / 64] >> tid % 64 & 1;
}

#endif
