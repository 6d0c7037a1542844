// SPDX-License-Identifier: BSD-2-Clause
/* Prints a snapshot of functions: a row for each function and each function that calls it. */

#include "functions.h"

#include "../table.h"

enum {
	CALLS,
	TOTAL,
	SELF,
	AVG,
	FUNCTION,
	CALLER,
	TOTAL_CYCLES,
	SELF_CYCLES,
	ADDRESS,
	CALLER_ADDRESS,
	NR_COLUMNS,
};

static const struct column columns[NR_COLUMNS] = {
	[CALLS] = { "calls", "calls", COLUMN_COUNT, 12, TOTAL_SUM },
	[TOTAL] = { "total", "total_ns", COLUMN_SECONDS, 14, TOTAL_DASH },
	[SELF] = { "self", "self_ns", COLUMN_SECONDS, 14, TOTAL_SUM },
	[AVG] = { "avg.ns", "avg_ns", COLUMN_COUNT, 10, TOTAL_DASH },
	[FUNCTION] = { "function", "function", COLUMN_TEXT, 24, TOTAL_LABEL, .left = true },
	[CALLER] = { "called.by", "caller", COLUMN_TEXT, 24, TOTAL_END, .left = true },
	[TOTAL_CYCLES] = { NULL, "total_cycles", COLUMN_COUNT },
	[SELF_CYCLES] = { NULL, "self_cycles", COLUMN_COUNT },
	[ADDRESS] = { NULL, "address", COLUMN_ADDRESS },
	[CALLER_ADDRESS] = { NULL, "caller_address", COLUMN_ADDRESS },
};

static const char *name_of(u64 addr, char *name)
{
	u64 start;

	return addr && os_symbol_lookup(addr, &start, name, OS_SYMBOL_BYTES) ? name : "-";
}

static void print_pair(const struct function_pair *pair)
{
	char function[OS_SYMBOL_BYTES], caller[OS_SYMBOL_BYTES];
	u64 ns = os_cycles_to_ns(pair->cycles);
	struct cell cells[NR_COLUMNS] = {
		[CALLS] = cell_nr(pair->nr),
		[TOTAL] = cell_nr(ns),
		[SELF] = cell_nr(os_cycles_to_ns(pair->self_cycles)),
		[AVG] = cell_nr(report_avg_ns(ns, pair->nr)),
		[FUNCTION] = cell_text(name_of(pair->function, function)),
		[CALLER] = cell_text(name_of(pair->caller, caller)),
		[TOTAL_CYCLES] = cell_nr(pair->cycles),
		[SELF_CYCLES] = cell_nr(pair->self_cycles),
		[ADDRESS] = cell_nr(pair->function),
		[CALLER_ADDRESS] = cell_nr(pair->caller),
	};

	table_row(cells);
}

static void print_notes(const struct function_snapshot *snap)
{
	table_note_others(table_nr_others(), table_others_sum(CALLS), "calls");
	if (snap->lost.nr_no_row || snap->nr_no_room)
		table_note("no room for %lu calls (not included)",
			   snap->lost.nr_no_row + snap->nr_no_room);
	if (snap->lost.nr_no_time)
		table_note("no room for the times of %lu calls (not included)",
			   snap->lost.nr_no_time);
	if (snap->lost.nr_in_nmi)
		table_note("%lu calls in NMIs (not included)", snap->lost.nr_in_nmi);
}

void report_print_calls(const struct report *report)
{
	static struct function_snapshot snap; /* one report is made at a time */
	struct table table = TABLE(columns);

	if (!functions_used || report->proc)
		return;
	if (report->top != REPORT_TOP_ALL)
		table.top = report->top;
	functions_snapshot(&snap);
	table_begin_top(&table, "Kernel Function Calls", report->top);
	table_note("CPU time of calls that have returned, all CPUs; with the cost of counting");
	table_head();
	for (u32 i = 0; i < snap.nr_pairs; i++)
		print_pair(&snap.pairs[i]);
	table_end();
	print_notes(&snap);
}
