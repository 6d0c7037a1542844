// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints tables as text, to the byte as in formats.md. Each line is assembled in a buffer and
 * printed by one call. It is printable ASCII, whatever name a program gives itself, and has no
 * blanks at its end.
 */

#include "table.h"

#include "report.h"

#define LINE_BYTES   512
#define COUNTS_BYTES 104 /* after these bytes of a cell of counts, only "other" may follow */

static char line[LINE_BYTES];
static u32 line_len;
static bool is_first = true; /* the next table is the first one */

void table_text_restart(void)
{
	is_first = true;
	line_len = 0;
}

static void text_put(const char *fmt, ...) pf_printf(1, 2);

static void text_put(const char *fmt, ...)
{
	va_list args;
	int len;

	va_start(args, fmt);
	len = os_vsnprintf(line + line_len, sizeof(line) - line_len, fmt, args);
	va_end(args);
	line_len = pf_min(line_len + (u32)len, (u32)sizeof(line) - 1);
}

static void flush_line(void)
{
	while (line_len && line[line_len - 1] == ' ')
		line_len--;
	line[line_len] = '\0';
	report_make_printable(line);
	report_printf("%s\n", line);
	line_len = 0;
}

static void put_bound(u32 width, u64 ns)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	char text[32];
	u32 unit = 0;

	for (; ns > 9999 && unit < PF_ARRAY_SIZE(units) - 1; unit++)
		ns = ns / 1000 + (ns % 1000 != 0);
	os_snprintf(text, sizeof(text), "<= %lu%s", ns, units[unit]);
	text_put("%*s", width, text);
}

/* Puts the first counts with their names, and the sum of the others. */
static void put_counts(const struct table_count *counts, u32 nr_counts)
{
	u32 start = line_len, i = 0;
	u64 nr_left = 0;

	for (; i < nr_counts && line_len - start < COUNTS_BYTES; i++)
		text_put("%s %s %lu", i ? "," : "", counts[i].name, counts[i].nr);
	for (; i < nr_counts; i++)
		nr_left += counts[i].nr;
	if (nr_left)
		text_put(", other %lu", nr_left);
}

static void put_percent(u32 width, u64 part, u64 whole)
{
	u32 percent = report_percent(part, whole);

	text_put("%*u.%02u", width - 3, percent / 100, percent % 100);
}

static void put_seconds(const struct table *table, u32 width, u64 ns)
{
	u64 shown = table_shown_ns(table, ns);

	if (table->usecs)
		text_put("%*lu.%06lu", width - 7, shown / NS_PER_SEC, shown % NS_PER_SEC / 1000);
	else
		text_put("%*lu.%09lu", width - 10, shown / NS_PER_SEC, shown % NS_PER_SEC);
}

static void put_text(const struct column *column, u32 width, const char *text, bool shorten)
{
	char buf[REPORT_COLUMN_BYTES];

	if (shorten)
		text = report_column(buf, text, width);
	text_put(column->left ? "%-*s" : "%*s", width, text);
}

static void put_value(const struct table *table, const struct column *column, u32 width,
		      const struct cell *cell)
{
	switch (column->kind) {
	case COLUMN_TEXT:
		return put_text(column, width, cell->text, table->shorten);
	case COLUMN_COUNT:
		return text_put("%*lu", width, cell->nr);
	case COLUMN_PERCENT:
		return put_percent(width, cell->nr, cell->whole);
	case COLUMN_SECONDS:
		return put_seconds(table, width, cell->nr);
	case COLUMN_BOUND:
		return put_bound(width, cell->nr);
	case COLUMN_BOUND_NS:
		return text_put("<=%*lu", width - 2, cell->nr);
	case COLUMN_ADDRESS:
		return text_put("%016lx", cell->nr);
	case COLUMN_COUNTS:
		return put_counts(cell->counts, cell->whole);
	case COLUMN_ADDRESSES:
		break;
	}
}

static u32 column_width(const struct table *table, const struct column *column)
{
	return table->wide && column->wide_width ? column->wide_width : column->width;
}

/* Puts the gap before a column, unless it is the first one. Returns false if it is not shown. */
static bool next_column(const struct table *table, const struct column *column)
{
	if (!column->heading || (column->wide && !table->wide))
		return false;
	if (column != table->columns)
		text_put("%s", table->dense ? " " : "  ");
	return true;
}

static void print_row(const struct table *table, const struct cell *cells)
{
	for (u32 i = 0; i < table->nr_columns; i++) {
		const struct column *column = &table->columns[i];
		u32 width = column_width(table, column);

		if (!next_column(table, column))
			continue;
		if (cells[i].state == CELL_VALUE)
			put_value(table, column, width, &cells[i]);
		else
			text_put("%*s", width, cells[i].state == CELL_DASH ? "-" : "");
	}
	flush_line();
}

/* Prints a rule below the headings, or above the totals. */
static void print_rule(const struct table *table, bool above_totals)
{
	for (u32 i = 0; i < table->nr_columns; i++) {
		const struct column *column = &table->columns[i];

		if (above_totals && column->total == TOTAL_END)
			break;
		if (!next_column(table, column))
			continue;
		for (u32 n = column_width(table, column); n--;)
			text_put("-");
	}
	flush_line();
}

static void text_begin(const char *title)
{
	if (!is_first)
		report_printf("\n");
	is_first = false;
	report_printf("%s\n", title);
}

static void print_head(const struct table *table)
{
	for (u32 i = 0; i < table->nr_columns; i++) {
		const struct column *column = &table->columns[i];

		if (next_column(table, column))
			text_put(column->left ? "%-*s" : "%*s", column_width(table, column),
				 column->heading);
	}
	flush_line();
	if (!table->no_rules)
		print_rule(table, false);
}

static void text_end(const struct table *table, const struct cell *totals)
{
	if (!table->no_rules)
		print_rule(table, true);
	if (totals)
		print_row(table, totals);
}

static void print_note(const char *note)
{
	text_put("%s", note);
	flush_line();
}

const struct table_sink table_text = {
	.begin = text_begin,
	.head = print_head,
	.row = print_row,
	.end = text_end,
	.note = print_note,
	.restart = table_text_restart,
};
