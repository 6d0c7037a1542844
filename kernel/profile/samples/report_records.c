// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints the store without adding up: a row for each record, with the addresses of its call chain.
 */

#include "samples.h"

#include "../table.h"

enum {
	CPU,
	SAMPLES,
	PID,
	TID,
	COMM,
	CLASS,
	CALL,
	IRQS_OFF,
	TRUNCATED,
	CODE_MAP,
	KERNEL,
	USER,
	NR_COLUMNS,
};

/* A chain begins with the interrupted address; the others are return addresses. */
static const struct column columns[NR_COLUMNS] = {
	[CPU] = { NULL, "cpu", COLUMN_COUNT },
	[SAMPLES] = { NULL, "samples", COLUMN_COUNT },
	[PID] = { NULL, "pid", COLUMN_COUNT },
	[TID] = { NULL, "tid", COLUMN_COUNT },
	[COMM] = { NULL, "comm", COLUMN_TEXT },
	[CLASS] = { NULL, "class", COLUMN_TEXT },
	[CALL] = { NULL, "syscall", COLUMN_TEXT },
	[IRQS_OFF] = { NULL, "irqs_off", COLUMN_COUNT },
	[TRUNCATED] = { NULL, "truncated", COLUMN_TEXT },
	[CODE_MAP] = { NULL, "code_map", COLUMN_COUNT },
	[KERNEL] = { NULL, "kernel", COLUMN_ADDRESSES },
	[USER] = { NULL, "user", COLUMN_ADDRESSES },
};

static const struct table table = TABLE(columns);

static void print_record(unsigned int cpu, const struct sample_record *rec)
{
	static const char *const classes[NR_HEAT_CLASSES] = {
		[HEAT_USER] = "user",
		[HEAT_KERNEL] = "kernel",
		[HEAT_IRQ] = "interrupt",
		[HEAT_IDLE] = "idle",
	};
	char comm[SAMPLE_COMM_BYTES], number[REPORT_CALL_BYTES];
	struct cell cells[NR_COLUMNS] = {
		[CPU] = cell_nr(cpu),
		[SAMPLES] = cell_nr(rec->nr_pinned),
		[PID] = cell_nr(rec->pid),
		[TID] = cell_nr(rec->tid),
		[COMM] = cell_text(comm),
		[CLASS] = cell_text(classes[rec->class]),
		[IRQS_OFF] = cell_nr(!(rec->flags & SAMPLE_IRQS_ON)),
		[CODE_MAP] = cell_nr(rec->code_map),
		[KERNEL] = cell_addresses(rec->pcs, rec->nr_kernel),
		[USER] = cell_addresses(rec->pcs + rec->nr_kernel, rec->nr_user),
	};

	sample_comm(rec, comm);
	if (rec->class == HEAT_KERNEL && rec->syscall != OS_NO_SYSCALL)
		cells[CALL] =
			cell_text(report_call(number, rec->syscall, os_syscall_name(rec->syscall)));
	if (rec->truncated)
		cells[TRUNCATED] = cell_text(report_truncation_reasons[rec->truncated]);
	table_row(cells);
}

void report_print_records(void)
{
	unsigned int cpu;

	table_begin(&table, "Samples");
	os_for_each_cpu(cpu) {
		const struct sample_record *rec = NULL;

		while ((rec = samples_next(cpu, rec)))
			print_record(cpu, rec);
	}
	table_end_without_total();
}
