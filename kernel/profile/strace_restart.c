// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls that a signal interrupts. Such a call returns -ERESTART<something>, and whoever delivers
 * the signal decides: the user sees EINTR, which is an error like any other, or the SYSCALL
 * instruction runs again. The second time is not another call: its time is added to what the call
 * took before, and it has ended only then. What a handler does in between is not its time.
 *
 * Without a handler the thread's next call is the one that goes on. With one, it is the next call
 * after the handler has returned to the place of that call, so each is remembered with that place:
 * handlers may be interrupted in turn, and may leave by longjmp() and never return. One that has
 * not gone on is given up when its room is needed: should it go on after all, it counts once more.
 */

#include "internal.h"

#define NR_RESTART_SYSCALL  219 /* how a call with a timeout goes on */
#define FIRST_RESTART	    512
#define LAST_RESTART	    516
#define NO_RESTART_OF_LINUX 515 /* ENOIOCTLCMD */

bool strace_is_restart(long ret)
{
	return -ret >= FIRST_RESTART && -ret <= LAST_RESTART && -ret != NO_RESTART_OF_LINUX;
}

static void end_restart(struct profile_task *pt, const struct profile_restart *restart, u32 error)
{
	if (restart->row)
		strace_end_call(pt, strace_row_at(pt->table, restart->row), restart->cycles, error);
	else
		strace_end_overflow(pt, restart->overflow, restart->cycles, error);
}

/* Those from number nr on. */
static void end_restarts_from(struct profile_task *pt, u32 nr)
{
	while (pt->nr_restarts > nr)
		end_restart(pt, &pt->restarts[--pt->nr_restarts], 0);
}

void strace_end_restarts(struct profile_task *pt)
{
	end_restarts_from(pt, 0);
}

static struct profile_restart *last_in_state(struct profile_task *pt, enum restart_state state)
{
	struct profile_restart *end = pt->restarts + pt->nr_restarts;

	return pt->nr_restarts && end[-1].state == state ? end - 1 : NULL;
}

/* The oldest is the one that is least likely to go on. */
static void give_up_oldest(struct profile_task *pt)
{
	end_restart(pt, &pt->restarts[0], 0);
	pt->nr_unfollowed++;
	pt->nr_restarts--;
	for (u32 i = 0; i < pt->nr_restarts; i++)
		pt->restarts[i] = pt->restarts[i + 1];
}

void strace_push_restart(struct profile_task *pt, u64 nr, u64 cycles)
{
	/* Nobody decided: it was the return value of something else. */
	if (last_in_state(pt, RESTART_UNDECIDED))
		end_restarts_from(pt, pt->nr_restarts - 1);
	if (pt->nr_restarts == PROFILE_MAX_RESTARTS)
		give_up_oldest(pt);
	pt->restarts[pt->nr_restarts++] = (struct profile_restart){
		.nr = nr,
		.cycles = cycles,
		.row = pt->row ? (char *)pt->row - (char *)pt->table : 0,
		.overflow = pt->overflow,
		.state = RESTART_UNDECIDED,
	};
}

bool strace_pop_restart(struct profile_task *pt, u64 nr, struct profile_restart *restart)
{
	struct profile_restart *last = last_in_state(pt, RESTART_NEXT);

	if (!last)
		return false;
	if (nr != last->nr && nr != NR_RESTART_SYSCALL) {
		end_restarts_from(pt, pt->nr_restarts - 1);
		return false;
	}
	*restart = *last;
	pt->nr_restarts--;
	return true;
}

void profile_syscall_interrupted(void)
{
	struct profile_task *pt = os_current_profile();
	unsigned long flags;

	if (!last_in_state(pt, RESTART_UNDECIDED))
		return;
	flags = os_lock(&strace_lock);
	end_restart(pt, &pt->restarts[--pt->nr_restarts], EINTR);
	os_unlock(&strace_lock, flags);
}

static void is_next(struct profile_task *pt, struct profile_restart *restart)
{
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
	flags = os_lock(&strace_lock);
	last->ip = ip;
	last->sp = sp;
	is_next(pt, last);
	os_unlock(&strace_lock, flags);
}

void profile_syscall_handler(void)
{
	struct profile_restart *last = last_in_state(os_current_profile(), RESTART_NEXT);

	if (last)
		last->state = RESTART_WAITS;
}

/* Those interrupted later were left behind. */
void profile_syscall_sigreturn(u64 ip, u64 sp)
{
	struct profile_task *pt = os_current_profile();
	unsigned long flags;
	u32 i = pt->nr_restarts;

	while (i && (pt->restarts[i - 1].ip != ip || pt->restarts[i - 1].sp != sp))
		i--;
	if (!i)
		return;
	flags = os_lock(&strace_lock);
	end_restarts_from(pt, i);
	is_next(pt, &pt->restarts[i - 1]);
	os_unlock(&strace_lock, flags);
}
