// SPDX-License-Identifier: BSD-2-Clause
/* Registers profile points: their table in a report, and their files. */

#include "points.h"

#include "../profiler.h"

static struct point_snapshot copy; /* one report is made at a time */

static void print_all(const struct report *report)
{
	points_snapshot(&copy);
	report_print_points(&copy, report->wide, report->histogram);
}

/* Prints the points of the process and, in a wide report, those of all CPUs. */
static void print(const struct report *report)
{
	if (report->proc) {
		points_snapshot_process(&copy, os_process_profile(report->proc));
		report_print_points(&copy, false, false);
		if (!report->wide)
			return;
	}
	print_all(report);
}

void print_profile_points(void)
{
	if (!report_try_print(print_all))
		profile_report("points");
}

static void print_wide(const void *unused)
{
	print_all(&(struct report){ .wide = true });
}

static const struct profiler_file files[] = {
	{ "profile/points", POINTS_WORDS, points_control, .show = points_list },
	{ "profile/points.json", .print = print_wide, .is_json = true },
	{ 0 },
};

PROFILE_CONTROL(profile_points, "profile.points", POINTS_WORDS, "", points_control);

PROFILER(points) = {
	.name = "points",
	.place = 30,
	.init = points_control_init,
	.reset = points_reset,
	.print = print,
	.process_init = points_process_init,
	.process_exec = points_process_exec,
	.process_release = points_process_release,
	.task_init = points_task_init,
	.task_exit = points_task_exit,
	.files = PROFILER_FILES(files),
};
