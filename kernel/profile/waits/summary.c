// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints the first lines of the report of a process, or of a run: the CPU time of the threads, and
 * their waiting time by what they waited for. The scheduler knows how long each thread was off its
 * CPU, and the records say why. Time that no record explains is "unknown". A process that mostly
 * waits for its children, like a shell, has one line.
 */

#include "waits.h"

#include "../findings.h"
#include "../profiler.h"
#include "../programs.h"
#include "../table.h"

#define NR_NAMES 6

struct part {
	const char *name;
	u64 cycles;
};

/* Adds to the part with this name, or to the last part, "others". */
static void add_part(struct part *parts, const char *name, u64 cycles)
{
	u32 i = 0;

	while (i < NR_NAMES - 1 && parts[i].name && strcmp(parts[i].name, name))
		i++;
	if (!parts[i].name)
		parts[i].name = i < NR_NAMES - 1 ? name : "others";
	parts[i].cycles += cycles;
}

static int compare_parts(const void *a, const void *b)
{
	return compare_u64(((const struct part *)b)->cycles, ((const struct part *)a)->cycles);
}

/* Makes the parts, the longest first. */
static void add_rows(struct part *parts, const struct wait_view *view)
{
	for (u32 i = 0; i < view->nr_rows; i++) {
		const struct wait_row *row = &view->rows[i];

		if (row->asleep_cycles)
			add_part(parts, row->name, row->asleep_cycles);
	}
	os_sort(parts, NR_NAMES, sizeof(parts[0]), compare_parts);
}

static u64 usecs(u64 cycles)
{
	return os_cycles_to_ns(cycles) / 1000;
}

#define SECONDS(us) (us) / 1000000, (us) % 1000000

/* Appends a part to a line, unless it is below a microsecond. Returns the line's length. */
static size_t print_part(char *line, size_t size, size_t len, const char *name, u64 us)
{
	if (!us)
		return len;
	return len + os_snprintf(line + len, size - len, "%s%s %lu.%06lu", len ? " + " : " = ",
				 name, SECONDS(us));
}

/* Prints the waits, if there were any. The total is the sum of the parts as printed. */
static void print_waits(const struct profile_lives *lives, const struct wait_view *view)
{
	struct part parts[NR_NAMES] = { 0 };
	u64 ready = lives->ready_cycles, known = ready, total = usecs(ready);
	char line[320] = "";
	size_t len = 0;

	add_rows(parts, view);
	for (u32 i = 0; i < NR_NAMES && parts[i].name; i++) {
		u64 us = usecs(parts[i].cycles);

		known += parts[i].cycles;
		total += us;
		len = print_part(line, sizeof(line), len, parts[i].name, us);
	}
	len = print_part(line, sizeof(line), len, "for a CPU", usecs(ready));
	/* Waits that had no room, while waits were off, or before a reset. */
	if (lives->off_cycles > known) {
		u64 us = usecs(lives->off_cycles - known);

		total += us;
		print_part(line, sizeof(line), len, "unknown", us);
	}
	if (total)
		report_printf("waited: %lu.%06lu s%s\n", SECONDS(total), line);
}

static u64 less(u64 from, u64 n)
{
	return from > n ? from - n : 0;
}

/*
 * Prints the CPU time. The times of calls and faults include interrupts that hit them, so these are
 * subtracted. The rest is user code and unmeasured time. The total is the sum of the parts as
 * printed.
 */
static void print_cpu_time(const struct report_summary *known)
{
	const struct profile_lives *lives = &known->lives;
	bool is_whole = known->has_calls && !off_time_total_ns(&waits_off_time);
	u64 call_ns = less(known->call_cpu_ns, os_cycles_to_ns(lives->irq.call_cycles));
	u64 calls = call_ns / 1000, irqs = usecs(lives->irq.cycles);
	u64 faults = usecs(less(lives->fault_cycles, lives->irq.fault_cycles));
	u64 known_us = calls + faults + irqs;
	u64 rest = less(usecs(lives->cycles - lives->off_cycles), known_us);
	char line[160] = "";
	size_t len =
		print_part(line, sizeof(line), 0, is_whole ? "user code" : "not divided", rest);

	len = print_part(line, sizeof(line), len, "system calls", calls);
	len = print_part(line, sizeof(line), len, "page faults", faults);
	print_part(line, sizeof(line), len, "interrupts", irqs);
	report_printf("CPU time: %lu.%06lu s, %lu thread%s%s\n", SECONDS(rest + known_us),
		      lives->nr_threads, lives->nr_threads == 1 ? "" : "s", line);
}

