// SPDX-License-Identifier: BSD-2-Clause
/*
 * Computes the CPU time of threads in user code, for getrusage(), times() and so on: all CPU time
 * except that in system calls, in page faults, and in interrupts that hit user code. The summary of
 * an exit report has the same number. Costs nothing until a program asks: then the rows of live
 * threads are added up.
 *
 * The time is known if strace and waits were never off, and every call had a row of its own. Resets
 * and execve do not matter: a thread keeps the CPU time of calls that leave its table.
 */

#include "strace.h"

#include "../profiler.h"

#define READ_TRIES     64
#define THREADS_A_STEP 16
#define READ_ALL_TRIES 4

/*
 * Adds up the CPU time of all rows. The row of a call in flight has `-start_cycles` in its sum.
 * With the present time, and the time off a CPU now and at the call's entry, this leaves
 * `exec_cycles - base_off_cycles`. As in snapshot.c, only the sign says that a call is in flight,
 * and the row of a call that has just ended may lack its time off a CPU.
 */
static u64 add_rows(const struct profile_task *pt, u64 seq, u64 exec_cycles)
{
	const struct profile_syscall_row *flying = seq & 1 ? pf_read_once(pt->row) : NULL;
	u64 base_off_cycles = pf_read_once(pt->base_off_cycles), sum = 0;

	for_each_strace_row(at, pt->table)
	{
		const struct profile_syscall_row *row = strace_row_at(pt->table, at);
		u64 cycles = pf_read_once(row->cycles), off_cycles = strace_row_off_cycles(row);

		if ((s64)cycles < 0)
			sum += cycles + exec_cycles - base_off_cycles;
		else if (row == flying)
			sum += cycles - base_off_cycles - os_off_cycles(pt);
		else
			sum += cycles - off_cycles;
	}
	return sum;
}

/*
 * Computes a thread's CPU time so far in system calls. exec_cycles is all of its CPU time so far.
 * Returns false if calls began or ended in every try.
 */
static bool call_cycles(const struct profile_task *pt, u64 exec_cycles, u64 *cycles)
{
	int tries = READ_TRIES;
	u64 seq;

	os_assert_held(&strace_lock);
	do {
		/* Pairs with the barriers in strace_begin() and strace_exit(): see read_row(). */
		seq = pf_load_acquire(&pt->seq);
		*cycles = pt->moved_cycles;
		if (pt->table)
			*cycles += add_rows(pt, seq, exec_cycles);
		pf_mb(); /* the rows before the second look at seq */
	} while (pf_read_once(pt->seq) != seq && --tries);
	return tries;
}

struct strace_kept strace_keep_calls(const struct profile_task *pt)
{
	struct strace_kept kept = { .exec_cycles = os_task_exec_cycles(pt) };

	call_cycles(pt, kept.exec_cycles, &kept.cycles);
	return kept;
}

void strace_calls_moved(struct profile_task *pt, struct strace_kept kept)
{
	u64 cycles;

	call_cycles(pt, kept.exec_cycles, &cycles);
	pt->moved_cycles += kept.cycles - cycles;
}

#if defined(CONFIG_PROFILE_STRACE_DETAIL) && defined(CONFIG_PROFILE_WAITS)
static bool add_user_cycles(const struct profile_task *pt, u64 *sum)
{
	u64 exec_cycles = os_task_exec_cycles(pt), kernel_cycles;

	if (!call_cycles(pt, exec_cycles, &kernel_cycles) ||
	    !profiler_add_fault_cycles(pt, exec_cycles, &kernel_cycles))
		return false;
	/* An interrupt can come after exec_cycles was read. */
	if (exec_cycles > kernel_cycles)
		*sum += exec_cycles - kernel_cycles;
	return true;
}

void strace_end_user_time(struct profile_task *pt)
{
	os_assert_held(&strace_lock);
	add_user_cycles(pt, &pt->process->exited_user_cycles);
}

static bool is_known(const struct profile_process *pp)
{
	return !pp->has_overflowed && !strace_was_off(pp);
}

/*
 * Adds up the threads of a process. Releases strace_lock after every few of them. Returns false if
 * one exited meanwhile.
 */
static bool read_threads(const struct profile_process *pp, u64 *sum, bool *known)
{
	unsigned long flags = os_lock(&strace_lock);
	u64 exited_cycles = pp->exited_user_cycles;
	struct profile_walk walk = { 0 };
	const struct profile_task *pt;
	bool same;

	*sum = exited_cycles;
	*known = is_known(pp);
	walk_begin(&walk, &strace_lists, pp);
	for (u32 nr = 1; *known && (pt = walk.task); nr++) {
		walk.task = pt->walk.next;
		*known = add_user_cycles(pt, sum);
		if (nr % THREADS_A_STEP == 0) {
			os_unlock(&strace_lock, flags);
			flags = os_lock(&strace_lock);
		}
	}
	walk_end(&walk);
	same = pp->exited_user_cycles == exited_cycles;
	os_unlock(&strace_lock, flags);
	return same;
}

void profile_get_user_cycles(os_process_t *proc, u64 *cycles)
{
	int tries = READ_ALL_TRIES;
	bool known;
	u64 sum;

	while (!read_threads(os_process_profile(proc), &sum, &known) && --tries)
		;
	if (known && tries)
		*cycles = sum;
}

void profile_get_own_user_cycles(u64 *cycles)
{
	struct profile_task *pt = os_current_profile();
	unsigned long flags = os_lock(&strace_lock);
	u64 sum = 0;

	if (pt->process && is_known(pt->process) && add_user_cycles(pt, &sum))
		*cycles = sum;
	os_unlock(&strace_lock, flags);
}
#endif
