/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_TABLE_H
#define PROFILE_TABLE_H

/*
 * Tables as data. A profiler describes the columns of its table once and passes its rows one by
 * one, as arrays of cells. A sink turns them into text or JSON. So no profiler draws a rule, pads a
 * column or adds up a total.
 *
 * One table is printed at a time, by these calls in this order:
 *
 *	table_begin(), table_note() for each line about what the table covers,
 *	table_head(), table_row() for each row, table_end() or table_end_without_total(),
 *	table_note() for each remark about its numbers.
 *
 * They allocate nothing and take no lock, so a panic can print tables at any time.
 */

#include "os.h"

#define TABLE_MAX_COLUMNS 20

/* The content of a column. All times are in nanoseconds. */
enum column_kind {
	COLUMN_TEXT,
	COLUMN_COUNT,
	COLUMN_PERCENT,	 /* a part of a whole: "12.34", rounded half up from the exact ratio */
	COLUMN_SECONDS,	 /* a time: "0.000012345", or "0.000012" if the table is of usecs */
	COLUMN_BOUND,	 /* an upper bound of a time: "<= 8us", rounded up to four digits */
	COLUMN_BOUND_NS, /* an upper bound of a time: "<=      8191" */
	COLUMN_ADDRESS,
	COLUMN_ADDRESSES, /* in JSON only */
	COLUMN_COUNTS,	  /* names and their counts: "ENOENT 12, EAGAIN 3" */
};

/* The content of the row of totals, by column. */
enum column_total {
	TOTAL_NOTHING,
	TOTAL_SUM,   /* the sum of the printed rows, at most ~0ull */
	TOTAL_LABEL, /* the word "total" */
	TOTAL_DASH,  /* "-": unknown */
	TOTAL_END,   /* the row of totals, and the rule above it, end before this column */
};

struct column {
	const char *heading; /* NULL: not in text */
	const char *key;     /* the key in JSON, with the unit; NULL: not in JSON */
	enum column_kind kind;
	u8 width; /* a longer value is printed whole */
	enum column_total total;
	u8 wide_width; /* the width in wide tables; 0: the same */
	bool left;     /* left-aligned */
	bool wide;     /* only in wide tables, and in JSON */
};

/* A name with its number in a cell of COLUMN_COUNTS. */
struct table_count {
	char name[24];
	u64 nr;
};

enum cell_state {
	CELL_BLANK, /* a cell that is all zero */
	CELL_VALUE,
	CELL_DASH,     /* "-": unknown */
	CELL_REPEATED, /* the value of a row above: blank in text */
};

struct cell {
	enum cell_state state;
	union {
		u64 nr; /* a count, a time, an address, or the numerator of a percentage */
		const char *text;
		const struct table_count *counts;
		const u64 *addresses;
	};
	u64 whole; /* the denominator of a percentage; the number of counts or addresses */
};

struct table {
	const struct column *columns;
	u32 nr_columns;
	u32 top;      /* the number of rows that table_row() prints; 0: all */
	bool dense;   /* one blank between two columns, not two */
	bool wide;    /* with the columns that are `wide` */
	bool shorten; /* names longer than their column are truncated and end in "~" */
	bool usecs;   /* text has times in microseconds, rounded before they are added up */
	bool no_rules;
};

/* An output format: text, JSON, or another one. */
struct table_sink {
	void (*begin)(const char *title);
	void (*head)(const struct table *table);
	void (*row)(const struct table *table, const struct cell *cells);
	void (*end)(const struct table *table, const struct cell *totals); /* NULL: no totals */
	void (*note)(const char *note);
	void (*restart)(void); /* drops the part of a line that a panic has interrupted */
};

/*
 * Text as in formats.md. An empty line precedes each table, except the first one after
 * table_text_restart(), which also drops a line that is not complete.
 */
extern const struct table_sink table_text;
void table_text_restart(void);

/*
 * One JSON object a line: {"table":"<title>"}, {"note":"<text>"}, or the values of a row by the
 * keys of their columns. Cells that are blank or unknown are null. Integers are exact: one above
 * 2^53 is a string, as are addresses. Text is ASCII; bytes beyond it are \u0080 to \u00ff.
 */
extern const struct table_sink table_json;

/* Selects and restarts the sink of all following tables. On the console, tables are always text. */
void table_set_sink(const struct table_sink *sink);

/* Initializes a table with these columns. Initializers of other fields may follow. */
#define TABLE(columns_, ...)                                                            \
	{                                                                               \
		.columns = columns_, .nr_columns = PF_ARRAY_SIZE(columns_), __VA_ARGS__ \
	}

/* Returns a time as the table's text shows it. */
static inline u64 table_shown_ns(const struct table *table, u64 ns)
{
	return table->usecs ? (ns + 500) / 1000 * 1000 : ns;
}

/* Begins a table. A title of NULL continues the table before, with other columns. */
void table_begin(const struct table *table, const char *title, ...) pf_printf(2, 3);

/* Begins a table whose title ends in "(all)" or "(top #4)". */
void table_begin_top(const struct table *table, const char *title, u32 top);

/* Prints the headings. */
void table_head(void);

/* Prints a row. After table->top rows, counts it as one of the others instead. */
void table_row(const struct cell *cells);

/* Prints a row that sums up others, regardless of table->top. */
void table_summary_row(const struct cell *cells);

/* Return the number of the others, and the sum of their values in a column with TOTAL_SUM. */
u32 table_nr_others(void);
u64 table_others_sum(u32 column);

void table_end(void);
void table_end_without_total(void);

/* Prints how many others there are, and the sum of their counts. Prints nothing if nr is 0. */
void table_note_others(u32 nr, u64 sum, const char *what);

/* Prints a line of at most 511 characters, without a newline at its end. */
void table_note(const char *fmt, ...) pf_printf(1, 2);

/* Make the cells of a row. The texts and counts that they point to are not copied. */
static inline struct cell cell_nr(u64 nr)
{
	return (struct cell){ .state = CELL_VALUE, .nr = nr };
}

static inline struct cell cell_text(const char *text)
{
	return (struct cell){ .state = CELL_VALUE, .text = text };
}

static inline struct cell cell_percent(u64 part, u64 whole)
{
	return (struct cell){ .state = CELL_VALUE, .nr = part, .whole = whole };
}

static inline struct cell cell_counts(const struct table_count *counts, u32 nr)
{
	return (struct cell){ .state = CELL_VALUE, .counts = counts, .whole = nr };
}

static inline struct cell cell_addresses(const u64 *addresses, u32 nr)
{
	return (struct cell){ .state = CELL_VALUE, .addresses = addresses, .whole = nr };
}

static inline struct cell cell_dash(void)
{
	return (struct cell){ .state = CELL_DASH };
}

static inline struct cell cell_repeated(const char *text)
{
	return (struct cell){ .state = CELL_REPEATED, .text = text };
}

#endif
