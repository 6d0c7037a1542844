// SPDX-License-Identifier: BSD-2-Clause
/*
 * Adds up the records of calls, one row for each path (rows.h). The key of a row is a hash of its
 * path. If another path has the same one, the next number is tried, so paths never share a row.
 */

#include "files.h"

#include "../../rows.h"

struct file_view file_view;

static struct rows rows_of(struct file_view *view)
{
	return (struct rows){
		.rows = view->rows,
		.slots = view->slots,
		.nr = &view->nr_rows,
		.row_bytes = sizeof(view->rows[0]),
		.key_words = 1,
		.max = FILE_MAX_ROWS,
	};
}

static bool same_path(const struct file_record *a, const struct file_record *b)
{
	return a->nr_words == b->nr_words && a->is_truncated == b->is_truncated &&
	       os_same_words(a->path, b->path, a->nr_words);
}

/* Returns the row of the record's path, or that of the others if it has none. */
static struct file_row *row_of(struct file_view *view, const struct file_record *rec)
{
	const struct rows rows = rows_of(view);
	u64 hash = rec->is_truncated;

	if (rec->has_no_path)
		return &view->others;
	for (u32 i = 0; i < rec->nr_words; i++)
		hash = profile_stack_hash(hash ^ hash >> 32, rec->path[i]);
	for (;; hash++) {
		struct file_row *row = rows_find(&rows, &hash);

		if (!row)
			return &view->others;
		if (!row->rec)
			row->rec = rec;
		if (same_path(row->rec, rec))
			return row;
	}
}

/* Counts errors by number. Those without a free place are in nr_errors only. */
static void add_errors(struct file_row *row, u32 error, u64 nr)
{
	for (struct file_error *e = row->errors; e < row->errors + FILE_MAX_ERRORS; e++) {
		if (e->nr && e->error != error)
			continue;
		e->error = error;
		e->nr += nr;
		return;
	}
}

static void add_calls(struct file_row *row, u32 error, const struct file_counts *counts)
{
	row->nr += counts->nr;
	row->cycles += counts->cycles;
	row->off_cycles += counts->off_cycles;
	if (!error)
		return;
	row->nr_errors += counts->nr;
	row->error_cycles += counts->cycles;
	row->error_off_cycles += counts->off_cycles;
	if (error != FILE_OTHER_ERROR)
		add_errors(row, error, counts->nr);
}

static int compare_paths(const struct file_record *a, const struct file_record *b)
{
	int order = memcmp(a->path, b->path, pf_min(a->nr_words, b->nr_words) * sizeof(u64));

	return order					     ?:
		       compare_u64(a->nr_words, b->nr_words) ?:
		       compare_u64(a->is_truncated, b->is_truncated);
}

static int compare_rows(const void *a_, const void *b_)
{
	const struct file_row *a = a_, *b = b_;

	return compare_u64(b->cycles, a->cycles) ?: compare_paths(a->rec, b->rec);
}

static int compare_errors(const void *a_, const void *b_)
{
	const struct file_error *a = a_, *b = b_;

	return compare_u64(b->nr, a->nr) ?: compare_u64(a->error, b->error);
}

static void sort_errors(struct file_row *row)
{
	os_sort(row->errors, FILE_MAX_ERRORS, sizeof(row->errors[0]), compare_errors);
}

void files_make_view(os_process_t *proc)
{
	struct file_view *view = &file_view;
	const struct rows rows = rows_of(view);
	u64 process = proc ? stack_process_number(proc) : 0;
	unsigned int cpu;

	memset(view, 0, __builtin_offsetof(struct file_view, rows));
	os_for_each_cpu(cpu) {
		const struct file_record *rec = NULL;

		while ((rec = files_next(cpu, rec))) {
			struct file_counts counts = files_read(cpu, rec);

			if (!rec->process)
				view->nr_unowned += counts.nr;
			if (process && rec->process != process)
				continue;
			add_calls(row_of(view, rec), rec->error, &counts);
			add_calls(&view->all, rec->error, &counts);
		}
	}
	rows_sort(&rows, compare_rows);
	for (u32 i = 0; i < view->nr_rows; i++)
		sort_errors(&view->rows[i]);
	sort_errors(&view->others);
}

const char *file_path_of(const struct file_row *row, char text[FILE_PATH_BYTES])
{
	u32 bytes;

	if (!row->rec)
		return "[further paths]";
	bytes = row->rec->nr_words * sizeof(u64);
	memcpy(text, row->rec->path, bytes);
	os_strscpy(text + bytes, row->rec->is_truncated ? "..." : "", sizeof("..."));
	return text;
}
