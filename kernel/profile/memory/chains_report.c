// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints touched memory and what of it is mapped: the table of a report, call chains for flame
 * graphs, and all records.
 */

#include "chains.h"

#include "os.h"

#include "../table.h"
#include "../user_symbols.h"

#define PLACE_BYTES 160

static const char *const kind_names[OS_NR_MEMORY_KINDS + 1] = {
	OS_MEMORY_KINDS, [MEMORY_KIND_UNKNOWN] = "-"
};

enum {
	BYTES,
	PERCENT,
	PAGES,
	LIVE_BYTES,
	KIND,
	COMM,
	PLACE,
	NR_COLUMNS,
};

static const struct column columns[NR_COLUMNS] = {
	[BYTES] = { "touched.bytes", "touched_bytes", COLUMN_COUNT, 14, .total = TOTAL_SUM },
	[PERCENT] = { "%", NULL, COLUMN_PERCENT, 7 },
	[PAGES] = { "pages", "pages", COLUMN_COUNT, 9, .total = TOTAL_SUM },
	[LIVE_BYTES] = { "live.bytes", "live_bytes", COLUMN_COUNT, 14, .total = TOTAL_SUM },
	[KIND] = { "memory", "kind", COLUMN_TEXT, 19, .total = TOTAL_LABEL, .left = true },
	[COMM] = { "thread", "comm", COLUMN_TEXT, 15, .left = true },
	[PLACE] = { "first touched in", "place", COLUMN_TEXT, 16, .left = true },
};

static u64 bytes_of(u64 nr_pages)
{
	return nr_pages * OS_PAGE_BYTES;
}

static void print_kind(char *text, size_t size, const struct memory_record *rec)
{
	os_snprintf(text, size, "%s%s", kind_names[rec->kind], rec->is_copy ? ", copied" : "");
}

static void print_comm(char text[17], const struct memory_record *rec)
{
	memcpy(text, rec->comm, 16);
	text[16] = '\0';
	report_make_printable(text);
}

/* Copies the program's function and its caller: "a < b". Without any, copies the system call. */
static void print_place(char *text, size_t size, const struct memory_record *rec)
{
	u32 frames[MEMORY_ROW_FUNCTIONS], nr = memory_chain_frames(rec, frames);
	size_t len = 0;

	os_strscpy(text, "-", size);
	for (u32 i = 0; i < nr && len < size / 2; i++) {
		len += os_snprintf(text + len, size - len, i ? " < " : "");
		len += user_symbol_print(text + len, size - len, rec->code_map,
					 memory_chain_pc(rec, frames[i]));
	}
	if (rec->kind == MEMORY_KIND_UNKNOWN)
		os_strscpy(text, "[unknown]", size);
	if (!nr && rec->syscall != OS_NO_SYSCALL)
		os_snprintf(text, size, "[%s]", os_syscall_name(rec->syscall));
}

/* Memory that is not mapped by a page table's entry, such as page tables, has a dash. */
static struct cell live_cell(const struct memory_record *rec, u64 nr_pages)
{
	return rec->kind == MEMORY_KIND_UNKNOWN || os_memory_kind_is_mapped(rec->kind) ?
		       cell_nr(bytes_of(nr_pages)) :
		       cell_dash();
}

static void print_row(const struct memory_chain_row *row)
{
	char kind[32], comm[17], place[PLACE_BYTES];

	print_kind(kind, sizeof(kind), row->most);
	print_comm(comm, row->most);
	print_place(place, sizeof(place), row->most);
	table_row((struct cell[NR_COLUMNS]){
		[BYTES] = cell_nr(bytes_of(row->nr)),
		[PERCENT] = cell_percent(row->nr, memory_chain_view.nr),
		[PAGES] = cell_nr(row->nr),
		[LIVE_BYTES] = live_cell(row->most, row->nr_live),
		[KIND] = cell_text(kind),
		[COMM] = cell_text(comm),
		[PLACE] = cell_text(place),
	});
}

static void print_lost(void)
{
	u64 nr_at_end, nr = memory_chains_read_lost(&nr_at_end);
	u64 nr_chains = memory_page_chains_read_lost();

	if (nr)
		table_note("not in the store: %lu pages of all threads, no room", nr);
	if (nr_at_end)
		table_note("not in the store: %lu live pages of ended processes, no room",
			   nr_at_end);
	if (nr_chains)
		table_note("no room for the numbers of %lu call chains: [unknown] has their live "
			   "pages",
			   nr_chains);
}

static void print_table(const struct report *report)
{
	const struct table table = TABLE(columns, .top = report->top);
	struct off_snapshot off = off_time_since_reset(&memory_chains_off_time);

	table_begin_top(&table, "Memory", report->top);
	table_note("touched first by %s: %lu pages",
		   report->proc	  ? "this process" :
		   report->is_run ? "the run" :
				    "all processes",
		   memory_chain_view.nr);
	if (OS_MAX_PAGE_CHAINS > 1)
		table_note("live, now or when their process ended: %lu pages",
			   memory_chain_view.nr_live);
	table_head();
	for (u32 i = 0; i < memory_chain_view.nr_rows; i++)
		print_row(&memory_chain_view.rows[i]);
	table_end();
	print_lost();
	if (memory_chain_view.nr_dropped || memory_chain_view.nr_live_dropped)
		table_note("no room for the rows of %lu pages, %lu of them live",
			   memory_chain_view.nr_dropped, memory_chain_view.nr_live_dropped);
	table_note_others(table_nr_others(), table_others_sum(PAGES), "pages");
	report_print_off("recording of touched memory", "off", &off);
}

