/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_TRACE_FILES_UNIT_H
#define TESTS_TRACE_FILES_UNIT_H

/* Shared by the tests of events: a thread that makes them, and access to the files of tracefs. */

#include "unit.h"

#include "../../kernel/profile/trace/trace.h"

static struct process process = { .pid = 7, .comm = "test" };
static struct task task = { .proc = &process };

static inline const char *read_file(const char *path)
{
	const os_trace_file_t *file = host_trace_file(path);
	static os_text_t text;

	memset(&text, 0, sizeof(text));
	if (file->next)
		file->next(&text, file->arg, true);
	else
		assert_int_equal(file->show(&text, file->arg), 0);
	return text.buf;
}

static inline int write_file(const char *path, const char *text)
{
	const os_trace_file_t *file = host_trace_file(path);

	return file->write(text, file->arg);
}

static inline int truncate_file(const char *path)
{
	const os_trace_file_t *file = host_trace_file(path);

	return file->truncate(file->arg);
}

/* OS functions that only these tests need. */
static const u64 *host_syscall_args = (const u64[6]){ 0 };

bool os_syscall_args(u64 *args)
{
	memcpy(args, host_syscall_args, 6 * sizeof(*args));
	return true;
}

/* Returns the lines of `trace` behind its heading. */
static inline const char *events(void)
{
	const char *text = read_file("trace"), *end = "|         |\n";

	text = strstr(text, end);
	assert_non_null(text);
	return text + strlen(end);
}

static inline int set_up(void **state)
{
	static bool is_done;

	host_current = &task;
	host_tid = 7;
	snprintf(host_comm, sizeof(host_comm), "test");
	host_trace_flags = 0;
	host_now = 5000000000;
	host_step = 0;
	if (!is_done)
		profile_init();
	is_done = true;
	profile_trace_task(&task);
	assert_int_equal(truncate_file("set_event"), 0);
	assert_int_equal(truncate_file("trace"), 0);
	return 0;
}

#endif
