/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_TRACE_TASKS_H
#define PROFILE_TRACE_TASKS_H

/* The names of threads by their numbers: events have only the numbers. */

#include "../util.h"

#define TRACE_COMM_BYTES 16

/* Allocates the table and remembers all tasks that there are. Process context. 0 or -errno. */
int trace_tasks_init(void);

void trace_tasks_free(void);

/* Copies the name of a thread, as it was when it was last seen; "<idle>", or "<...>". */
void trace_task_name(u32 tid, char name[TRACE_COMM_BYTES]);

/* Calls fn for each entry. pid: of its process; 0: a kernel thread. */
void trace_visit_tasks(void (*fn)(u32 tid, u32 pid, const char *name));

#endif
