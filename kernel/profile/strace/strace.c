// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counts the system calls of each thread. The hook at entry counts the call and notes the time; the
 * hook at exit adds the time. So a call in flight is always counted, and a reader adds its time so
 * far. The hot path is in <profile/syscall.h>: no lock and no shared cache line. This file has
 * the slow paths: the first call of a number, errors, interrupted calls, calls without a row, and
 * notes of other threads (task.c). It holds lists_lock whenever it follows notes, adds rows or
 * moves tables.
 *
 * CPU time is wall time minus the time off a CPU. The scheduler keeps a number that grows by
 * exactly that time.
 *
 * A thread can also be off a CPU between the end of a call and user mode: preempted, because
 * another thread is due, or stopped by a signal. It is no part of the call. It is the row `[return
 * to user]`, which has no calls and no CPU time. Only a thread that has something to do on that way
 * times it, so calls cost nothing more.
 */

#include "strace.h"

os_key_t profile_strace_key;
void (*strace_count_path)(struct profile_task *pt, struct strace_path_call call);

static struct profile_moment own_moment(const struct profile_task *pt)
{
	return (struct profile_moment){ os_cycles(), os_off_cycles(pt) };
}

/* Counts the call in flight, after the counters were cleared or moved. */
static void count_again(struct profile_task *pt, u64 nr)
{
	struct profile_syscall_row *row = strace_row(&pt->strace.calls, nr);

	os_assert_held(&lists_lock);
	pt->strace.event = pt->strace.event || row == pt->strace.calls.spare;
	row->nr_calls++;
	profile_strace_begin_time(pt, row, pt->strace.start);
}

/* Adds time to the call in flight. */
static void add_time(struct profile_task *pt, struct profile_moment time)
{
	pf_write_once(pt->strace.row->cycles, pt->strace.row->cycles + time.cycles);
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	pt->strace.row->off_cycles += time.off_cycles;
#endif
}

static void leave_flight(struct profile_task *pt)
{
	/* As in profile_strace_exit(). */
	pf_wmb();
	pt->strace.seq++;
	pf_wmb();
}

/* Ends the call in flight. */
static void end_call(struct profile_task *pt, struct profile_moment to, long ret)
{
	struct profile_moment time = strace_span(pt->strace.start, to);
	/* When the process is killed, its calls do not return, so they have not failed. */
	bool failed = PROFILE_IS_ERROR(ret) && !os_current_dying();

	os_assert_held(&lists_lock);
	os_assert(strace_in_flight(pt));
	pt->strace.calls.nr_backwards += (s64)(to.cycles - pt->strace.start.cycles) < 0;
	add_time(pt, pt->strace.start);
	add_time(pt, time);
	if (failed && strace_is_restart(ret))
		strace_push_restart(pt, time.cycles);
	else
		strace_end_call(pt, pt->strace.row, time.cycles, failed ? -ret : 0);
	leave_flight(pt);
}

static void end_return(struct profile_task *pt, struct profile_moment to)
{
	struct profile_return_time *returns = &pt->strace.calls.returns;
	u64 cycles = strace_span(pt->strace.start, to).off_cycles;

	pf_write_once(returns->cycles, returns->cycles + pt->strace.start.off_cycles + cycles);
	returns->max_cycles = pf_max(returns->max_cycles, cycles);
}

/* Ends what the thread is in: a call, or its way back to user mode. */
static pf_always_inline void end_all(struct profile_task *pt, struct profile_moment to)
{
	if (strace_in_flight(pt))
		end_call(pt, to, 0);
	if (strace_is_returning(pt))
		end_return(pt, to);
}

/* Lets what the thread is in start later. */
static void move_start(struct profile_task *pt, struct profile_moment from)
{
	if (strace_in_flight(pt)) {
		add_time(pt, pt->strace.start);
		add_time(pt, (struct profile_moment){ -from.cycles, -from.off_cycles });
	}
	if (strace_is_returning(pt))
		pt->strace.calls.returns.cycles -= from.off_cycles - pt->strace.start.off_cycles;
	pt->strace.start = from;
}

