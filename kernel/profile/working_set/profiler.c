// SPDX-License-Identifier: BSD-2-Clause
/*
 * Registers the profiler of used memory: its table in a report, its switch, and its files. In
 * /proc/profile, working_set has a table of each process and takes words.
 */

#include "working_set.h"

#include "../profiler.h"
#include "../words.h"

static bool starts_on;

static int set_working_set(const char *value)
{
	return words_on_off(value, &starts_on);
}
/*
 * Whether the memory that programs use is sampled, by the accessed bits of their pages: off by
 * default.
 */
OS_BOOT_PARAM(profile_working_set, "profile.working_set", "on|off", set_working_set);

static void init(void)
{
	working_set_switch(starts_on, true);
}

static int write_working_set(const char *text)
{
	bool on;

	if (words_are(text, "reset")) {
		working_set_reset();
		return 0;
	}
	if (words_on_off(text, &on))
		return -OS_EINVAL;
	working_set_switch(on, false);
	return 0;
}
PROFILE_CONTROL(profile_working_set, "profile.working_set", "on|off|reset", "", write_working_set);

static void print_all(const void *unused)
{
	report_print_working_sets();
}

static void print_regions_json(const void *unused)
{
	report_print_working_set_regions();
}

static void print_processes_json(const void *unused)
{
	report_print_working_set_processes();
}

static void print_history_json(const void *unused)
{
	report_print_working_set_history();
}

static void print_memory_json(const void *unused)
{
	report_print_working_set_memory();
}

static const struct profiler_file files[] = {
	{ "profile/working_set", "on|off|reset", write_working_set, .print = print_all },
	{ "profile/working_set.json", .print = print_processes_json, .is_json = true },
	{ "profile/working_set_regions.json", .print = print_regions_json, .is_json = true },
	{ "profile/working_set_history.json", .print = print_history_json, .is_json = true },
	{ "profile/working_set_memory.json", .print = print_memory_json, .is_json = true },
	{ 0 },
};

PROFILER(working_set) = {
	.name = "working_set",
	.place = 28, /* after the memory that programs have touched first */
	.init = init,
	.reset = working_set_reset,
	.print = report_print_working_set,
	.process_release = working_set_forget,
	.files = PROFILER_FILES(files),
};
