// SPDX-License-Identifier: BSD-2-Clause
/*
 * Copies of tables for reports. seq, odd while a call is in flight, tells whether the row that was
 * copied changed meanwhile. For the row in flight the time so far is added to base_cycles, the
 * value at entry, unless the writer has just stored the call's own time: a writer that is stopped
 * there (a report may interrupt it, a host may stop its CPU) must not look as if its call went on.
 *
 * Calls not in the histogram have not ended: they are in flight, or wait for a handler to return.
 */

#include "internal.h"

#define READ_TRIES 64

/* Room for all rows there can be, and for errors. */
#define MERGE_BYTES                                             \
	(sizeof(struct profile_syscall_table) +                 \
	 STRACE_MAX_ROWS * sizeof(struct profile_syscall_row) + \
	 STRACE_MAX_ERRORS * sizeof(struct strace_error))

BUILD_BUG_ON(MERGE_BYTES / PROFILE_INDEX_UNIT > 1 << 16);

/* What a report merges tables into; its user holds strace_lock, or it is a panic. */
static char merge_bytes[MERGE_BYTES] __aligned(16);
static struct profile_syscall_sum merge;
static struct strace_totals totals; /* of all that was merged, in cycles */
static u64 totals_off_cycles;

static void clear_merge(void)
{
	struct profile_syscall_table *table = (struct profile_syscall_table *)merge_bytes;

	if (!merge.table) {
		strace_table_init(table, sizeof(merge_bytes));
		table->fixed = true;
		merge.table = table;
	}
	strace_sum_clear(&merge);
	totals = (struct strace_totals){ 0 };
	totals_off_cycles = 0;
}

/* Time since start, 0 if that is later than now (a call that began while we were looking). */
static u64 cycles_since(u64 start_cycles, u64 now_cycles)
{
	u64 cycles = now_cycles - start_cycles;

	return (s64)cycles < 0 ? 0 : cycles;
}

/* What a reader needs of a call in flight. */
struct flight {
	bool flying;
	const struct profile_syscall_row *row;
	u64 start_cycles, base_cycles, base_off_cycles, carry_cycles;
};

static void copy_flight(const struct profile_task *pt, u64 seq, struct flight *flight)
{
	flight->flying = seq & 1;
	flight->row = READ_ONCE(pt->row);
	flight->start_cycles = READ_ONCE(pt->start_cycles);
	flight->base_cycles = READ_ONCE(pt->base_cycles);
	flight->base_off_cycles = READ_ONCE(pt->base_off_cycles);
	flight->carry_cycles = READ_ONCE(pt->carry_cycles);
}

/*
 * The time so far of a call in flight, row_off_cycles being its row's when it began. Time on a CPU
 * is what the scheduler says less what it said then: the start less the time off until then.
 */
static void flight_cycles(const struct profile_task *pt, const struct flight *flight,
			  u64 row_off_cycles, u64 now_cycles, u64 *cycles, u64 *off_cycles)
{
	u64 start_off_cycles = row_off_cycles - flight->base_off_cycles;
	s64 cpu_cycles;

	*off_cycles = 0;
	if (pt->cut_cycles) {
		*cycles = cycles_since(flight->start_cycles, pt->cut_cycles);
		*off_cycles = min(pt->cut_off_cycles, *cycles);
		return;
	}
	if (strace_off_since_cycles)
		now_cycles = strace_off_since_cycles;
	*cycles = cycles_since(flight->start_cycles, now_cycles);
	if (!STRACE_HAS_DETAIL)
		return;
	cpu_cycles = os_task_exec_cycles(pt) - (flight->start_cycles - start_off_cycles);
	*off_cycles = *cycles - min((u64)max(cpu_cycles, (s64)0), *cycles);
}

void strace_flight_cycles(const struct profile_task *pt, u64 now_cycles, u64 *cycles,
			  u64 *off_cycles)
{
	struct flight flight;

	copy_flight(pt, 1, &flight);
	flight_cycles(pt, &flight, flight.row ? strace_row_off_cycles(flight.row) : 0, now_cycles,
		      cycles, off_cycles);
}

/* Errors and ends first, and calls last: no reader sees more of them than calls. */
static void copy_row(const struct profile_syscall_row *row, struct profile_syscall_row *copy)
{
	copy->nr = row->nr;
	copy->cycles = READ_ONCE(row->cycles);
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	copy->off_cycles = READ_ONCE(row->off_cycles);
	copy->max_cycles = READ_ONCE(row->max_cycles);
	for (u32 i = 0; i < PROFILE_SYSCALL_BUCKETS; i++)
		copy->nr_log2[i] = READ_ONCE(row->nr_log2[i]);
#endif
	copy->nr_errors = READ_ONCE(row->nr_errors);
	copy->nr_calls = READ_ONCE(row->nr_calls);
}