/* Clears the thread's counters. What has not ended counts again. */
static void clear_calls(struct profile_task *pt)
{
	bool is_returning = strace_is_returning(pt);
	u64 nr = strace_in_flight(pt) ? pt->strace.row->nr : 0;
	struct profile_syscall_row *row;

	os_assert_held(&lists_lock);
	strace_sum_clear(&pt->strace.calls);
	for (u32 i = 0; i < pt->strace.nr_restarts; i++) {
		struct profile_restart *restart = &pt->restarts[i];

		restart->cycles = 0;
		row = strace_row(&pt->strace.calls, restart->nr);
		row->nr_calls++;
		strace_set_restart_row(pt, restart, row);
	}
	if (strace_in_flight(pt) && strace_is_over(pt))
		leave_flight(pt);
	if (strace_in_flight(pt))
		count_again(pt, nr);
	if (is_returning)
		pt->strace.calls.returns.cycles = -pt->strace.start.off_cycles;
}

static pf_noinline void follow_event(struct profile_task *pt)
{
	os_assert_held(&lists_lock);
	pt->strace.event = false;
	move_start(pt, strace_from(pt, pt->strace.start));
	if (pt->strace.is_old)
		clear_calls(pt);
	if (pt->strace.to.cycles)
		end_all(pt, pt->strace.to);
	pt->strace.is_old = false;
	pt->strace.from = pt->strace.to = (struct profile_moment){ 0 };
}

/* Follows the notes of other threads. */
static pf_always_inline void follow_notes(struct profile_task *pt)
{
	strace_catch_up(pt);
	/* What follows may move or clear the table. */
	pt->strace.error_row = NULL;
	if (pt->strace.event)
		follow_event(pt);
}

void strace_end_thread(struct profile_task *pt)
{
	follow_notes(pt);
	end_all(pt, own_moment(pt));
	strace_end_restarts(pt);
	os_assert(!strace_in_flight(pt) && !pt->strace.nr_restarts);
}

void strace_begin_program(struct profile_task *pt)
{
	struct profile_process *pp = pt->process;
	u64 nr;

	follow_notes(pt);
	nr = strace_in_flight(pt) ? pt->strace.row->nr : 0;
	strace_end_restarts(pt);
	if (strace_in_flight(pt)) {
		pt->strace.row->nr_calls--;
		add_time(pt, pt->strace.start); /* undoes profile_strace_begin_time() */
	}
	strace_sum_fold(&pp->strace.before, &pp->strace.exited);
	strace_sum_fold(&pp->strace.before, &pt->strace.calls);
	pt->strace.wants_room = false;
	if (strace_in_flight(pt))
		count_again(pt, nr);
	strace_use_table(pt);
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
	struct profile_restart restart = { 0 };
	struct profile_syscall_row *row;

	os_assert_held(&lists_lock);
	follow_notes(pt);
	end_all(pt, own_moment(pt)); /* no hook saw it return */
	pt->strace.has_path = false;
	if (strace_off_since_cycles) {
		pf_write_once(pt->strace.index, strace_no_rows);
		return;
	}
	if (pt->strace.wants_room)
		make_room_for_errors(&pt->strace.calls.table);
	pt->strace.wants_room = false;
	if (strace_pop_restart(pt, nr, &restart)) {
		row = strace_restart_row(pt, &restart);
		row->nr = restart.nr;
	} else {
		row = strace_row(&pt->strace.calls, nr);
		row->nr_calls++;
	}
	profile_strace_begin(pt, row, os_entry_cycles());
	pt->strace.start.cycles -= restart.cycles; /* The row has this time already. */
	/* The fast path counts errors in the table. */
	pt->strace.event = row == pt->strace.calls.spare;
	strace_use_table(pt);
}

/*
 * Returns the cached row of a number beyond the index. Returns NULL if there is none, or if the
 * call must take the slow path for another reason.
 */
