// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints one report at a time, because profilers copy what they print into static buffers. Threads
 * wait for their turn in the order in which they came. An interrupt cannot wait: it stores its
 * reason in pending_why, and the printing thread looks there when it has finished. In a panic no
 * other CPU runs any more, so the report is printed at once. A fault inside it does not start
 * another report.
 */

#include "report.h"

#include "table.h"

static pf_flag_t printing;	   /* a report is being printed */
static unsigned int panic_printer; /* the CPU that prints in the panic, plus 1; 0: none */
static const char *pending_why;
static u64 nr_reports;
static u32 tickets_drawn, tickets_served; /* ticket lock */
static u32 nr_begun, nr_ended;		  /* reports on the console */
static u64 console_cycles;		  /* the time that it took to prepare and print them */

static u32 top = 4;
static bool wide, histogram;

static int set_top(const char *value)
{
	u64 n;

	if (!strcmp(value, "all")) {
		top = REPORT_TOP_ALL;
		return 0;
	}
	if (os_parse_u64(value, &n) || n == 0 || n >= REPORT_TOP_ALL)
		return -OS_EINVAL;
	top = n;
	return 0;
}
/* Rows of the tables of system calls, samples and waits: 4 by default. */
OS_BOOT_PARAM(profile_top, "profile.top", "<rows>|all", set_top);
PROFILE_CONTROL(profile_top, "profile.top", "<rows>|all", "", set_top);

static int set_report(const char *value)
{
	bool is_wide = !strcmp(value, "wide"), is_histogram = !strcmp(value, "histogram");

	if (!is_wide && !is_histogram && strcmp(value, "narrow"))
		return -OS_EINVAL;
	wide = is_wide || is_histogram;
	histogram = is_histogram;
	return 0;
}
/*
 * More columns and tables: CPU times, errors, all views of samples; histogram: times by powers of
 * two. Default: narrow.
 */
OS_BOOT_PARAM(profile_report, "profile.report", "narrow|wide|histogram", set_report);
PROFILE_CONTROL(profile_report, "profile.report", "narrow|wide|histogram", "", set_report);

/* Prints what earlier reports have cost, unless nothing. */
static void print_cost(void)
{
	u64 us = os_cycles_to_ns(console_cycles) / 1000;

	if (us)
		report_printf("reports: %u before this one, prepared and printed in %lu.%06lu s\n",
			      nr_ended, us / 1000000, us % 1000000);
}

/* Prints a report whose scope is set. */
static void print_scope(struct report *report, const char *why)
{
	u64 nr = ++nr_reports, begin_cycles = os_cycles();
	bool on_console = report_is_on_console();
	u32 owner = on_console ? os_begin_report() : 0;

	os_assert(printing);
	report->top = top;
	report->wide = wide;
	report->histogram = histogram;
	nr_begun += on_console;
	if (on_console)
		report_first_lines_begin();
	report_print_heading(nr, report, why);
	report_print_warnings();
	report_print_tables(report);
	report_first_lines_end();
	if (!report->proc)
		print_cost();
	report_printf("profile: end of report %lu\n", nr);
	if (on_console) {
		nr_ended++;
		console_cycles += os_cycles() - begin_cycles;
		os_end_report(owner);
	}
}

/* Prints a report of the machine, with a reason. */
static void print_report(const char *why)
{
	print_scope(&(struct report){ 0 }, why);
}

/* Prints the report of the run, unless its only process has had one. */
static void print_run(void)
{
	u32 nr_running, nr = run_nr_processes(&nr_running);
	struct report report = { .is_run = true, .wall_ns = run_age_ns() };
	u64 ms = report.wall_ns / NS_PER_MSEC;
	char why[96], running[40] = "";

	if (nr == 1 && !nr_running)
		return;
	if (nr_running)
		os_snprintf(running, sizeof(running), ", %u still running", nr_running);
	os_snprintf(why, sizeof(why), "run of %u process%s%s, %lu.%03lu s", nr, nr == 1 ? "" : "es",
		    running, ms / 1000, ms % 1000);
	print_scope(&report, why);
}

