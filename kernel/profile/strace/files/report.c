// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints the table of calls by path, and offers the failed calls as a finding. formats.md defines
 * the table to the byte.
 */

#include "files.h"

#include "../../findings.h"
#include "../../table.h"

enum {
	TIME,
	SECONDS,
	CALLS,
	ERRORS,
	CPU_TIME,
	ERROR,
	ERROR_NAMES,
	PATH,
	NR_COLUMNS,
};

static const struct column columns[NR_COLUMNS] = {
	[TIME] = { "% time", NULL, COLUMN_PERCENT, 6, TOTAL_SUM },
	[SECONDS] = { "seconds", "time_ns", COLUMN_SECONDS, 14, TOTAL_SUM },
	[CALLS] = { "calls", "calls", COLUMN_COUNT, 9, TOTAL_SUM },
	[ERRORS] = { "errors", "errors", COLUMN_COUNT, 9, TOTAL_SUM },
	[CPU_TIME] = { NULL, "cpu_ns", COLUMN_COUNT },
	[ERROR] = { "error", NULL, COLUMN_TEXT, 7, .left = true },
	[ERROR_NAMES] = { NULL, "errors_by_name", COLUMN_COUNTS },
	[PATH] = { "path", "path", COLUMN_TEXT, 16, TOTAL_LABEL, .left = true },
};

static const char *name_of(u32 error)
{
	return errno_name(error) ?: "?";
}

/* Returns the cell of the errors. Those that have no place of their own are summed up. */
static struct cell cell_errors(const struct file_row *row)
{
	static struct table_count counts[FILE_MAX_ERRORS + 1];
	u64 nr_left = row->nr_errors;
	u32 nr = 0;

	for (; nr < FILE_MAX_ERRORS && row->errors[nr].nr; nr++) {
		counts[nr].nr = row->errors[nr].nr;
		os_strscpy(counts[nr].name, name_of(row->errors[nr].error),
			   sizeof(counts[nr].name));
		nr_left -= row->errors[nr].nr;
	}
	if (nr_left)
		counts[nr++] = (struct table_count){ .name = "other", .nr = nr_left };
	return cell_counts(counts, nr);
}

/* Returns the cell of the most frequent error. */
static struct cell cell_error(const struct file_row *row)
{
	if (row->errors[0].nr)
		return cell_text(name_of(row->errors[0].error));
	return row->nr_errors ? cell_text("other") : cell_dash();
}

static void set_times(struct cell cells[NR_COLUMNS], u64 ns, u64 all_ns)
{
	cells[TIME] = cell_percent(pf_min(ns, all_ns), all_ns);
	cells[SECONDS] = cell_nr(ns);
}

static void print_row(const struct file_row *row, u64 all_ns)
{
	char path[FILE_PATH_BYTES];
	struct cell cells[NR_COLUMNS] = {
		[CALLS] = cell_nr(row->nr),
		[ERRORS] = cell_nr(row->nr_errors),
		[CPU_TIME] = cell_nr(strace_cpu_ns(row->cycles, row->off_cycles)),
		[ERROR] = cell_error(row),
		[ERROR_NAMES] = cell_errors(row),
		[PATH] = cell_text(file_path_of(row, path)),
	};

	set_times(cells, os_cycles_to_ns(row->cycles), all_ns);
	if (row->rec)
		table_row(cells);
	else
		table_summary_row(cells);
}

/* Prints the sums of the rows beyond the top, so that the columns add up to the totals. */
static void print_rest(u64 all_ns)
{
	u32 nr = table_nr_others();
	char name[32];
	struct cell cells[NR_COLUMNS] = {
		[CALLS] = cell_nr(table_others_sum(CALLS)),
		[ERRORS] = cell_nr(table_others_sum(ERRORS)),
		[PATH] = cell_text(name),
	};

	if (!nr)
		return;
	os_snprintf(name, sizeof(name), "[%u other%s]", nr, nr == 1 ? "" : "s");
	set_times(cells, table_others_sum(SECONDS), all_ns);
	table_summary_row(cells);
}

static u64 sum_ns(const struct file_view *view)
{
	u64 ns = os_cycles_to_ns(view->others.cycles);

	for (u32 i = 0; i < view->nr_rows; i++)
		ns += os_cycles_to_ns(view->rows[i].cycles);
	return ns;
}

static void print_notes(const struct report *report)
{
	const struct off_snapshot off = off_time_since_reset(&files_off_time);
	struct file_counts lost = files_read_lost();

	if (lost.nr)
		table_note("not in the store: %lu calls of all processes, no room", lost.nr);
	if (report->proc && file_view.nr_unowned)
		table_note("%lu calls of running processes are in no process's table: no room",
			   file_view.nr_unowned);
	report_print_off("counting of files", "off", &off);
}

static void print_table(const struct report *report)
{
	const struct table table = TABLE(columns, .top = report->top, .dense = true);
	const struct file_view *view = &file_view;
	u64 all_ns = sum_ns(view);

	if (!view->all.nr && !files_read_lost().nr)
		return;
	table_begin_top(&table, "Kernel Files", report->top);
	table_note("files: %lu calls of %s got a path, %lu failed", view->all.nr,
		   report->proc ? "this process" : "all processes", view->all.nr_errors);
	table_head();
	for (u32 i = 0; i < view->nr_rows; i++)
		print_row(&view->rows[i], all_ns);
	print_rest(all_ns);
	if (view->others.nr)
		print_row(&view->others, all_ns);
	table_end();
	print_notes(report);
}

void report_print_files(const struct report *report)
{
	files_pin();
	files_make_view(report->proc);
	print_table(report);
	files_unpin();
}

/* Offers the time of failed calls, with the path that has most of it. */
static void offer_errors(const struct finding_scope *scope)
{
	const struct file_view *view = &file_view;
	const struct file_row *most = NULL;
	char failed[FINDING_COUNT_BYTES], calls[FINDING_COUNT_BYTES], times[FINDING_COUNT_BYTES];
	char path[FILE_PATH_BYTES];

	for (u32 i = 0; i < view->nr_rows; i++) {
		if (!most || view->rows[i].error_cycles > most->error_cycles)
			most = &view->rows[i];
	}
	if (!most || !most->errors[0].nr)
		return;
	finding_of_cpu_time(
		scope, strace_cpu_ns(view->all.error_cycles, view->all.error_off_cycles),
		"in calls that failed: %s of %s with a path, %s for %s (%s) [Kernel Files: row %u]",
		finding_count(failed, view->all.nr_errors), finding_count(calls, view->all.nr),
		finding_count(times, most->nr_errors), file_path_of(most, path),
		name_of(most->errors[0].error), (u32)(most - view->rows) + 1);
}

void files_find(const struct finding_scope *scope)
{
	if (!STRACE_HAS_CPU_TIME)
		return;
	files_pin();
	files_make_view(scope->report->proc);
	offer_errors(scope);
	files_unpin();
}
