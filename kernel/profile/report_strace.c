// SPDX-License-Identifier: BSD-2-Clause
/* The tables of system calls: see report.c. */

#include "internal.h"

#define RULE "------ -------------- ----------- --------- --------- ----------------"

/* Room for the names of the errors of a row, and for those that are just counted. */
#define ERROR_TEXT 200

/* Most time first; equal times by number. */
static int compare_strace(const void *a_, const void *b_)
{
	const struct strace_entry *a = a_, *b = b_;

	return a->ns != b->ns ? compare_u64(b->ns, a->ns) : compare_u64(a->nr, b->nr);
}

/* Most frequent first. */
static int compare_errors(const void *a_, const void *b_)
{
	const struct strace_error_entry *a = a_, *b = b_;

	return a->nr != b->nr ? compare_u64(b->nr, a->nr) : compare_u64(a->error, b->error);
}

static int compare_processes(const void *a_, const void *b_)
{
	const struct strace_process_entry *a = a_, *b = b_;

	return a->ns != b->ns ? compare_u64(b->ns, a->ns) : compare_u64(a->pid, b->pid);
}

/* A bound, so it is rounded up. "-": there is none. */
static void print_bound(char *text, size_t size, u64 ns)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	u32 unit = 0;

	if (!ns) {
		strscpy(text, "-", size);
		return;
	}
	for (; ns > 9999 && unit < ARRAY_SIZE(units) - 1; unit++)
		ns = ns / 1000 + (ns % 1000 != 0);
	snprintf(text, size, "<= %lu%s", ns, units[unit]);
}

static void print_error(char *text, size_t size, u32 error, u64 nr)
{
	const char *name = errno_name(error);

	if (name)
		snprintf(text, size, "%s %lu", name, nr);
	else
		snprintf(text, size, "errno %u %lu", error, nr);
}

/* "  ENOENT 12, EAGAIN 3"; empty without errors. What has no name or no room is summed up. */
static void print_errors(char *text, const struct strace_entry *entry,
			 struct strace_error_entry *errors)
{
	u64 nr_left = entry->nr_errors;
	char one[48];
	size_t len = 0;

	text[0] = '\0';
	errors += entry->first_error;
	sort(errors, entry->nr_error_kinds, sizeof(*errors), compare_errors);
	for (u32 i = 0; i < entry->nr_error_kinds && len < ERROR_TEXT - 2 * sizeof(one); i++) {
		print_error(one, sizeof(one), errors[i].error, errors[i].nr);
		len += snprintf(text + len, ERROR_TEXT - len, "%s%s", len ? ", " : "  ", one);
		nr_left -= min(nr_left, errors[i].nr);
	}
	if (nr_left)
		snprintf(text + len, ERROR_TEXT - len, "%sother %lu", len ? ", " : "  ", nr_left);
}

static void print_wide_entry(const char *narrow, const char *name, const struct strace_entry *entry,
			     struct strace_error_entry *errors)
{
	char p50[16], p99[16], text[ERROR_TEXT];

	print_errors(text, entry, errors);
	if (!STRACE_HAS_DETAIL) {
		report_printf("%s %-20s %14s %10s %10s %14s %9s%s\n", narrow, name, "-", "-", "-",
			      "-", "-", text);
		return;
	}
	print_bound(p50, sizeof(p50), entry->p50_ns);
	print_bound(p99, sizeof(p99), entry->p99_ns);
	report_printf("%s %-20s %4lu.%09lu %10s %10s %4lu.%09lu %9lu%s\n", narrow, name,
		      entry->cpu_ns / NS_PER_SEC, entry->cpu_ns % NS_PER_SEC, p50, p99,
		      entry->max_ns / NS_PER_SEC, entry->max_ns % NS_PER_SEC, entry->nr_in_flight,
		      text);
}

static void print_strace_entry(const struct strace_entry *entry, u64 total_ns, bool wide,
			       struct strace_error_entry *errors)
{
	u32 percent = report_percent(entry->ns, total_ns);
	const char *name = entry->name;
	char number[32], narrow[160];

	if (!name) {
		snprintf(number, sizeof(number), "sys_%ld", (long)entry->nr);
		name = number;
	}
	snprintf(narrow, sizeof(narrow), "%3u.%02u %4lu.%09lu %11lu %9lu %9lu", percent / 100,
		 percent % 100, entry->ns / NS_PER_SEC, entry->ns % NS_PER_SEC,
		 report_usecs_per_call(entry->ns, entry->nr_calls), entry->nr_calls,
		 entry->nr_errors);
	if (wide)
		print_wide_entry(narrow, name, entry, errors);
	else
		report_printf("%s %s\n", narrow, name);
}

static void print_head(const struct strace_snapshot *snap, bool wide, const char *title)
{
	report_printf("Kernel strace\n");
	if (title)
		report_printf("Calls of: %s\n", title);
	else
		report_printf("Task: %d:%d nr_accumulated_threads: %u\n", snap->pid, snap->pid,
			      snap->nr_accumulated_threads);
	report_printf("%% time        seconds  usecs/call     calls    errors syscall%s\n",
		      wide ? "                 cpu seconds        p50        p99    max seconds "
			     "in flight  errors by name" :
			     "");
	report_printf("%s%s\n", RULE,
		      wide ? "---- -------------- ---------- ---------- -------------- --------- "
			     "---------------" :
			     "");
}

