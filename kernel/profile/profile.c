// SPDX-License-Identifier: BSD-2-Clause
/*
 * Start, reset and the reports. The snapshot buffers are static, so one report is printed at a
 * time. Who comes while another CPU, or what this CPU was doing, is printing leaves its reason
 * in pending_why; the printer looks there when it is done. In a panic nobody else runs any
 * more: the report is printed at once, and a fault inside it does not start another one.
 */

#include "internal.h"

static struct strace_snapshot strace_copy;
static struct heat_snapshot heat_copy;
static struct point_snapshot point_copy;

static bool printing;		   /* the copies are in use */
static unsigned int panic_printer; /* CPU + 1 */
static const char *pending_why;
static u64 nr_reports;

static char exit_patterns[256] = "all";
static u32 top = 10;
static bool wide, histogram;

static int set_on_exit(const char *value)
{
	size_t len = strlen(value);

	if (!len || len >= sizeof(exit_patterns))
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		/* A comma stands between two patterns. */
		if (value[i] == ',' && (i == 0 || i == len - 1 || value[i + 1] == ','))
			return -EINVAL;
	}
	memcpy(exit_patterns, value, len + 1);
	return 0;
}
BOOT_PARAM(profile_on_exit, "profile.on_exit", "all|none|<glob>[,<glob>...]", set_on_exit);

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

void profile_init(void)
{
	if (IS_ENABLED(CONFIG_PROFILE_HEATMAP))
		sample_init();
	if (IS_ENABLED(CONFIG_PROFILE_POINTS))
		control_init();
}

void profile_reset(void)
{
	if (IS_ENABLED(CONFIG_PROFILE_STRACE))
		strace_reset();
	if (IS_ENABLED(CONFIG_PROFILE_HEATMAP))
		sample_reset();
	if (IS_ENABLED(CONFIG_PROFILE_POINTS))
		points_reset();
}

static void print_machine_tables(void)
{
	if (IS_ENABLED(CONFIG_PROFILE_HEATMAP)) {
		printk("\n");
		heatmap_snapshot(&heat_copy);
		report_print_heatmap(&heat_copy, top);
	}
	if (IS_ENABLED(CONFIG_PROFILE_POINTS)) {
		printk("\n");
		points_snapshot(&point_copy);
		report_print_points(&point_copy, wide, histogram);
	}
}

static void print_full_report(const char *why)
{
	u64 report = ++nr_reports;
	u64 serial = 0;

	printk("profile: report %lu: %s\n", report, why);
	while (IS_ENABLED(CONFIG_PROFILE_STRACE) && strace_snapshot_next(&serial, &strace_copy)) {
		printk("\n");
		report_print_strace(&strace_copy);
	}
	print_machine_tables();
	printk("profile: end of report %lu\n", report);
}

/* What a program called itself may hold anything; the log is for plain text. */
static void copy_printable(char *dst, const char *src, size_t size)
{
	strscpy(dst, src, size);
	for (; *dst; dst++) {
		if (*dst < ' ' || *dst > '~')
			*dst = '?';
	}
}

static void print_exit_report(struct process *proc)
{
	u64 report = ++nr_reports;
	char name[32];

	copy_printable(name, os_process_name(proc), sizeof(name));
	printk("profile: report %lu: exit of process %d (%s)\n", report, os_process_pid(proc),
	       name);
	if (IS_ENABLED(CONFIG_PROFILE_STRACE)) {
		printk("\n");
		strace_snapshot_process(os_process_profile(proc), &strace_copy);
		report_print_strace(&strace_copy);
	}
	print_machine_tables();
	printk("profile: end of report %lu\n", report);
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
			print_full_report(why);
		}
		return;
	}
	WRITE_ONCE(pending_why, why);
	print_pending();
}

static bool wants_exit_report(struct process *proc)
{
	if (!strcmp(exit_patterns, "none"))
		return false;
	return !strcmp(exit_patterns, "all") ||
	       glob_match_list(exit_patterns, os_process_name(proc));
}

void profile_process_exit(struct process *proc)
{
	if (wants_exit_report(proc)) {
		while (!try_start_printing())
			os_wait_turn();
		print_exit_report(proc);
		stop_printing();
		print_pending();
	}
	if (IS_ENABLED(CONFIG_PROFILE_STRACE))
		strace_process_free(os_process_profile(proc));
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
