// SPDX-License-Identifier: BSD-2-Clause
/*
 * Copies tables for reports while their threads run, and merges the copies into one table. The
 * sequence counter seq is odd while a call is in flight. If it changes while a row is copied, the
 * row is copied again.
 *
 * The times in a row are negative while a call of the row is in flight
 * (profile_strace_begin_time()); then the reader adds the call's time so far. Nothing but the sign
 * decides this. A writer can be stopped between two of its stores, because a report interrupts it
 * or the host stops its CPU. Even then, a call that has ended must not seem to go on, and its time
 * must not be lost.
 *
 * A call that is not in the histogram has not ended: it is in flight, or waits for a signal handler
 * to return.
 */

#include "strace.h"

#define READ_TRIES  64
#define ROWS_A_STEP 16

/* Room for the largest number of rows and of errors. */
#define MERGE_BYTES                                             \
	(sizeof(struct profile_syscall_table) +                 \
	 STRACE_MAX_ROWS * sizeof(struct profile_syscall_row) + \
	 STRACE_MAX_ERRORS * sizeof(struct strace_error))

PF_BUILD_BUG_ON(MERGE_BYTES / PROFILE_INDEX_UNIT > 1 << 16);

/* The table into which a report merges all others, guarded by lists_lock. */
static char merge_bytes[MERGE_BYTES] pf_aligned(16);
static struct profile_syscall_row merge_spare;
static struct profile_syscall_sum merge = { .spare = &merge_spare };

struct totals {
	u64 nr_calls, nr_errors, cycles, off_cycles;
};

static struct totals totals; /* of all calls merged since the last strace_take_totals() */

void strace_clear_merge(void)
{
	struct profile_syscall_table *table = (struct profile_syscall_table *)merge_bytes;

	os_assert_held(&lists_lock);
	if (!merge.table) {
		strace_table_init(table, sizeof(merge_bytes), STRACE_MAX_ERRORS);
		table->fixed = true;
		merge.table = table;
	}
	strace_sum_clear(&merge);
	totals = (struct totals){ 0 };
}

static void add_row_totals(struct totals *to, const struct profile_syscall_row *row)
{
	to->nr_calls += row->nr_calls;
	to->nr_errors += row->nr_errors;
	to->cycles += row->cycles;
	to->off_cycles += strace_row_off_cycles(row);
}

static void add_sum_totals(struct totals *to, const struct profile_syscall_sum *sum)
{
	if (sum->table) {
		for_each_strace_row(at, sum->table)
			add_row_totals(to, strace_row_at(sum->table, at));
	}
	if (strace_sum_spare(sum))
		add_row_totals(to, sum->spare);
	to->cycles += sum->returns.cycles;
	to->off_cycles += sum->returns.cycles;
}

static struct strace_totals totals_in_ns(const struct totals *from)
{
	return (struct strace_totals){
		.nr_calls = from->nr_calls,
		.nr_errors = from->nr_errors,
		.ns = os_cycles_to_ns(from->cycles),
		.cpu_ns = STRACE_HAS_CPU_TIME ? strace_cpu_ns(from->cycles, from->off_cycles) : 0,
	};
}

/*
 * Copies errors and ended calls before calls: the copy never has more of them than calls. The
 * barriers pair with those between the stores of profile_strace_begin_time() and
 * profile_strace_begin(). Without the first, times could be negative before the start is known.
 */
static void copy_row(const struct profile_syscall_row *row, struct profile_syscall_row *copy)
{
	copy->nr = row->nr;
	copy->cycles = pf_read_once(row->cycles);
	pf_rmb();
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	copy->off_cycles = pf_read_once(row->off_cycles);
	copy->max_cycles = pf_read_once(row->max_cycles);
	for (u32 i = 0; i < PROFILE_SYSCALL_BUCKETS; i++)
		copy->nr_log2[i] = pf_read_once(row->nr_log2[i]);
#endif
	copy->nr_errors = pf_read_once(row->nr_errors);
	pf_rmb();
	copy->nr_calls = pf_read_once(row->nr_calls);
}

/* Adds the time since start, when the call in flight began, to those sums that are negative. */
static void add_flight(const struct profile_task *pt, struct profile_moment start,
		       struct profile_syscall_row *copy)
{
	struct profile_moment time = strace_span(strace_from(pt, start), strace_to(pt));

#ifdef CONFIG_PROFILE_STRACE_DETAIL
	if ((s64)copy->cycles < 0)
		copy->max_cycles = pf_max(copy->max_cycles, time.cycles);
	if ((s64)copy->off_cycles < 0)
		copy->off_cycles += start.off_cycles + time.off_cycles;
#endif
	if ((s64)copy->cycles < 0)
		copy->cycles += start.cycles + time.cycles;
}

/*
 * Copies a row of a running thread. If the thread changes the row in every try, the copy may be off
 * by one call.
 */
static void read_row(const struct profile_task *pt, const struct profile_syscall_row *row,
		     struct profile_syscall_row *copy)
{
	struct profile_moment start;
	int tries = READ_TRIES;
	u64 seq;

