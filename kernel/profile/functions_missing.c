// SPDX-License-Identifier: BSD-2-Clause
/*
 * Stands in for functions/ in a kernel without CONFIG_PROFILE_FUNCTIONS: its boot parameter and its
 * file say which kernel has them. Nothing is hooked.
 */

#ifndef CONFIG_PROFILE_FUNCTIONS

#include "profiler.h"

#define NEEDS "it needs CONFIG_PROFILE_FUNCTIONS (make run CONFIG=functions BUILD=build/functions)"

static int set_functions(const char *value)
{
	os_printk("profile.function_calls=%s: not in this kernel: " NEEDS "\n", value);
	return 0;
}
OS_BOOT_PARAM(profile_functions, "profile.function_calls", "on|off", set_functions);

static int write_functions(const char *text)
{
	return -OS_EINVAL;
}

static void print(const void *unused)
{
	report_printf("no function calls are counted: " NEEDS "\n");
}

static const struct profiler_file files[] = {
	{ "profile/function_calls", "nothing in this kernel: " NEEDS, write_functions,
	  .print = print },
	{ 0 },
};

PROFILER(functions_missing) = {
	.name = "functions",
	.place = 35,
	.files = files,
};

#endif
