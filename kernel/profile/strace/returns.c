// SPDX-License-Identifier: BSD-2-Clause
/*
 * Times how long threads are off a CPU between the end of a system call and user mode: preempted,
 * because another thread is due, or stopped by a signal. It is no part of the call. It is the row
 * `[return to user]`, which has no calls and no CPU time. Only a thread that has something to do on
 * that way comes here, so calls cost nothing more.
 *
 * As in the row of a call, one word says both the sum and whether the thread is on that way: the
 * start is subtracted from the sum, which makes it negative, until the end is added.
 */

#include "strace.h"

#define READ_TRIES 64

/* Converts a thread's time off a CPU, since a fixed moment, to a number above 0. */
static u64 returns_at(u64 off_cycles)
{
	return off_cycles + 1;
}

/* Returns the present number of any thread. */
static u64 returns_now(const struct profile_task *pt)
{
	return returns_at(os_cycles() - os_task_exec_cycles(pt));
}

static bool is_returning(const struct profile_task *pt)
{
	return pf_read_once(pt->return_start);
}

static u64 start_since_reset(const struct profile_task *pt)
{
	return pf_max(pf_read_once(pt->return_start), pt->reset_return);
}

static u64 time_between(u64 start, u64 end)
{
	return end > start ? end - start : 0;
}

/*
 * Keeps interrupts off, as strace_end_return() does: if the thread were switched out between two
 * stores, strace_shorten_return() would find them at odds.
 */
void profile_return_began(struct profile_task *pt)
{
	unsigned long flags;

	if (pf_read_once(strace_off_since_cycles) || !pt->process)
		return;
	flags = os_irq_save();
	pt->cut_return = 0;
	pf_write_once(pt->return_start, returns_at(os_off_cycles(pt)));
	/* A reader that finds the sum negative also finds the start. x86 keeps stores in order. */
	pf_barrier();
	pf_write_once(pt->calls.returns.cycles, pt->calls.returns.cycles - pt->return_start);
	os_irq_restore(flags);
}

void strace_end_return(struct profile_task *pt)
{
	unsigned long flags = os_irq_save();
	u64 start = pt->return_start, end = pf_read_once(pt->cut_return), cycles;

	if (!start)
		goto out;
	cycles = time_between(start, end ? end : returns_at(os_off_cycles(pt)));
	pf_write_once(pt->calls.returns.cycles, pt->calls.returns.cycles + start + cycles);
	pt->calls.returns.max_cycles = pf_max(pt->calls.returns.max_cycles, cycles);
	pf_barrier();
	pf_write_once(pt->return_start, 0);
out:
	os_irq_restore(flags);
}

/*
 * While the thread runs, its time off a CPU does not change. So a request that comes after this
 * looks for one asks for what is done here anyway.
 */
void profile_return_ended(struct profile_task *pt)
{
	unsigned long flags;

	if (!is_returning(pt))
		return;
	if (pf_read_once(pt->reset_cycles)) {
		flags = os_lock(&strace_lock);
		strace_follow_notes(pt);
		os_unlock(&strace_lock, flags);
	}
	strace_end_return(pt);
}

void strace_cut_return(struct profile_task *pt)
{
	os_assert_held(&strace_lock);
	if (is_returning(pt) && !pt->cut_return)
		pf_write_once(pt->cut_return, returns_now(pt));
}

void strace_note_return_reset(struct profile_task *pt)
{
	os_assert_held(&strace_lock);
	pt->reset_return = returns_now(pt);
}

void strace_restart_return(struct profile_task *pt)
{
	os_assert_held(&strace_lock);
	if (is_returning(pt))
		pt->return_start = start_since_reset(pt);
	pt->calls.returns.max_cycles = 0;
	pf_write_once(pt->calls.returns.cycles, 0 - pt->return_start);
}

void strace_shorten_return(struct profile_task *pt, u64 cycles)
{
	os_assert_held(&strace_lock);
	if (!is_returning(pt) || pt->reset_cycles || pt->cut_return)
		return;
	pf_write_once(pt->return_start, pt->return_start + cycles);
	pf_write_once(pt->calls.returns.cycles, pt->calls.returns.cycles - cycles);
}

void strace_add_returns(struct profile_return_time *sum, const struct profile_return_time *add)
{
	sum->cycles += add->cycles;
	sum->max_cycles = pf_max(sum->max_cycles, add->max_cycles);
}

struct profile_return_time strace_read_returns(const struct profile_task *pt)
{
	struct profile_return_time copy;
	int tries = READ_TRIES;
	u64 start, end, before;

	os_assert_held(&strace_lock);
	/* If the sum is the same afterwards, the thread has not come out of there meanwhile. */
	do {
		before = pf_load_acquire(&pt->calls.returns.cycles);
		copy.max_cycles = pf_read_once(pt->calls.returns.max_cycles);
		start = start_since_reset(pt);
		end = pf_read_once(pt->cut_return);
		end = end ? end : returns_now(pt);
		pf_mb();
	} while (pf_read_once(pt->calls.returns.cycles) != before && --tries);
	copy.cycles = pt->reset_cycles ? 0 : before;
	if (pt->reset_cycles)
		copy.max_cycles = 0;
	if ((s64)before < 0) {
		copy.cycles += (pt->reset_cycles ? 0 : start) + time_between(start, end);
		copy.max_cycles = pf_max(copy.max_cycles, time_between(start, end));
	}
	return copy;
}
