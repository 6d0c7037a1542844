// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints the stacks of all CPUs, folded, for flame graphs: one in a line, outermost function first.
 * They are merged and copied once, at the start. Then stacks are printed when they are read,
 * because the whole text would take more memory than the samples. Each time, the reader has a turn
 * of its own, and it keeps the tables of symbols in between.
 */

#include "samples.h"

#include "../table.h"

/* Prints a stack with the number of its samples. */
static void print_stack(const struct sample_record *rec)
{
	char comm[SAMPLE_COMM_BYTES], user[USER_FRAME_BYTES];
	char name[OS_SYMBOL_BYTES], number[REPORT_CALL_BYTES];

	sample_comm(rec, comm);
	report_printf("%s", comm);
	if (rec->truncated)
		report_printf(";[cut: %s]", report_truncation_reasons[rec->truncated]);
	for (u32 i = rec->nr_user; i--;)
		report_printf(";%s", sample_user_frame(user, rec, i));
	if (rec->class == HEAT_KERNEL && rec->syscall != OS_NO_SYSCALL)
		report_printf(";[%s]",
			      report_call(number, rec->syscall, os_syscall_name(rec->syscall)));
	for (u32 i = rec->nr_kernel; i--;)
		report_printf(";%s", report_frame(name, rec->pcs[i], i != 0));
	report_printf(" %lu\n", rec->nr_pinned);
}

/* The last merge of report_copy_stacks(). Needs no lock: one report is printed at a time. */
static struct merged_stacks last_merge;

void report_print_last_merge(void)
{
	if (last_merge.nr_records)
		report_printf("\nstacks, when last read: %u of %u records, merged in %lu ns with "
			      "%lu bytes\n",
			      last_merge.nr_stacks, last_merge.nr_records, last_merge.ns,
			      last_merge.nr_slots * sizeof(struct merged_stack));
}

void report_copy_stacks(const void *copy_)
{
	struct stacks_copy **copy = (struct stacks_copy **)copy_;
	struct merged_stacks merged;

	*copy = NULL;
	samples_pin();
	if (!stacks_merge(&merged)) {
		last_merge = merged;
		last_merge.stacks = NULL;
		*copy = stacks_copy(&merged);
		stacks_free(&merged);
	}
	samples_unpin();
	if (!*copy)
		report_printf("# no memory for the stacks of %u records\n", merged.nr_records);
}

#define STACKS_A_TURN 32

void report_print_next_stacks(const void *step_)
{
	struct stacks_step *step = (struct stacks_step *)step_;
	const struct sample_record *rec;

	user_symbols_swap(&step->copy->symbols);
	while (step->nr < STACKS_A_TURN && (rec = stacks_copy_next(step->copy))) {
		print_stack(rec);
		step->nr++;
	}
	user_symbols_swap(&step->copy->symbols);
}
