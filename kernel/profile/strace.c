// SPDX-License-Identifier: BSD-2-Clause
/*
 * System calls by thread. Entry counts the call and notes the time, exit adds the time: no lock,
 * no shared cache line. A call in flight is therefore always counted, and a reader adds its time so
 * far. <lego/profile_syscall.h> has the hot path, here is what leaves it: the first call of a
 * number, errors, interrupted calls, calls without a row, and what others have asked of the thread.
 *
 * Time on a CPU is wall time less the time off one, and that is read from what the scheduler keeps
 * anyway: the start of a task's turn less the sum of its turns grows by just that.
 *
 * Readers (reports) hold strace_lock, which keeps threads and memory from going away but does not
 * stop the writers: see strace_snapshot.c. Tables move and rows are added under it. Nobody but its
 * thread writes a table: who resets counters, or switches counting off, leaves a note in the thread
 * (reset_cycles, cut_cycles) that readers respect and that it follows in its next hook.
 */

#include "internal.h"
#include "live.h"

os_lock_t strace_lock = OS_LOCK_INIT;
struct static_key strace_key;
struct profile_process *strace_processes;
struct profile_syscall_sum strace_gone;
u64 strace_nr_gone;
static u64 next_serial = 1;

/* Every call takes the slow path. */
static const u16 no_rows[PROFILE_NR_INDEXED];

void profile_process_init(struct process *proc)
{
	struct profile_process *pp = os_process_profile(proc);
	unsigned long flags;

	memset(pp, 0, sizeof(*pp));
	flags = os_lock(&strace_lock);
	pp->serial = next_serial++;
	pp->next = strace_processes;
	pp->pprev = &strace_processes;
	if (pp->next)
		pp->next->pprev = &pp->next;
	strace_processes = pp;
	os_unlock(&strace_lock, flags);
}

void strace_task_init(struct task *task)
{
	struct profile_task *pt = os_task_profile(task);
	struct process *proc = os_task_process(task);
	struct profile_process *pp;
	unsigned long flags;

	pt->index = no_rows;
	if (!proc)
		return;
	pp = os_process_profile(proc);
	flags = os_lock(&strace_lock);
	pt->process = pp;
	pt->next = pp->tasks;
	pt->pprev = &pp->tasks;
	if (pt->next)
		pt->next->pprev = &pt->next;
	pp->tasks = pt;
	pp->nr_accumulated_threads++;
	os_unlock(&strace_lock, flags);
}

void strace_notify(struct profile_task *pt)
{
	WRITE_ONCE(pt->index, no_rows);
	WRITE_ONCE(pt->event, true);
}

/* A call that began in the row now counts as one of this row, with so much time up to now. */
static void move_call(struct profile_task *pt, struct profile_syscall_row *row,
		      enum profile_overflow why)
{
	pt->row = row;
	pt->overflow = why;
	pt->base_cycles = 0;
	pt->event = pt->event || !row;
	if (row)
		row->nr_calls++;
	else
		pt->process->own.overflow[why].nr_calls++;
}

/*
 * The thread's counters start again with the call in flight, from start_cycles on, before which it
 * was off a CPU for off_cycles. Calls interrupted by a signal are calls of the new period, too.
 */
static void restart_task(struct profile_task *pt, u64 start_cycles, u64 off_cycles)
{
	bool in_flight = strace_in_flight(pt), has_row = in_flight && pt->row;
	u64 nr = has_row ? pt->row->nr : 0, start_off_cycles = strace_start_off_cycles(pt);
	struct profile_syscall_row *row;
	enum profile_overflow why;

	strace_table_clear(pt->table);
	pt->nr_backwards = pt->nr_unfollowed = 0;
	for (u32 i = 0; i < pt->nr_restarts; i++) {
		struct profile_restart *restart = &pt->restarts[i];

		restart->cycles = 0;
		row = strace_table_row(&pt->table, restart->nr, &why);
		if (row)
			row->nr_calls++;
		else
			pt->process->own.overflow[why].nr_calls++;
		restart->row = row ? (char *)row - (char *)pt->table : 0;
		restart->overflow = why;
	}
	/* Who reset the counters has seen to a call without a row. */
	if (!has_row)
		return;
	row = strace_table_row(&pt->table, nr, &why);
	move_call(pt, row, why);
	pt->carry_cycles = 0;
	pt->base_off_cycles = 0 - (start_off_cycles + off_cycles);
	if ((s64)(start_cycles - pt->start_cycles) > 0)
		pt->start_cycles = start_cycles;
}

static void end_flight(struct profile_task *pt)
{
	pt->carry_cycles = 0;
	barrier();
	pt->seq++;
	barrier();
}

