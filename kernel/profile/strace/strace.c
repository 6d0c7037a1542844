// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counts the system calls of each thread. The hook at entry counts the call and notes the time; the
 * hook at exit adds the time. So a call in flight is always counted, and a reader adds its time so
 * far. The hot path is in <lego/profile_syscall.h>: no lock and no shared cache line. This file has
 * the slow paths: the first call of a number, errors, interrupted calls, calls without a row, and
 * requests of other threads.
 *
 * CPU time is wall time minus the time off a CPU. The scheduler already keeps two numbers whose
 * difference grows by exactly the time off a CPU: when the task was last switched in, and its CPU
 * time until then.
 *
 * Only the thread itself writes to its table. strace_lock keeps threads and tables from going away
 * while a reader looks, but does not stop the hot path: see snapshot.c. A reset, or a switch to
 * off, leaves a request in the thread (reset_cycles, cut_cycles). Readers take the request into
 * account at once. The thread executes it in its next hook, under the lock. It also holds the lock
 * whenever it adds rows or moves tables.
 */

#include "strace.h"

os_lock_t strace_lock = OS_LOCK_INIT;
os_key_t profile_strace_key;
WALK_LISTS(strace_lists, &strace_lock, walk, 16);
struct profile_syscall_sum strace_gone;
u64 strace_nr_gone;

/* An index without rows: every call of the thread takes the slow path. */
static const u16 no_rows[PROFILE_NR_INDEXED];

/* Counts the fork of a process, unless it shares the memory of its creator. */
static void count_fork(const struct profile_process *pp)
{
	u64 bytes = os_process_copied_bytes(os_process_of(pp));
	struct profile_process *creator = bytes ? os_current_profile()->process : NULL;

	os_assert_held(&strace_lock);
	if (!creator || strace_off_since_cycles)
		return;
	strace_catch_up_process(creator);
	creator->own.nr_forks++;
	creator->own.forked_bytes += bytes;
}

void strace_process_init(struct profile_process *pp)
{
	unsigned long flags = os_lock(&strace_lock);

	strace_begin_process(pp);
	walk_add_process(&strace_lists, pp);
	count_fork(pp);
	os_unlock(&strace_lock, flags);
}

void strace_task_init(os_task_t *task)
{
	struct profile_task *pt = os_task_profile(task);
	os_process_t *proc = os_task_process(task);
	struct profile_process *pp;
	unsigned long flags;

	pt->index = no_rows;
	if (!proc)
		return;
	pp = os_process_profile(proc);
	flags = os_lock(&strace_lock);
	strace_catch_up_process(pp);
	pt->nr_resets = pp->nr_resets;
	pt->process = pp;
	walk_add_task(&strace_lists, pp, pt);
	pp->nr_accumulated_threads++;
	os_unlock(&strace_lock, flags);
}

void strace_notify(struct profile_task *pt)
{
	os_assert_held(&strace_lock);
	pf_write_once(pt->index, no_rows);
	pf_write_once(pt->event, true);
}

/*
 * Counts the call in flight again, after the counters were cleared or moved. It began at
 * start_cycles, and had been off a CPU for start_off_cycles then.
 */
static void move_call(struct profile_task *pt, u64 nr, u64 start_cycles, u64 start_off_cycles)
{
	struct profile_syscall_row *row = strace_row(&pt->calls, nr);

	os_assert_held(&strace_lock);
	pt->event = pt->event || row == &pt->calls.spare;
	row->nr_calls++;
	pt->base_off_cycles = strace_row_off_cycles(row) - start_off_cycles;
	profile_strace_begin_time(pt, row, start_cycles);
}

/*
 * Clears the thread's counters, for a reset. The call in flight and interrupted calls count again.
 * The time of the call in flight starts at start_cycles; until then it had been off a CPU for
 * off_cycles.
 */
