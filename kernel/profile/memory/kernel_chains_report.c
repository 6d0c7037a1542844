// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints the kernel's memory by call chain: the tables of a report, what programs have left behind,
 * call chains for flame graphs, and all chains as JSON.
 */

#include "kernel_chains.h"

#include "kernel_frees.h"
#include "sum_columns.h"

#include "../stack_store.h"

enum {
	PID = NR_SUM_COLUMNS,
	FREED_BYTES,
	NR_FREED,
	PEAK_BYTES,
	SIZE,
	COMM,
	PLACE,
	NR_COLUMNS,
	/* In the store only: */
	ALLOCATOR = NR_COLUMNS,
	KERNEL,
	NR_RECORD_COLUMNS,
};

#define COLUMNS                                                                           \
	MEMORY_SUM_COLUMNS, KERNEL_CHAIN_COLUMNS,                                         \
		[PEAK_BYTES] = MEMORY_PEAK_COLUMN, [PID] = { NULL, "pid", COLUMN_COUNT }, \
		[FREED_BYTES] = { NULL, "freed_bytes", COLUMN_COUNT },                    \
		[NR_FREED] = { NULL, "freed_objects", COLUMN_COUNT }

static const struct column columns[NR_COLUMNS] = { COLUMNS };
static const struct column record_columns[NR_RECORD_COLUMNS] = {
	COLUMNS,
	[ALLOCATOR] = { NULL, "allocator", COLUMN_TEXT },
	[KERNEL] = { NULL, "kernel", COLUMN_ADDRESSES },
};

#define MAX_CALLERS 4
#define BEFORE	    "[before switch-on]"

const char *const kernel_chain_kinds[MEMORY_NR_KINDS] = {
	[MEMORY_PAGES] = "pages",
	[MEMORY_KMALLOC] = "kmalloc",
};

void kernel_chain_comm(char text[17], const u64 comm[2])
{
	memcpy(text, comm, 16);
	text[16] = '\0';
	report_make_printable(text);
}

void kernel_chain_frame(char *text, size_t size, u64 pc)
{
	u64 start;

	if (!os_symbol_lookup(pc - 1, &start, text, size))
		os_snprintf(text, size, "%#lx", pc);
}

size_t kernel_chain_site(char text[KERNEL_PLACE_BYTES], const struct profile_memory_site *site)
{
	return os_snprintf(text, KERNEL_PLACE_BYTES, "%s (%s:%u)", site->function, site->file,
			   site->line);
}

/*
 * Copies the site and its callers: "a (file.c:7) < b < c". The allocators are left out, and the
 * function that has the site, unless it is a part of its caller.
 */
void kernel_chain_place(char text[KERNEL_PLACE_BYTES], const struct kernel_chain *chain)
{
	const struct profile_memory_site *site = chain->site;
	size_t len = kernel_chain_site(text, site);
	char name[OS_SYMBOL_BYTES];
	u32 nr = 0;

	for (u32 i = 0; i < chain->nr_pcs && nr < MAX_CALLERS; i++) {
		kernel_chain_frame(name, sizeof(name), chain->pcs[i]);
		if (!nr && (os_is_allocator(name) || !strcmp(name, site->function)))
			continue;
		len += os_snprintf(text + len, KERNEL_PLACE_BYTES - len, " < %s", name);
		if (len >= KERNEL_PLACE_BYTES - 1)
			break;
		nr++;
	}
}

/* Sets the cells of a row, without names. */
static void set_sums(struct cell *cells, const struct kernel_chain_row *row)
{
	const struct memory_sums *sums = &row->sums;

	memory_set_sums(cells, sums, &kernel_chain_view.all);
	cells[FREED_BYTES] = cell_nr(sums->bytes - sums->live_bytes);
	cells[NR_FREED] = cell_nr(sums->nr - sums->nr_live);
	cells[PEAK_BYTES] = cell_nr(row->peak_bytes);
	if (row->chain && row->chain->process)
		cells[PID] = cell_nr(stack_process_pid(row->chain->process));
	else
		cells[PID] = cell_dash();
	cells[SIZE] = row->chain ? cell_nr(memory_size_bytes(row->chain->size)) : cell_dash();
}

static void print_row(const struct kernel_chain_row *row)
{
	struct cell cells[NR_COLUMNS];
	char comm[17], place[KERNEL_PLACE_BYTES];

	set_sums(cells, row);
	if (row->chain) {
		kernel_chain_comm(comm, row->chain->comm);
		kernel_chain_place(place, row->chain);
	}
	cells[COMM] = row->chain ? cell_text(comm) : cell_dash();
	cells[PLACE] = cell_text(row->chain ? place : BEFORE);
	table_row(cells);
}

static void print_lost(void)
{
	u64 nr = kernel_chains_read_lost();

	if (nr)
		table_note("no room for the call chains of %lu allocations: %s has them", nr,
			   BEFORE);
}

