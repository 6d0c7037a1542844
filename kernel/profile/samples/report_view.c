// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints samples by system call, by task and by CPU: see view.c for what is counted and formats.md
 * for the formats.
 */

#include "samples.h"
#include "../table.h"

/* Prints which samples the table covers. */
void report_print_scope(const struct sample_scope *scope, u64 nr)
{
	u64 elapsed_ns = os_cycles_to_ns(samples_stats(0)->elapsed_cycles);
	char since[REPORT_SINCE_BYTES];

	if (scope->pid) {
		table_note("samples: %lu of this process", nr);
		return;
	}
	if (scope->is_run) {
		table_note("samples: %lu of the run, without idle CPUs and reports", nr);
		return;
	}
	report_since(since, elapsed_ns, heatmap_was_reset());
	table_note("samples: %lu, all CPUs %s", nr, since);
}

void report_begin_view(const struct table *table, const char *title, u32 top,
		       const struct sample_scope *scope)
{
	table_begin_top(table, title, top);
	report_print_scope(scope, report_view.nr_samples);
	table_head();
}

void report_end_view(u32 nr_others, u64 nr_samples, u64 nr_dropped)
{
	table_end_without_total();
	table_note_others(nr_others, nr_samples, "samples");
	if (nr_dropped)
		table_note("no room for %lu samples' rows", nr_dropped);
}

enum {
	C_CALL,
	C_FUNCTION,
	C_NR,
	C_SHARE,
	C_SHARE_OF_CALL,
	C_NR_COLUMNS,
};

static const struct column call_columns[C_NR_COLUMNS] = {
	[C_CALL] = { "System call", "syscall", COLUMN_TEXT, 20 },
	[C_FUNCTION] = { "Function", "function", COLUMN_TEXT, 20 },
	[C_NR] = { "NR", "samples", COLUMN_COUNT, 10 },
	[C_SHARE] = { "%", NULL, COLUMN_PERCENT, 9 },
	[C_SHARE_OF_CALL] = { "% of call", NULL, COLUMN_PERCENT, 9 },
};

/* Prints the sum of a call, or a function in it. */
static void print_call(const struct view_row *call, const struct view_row *row)
{
	char number[REPORT_CALL_BYTES], function[OS_SYMBOL_BYTES];
	const char *name = report_call(number, call->keys[0], call->name);
	struct cell cells[C_NR_COLUMNS] = {
		[C_CALL] = row == call ? cell_text(name) : cell_repeated(name),
		[C_NR] = cell_nr(row->nr),
		[C_SHARE] = cell_percent(row->nr, report_view.nr_samples),
		[C_SHARE_OF_CALL] = cell_percent(row->nr, call->nr),
	};

	if (row != call)
		cells[C_FUNCTION] = cell_text(view_row_name(row, row->keys[1], function));
	table_row(cells);
}

static void print_calls(u32 top, const struct sample_scope *scope)
{
	const struct table table = TABLE(call_columns);
	const struct view_row *call = NULL;
	u32 nr_calls = 0, nr_functions = 0;
	u64 nr_more = 0;

	view_calls(&report_view, scope);
	report_begin_view(&table, "Kernel Heatmap by system call", top, scope);
	for (u32 i = 0; i < report_view.nr_rows; i++) {
		const struct view_row *row = &report_view.rows[i];

		if (!row->keys[1]) {
			call = row;
			nr_functions = 0;
			if (++nr_calls > top)
				nr_more += row->nr;
		} else {
			nr_functions++;
		}
		if (nr_calls <= top && nr_functions <= top)
			print_call(call, row);
	}
	report_end_view(nr_calls > top ? nr_calls - top : 0, nr_more, report_view.nr_dropped);
}

enum {
	T_PID,
	T_TID,
	T_NAME,
	T_NR,
	T_SHARE,
	T_USER,
	T_KERNEL,
	T_IRQ,
	T_IDLE,
	T_NR_COLUMNS,
};

static const struct column task_columns[T_NR_COLUMNS] = {
	[T_PID] = { "pid", "pid", COLUMN_COUNT, 10 },
	[T_TID] = { "tid", "tid", COLUMN_COUNT, 10 },
	[T_NAME] = { "name", "name", COLUMN_TEXT, 15 },
	[T_NR] = { "NR", "samples", COLUMN_COUNT, 10, TOTAL_SUM },
	[T_SHARE] = { "%", NULL, COLUMN_PERCENT, 9 },
	[T_USER] = { "user", "user_samples", COLUMN_COUNT, 10 },
	[T_KERNEL] = { "kernel", "kernel_samples", COLUMN_COUNT, 10 },
	[T_IRQ] = { "irq", "irq_samples", COLUMN_COUNT, 10 },
	[T_IDLE] = { "idle", "idle_samples", COLUMN_COUNT, 10 },
};

