/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_PROCESS_LISTS_H
#define PROFILE_PROCESS_LISTS_H

/*
 * Lists of processes and threads that a profiler can walk over without stopping the machine: see
 * process_lists.c. Each profiler has its own lists, guarded by its own lock. Their links are a
 * member of struct profile_process and one of struct profile_task, with the same name.
 */

#include "util.h"

struct process_lists {
	os_lock_t *lock;
	size_t process_link, task_link; /* offsets of the members */
	u32 nr_a_step; /* how many threads and processes are visited before the lock is released */
	u64 next_serial;
	struct profile_process *processes, **processes_end; /* oldest first */
	struct profile_walk *walks;			    /* in progress */
};

#define PROCESS_LISTS(name, lock_, member, nr_a_step_)                              \
	struct process_lists name = {                                               \
		.lock = lock_,                                                      \
		.process_link = __builtin_offsetof(struct profile_process, member), \
		.task_link = __builtin_offsetof(struct profile_task, member),       \
		.nr_a_step = nr_a_step_,                                            \
		.next_serial = 1,                                                   \
		.processes_end = &name.processes,                                   \
	}

struct profile_walk {
	struct process_lists *lists;
	struct profile_process *process; /* the next one; NULL: none */
	struct profile_task *task;	 /* the next one of the present process; NULL: none */
	u64 end_serial;		   /* the walk ends at this serial: such processes are newer */
	struct profile_walk *next; /* in lists->walks */
};

/* All of these except walk_visit() are called with the lock held. */
void lists_add_process(struct process_lists *lists, struct profile_process *pp);
void lists_add_task(struct process_lists *lists, struct profile_process *pp,
		    struct profile_task *pt);
void lists_remove_process(struct process_lists *lists, struct profile_process *pp);
void lists_remove_task(struct process_lists *lists, struct profile_task *pt);

/*
 * Begins a walk over the threads of one process or, if only is NULL, over all processes and
 * threads.
 */
void walk_begin(struct profile_walk *walk, struct process_lists *lists,
		const struct profile_process *only);
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
 * releases it after every few of them. Any context but NMI.
 */
void walk_visit(struct process_lists *lists, const struct profile_process *only,
		void (*visit_process)(struct profile_process *pp),
		void (*visit_task)(struct profile_task *pt));

#endif
