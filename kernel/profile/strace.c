// SPDX-License-Identifier: BSD-2-Clause
/*
 * System calls by thread. Entry counts the call and notes the time, exit adds the time: no
 * lock, no shared cache line. A call in flight is therefore always counted, and a reader adds
 * its time so far.
 *
 * Readers (reports) look at live tables under strace_lock, which keeps threads and memory from
 * going away but does not stop the writers. seq, odd while a call is in flight, tells a reader
 * whether the row it copied changed meanwhile. For the row in flight the reader adds the time so
 * far to base_cycles, the value at entry, unless the writer has just stored the call's own time:
 * a writer that is stopped there (a report may interrupt it, a host may stop its CPU) must not
 * look as if its call went on.
 *
 * Nobody but its thread writes a table. profile_reset() only moves strace_epoch on; a thread
 * that finds its own epoch old empties its table itself, and readers take such a table as
 * empty.
 */

#include "internal.h"

#define READ_TRIES 64

os_lock_t strace_lock = OS_LOCK_INIT;
static struct profile_process *processes; /* youngest first */
static u64 next_serial = 1;
static u64 strace_epoch;
static u64 reset_cycles; /* when strace_epoch was moved on */

/* What a report merges live tables into; its user holds strace_lock. */
static struct profile_syscall_row merge_rows[STRACE_MAX_ROWS - STRACE_CHUNK_ROWS];
static struct profile_syscall_map merge_map;
static struct profile_syscall_table merge_table;

void profile_process_init(struct process *proc)
{
	struct profile_process *pp = os_process_profile(proc);
	unsigned long flags;

	memset(pp, 0, sizeof(*pp));
	flags = os_lock(&strace_lock);
	pp->serial = next_serial++;
	pp->next = processes;
	pp->pprev = &processes;
	if (pp->next)
		pp->next->pprev = &pp->next;
	processes = pp;
	os_unlock(&strace_lock, flags);
}

/* Off the list and without memory. */
void strace_process_free(struct profile_process *pp)
{
	unsigned long flags = os_lock(&strace_lock);

	if (pp->pprev) {
		*pp->pprev = pp->next;
		if (pp->next)
			pp->next->pprev = pp->pprev;
		pp->pprev = NULL;
	}
	strace_table_free(&pp->table);
	os_unlock(&strace_lock, flags);
}

void profile_task_init(struct task *task)
{
	struct profile_task *pt = os_task_profile(task);
	struct process *proc = os_task_process(task);
	struct profile_process *pp;
	unsigned long flags;

	memset(pt, 0, sizeof(*pt));
	if (!proc)
		return;
	pp = os_process_profile(proc);
	flags = os_lock(&strace_lock);
	pt->epoch = strace_epoch;
	pt->process = pp;
	pt->next = pp->tasks;
	pt->pprev = &pp->tasks;
	if (pt->next)
		pt->next->pprev = &pt->next;
	pp->tasks = pt;
	pp->nr_accumulated_threads++;
	os_unlock(&strace_lock, flags);
}

static bool in_flight(const struct profile_task *pt)
{
	return pt->seq & 1;
}

/*
 * Empty the thread's own table. A call in flight stays: it is the first of the new period, with
 * its time since then. strace_lock is held.
 */
static void restart_task(struct profile_task *pt, u64 start_cycles)
{
	strace_table_clear(&pt->table);
	if (in_flight(pt)) {
		pt->row = strace_table_row(&pt->table, pt->nr);
		pt->row->nr_calls = 1;
		pt->base_cycles = 0;
		if ((s64)(start_cycles - pt->start_cycles) > 0)
			pt->start_cycles = start_cycles;
	}
	pt->epoch = strace_epoch;
}

static void follow_reset(struct profile_task *pt)
{
	unsigned long flags = os_lock(&strace_lock);

	restart_task(pt, reset_cycles);
	os_unlock(&strace_lock, flags);
}

static __always_inline void begin_call(struct profile_task *pt, struct profile_syscall_row *row,
				       u64 nr)
{
	WRITE_ONCE(row->nr_calls, row->nr_calls + 1);
	pt->row = row;
	pt->nr = nr;
	pt->base_cycles = row->cycles;
	pt->start_cycles = os_cycles();
	/* Pairs with the acquire in read_row(). */
	smp_store_release(&pt->seq, pt->seq + 1);
}

static __always_inline void end_call(struct profile_task *pt, bool error)
{
	struct profile_syscall_row *row = pt->row;
	s64 cycles = os_cycles() - pt->start_cycles;

	/* No branch before it: until it is stored, a report takes the call for running still. */
	WRITE_ONCE(row->cycles, pt->base_cycles + max(cycles, (s64)0));
	if (unlikely(cycles < 0))
		pt->table.nr_backwards++;
	/* A call cut short by its thread's death returns to nobody. */
	if (error && !os_current_dying())
		WRITE_ONCE(row->nr_errors, row->nr_errors + 1);
	/* Pairs with the acquire in read_row(). */
	smp_store_release(&pt->seq, pt->seq + 1);
}

