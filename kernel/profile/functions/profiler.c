// SPDX-License-Identifier: BSD-2-Clause
/* The profiler of functions: its table in a report, its files, and how it is switched. */

#include "functions.h"

#include "../profiler.h"
#include "../words.h"

bool functions_used;

static bool starts_on;

static int set_functions(const char *value)
{
	return words_on_off(value, &starts_on);
}
OS_BOOT_PARAM(profile_functions, "profile.function_calls", "on|off", set_functions);

/* Calls count from here on. */
static pf_noinline void functions_start(void)
{
	u32 cpu;

	os_for_each_cpu(cpu)
		pf_write_once(os_per_cpu(function_counts, cpu), os_per_cpu(function_table, cpu));
}

/* Calls count no more. Those that have begun still add their time when they return. */
static pf_noinline void functions_stop(void)
{
	u32 cpu;

	os_for_each_cpu(cpu)
		pf_write_once(os_per_cpu(function_counts, cpu), NULL);
}

static int switch_functions(bool on)
{
	if (on && !functions_alloc())
		return -OS_ENOMEM;
	if (!on)
		functions_stop();
	os_function_calls_set(on);
	if (on)
		functions_start();
	functions_used |= on;
	return 0;
}

static int write_functions(const char *text)
{
	bool on;

	if (words_are(text, "reset")) {
		functions_reset();
		return 0;
	}
	if (words_on_off(text, &on))
		return -OS_EINVAL;
	return switch_functions(on);
}

static void start(void)
{
	if (starts_on && switch_functions(true))
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
	.start = start,
	.reset = functions_reset,
	.print = report_print_calls,
	.files = files,
};