static void restart_task(struct profile_task *pt, u64 start_cycles, u64 off_cycles)
{
	u64 nr = strace_in_flight(pt) ? pt->row->nr : 0;
	u64 start_off_cycles = strace_start_off_cycles(pt);
	struct profile_syscall_row *row;

	os_assert_held(&strace_lock);
	strace_sum_clear(&pt->calls);
	strace_restart_return(pt);
	for (u32 i = 0; i < pt->nr_restarts; i++) {
		struct profile_restart *restart = &pt->restarts[i];

		restart->cycles = 0;
		row = strace_row(&pt->calls, restart->nr);
		row->nr_calls++;
		strace_set_restart_row(pt, restart, row);
	}
	if (!strace_in_flight(pt))
		return;
	if ((s64)(start_cycles - pt->start_cycles) < 0)
		start_cycles = pt->start_cycles;
	move_call(pt, nr, start_cycles, start_off_cycles + off_cycles);
	pt->carry_cycles = 0;
}

static void end_flight(struct profile_task *pt)
{
	pt->carry_cycles = 0;
	pf_barrier();
	pt->seq++;
	pf_barrier();
}

/*
 * Makes the next entry enlarge the table, because an error found no slot, unless that failed
 * before.
 */
static pf_always_inline void ask_for_room(struct profile_task *pt)
{
	if (pt->calls.table->errors_full)
		return;
	pt->wants_room = true;
	pf_write_once(pt->index, no_rows);
}

void strace_end_call(struct profile_task *pt, struct profile_syscall_row *row, u64 cycles,
		     u32 error)
{
	profile_strace_end_row(row, cycles,
			       pf_min(profile_strace_log2(cycles), (u64)PROFILE_LAST_LOG2));
	if (!error)
		return;
	row->nr_errors++;
	if (row != &pt->calls.spare && !strace_table_add_error(pt->calls.table, row, error, 1))
		ask_for_room(pt);
}

/* Ends the call in flight. cycles is its time; off_cycles is the part of it off a CPU. */
static void end_call(struct profile_task *pt, u64 cycles, u64 off_cycles, long ret)
{
	struct profile_syscall_row *row = pt->row;
	/* When the process is killed, its calls do not return, so they have not failed. */
	bool failed = PROFILE_IS_ERROR(ret) && !os_current_dying();

	os_assert_held(&strace_lock);
	os_assert(strace_in_flight(pt));
	if ((s64)cycles < 0) {
		pt->calls.nr_backwards++;
		cycles = 0;
	}
	pf_write_once(row->cycles, row->cycles + pt->start_cycles + cycles);
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	row->off_cycles += off_cycles;
#endif
	cycles += pt->carry_cycles;
	if (failed && strace_is_restart(ret))
		strace_push_restart(pt, cycles);
	else
		strace_end_call(pt, row, cycles, failed ? -ret : 0);
	end_flight(pt);
}

/* Returns how long the current thread has been off a CPU since its call in flight began. */
static u64 own_off_cycles(const struct profile_task *pt)
{
	if (!STRACE_HAS_DETAIL)
		return 0;
	return os_off_cycles(pt) - strace_start_off_cycles(pt);
}

static void end_call_now(struct profile_task *pt, long ret)
{
	end_call(pt, os_cycles() - pt->start_cycles, own_off_cycles(pt), ret);
}

/* Shortens the call in flight, unless the call to be shortened is over. */
static void shorten_call(struct profile_task *pt)
{
	if (strace_in_flight(pt) && pt->shorten_seq == pt->seq) {
		pt->start_cycles += pt->shorten_cycles;
		pt->base_off_cycles -= pt->shorten_cycles;
		pt->row->cycles -= pt->shorten_cycles;
	}
	pt->shorten_seq = 0;
}

void strace_follow_notes(struct profile_task *pt)
{
	bool cut_first;

	os_assert_held(&strace_lock);
	strace_catch_up(pt);
	shorten_call(pt);
	cut_first = pt->cut_cycles && pt->reset_cycles &&
		    (s64)(pt->reset_cycles - pt->cut_cycles) >= 0;
	if (cut_first && strace_in_flight(pt))
		end_flight(pt);
	if (pt->reset_cycles)
		restart_task(pt, pt->reset_cycles, pt->reset_off_cycles);
	if (pt->cut_cycles && strace_in_flight(pt))
		end_call(pt, pt->cut_cycles - pt->start_cycles, pt->cut_off_cycles, 0);
	pt->reset_cycles = 0;
	pt->cut_cycles = 0;
}

/* Enlarges the table for errors. Tries only once: without memory, every error would try again. */
static void make_room_for_errors(struct profile_syscall_table **table)
{
	struct profile_syscall_table *old = *table;

	strace_table_grow(table, true);
	if (*table == old)
		old->errors_full = true;
}