/* Count the end of a call that took so long altogether. */
void strace_end_call(struct profile_task *pt, struct profile_syscall_row *row, u64 cycles,
		     u32 error)
{
	strace_end_row(row, cycles);
	if (!error)
		return;
	row->nr_errors++;
	if (!strace_table_add_error(pt->table, row, error, 1)) {
		/* The next entry makes room. */
		pt->wants_room = true;
		WRITE_ONCE(pt->index, no_rows);
	}
}

/* The same for a call without a row; strace_lock is held. */
void strace_end_overflow(struct profile_task *pt, enum profile_overflow why, u64 cycles, u32 error)
{
	struct profile_overflow_row *row = &pt->process->own.overflow[why];

	row->nr_ended++;
	row->max_cycles = max(row->max_cycles, cycles);
	row->nr_errors += error != 0;
}

/*
 * End the call in flight, so many cycles after it began, and off_cycles of them off a CPU. Without
 * a row, or if it was interrupted, strace_lock is held.
 */
static void end_call(struct profile_task *pt, u64 cycles, u64 off_cycles, long ret)
{
	struct profile_syscall_row *row = pt->row;
	/* A call cut short by the death of the whole process returns to nobody. */
	bool failed = PROFILE_IS_ERROR(ret) && !os_current_dying();

	if ((s64)cycles < 0) {
		pt->nr_backwards++;
		cycles = 0;
	}
	if (row) {
		WRITE_ONCE(row->cycles, pt->base_cycles + cycles);
#ifdef CONFIG_PROFILE_STRACE_DETAIL
		row->off_cycles += off_cycles;
#endif
	} else {
		pt->process->own.overflow[pt->overflow].cycles += cycles;
		pt->process->own.overflow[pt->overflow].off_cycles += off_cycles;
	}
	cycles += pt->carry_cycles;
	if (failed && strace_is_restart(ret))
		strace_push_restart(pt, row ? row->nr : os_syscall_nr(), cycles);
	else if (row)
		strace_end_call(pt, row, cycles, failed ? -ret : 0);
	else
		strace_end_overflow(pt, pt->overflow, cycles, failed ? -ret : 0);
	end_flight(pt);
}

/* Off a CPU since the call in flight of the current thread began. */
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

