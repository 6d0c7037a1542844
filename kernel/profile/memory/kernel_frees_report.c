// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints who frees the kernel's memory: the tables of a report, call chains for flame graphs, and
 * all rows as JSON.
 */

#include "kernel_frees.h"

#include "../table.h"

enum {
	BYTES,
	PERCENT,
	NR,
	SIZE,
	COMM,
	FREED_IN,
	ALLOCATED_BY,
	PLACE,
	NR_COLUMNS,
	/* In the store only: */
	ALLOCATOR = NR_COLUMNS,
	KERNEL,
	ALLOCATED_KERNEL,
	NR_RECORD_COLUMNS,
};

#define COLUMNS                                                                               \
	[BYTES] = { "freed.bytes", "freed_bytes", COLUMN_COUNT, 14, .total = TOTAL_SUM },     \
	[PERCENT] = { "% freed", NULL, COLUMN_PERCENT, 7 },                                   \
	[NR] = { "freed", "freed_objects", COLUMN_COUNT, 10, .total = TOTAL_SUM },            \
	[FREED_IN] = { "freed in", "freed_in", COLUMN_TEXT, 40, .left = true },               \
	[ALLOCATED_BY] = { "allocated by", "allocated_comm", COLUMN_TEXT, 15, .left = true }, \
	KERNEL_CHAIN_COLUMNS

static const struct column columns[NR_COLUMNS] = { COLUMNS };
static const struct column record_columns[NR_RECORD_COLUMNS] = {
	COLUMNS,
	[ALLOCATOR] = { NULL, "allocator", COLUMN_TEXT },
	[KERNEL] = { NULL, "kernel", COLUMN_ADDRESSES },
	[ALLOCATED_KERNEL] = { NULL, "allocated_kernel", COLUMN_ADDRESSES },
};

#define WHILE_OFF "[while off]"
#define NO_ROOM	  "[no room]"

struct names {
	char comm[17], allocated_comm[17];
	char freed_in[KERNEL_PLACE_BYTES], place[KERNEL_PLACE_BYTES];
};

/* Copies the callers of the function that frees: "a < b < c". */
static void print_freed_in(char text[KERNEL_PLACE_BYTES], const struct kernel_free *by)
{
	char name[OS_SYMBOL_BYTES];
	size_t len = 0;

	text[0] = '\0';
	for (u32 i = 0; i < by->nr_pcs && len < KERNEL_PLACE_BYTES - 1; i++) {
		kernel_chain_frame(name, sizeof(name), by->pcs[i]);
		if (!len && os_is_allocator(name))
			continue;
		len += os_snprintf(text + len, KERNEL_PLACE_BYTES - len, len ? " < %s" : "%s",
				   name);
	}
}

/* Sets the cells of a row. Returns the counter to which its memory belonged. */
static struct kernel_count set_row(struct cell *cells, const struct kernel_free_row *row,
				   struct names *names)
{
	struct kernel_count of = kernel_chains_find_count(row->by->count);

	kernel_chain_comm(names->comm, row->by->comm);
	print_freed_in(names->freed_in, row->by);
	if (of.chain) {
		kernel_chain_comm(names->allocated_comm, of.chain->comm);
		kernel_chain_place(names->place, of.chain);
	} else {
		kernel_chain_site(names->place, of.site);
	}
	cells[SIZE] = cell_nr(memory_size_bytes(of.size));
	cells[COMM] = cell_text(names->comm);
	cells[FREED_IN] = cell_text(names->freed_in);
	cells[ALLOCATED_BY] = of.chain ? cell_text(names->allocated_comm) : cell_dash();
	cells[PLACE] = cell_text(names->place);
	return of;
}

static u64 counted_bytes(void)
{
	return kernel_frees_view.bytes - kernel_frees_view.off.bytes;
}

static void set_sums(struct cell *cells, const struct kernel_free_row *row)
{
	cells[BYTES] = cell_nr(row->bytes);
	cells[PERCENT] = cell_percent(row->bytes, counted_bytes());
	cells[NR] = cell_nr(row->nr);
}