static void add_flight(const struct profile_task *pt, const struct flight *flight, u64 now_cycles,
		       struct profile_syscall_row *copy)
{
	u64 cycles, off_cycles;

	/* If they differ, the call has ended and its writer was stopped before it could say so. */
	if (copy->cycles != flight->base_cycles) {
#ifdef CONFIG_PROFILE_STRACE_DETAIL
		copy->off_cycles = flight->base_off_cycles + os_off_cycles(pt);
#endif
		return;
	}
	flight_cycles(pt, flight, strace_row_off_cycles(copy), now_cycles, &cycles, &off_cycles);
	copy->cycles += cycles;
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	copy->off_cycles += off_cycles;
	copy->max_cycles = max(copy->max_cycles, cycles + flight->carry_cycles);
#endif
}

/*
 * Copy a row of a running thread. A writer that is faster than all tries costs at most one
 * call's skew.
 */
static void read_row(const struct profile_task *pt, const struct profile_syscall_row *row,
		     u64 now_cycles, struct profile_syscall_row *copy)
{
	struct flight flight;
	int tries = READ_TRIES;
	u64 seq;

	do {
		cpu_relax();
		/* Pairs with the barriers of strace_begin() and strace_exit(). */
		seq = smp_load_acquire(&pt->seq);
		copy_flight(pt, seq, &flight);
		copy_row(row, copy);
		smp_mb(); /* the copy before the second look at seq */
	} while (READ_ONCE(pt->seq) != seq && --tries);

	if (flight.flying && flight.row == row)
		add_flight(pt, &flight, now_cycles, copy);
}

static void add_row(const struct profile_syscall_row *row)
{
	totals.nr_calls += row->nr_calls;
	totals.nr_errors += row->nr_errors;
	totals.ns += row->cycles;
	totals_off_cycles += strace_row_off_cycles(row);
	strace_sum_add_row(&merge, row);
}

/* Without a row: what it took so far, which is in no counter yet. */
static void merge_overflow_flight(const struct profile_task *pt, u64 now_cycles)
{
	struct profile_overflow_row *row = &merge.overflow[pt->overflow];
	u64 cycles, off_cycles;

	strace_flight_cycles(pt, now_cycles, &cycles, &off_cycles);
	row->cycles += cycles;
	row->off_cycles += off_cycles;
	row->max_cycles = max(row->max_cycles, cycles + pt->carry_cycles);
	totals.ns += cycles;
	totals_off_cycles += off_cycles;
}

/*
 * The thread has not followed the last reset yet: all that is left are calls that have not ended.
 */
static void merge_reset_task(const struct profile_task *pt, u64 now_cycles)
{
	struct profile_syscall_row row;
	u64 cycles, off_cycles;

	for (u32 i = 0; i < pt->nr_restarts; i++) {
		row = (struct profile_syscall_row){ .nr = pt->restarts[i].nr, .nr_calls = 1 };
		add_row(&row);
	}
	if (!strace_in_flight(pt) ||
	    (pt->cut_cycles && (s64)(pt->reset_cycles - pt->cut_cycles) >= 0))
		return;
	if (!READ_ONCE(pt->row)) {
		merge_overflow_flight(pt, now_cycles);
		return;
	}
	strace_flight_cycles(pt, now_cycles, &cycles, &off_cycles);
	row = (struct profile_syscall_row){ .nr = READ_ONCE(pt->row)->nr, .nr_calls = 1 };
	row.cycles = cycles - min(cycles, cycles_since(pt->start_cycles, pt->reset_cycles));
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	row.off_cycles = min(off_cycles - min(off_cycles, pt->reset_off_cycles), row.cycles);
	row.max_cycles = row.cycles;
#endif
	add_row(&row);
}

static void merge_task(const struct profile_task *pt, u64 now_cycles)
{
	struct profile_syscall_row row;

	if (pt->reset_cycles) {
		merge_reset_task(pt, now_cycles);
		return;
	}
	/* Before their rows, or there could be more of them than in the row's number of errors. */
	strace_sum_add_errors(&merge, pt->table);
	if (pt->table) {
		for_each_strace_row(at, pt->table)
		{
			read_row(pt, strace_row_at(pt->table, at), now_cycles, &row);
			add_row(&row);
		}
	}
	if (strace_in_flight(pt) && !READ_ONCE(pt->row))
		merge_overflow_flight(pt, now_cycles);
	merge.nr_backwards += READ_ONCE(pt->nr_backwards);
	merge.nr_unfollowed += READ_ONCE(pt->nr_unfollowed);
}

