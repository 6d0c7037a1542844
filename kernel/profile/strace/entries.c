// SPDX-License-Identifier: BSD-2-Clause
/*
 * Makes the rows of a report from the table that snapshot.c has merged: times in nanoseconds,
 * percentiles, and the errors of each row. The merged table is a copy, so no lock is needed.
 * report.c prints the rows.
 */

#include "strace.h"

#include "../histogram.h"

u64 strace_cpu_ns(u64 cycles, u64 off_cycles)
{
	/* Negative if the clocks of the CPUs differ. */
	if ((s64)off_cycles < 0)
		off_cycles = 0;
	return os_cycles_to_ns(cycles - pf_min(off_cycles, cycles));
}

/* Returns an upper bound of the percentile: the end of its bucket, or the longest time. */
static u64 percentile_ns(const struct profile_syscall_row *row, u32 percent)
{
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	struct histogram h = { row->nr_log2, PROFILE_SYSCALL_BUCKETS, PROFILE_BUCKET_BASE_LOG2,
			       row->max_cycles };

	return os_cycles_to_ns(histogram_percentile(&h, percent));
#else
	(void)row;
	(void)percent;
	return 0;
#endif
}

static u32 row_index(u32 row_at)
{
	return (row_at - sizeof(struct profile_syscall_table)) / sizeof(struct profile_syscall_row);
}

/*
 * Errors are sorted by row in two passes. The first pass counts the errors of each row in at_row[].
 * Then at_row[] is turned into the index of each row's first error, and the second pass stores each
 * error at the next index of its row.
 */
static u16 at_row[STRACE_MAX_ROWS];

static void count_errors(const struct profile_syscall_sum *merge)
{
	memset(at_row, 0, sizeof(at_row));
	if (!merge->table->nr_errors)
		return;
	for_each_strace_error(error, merge->table) {
		if (error->key)
			at_row[row_index(strace_error_row(error->key))]++;
	}
}

/* Reserves room for the errors of a row, up to snap->nr_errors, and returns the first index. */
static u32 place_errors(struct strace_snapshot *snap, u32 row_at)
{
	u16 *at = &at_row[row_index(row_at)];
	u32 first_error = snap->nr_errors;

	snap->nr_errors += *at;
	*at = first_error;
	return first_error;
}

static void take_errors(struct strace_snapshot *snap, const struct profile_syscall_sum *merge)
{
	if (!merge->table->nr_errors)
		return;
	for_each_strace_error(error, merge->table) {
		if (error->key)
			snap->errors[at_row[row_index(strace_error_row(error->key))]++] =
				(struct strace_error_entry){
					.nr = error->nr,
					.error = strace_error_number(error->key),
				};
	}
}

/* Adds the entry of a row. Its errors begin at first_error and end at snap->nr_errors. */
static void add_entry(struct strace_snapshot *snap, const struct profile_syscall_row *row, u64 nr,
		      const char *name, u32 first_error)
{
	u64 nr_ended = strace_row_nr_ended(row);

	if (!row->nr_calls)
		return;
	snap->entries[snap->nr_entries++] = (struct strace_entry){
		.nr = nr,
		.name = name,
		.nr_calls = row->nr_calls,
		.nr_errors = row->nr_errors,
		.ns = os_cycles_to_ns(row->cycles),
		.cpu_ns = strace_cpu_ns(row->cycles, strace_row_off_cycles(row)),
		.max_ns = os_cycles_to_ns(strace_row_max_cycles(row)),
		.p50_ns = percentile_ns(row, 50),
		.p99_ns = percentile_ns(row, 99),
		.nr_in_flight = row->nr_calls - pf_min(nr_ended, row->nr_calls),
		.first_error = first_error,
		.nr_error_kinds = snap->nr_errors - first_error,
	};
}

static void add_table_entry(struct strace_snapshot *snap, const struct profile_syscall_table *table,
			    u32 at)
{
	const struct profile_syscall_row *row = strace_row_at(table, at);
	u32 first_error = place_errors(snap, at);

	if (at == strace_others_at(table))
		add_entry(snap, row, STRACE_OTHERS_NR, "[unknown]", first_error);
	else
		add_entry(snap, row, row->nr, os_syscall_name(row->nr), first_error);
}

static void add_return_entry(struct strace_snapshot *snap, const struct profile_return_time *time)
{
	if (!time->cycles)
		return;
	snap->entries[snap->nr_entries++] = (struct strace_entry){
		.nr = STRACE_RETURN_NR,
		.name = "[return to user]",
		.ns = os_cycles_to_ns(time->cycles),
		.max_ns = os_cycles_to_ns(time->max_cycles),
	};
}

void strace_take_entries(struct strace_snapshot *snap, const struct profile_syscall_sum *merge)
{
	snap->nr_backwards = merge->nr_backwards;
	snap->nr_unfollowed = merge->nr_unfollowed;
	snap->nr_forks = merge->nr_forks;
	snap->forked_bytes = merge->forked_bytes;
	snap->nr_entries = 0;
	snap->nr_errors = 0;
	count_errors(merge);
	for_each_strace_row(at, merge->table)
		add_table_entry(snap, merge->table, at);
	take_errors(snap, merge);
	add_entry(snap, merge->spare, STRACE_SPARE_NR, "[no memory]", snap->nr_errors);
	add_return_entry(snap, &merge->returns);
	os_assert(snap->nr_entries <= PF_ARRAY_SIZE(snap->entries));
	os_assert(snap->nr_errors <= PF_ARRAY_SIZE(snap->errors));
}