static void enter_locked(struct profile_task *pt, u64 nr)
{
	struct profile_restart restart;
	struct profile_syscall_row *row;

	os_assert_held(&strace_lock);
	strace_follow_notes(pt);
	if (strace_in_flight(pt))
		end_call_now(pt, 0); /* no hook saw it return */
	pt->event = false;
	if (strace_off_since_cycles) {
		pf_write_once(pt->index, no_rows);
		return;
	}
	if (pt->wants_room)
		make_room_for_errors(&pt->calls.table);
	pt->wants_room = false;
	if (strace_pop_restart(pt, nr, &restart)) {
		row = strace_restart_row(pt, &restart);
		row->nr = restart.nr;
		pt->carry_cycles = restart.cycles;
	} else {
		row = strace_row(&pt->calls, nr);
		row->nr_calls++;
	}
	profile_strace_begin(pt, row, os_entry_cycles());
	/* The fast path counts errors in the table, and does not add carry_cycles. */
	pt->event = row == &pt->calls.spare || pt->carry_cycles;
	pf_write_once(pt->index, pt->calls.table ? pt->calls.table->index : no_rows);
}

/*
 * Returns the cached row of a number beyond the index. Returns NULL if there is none, or if the
 * call must take the slow path for another reason.
 */
static pf_always_inline struct profile_syscall_row *cached_row(const struct profile_task *pt,
							       u64 nr)
{
	const struct profile_syscall_table *table = pt->calls.table;
	u32 at;

	if (nr < PROFILE_NR_INDEXED || !table || pf_read_once(pt->index) != table->index)
		return NULL;
	at = table->unknown[nr % STRACE_UNKNOWN_CACHE];
	if (!at || strace_row_at(table, at * PROFILE_INDEX_UNIT)->nr != nr)
		return NULL;
	return strace_row_at(table, at * PROFILE_INDEX_UNIT);
}

/*
 * The slow hooks save all registers (os_saves_registers), and have two stages to make that cheap.
 * The compiler sees no function call in the first stage, so it saves only the registers that this
 * stage uses. Rarer cases are left to the second stage.
 */
void profile_strace_enter_slowly(void)
{
	struct profile_task *pt = os_current_profile();
	struct profile_syscall_row *row = cached_row(pt, pt->argument);

	if (row) {
		row->nr_calls++;
		profile_strace_begin(pt, row, os_entry_cycles());
	} else {
		os_call(strace_enter_locked);
	}
}

void strace_enter_locked(void)
{
	struct profile_task *pt = os_current_profile();
	unsigned long flags;

	if (!pt->process)
		return;
	flags = os_lock(&strace_lock);
	enter_locked(pt, pt->argument);
	os_unlock(&strace_lock, flags);
}

/* Ends a call that failed. The call has a row, and was not interrupted before. */
static pf_always_inline void end_failed_call(struct profile_task *pt, u64 end_cycles, u64 log2,
					     u32 error)
{
	struct profile_syscall_row *row = pt->row;

	profile_strace_end_time(pt, row, end_cycles, end_cycles - pt->start_cycles, log2);
	if (!os_current_dying()) {
		row->nr_errors++;
		if (pf_unlikely(!strace_table_add_error(pt->calls.table, row, error, 1)))
			ask_for_room(pt);
	}
	/* As in profile_strace_begin(). */
	pf_barrier();
	pt->seq++;
}

void profile_strace_exit_slowly(void)
{
	struct profile_task *pt = os_current_profile();
	long ret = (long)pt->argument;
	u64 end_cycles, cycles, log2;

	if (!strace_in_flight(pt))
		return;
	end_cycles = os_cycles();
	cycles = end_cycles - pt->start_cycles;
	log2 = profile_strace_log2(cycles);
	if (pf_likely(!pf_read_once(pt->event) && PROFILE_IS_ERROR(ret) &&
		      !strace_is_restart(ret) && !profile_strace_is_odd_time(cycles, log2)))
		end_failed_call(pt, end_cycles, log2, -ret);
	else
		os_call(strace_exit_locked);
}

