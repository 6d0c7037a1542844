// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints the table of system calls, of one process or of all, and the table of processes. Sorts a
 * snapshot and passes its rows to table.h. formats.md defines the formats to the byte.
 */

#include "strace.h"

#include "../table.h"

/* The number of errors of a call that are printed by name. All others are summed up as "other". */
#define MAX_ERROR_NAMES 160

enum {
	TIME,
	SECONDS,
	USECS_PER_CALL,
	CALLS,
	ERRORS,
	SYSCALL,
	CPU_SECONDS,
	P50,
	P99,
	MAX_SECONDS,
	IN_FLIGHT,
	ERROR_NAMES,
	NR_COLUMNS,
};

#define TOTAL_CPU_TIME (STRACE_HAS_CPU_TIME ? TOTAL_SUM : TOTAL_DASH)
#define TOTAL_DETAIL   (STRACE_HAS_DETAIL ? TOTAL_SUM : TOTAL_DASH)

/* In wide tables, every name of a call fits into its column. */
static const struct column columns[NR_COLUMNS] = {
	[TIME] = { "% time", NULL, COLUMN_PERCENT, 6, TOTAL_SUM },
	[SECONDS] = { "seconds", "time_ns", COLUMN_SECONDS, 14, TOTAL_SUM },
	[USECS_PER_CALL] = { "usecs/call", "us_per_call", COLUMN_COUNT, 11 },
	[CALLS] = { "calls", "calls", COLUMN_COUNT, 9, TOTAL_SUM },
	[ERRORS] = { "errors", "errors", COLUMN_COUNT, 9, TOTAL_SUM },
	[SYSCALL] = { "syscall", "syscall", COLUMN_TEXT, 16, TOTAL_LABEL, 27, .left = true },
	[CPU_SECONDS] = { "cpu seconds", "cpu_ns", COLUMN_SECONDS, 14, TOTAL_CPU_TIME,
			  .wide = true },
	[P50] = { "p50", "p50_bound_ns", COLUMN_BOUND, 10, .wide = true },
	[P99] = { "p99", "p99_bound_ns", COLUMN_BOUND, 10, .wide = true },
	[MAX_SECONDS] = { "max seconds", "max_ns", COLUMN_SECONDS, 14, .wide = true },
	[IN_FLIGHT] = { "in flight", "in_flight", COLUMN_COUNT, 9, TOTAL_DETAIL, .wide = true },
	[ERROR_NAMES] = { " errors by name", "errors_by_name", COLUMN_COUNTS, 15, TOTAL_END,
			  .left = true, .wide = true },
};

/* Sorts by time, longest first; equal times by number. */
static int compare_strace(const void *a_, const void *b_)
{
	const struct strace_entry *a = a_, *b = b_;

	return a->ns != b->ns ? compare_u64(b->ns, a->ns) : compare_u64(a->nr, b->nr);
}

/* Sorts by frequency, most frequent first. */
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

/* Returns the cell of an upper bound. 0 stands for no bound, because no call has ended. */
static struct cell cell_bound(u64 ns)
{
	return ns ? cell_nr(ns) : cell_dash();
}

/* Returns the cell of the errors of a row. Errors that were not counted by name are summed up. */
static struct cell cell_errors(const struct strace_entry *entry, struct strace_error_entry *errors)
{
	static struct table_count counts[MAX_ERROR_NAMES + 1];
	u32 nr = pf_min(entry->nr_error_kinds, (u32)MAX_ERROR_NAMES);
	u64 nr_left = entry->nr_errors;

	errors += entry->first_error;
	os_sort(errors, entry->nr_error_kinds, sizeof(*errors), compare_errors);
	for (u32 i = 0; i < nr; i++) {
		const char *name = errno_name(errors[i].error);

		if (name)
			os_strscpy(counts[i].name, name, sizeof(counts[i].name));
		else
			os_snprintf(counts[i].name, sizeof(counts[i].name), "errno %u",
				    errors[i].error);
		counts[i].nr = errors[i].nr;
		nr_left -= pf_min(nr_left, errors[i].nr);
	}
	if (nr_left)
		counts[nr++] = (struct table_count){ .name = "other", .nr = nr_left };
	return cell_counts(counts, nr);
}

