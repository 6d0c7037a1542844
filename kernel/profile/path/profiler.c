// SPDX-License-Identifier: BSD-2-Clause
/*
 * The profiler of the critical path: its boot parameter, its line and its table in the reports of
 * processes and of a run, and its files. Records events of the trace from boot on, until somebody
 * writes to /sys/kernel/tracing.
 */

#include "path.h"

#include "../profiler.h"
#include "../table.h"
#include "../trace/trace.h"
#include "../words.h"

#define RING_BYTES (4ull << 20) /* of each CPU */

static const char events[] = "sched:sched_switch,sched:sched_wakeup,sched:sched_process_*,"
			     "raw_syscalls:*,exceptions:*,irq:*,irq_vectors:local_timer_*,"
			     "profile:sample,profile:page_fault_end";

static bool wanted;
static bool is_prepared; /* in this turn, for `scope` */
static bool is_final;	 /* scope is that of the run */
static struct path_scope scope;

static int set_path(const char *value)
{
	return words_on_off(value, &wanted);
}
/* Whether reports have the critical path: off by default; `make run` switches it on. */
OS_BOOT_PARAM(profile_path, "profile.path", "on|off", set_path);

static void start(void)
{
	if (wanted && trace_begin_session(events, RING_BYTES))
		os_printk("profile: no memory for the critical path\n");
}

/* Sets the scope to end here, after this time. */
static void set_scope(os_process_t *proc, u64 wall_ns)
{
	unsigned long flags = os_irq_save();
	u64 now_ns = os_cycles_to_ns(os_cycles());
	u64 age_ns = proc ? os_process_age_ns(proc) : run_age_ns();

	scope = (struct path_scope){
		.begin_ns = now_ns - pf_min(age_ns, now_ns),
		.cpu = os_cpu(),
		.tid = os_current_tid(),
		.pid = proc ? os_process_pid(proc) : 0,
		/* A CPU waits for its turn where it sets its timer, so ticks would be first. */
		.joins_ticks = report_cpus_take_turns(),
	};
	scope.end_ns = pf_min(scope.begin_ns + wall_ns, now_ns);
	os_irq_restore(flags);
}

static bool can_print(void)
{
	return !os_panicking() && trace_session_is_on();
}

static void print_line(const struct report *report)
{
	if (!can_print() || !(report->proc || report->is_run))
		return;
	is_final = on_exit_is_run();
	set_scope(report->proc, report->wall_ns + os_cycles_to_ns(report->delay_cycles));
	is_prepared = path_prepare(&scope);
	if (!is_prepared) {
		report_printf("critical path: no memory for it\n");
		return;
	}
	path_print_line(&scope);
	path_print_calls(&scope);
}

static void print_table(const struct report *report)
{
	if (is_prepared)
		path_print_table(&scope, report->top);
}

static void end_reading(void)
{
	if (is_prepared)
		path_release();
	is_prepared = false;
}

/* Prepares the scope of the run's report or, if there was none, of the run until now. */
static bool prepare(void)
{
	if (!can_print() || is_prepared)
		return is_prepared;
	if (!is_final)
		set_scope(NULL, ~0ull >> 1);
	is_prepared = path_prepare(&scope);
	return is_prepared;
}

static void print_parts_json(const void *unused)
{
	static const struct path_scope none;

	path_print_table(prepare() ? &scope : &none, REPORT_TOP_ALL);
}

static void print_segments_json(const void *unused)
{
	path_print_segments(prepare() ? &scope : NULL);
}

static const struct profiler_file files[] = {
	{ "profile/critical_path_parts.json", .print = print_parts_json, .is_json = true },
	{ "profile/critical_path.json", .print = print_segments_json, .is_json = true },
	{ 0 },
};

PROFILER(path) = {
	.name = "path",
	.place = 4, /* the line comes first */
	.start = start,
	.print = print_line,
	.end_reading = end_reading,
};

PROFILER(path_table) = {
	.name = "path",
	.place = 38, /* before the events, for which an export may have no room */
	.print = print_table,
	.files = PROFILER_FILES(files),
};
