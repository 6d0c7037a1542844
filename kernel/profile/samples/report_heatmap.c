// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints samples by function: the heatmap, with notes on sampling below it, and the view by
 * function, which also counts callers.
 */

#include "samples.h"
#include "../table.h"

const char *const report_truncation_reasons[PROFILE_NR_STACK_TRUNCATIONS] = {
	[PROFILE_STACK_TRUNCATED_DEPTH] = "deeper than profile.depth",
	[PROFILE_STACK_TRUNCATED_ENTRY] = "in entry code",
	[PROFILE_STACK_TRUNCATED_STACK] = "off the stack",
	[PROFILE_STACK_TRUNCATED_TEXT] = "a return address that is none",
	[PROFILE_STACK_TRUNCATED_USER_FRAME] = "user code without frame pointers",
	[PROFILE_STACK_TRUNCATED_USER_MEMORY] = "a user's stack that is not in memory",
	[PROFILE_STACK_TRUNCATED_REPORT] = "in a report of the profiler",
	[PROFILE_STACK_TRUNCATED_ROOM] = "to make room",
};

const char *const report_drop_reasons[NR_SAMPLE_DROPS] = {
#define SAMPLE_DROP_TEXT(name, text) [DROP_##name] = text,
	SAMPLE_DROPS(SAMPLE_DROP_TEXT)
#undef SAMPLE_DROP_TEXT
};

/* The columns of the heatmap, and of the view by function, which has all of them. */
enum {
	ADDRESS,
	FUNCTION,
	NR,
	SHARE,
	NR_HEATMAP_COLUMNS,
	INCLUSIVE = NR_HEATMAP_COLUMNS,
	INCLUSIVE_SHARE,
	IRQS_OFF,
	NR_COLUMNS,
};

static const struct column columns[NR_COLUMNS] = {
	[ADDRESS] = { "Address", "address", COLUMN_ADDRESS, 16 },
	[FUNCTION] = { "Function", "function", COLUMN_TEXT, 20 },
	[NR] = { "NR", "samples", COLUMN_COUNT, 10, TOTAL_SUM },
	[SHARE] = { "%", NULL, COLUMN_PERCENT, 9, TOTAL_SUM },
	[INCLUSIVE] = { "inclusive", "inclusive_samples", COLUMN_COUNT, 10 },
	[INCLUSIVE_SHARE] = { "%", NULL, COLUMN_PERCENT, 9 },
	[IRQS_OFF] = { "irqs.off", "irqs_off_samples", COLUMN_COUNT, 10 },
};

static void print_functions(const struct view *view, u32 top, u64 nr_all)
{
	char name[OS_SYMBOL_BYTES];

	for (u32 i = 0; i < view->nr_rows; i++) {
		const struct view_row *row = &view->rows[i];
		bool is_shown = i < top; /* a row that is only summed up needs no name */
		struct cell cells[NR_COLUMNS] = {
			[ADDRESS] = cell_nr(row->keys[0]),
			[FUNCTION] =
				cell_text(is_shown ? view_row_name(row, row->keys[0], name) : ""),
			[NR] = cell_nr(row->nr),
			[SHARE] = cell_percent(row->nr, nr_all),
			[INCLUSIVE] = cell_nr(row->nr_inclusive),
			[INCLUSIVE_SHARE] = cell_percent(row->nr_inclusive, nr_all),
			[IRQS_OFF] = cell_nr(row->nr_irqs_off),
		};

		table_row(cells);
	}
}

/* Prints the number of truncated call chains, by reason. */
static void print_truncations(const struct view *view)
{
	u64 nr = 0;

	for (u32 i = PROFILE_STACK_WHOLE + 1; i < PROFILE_NR_STACK_TRUNCATIONS; i++)
		nr += view->nr_truncated[i];
	if (!nr)
		return;
	table_note("cut chains: %lu of %lu", nr, view->nr_samples);
	for (u32 i = PROFILE_STACK_WHOLE + 1; i < PROFILE_NR_STACK_TRUNCATIONS; i++) {
		if (view->nr_truncated[i])
			table_note("%16lu  %s", view->nr_truncated[i],
				   report_truncation_reasons[i]);
	}
}

void report_print_functions(u32 top, const struct sample_scope *scope)
{
	const struct table table = TABLE(columns, .top = top);

	view_functions(&report_view, scope);
	report_begin_view(&table, "Kernel Heatmap by function", top, scope);
	print_functions(&report_view, top, report_view.nr_samples);
	report_end_view(table_nr_others(), table_others_sum(NR), report_view.nr_dropped);
	print_truncations(&report_view);
}

