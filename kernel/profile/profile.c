// SPDX-License-Identifier: BSD-2-Clause
/*
 * Start, reset and the reports. The snapshot buffers are static, so one report is printed at a
 * time. Who comes while another CPU, or what this CPU was doing, is printing leaves its reason
 * in pending_why; the printer looks there when it is done. In a panic nobody else runs any
 * more: the report is printed at once, and a fault inside it does not start another one.
 */

#include "internal.h"
#include "live.h"

static struct strace_snapshot strace_copy;
static struct strace_system_snapshot system_copy;
static struct heat_snapshot heat_copy;
static struct point_snapshot point_copy;

static bool printing;		   /* the copies are in use */
static unsigned int panic_printer; /* CPU + 1 */
static const char *pending_why;
static u64 nr_reports;

static os_lock_t patterns_lock = OS_LOCK_INIT;
static char exit_patterns[256] = "all"; /* guarded by patterns_lock */
static u32 top = 10;
static bool wide, histogram;
static char views[64] = "none"; /* of the heatmap */

int profile_set_on_exit(const char *value)
{
	size_t len = strlen(value);
	unsigned long flags;

	if (!len || len >= sizeof(exit_patterns))
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		/* A comma stands between two patterns. */
		if (value[i] == ',' && (i == 0 || i == len - 1 || value[i + 1] == ','))
			return -EINVAL;
	}
	flags = os_lock(&patterns_lock);
	memcpy(exit_patterns, value, len + 1);
	os_unlock(&patterns_lock, flags);
	return 0;
}
BOOT_PARAM(profile_on_exit, "profile.on_exit", "all|none|<glob>[,<glob>...]", profile_set_on_exit);

void profile_print_on_exit(os_text_t *text)
{
	unsigned long flags = os_lock(&patterns_lock);

	os_text_printf(text, "%s\n", exit_patterns);
	os_unlock(&patterns_lock, flags);
}

static int set_top(const char *value)
{
	u64 n;

	if (!strcmp(value, "all")) {
		top = REPORT_TOP_ALL;
		return 0;
	}
	if (parse_u64(value, &n) || n == 0 || n >= REPORT_TOP_ALL)
		return -EINVAL;
	top = n;
	return 0;
}
BOOT_PARAM(profile_top, "profile.top", "<rows>|all", set_top);

static int set_report(const char *value)
{
	bool is_wide = !strcmp(value, "wide"), is_histogram = !strcmp(value, "histogram");

	if (!is_wide && !is_histogram && strcmp(value, "narrow"))
		return -EINVAL;
	wide = is_wide || is_histogram;
	histogram = is_histogram;
	return 0;
}
BOOT_PARAM(profile_report, "profile.report", "narrow|wide|histogram", set_report);

#ifdef CONFIG_PROFILE_HEATMAP
static int set_views(const char *value)
{
	size_t len = strlen(value);

	if (!len || len >= sizeof(views))
		return -EINVAL;
	memcpy(views, value, len + 1);
	return 0;
}
BOOT_PARAM(profile_heatmap, "profile.heatmap",
	   "none|all|<glob>[,<glob>...] of functions, calls, tasks, cpus, user", set_views);
#endif

void profile_init(void)
{
	if (IS_ENABLED(CONFIG_PROFILE_STRACE_LIVE))
		live_init();
	if (IS_ENABLED(CONFIG_PROFILE_HEATMAP)) {
		sample_init();
		source_init();
	}
	if (IS_ENABLED(CONFIG_PROFILE_POINTS))
		control_init();
	files_init();
	if (IS_ENABLED(CONFIG_PROFILE_STRACE))
		strace_control_init();
}

#if defined(CONFIG_PROFILE_STRACE) || defined(CONFIG_PROFILE_HEATMAP)
void profile_task_init(struct task *task)
{
	memset(os_task_profile(task), 0, sizeof(struct profile_task));
	if (IS_ENABLED(CONFIG_PROFILE_HEATMAP))
		profile_task_changed(task);
	if (IS_ENABLED(CONFIG_PROFILE_STRACE))
		strace_task_init(task);
}
#endif

void profile_reset(void)
{
	if (IS_ENABLED(CONFIG_PROFILE_STRACE))
		strace_reset();
	if (IS_ENABLED(CONFIG_PROFILE_HEATMAP)) {
		sample_reset();
		source_reset();
	}
	if (IS_ENABLED(CONFIG_PROFILE_POINTS))
		points_reset();
}

/* All of the same samples; user code of proc, if it is not NULL. */
static void print_heatmap(struct process *proc)
{
	const char *names = strcmp(views, "none") ? views : wide ? "all" : "";

	samples_hold();
	report_printf("\n");
	heatmap_snapshot(&heat_copy);
	report_print_heatmap(&heat_copy, top);
	if (!strcmp(names, "all"))
		names = "*";
	report_print_views(names, top);
	if (proc && glob_match_list(names, "user"))
		report_print_user(proc, top);
	samples_release();
}