static void print_total(const struct strace_entry *total, bool wide)
{
	u32 percent = report_percent(total->ns, total->ns);
	char narrow[160];

	snprintf(narrow, sizeof(narrow), "%3u.%02u %4lu.%09lu %11s %9lu %9lu", percent / 100,
		 percent % 100, total->ns / NS_PER_SEC, total->ns % NS_PER_SEC, "", total->nr_calls,
		 total->nr_errors);
	if (!wide)
		report_printf("%s total\n", narrow);
	else if (!STRACE_HAS_DETAIL)
		report_printf("%s %-20s %14s %10s %10s %14s %9s\n", narrow, "total", "-", "", "",
			      "", "-");
	else
		report_printf("%s %-20s %4lu.%09lu %10s %10s %14s %9lu\n", narrow, "total",
			      total->cpu_ns / NS_PER_SEC, total->cpu_ns % NS_PER_SEC, "", "", "",
			      total->nr_in_flight);
}

static void print_totals(const char *what, const struct strace_totals *totals)
{
	report_printf("%s: %lu calls, %lu errors, %lu.%09lu seconds\n", what, totals->nr_calls,
		      totals->nr_errors, totals->ns / NS_PER_SEC, totals->ns % NS_PER_SEC);
}

/* What is not in the table of a process. */
static void print_family(const struct strace_snapshot *snap, const struct strace_entry *own)
{
	struct strace_totals all = {
		.nr_calls = own->nr_calls + snap->before.nr_calls + snap->children.nr_calls,
		.nr_errors = own->nr_errors + snap->before.nr_errors + snap->children.nr_errors,
		.ns = own->ns + snap->before.ns + snap->children.ns,
	};
	char what[40];

	if (snap->before.nr_calls)
		print_totals("before exec", &snap->before);
	if (!snap->nr_children)
		return;
	snprintf(what, sizeof(what), "with %u children", snap->nr_children);
	print_totals(what, &all);
}

void report_print_strace(struct strace_snapshot *snap, bool wide, const char *title)
{
	struct strace_entry total = { 0 };

	for (u32 i = 0; i < snap->nr_entries; i++) {
		total.ns = add_saturating(total.ns, snap->entries[i].ns);
		total.cpu_ns = add_saturating(total.cpu_ns, snap->entries[i].cpu_ns);
		total.nr_calls = add_saturating(total.nr_calls, snap->entries[i].nr_calls);
		total.nr_errors = add_saturating(total.nr_errors, snap->entries[i].nr_errors);
		total.nr_in_flight += snap->entries[i].nr_in_flight;
	}
	sort(snap->entries, snap->nr_entries, sizeof(snap->entries[0]), compare_strace);

	print_head(snap, wide, title);
	for (u32 i = 0; i < snap->nr_entries; i++)
		print_strace_entry(&snap->entries[i], total.ns, wide, snap->errors);
	report_printf("%s%s\n", RULE,
		      wide ? "---- -------------- ---------- ---------- -------------- ---------" :
			     "");
	print_total(&total, wide);
	if (!title)
		print_family(snap, &total);
	if (snap->nr_backwards)
		report_printf("clock went backwards in %lu calls: counted without time\n",
			      snap->nr_backwards);
	if (snap->nr_unfollowed)
		report_printf("%lu interrupted calls were given up: one that went on is counted "
			      "twice\n",
			      snap->nr_unfollowed);
}

static void print_process(const struct strace_process_entry *entry, u64 total_ns)
{
	u32 percent = report_percent(entry->ns, total_ns);
	char name[sizeof(entry->name)], pid[16] = "-";

	report_copy_printable(name, entry->name, sizeof(name));
	if (entry->pid)
		snprintf(pid, sizeof(pid), "%d", entry->pid);
	report_printf("%3u.%02u %4lu.%09lu %4lu.%09lu %9lu %9lu %7u %7s %s\n", percent / 100,
		      percent % 100, entry->ns / NS_PER_SEC, entry->ns % NS_PER_SEC,
		      entry->cpu_ns / NS_PER_SEC, entry->cpu_ns % NS_PER_SEC, entry->nr_calls,
		      entry->nr_errors, entry->nr_threads, pid, name);
}

/* [gone] and [more] stand for as many processes as the column of threads says. */
void report_print_strace_processes(struct strace_system_snapshot *system)
{
	static const char *const rule =
		"------ -------------- -------------- --------- --------- ------- ------- "
		"----------------";
	struct strace_process_entry total = { 0 };
	u32 percent;

	for (u32 i = 0; i < system->nr_entries; i++) {
		total.ns += system->entries[i].ns;
		total.cpu_ns += system->entries[i].cpu_ns;
		total.nr_calls += system->entries[i].nr_calls;
		total.nr_errors += system->entries[i].nr_errors;
	}
	sort(system->entries, system->nr_entries, sizeof(system->entries[0]), compare_processes);
	report_printf("Kernel strace by process\n");
	report_printf("%% time        seconds    cpu seconds     calls    errors threads     pid "
		      "process\n");
	report_printf("%s\n", rule);
	for (u32 i = 0; i < system->nr_entries; i++) {
		if (system->entries[i].nr_threads || system->entries[i].nr_calls)
			print_process(&system->entries[i], total.ns);
	}
	report_printf("%s\n", rule);
	percent = report_percent(total.ns, total.ns);
	report_printf("%3u.%02u %4lu.%09lu %4lu.%09lu %9lu %9lu %7s %7s total\n", percent / 100,
		      percent % 100, total.ns / NS_PER_SEC, total.ns % NS_PER_SEC,
		      total.cpu_ns / NS_PER_SEC, total.cpu_ns % NS_PER_SEC, total.nr_calls,
		      total.nr_errors, "", "");
}