/* The first call of a number, or the first after a reset, or something is amiss. */
static noinline void enter_slowly(struct profile_task *pt, u64 nr)
{
	if (!pt->process)
		return;
	if (in_flight(pt))
		end_call(pt, false); /* its return was not announced */
	if (pt->epoch != READ_ONCE(strace_epoch))
		follow_reset(pt);
	begin_call(pt, strace_table_row(&pt->table, nr), nr);
}

static noinline void exit_slowly(struct profile_task *pt, bool error)
{
	if (!in_flight(pt))
		return;
	follow_reset(pt);
	end_call(pt, error);
}

void profile_syscall_enter(unsigned long nr)
{
	struct profile_task *pt = os_current_profile();
	struct profile_syscall_map *map = pt->table.map;
	u32 i;

	/* Who is in no process has no map. */
	if (likely(map && !in_flight(pt) && pt->epoch == READ_ONCE(strace_epoch) &&
		   nr < STRACE_NR_INDEXED && (i = map->index[nr])))
		begin_call(pt, strace_map_row(map, i - 1), nr);
	else
		enter_slowly(pt, nr);
}

void profile_syscall_exit(long ret)
{
	struct profile_task *pt = os_current_profile();
	bool error = (unsigned long)ret >= (unsigned long)-4095;

	if (likely(in_flight(pt) && pt->epoch == READ_ONCE(strace_epoch)))
		end_call(pt, error);
	else
		exit_slowly(pt, error);
}

void profile_process_exec(struct process *proc)
{
	struct profile_process *pp = os_process_profile(proc);
	struct profile_task *pt = os_current_profile();
	unsigned long flags = os_lock(&strace_lock);

	strace_table_clear(&pp->table);
	if (pt->process == pp)
		restart_task(pt, pt->epoch == strace_epoch ? pt->start_cycles : reset_cycles);
	pp->nr_accumulated_threads = 1;
	os_unlock(&strace_lock, flags);
}

void profile_task_exit(struct task *task)
{
	struct profile_task *pt = os_task_profile(task);
	struct profile_process *pp = pt->process;
	unsigned long flags;

	if (!pp)
		return;
	flags = os_lock(&strace_lock);
	if (pt->epoch != strace_epoch)
		restart_task(pt, reset_cycles);
	if (in_flight(pt))
		end_call(pt, false);
	strace_table_fold(&pp->table, &pt->table);
	if (pt != os_current_profile())
		pp->nr_accumulated_threads--; /* its creator gave it up: it never ran */
	*pt->pprev = pt->next;
	if (pt->next)
		pt->next->pprev = pt->pprev;
	pt->process = NULL;
	os_unlock(&strace_lock, flags);
}

void strace_reset(void)
{
	unsigned long flags = os_lock(&strace_lock);

	reset_cycles = os_cycles();
	WRITE_ONCE(strace_epoch, strace_epoch + 1);
	for (struct profile_process *pp = processes; pp; pp = pp->next)
		strace_table_clear(&pp->table);
	os_unlock(&strace_lock, flags);
}

/* Time since start, 0 if that is later than now (a call that began while we were looking). */
static u64 cycles_since(u64 start_cycles, u64 now_cycles)
{
	u64 cycles = now_cycles - start_cycles;

	return (s64)cycles < 0 ? 0 : cycles;
}

/*
 * Copy a row of a running thread. A writer that is faster than all tries costs at most one
 * call's skew.
 */
static void read_row(const struct profile_task *pt, const struct profile_syscall_row *row,
		     u64 now_cycles, struct profile_syscall_row *copy)
{
	u64 seq, base_cycles, start_cycles;
	bool flying;
	int tries = READ_TRIES;

	do {
		cpu_relax();
		/* Pairs with the releases in profile_syscall_enter() and end_call(). */
		seq = smp_load_acquire(&pt->seq);
		flying = (seq & 1) && READ_ONCE(pt->row) == row;
		base_cycles = READ_ONCE(pt->base_cycles);
		start_cycles = READ_ONCE(pt->start_cycles);
		copy->nr = row->nr;
		copy->nr_calls = READ_ONCE(row->nr_calls);
		copy->nr_errors = READ_ONCE(row->nr_errors);
		copy->cycles = READ_ONCE(row->cycles);
		smp_mb(); /* the copy before the second look at seq */
	} while (READ_ONCE(pt->seq) != seq && --tries);

	/* If they differ, the call has ended and its writer was stopped before it could say so. */
	if (flying && copy->cycles == base_cycles)
		copy->cycles = base_cycles + cycles_since(start_cycles, now_cycles);
}