static void print_machine_tables(struct process *proc)
{
	if (IS_ENABLED(CONFIG_PROFILE_HEATMAP))
		print_heatmap(proc);
	if (IS_ENABLED(CONFIG_PROFILE_POINTS)) {
		report_printf("\n");
		points_snapshot(&point_copy);
		report_print_points(&point_copy, wide, histogram);
	}
}

static void print_full_report(const char *why)
{
	u64 report = ++nr_reports;
	u64 serial = 0;

	report_printf("profile: report %lu: %s\n", report, why);
	while (IS_ENABLED(CONFIG_PROFILE_STRACE) && strace_snapshot_next(&serial, &strace_copy)) {
		report_printf("\n");
		report_print_strace(&strace_copy, wide, NULL);
	}
	print_machine_tables(NULL);
	report_printf("profile: end of report %lu\n", report);
}

static void print_exit_report(struct process *proc)
{
	u64 report = ++nr_reports;
	char name[32];

	report_copy_printable(name, os_process_name(proc), sizeof(name));
	report_printf("profile: report %lu: exit of process %d (%s)\n", report,
		      os_process_pid(proc), name);
	if (IS_ENABLED(CONFIG_PROFILE_STRACE)) {
		report_printf("\n");
		strace_snapshot_process(os_process_profile(proc), &strace_copy);
		report_print_strace(&strace_copy, wide, NULL);
	}
	print_machine_tables(proc);
	report_printf("profile: end of report %lu\n", report);
}

static bool try_start_printing(void)
{
	return !xchg(&printing, true);
}

/*
 * A reason is left before `printing` is tried, and `printing` is given up before reasons are
 * looked for: so either the one who left it prints, or the printer sees it. The full barrier
 * here pairs with the one in the xchg() of try_start_printing().
 */
static void stop_printing(void)
{
	smp_store_release(&printing, false);
	smp_mb();
}

static void print_pending(void)
{
	const char *why;

	while (READ_ONCE(pending_why) && try_start_printing()) {
		why = xchg(&pending_why, NULL);
		if (why)
			print_full_report(why);
		stop_printing();
	}
}

void profile_report(const char *why)
{
	if (os_panicking()) {
		/*
		 * Another CPU may have come here before it was stopped: only a nested panic is
		 * one too many.
		 */
		if (panic_printer != smp_processor_id() + 1) {
			panic_printer = smp_processor_id() + 1;
			if (IS_ENABLED(CONFIG_PROFILE_STRACE_LIVE))
				live_flush();
			print_full_report(why);
		}
		return;
	}
	WRITE_ONCE(pending_why, why);
	print_pending();
}

void profile_print_text(os_text_t *text, void (*print)(void))
{
	while (!try_start_printing())
		os_wait_turn();
	report_to(text);
	print();
	report_to(NULL);
	stop_printing();
	print_pending();
}

static void print_read_report(void)
{
	print_full_report("read");
}

void profile_report_text(os_text_t *text)
{
	profile_print_text(text, print_read_report);
}

static void print_strace_of(struct process *proc)
{
	struct profile_process *pp = os_process_profile(proc);

	strace_snapshot_process(pp, &strace_copy);
	report_print_strace(&strace_copy, true, NULL);
	if (!strace_copy.nr_children && !strace_copy.before.nr_calls)
		return;
	report_printf("\n");
	strace_snapshot_family(pp, &strace_copy);
	report_print_strace(&strace_copy, true, "with children, and before exec");
}

static void print_strace_of_system(void)
{
	strace_snapshot_system(&strace_copy, &system_copy);
	report_printf("strace: %s\n", strace_off_since_cycles ? "off" : "on");
	report_print_strace(&strace_copy, true, "all processes");
	report_printf("\n");
	report_print_strace_processes(&system_copy);
}

void profile_strace_text(os_text_t *text, struct process *proc)
{
	while (!try_start_printing())
		os_wait_turn();
	report_to(text);
	if (!IS_ENABLED(CONFIG_PROFILE_STRACE))
		;
	else if (proc)
		print_strace_of(proc);
	else
		print_strace_of_system();
	report_to(NULL);
	stop_printing();
	print_pending();
}

static bool wants_exit_report(struct process *proc)
{
	unsigned long flags = os_lock(&patterns_lock);
	bool wants;

	wants = strcmp(exit_patterns, "none") &&
		(!strcmp(exit_patterns, "all") ||
		 glob_match_list(exit_patterns, os_process_name(proc)));
	os_unlock(&patterns_lock, flags);
	return wants;
}

void profile_process_exit(struct process *proc)
{
	if (IS_ENABLED(CONFIG_PROFILE_STRACE_LIVE))
		live_flush();
	if (wants_exit_report(proc)) {
		while (!try_start_printing())
			os_wait_turn();
		print_exit_report(proc);
		stop_printing();
		print_pending();
	}
	if (IS_ENABLED(CONFIG_PROFILE_STRACE))
		strace_process_ended(os_process_profile(proc));
}

#ifdef CONFIG_PROFILE_POINTS
void print_profile_points(void)
{
	if (!os_panicking() && !try_start_printing())
		return profile_report("points");
	points_snapshot(&point_copy);
	report_print_points(&point_copy, wide, histogram);
	stop_printing();
	print_pending();
}
#endif