/* Returns the cell of the average. A row without calls has none. */
static struct cell cell_average(u64 ns, u64 nr_calls)
{
	return nr_calls ? cell_nr(report_usecs_per_call(ns, nr_calls)) : cell_dash();
}

static struct cell cell_cpu_time(u64 ns)
{
	return STRACE_HAS_CPU_TIME ? cell_nr(ns) : cell_dash();
}

static void print_call(const struct strace_entry *entry, u64 total_ns,
		       struct strace_error_entry *errors)
{
	char number[REPORT_CALL_BYTES];
	struct cell cells[NR_COLUMNS] = {
		[TIME] = cell_percent(entry->ns, total_ns),
		[SECONDS] = cell_nr(entry->ns),
		[USECS_PER_CALL] = cell_average(entry->ns, entry->nr_calls),
		[CALLS] = cell_nr(entry->nr_calls),
		[ERRORS] = cell_nr(entry->nr_errors),
		[SYSCALL] = cell_text(report_call(number, entry->nr, entry->name)),
		[CPU_SECONDS] = cell_cpu_time(entry->cpu_ns),
		[P50] = cell_bound(entry->p50_ns),
		[P99] = cell_bound(entry->p99_ns),
		[MAX_SECONDS] = cell_nr(entry->max_ns),
		[IN_FLIGHT] = cell_nr(entry->nr_in_flight),
		[ERROR_NAMES] = cell_errors(entry, errors),
	};

	for (u32 i = P50; !STRACE_HAS_DETAIL && i <= IN_FLIGHT; i++)
		cells[i] = cell_dash();
	table_row(cells);
}

/* Prints the line of the task. In an exit report the name is empty: its heading has the name. */
static void print_task(const struct strace_snapshot *snap)
{
	bool has_name = snap->name[0];

	table_note("Task: %d:%d nr_accumulated_threads: %u%s%s%s", snap->pid, snap->pid,
		   snap->nr_accumulated_threads, has_name ? " (" : "", snap->name,
		   has_name ? ")" : "");
}

/*
 * Prints the totals of calls that are not in the table: before execve, and of children. The wall
 * times of children do not add up: a call that waits for a child contains the child's calls.
 */
static void print_family(const struct strace_snapshot *snap)
{
	const struct strace_totals *before = &snap->before, *children = &snap->children;
	u64 nr_calls = before->nr_calls + children->nr_calls;
	u64 nr_errors = before->nr_errors + children->nr_errors;
	u64 cpu_ns = before->cpu_ns + children->cpu_ns;
	char cpu[48] = "";

	for (u32 i = 0; i < snap->nr_entries; i++) {
		nr_calls += snap->entries[i].nr_calls;
		nr_errors += snap->entries[i].nr_errors;
		cpu_ns += snap->entries[i].cpu_ns;
	}
	if (STRACE_HAS_CPU_TIME)
		os_snprintf(cpu, sizeof(cpu), ", %lu.%09lu s of CPU time", cpu_ns / NS_PER_SEC,
			    cpu_ns % NS_PER_SEC);
	if (before->nr_calls)
		table_note("not in this table: %lu calls before execve, %lu errors, %lu.%09lu s",
			   before->nr_calls, before->nr_errors, before->ns / NS_PER_SEC,
			   before->ns % NS_PER_SEC);
	if (snap->nr_children)
		table_note("including children that were waited for (%u): %lu calls, %lu errors%s",
			   snap->nr_children, nr_calls, nr_errors, cpu);
}

static void print_notes(const struct strace_snapshot *snap)
{
	report_print_off("strace", "off", &snap->off);
	if (snap->nr_backwards)
		table_note("clock went backwards in %lu calls: counted without time",
			   snap->nr_backwards);
	if (snap->nr_unfollowed)
		table_note("%lu interrupted calls were given up: one that went on is counted twice",
			   snap->nr_unfollowed);
}