/* What others have asked of the thread since its last slow hook. */
static void follow_notes(struct profile_task *pt)
{
	bool cut_first = pt->cut_cycles && pt->reset_cycles &&
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

static void begin_slowly(struct profile_task *pt, struct profile_syscall_row *row,
			 enum profile_overflow why, bool counts)
{
	struct profile_overflow_row *overflow = &pt->process->own.overflow[why];

	if (row) {
		row->nr_calls += counts;
		strace_begin(pt, row);
		return;
	}
	overflow->nr_calls += counts;
	pt->row = NULL;
	pt->overflow = why;
	pt->base_off_cycles = STRACE_HAS_DETAIL ? 0 - os_off_cycles(pt) : 0;
	pt->start_cycles = os_cycles();
	barrier();
	pt->seq |= 1;
}

/* strace_lock is held. */
static void enter_locked(struct profile_task *pt, u64 nr)
{
	enum profile_overflow why = PROFILE_OVERFLOW_NO_MEMORY;
	struct profile_restart restart;
	struct profile_syscall_row *row;

	follow_notes(pt);
	if (strace_in_flight(pt))
		end_call_now(pt, 0); /* its return was not announced */
	pt->event = false;
	if (pt->process->off) {
		WRITE_ONCE(pt->index, no_rows);
		return;
	}
	if (pt->wants_room)
		strace_table_grow(&pt->table);
	pt->wants_room = false;
	if (strace_pop_restart(pt, nr, &restart)) {
		row = restart.row ? strace_row_at(pt->table, restart.row) : NULL;
		begin_slowly(pt, row, restart.overflow, false);
		pt->carry_cycles = restart.cycles;
	} else {
		row = strace_table_row(&pt->table, nr, &why);
		begin_slowly(pt, row, why, true);
	}
	pt->event = !row || pt->carry_cycles;
	WRITE_ONCE(pt->index, pt->table ? pt->table->index : no_rows);
}

void strace_enter_slowly(void)
{
	struct profile_task *pt = os_current_profile();
	unsigned long flags;

	if (!pt->process)
		return;
	flags = os_lock(&strace_lock);
	enter_locked(pt, pt->argument);
	os_unlock(&strace_lock, flags);
}

void strace_exit_slowly(void)
{
	struct profile_task *pt = os_current_profile();
	long ret = (long)pt->argument;
	unsigned long flags;

	if (!strace_in_flight(pt))
		return;
	if (!READ_ONCE(pt->event) && !(PROFILE_IS_ERROR(ret) && strace_is_restart(ret)))
		return end_call_now(pt, ret);
	flags = os_lock(&strace_lock);
	follow_notes(pt);
	if (strace_in_flight(pt))
		end_call_now(pt, ret);
	pt->event = false;
	os_unlock(&strace_lock, flags);
}

#ifdef CONFIG_PROFILE_STRACE_LIVE
void strace_enter_live(void)
{
	live_enter(os_current_profile()->argument);
}

void strace_exit_live(void)
{
	live_exit((long)os_current_profile()->argument);
}
#endif

/* The execve in flight is the first call of the new program. */
static void begin_program(struct profile_process *pp, struct profile_task *pt)
{
	u64 nr = 0, start_off_cycles = strace_start_off_cycles(pt);
	bool in_flight = strace_in_flight(pt), has_row = pt->row;
	struct profile_syscall_row *row = pt->row;
	enum profile_overflow why = pt->overflow;

	strace_end_restarts(pt);
	if (in_flight && row) {
		nr = row->nr;
		row->nr_calls--;
	} else if (in_flight) {
		pp->own.overflow[why].nr_calls--;
	}
	strace_sum_fold(&pp->before, &pp->own);
	strace_sum_fold_table(&pp->before, &pt->table);
	pp->before.nr_backwards += pt->nr_backwards;
	pp->before.nr_unfollowed += pt->nr_unfollowed;
	pt->nr_backwards = pt->nr_unfollowed = 0;
	WRITE_ONCE(pt->index, no_rows);
	if (!in_flight)
		return;
	row = has_row ? strace_table_row(&pt->table, nr, &why) : NULL;
	move_call(pt, row, why);
	pt->base_off_cycles = 0 - start_off_cycles;
}

void profile_process_exec(struct process *proc)
{
	struct profile_process *pp = os_process_profile(proc);
	struct profile_task *pt = os_current_profile();
	unsigned long flags = os_lock(&strace_lock);

	if (pt->process == pp) {
		follow_notes(pt);
		begin_program(pp, pt);
	}
	pp->nr_accumulated_threads = 1;
	os_unlock(&strace_lock, flags);
}

void profile_task_exit(struct task *task)
{
	struct profile_task *pt = os_task_profile(task);
	struct profile_process *pp = pt->process;
	unsigned long flags;

	if (IS_ENABLED(CONFIG_PROFILE_STRACE_LIVE))
		live_task_exit(pt);
	if (!pp)
		return;
	flags = os_lock(&strace_lock);
	follow_notes(pt);
	if (strace_in_flight(pt))
		end_call_now(pt, 0);
	strace_end_restarts(pt);
	strace_sum_fold_table(&pp->own, &pt->table);
	pp->own.nr_backwards += pt->nr_backwards;
	pp->own.nr_unfollowed += pt->nr_unfollowed;
	if (pt != os_current_profile())
		pp->nr_accumulated_threads--; /* its creator gave it up: it never ran */
	*pt->pprev = pt->next;
	if (pt->next)
		pt->next->pprev = pt->pprev;
	pt->process = NULL;
	pt->index = no_rows;
	os_unlock(&strace_lock, flags);
}

void strace_process_ended(struct profile_process *pp)
{
	unsigned long flags = os_lock(&strace_lock);

	pp->ended = true;
	os_unlock(&strace_lock, flags);
}

void profile_process_waited(struct process *child)
{
	struct profile_process *pp = os_process_profile(child);
	struct profile_process *parent = os_current_profile()->process;
	unsigned long flags;

	if (!parent)
		return;
	flags = os_lock(&strace_lock);
	strace_sum_add(&parent->children, &pp->before);
	strace_sum_add(&parent->children, &pp->own);
	strace_sum_fold(&parent->children, &pp->children);
	parent->nr_children += pp->nr_children + 1;
	os_unlock(&strace_lock, flags);
}

void profile_process_release(struct process *proc)
{
	struct profile_process *pp = os_process_profile(proc);
	unsigned long flags = os_lock(&strace_lock);

	strace_sum_fold(&strace_gone, &pp->before);
	strace_sum_fold(&strace_gone, &pp->own);
	strace_sum_free(&pp->children);
	strace_nr_gone++;
	if (pp->pprev) {
		*pp->pprev = pp->next;
		if (pp->next)
			pp->next->pprev = pp->pprev;
		pp->pprev = NULL;
	}
	os_unlock(&strace_lock, flags);
}
