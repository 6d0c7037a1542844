/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_TRACE_OS_H
#define PROFILE_TRACE_OS_H

/* What events need from the kernel besides ../os_stacks.h. */

#include "../os_stacks.h"

/*
 * Returns the context of the running code, for the common fields of events: bits of
 * PROFILE_TRACE_* (<profile/abi.h>). Any context.
 */
#ifndef os_trace_flags
#define os_trace_flags() 0
#endif
/*
 * Return two fields of a task's events, in Linux's numbers: its priority, which is 120 for a nice
 * value of 0; and its state when it leaves its CPU, 0 if it could go on running, else bits of
 * TASK_* in Linux's sched.h.
 */
#ifndef os_task_priority
#error "profile: define os_task_priority(task): as Linux's prio; 120 if all tasks are equal"
#endif
#ifndef os_task_state
#error "profile: define os_task_state(task): a task's state in Linux's numbers"
#endif
/* Returns where a signal comes from, as si_code of siginfo. info of NULL: from the kernel. */
#ifndef os_signal_code
#error "profile: define os_signal_code(info): si_code of a signal; 0 without signals"
#endif
/* The numbers of all threads are below this one. */
#ifndef OS_MAX_TID
#define OS_MAX_TID (1u << 22)
#endif
/* Calls fn for all tasks except idle tasks. fn must not sleep. */
#ifndef os_visit_tasks
#define os_visit_tasks(fn) ((void)(fn))
#endif
/*
 * Returns the parameters of a system call with a number below OS_MAX_SYSCALLS, as C has them:
 * "(int fd, char *buf)"; NULL: the number has no events of its own. A name before the parenthesis
 * is the events' if that is not the call's: Linux has sys_enter_newstat for stat().
 */
#ifndef OS_MAX_SYSCALLS
#define OS_MAX_SYSCALLS 512
#endif
#ifndef os_syscall_params
#define os_syscall_params(nr) ((void)(nr), (const char *)NULL)
#endif
/* Returns whether text matches a shell pattern. */
#ifndef os_glob_match
/* Matches a whole name, or a prefix followed by `*`. */
static inline bool os_glob_match(const char *glob, const char *text)
{
	for (; *glob && *glob != '*'; glob++) {
		if (*glob != *text++)
			return false;
	}
	return *glob || !*text;
}
#endif
/* Adds bytes, also NULs, to a text that a file has. Returns false without memory. */
#ifndef os_text_append
#ifdef os_add_trace_file
#error "profile: define os_text_append(text, bytes, nr): adds bytes to the text of a file"
#endif
#define os_text_append(text, bytes, nr) ((void)(text), (void)(bytes), (void)(nr), true)
#endif
/*
 * Adds a file of /sys/kernel/tracing. `next` prints the file as it is read, for a reader that
 * waits for more or not, and `ready` returns whether there is something to print now.
 */
#ifndef os_add_trace_file
typedef struct {
	const char *path, *accepts;
	int (*show)(os_text_t *text, const void *arg);
	int (*write)(const char *text, const void *arg);
	int (*truncate)(const void *arg);
	void (*release)(const void *arg);
	bool (*next)(os_text_t *text, const void *arg, bool waits);
	bool (*ready)(const void *arg);
	const void *arg;
} os_trace_file_t;
#define os_add_trace_file(file) ((void)(file), 0)
#endif
/*
 * Calls fill(name) before a file or directory of this name is looked for in a directory, and
 * fill(NULL) before the directory is listed. fill() adds files by os_fill_trace_file().
 */
#ifndef os_add_trace_directory
#define os_add_trace_directory(path, fill) ((void)(path), (fill)(NULL), 0)
#define os_fill_trace_file(file)	   os_add_trace_file(file)
#endif

#endif