static void print_task(const struct view_row *row)
{
	char name[2 * sizeof(u64) + 1] = "";
	struct cell cells[T_NR_COLUMNS] = {
		[T_PID] = cell_nr(row->keys[0] >> 32),
		[T_TID] = cell_nr(row->keys[0] & 0xffffffff),
		[T_NAME] = cell_text(name),
		[T_NR] = cell_nr(row->nr),
		[T_SHARE] = cell_percent(row->nr, report_view.nr_samples),
		[T_USER] = cell_nr(row->nr_class[HEAT_USER]),
		[T_KERNEL] = cell_nr(row->nr_class[HEAT_KERNEL]),
		[T_IRQ] = cell_nr(row->nr_class[HEAT_IRQ]),
		[T_IDLE] = cell_nr(row->nr_class[HEAT_IDLE]),
	};

	memcpy(name, &row->keys[1], 2 * sizeof(u64));
	table_row(cells);
}

static void print_tasks(u32 top, const struct sample_scope *scope)
{
	const struct table table = TABLE(task_columns, .top = top);

	view_tasks(&report_view, scope);
	report_begin_view(&table, "Kernel Heatmap by task", top, scope);
	for (u32 i = 0; i < report_view.nr_rows; i++)
		print_task(&report_view.rows[i]);
	report_end_view(table_nr_others(), table_others_sum(T_NR), report_view.nr_dropped);
}

enum {
	CPU_NR,
	CPU_USER,
	CPU_KERNEL,
	CPU_IRQ,
	CPU_IDLE,
	CPU_ATTEMPTS,
	CPU_STORED,
	CPU_DROPPED,
	CPU_RECORDS,
	CPU_LOG,
	CPU_NR_COLUMNS,
};

static const struct column cpu_columns[CPU_NR_COLUMNS] = {
	[CPU_NR] = { "CPU", "cpu", COLUMN_COUNT, 3 },
	[CPU_USER] = { "user", "user_samples", COLUMN_COUNT, 10 },
	[CPU_KERNEL] = { "kernel", "kernel_samples", COLUMN_COUNT, 10 },
	[CPU_IRQ] = { "irq", "irq_samples", COLUMN_COUNT, 10 },
	[CPU_IDLE] = { "idle", "idle_samples", COLUMN_COUNT, 10 },
	[CPU_ATTEMPTS] = { "attempts", "attempts", COLUMN_COUNT, 10 },
	[CPU_STORED] = { "stored", "stored", COLUMN_COUNT, 10 },
	[CPU_DROPPED] = { "dropped", "dropped", COLUMN_COUNT, 10 },
	[CPU_RECORDS] = { "records", "records", COLUMN_COUNT, 8 },
	[CPU_LOG] = { "log.bytes", "log_bytes", COLUMN_COUNT, 9 },
};

static const struct table cpu_table = TABLE(cpu_columns);

static u64 sum_dropped(const struct sample_stats *stats)
{
	u64 nr = 0;

	for (u32 i = 0; i < NR_SAMPLE_DROPS; i++)
		nr += stats->nr_dropped[i];
	return nr;
}

static void print_cpu(unsigned int cpu)
{
	const struct sample_stats *stats = samples_stats(cpu);
	struct cell cells[CPU_NR_COLUMNS] = {
		[CPU_NR] = cell_nr(cpu),
		[CPU_USER] = cell_nr(stats->nr_class[HEAT_USER]),
		[CPU_KERNEL] = cell_nr(stats->nr_class[HEAT_KERNEL]),
		[CPU_IRQ] = cell_nr(stats->nr_class[HEAT_IRQ]),
		[CPU_IDLE] = cell_nr(stats->nr_class[HEAT_IDLE]),
		[CPU_ATTEMPTS] = cell_nr(stats->nr_attempts),
		[CPU_STORED] = cell_nr(stats->nr_stored),
		[CPU_DROPPED] = cell_nr(sum_dropped(stats) + stats->nr_unread),
		[CPU_RECORDS] = cell_nr(stats->nr_records),
		[CPU_LOG] = cell_nr(stats->log_bytes),
	};

	table_row(cells);
}

static void print_cpus(u32 top, const struct sample_scope *scope)
{
	unsigned int cpu;
	u64 nr = 0;

	os_for_each_cpu(cpu)
		nr += samples_stats(cpu)->nr_attempts;
	table_begin(&cpu_table, "Kernel Heatmap by CPU");
	report_print_scope(scope, nr);
	table_head();
	os_for_each_cpu(cpu)
		print_cpu(cpu);
	table_end_without_total();
}

static const struct {
	const char *name;
	void (*print)(u32 top, const struct sample_scope *scope);
	bool of_machine; /* covers the whole machine even in a process's report */
} views[] = {
	{ "functions", report_print_functions, false },
	{ "calls", print_calls, false },
	{ "tasks", print_tasks, true },
	{ "cpus", print_cpus, true },
};

bool report_is_view(const char *glob)
{
	for (u32 i = 0; i < PF_ARRAY_SIZE(views); i++) {
		if (os_glob_match_list(glob, views[i].name))
			return true;
	}
	return os_glob_match_list(glob, "machine") || os_glob_match_list(glob, "user");
}

void report_print_views(const char *names, u32 top, const struct sample_scope *scope)
{
	static const struct sample_scope machine;

	for (u32 i = 0; i < PF_ARRAY_SIZE(views); i++) {
		if (!os_glob_match_list(names, views[i].name))
			continue;
		views[i].print(top, views[i].of_machine ? &machine : scope);
	}
}
