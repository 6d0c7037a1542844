// SPDX-License-Identifier: BSD-2-Clause
/* Registers the profiler of memory: its tables in a report, and its files. */

#include "memory.h"

#include "../profiler.h"
#include "../words.h"

static struct memory_snapshot copy; /* one report is made at a time */

static void print_all(const struct report *report)
{
	for (enum memory_kind kind = 0; kind < MEMORY_NR_KINDS; kind++) {
		memory_snapshot(&copy, kind);
		report_print_memory(&copy, kind, report);
	}
}

/*
 * The memory is the machine's: the report of a process or a run has all of it only if it is wide.
 * The report of a run, or of its last process, has what has grown, if that is much.
 */
static void print(const struct report *report)
{
	if (report->is_run || (report->proc && run_is_last_process())) {
		memory_growth(&copy, MEMORY_KERNEL);
		report_print_kernel_growth(&copy, report);
	}
	if (report->wide || (!report->proc && !report->is_run))
		print_all(report);
}

static void print_file(const void *unused)
{
	print_all(&(struct report){ .wide = true, .top = REPORT_TOP_ALL });
}

static void print_growth(const void *unused)
{
	for (enum memory_kind kind = 0; kind < MEMORY_NR_KINDS; kind++) {
		memory_growth(&copy, kind);
		report_print_memory_growth(&copy, kind);
	}
}

static int write_growth(const char *text)
{
	if (!words_are(text, "mark"))
		return -OS_EINVAL;
	memory_mark();
	return 0;
}

static const struct profiler_file files[] = {
	{ "profile/memory", .print = print_file },
	{ "profile/memory.json", .print = print_file, .is_json = true },
	{ "profile/memory_growth", "mark", write_growth, .print = print_growth },
	{ "profile/memory_growth.json", .print = print_growth, .is_json = true },
	{ 0 },
};

PROFILER(memory) = {
	.name = "memory",
	.place = 28, /* after samples and waits, before points */
	.reset = memory_mark,
	.run_begin = memory_mark,
	.print = print,
	.files = PROFILER_FILES(files),
};