static void merge_task(const struct profile_task *pt, u64 now_cycles)
{
	struct profile_syscall_row row;
	struct profile_syscall_map *map;
	u32 nr_rows;

	if (pt->epoch != strace_epoch) {
		/* Asleep since before the reset: all that is left is the call in flight. */
		if (!in_flight(pt))
			return;
		row = (struct profile_syscall_row){ .nr = READ_ONCE(pt->nr), .nr_calls = 1 };
		row.cycles = cycles_since(reset_cycles, now_cycles);
		strace_table_add(&merge_table, &row);
		return;
	}
	/* Both pair with the releases in strace_table.c. */
	map = smp_load_acquire(&pt->table.map);
	nr_rows = map ? smp_load_acquire(&map->nr_rows) : 0;
	for (u32 i = 0; i < nr_rows; i++) {
		read_row(pt, strace_map_row(map, i), now_cycles, &row);
		strace_table_add(&merge_table, &row);
	}
	for (u32 i = 0; i < NR_PROFILE_SPILLS; i++) {
		read_row(pt, &pt->table.spill[i], now_cycles, &row);
		merge_table.spill[i].nr_calls += row.nr_calls;
		merge_table.spill[i].nr_errors += row.nr_errors;
		merge_table.spill[i].cycles += row.cycles;
	}
	merge_table.nr_backwards += READ_ONCE(pt->table.nr_backwards);
}

static void clear_merge_table(void)
{
	if (!merge_table.map) {
		strace_map_init(&merge_map);
		for (u32 i = 1; i < STRACE_MAX_CHUNKS; i++)
			merge_map.chunks[i] = &merge_rows[(i - 1) * STRACE_CHUNK_ROWS];
		merge_map.nr_chunks = STRACE_MAX_CHUNKS;
		merge_table.map = &merge_map;
	}
	strace_table_clear(&merge_table);
}

static void add_entry(struct strace_snapshot *snap, const struct profile_syscall_row *row,
		      const char *name)
{
	if (!row->nr_calls)
		return;
	snap->entries[snap->nr_entries++] = (struct strace_entry){
		.nr = row->nr,
		.name = name,
		.nr_calls = row->nr_calls,
		.nr_errors = row->nr_errors,
		.ns = os_cycles_to_ns(row->cycles),
	};
}

/* strace_lock is held, or it is a panic. */
static void snapshot(const struct profile_process *pp, struct strace_snapshot *snap)
{
	static const char *const spill_names[NR_PROFILE_SPILLS] = {
		[PROFILE_SPILL_NO_MEMORY] = "[no memory]",
		[PROFILE_SPILL_UNKNOWN] = "[unknown]",
	};
	const struct profile_syscall_table *table = &pp->table;
	u64 now_cycles = os_cycles();

	clear_merge_table();
	memcpy(merge_table.spill, table->spill, sizeof(table->spill));
	merge_table.nr_backwards = table->nr_backwards;
	for (u32 i = 0; table->map && i < table->map->nr_rows; i++)
		strace_table_add(&merge_table, strace_map_row(table->map, i));
	for (const struct profile_task *pt = pp->tasks; pt; pt = pt->next)
		merge_task(pt, now_cycles);

	snap->pid = os_process_pid(os_process_of(pp));
	snap->nr_accumulated_threads = pp->nr_accumulated_threads;
	snap->nr_backwards = merge_table.nr_backwards;
	snap->nr_entries = 0;
	for (u32 i = 0; i < merge_map.nr_rows; i++) {
		const struct profile_syscall_row *row = strace_map_row(&merge_map, i);

		add_entry(snap, row, os_syscall_name(row->nr));
	}
	for (u32 i = 0; i < NR_PROFILE_SPILLS; i++) {
		merge_table.spill[i].nr = STRACE_SPILL_NR + i;
		add_entry(snap, &merge_table.spill[i], spill_names[i]);
	}
}

void strace_snapshot_process(struct profile_process *pp, struct strace_snapshot *snap)
{
	bool locked;
	unsigned long flags = snapshot_lock(&strace_lock, &locked);

	snapshot(pp, snap);
	snapshot_unlock(&strace_lock, locked, flags);
}

bool strace_snapshot_next(u64 *serial, struct strace_snapshot *snap)
{
	struct profile_process *next = NULL;
	bool locked;
	unsigned long flags = snapshot_lock(&strace_lock, &locked);

	/* Youngest first: the last one that is younger than *serial. */
	for (struct profile_process *pp = processes; pp && pp->serial > *serial; pp = pp->next)
		next = pp;
	if (next) {
		*serial = next->serial;
		snapshot(next, snap);
	}
	snapshot_unlock(&strace_lock, locked, flags);
	return next;
}
