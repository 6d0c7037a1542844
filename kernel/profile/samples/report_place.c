// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints samples of one kernel function by address, and those of user code by function and by
 * address.
 */

#include "samples.h"

#include "../user_symbols.h"
#include "../table.h"

enum {
	P_ADDRESS,
	P_PLACE,
	P_NR,
	P_SHARE,
	P_IRQS_OFF,
	P_NR_COLUMNS,
};

static const struct column place_columns[P_NR_COLUMNS] = {
	[P_ADDRESS] = { "Address", "address", COLUMN_ADDRESS, 16 },
	[P_PLACE] = { "Place", "place", COLUMN_TEXT, 22 },
	[P_NR] = { "NR", "samples", COLUMN_COUNT, 10 },
	[P_SHARE] = { "%", NULL, COLUMN_PERCENT, 9 },
	[P_IRQS_OFF] = { "irqs.off", "irqs_off_samples", COLUMN_COUNT, 10 },
};

static const struct table place_table = TABLE(place_columns);

static void print_place(const struct view_row *row, u64 nr)
{
	char place[24];
	struct cell cells[P_NR_COLUMNS] = {
		[P_ADDRESS] = cell_nr(row->keys[0]),
		[P_PLACE] = cell_text(place),
		[P_NR] = cell_nr(row->nr),
		[P_SHARE] = cell_percent(row->nr, nr),
		[P_IRQS_OFF] = cell_nr(row->nr_irqs_off),
	};

	os_snprintf(place, sizeof(place), "+%#lx", row->keys[0] - row->keys[1]);
	table_row(cells);
}

void report_print_function(const char *function)
{
	u64 nr = 0;

	view_function(&report_view, function);
	for (u32 i = 0; i < report_view.nr_rows; i++)
		nr += report_view.rows[i].nr;
	table_begin(&place_table, "Kernel Heatmap of %s: %lu of %lu samples", function, nr,
		    report_view.nr_samples);
	report_print_scope(&(struct sample_scope){ 0 }, report_view.nr_samples);
	table_head();
	for (u32 i = 0; i < report_view.nr_rows; i++)
		print_place(&report_view.rows[i], nr);
	report_end_view(0, 0, report_view.nr_dropped);
}

enum {
	F_ADDRESS,
	F_FUNCTION,
	F_NR,
	F_SHARE,
	F_FILE,
	F_NR_COLUMNS,
};

static const struct column function_columns[F_NR_COLUMNS] = {
	[F_ADDRESS] = { "Address", "address", COLUMN_ADDRESS, 16 },
	[F_FUNCTION] = { "Function", "function", COLUMN_TEXT, 20 },
	[F_NR] = { "NR", "samples", COLUMN_COUNT, 10, TOTAL_SUM },
	[F_SHARE] = { "%", NULL, COLUMN_PERCENT, 9, TOTAL_SUM },
	[F_FILE] = { "File", "file", COLUMN_TEXT, 4, .left = true },
};

/* Without a name, a row has its place in the file. */
static void print_user_function(const struct view_row *row, u64 nr_all)
{
	char name[OS_SYMBOL_BYTES];
	struct cell cells[F_NR_COLUMNS] = {
		[F_ADDRESS] = cell_nr(row->keys[0]),
		[F_FUNCTION] = cell_text(name),
		[F_NR] = cell_nr(row->nr),
		[F_SHARE] = cell_percent(row->nr, nr_all),
		[F_FILE] = cell_text(user_symbol_path(row->keys[1])),
	};

	if (row->name[0])
		os_strscpy(name, row->name, sizeof(name));
	else if (row->keys[1])
		os_snprintf(name, sizeof(name), "+%#lx", row->keys[2]);
	else
		os_strscpy(name, "[unknown]", sizeof(name));
	table_row(cells);
}

void report_print_user_functions(u32 top, const struct sample_scope *scope, u64 nr_all)
{
	const struct table table = TABLE(function_columns, .top = top);
	const struct view *view;

	if (!nr_all)
		return;
	view = view_user_functions(scope);
	table_begin_top(&table, USER_FUNCTIONS, top);
	table_head();
	for (u32 i = 0; i < view->nr_rows; i++)
		print_user_function(&view->rows[i], nr_all);
	report_end_view(table_nr_others(), table_others_sum(F_NR),
			view->nr_dropped + nr_all - view->nr_class[HEAT_USER]);
}

enum {
	U_ADDRESS,
	U_PLACE,
	U_NR,
	U_SHARE,
	U_NR_COLUMNS,
};

static const struct column user_columns[U_NR_COLUMNS] = {
	[U_ADDRESS] = { "Address", "address", COLUMN_ADDRESS, 16 },
	[U_PLACE] = { "File offset", "place", COLUMN_TEXT, 30 },
	[U_NR] = { "NR", "samples", COLUMN_COUNT, 10, TOTAL_SUM },
	[U_SHARE] = { "%", NULL, COLUMN_PERCENT, 9 },
};

/* Prints the row of a user address. proc is NULL if the row is only summed up. */
static void print_user_place(os_process_t *proc, const struct view_row *row, u64 nr)
{
	char path[256], place[288] = "[unknown]";
	struct cell cells[U_NR_COLUMNS] = {
		[U_ADDRESS] = cell_nr(row->keys[0]),
		[U_PLACE] = cell_text(place),
		[U_NR] = cell_nr(row->nr),
		[U_SHARE] = cell_percent(row->nr, nr),
	};
	u64 offset;

	if (proc && os_process_mapping(proc, row->keys[0], path, sizeof(path), &offset))
		os_snprintf(place, sizeof(place), "%s+%#lx", path, offset);
	table_row(cells);
}

void report_print_user(os_process_t *proc, u32 top)
{
	const struct table table = TABLE(user_columns, .top = top);
	struct sample_scope scope = sample_scope(proc);
	u64 nr = 0;

	view_user(&report_view, &scope, os_process_program(proc));
	for (u32 i = 0; i < report_view.nr_rows; i++)
		nr += report_view.rows[i].nr;
	table_begin_top(&table, "Kernel Heatmap of user code", top);
	table_note("samples: %lu of this process since its last execve", nr);
	table_head();
	for (u32 i = 0; i < report_view.nr_rows; i++)
		print_user_place(i < top ? proc : NULL, &report_view.rows[i], nr);
	report_end_view(table_nr_others(), table_others_sum(U_NR), report_view.nr_dropped);
}
