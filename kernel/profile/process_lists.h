/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_PROCESS_LISTS_H
#define PROFILE_PROCESS_LISTS_H

/*
 * All processes and their threads, which a profiler can walk over without stopping the machine: see
 * process_lists.c. profile.c adds and removes them. The links are members of struct profile_process
 * and struct profile_task.
 */

#include "util.h"

/* Guards the lists, and what profilers keep of processes and of other threads. */
extern os_lock_t lists_lock;

struct profile_walk {
	struct profile_process *process; /* the next one; NULL: none */
	struct profile_task *task;	 /* the next one of the present process; NULL: none */
	u64 end_serial;		   /* the walk ends at this serial: such processes are newer */
	struct profile_walk *next; /* in the list of walks in progress */
};

/* All of these except walk_visit() are called with the lock held. */
void lists_add_process(struct profile_process *pp);
void lists_add_task(struct profile_process *pp, struct profile_task *pt);
void lists_remove_process(struct profile_process *pp);
void lists_remove_task(struct profile_task *pt);

/*
 * Begins a walk over the threads of one process or, if only is NULL, over all processes and
 * threads.
 */
void walk_begin(struct profile_walk *walk, const struct profile_process *only);
void walk_end(struct profile_walk *walk);

/* Returns the next process, or NULL at the end. The walk goes on with its threads. */
struct profile_process *walk_next_process(struct profile_walk *walk);

/*
 * Goes one step: sets *pt to the next thread, or visits the next process and sets *pt to NULL.
 * Returns false at the end.
 */
bool walk_step(struct profile_walk *walk, void (*visit_process)(struct profile_process *pp),
	       struct profile_task **pt);

/*
 * Calls visit_task() for the threads of one process. If only is NULL, calls visit_process() for
 * each process, and visit_task() for its threads after it. Holds the lock during these calls, and
 * releases it after each nr_a_step of them. Any context but NMI.
 */
void walk_visit(const struct profile_process *only, u32 nr_a_step,
		void (*visit_process)(struct profile_process *pp),
		void (*visit_task)(struct profile_task *pt));

#endif