void strace_exit_locked(void)
{
	struct profile_task *pt = os_current_profile();
	long ret = (long)pt->argument;
	unsigned long flags;

	flags = os_lock(&strace_lock);
	strace_follow_notes(pt);
	if (strace_in_flight(pt))
		end_call_now(pt, ret);
	pt->event = false;
	os_unlock(&strace_lock, flags);
}

/* Moves all counters to pp->before, except the execve in flight, the new program's first call. */
static void begin_program(struct profile_process *pp, struct profile_task *pt)
{
	u64 nr = strace_in_flight(pt) ? pt->row->nr : 0;
	u64 start_off_cycles = strace_start_off_cycles(pt);

	os_assert_held(&strace_lock);
	strace_end_restarts(pt);
	if (strace_in_flight(pt)) {
		pt->row->nr_calls--;
		pt->row->cycles += pt->start_cycles; /* undoes profile_strace_begin_time() */
	}
	strace_sum_fold(&pp->before, &pp->own);
	strace_sum_fold(&pp->before, &pt->calls);
	pf_write_once(pt->index, no_rows);
	if (strace_in_flight(pt))
		move_call(pt, nr, pt->start_cycles, start_off_cycles);
}

void strace_process_exec(struct profile_process *pp)
{
	struct profile_task *pt = os_current_profile();
	unsigned long flags = os_lock(&strace_lock);

	if (pt->process == pp) {
		strace_read_task(pt);
		strace_follow_notes(pt);
		begin_program(pp, pt);
	}
	pp->nr_accumulated_threads = 1;
	strace_begin_off_time(pp);
	os_unlock(&strace_lock, flags);
}

/*
 * Called when the thread is back on a CPU. Its hook at the end of a call may have been preempted
 * after it had read the clock; then the wait is no part of the call. So this only asks for the call
 * to be shortened, and a call whose hook no longer looks is over. A reset or a cut that is not
 * executed yet already leaves out the wait.
 */
void strace_shorten_wait(struct profile_task *pt, u64 cycles)
{
	unsigned long flags;

	if (!pt->process)
		return;
	flags = os_lock(&strace_lock);
	if (strace_in_flight(pt) && !pt->reset_cycles && !pt->cut_cycles) {
		if (pt->shorten_seq != pt->seq)
			pt->shorten_cycles = 0;
		pt->shorten_cycles += cycles;
		pt->shorten_seq = pt->seq;
		pf_write_once(pt->event, true);
	}
	strace_shorten_return(pt, cycles);
	os_unlock(&strace_lock, flags);
}

void strace_task_exit(struct profile_task *pt)
{
	struct profile_process *pp = pt->process;
	unsigned long flags;

	if (!pp)
		return;
	flags = os_lock(&strace_lock);
	strace_read_task(pt);
	strace_follow_notes(pt);
	if (strace_in_flight(pt))
		end_call_now(pt, 0);
	strace_end_return(pt);
	strace_end_restarts(pt);
	os_assert(!strace_in_flight(pt) && !pt->nr_restarts);
	strace_sum_fold(&pp->own, &pt->calls);
	if (pt != os_current_profile())
		pp->nr_accumulated_threads--; /* clone() failed: the thread never ran */
	walk_remove_task(&strace_lists, pt);
	pt->process = NULL;
	pt->index = no_rows;
	os_unlock(&strace_lock, flags);
}

void profile_process_waited(os_process_t *child)
{
	struct profile_process *pp = os_process_profile(child);
	struct profile_process *parent = os_current_profile()->process;
	unsigned long flags;

	if (!parent)
		return;
	flags = os_lock(&strace_lock);
	strace_catch_up_process(parent);
	strace_catch_up_process(pp);
	strace_sum_add(&parent->children, &pp->before);
	strace_sum_add(&parent->children, &pp->own);
	strace_sum_fold(&parent->children, &pp->children);
	parent->nr_children += pp->nr_children + 1;
	os_unlock(&strace_lock, flags);
}

void strace_process_release(struct profile_process *pp)
{
	unsigned long flags = os_lock(&strace_lock);

	strace_catch_up_process(pp);
	strace_read_process(pp);
	strace_sum_fold(&strace_gone, &pp->before);
	strace_sum_fold(&strace_gone, &pp->own);
	strace_sum_free(&pp->children);
	strace_nr_gone++;
	walk_remove_process(&strace_lists, pp);
	os_unlock(&strace_lock, flags);
}