static void merge_sum(const struct profile_syscall_sum *sum)
{
	if (sum->table) {
		for_each_strace_row(at, sum->table) add_row(strace_row_at(sum->table, at));
		strace_sum_add_errors(&merge, sum->table);
	}
	for (u32 i = 0; i < NR_PROFILE_OVERFLOWS; i++) {
		const struct profile_overflow_row *src = &sum->overflow[i];

		strace_add_overflow(&merge.overflow[i], src);
		totals.nr_calls += src->nr_calls;
		totals.nr_errors += src->nr_errors;
		totals.ns += src->cycles;
		totals_off_cycles += src->off_cycles;
	}
	merge.nr_backwards += sum->nr_backwards;
	merge.nr_unfollowed += sum->nr_unfollowed;
}

static void merge_process(const struct profile_process *pp, u64 now_cycles)
{
	merge_sum(&pp->own);
	for (const struct profile_task *pt = pp->tasks; pt; pt = pt->next)
		merge_task(pt, now_cycles);
}

static u64 to_cpu_ns(u64 cycles, u64 off_cycles)
{
	/* Below 0 when the CPUs' clocks differ. */
	if ((s64)off_cycles < 0)
		off_cycles = 0;
	return os_cycles_to_ns(cycles - min(off_cycles, cycles));
}

/* Totals in ns; clears them. */
static struct strace_totals take_totals(u64 *cpu_ns)
{
	struct strace_totals taken = totals;

	taken.ns = os_cycles_to_ns(totals.ns);
	*cpu_ns = to_cpu_ns(totals.ns, totals_off_cycles);
	totals = (struct strace_totals){ 0 };
	totals_off_cycles = 0;
	return taken;
}

static struct strace_totals totals_of(const struct profile_syscall_sum *sum)
{
	u64 cpu_ns;

	clear_merge();
	merge_sum(sum);
	return take_totals(&cpu_ns);
}

/* The time that so many in a hundred of the calls that have ended did not exceed. */
static u64 percentile_ns(const struct profile_syscall_row *row, u64 percent)
{
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	u64 nr = strace_row_nr_ended(row), rank = nr - mul_div_u64(nr, 100 - percent, 100);
	u64 sum = 0;

	for (u32 i = 0; nr && i < PROFILE_SYSCALL_BUCKETS - 1; i++) {
		sum += row->nr_log2[i];
		if (sum >= rank)
			return os_cycles_to_ns(
				min((2ull << (i + PROFILE_BUCKET_BASE_LOG2)) - 1, row->max_cycles));
	}
	return nr ? os_cycles_to_ns(row->max_cycles) : 0;
#else
	(void)row;
	(void)percent;
	return 0;
#endif
}

static void add_errors(struct strace_snapshot *snap, struct strace_entry *entry, u32 row_at)
{
	const struct profile_syscall_table *table = merge.table;

	entry->first_error = snap->nr_errors;
	for (u32 at = table->errors_begin; at < table->size_bytes;
	     at += sizeof(struct strace_error)) {
		const struct strace_error *error = strace_error_at(table, at);

		if (error->row != row_at || snap->nr_errors == STRACE_MAX_ERRORS)
			continue;
		snap->errors[snap->nr_errors++] =
			(struct strace_error_entry){ .nr = error->nr, .error = error->error };
		entry->nr_error_kinds++;
	}
}

static void add_entry(struct strace_snapshot *snap, u32 at)
{
	const struct profile_syscall_row *row = strace_row_at(merge.table, at);
	struct strace_entry *entry = &snap->entries[snap->nr_entries];
	u64 nr_ended = strace_row_nr_ended(row);

	if (!row->nr_calls)
		return;
	snap->nr_entries++;
	*entry = (struct strace_entry){
		.nr = row->nr,
		.name = os_syscall_name(row->nr),
		.nr_calls = row->nr_calls,
		.nr_errors = row->nr_errors,
		.ns = os_cycles_to_ns(row->cycles),
		.cpu_ns = to_cpu_ns(row->cycles, strace_row_off_cycles(row)),
		.max_ns = os_cycles_to_ns(strace_row_max_cycles(row)),
		.p50_ns = percentile_ns(row, 50),
		.p99_ns = percentile_ns(row, 99),
		.nr_in_flight = row->nr_calls - min(nr_ended, row->nr_calls),
	};
	add_errors(snap, entry, at);
}

static void add_overflow_entry(struct strace_snapshot *snap, enum profile_overflow why)
{
	static const char *const names[NR_PROFILE_OVERFLOWS] = {
		[PROFILE_OVERFLOW_NO_MEMORY] = "[no memory]",
		[PROFILE_OVERFLOW_UNKNOWN] = "[unknown]",
	};
	const struct profile_overflow_row *row = &merge.overflow[why];

	if (!row->nr_calls)
		return;
	snap->entries[snap->nr_entries++] = (struct strace_entry){
		.nr = STRACE_OVERFLOW_NR + why,
		.name = names[why],
		.nr_calls = row->nr_calls,
		.nr_errors = row->nr_errors,
		.ns = os_cycles_to_ns(row->cycles),
		.cpu_ns = to_cpu_ns(row->cycles, row->off_cycles),
		.max_ns = os_cycles_to_ns(row->max_cycles),
		.nr_in_flight = row->nr_calls - min(row->nr_ended, row->nr_calls),
	};
}

