// SPDX-License-Identifier: BSD-2-Clause
/*
 * Follows calls that a signal interrupts. Such a call returns an -ERESTART* code, and the code that
 * delivers the signal decides what follows: either the user sees EINTR, an error like any other, or
 * the SYSCALL instruction runs again. The second run is the same call: its time is added to that of
 * the first run, and the call ends when it returns. The time of a signal handler in between is not
 * part of it.
 *
 * Without a handler, the thread's next call is the resumed one. With a handler, it is the next call
 * after the handler has returned to the SYSCALL instruction. So each interrupted call is remembered
 * with its instruction and stack pointers: handlers can be interrupted in turn, and can leave by
 * longjmp() and never return. There is room for PROFILE_MAX_RESTARTS calls. If another one needs
 * room, the oldest call is given up; if it is resumed after all, it counts as a second call.
 */

#include "strace.h"

#define NR_RESTART_SYSCALL 219 /* resumes a call with a timeout */

static void end_restart(struct profile_task *pt, const struct profile_restart *restart, u32 error)
{
	os_assert_held(&lists_lock);
	strace_end_call(pt, strace_restart_row(pt, restart), restart->cycles, error);
}

/* Ends the interrupted calls from index nr on. */
static void end_restarts_from(struct profile_task *pt, u32 nr)
{
	while (pt->strace.nr_restarts > nr)
		end_restart(pt, &pt->restarts[--pt->strace.nr_restarts], 0);
}

void strace_end_restarts(struct profile_task *pt)
{
	end_restarts_from(pt, 0);
}

/* Returns the last interrupted call if it has this state; NULL if not, and with profile=off. */
static struct profile_restart *last_in_state(struct profile_task *pt, enum restart_state state)
{
	struct profile_restart *end;

	if (os_key_on(&profile_off_key))
		return NULL;
	end = pt->restarts + pt->strace.nr_restarts;
	return pt->strace.nr_restarts && end[-1].state == state ? end - 1 : NULL;
}

/* Makes room by ending the oldest interrupted call, which is the least likely to be resumed. */
static void give_up_oldest(struct profile_task *pt)
{
	os_assert(pt->strace.nr_restarts == PROFILE_MAX_RESTARTS);
	end_restart(pt, &pt->restarts[0], 0);
	pt->strace.calls.nr_unfollowed++;
	pt->strace.nr_restarts--;
	for (u32 i = 0; i < pt->strace.nr_restarts; i++)
		pt->restarts[i] = pt->restarts[i + 1];
}

void strace_push_restart(struct profile_task *pt, u64 cycles)
{
	struct profile_restart *restart;

	os_assert_held(&lists_lock);
	/* The signal code has not decided about it, so the call was not interrupted. */
	if (last_in_state(pt, RESTART_UNDECIDED))
		end_restarts_from(pt, pt->strace.nr_restarts - 1);
	if (pt->strace.nr_restarts == PROFILE_MAX_RESTARTS)
		give_up_oldest(pt);
	restart = &pt->restarts[pt->strace.nr_restarts++];
	*restart = (struct profile_restart){
		.nr = pt->strace.row->nr,
		.cycles = cycles,
		.state = RESTART_UNDECIDED,
	};
	strace_set_restart_row(pt, restart, pt->strace.row);
}

bool strace_pop_restart(struct profile_task *pt, u64 nr, struct profile_restart *restart)
{
	struct profile_restart *last = last_in_state(pt, RESTART_NEXT);

	os_assert_held(&lists_lock);
	if (!last)
		return false;
	if (nr != last->nr && nr != NR_RESTART_SYSCALL) {
		end_restarts_from(pt, pt->strace.nr_restarts - 1);
		return false;
	}
	*restart = *last;
	pt->strace.nr_restarts--;
	return true;
}

void profile_syscall_interrupted(void)
{
	struct profile_task *pt = os_current_profile();
	unsigned long flags;

	if (!last_in_state(pt, RESTART_UNDECIDED))
		return;
	flags = os_lock(&lists_lock);
	end_restart(pt, &pt->restarts[--pt->strace.nr_restarts], STRACE_EINTR);
	os_unlock(&lists_lock, flags);
}

static void is_next(struct profile_task *pt, struct profile_restart *restart)
{
	os_assert_held(&lists_lock);
	os_assert(restart->state == RESTART_UNDECIDED || restart->state == RESTART_WAITS);
	restart->state = RESTART_NEXT;
	strace_notify(pt);
}

void profile_syscall_again(u64 ip, u64 sp)
{
	struct profile_task *pt = os_current_profile();
	struct profile_restart *last = last_in_state(pt, RESTART_UNDECIDED);
	unsigned long flags;

	if (!last)
		return;
	flags = os_lock(&lists_lock);
	last->ip = ip;
	last->sp = sp;
	is_next(pt, last);
	os_unlock(&lists_lock, flags);
}

void profile_syscall_handler(void)
{
	struct profile_restart *last = last_in_state(os_current_profile(), RESTART_NEXT);

	if (last)
		last->state = RESTART_WAITS;
}

/* A handler has returned to ip and sp. Calls interrupted after that one will not be resumed. */
void profile_syscall_sigreturn(u64 ip, u64 sp)
{
	struct profile_task *pt = os_current_profile();
	unsigned long flags;
	u32 i;

	if (os_key_on(&profile_off_key))
		return;
	i = pt->strace.nr_restarts;
	while (i && (pt->restarts[i - 1].ip != ip || pt->restarts[i - 1].sp != sp))
		i--;
	if (!i)
		return;
	flags = os_lock(&lists_lock);
	end_restarts_from(pt, i);
	is_next(pt, &pt->restarts[i - 1]);
	os_unlock(&lists_lock, flags);
}
