// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints tables. Passes each row to the sink at once, and keeps two sums: of the printed rows, for
 * the row of totals, and of the rows beyond the first table->top. The state is static, because one
 * report is printed at a time. A panic that interrupts a report restarts the sink and begins a new
 * table, and so starts from a clean state.
 */

#include "table.h"

#include "report.h"

#define TITLE_BYTES 320
#define NOTE_BYTES  512

static const struct table *table;
static const struct table_sink *sink = &table_text;
static struct cell totals[TABLE_MAX_COLUMNS], others[TABLE_MAX_COLUMNS];
static u32 nr_rows, nr_others;

void table_set_sink(const struct table_sink *next)
{
	sink = next;
	sink->restart();
}

static const struct table_sink *current_sink(void)
{
	return report_is_on_console() ? &table_text : sink;
}

void table_begin(const struct table *next, const char *title, ...)
{
	static char text[TITLE_BYTES];
	va_list args;

	os_assert(next->nr_columns <= TABLE_MAX_COLUMNS);
	table = next;
	nr_rows = nr_others = 0;
	memset(totals, 0, sizeof(totals));
	memset(others, 0, sizeof(others));
	if (!title)
		return;
	va_start(args, title);
	os_vsnprintf(text, sizeof(text), title, args);
	va_end(args);
	current_sink()->begin(text);
	report_say_turns();
}

void table_begin_top(const struct table *next, const char *title, u32 top)
{
	char rows[16] = "all";

	if (top != REPORT_TOP_ALL)
		os_snprintf(rows, sizeof(rows), "top #%u", top);
	table_begin(next, "%s (%s)", title, rows);
}

void table_head(void)
{
	current_sink()->head(table);
}

/* Adds the cells of the columns that have TOTAL_SUM, as they are shown. */
static void add_row(struct cell *sums, const struct cell *cells)
{
	for (u32 i = 0; i < table->nr_columns; i++) {
		bool is_time = table->columns[i].kind == COLUMN_SECONDS;
		u64 nr = is_time ? table_shown_ns(table, cells[i].nr) : cells[i].nr;

		if (table->columns[i].total != TOTAL_SUM)
			continue;
		sums[i].nr = add_saturating(sums[i].nr, nr);
		sums[i].whole = cells[i].whole;
	}
}

void table_summary_row(const struct cell *cells)
{
	add_row(totals, cells);
	current_sink()->row(table, cells);
}

void table_row(const struct cell *cells)
{
	os_assert(!table->top || nr_rows <= table->top);
	if (table->top && nr_rows >= table->top) {
		nr_others++;
		add_row(others, cells);
		return;
	}
	nr_rows++;
	table_summary_row(cells);
}

u32 table_nr_others(void)
{
	return nr_others;
}

u64 table_others_sum(u32 column)
{
	return others[column].nr;
}

void table_end_without_total(void)
{
	current_sink()->end(table, NULL);
}

void table_end(void)
{
	static const struct cell values[] = {
		[TOTAL_SUM] = { .state = CELL_VALUE },
		[TOTAL_LABEL] = { .state = CELL_VALUE, .text = "total" },
		[TOTAL_DASH] = { .state = CELL_DASH },
		[TOTAL_END] = { .state = CELL_BLANK },
	};

	for (u32 i = 0; i < table->nr_columns; i++) {
		enum column_total kind = table->columns[i].total;

		if (kind == TOTAL_SUM)
			totals[i].state = CELL_VALUE;
		else
			totals[i] = values[kind];
	}
	current_sink()->end(table, totals);
}

void table_note_others(u32 nr, u64 sum, const char *what)
{
	if (nr)
		table_note("%u other%s, with %lu %s", nr, nr == 1 ? "" : "s", sum, what);
}

void table_note(const char *fmt, ...)
{
	static char note[NOTE_BYTES];
	va_list args;

	va_start(args, fmt);
	os_vsnprintf(note, sizeof(note), fmt, args);
	va_end(args);
	current_sink()->note(note);
}
