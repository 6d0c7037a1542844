// SPDX-License-Identifier: BSD-2-Clause
/*
 * The state of a thread, as other threads see and change it.
 *
 * Only a thread writes to its table. lists_lock keeps threads and tables from going away while a
 * reader looks, but does not stop the hot path: see snapshot.c. So a reset, a switch to off, and a
 * wait for a report leave a note in the thread. Here is decided what they do to a call in flight:
 *
 *	is_old	a reset: all counters are from before it. What has not ended counts again.
 *	from	the call in flight counts from this moment on, if it began earlier
 *	to	counting was switched off: the call in flight ended at this moment
 *
 * The same goes for a thread on its way back to user mode. Readers take the notes into account at
 * once. The thread follows them in its next hook, which takes the slow path (strace.c).
 *
 * A reset raises a generation number. Before anything else is done with a thread or process of an
 * older generation, strace_catch_up() resets it. The hot path does not look at generations, so the
 * reset also visits all threads, a few at a time. Switching to off works in the same way.
 */

#include "strace.h"

static struct profile_syscall_row gone_spare;
struct profile_syscall_sum strace_gone = { .spare = &gone_spare };
u64 strace_nr_gone;
u64 strace_off_since_cycles;
u32 strace_nr_resets;
struct profile_off_time strace_off_time;

const u16 strace_no_rows[PROFILE_NR_INDEXED];

/*
 * Returns the present moment of any thread, or an earlier one if it did not run since; but none
 * before `start`. If the thread runs, its time on a CPU is read a little later than the clock.
 */
static struct profile_moment moment_at(const struct profile_task *pt, u64 cycles)
{
	struct profile_moment now = { cycles, cycles - os_task_exec_cycles(pt) };
	struct profile_moment start = strace_start(pt), time = strace_span(start, now);

	return (struct profile_moment){ start.cycles + time.cycles,
					start.off_cycles + time.off_cycles };
}

struct profile_moment strace_from(const struct profile_task *pt, struct profile_moment start)
{
	return pt->strace.from.cycles && (s64)(pt->strace.from.cycles - start.cycles) > 0 ?
		       pt->strace.from :
		       start;
}

struct profile_moment strace_to(const struct profile_task *pt)
{
	return pt->strace.to.cycles ? pt->strace.to : moment_at(pt, os_cycles());
}

void strace_notify(struct profile_task *pt)
{
	os_assert_held(&lists_lock);
	pf_write_once(pt->strace.index, strace_no_rows);
	pf_write_once(pt->strace.event, true);
}

void strace_begin_off_time(struct profile_process *pp)
{
	os_assert_held(&lists_lock);
	pp->strace.off_base_ns = off_time_total_ns(&strace_off_time);
}

void strace_off_snapshot(const struct profile_process *pp, struct strace_snapshot *snap)
{
	snap->off = off_time_since(&strace_off_time,
				   pp ? pp->strace.off_base_ns : strace_off_time.base_ns);
}

void strace_reset_sums(struct profile_process *pp)
{
	os_assert_held(&lists_lock);
	strace_sum_clear(&pp->strace.exited);
	strace_sum_clear(&pp->strace.before);
	strace_sum_clear(&pp->strace.children);
	pp->strace.nr_children = 0;
	pp->strace.nr_resets++;
	strace_begin_off_time(pp);
}

void strace_reset_process_late(struct profile_process *pp)
{
	pp->strace.nr_system_resets = strace_nr_resets;
	strace_reset_sums(pp);
}

void strace_follow(struct profile_task *pt)
{
	struct profile_process *pp = pt->process;

	os_assert_held(&lists_lock);
	if (strace_off_since_cycles && !pt->strace.to.cycles) {
		pt->strace.to = moment_at(pt, strace_off_since_cycles);
		strace_notify(pt);
	}
	if (pt->strace.nr_resets != pp->strace.nr_resets) {
		pt->strace.nr_resets = pp->strace.nr_resets;
		pt->strace.from = moment_at(pt, os_cycles());
		pt->strace.is_old = true;
		strace_notify(pt);
	}
}

/*
 * Called when the thread is back on a CPU. Its hook at the end of a call may have been preempted
 * after it had read the clock; then the wait is no part of the call. So this only leaves a note,
 * and if the hook no longer looks, the call is over. A reset or a switch that the thread has not
 * followed yet already leaves out the wait.
 */
void strace_shorten_wait(struct profile_task *pt, u64 cycles)
{
	struct profile_moment from;
	unsigned long flags;

	if (!pt->process)
		return;
	flags = os_lock(&lists_lock);
	if ((strace_in_flight(pt) || strace_is_returning(pt)) && !pt->strace.is_old &&
	    !pt->strace.to.cycles) {
		from = strace_from(pt, pt->strace.start);
		pt->strace.from.cycles = from.cycles + cycles;
		pt->strace.from.off_cycles = from.off_cycles + cycles;
		strace_notify(pt);
	}
	os_unlock(&lists_lock, flags);
}

void strace_end_call(struct profile_task *pt, struct profile_syscall_row *row, u64 cycles,
		     u32 error)
{
	profile_strace_end_row(row, cycles,
			       pf_min(profile_strace_log2(cycles), (u64)PROFILE_LAST_LOG2));
	if (!error)
		return;
	row->nr_errors++;
	if (row != pt->strace.calls.spare &&
	    !strace_table_add_error(pt->strace.calls.table, row, error, 1))
		strace_ask_for_room(pt);
}