/* Prints the dropped samples, by reason, in one line. They add up to attempts minus stored. */
static void print_drops(const struct heat_snapshot *snap)
{
	u64 nr = snap->nr_unread;
	char line[256];
	size_t len = 0;

	for (u32 i = 0; i < NR_SAMPLE_DROPS; i++) {
		if (!snap->nr_dropped_by[i])
			continue;
		nr += snap->nr_dropped_by[i];
		len += os_snprintf(line + len, sizeof(line) - len, "%s%lu %s", len ? ", " : "",
				   snap->nr_dropped_by[i], report_drop_reasons[i]);
	}
	if (snap->nr_unread)
		os_snprintf(line + len, sizeof(line) - len, "%s%lu while they were counted",
			    len ? ", " : "", snap->nr_unread);
	if (nr)
		table_note("not in the store: %lu of %lu samples: %s", nr, snap->nr_attempts, line);
}

/* Prints the cost of sampling. */
static void print_self(const struct heat_snapshot *snap)
{
	u32 percent = report_percent(snap->self_ns, snap->cpu_ns);

	if (snap->self_ns)
		table_note("sampling cost: %u.%02u %% of CPU time, %lu ns a sample", percent / 100,
			   percent % 100, report_avg_ns(snap->self_ns, snap->nr_attempts));
}

static u64 sum(const u64 nr_class[NR_HEAT_CLASSES])
{
	u64 nr = 0;

	for (u32 i = 0; i < NR_HEAT_CLASSES; i++)
		nr += nr_class[i];
	return nr;
}

#define CLASSES_BYTES 128

static void print_classes(char text[CLASSES_BYTES], const u64 nr_class[NR_HEAT_CLASSES])
{
	static const char *const names[] = {
		[HEAT_USER] = "user",
		[HEAT_KERNEL] = "kernel",
		[HEAT_IRQ] = "interrupt",
		[HEAT_IDLE] = "idle",
	};

	report_kinds(text, CLASSES_BYTES, true, names, nr_class, NR_HEAT_CLASSES);
}

/* Prints the lines below the title: number and classes of the samples, and their source. */
static void print_scope(const struct heat_snapshot *snap)
{
	u64 nr = sum(snap->nr_class), nr_own = sum(snap->nr_scope_class);
	char since[REPORT_SINCE_BYTES], classes[CLASSES_BYTES];

	report_since(since, snap->elapsed_ns, snap->was_reset);
	print_classes(classes, snap->nr_class);
	table_note("samples: %lu, all CPUs %s%s", nr, since, classes);
	if (snap->scope.pid) {
		print_classes(classes, snap->nr_scope_class);
		table_note("of this process: %lu%s", nr_own, nr_own == nr ? "" : classes);
	}
	if (snap->scope.is_run) {
		print_classes(classes, snap->nr_scope_class);
		table_note("of the run, without idle CPUs and reports: %lu%s", nr_own,
			   nr_own == nr ? "" : classes);
	}
	report_print_source(&snap->source);
}

/* Prints a row for samples of several functions, or of no function. */
static void print_summary(const char *name, u64 nr, u64 nr_all)
{
	struct cell cells[NR_HEATMAP_COLUMNS] = {
		[ADDRESS] = cell_nr(0),
		[FUNCTION] = cell_text(name),
		[NR] = cell_nr(nr),
		[SHARE] = cell_percent(nr, nr_all),
	};

	if (nr)
		table_summary_row(cells);
}

void report_print_heatmap(const struct heat_snapshot *snap, u32 top, bool wide)
{
	const struct table table = {
		.columns = columns,
		.nr_columns = NR_HEATMAP_COLUMNS,
		.top = top,
		.shorten = !wide,
	};
	u64 nr_all = sum(snap->nr_scope_class);
	char others[32];

	table_begin_top(&table, "Kernel Heatmap", top);
	print_scope(snap);
	table_head();
	print_functions(snap->view, top, nr_all);
	os_snprintf(others, sizeof(others), "[%u other%s]", table_nr_others(),
		    table_nr_others() == 1 ? "" : "s");
	print_summary(others, table_others_sum(NR), nr_all);
	print_summary("[dropped]", snap->nr_dropped, nr_all);
	table_end();
}

void report_print_heatmap_notes(const struct heat_snapshot *snap, bool wide)
{
	report_print_off("sampling", "off", &snap->source.off);
	report_print_off("sampling", "at another rate", &snap->source.borrowed);
	if (snap->nr_process_drops)
		table_note("not in this table: %lu of this process's samples, which had no room",
			   snap->nr_process_drops);
	if (snap->without_machine_notes)
		return;
	report_print_source_notes(&snap->source, wide);
	print_drops(snap);
	print_self(snap);
}
