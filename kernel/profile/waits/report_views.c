// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints waits by system call, by task and by lock, and the spinning for spinlocks: tables of wide
 * reports, and files. view.c adds the records up.
 */

#include "report_times.h"

enum {
	NAME = NR_TIME_COLUMNS,
	PID,
	WAKER = PID,
	NR_COLUMNS,
};

static const struct column call_columns[] = {
	TIME_COLUMNS,
	[NAME] = { "system.call", "syscall", COLUMN_TEXT, 20, .left = true },
};

static const struct column task_columns[] = {
	TIME_COLUMNS,
	[NAME] = { "name", "name", COLUMN_TEXT, 15, .left = true },
	[PID] = { "pid", "pid", COLUMN_COUNT, 10 },
};

static const struct column lock_columns[] = {
	TIME_COLUMNS,
	[NAME] = { "lock", "lock", COLUMN_TEXT, 22, .left = true },
	[WAKER] = { "released.by", "releaser", COLUMN_TEXT, 20, .left = true },
};

void report_print_wait_calls(const struct report *report)
{
	const struct table table = TABLE(call_columns, .top = report->top);

	report_begin_waits(&table, report, "Kernel Waits by system call");
	for (u32 i = 0; i < wait_view.nr_rows; i++) {
		const struct wait_row *row = &wait_view.rows[i];
		const char *name = row->name[0] ? row->name : os_syscall_name(row->call);
		struct cell cells[NR_COLUMNS];
		char number[REPORT_CALL_BYTES];

		report_set_wait_times(cells, row);
		cells[NAME] = cell_text(report_call(number, row->call, name));
		table_row(cells);
	}
	report_end_waits(TIMES);
}

void report_print_wait_tasks(const struct report *report)
{
	const struct table table = TABLE(task_columns, .top = report->top);

	report_begin_waits(&table, report, "Kernel Waits by task");
	for (u32 i = 0; i < wait_view.nr_rows; i++) {
		const struct wait_row *row = &wait_view.rows[i];
		struct cell cells[NR_COLUMNS];
		char comm[17];

		report_wait_comm(comm, row->comm);
		report_set_wait_times(cells, row);
		cells[NAME] = cell_text(comm);
		cells[PID] = cell_nr(stack_process_pid(row->process));
		table_row(cells);
	}
	report_end_waits(TIMES);
}

/*
 * Prints a lock. `released by` is the waker in its longest record, because a waker has held the
 * lock.
 */
static void print_lock(const struct wait_row *row, os_process_t *proc)
{
	char name[WAIT_NAME_BYTES], by[OS_SYMBOL_BYTES + 48];
	struct wait_row most = { 0 };
	struct cell cells[NR_COLUMNS];

	if (row->most)
		wait_by_reason(row->most, &most);
	most.nr_in_flight = row->nr_in_flight;
	report_wait_name(row, proc, name, sizeof(name));
	if (!proc && row->process)
		os_snprintf(name, sizeof(name), "%s %#lx (pid %u)", row->name, row->addr,
			    stack_process_pid(row->process));
	report_wait_waker(&most, by, sizeof(by));
	report_set_wait_times(cells, row);
	cells[NAME] = cell_text(name);
	cells[WAKER] = cell_text(by);
	table_row(cells);
}

void report_print_wait_locks(const struct report *report)
{
	const struct table table = TABLE(lock_columns, .top = report->top);

	report_begin_waits(&table, report, "Kernel Waits by lock");
	for (u32 i = 0; i < wait_view.nr_rows; i++)
		print_lock(&wait_view.rows[i], report->proc);
	report_end_waits(TIMES);
}

enum {
	SPUN_SECONDS,
	SPUN_TIMES,
	SPUN_LONGEST,
	SPUN_LOCK,
	SPUN_WHERE,
	SPUN_NR_COLUMNS,
};

static const struct column spinlock_columns[SPUN_NR_COLUMNS] = {
	[SPUN_SECONDS] = { "seconds", "spun_ns", COLUMN_SECONDS, 13, TOTAL_SUM },
	[SPUN_TIMES] = { "times", "times", COLUMN_COUNT, 9, TOTAL_SUM },
	[SPUN_LONGEST] = { "longest", "longest_ns", COLUMN_SECONDS, 13, TOTAL_END },
	[SPUN_LOCK] = { "spinlock", "spinlock", COLUMN_TEXT, 22, .left = true },
	[SPUN_WHERE] = { "where", "function", COLUMN_TEXT, 20, .left = true },
};

/* Prints the time that CPUs have spun for spinlocks. It is CPU time, unlike all other waits. */
void report_print_spinlocks(const struct report *report)
{
	const struct table table = TABLE(spinlock_columns, .top = report->top);

	table_begin(&table, "Kernel Spinlocks: time that CPUs have spun");
	table_head();
	for (u32 i = 0; i < wait_view.nr_rows; i++) {
		const struct wait_row *row = &wait_view.rows[i];
		char where[OS_SYMBOL_BYTES];
		const char *function = report_wait_function(row->where, where, sizeof(where));
		struct cell cells[SPUN_NR_COLUMNS] = {
			[SPUN_SECONDS] = cell_nr(os_cycles_to_ns(row->asleep_cycles)),
			[SPUN_TIMES] = cell_nr(row->nr),
			[SPUN_LONGEST] = cell_nr(os_cycles_to_ns(row->max_cycles)),
			[SPUN_LOCK] = cell_text(row->name + (row->name[0] == '&')),
			[SPUN_WHERE] = cell_text(function),
		};

		table_row(cells);
	}
	report_end_waits(SPUN_TIMES);
}

void report_print_wait_view(wait_view_print_fn *print, wait_key_fn *key_of)
{
	waits_pin();
	waits_make_view(NULL, key_of);
	print(&(struct report){ .top = REPORT_TOP_ALL });
	waits_unpin();
}