static void take_entries(struct strace_snapshot *snap)
{
	snap->nr_backwards = merge.nr_backwards;
	snap->nr_unfollowed = merge.nr_unfollowed;
	snap->nr_entries = 0;
	snap->nr_errors = 0;
	for_each_strace_row(at, merge.table) add_entry(snap, at);
	for (u32 i = 0; i < NR_PROFILE_OVERFLOWS; i++)
		add_overflow_entry(snap, i);
}

/* strace_lock is held, or it is a panic. */
static void snapshot(const struct profile_process *pp, bool family, struct strace_snapshot *snap)
{
	u64 now_cycles = os_cycles();

	snap->pid = os_process_pid(os_process_of(pp));
	snap->nr_accumulated_threads = pp->nr_accumulated_threads;
	snap->nr_children = pp->nr_children;
	snap->before = totals_of(&pp->before);
	snap->children = totals_of(&pp->children);
	clear_merge();
	if (family) {
		merge_sum(&pp->before);
		merge_sum(&pp->children);
	}
	merge_process(pp, now_cycles);
	take_entries(snap);
}

static void snapshot_locked(const struct profile_process *pp, bool family,
			    struct strace_snapshot *snap)
{
	bool locked;
	unsigned long flags = snapshot_lock(&strace_lock, &locked);

	snapshot(pp, family, snap);
	snapshot_unlock(&strace_lock, locked, flags);
}

void strace_snapshot_process(struct profile_process *pp, struct strace_snapshot *snap)
{
	snapshot_locked(pp, false, snap);
}

void strace_snapshot_family(struct profile_process *pp, struct strace_snapshot *snap)
{
	snapshot_locked(pp, true, snap);
}

bool strace_snapshot_next(u64 *serial, struct strace_snapshot *snap)
{
	struct profile_process *next = NULL;
	bool locked;
	unsigned long flags = snapshot_lock(&strace_lock, &locked);

	/* Youngest first: the last one that is younger than *serial. */
	for (struct profile_process *pp = strace_processes; pp && pp->serial > *serial;
	     pp = pp->next) {
		if (!pp->ended)
			next = pp;
	}
	if (next) {
		*serial = next->serial;
		snapshot(next, false, snap);
	}
	snapshot_unlock(&strace_lock, locked, flags);
	return next;
}

static void add_to_process(struct strace_process_entry *entry)
{
	u64 ns;
	struct strace_totals taken = take_totals(&ns);

	entry->nr_calls += taken.nr_calls;
	entry->nr_errors += taken.nr_errors;
	entry->ns += taken.ns;
	entry->cpu_ns += ns;
}

/* Who has no row of its own is in the second, which has as many processes as it has threads. */
static void snapshot_processes(struct strace_system_snapshot *system)
{
	struct strace_process_entry *gone = &system->entries[0], *more = &system->entries[1];
	u64 now_cycles = os_cycles();

	memset(system->entries, 0, 2 * sizeof(*gone));
	system->nr_entries = 2;
	gone->nr_threads = strace_nr_gone;
	strscpy(gone->name, "[gone]", sizeof(gone->name));
	strscpy(more->name, "[more]", sizeof(more->name));
	merge_sum(&strace_gone);
	add_to_process(gone);
	for (struct profile_process *pp = strace_processes; pp; pp = pp->next) {
		struct strace_process_entry *entry = more;

		if (system->nr_entries < ARRAY_SIZE(system->entries)) {
			entry = &system->entries[system->nr_entries++];
			*entry = (struct strace_process_entry){ 0 };
			entry->pid = os_process_pid(os_process_of(pp));
			entry->nr_threads = pp->nr_accumulated_threads;
			strscpy(entry->name, os_process_name(os_process_of(pp)),
				sizeof(entry->name));
		} else {
			more->nr_threads++;
		}
		merge_sum(&pp->before);
		merge_process(pp, now_cycles);
		add_to_process(entry);
	}
}

void strace_snapshot_system(struct strace_snapshot *snap, struct strace_system_snapshot *system)
{
	bool locked;
	unsigned long flags = snapshot_lock(&strace_lock, &locked);

	*system = (struct strace_system_snapshot){ 0 };
	snap->before = snap->children = (struct strace_totals){ 0 };
	snap->nr_children = 0;
	clear_merge();
	snapshot_processes(system);
	take_entries(snap);
	snapshot_unlock(&strace_lock, locked, flags);
}
