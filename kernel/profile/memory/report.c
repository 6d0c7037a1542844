// SPDX-License-Identifier: BSD-2-Clause
/* Prints the kernel's memory: pages and kmalloc by site and, in wide reports, by size. */

#include "memory.h"

#include "sum_columns.h"

enum {
	PEAK_BYTES = NR_SUM_COLUMNS, /* in tables by size, the size */
	PLACE,
	NR_COLUMNS,
	SIZE = PEAK_BYTES,
	NR_SIZE_COLUMNS,
};

static const struct column site_columns[NR_COLUMNS] = {
	MEMORY_SUM_COLUMNS,
	[PEAK_BYTES] = MEMORY_PEAK_COLUMN,
	[PLACE] = { "place", "place", COLUMN_TEXT, 0, .total = TOTAL_LABEL, .left = true },
};

static const struct column size_columns[NR_SIZE_COLUMNS] = {
	MEMORY_SUM_COLUMNS,
	[SIZE] = { "size", "size_bytes", COLUMN_COUNT, 10 },
};

static const char *const titles[MEMORY_NR_KINDS] = {
	[MEMORY_PAGES] = "Kernel Memory: pages",
	[MEMORY_KMALLOC] = "Kernel Memory: kmalloc",
};

#define PLACE_BYTES 128

static void print_place(char text[PLACE_BYTES], const struct profile_memory_site *site)
{
	os_snprintf(text, PLACE_BYTES, "%s (%s:%u)", site->function, site->file, site->line);
}

static void print_site(const struct memory_row *row, const struct memory_sums *all)
{
	struct cell cells[NR_COLUMNS];
	char place[PLACE_BYTES];

	print_place(place, row->site);
	memory_set_sums(cells, &row->sums, all);
	cells[PEAK_BYTES] = cell_nr(row->peak_bytes);
	cells[PLACE] = cell_text(place);
	table_row(cells);
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
		struct cell cells[NR_SIZE_COLUMNS];

		if (!snap->sizes[i].nr)
			continue;
		memory_set_sums(cells, &snap->sizes[i], &snap->all);
		cells[SIZE] = cell_nr(memory_size_bytes(i));
		table_row(cells);
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

#define GROWTH_MIN_BYTES    (1ull << 20)
#define GROWTH_MIN_FRACTION 8 /* of what pages of programs have grown */

/* Programs need memory of the kernel, so a part of it is no news. */
static bool has_grown_much(const struct memory_snapshot *snap)
{
	u64 bytes = pf_max(snap->all.live_bytes, snap->peak_bytes);

	return bytes >= GROWTH_MIN_BYTES &&
	       bytes >= snap->programs_peak_bytes / GROWTH_MIN_FRACTION;
}

static u64 tenths_of_mib(u64 bytes)
{
	return (bytes * 10 + (1 << 19)) >> 20;
}

#define MIB(bytes) tenths_of_mib(bytes) / 10, tenths_of_mib(bytes) % 10

enum {
	G_PEAK_BYTES,
	G_PERCENT,
	G_LIVE_BYTES,
	G_BYTES,
	G_NR,
	G_PLACE,
	G_NR_COLUMNS,
};

static const struct column growth_columns[G_NR_COLUMNS] = {
	[G_PEAK_BYTES] = MEMORY_PEAK_COLUMN,
	[G_PERCENT] = { "% peak", NULL, COLUMN_PERCENT, 7 },
	[G_LIVE_BYTES] = { "live.bytes", "live_bytes", COLUMN_COUNT, 14, .total = TOTAL_SUM },
	[G_BYTES] = { "allocated.bytes", "allocated_bytes", COLUMN_COUNT, 16, .total = TOTAL_SUM },
	[G_NR] = { "allocated", "allocated_objects", COLUMN_COUNT, 12, .total = TOTAL_SUM },
	[G_PLACE] = { "place", "place", COLUMN_TEXT, 0, .total = TOTAL_LABEL, .left = true },
};

static void print_growth_of(const struct memory_row *row, u64 all_peak_bytes)
{
	char place[PLACE_BYTES];

	print_place(place, row->site);
	table_row((struct cell[G_NR_COLUMNS]){
		[G_PEAK_BYTES] = cell_nr(row->peak_bytes),
		[G_PERCENT] = cell_percent(row->peak_bytes, all_peak_bytes),
		[G_LIVE_BYTES] = cell_nr(row->sums.live_bytes),
		[G_BYTES] = cell_nr(row->sums.bytes),
		[G_NR] = cell_nr(row->sums.nr),
		[G_PLACE] = cell_text(place),
	});
}

void report_print_kernel_growth(const struct memory_snapshot *snap, const struct report *report)
{
	const struct table table = TABLE(growth_columns, .top = report->top);

	if (!has_grown_much(snap))
		return;
	table_begin_top(&table, "Kernel Memory: growth", report->top);
	table_note("of all processes since the run began: %lu.%lu MiB at the peak, %lu.%lu MiB now",
		   MIB(snap->peak_bytes), MIB(snap->all.live_bytes));
	table_head();
	for (u32 i = 0; i < snap->nr_rows; i++)
		print_growth_of(&snap->rows[i], snap->peak_bytes);
	table_end();
	table_note_others(table_nr_others(), table_others_sum(G_PEAK_BYTES), "bytes at the peak");
	if (snap->nr_not_shown)
		table_note("no room for %u other places", snap->nr_not_shown);
	table_note("not in the table: %lu.%lu MiB of the profilers, this report included",
		   MIB(snap->profilers_live_bytes));
}
