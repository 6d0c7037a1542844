/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

/*
 * Shared by the tests of kernel/profile/: cmocka, the host's OS interface, and types of tasks and
 * processes.
 */

#include "unit_test.h"

#include "../../kernel/profile/off_time.h"
#include "../../kernel/profile/points/points.h"
#include "../../kernel/profile/samples/samples.h"
#include "../../kernel/profile/strace/strace.h"

struct process {
	int pid;
	char comm[16];
	u64 copied_bytes;
	struct profile_process profile;
};

struct task {
	struct process *proc;
	struct profile_task profile;
};

extern __thread struct task *host_current;

/* The log since the last host_log_clear(). */
extern char host_log[1 << 20];
void host_log_clear(void);

/* From the n-th allocation on, all fail; 0: none fails. */
extern int host_fail_alloc;
extern int host_nr_allocated;

/* Called in the middle of a stack walk, unless NULL. */
extern void (*host_on_walk)(void);

/*
 * Hooks of tests, unless NULL: called by os_relax_and_yield(), after each line of the log, after
 * each line of a text, when a symbol is looked up, after a key is set, and when an assertion fails.
 */
extern void (*host_on_wait)(void);
extern void (*host_on_line)(void);
extern void (*host_on_text)(void);
extern void (*host_on_symbol)(void);
extern void (*host_on_key)(void);
extern void (*host_on_assert)(const char *what);

/* Passes a value to the handler of a boot parameter, and returns its result. */
int host_set_param(const char *name, const char *value);

/*
 * host_file_read() returns the content of a file of os_add_file() in a static buffer;
 * host_file_write() returns the file's result.
 */
const char *host_file_read(const char *path);
int host_file_write(const char *path, const char *text);

/* Writes to the file of os_add_process_file(). */
int host_process_file_write(struct process *proc, const char *text);

/* Finds a file of /sys/kernel/tracing; fails without one. */
const os_trace_file_t *host_trace_file(const char *path);

/* Presses a sysrq key; runs the workers that were woken since the last call. */
void host_sysrq(char letter);
void host_run_workers(void);

/* Makes a system call of the current task that takes this many cycles. */
void host_call(u64 nr, u64 cycles, long ret);

/* Returns the line of the log that ends in this text, in a static buffer; fails without one. */
const char *host_line(const char *end);

#define assert_log(text) assert_string_equal(host_log, text)

#endif
