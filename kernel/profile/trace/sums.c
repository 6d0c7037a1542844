// SPDX-License-Identifier: BSD-2-Clause
/*
 * The tables of events that are counted and of histograms, in the reports of a run and of the
 * machine, and in exports. There is none if nobody has asked for sums.
 */

#include "../profiler.h"
#include "../table.h"
#include "hist.h"

#define KEY_BYTES  160
#define LIST_BYTES 160 /* names of fields, separated by commas */

enum {
	COUNT,
	COUNTED,
	NR_COUNT_COLUMNS,
};

static const struct column count_columns[NR_COUNT_COLUMNS] = {
	[COUNT] = { "events", "events", COLUMN_COUNT, 14, TOTAL_SUM },
	[COUNTED] = { "event", "event", COLUMN_TEXT, 24, TOTAL_LABEL, .left = true },
};

static void copy_event_name(char name[LIST_BYTES], const struct trace_event *event)
{
	os_snprintf(name, LIST_BYTES, "%s:%s", event->system, event->name);
}

static void print_counts(u32 top)
{
	const struct table table = TABLE(count_columns, .top = top);
	const struct trace_event *event;
	char name[LIST_BYTES];

	table_begin_top(&table, "Event Counts", top);
	table_head();
	trace_for_each_event(event) {
		if (!trace_is_counted(event))
			continue;
		copy_event_name(name, event);
		table_row((struct cell[NR_COUNT_COLUMNS]){
			[COUNT] = cell_nr(trace_count_of(event)),
			[COUNTED] = cell_text(name),
		});
	}
	table_end();
	table_note_others(table_nr_others(), table_others_sum(COUNT), "events");
}

enum {
	HITS,
	PERCENT,
	VALUE,
	KEY = VALUE + HIST_MAX_VALUES,
	EVENT = KEY + HIST_MAX_KEYS,
	VALUES,
	KEYS,
	FILTER,
	NR_HIST_COLUMNS,
};

/* In text, values and keys have headings, which are those of the histogram. */
#define VALUE_COLUMN(key)                              \
	{                                              \
		NULL, key, COLUMN_TEXT, 14, TOTAL_DASH \
	}
#define KEY_COLUMN(key)                                  \
	{                                                \
		NULL, key, COLUMN_TEXT, 24, .left = true \
	}

static const struct column hist_columns[NR_HIST_COLUMNS] = {
	[HITS] = { "events", "events", COLUMN_COUNT, 14, TOTAL_SUM },
	[PERCENT] = { "%", NULL, COLUMN_PERCENT, 6, TOTAL_SUM },
	[VALUE] = VALUE_COLUMN("value_1"),
	VALUE_COLUMN("value_2"),
	VALUE_COLUMN("value_3"),
	[KEY] = KEY_COLUMN("key_1"),
	KEY_COLUMN("key_2"),
	KEY_COLUMN("key_3"),
	[EVENT] = { .key = "event", .kind = COLUMN_TEXT },
	[VALUES] = { .key = "values", .kind = COLUMN_TEXT },
	[KEYS] = { .key = "keys", .kind = COLUMN_TEXT },
	[FILTER] = { .key = "filter", .kind = COLUMN_TEXT },
};

/* Copies the names of fields with their forms: "call_site.sym,common_pid". */
static void copy_names(char list[LIST_BYTES], const struct hist_field *fields, u32 nr)
{
	size_t len = 0;

	list[0] = '\0';
	for (u32 i = 0; i < nr && len < LIST_BYTES; i++) {
		const char *form = hist_form_names[fields[i].form];

		len += os_snprintf(list + len, LIST_BYTES - len, "%s%s%s%s", i ? "," : "",
				   fields[i].name, form ? "." : "", form ?: "");
	}
}

/* The texts that every row of a histogram repeats. */
struct hist_names {
	char event[LIST_BYTES], values[LIST_BYTES], keys[LIST_BYTES];
};