static void print_row(const struct kernel_free_row *row)
{
	struct cell cells[NR_COLUMNS];
	struct names names;

	set_sums(cells, row);
	set_row(cells, row, &names);
	table_row(cells);
}

/* Prints what is in no row, if it is something. */
static void print_rest(const struct kernel_free_row *row, const char *what, enum memory_kind kind)
{
	struct cell cells[NR_RECORD_COLUMNS] = { [SIZE] = cell_dash(), [COMM] = cell_dash() };

	if (!row->nr)
		return;
	set_sums(cells, row);
	if (row == &kernel_frees_view.off)
		cells[PERCENT] = cell_dash();
	cells[FREED_IN] = cell_text(what);
	cells[ALLOCATOR] = cell_text(kernel_chain_kinds[kind]);
	table_summary_row(cells);
}

void report_print_kernel_frees(enum memory_kind kind, const struct report *report)
{
	const struct table table = TABLE(columns, .top = report->top);
	const struct kernel_frees_view *view = &kernel_frees_view;
	char title[64];

	if (!view->rows)
		return;
	kernel_frees_make_view(kind);
	os_snprintf(title, sizeof(title), "Kernel Memory: %s freed by", kernel_chain_kinds[kind]);
	table_begin_top(&table, title, report->top);
	table_head();
	for (u32 i = 0; i < view->nr_rows; i++)
		print_row(&view->rows[i]);
	print_rest(&view->lost, NO_ROOM, kind);
	print_rest(&view->off, WHILE_OFF, kind);
	table_end();
	table_note_others(table_nr_others(), table_others_sum(BYTES), "freed bytes");
	table_note("freed in all: %lu bytes, of these while it was on: %lu", view->bytes,
		   counted_bytes());
}

void report_print_freed_stacks(void)
{
	const struct kernel_frees_view *view = &kernel_frees_view;
	char comm[17], text[KERNEL_PLACE_BYTES];

	for (enum memory_kind kind = 0; kind < MEMORY_NR_KINDS; kind++) {
		kernel_frees_make_view(kind);
		for (u32 i = 0; i < view->nr_rows; i++) {
			const struct kernel_free *by = view->rows[i].by;

			kernel_chain_comm(comm, by->comm);
			report_make_foldable(comm);
			report_printf("%s;%s", kernel_chain_kinds[kind], comm);
			for (u32 at = by->nr_pcs; at--;) {
				kernel_chain_frame(text, sizeof(text), by->pcs[at]);
				report_printf(";%s", text);
			}
			kernel_chain_site(text, kernel_chains_find_count(by->count).site);
			report_make_foldable(text);
			report_printf(";%s %lu\n", text, view->rows[i].bytes);
		}
	}
}

static void print_record(const struct kernel_free_row *row, enum memory_kind kind)
{
	struct cell cells[NR_RECORD_COLUMNS];
	struct kernel_count of;
	struct names names;

	set_sums(cells, row);
	of = set_row(cells, row, &names);
	kernel_chain_site(names.place, of.site);
	cells[ALLOCATOR] = cell_text(kernel_chain_kinds[kind]);
	cells[KERNEL] = cell_addresses(row->by->pcs, row->by->nr_pcs);
	cells[ALLOCATED_KERNEL] = of.chain ? cell_addresses(of.chain->pcs, of.chain->nr_pcs) :
					     cell_dash();
	table_row(cells);
}

void report_print_free_records(void)
{
	const struct table table = TABLE(record_columns);

	table_begin(&table, "Kernel memory freed");
	for (enum memory_kind kind = 0; kind < MEMORY_NR_KINDS; kind++) {
		kernel_frees_make_view(kind);
		for (u32 i = 0; i < kernel_frees_view.nr_rows; i++)
			print_record(&kernel_frees_view.rows[i], kind);
		print_rest(&kernel_frees_view.lost, NO_ROOM, kind);
		print_rest(&kernel_frees_view.off, WHILE_OFF, kind);
	}
	table_end_without_total();
}
