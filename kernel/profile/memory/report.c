// SPDX-License-Identifier: BSD-2-Clause
/* Prints the kernel's memory: pages and kmalloc by site and, in wide reports, by size. */

#include "memory.h"

#include "../table.h"

enum {
	LIVE_BYTES,
	PERCENT,
	NR_LIVE,
	BYTES,
	NR,
	PLACE,
	NR_COLUMNS,
};

#define SUM_COLUMNS                                                                          \
	[LIVE_BYTES] = { "live.bytes", "live_bytes", COLUMN_COUNT, 14, .total = TOTAL_SUM }, \
	[PERCENT] = { "% live", NULL, COLUMN_PERCENT, 7 },                                   \
	[NR_LIVE] = { "live", "live_objects", COLUMN_COUNT, 10, .total = TOTAL_SUM },        \
	[BYTES] = { "allocated.bytes", "allocated_bytes", COLUMN_COUNT, 16,                  \
		    .wide_width = 20,  .total = TOTAL_SUM },                                 \
	[NR] = { "allocated", "allocated_objects", COLUMN_COUNT, 12, .total = TOTAL_SUM }

static const struct column site_columns[NR_COLUMNS] = {
	SUM_COLUMNS,
	[PLACE] = { "place", "place", COLUMN_TEXT, 0, .total = TOTAL_LABEL, .left = true },
};

static const struct column size_columns[NR_COLUMNS] = {
	SUM_COLUMNS,
	[PLACE] = { "size", "size_bytes", COLUMN_COUNT, 10 },
};

static const char *const titles[MEMORY_NR_KINDS] = {
	[MEMORY_PAGES] = "Kernel Memory: pages",
	[MEMORY_KMALLOC] = "Kernel Memory: kmalloc",
};

static void print_sums(const struct memory_sums *sums, const struct memory_sums *all,
		       struct cell place)
{
	table_row((struct cell[NR_COLUMNS]){
		[LIVE_BYTES] = cell_nr(sums->live_bytes),
		[PERCENT] = cell_percent(sums->live_bytes, all->live_bytes),
		[NR_LIVE] = cell_nr(sums->nr_live),
		[BYTES] = cell_nr(sums->bytes),
		[NR] = cell_nr(sums->nr),
		[PLACE] = place,
	});
}

static void print_site(const struct memory_row *row, const struct memory_sums *all)
{
	char place[128];

	os_snprintf(place, sizeof(place), "%s (%s:%u)", row->site->function, row->site->file,
		    row->site->line);
	print_sums(&row->sums, all, cell_text(place));
}

static void print_sites(const struct memory_snapshot *snap, enum memory_kind kind,
			const struct report *report)
{
	const struct table table = TABLE(site_columns, .top = report->top);

	table_begin_top(&table, titles[kind], report->top);
	table_head();
	for (u32 i = 0; i < snap->nr_rows; i++)
		print_site(&snap->rows[i], &snap->all);
	table_end();
	table_note_others(table_nr_others(), table_others_sum(LIVE_BYTES), "live bytes");
	table_note("live in all: %lu bytes; the allocator counts %lu", snap->all.live_bytes,
		   snap->allocator_bytes);
	if (snap->nr_not_shown)
		table_note("no room for %u other places", snap->nr_not_shown);
}

static void print_sizes(const struct memory_snapshot *snap, enum memory_kind kind)
{
	const struct table table = TABLE(size_columns);

	table_begin(&table, "%s by size", titles[kind]);
	table_head();
	for (u32 i = 0; i < PROFILE_MEMORY_SIZES; i++) {
		if (snap->sizes[i].nr)
			print_sums(&snap->sizes[i], &snap->all, cell_nr(memory_size_bytes(i)));
	}
	table_end();
}

void report_print_memory_growth(const struct memory_snapshot *snap, enum memory_kind kind)
{
	const struct table table = TABLE(site_columns);

	table_begin(&table, "%s since the mark", titles[kind]);
	table_head();
	for (u32 i = 0; i < snap->nr_rows; i++)
		print_site(&snap->rows[i], &snap->all);
	table_end();
	if (snap->nr_not_shown)
		table_note("no room for %u other places", snap->nr_not_shown);
}

void report_print_memory(const struct memory_snapshot *snap, enum memory_kind kind,
			 const struct report *report)
{
	print_sites(snap, kind, report);
	if (report->wide)
		print_sizes(snap, kind);
}