	for (;;) {
		/*
		 * Pairs with the barriers in profile_strace_begin() and profile_strace_exit(): if
		 * seq is the same before and after, the copy is of one state of the row.
		 */
		seq = pf_load_acquire(&pt->strace.seq);
		copy_row(row, copy);
		start = strace_start(pt);
		pf_mb(); /* the copy before the second look at seq */
		if (pf_read_once(pt->strace.seq) == seq || !--tries)
			break;
		os_cpu_relax();
	}
	if ((s64)(copy->cycles | strace_row_off_cycles(copy)) < 0)
		add_flight(pt, start, copy);
}

/* Merges counters that were copied from a row of a thread. */
static void add_row(const struct profile_task *pt, const struct profile_syscall_row *row,
		    struct profile_syscall_row *counters)
{
	add_row_totals(&totals, counters);
	strace_sum_add_row(&merge, &pt->strace.calls, row, counters);
}

/* Merges the time off a CPU on the way back to user mode. It has the form of a row. */
static void merge_returns(const struct profile_task *pt)
{
	struct profile_return_time copy = { pf_read_once(pt->strace.calls.returns.cycles),
					    pf_read_once(pt->strace.calls.returns.max_cycles) };
	bool is_returning = (s64)copy.cycles < 0;
	struct profile_moment start;
	u64 cycles;

	/* Pairs with pf_wmb() in profile_return_began(): the start of a negative sum. */
	pf_rmb();
	start = strace_start(pt);
	if (pt->strace.is_old)
		copy = (struct profile_return_time){ is_returning ? -start.off_cycles : 0, 0 };
	if (is_returning) {
		cycles = strace_span(strace_from(pt, start), strace_to(pt)).off_cycles;
		copy.cycles += start.off_cycles + cycles;
		copy.max_cycles = pf_max(copy.max_cycles, cycles);
	}
	strace_add_returns(&merge.returns, &copy);
	totals.cycles += copy.cycles;
	totals.off_cycles += copy.cycles;
}

/*
 * Merges a thread that has not followed the last reset yet. Only calls that have not ended count:
 * interrupted calls, and the call in flight with its time since the reset.
 */
static void merge_old_task(const struct profile_task *pt)
{
	struct profile_syscall_row row = { .nr_calls = 1 };
	struct profile_moment start;

	for (u32 i = 0; i < pt->strace.nr_restarts; i++) {
		add_row(pt, strace_restart_row(pt, &pt->restarts[i]), &row);
		row.nr_calls = 1;
	}
	if (!strace_in_flight(pt) || strace_is_over(pt))
		return;
	/* Pairs with pf_wmb() in profile_strace_begin(): a call in flight has its start and row. */
	pf_rmb();
	start = strace_start(pt);
	row.cycles = -start.cycles;
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	row.off_cycles = -start.off_cycles;
#endif
	add_flight(pt, start, &row);
	add_row(pt, pf_read_once(pt->strace.row), &row);
}

static void merge_row(const struct profile_task *pt, const struct profile_syscall_row *row)
{
	struct profile_syscall_row copy;

	read_row(pt, row, &copy);
	add_row(pt, row, &copy);
}

bool strace_merge_task(const struct profile_task *pt, u32 *row)
{
	const struct profile_syscall_table *table = pt->strace.calls.table;

	os_assert_held(&lists_lock);
	if (pt->strace.is_old) {
		merge_old_task(pt);
		merge_returns(pt);
		return true;
	}
	/*
	 * Merges errors before rows. Otherwise a row could have fewer errors than its errors by
	 * name.
	 */
	if (!*row)
		strace_sum_add_errors(&merge, &pt->strace.calls);
	*row = pf_max(*row, (u32)sizeof(*table));
	for (u32 nr = 0; table && *row < table->rows_end;
	     *row += sizeof(struct profile_syscall_row)) {
		if (nr++ == ROWS_A_STEP)
			return false;
		merge_row(pt, strace_row_at(table, *row));
	}
	if (strace_sum_spare(&pt->strace.calls))
		merge_row(pt, pt->strace.calls.spare);
	merge_returns(pt);
	merge.nr_backwards += pf_read_once(pt->strace.calls.nr_backwards);
	merge.nr_unfollowed += pf_read_once(pt->strace.calls.nr_unfollowed);
	return true;
}

void strace_merge_sum(const struct profile_syscall_sum *sum)
{
	os_assert_held(&lists_lock);
	strace_sum_add(&merge, sum);
	add_sum_totals(&totals, sum);
}

struct strace_totals strace_take_totals(void)
{
	struct totals taken = totals;

	os_assert_held(&lists_lock);
	totals = (struct totals){ 0 };
	return totals_in_ns(&taken);
}

void strace_take_merged(struct strace_snapshot *snap)
{
	strace_take_entries(snap, &merge);
}

struct strace_totals strace_totals_of(const struct profile_syscall_sum *sum)
{
	struct totals all = { 0 };

	add_sum_totals(&all, sum);
	return totals_in_ns(&all);
}

u64 strace_nr_calls(const struct profile_syscall_sum *sum)
{
	u64 nr = strace_sum_spare(sum) ? sum->spare->nr_calls : 0;

	os_assert_held(&lists_lock);
	if (sum->table) {
		for_each_strace_row(at, sum->table)
			nr += strace_row_at(sum->table, at)->nr_calls;
	}
	return nr;
}
