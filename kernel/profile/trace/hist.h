/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_TRACE_HIST_H
#define PROFILE_TRACE_HIST_H

/*
 * Histograms of an event, which a hist trigger asks for (Documentation/trace/histogram.rst of
 * Linux 6.1): for each combination of keys, how many events had it, and the sums of fields.
 *
 *	hist_parse.c: command --> struct trace_hist
 *	hist.c: event --> row of the CPU's table
 *	hist_merge.c: tables of all CPUs --> sorted rows
 *	hist_show.c: rows --> text as Linux prints it
 *	sums.c: rows --> tables of reports and exports
 */

#include "../rows.h"
#include "trace.h"

#define HIST_MAX_KEYS	3
#define HIST_MAX_VALUES 3
#define HIST_MAX_SORTS	2
#define HIST_MIN_ROWS	128
#define HIST_MAX_ROWS	16384
#define HIST_DEFAULT	2048 /* rows of a table, as on Linux */

#define HIST_TEXT_WORDS	 8  /* of a text, with a NUL; a longer text is truncated */
#define HIST_STACK_WORDS 16 /* of a call chain; a longer chain is truncated */
#define HIST_KEY_WORDS	 24 /* of all keys */

/* What a key or a value is, and how it is printed. */
enum hist_form {
	HIST_NUMBER,
	HIST_HEX,
	HIST_SYM,
	HIST_SYM_OFFSET,
	HIST_LOG2, /* the smallest n with value <= 2^n */
	HIST_EXECNAME,
	HIST_SYSCALL,
	HIST_TEXT,
	HIST_CPU,
	HIST_STACK,
	HIST_NR_FORMS,
};

/* The words after the dot of a key; NULL: forms without one. */
extern const char *const hist_form_names[HIST_NR_FORMS];

struct hist_field {
	const char *name;
	const struct trace_field *field; /* NULL: HIST_CPU, HIST_STACK */
	enum hist_form form;
	u8 at, words; /* where it is in a row, in words */
	/* The 8 bytes at offset end with the field: first shift left, then right. */
	u32 offset;
	u8 left, right;
	bool is_signed;
};

struct hist_sort {
	const struct hist_field *by; /* NULL: hitcount */
	bool descending;
};

/*
 * A CPU's table. Only the CPU writes it, with interrupts off. An NMI that finds it busy counts its
 * event as lost.
 */
struct hist_table {
	u64 nr_lost;
	bool is_busy;
	u32 nr_rows;
	struct rows rows;
};

struct hist_tables {
	u32 nr;
	struct hist_table *of_cpu[];
};

/* A row has the words of its keys, then the number of events, the sums, and a thread's name. */
#define HIST_COMM_WORDS 2

struct trace_hist {
	struct trace_hist *next; /* of the same event */
	u32 nr_keys, nr_values, nr_sorts;
	struct hist_field keys[HIST_MAX_KEYS], values[HIST_MAX_VALUES];
	struct hist_sort sorts[HIST_MAX_SORTS];
	u32 max_rows, key_words, row_words;
	u32 comm_at; /* 0: rows have no name of a thread */
	bool is_paused;
	bool has_filter;
	struct trace_filter filter;
	struct hist_tables *tables; /* :clear replaces them */
};

struct hist_command {
	bool removes, pauses, continues, clears;
	struct trace_hist *hist; /* which one it is about */
};

/* Parses a command, without blanks around it, into *command, whose hist is zeroed memory. */
struct trace_filter_error hist_parse(const struct trace_event *event, const char *text,
				     struct hist_command *command);

/* hist_merge.c: the rows of all CPUs, sorted as the trigger says or by their number of events. */
struct hist_rows {
	u32 nr;
	u64 nr_hits; /* of all rows */
	u64 nr_lost; /* events without a row */
	struct rows rows;
};

/*
 * Adds up the rows of all CPUs, which go on counting. One caller at a time, with trace_lock held;
 * any context but NMI. Returns NULL without memory; os_free() frees it.
 */
struct hist_rows *hist_merge(const struct trace_hist *hist, bool by_hits);

/* Copies a key of a row as one word or line, without its name. Same contexts. */
void hist_copy_key(char *to, size_t size, const struct trace_hist *hist,
		   const struct hist_field *key, const u64 *row);

/* Copies the name of an address, 0x1234 if it has none. */
#define HIST_SYMBOL_BYTES (OS_SYMBOL_BYTES + 24)
void hist_copy_symbol(char to[HIST_SYMBOL_BYTES], enum hist_form form, u64 addr);

/*
 * Returns the number of frames of a call chain. *first is the one that has the event: before it
 * are the functions that write the event.
 */
u32 hist_find_frames(const u64 *pcs, u32 *first);

/* Prints a trigger as a command. Called with trace_lock held, as is the next one. */
void hist_print_command(os_text_t *text, const struct trace_hist *hist);
/* Prints the histogram. One caller at a time. Returns 0 or -OS_ENOMEM. */
int hist_print(os_text_t *text, const struct trace_hist *hist);

#endif
