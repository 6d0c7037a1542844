// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints the store without adding up: a row for each record, with the addresses of both call
 * chains.
 */

#include "waits.h"

#include "../table.h"

enum {
	CPU,
	WAITS,
	ASLEEP,
	READY,
	LONGEST,
	PID,
	COMM,
	WHAT,
	ADDRESS,
	OBJECT,
	CODE_MAP,
	KERNEL,
	USER,
	WAKER_COMM,
	WAKER_CODE_MAP,
	WAKER_KERNEL,
	WAKER_USER,
	NR_COLUMNS,
};

/*
 * A wait that has not ended has only the kernel's part of its chain. A waker without a name is an
 * interrupt.
 */
static const struct column columns[NR_COLUMNS] = {
	[CPU] = { NULL, "cpu", COLUMN_COUNT },
	[WAITS] = { NULL, "waits", COLUMN_COUNT },
	[ASLEEP] = { NULL, "asleep_ns", COLUMN_COUNT },
	[READY] = { NULL, "ready_ns", COLUMN_COUNT },
	[LONGEST] = { NULL, "longest_ns", COLUMN_COUNT },
	[PID] = { NULL, "pid", COLUMN_COUNT },
	[COMM] = { NULL, "comm", COLUMN_TEXT },
	[WHAT] = { NULL, "what", COLUMN_TEXT },
	[ADDRESS] = { NULL, "address", COLUMN_ADDRESS },
	[OBJECT] = { NULL, "object", COLUMN_TEXT },
	[CODE_MAP] = { NULL, "code_map", COLUMN_COUNT },
	[KERNEL] = { NULL, "kernel", COLUMN_ADDRESSES },
	[USER] = { NULL, "user", COLUMN_ADDRESSES },
	[WAKER_COMM] = { NULL, "waker_comm", COLUMN_TEXT },
	[WAKER_CODE_MAP] = { NULL, "waker_code_map", COLUMN_COUNT },
	[WAKER_KERNEL] = { NULL, "waker_kernel", COLUMN_ADDRESSES },
	[WAKER_USER] = { NULL, "waker_user", COLUMN_ADDRESSES },
};

static const struct table table = TABLE(columns);

static void print_record(unsigned int cpu, const struct wait_record *rec,
			 const struct wait_counts *counts)
{
	const struct wait_record *waker = rec->waker;
	const char *what = rec->kind == WAIT_PREEMPTED ? "a CPU" : rec->name;
	char comm[17], waker_comm[17], object[WAIT_NAME_BYTES];
	struct cell cells[NR_COLUMNS] = {
		[CPU] = cell_nr(cpu),
		[WAITS] = cell_nr(counts->nr),
		[ASLEEP] = cell_nr(os_cycles_to_ns(counts->asleep_cycles)),
		[READY] = cell_nr(os_cycles_to_ns(counts->ready_cycles)),
		[LONGEST] = cell_nr(os_cycles_to_ns(counts->max_cycles)),
		[PID] = cell_nr(stack_process_pid(rec->process)),
		[COMM] = cell_text(comm),
		[CODE_MAP] = cell_nr(rec->code_map),
		[KERNEL] = cell_addresses(rec->pcs, rec->nr_kernel),
		[USER] = cell_addresses(rec->pcs + rec->nr_kernel, rec->nr_user),
	};

	report_wait_comm(comm, rec->comm);
	if (what)
		cells[WHAT] = cell_text(what);
	if (rec->addr)
		cells[ADDRESS] = cell_nr(rec->addr);
	if (rec->addr && report_wait_object(rec->code_map, rec->addr, object, sizeof(object)))
		cells[OBJECT] = cell_text(object);
	if (waker) {
		report_wait_comm(waker_comm, waker->comm);
		if (waker->kind == WAKER_THREAD)
			cells[WAKER_COMM] = cell_text(waker_comm);
		cells[WAKER_CODE_MAP] = cell_nr(waker->code_map);
		cells[WAKER_KERNEL] = cell_addresses(waker->pcs, waker->nr_kernel);
		cells[WAKER_USER] = cell_addresses(waker->pcs + waker->nr_kernel, waker->nr_user);
	}
	table_row(cells);
}

static void print_in_flight(unsigned int cpu, const struct wait_record *rec)
{
	struct wait_counts counts = { 1, rec->asleep_cycles, rec->ready_cycles, rec->max_cycles };

	print_record(cpu, rec, &counts);
}

void report_print_wait_records(void)
{
	unsigned int cpu;

	waits_pin();
	table_begin(&table, "Waits");
	os_for_each_cpu(cpu) {
		const struct wait_record *rec = NULL;

		while ((rec = waits_next(cpu, rec))) {
			struct wait_counts counts = waits_read(cpu, rec);

			if (rec->kind == WAIT_SLEPT || rec->kind == WAIT_PREEMPTED)
				print_record(cpu, rec, &counts);
		}
	}
	waits_visit_in_flight(NULL, print_in_flight);
	table_end_without_total();
	waits_unpin();
}