/* Prints the sums of the calls beyond the top, so that the columns add up to the totals. */
static void print_others(u64 total_ns)
{
	u32 nr = table_nr_others();
	u64 ns = table_others_sum(SECONDS), nr_calls = table_others_sum(CALLS);
	char name[32];
	struct cell cells[NR_COLUMNS] = {
		[TIME] = cell_percent(ns, total_ns),	       [SECONDS] = cell_nr(ns),
		[USECS_PER_CALL] = cell_average(ns, nr_calls), [CALLS] = cell_nr(nr_calls),
		[ERRORS] = cell_nr(table_others_sum(ERRORS)),  [SYSCALL] = cell_text(name),
	};

	if (!nr)
		return;
	os_snprintf(name, sizeof(name), "[%u other%s]", nr, nr == 1 ? "" : "s");
	table_summary_row(cells);
}

void report_print_strace(struct strace_snapshot *snap, u32 top, bool wide, const char *title)
{
	const struct table table =
		TABLE(columns, .top = wide ? REPORT_TOP_ALL : top, .dense = true, .wide = wide);
	u64 total_ns = 0;

	for (u32 i = 0; i < snap->nr_entries; i++)
		total_ns = add_saturating(total_ns, snap->entries[i].ns);
	os_sort(snap->entries, snap->nr_entries, sizeof(snap->entries[0]), compare_strace);

	table_begin(&table, "Kernel strace");
	if (title)
		table_note("Calls of: %s", title);
	else
		print_task(snap);
	table_head();
	for (u32 i = 0; i < snap->nr_entries; i++)
		print_call(&snap->entries[i], total_ns, snap->errors);
	print_others(total_ns);
	table_end();
	if (!title)
		print_family(snap);
	print_notes(snap);
}

enum {
	P_TIME,
	P_SECONDS,
	P_CPU_SECONDS,
	P_CALLS,
	P_ERRORS,
	P_THREADS,
	P_PID,
	P_PROCESS,
	P_NR_COLUMNS,
};

static const struct column process_columns[P_NR_COLUMNS] = {
	[P_TIME] = { "% time", NULL, COLUMN_PERCENT, 6, TOTAL_SUM },
	[P_SECONDS] = { "seconds", "time_ns", COLUMN_SECONDS, 14, TOTAL_SUM },
	[P_CPU_SECONDS] = { "cpu seconds", "cpu_ns", COLUMN_SECONDS, 14, TOTAL_CPU_TIME },
	[P_CALLS] = { "calls", "calls", COLUMN_COUNT, 9, TOTAL_SUM },
	[P_ERRORS] = { "errors", "errors", COLUMN_COUNT, 9, TOTAL_SUM },
	[P_THREADS] = { "threads", "threads", COLUMN_COUNT, 7 },
	[P_PID] = { "pid", "pid", COLUMN_COUNT, 10 },
	[P_PROCESS] = { "process", "process", COLUMN_TEXT, 16, TOTAL_LABEL, .left = true },
};

static const struct table process_table = TABLE(process_columns, .dense = true);

static void print_process(const struct strace_process_entry *entry, u64 total_ns)
{
	struct cell cells[P_NR_COLUMNS] = {
		[P_TIME] = cell_percent(entry->ns, total_ns),
		[P_SECONDS] = cell_nr(entry->ns),
		[P_CPU_SECONDS] = cell_cpu_time(entry->cpu_ns),
		[P_CALLS] = cell_nr(entry->nr_calls),
		[P_ERRORS] = cell_nr(entry->nr_errors),
		[P_THREADS] = cell_nr(entry->nr_threads),
		[P_PID] = entry->pid ? cell_nr(entry->pid) : cell_dash(),
		[P_PROCESS] = cell_text(entry->name),
	};

	table_row(cells);
}

/*
 * Prints the table of processes. The rows [gone] and [others] stand for several processes each;
 * their column `threads` has the number of processes.
 */
void report_print_strace_processes(struct strace_system_snapshot *system)
{
	u64 total_ns = 0;

	for (u32 i = 0; i < system->nr_entries; i++)
		total_ns = add_saturating(total_ns, system->entries[i].ns);
	os_sort(system->entries, system->nr_entries, sizeof(system->entries[0]), compare_processes);
	table_begin(&process_table, "Kernel strace by process");
	table_head();
	for (u32 i = 0; i < system->nr_entries; i++) {
		if (system->entries[i].nr_threads || system->entries[i].nr_calls)
			print_process(&system->entries[i], total_ns);
	}
	table_end();
}
