// SPDX-License-Identifier: BSD-2-Clause
/*
 * Registers the profiler of touched memory: its table in a report, its switch, and its files. In
 * /proc/profile, memory_chains has the table of all processes and takes words; memory_stacks has
 * the call chains, folded.
 */

#include "chains.h"

#include "../profiler.h"
#include "../stack_switch.h"
#include "../words.h"

#include <profile/memory.h>

static bool starts_on;

static int set_chains(const char *value)
{
	return words_on_off(value, &starts_on);
}
/*
 * Whether the memory of programs is counted by the call chain that touches it first: off by
 * default; `make run` switches it on.
 */
OS_BOOT_PARAM(profile_memory_chains, "profile.memory_chains", "on|off", set_chains);

static struct stack_switch chains_switch = {
	.key = &profile_memory_chains_key,
	.off_time = &memory_chains_off_time,
	.init = memory_chains_init,
	.reset = memory_chains_reset,
};

static void init(void)
{
	stack_switch(&chains_switch, starts_on, true);
}

static int write_chains(const char *text)
{
	return stack_switch_write(&chains_switch, text);
}
PROFILE_CONTROL(profile_memory_chains, "profile.memory_chains", "on|off|reset", "", write_chains);

static void print_all(const void *unused)
{
	report_print_memory_chains(&(struct report){ .top = REPORT_TOP_ALL });
}

static void print_stacks(const void *unused)
{
	report_print_memory_stacks();
}

static void print_records(const void *unused)
{
	report_print_memory_records();
}

static const struct profiler_file files[] = {
	{ "profile/memory_chains", "on|off|reset", write_chains, .print = print_all },
	{ "profile/memory_chains.json", .print = print_all, .is_json = true },
	{ "profile/memory_stacks", .print = print_stacks },
	{ "profile/memory_stacks.json", .print = print_records, .is_json = true },
	{ 0 },
};

PROFILER(memory_chains) = {
	.name = "memory_chains",
	.place = 27, /* after waits, before the kernel's memory */
	.init = init,
	.reset = memory_chains_reset,
	.print = report_print_memory_chains,
	.pin = memory_chains_pin,
	.unpin = memory_chains_unpin,
	.files = PROFILER_FILES(files),
};
