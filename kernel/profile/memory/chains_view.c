// SPDX-License-Identifier: BSD-2-Clause
/*
 * Adds up the records of touched pages, and the pages that are mapped, in rows: by kind of memory,
 * thread name, and the program's function that touched them with its caller. A library's functions
 * are left out, as the program's author cannot change them: memory that malloc() touches is that of
 * its caller.
 */

#include "chains.h"

#include "../user_symbols.h"

#define KEY_WORDS (__builtin_offsetof(struct memory_chain_row, nr) / sizeof(u64))

struct memory_chain_view memory_chain_view;

u64 memory_chain_pc(const struct memory_record *rec, u32 frame)
{
	return rec->pcs[frame] - (frame != 0);
}

u32 memory_chain_frames(const struct memory_record *rec, u32 frames[MEMORY_ROW_FUNCTIONS])
{
	struct user_symbol symbol;
	u32 nr = 0;

	for (u32 i = 0; i < rec->nr_user && nr < MEMORY_ROW_FUNCTIONS; i++) {
		user_symbol_of_code(rec->code_map, memory_chain_pc(rec, i), &symbol);
		if (symbol.image && !symbol.in_library)
			frames[nr++] = i;
	}
	if (!nr && rec->nr_user)
		frames[nr++] = 0;
	return nr;
}

static void set_key(const struct memory_record *rec, struct memory_chain_row *key)
{
	u32 frames[MEMORY_ROW_FUNCTIONS], nr = memory_chain_frames(rec, frames);
	struct user_symbol symbol;

	key->kind = rec->kind | (u64)rec->is_copy << 8;
	memcpy(key->comm, rec->comm, sizeof(key->comm));
	for (u32 i = 0; i < nr; i++) {
		user_symbol_of_code(rec->code_map, memory_chain_pc(rec, frames[i]), &symbol);
		key->functions[i].image = symbol.image;
		key->functions[i].start = symbol.start;
	}
}

static struct rows table_of_rows(void)
{
	return (struct rows){
		.rows = memory_chain_view.rows,
		.slots = memory_chain_view.slots,
		.nr = &memory_chain_view.nr_rows,
		.row_bytes = sizeof(memory_chain_view.rows[0]),
		.key_words = KEY_WORDS,
		.max = MEMORY_MAX_CHAIN_ROWS,
	};
}

static void add_pages(const struct rows *rows, const struct memory_record *rec, u64 nr, u64 nr_live)
{
	struct memory_chain_row key = { 0 }, *row;

	set_key(rec, &key);
	row = rows_find(rows, &key);
	memory_chain_view.nr += nr;
	memory_chain_view.nr_live += nr_live;
	if (!row) {
		memory_chain_view.nr_dropped += nr;
		memory_chain_view.nr_live_dropped += nr_live;
		return;
	}
	row->nr += nr;
	row->nr_live += nr_live;
	if (!row->most || nr > row->nr_of_most) {
		row->most = rec;
		row->nr_of_most = nr;
	}
}

static int compare_rows(const void *a_, const void *b_)
{
	const struct memory_chain_row *a = a_, *b = b_;
	int order = compare_u64(b->nr, a->nr);

	order = order ? order : compare_u64(b->nr_live, a->nr_live);
	for (u32 i = 0; i < KEY_WORDS && !order; i++)
		order = compare_u64(((const u64 *)a)[i], ((const u64 *)b)[i]);
	return order;
}

static void add_mapped(const struct rows *rows, os_process_t *proc)
{
	const struct memory_mapped *mapped;
	u32 nr;

	mapped = memory_page_chains_read(proc, &nr);
	for (u32 i = 0; i < nr; i++)
		add_pages(rows, memory_page_chain(mapped[i].number), 0, mapped[i].nr);
}

void memory_chains_make_view(const struct report *report)
{
	u64 process = report->proc ? stack_process_number(report->proc) : 0;
	const struct rows rows = table_of_rows();
	unsigned int cpu;

	memset(&memory_chain_view, 0, __builtin_offsetof(struct memory_chain_view, rows));
	os_for_each_cpu(cpu) {
		const struct memory_record *rec = NULL;

		while ((rec = memory_chains_next(cpu, rec))) {
			if (!process || rec->process == process)
				add_pages(&rows, memory_chain_of(rec), memory_chains_read(rec),
					  memory_chains_read_at_end(rec));
		}
	}
	add_mapped(&rows, report->proc);
	rows_sort(&rows, compare_rows);
}
