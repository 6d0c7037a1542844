// SPDX-License-Identifier: BSD-2-Clause
/*
 * Registers the profiler of files: its table in a report, its switch, and its files. In
 * /proc/profile, files has the wide table of all processes and takes words; files.json has it as
 * JSON.
 */

#include "files.h"

#include "../../profiler.h"
#include "../../stack_switch.h"
#include "../../words.h"

static bool starts_on;

static int set_files(const char *value)
{
	return words_on_off(value, &starts_on);
}
/* Whether system calls are counted by the path that they get: off by default. */
OS_BOOT_PARAM(profile_files, "profile.files", "on|off", set_files);

static struct stack_switch files_switch = {
	.key = &profile_files_key,
	.off_time = &files_off_time,
	.init = files_init,
	.reset = files_reset,
};

static void init(void)
{
	stack_switch(&files_switch, starts_on, true);
}

static int write_files(const char *text)
{
	return stack_switch_write(&files_switch, text);
}
PROFILE_CONTROL(profile_files, "profile.files", "on|off|reset", "", write_files);

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
	.task_ended = files_task_exit,
	.files = PROFILER_FILES(files),
};