static bool try_start_printing(void)
{
	if (pf_xchg(&printing, true))
		return false;
	pf_write_once(report_printer, os_current_task());
	return true;
}

/* Waits for this thread's turn, and until no other report is being printed. Process context. */
static void start_printing(void)
{
	u32 ticket = __atomic_fetch_add(&tickets_drawn, 1, __ATOMIC_RELAXED);

	os_assert_process_context();
	while (pf_read_once(tickets_served) != ticket || !try_start_printing())
		os_relax_and_yield();
	pf_write_once(tickets_served, ticket + 1);
}

/*
 * The barrier pairs with the one in the pf_xchg() of try_start_printing(). A requester stores its
 * reason before it tries `printing`; a printer clears `printing` before it looks for reasons. So
 * either the requester prints, or the printer sees the reason. Without the barriers both could miss
 * it, and the report would not be printed.
 */
static void stop_printing(void)
{
	os_assert(printing);
	report_end_reading();
	pf_write_once(report_printer, NULL);
	pf_store_release(&printing, false);
	pf_mb();
}

static void print_pending(void)
{
	const char *why;

	while (pf_read_once(pending_why) && try_start_printing()) {
		why = pf_xchg(&pending_why, NULL);
		if (why)
			print_report(why);
		stop_printing();
	}
}

bool report_is_off(void)
{
	if (!os_key_on(&profile_off_key))
		return false;
	os_printk("profile: off until the next boot\n");
	return true;
}

void profile_report(const char *why)
{
	if (report_is_off())
		return;
	if (os_panicking()) {
		/*
		 * If this CPU has begun a report in the panic already, that report has faulted. If
		 * another CPU has, it was stopped, so this CPU prints one.
		 */
		if (panic_printer != os_cpu() + 1) {
			panic_printer = os_cpu() + 1;
			report_to_output(NULL);
			report_flush();
			print_report(why);
			report_end(why);
		}
		return;
	}
	pf_write_once(pending_why, why);
	print_pending();
}

void report_to_text(os_text_t *text, const struct table_sink *sink, void (*print)(const void *arg),
		    const void *arg)
{
	start_printing();
	report_to(text);
	table_set_sink(sink);
	report_restart();
	print(arg);
	table_set_sink(&table_text);
	report_to(NULL);
	stop_printing();
	print_pending();
}

void report_print_whole(const void *why)
{
	print_report(why);
}

bool report_try_print(void (*print)(const struct report *report))
{
	struct report report = { .top = top, .wide = wide, .histogram = histogram };

	if (report_is_off())
		return true;
	if (!os_panicking() && !try_start_printing())
		return false;
	report_restart();
	print(&report);
	stop_printing();
	print_pending();
	return true;
}

static pf_noinline void print_exit_report(os_process_t *proc)
{
	struct report report = { .proc = proc };
	u64 ns = os_process_age_ns(proc), begin_cycles;

	report.delay_cycles = report_delay() - os_process_profile(proc)->first_delay_cycles;
	if (ns != OS_NO_AGE) /* else 0: unknown */
		report.wall_ns = ns - pf_min(ns, os_cycles_to_ns(report.delay_cycles));
	begin_cycles = report_delay_begin();
	start_printing();
	report_delay_start_printing();
	print_scope(&report, NULL);
	report_delay_stop_printing();
	stop_printing();
	print_pending();
	report_delay_end(begin_cycles);
}

void report_process_exit(os_process_t *proc)
{
	report_flush();
	if (on_exit_wants(&on_exit_reports, proc))
		print_exit_report(proc);
}

/* Never ends its turn, so that no thread can print afterwards. Process context. */
void profile_end_reports(void)
{
	const char *why;

	if (os_key_on(&profile_off_key))
		return;
	report_flush();
	start_printing();
	why = pf_xchg(&pending_why, NULL);
	if (why)
		print_report(why);
	if (on_exit_is_run())
		print_run();
	on_exit_print_unmatched(&on_exit_reports);
	report_end("power off");
}

void profile_count_cut_reports(unsigned int *nr)
{
	*nr += nr_begun - nr_ended;
}