static void print_hist_row(const struct trace_hist *hist, const struct hist_names *names,
			   const u64 *row, u64 nr_hits)
{
	char values[HIST_MAX_VALUES][24], keys[HIST_MAX_KEYS][KEY_BYTES];
	struct cell cells[NR_HIST_COLUMNS] = {
		[HITS] = cell_nr(row[hist->key_words]),
		[PERCENT] = cell_percent(row[hist->key_words], nr_hits),
		[EVENT] = cell_text(names->event),
		[VALUES] = cell_text(names->values),
		[KEYS] = cell_text(names->keys),
		[FILTER] = cell_text(hist->has_filter ? hist->filter.text : ""),
	};

	for (u32 i = 0; i < hist->nr_values; i++) {
		os_snprintf(values[i], sizeof(values[i]), hist->values[i].is_signed ? "%ld" : "%lu",
			    row[hist->values[i].at]);
		cells[VALUE + i] = cell_text(values[i]);
	}
	for (u32 i = 0; i < hist->nr_keys; i++) {
		hist_copy_key(keys[i], sizeof(keys[i]), hist, &hist->keys[i], row);
		cells[KEY + i] = cell_text(keys[i]);
	}
	table_row(cells);
}

/* Returns false without memory. A file has all histograms in one table. */
static bool print_hist(const struct trace_event *event, const struct trace_hist *hist, u32 top,
		       bool is_file)
{
	struct hist_rows *all = hist_merge(hist, true);
	struct column columns[NR_HIST_COLUMNS];
	const struct table table = TABLE(columns, .top = top);
	struct hist_names names;

	if (!all)
		return false;
	memcpy(columns, hist_columns, sizeof(columns));
	for (u32 i = 0; i < hist->nr_values; i++)
		columns[VALUE + i].heading = hist->values[i].name;
	for (u32 i = 0; i < hist->nr_keys; i++)
		columns[KEY + i].heading = hist->keys[i].name;
	columns[KEY + hist->nr_keys - 1].total = TOTAL_LABEL;
	copy_event_name(names.event, event);
	copy_names(names.values, hist->values, hist->nr_values);
	copy_names(names.keys, hist->keys, hist->nr_keys);
	if (is_file) {
		table_begin(&table, NULL);
	} else {
		table_begin_top(&table, "Event Histogram", top);
		table_note("%s by %s%s%s", names.event, names.keys, hist->has_filter ? " if " : "",
			   hist->has_filter ? hist->filter.text : "");
	}
	table_head();
	for (u32 i = 0; i < all->nr; i++)
		print_hist_row(hist, &names, rows_at(&all->rows, i), all->nr_hits);
	table_end();
	table_note_others(table_nr_others(), table_others_sum(HITS), "events");
	if (all->nr_lost)
		table_note("%lu events are in no row: there was none free, or an NMI came in a row",
			   all->nr_lost);
	os_free(all);
	return true;
}

static void print_hists(u32 top, bool is_file)
{
	const struct trace_event *event;
	u32 nr_failed = 0;

	/* A thread that an interrupt has interrupted may hold it. */
	if (!poll_trylock(&trace_lock)) {
		table_note("no event histograms: one is being changed");
		return;
	}
	trace_for_each_event(event) {
		for (const struct trace_hist *hist = event->hists; hist; hist = hist->next)
			nr_failed += !print_hist(event, hist, top, is_file);
	}
	poll_unlock(&trace_lock);
	if (nr_failed)
		table_note("no memory for %u event histograms", nr_failed);
}

static bool is_any_counted(void)
{
	const struct trace_event *event;

	trace_for_each_event(event) {
		if (trace_is_counted(event))
			return true;
	}
	return false;
}

static void print(const struct report *report)
{
	if (report->proc)
		return;
	if (is_any_counted())
		print_counts(report->top);
	if (!os_panicking())
		print_hists(report->top, false);
}

static void print_counts_json(const void *unused)
{
	print_counts(REPORT_TOP_ALL);
}

static void print_hists_json(const void *unused)
{
	static const struct table table = TABLE(hist_columns);

	table_begin(&table, "Event Histograms");
	table_head();
	table_end_without_total();
	if (!os_panicking())
		print_hists(REPORT_TOP_ALL, true);
}

static const struct profiler_file files[] = {
	{ "profile/trace_counts.json", .print = print_counts_json, .is_json = true },
	{ "profile/trace_hists.json", .print = print_hists_json, .is_json = true },
	{ 0 },
};

PROFILER(trace_sums) = {
	.name = "trace_sums",
	.place = 36, /* after functions */
	.print = print,
	.files = PROFILER_FILES(files),
};