static pf_always_inline struct profile_syscall_row *cached_row(const struct profile_task *pt,
							       u64 nr)
{
	const struct profile_syscall_table *table = pt->strace.calls.table;
	u32 at;

	if (nr < PROFILE_NR_INDEXED || !table || pf_read_once(pt->strace.index) != table->index)
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
void profile_strace_enter_slow(void)
{
	struct profile_task *pt = os_current_profile();
	struct profile_syscall_row *row = cached_row(pt, pt->strace.argument);

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
	flags = os_lock(&lists_lock);
	enter_locked(pt, pt->strace.argument);
	os_unlock(&lists_lock, flags);
}

/* Ends a call that has a row. error is a positive errno, or 0. */
static pf_always_inline void end_simple_call(struct profile_task *pt, u64 end_cycles, u64 log2,
					     u32 error)
{
	struct profile_syscall_row *row = pt->strace.row;
	struct strace_error *slot;

	profile_strace_end_time(pt, row, end_cycles, end_cycles - pt->strace.start.cycles, log2);
	if (error && !os_current_dying()) {
		row->nr_errors++;
		slot = strace_table_add_error(pt->strace.calls.table, row, error, 1);
		if (pf_unlikely(!slot)) {
			strace_ask_for_room(pt);
		} else {
			pt->strace.error_row = row;
			pt->strace.error_ret = (u16)-error;
			pt->strace.error_counter = &slot->nr;
		}
	}
	leave_flight(pt);
}

void profile_strace_exit_slow(void)
{
	struct profile_task *pt = os_current_profile();
	long ret = (long)pt->strace.argument;
	u64 end_cycles, cycles, log2;

	if (!strace_in_flight(pt))
		return;
	end_cycles = os_cycles();
	cycles = end_cycles - pt->strace.start.cycles;
	log2 = profile_strace_log2(cycles);
	if (pf_likely(!pf_read_once(pt->strace.is_slow) && PROFILE_IS_ERROR(ret) &&
		      !strace_is_restart(ret) && !profile_strace_is_odd_time(cycles, log2)))
		end_simple_call(pt, end_cycles, log2, -ret);
	else
		os_call(strace_exit_slower);
}

static void exit_locked(struct profile_task *pt, long ret)
{
	unsigned long flags;

	flags = os_lock(&lists_lock);
	follow_notes(pt);
	if (strace_in_flight(pt))
		end_call(pt, own_moment(pt), ret);
	pt->strace.event = false;
	os_unlock(&lists_lock, flags);
}

/* Ends a call that has a path, and counts it for the path, with the times of its row. */
static void exit_with_path(struct profile_task *pt, long ret)
{
	struct profile_moment end = own_moment(pt), time = strace_span(pt->strace.start, end);
	u64 log2 = profile_strace_log2(time.cycles);
	u32 error = PROFILE_IS_ERROR(ret) ? -ret : 0;

	pt->strace.has_path = false;
	if (pf_read_once(pt->strace.event) || strace_is_restart(ret) ||
	    profile_strace_is_odd_time(time.cycles, log2))
		exit_locked(pt, ret);
	else
		end_simple_call(pt, end.cycles, log2, error);
	if (!strace_is_restart(ret))
		strace_count_path(pt, (struct strace_path_call){
					      .time = time,
					      .error = os_current_dying() ? 0 : error,
				      });
}

void strace_exit_slower(void)
{
	struct profile_task *pt = os_current_profile();
	long ret = (long)pt->strace.argument;

	if (PF_IS_ENABLED(CONFIG_PROFILE_FILES) && pt->strace.has_path)
		exit_with_path(pt, ret);
	else
		exit_locked(pt, ret);
}

static void follow_notes_locked(struct profile_task *pt)
{
	unsigned long flags = os_lock(&lists_lock);

	follow_notes(pt);
	os_unlock(&lists_lock, flags);
}

/* Keeps interrupts off, so that no wait for a report comes between the two stores. */
void profile_return_began(struct profile_task *pt)
{
	unsigned long flags;

	if (pf_read_once(strace_off_since_cycles) || !pt->process)
		return;
	if (pf_read_once(pt->strace.event))
		follow_notes_locked(pt);
	flags = os_irq_save();
	pt->strace.start = own_moment(pt);
	/* Pairs with pf_rmb() in merge_returns(): a reader of the negative sum finds the start. */
	pf_wmb();
	pf_write_once(pt->strace.calls.returns.cycles,
		      pt->strace.calls.returns.cycles - pt->strace.start.off_cycles);
	os_irq_restore(flags);
}

/*
 * While the thread runs, its time off a CPU does not change. So a note that comes after this looks
 * for one asks for what is done here anyway.
 */
void profile_return_ended(struct profile_task *pt)
{
	if (!strace_is_returning(pt))
		return;
	if (pf_read_once(pt->strace.event))
		follow_notes_locked(pt);
	if (strace_is_returning(pt))
		end_return(pt, own_moment(pt));
}