/* Prints "3 involuntary, 2 migrations" in parentheses, without those of which there are none. */
static void print_kinds(char *text, size_t size, const struct profile_lives *lives)
{
	size_t len = 0;

	if (lives->nr_preempted)
		len = os_snprintf(text, size, " (%lu involuntary", lives->nr_preempted);
	if (lives->nr_migrations)
		len += os_snprintf(text + len, size - len, "%s%lu migrations", len ? ", " : " (",
				   lives->nr_migrations);
	os_snprintf(text + len, size - len, "%s", len ? ")" : "");
}

/* Prints the numbers of events, without those that were not counted all the time. */
static void print_events(const struct report_summary *known)
{
	const struct profile_lives *lives = &known->lives;
	char calls[48] = "", switches[112] = "", kinds[64];

	if (known->has_calls)
		os_snprintf(calls, sizeof(calls), "%lu system calls, ", known->nr_calls);
	print_kinds(kinds, sizeof(kinds), lives);
	if (!off_time_total_ns(&waits_off_time))
		os_snprintf(switches, sizeof(switches), ", %lu context switches%s", lives->nr_waits,
			    kinds);
	report_printf("events: %s%lu page faults%s\n", calls, known->nr_faults, switches);
}

/* Returns how long the threads slept until a child process ended or stopped. */
static u64 child_cycles(const struct wait_view *view)
{
	u64 cycles = 0;

	for (u32 i = 0; i < view->nr_rows; i++) {
		if (!strcmp(view->rows[i].name, OS_CHILD_WAIT))
			cycles += view->rows[i].asleep_cycles;
	}
	return cycles;
}

static void print_parent(const struct profile_lives *lives, u64 child_cycles)
{
	report_printf("CPU time: %lu.%06lu s, %lu thread%s; waited for children: %lu.%06lu of "
		      "%lu.%06lu s\n",
		      SECONDS(usecs(lives->cycles - lives->off_cycles)), lives->nr_threads,
		      lives->nr_threads == 1 ? "" : "s", SECONDS(usecs(child_cycles)),
		      SECONDS(usecs(lives->cycles)));
}

/* The times of a process contain the printing of reports, for example in a wait for a child. */
static void print_reports(const struct report *report)
{
	u64 us = usecs(report->others_cycles);

	if (us)
		report_printf("reports of other processes took %lu.%06lu s of this process's "
			      "time\n",
			      SECONDS(us));
}

static void print_process(const struct report *report)
{
	struct report_summary known = { 0 };
	const struct profile_lives *lives = &known.lives;

	report_summarize(report->proc, &known);
	waits_pin();
	waits_make_view(report->proc, wait_by_reason);
	findings_print(report, &known);
	if (!report->wide && child_cycles(&wait_view) > lives->cycles / 2) {
		print_parent(lives, child_cycles(&wait_view));
	} else {
		print_cpu_time(&known);
		print_waits(lives, &wait_view);
		print_events(&known);
	}
	print_reports(report);
	report_printf("\n");
}

static void print_run(const struct report *report)
{
	struct report_summary known;

	programs_read(&known);
	waits_pin();
	waits_make_view(NULL, wait_by_reason_of_processes);
	findings_print(report, &known);
	print_cpu_time(&known);
	print_waits(&known.lives, &wait_view);
	print_events(&known);
	report_printf("\n");
	programs_print(report->top);
}

/* report_print_waits() prints the view later, and unpins it. */
static void print(const struct report *report)
{
	if (report->proc)
		print_process(report);
	else if (report->is_run)
		print_run(report);
}

PROFILER(summary) = {
	.name = "summary",
	.place = 5,
	.print = print,
};