/* Prints nothing if no page is known, as when it was never on. */
void report_print_memory_chains(const struct report *report)
{
	memory_chains_pin();
	memory_chains_make_view(report);
	if (memory_chain_view.nr || !memory_chains_off_time.is_off)
		print_table(report);
	memory_chains_unpin();
}

void report_print_memory_stacks(void)
{
	char kind[32], comm[17], frame[USER_FRAME_BYTES];
	unsigned int cpu;

	memory_chains_pin();
	os_for_each_cpu(cpu) {
		const struct memory_record *rec = NULL;

		while ((rec = memory_chains_next(cpu, rec))) {
			const struct memory_record *chain = memory_chain_of(rec);
			u64 nr = memory_chains_read(rec);

			if (!nr)
				continue;
			print_comm(comm, chain);
			report_make_foldable(comm);
			report_printf("%s", comm);
			for (u32 i = chain->nr_user; i--;)
				report_printf(";%s", user_symbol_frame(frame, chain->code_map,
								       memory_chain_pc(chain, i)));
			print_kind(kind, sizeof(kind), chain);
			report_make_foldable(kind);
			report_printf(";[%s] %lu\n", kind, bytes_of(nr));
		}
	}
	memory_chains_unpin();
}

enum {
	R_CPU,
	R_PAGES,
	R_BYTES,
	R_LIVE_PAGES,
	R_LIVE_BYTES,
	R_PID,
	R_COMM,
	R_KIND,
	R_COPIED,
	R_CALL,
	R_CODE_MAP,
	R_USER,
	R_NR_COLUMNS,
};

static const struct column record_columns[R_NR_COLUMNS] = {
	[R_CPU] = { NULL, "cpu", COLUMN_COUNT },
	[R_PAGES] = { NULL, "pages", COLUMN_COUNT },
	[R_BYTES] = { NULL, "bytes", COLUMN_COUNT },
	[R_LIVE_PAGES] = { NULL, "live_pages", COLUMN_COUNT },
	[R_LIVE_BYTES] = { NULL, "live_bytes", COLUMN_COUNT },
	[R_PID] = { NULL, "pid", COLUMN_COUNT },
	[R_COMM] = { NULL, "comm", COLUMN_TEXT },
	[R_KIND] = { NULL, "kind", COLUMN_TEXT },
	[R_COPIED] = { NULL, "copied", COLUMN_COUNT },
	[R_CALL] = { NULL, "syscall", COLUMN_TEXT },
	[R_CODE_MAP] = { NULL, "code_map", COLUMN_COUNT },
	[R_USER] = { NULL, "user", COLUMN_ADDRESSES },
};

static void print_record(struct cell cpu, u64 process, const struct memory_record *rec, u64 nr,
			 u64 nr_live)
{
	char comm[17], call[REPORT_CALL_BYTES];
	struct cell cells[R_NR_COLUMNS] = {
		[R_CPU] = cpu,
		[R_PAGES] = cell_nr(nr),
		[R_BYTES] = cell_nr(bytes_of(nr)),
		[R_LIVE_PAGES] = cell_nr(nr_live),
		[R_LIVE_BYTES] = cell_nr(bytes_of(nr_live)),
		[R_PID] = cell_nr(stack_process_pid(process)),
		[R_COMM] = cell_text(comm),
		[R_KIND] = cell_text(kind_names[rec->kind]),
		[R_COPIED] = cell_nr(rec->is_copy),
		[R_CODE_MAP] = cell_nr(rec->code_map),
		[R_USER] = cell_addresses(rec->pcs, rec->nr_user),
	};

	print_comm(comm, rec);
	if (rec->syscall != OS_NO_SYSCALL)
		cells[R_CALL] =
			cell_text(report_call(call, rec->syscall, os_syscall_name(rec->syscall)));
	table_row(cells);
}

void report_print_memory_records(void)
{
	const struct table table = TABLE(record_columns);
	const struct memory_mapped *mapped;
	unsigned int cpu;
	u32 nr;

	memory_chains_pin();
	table_begin(&table, "Memory touched first");
	os_for_each_cpu(cpu) {
		const struct memory_record *rec = NULL;

		while ((rec = memory_chains_next(cpu, rec)))
			print_record(cell_nr(cpu), rec->process, memory_chain_of(rec),
				     memory_chains_read(rec), memory_chains_read_at_end(rec));
	}
	mapped = memory_page_chains_read(NULL, &nr);
	for (u32 i = 0; i < nr; i++)
		print_record(cell_dash(), mapped[i].process, memory_page_chain(mapped[i].number), 0,
			     mapped[i].nr);
	table_end_without_total();
	print_lost();
	memory_chains_unpin();
}
