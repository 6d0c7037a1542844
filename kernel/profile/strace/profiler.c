// SPDX-License-Identifier: BSD-2-Clause
/*
 * Registers strace: its tables in a report, and its files. /proc/profile/strace is for all
 * processes, /proc/<pid>/strace for one. Reading prints the wide tables. Writing accepts "reset"
 * and, for all processes, "on" and "off". strace.json has the table of all processes, or of one,
 * as JSON, and processes.json the table by process.
 */

#include "strace.h"

#include "../findings.h"
#include "../profiler.h"
#include "../table.h"
#include "../words.h"

static struct strace_snapshot copy; /* one report is made at a time */
static struct strace_system_snapshot system_copy;

static void print_strace(const struct report *report)
{
	u64 serial = 0;

	if (report->proc) {
		strace_snapshot_process(os_process_profile(report->proc), &copy);
		copy.name[0] = '\0';
		report_print_strace(&copy, report->top, report->wide, NULL);
		return;
	}
	if (report->is_run) {
		strace_snapshot_system(&copy, &system_copy);
		report_print_strace(&copy, report->top, report->wide, "all processes");
		return;
	}
	while (strace_snapshot_next(&serial, &copy))
		report_print_strace(&copy, report->top, report->wide, NULL);
}

static void print_process_alone(const void *proc)
{
	strace_snapshot_process(os_process_profile((os_process_t *)proc), &copy);
	report_print_strace(&copy, REPORT_TOP_ALL, true, NULL);
}

static void print_process(const void *proc)
{
	struct profile_process *pp = os_process_profile((os_process_t *)proc);

	print_process_alone(proc);
	if (!copy.nr_children && !copy.before.nr_calls)
		return;
	strace_snapshot_family(pp, &copy);
	report_print_strace(&copy, REPORT_TOP_ALL, true,
			    "this process, also before execve, and children that were waited for");
}

static void print_system(const void *unused)
{
	strace_snapshot_system(&copy, &system_copy);
	report_printf("strace: %s\n", strace_off_since_cycles ? "off" : "on");
	report_print_strace(&copy, REPORT_TOP_ALL, true, "all processes");
	report_print_strace_processes(&system_copy);
}

static void print_calls(const void *unused)
{
	strace_snapshot_system(&copy, &system_copy);
	report_print_strace(&copy, REPORT_TOP_ALL, true, "all processes");
}

static void print_processes(const void *unused)
{
	strace_snapshot_system(&copy, &system_copy);
	report_print_strace_processes(&system_copy);
}

static int show_process(os_text_t *text, os_process_t *proc)
{
	report_to_text(text, &table_text, print_process, proc);
	return 0;
}

static int show_process_json(os_text_t *text, os_process_t *proc)
{
	report_to_text(text, &table_json, print_process_alone, proc);
	return 0;
}

static int write_system(const char *text)
{
	bool on;

	if (words_are(text, "reset"))
		strace_reset();
	else if (!words_on_off(text, &on))
		strace_switch(on);
	else
		return -OS_EINVAL;
	return 0;
}

static int write_process(const char *text, os_process_t *proc)
{
	if (!words_are(text, "reset"))
		return -OS_EINVAL;
	strace_reset_process(os_process_profile(proc));
	return 0;
}

/* All threads have added their calls to the process. */
static void summarize_calls(os_process_t *proc, struct report_summary *summary)
{
	const struct profile_process *pp = proc ? os_process_profile(proc) : NULL;
	unsigned long flags;

	summary->has_calls = PF_IS_ENABLED(CONFIG_PROFILE_STRACE_DETAIL) &&
			     os_key_is_set(&profile_strace_key);
	if (!pp)
		return;
	flags = os_lock(&lists_lock);
	summary->nr_calls +=
		strace_nr_calls(&pp->strace.exited) + strace_nr_calls(&pp->strace.before);
	os_unlock(&lists_lock, flags);
}

static void offer_findings(const struct finding_scope *scope)
{
	if (!scope->sums->has_calls)
		return;
	if (scope->report->proc)
		strace_snapshot_process(os_process_profile(scope->report->proc), &copy);
	else
		strace_snapshot_system(&copy, &system_copy);
	strace_find(scope, &copy);
}

static void visit_running(report_add_fn *add)
{
	u64 serial = 0;

	while (strace_snapshot_next(&serial, &copy)) {
		struct report_summary part = {
			.nr_calls = copy.before.nr_calls,
		};

		for (u32 i = 0; i < copy.nr_entries; i++)
			part.nr_calls += copy.entries[i].nr_calls;
		add(copy.name, &part);
	}
}

PROFILE_CONTROL(profile_strace, "profile.strace", "on|off|reset", "", write_system);

static const struct profiler_file files[] = {
	{ "profile/strace", "on|off|reset", write_system, .print = print_system },
	{ "profile/strace.json", .print = print_calls, .is_json = true },
	{ "profile/processes.json", .print = print_processes, .is_json = true },
	{ 0 },
};

static const struct profiler_process_file process_files[] = {
	{ "strace", "reset", show_process, write_process },
	{ "strace.json", .show = show_process_json },
	{ 0 },
};

PROFILER(strace) = {
	.name = "strace",
	.place = 10,
	.init = strace_control_init,
	.reset = strace_reset,
	.print = print_strace,
	.summarize = summarize_calls,
	.find = offer_findings,
	.visit_running = visit_running,
	.process_init = strace_process_init,
	.process_exec = strace_process_exec,
	.process_release = strace_process_release,
	.task_init = strace_task_init,
	.task_exit = strace_task_exit,
	.shorten_wait = strace_shorten_wait,
	.files = PROFILER_FILES(files),
	.process_files = PROFILER_FILES(process_files),
};
