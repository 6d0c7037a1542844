// SPDX-License-Identifier: BSD-2-Clause
/*
 * Registers the profiler of files: its table in a report, its switch, and its files. In
 * /proc/profile, files has the wide table of all processes and takes words; files.json has it as
 * JSON.
 */

#include "files.h"

#include "../../profiler.h"
#include "../../words.h"

static bool starts_on;

static int set_files(const char *value)
{
	return words_on_off(value, &starts_on);
}
/* Whether system calls are counted by the path that they get: off by default. */
OS_BOOT_PARAM(profile_files, "profile.files", "on|off", set_files);

/* Process context. The first switch to on allocates the stores. */
static void switch_files(bool on, bool at_boot)
{
	static struct poll_lock switching;
	static bool is_ready;

	poll_lock(&switching);
	if (on && !is_ready) {
		files_init();
		is_ready = true;
	}
	off_time_switch(&files_off_time, !on, at_boot);
	os_key_set(&profile_files_key, on);
	poll_unlock(&switching);
}

static void init(void)
{
	switch_files(starts_on, true);
}

static int write_files(const char *text)
{
	bool on;

	if (words_are(text, "reset")) {
		files_reset();
		return 0;
	}
	if (words_on_off(text, &on))
		return -OS_EINVAL;
	switch_files(on, false);
	return 0;
}

static void print_all(const void *unused)
{
	report_print_files(&(struct report){ .top = REPORT_TOP_ALL });
}

static const struct profiler_file files[] = {
	{ "profile/files", "on|off|reset", write_files, .print = print_all },
	{ "profile/files.json", .print = print_all, .is_json = true },
	{ 0 },
};

PROFILER(files) = {
	.name = "files",
	.place = 11,
	.init = init,
	.reset = files_reset,
	.print = report_print_files,
	.find = files_find,
	.pin = files_pin,
	.unpin = files_unpin,
	.task_exit = files_task_exit,
	.files = files,
};
