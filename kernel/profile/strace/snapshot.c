// SPDX-License-Identifier: BSD-2-Clause
/*
 * Copies tables for reports while their threads run, and merges the copies into one table. The
 * sequence counter seq is odd while a call is in flight. If it changes while a row is copied, the
 * row is copied again.
 *
 * The time in a row is negative while a call of the row is in flight
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

/* The table into which a report merges all others, guarded by strace_lock. */
static char merge_bytes[MERGE_BYTES] pf_aligned(16);
static struct profile_syscall_sum merge;

struct totals {
	u64 nr_calls, nr_errors, cycles, off_cycles;
};

static struct totals totals; /* of all calls merged since the last strace_take_totals() */

void strace_clear_merge(void)
{
	struct profile_syscall_table *table = (struct profile_syscall_table *)merge_bytes;

	os_assert_held(&strace_lock);
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
	add_row_totals(to, &sum->spare);
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

/* Returns the time since start, or 0 if the call began after now_cycles was read. */
static u64 cycles_since(u64 start_cycles, u64 now_cycles)
{
	u64 cycles = now_cycles - start_cycles;

	return (s64)cycles < 0 ? 0 : cycles;
}

/* A copy of the fields that describe a call in flight. */
struct flight {
	bool flying;
	const struct profile_syscall_row *row;
	u64 start_cycles, base_off_cycles, carry_cycles;
	u64 shorten_cycles; /* of a wait in it that does not count: see strace_shorten_wait() */
};

static void copy_flight(const struct profile_task *pt, u64 seq, struct flight *flight)
{
	flight->flying = seq & 1;
	flight->row = pf_read_once(pt->row);
	flight->start_cycles = pf_read_once(pt->start_cycles);
	flight->base_off_cycles = pf_read_once(pt->base_off_cycles);
	flight->carry_cycles = pf_read_once(pt->carry_cycles);
	flight->shorten_cycles = pt->shorten_seq == seq ? pt->shorten_cycles : 0;
}

/*
 * Computes the time so far of a call in flight. row_off_cycles is the time off a CPU of its row
 * when the call began. The call's CPU time is the task's CPU time now, minus the task's CPU time
 * when the call began. The latter is the start time minus the time off a CPU until then.
 */
static void flight_cycles(const struct profile_task *pt, const struct flight *flight,
			  u64 row_off_cycles, u64 now_cycles, u64 *cycles, u64 *off_cycles)
{
	u64 start_off_cycles = row_off_cycles - flight->base_off_cycles + flight->shorten_cycles;
	u64 start_cycles = flight->start_cycles + flight->shorten_cycles;
	s64 cpu_cycles;

	*off_cycles = 0;
	if (pt->cut_cycles) {
		*cycles = cycles_since(start_cycles, pt->cut_cycles);
		*off_cycles = pf_min(pt->cut_off_cycles, *cycles);
		return;
	}
	if (strace_off_since_cycles)
		now_cycles = strace_off_since_cycles;
	*cycles = cycles_since(start_cycles, now_cycles);
	if (!STRACE_HAS_DETAIL)
		return;
	cpu_cycles = os_task_exec_cycles(pt) - (start_cycles - start_off_cycles);
	*off_cycles = *cycles - pf_min((u64)pf_max(cpu_cycles, (s64)0), *cycles);
}

void strace_flight_cycles(const struct profile_task *pt, u64 now_cycles, u64 *cycles,
			  u64 *off_cycles)
{
	struct flight flight;

	os_assert_held(&strace_lock);
	copy_flight(pt, pf_read_once(pt->seq), &flight);
	flight_cycles(pt, &flight, strace_row_off_cycles(flight.row), now_cycles, cycles,
		      off_cycles);
}

/* Copies errors and ended calls before calls: the copy never has more of them than calls. */
static void copy_row(const struct profile_syscall_row *row, struct profile_syscall_row *copy)
{
	copy->nr = row->nr;
	copy->cycles = pf_read_once(row->cycles);
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	copy->off_cycles = pf_read_once(row->off_cycles);
	copy->max_cycles = pf_read_once(row->max_cycles);
	for (u32 i = 0; i < PROFILE_SYSCALL_BUCKETS; i++)
		copy->nr_log2[i] = pf_read_once(row->nr_log2[i]);
#endif
	copy->nr_errors = pf_read_once(row->nr_errors);
	copy->nr_calls = pf_read_once(row->nr_calls);
}

static void add_flight(const struct profile_task *pt, const struct flight *flight, u64 now_cycles,
		       struct profile_syscall_row *copy)
{
	u64 cycles, off_cycles;

	/* The call has ended, but its writer was stopped before it stored the rest. */
	if ((s64)copy->cycles >= 0) {
#ifdef CONFIG_PROFILE_STRACE_DETAIL
		copy->off_cycles = flight->base_off_cycles + os_off_cycles(pt);
#endif
		return;
	}
	flight_cycles(pt, flight, strace_row_off_cycles(copy), now_cycles, &cycles, &off_cycles);
	copy->cycles += flight->start_cycles + cycles;
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	copy->off_cycles += off_cycles;
	copy->max_cycles = pf_max(copy->max_cycles, cycles + flight->carry_cycles);
#endif
}

/*
 * Copies a row of a running thread. If the thread changes the row in every try, the copy may be off
 * by one call.
 */
static void read_row(const struct profile_task *pt, const struct profile_syscall_row *row,
		     u64 now_cycles, struct profile_syscall_row *copy)
{
	struct flight flight;
	int tries = READ_TRIES;
	u64 seq;

	for (;;) {
		/*
		 * Pairs with the barriers in profile_strace_begin() and profile_strace_exit(): if
		 * seq is the same before and after, the copy is of one state of the row.
		 */
		seq = pf_load_acquire(&pt->seq);
		copy_flight(pt, seq, &flight);
		copy_row(row, copy);
		pf_mb(); /* the copy before the second look at seq */
		if (pf_read_once(pt->seq) == seq || !--tries)
			break;
		os_cpu_relax();
	}

	if (flight.row == row && (flight.flying || (s64)copy->cycles < 0))
		add_flight(pt, &flight, now_cycles, copy);
	else if ((s64)copy->cycles < 0) /* all tries failed: the time of the call is unknown */
		copy->cycles = pf_max((s64)(copy->cycles + now_cycles), (s64)0);
}

/* Merges counters that were copied from a row of a thread. */
static void add_row(const struct profile_task *pt, const struct profile_syscall_row *row,
		    const struct profile_syscall_row *counters)
{
	add_row_totals(&totals, counters);
	strace_sum_add_row(&merge, &pt->calls, row, counters);
}

static void merge_returns(const struct profile_task *pt)
{
	struct profile_return_time returns = strace_read_returns(pt);

	strace_add_returns(&merge.returns, &returns);
	totals.cycles += returns.cycles;
	totals.off_cycles += returns.cycles;
}

/*
 * Merges a thread that has not executed the last reset yet. Only calls that have not ended count in
 * the new period: interrupted calls, and the call in flight with its time since the reset.
 */
static void merge_reset_task(const struct profile_task *pt, u64 now_cycles)
{
	struct profile_syscall_row row = { .nr_calls = 1 };
	u64 cycles, off_cycles;

	for (u32 i = 0; i < pt->nr_restarts; i++)
		add_row(pt, strace_restart_row(pt, &pt->restarts[i]), &row);
	if (!strace_in_flight(pt) ||
	    (pt->cut_cycles && (s64)(pt->reset_cycles - pt->cut_cycles) >= 0))
		return;
	strace_flight_cycles(pt, now_cycles, &cycles, &off_cycles);
	row.cycles = cycles - pf_min(cycles, cycles_since(pt->start_cycles, pt->reset_cycles));
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	row.off_cycles = pf_min(off_cycles - pf_min(off_cycles, pt->reset_off_cycles), row.cycles);
	row.max_cycles = row.cycles;
#endif
	add_row(pt, pf_read_once(pt->row), &row);
}

static void merge_row(const struct profile_task *pt, const struct profile_syscall_row *row,
		      u64 now_cycles)
{
	struct profile_syscall_row copy;

	read_row(pt, row, now_cycles, &copy);
	add_row(pt, row, &copy);
}

bool strace_merge_task(const struct profile_task *pt, u64 now_cycles, u32 *row)
{
	const struct profile_syscall_table *table = pt->calls.table;

	os_assert_held(&strace_lock);
	if (pt->reset_cycles) {
		merge_reset_task(pt, now_cycles);
		merge_returns(pt);
		return true;
	}
	/*
	 * Merges errors before rows. Otherwise a row could have fewer errors than its errors by
	 * name.
	 */
	if (!*row)
		strace_sum_add_errors(&merge, &pt->calls);
	*row = pf_max(*row, (u32)sizeof(*table));
	for (u32 nr = 0; table && *row < table->rows_end; *row += sizeof(pt->calls.spare)) {
		if (nr++ == ROWS_A_STEP)
			return false;
		merge_row(pt, strace_row_at(table, *row), now_cycles);
	}
	merge_row(pt, &pt->calls.spare, now_cycles);
	merge_returns(pt);
	merge.nr_backwards += pf_read_once(pt->calls.nr_backwards);
	merge.nr_unfollowed += pf_read_once(pt->calls.nr_unfollowed);
	return true;
}

void strace_merge_sum(const struct profile_syscall_sum *sum)
{
	os_assert_held(&strace_lock);
	strace_sum_add(&merge, sum);
	add_sum_totals(&totals, sum);
}

struct strace_totals strace_take_totals(void)
{
	struct totals taken = totals;

	os_assert_held(&strace_lock);
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
