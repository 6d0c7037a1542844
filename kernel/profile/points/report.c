// SPDX-License-Identifier: BSD-2-Clause
/* Prints a snapshot of profile points: the table, the notes below it, and the histograms. */

#include "points.h"

#include "../histogram.h"

/* Sorts by name, and points of the same name in link order. */
static int compare_points(const void *a_, const void *b_)
{
	const struct point_entry *a = a_, *b = b_;
	int order = strcmp(a->name, b->name);

	return order ? order : compare_u64(a->serial, b->serial);
}

enum {
	STATUS,
	NAME,
	TOTAL,
	NR,
	AVG,
	NET,
	ONCPU,
	ONCPU_TOTAL,
	MIN,
	P50,
	P99,
	MAX,
	BUCKETS,
	NR_COLUMNS,
};

static const struct column columns[NR_COLUMNS] = {
	[STATUS] = { "status", "status", COLUMN_TEXT, 7 },
	[NAME] = { "name", "point", COLUMN_TEXT, 20 },
	[TOTAL] = { "total", "total_ns", COLUMN_SECONDS, 16 },
	[NR] = { "nr", "pairs", COLUMN_COUNT, 16 },
	[AVG] = { "avg.ns", "avg_ns", COLUMN_COUNT, 16 },
	[NET] = { "net.ns", "avg_net_ns", COLUMN_COUNT, 12, .wide = true },
	[ONCPU] = { "oncpu.ns", "avg_oncpu_ns", COLUMN_COUNT, 12, .wide = true },
	[ONCPU_TOTAL] = { NULL, "oncpu_ns", COLUMN_COUNT },
	[MIN] = { "min.ns", "min_ns", COLUMN_COUNT, 12, .wide = true },
	[P50] = { "p50.ns", "p50_bound_ns", COLUMN_BOUND_NS, 12, .wide = true },
	[P99] = { "p99.ns", "p99_bound_ns", COLUMN_BOUND_NS, 12, .wide = true },
	[MAX] = { "max.ns", "max_ns", COLUMN_COUNT, 12, .wide = true },
	[BUCKETS] = { NULL, "pairs_by_log2_cycles", COLUMN_COUNTS },
};

static struct histogram histogram_of(const struct point_entry *entry)
{
	return (struct histogram){ .buckets = entry->nr_log2, .nr_buckets = PROFILE_POINT_BUCKETS };
}

static void print_point(const struct point_entry *entry)
{
	u64 nr = entry->nr, oncpu_ns = report_avg_ns(entry->oncpu_ns, nr);
	struct histogram h = histogram_of(entry);
	struct cell cells[NR_COLUMNS] = {
		[STATUS] = cell_text(entry->enabled ? "on" : "off"),
		[NAME] = cell_text(entry->name),
		[TOTAL] = cell_nr(entry->ns),
		[NR] = cell_nr(nr),
		[AVG] = cell_nr(report_avg_ns(entry->ns, nr)),
		[NET] = cell_nr(report_avg_ns(entry->net_ns, nr)),
		[ONCPU] = entry->sleeps ? cell_nr(oncpu_ns) : cell_dash(),
		[ONCPU_TOTAL] = entry->sleeps ? cell_nr(entry->oncpu_ns) : cell_dash(),
		[MIN] = cell_nr(entry->min_ns),
		[P50] = cell_nr(entry->p50_ns),
		[P99] = cell_nr(entry->p99_ns),
		[MAX] = cell_nr(entry->max_ns),
		[BUCKETS] = histogram_cell(&h),
	};

	table_row(cells);
}

/*
 * Prints the numbers of pairs that could not be measured and, if wide, of those that are unusual.
 */
static void print_point_anomalies(const struct point_entry *entry, bool wide)
{
	if (entry->nr_backwards)
		table_note("%s: the clock went backwards in %lu pairs (not included)", entry->name,
			   entry->nr_backwards);
	if (entry->nr_migrated && wide)
		table_note("%s: %lu of %lu pairs ended on another CPU (included)", entry->name,
			   entry->nr_migrated, entry->nr);
	if (entry->nr_unmatched)
		table_note("%s: %lu ends without a start (not included)", entry->name,
			   entry->nr_unmatched);
}

static void print_scope(const struct point_snapshot *snap)
{
	static const char *const since[] = {
		[POINTS_SINCE_BOOT] = "boot",
		[POINTS_SINCE_RESET] = "the last reset",
		[POINTS_SINCE_START] = "its start",
		[POINTS_SINCE_EXEC] = "its execve",
	};
	u64 hundredths = (snap->since_ns + NS_PER_SEC / 200) / (NS_PER_SEC / 100);

	table_note("%s since %s (%lu.%02lu s)", snap->of_process ? "of this process" : "all CPUs",
		   since[snap->since], hundredths / 100, hundredths % 100);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

#define NAMES_WIDTH 64 /* characters of names on a line, unless a single name is longer */

/* Prints the points without a complete pair, by name, on as many lines as they need. */
static void print_incomplete(struct point_snapshot *snap)
{
	const char *head = "no complete pair:";
	char line[NAMES_WIDTH + 1] = "";
	size_t len = 0;

	os_sort(snap->incomplete, snap->nr_incomplete, sizeof(snap->incomplete[0]), compare_names);
	for (u32 i = 0; i < snap->nr_incomplete; i++) {
		const char *name = snap->incomplete[i];
		bool last = i + 1 == snap->nr_incomplete;
		size_t needs = strlen(name) + (last ? 1 : 2);

		if (len && len + needs > NAMES_WIDTH) {
			table_note("%s%s", head, line);
			head = "   ";
			len = 0;
		}
		if (needs > NAMES_WIDTH) {
			table_note("%s %s%s", head, name, last ? "" : ",");
			head = "   ";
			continue;
		}
		len += os_snprintf(line + len, sizeof(line) - len, " %s%s", name, last ? "" : ",");
	}
	if (len)
		table_note("%s%s", head, line);
}

/* Prints the notes below the total: overhead, anomalies, missing threads and points. */
static void print_notes(struct point_snapshot *snap, bool wide)
{
	table_note("overhead: %lu ns a pair, %lu ns of it inside total and avg.ns "
		   "(not subtracted)",
		   snap->empty_pair_ns, snap->empty_reading_ns);
	report_print_off("at least one point", "off", &snap->off);
	for (u32 i = 0; i < snap->nr_entries; i++)
		print_point_anomalies(&snap->entries[i], wide);
	if (snap->nr_threads_lost)
		table_note("no memory for the sums of %u threads: their pairs are missing",
			   snap->nr_threads_lost);
	if (snap->nr_not_shown)
		table_note("no room for %u other points", snap->nr_not_shown);
	if (wide)
		print_incomplete(snap);
}

void report_print_points(struct point_snapshot *snap, bool wide, bool histogram)
{
	const struct table table = TABLE(columns, .wide = wide);

	os_sort(snap->entries, snap->nr_entries, sizeof(snap->entries[0]), compare_points);

	table_begin(&table, "Kernel Profile Points");
	print_scope(snap);
	table_head();
	for (u32 i = 0; i < snap->nr_entries; i++) {
		if (snap->entries[i].nr)
			print_point(&snap->entries[i]);
	}
	table_end_without_total();
	print_notes(snap, wide);
	for (u32 i = 0; histogram && i < snap->nr_entries; i++) {
		struct histogram h = histogram_of(&snap->entries[i]);

		histogram_print(&h, snap->entries[i].name);
	}
}