static void print_table(enum memory_kind kind, const struct report *report)
{
	const struct table table = TABLE(columns, .top = report->top);
	char title[64];

	kernel_chains_make_view(kind, false);
	os_snprintf(title, sizeof(title), "Kernel Memory: %s by call chain",
		    kernel_chain_kinds[kind]);
	table_begin_top(&table, title, report->top);
	table_head();
	for (u32 i = 0; i < kernel_chain_view.nr_rows; i++)
		print_row(&kernel_chain_view.rows[i]);
	table_end();
	table_note_others(table_nr_others(), table_others_sum(LIVE_BYTES), "live bytes");
	table_note("live in all: %lu bytes; the allocator counts %lu",
		   kernel_chain_view.all.live_bytes, kernel_chain_view.allocator_bytes);
}

/* Prints nothing if it was never on. */
void report_print_kernel_chains(const struct report *report)
{
	struct off_snapshot off = off_time_since_reset(&kernel_chains_off_time);

	if (!kernel_chain_view.rows)
		return;
	for (enum memory_kind kind = 0; kind < MEMORY_NR_KINDS; kind++)
		print_table(kind, report);
	print_lost();
	for (enum memory_kind kind = 0; kind < MEMORY_NR_KINDS; kind++)
		report_print_kernel_frees(kind, report);
	report_print_off("recording of the kernel's call chains", "off", &off);
}

/* Prints the view. */
static void print_leaks(const char *title, const char *what, const struct report *report)
{
	const struct table table = TABLE(columns, .top = report->top);

	table_begin_top(&table, title, report->top);
	table_note("%s, by call chain", what);
	table_head();
	for (u32 i = 0; i < kernel_chain_view.nr_rows; i++)
		print_row(&kernel_chain_view.rows[i]);
	table_end();
	table_note_others(table_nr_others(), table_others_sum(LIVE_BYTES), "live bytes");
}

void report_print_kernel_leaks(const struct report *report)
{
	if (!kernel_chain_view.rows)
		return;
	kernel_chains_make_view(MEMORY_KERNEL, true);
	print_leaks("Kernel Memory: left behind", "live now, and not when the run began", report);
	print_lost();
}

void report_print_kernel_leaks_of_process(const struct report *report)
{
	struct off_snapshot off = off_time_since_reset(&kernel_chains_off_time);

	if (!kernel_chain_view.rows || !kernel_chains_are_by_process(report->proc))
		return;
	kernel_chains_make_view_of(stack_process_number(report->proc));
	print_leaks("Kernel Memory: left behind by this process",
		    "allocated by this process and live at its end", report);
	if (pf_read_once(kernel_chains_lost_process))
		table_note("there can be more, of any process: its call chains had no room");
	report_print_off("recording of the kernel's call chains", "off", &off);
}

void report_print_kernel_stacks(void)
{
	char comm[17], frame[OS_SYMBOL_BYTES];

	for (enum memory_kind kind = 0; kind < MEMORY_NR_KINDS; kind++) {
		kernel_chains_make_view(kind, false);
		for (u32 i = 0; i < kernel_chain_view.nr_rows; i++) {
			const struct kernel_chain_row *row = &kernel_chain_view.rows[i];
			const struct kernel_chain *chain = row->chain;

			report_printf("%s", kernel_chain_kinds[kind]);
			if (chain) {
				kernel_chain_comm(comm, chain->comm);
				report_make_foldable(comm);
				report_printf(";%s", comm);
				for (u32 at = chain->nr_pcs; at--;) {
					kernel_chain_frame(frame, sizeof(frame), chain->pcs[at]);
					report_printf(";%s", frame);
				}
			} else {
				report_printf(";[before_switch-on]");
			}
			report_printf(" %lu\n", row->sums.live_bytes);
		}
	}
}

static void print_record(const struct kernel_chain_row *row, enum memory_kind kind)
{
	const struct kernel_chain *chain = row->chain;
	struct cell cells[NR_RECORD_COLUMNS];
	char comm[17], place[KERNEL_PLACE_BYTES];

	set_sums(cells, row);
	if (chain) {
		kernel_chain_comm(comm, chain->comm);
		kernel_chain_site(place, chain->site);
	}
	cells[COMM] = chain ? cell_text(comm) : cell_dash();
	cells[PLACE] = cell_text(chain ? place : BEFORE);
	cells[ALLOCATOR] = cell_text(kernel_chain_kinds[kind]);
	cells[KERNEL] = chain ? cell_addresses(chain->pcs, chain->nr_pcs) : cell_dash();
	table_row(cells);
}

void report_print_kernel_chain_records(void)
{
	const struct table table = TABLE(record_columns);

	table_begin(&table, "Kernel memory by call chain");
	for (enum memory_kind kind = 0; kind < MEMORY_NR_KINDS; kind++) {
		kernel_chains_make_view(kind, false);
		for (u32 i = 0; i < kernel_chain_view.nr_rows; i++)
			print_record(&kernel_chain_view.rows[i], kind);
	}
	table_end_without_total();
	print_lost();
}
