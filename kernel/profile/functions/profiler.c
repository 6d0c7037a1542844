// SPDX-License-Identifier: BSD-2-Clause
/* The profiler of functions: its table in a report, its files, and how it is switched. */

#include "functions.h"

#include "../profiler.h"
#include "../words.h"
#include "tracers.h"

bool functions_used;

static bool starts_on;

static int set_functions(const char *value)
{
	return words_on_off(value, &starts_on);
}
/* Counts all calls of all kernel functions; needs CONFIG_PROFILE_FUNCTIONS. Off by default. */
OS_BOOT_PARAM(profile_functions, "profile.function_calls", "on|off", set_functions);

static int write_functions(const char *text)
{
	bool on;

	if (words_are(text, "reset")) {
		functions_reset();
		return 0;
	}
	if (words_on_off(text, &on))
		return -OS_EINVAL;
	return functions_count(on);
}
PROFILE_CONTROL(profile_functions, "profile.function_calls", "on|off|reset", "", write_functions);

static void start(void)
{
	if (starts_on && functions_count(true))
		os_printk("profile.function_calls: no memory\n");
}

static void print_all(const void *unused)
{
	report_print_calls(&(struct report){ .top = REPORT_TOP_ALL });
}

static const struct profiler_file files[] = {
	{ "profile/function_calls", "on|off|reset", write_functions, .print = print_all },
	{ "profile/function_calls.json", .print = print_all, .is_json = true },
	{ 0 },
};

PROFILER(functions) = {
	.name = "functions",
	.place = 35,
	.init = function_lists_init,
	.start = start,
	.reset = functions_reset,
	.print = report_print_calls,
	.files = PROFILER_FILES(files),
};
