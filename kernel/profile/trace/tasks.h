/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_TRACE_TASKS_H
#define PROFILE_TRACE_TASKS_H

/* Finds the name of a thread by its number, because events have only the number. */

#include "../util.h"

#define TRACE_COMM_BYTES 16

/*
 * Allocates the table, unless it exists, and adds all existing tasks. Process context. Returns 0 or
 * a negative errno.
 */
int trace_tasks_init(void);

/* Adds all existing tasks, if there is a table. For the time when recording was off. */
void trace_tasks_add_all(void);

/* Frees the table. Process context. */
void trace_tasks_free(void);

/* Copies the latest known name of a thread; "<idle>" for number 0, "<...>" if it is unknown. */
void trace_task_name(u32 tid, char name[TRACE_COMM_BYTES]);

/* Returns the process of a thread; 0: a kernel thread; ~0: unknown. */
u32 trace_task_pid(u32 tid);

/* Calls fn(text, ...) for each entry. pid: the process of the thread; 0: a kernel thread. */
void trace_visit_tasks(void (*fn)(os_text_t *text, u32 tid, u32 pid, const char *name),
		       os_text_t *text);

#endif
