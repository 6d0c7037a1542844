// SPDX-License-Identifier: BSD-2-Clause
/*
 * Begins, moves and frees the counters of threads and processes: at their start, exit, execve, when
 * they are waited for, and when they are released. A report that is being read meanwhile finds each
 * counter once, in its old place or in its new one.
 */

#include "strace.h"

/* Counts the fork of a process, unless it shares the memory of its creator. */
static void count_fork(const struct profile_process *pp)
{
	u64 bytes = os_process_copied_bytes(os_process_of(pp));
	struct profile_process *creator = bytes ? os_current_profile()->process : NULL;

	os_assert_held(&lists_lock);
	if (!creator || strace_off_since_cycles)
		return;
	strace_catch_up_process(creator);
	creator->strace.exited.nr_forks++;
	creator->strace.exited.forked_bytes += bytes;
}

void strace_process_init(struct profile_process *pp)
{
	strace_sum_set_spare(&pp->strace.exited, &pp->spare_rows[0]);
	strace_sum_set_spare(&pp->strace.before, &pp->spare_rows[1]);
	strace_sum_set_spare(&pp->strace.children, &pp->spare_rows[2]);
	pp->strace.nr_system_resets = strace_nr_resets;
	strace_begin_off_time(pp);
	count_fork(pp);
}

/*
 * Returns the table of the process's threads that have exited, if there is one, or a spare one. So
 * nothing has to be added up where threads come one after the other. These took less than the time
 * since boot, on which profile_strace_begin_time() relies; the tables of several threads may not
 * have. A report that has read the sums of the process has read that table.
 */
static struct profile_syscall_table *take_table(struct profile_task *pt)
{
	struct profile_syscall_sum *exited = &pt->process->strace.exited;
	struct profile_syscall_table *table = exited->table;

	if (!table || table->of_many)
		return strace_table_take_spare();
	exited->table = NULL;
	strace_skip_task(pt);
	return table;
}

void strace_task_init(os_task_t *task)
{
	struct profile_task *pt = os_task_profile(task);
	struct profile_process *pp = pt->process;

	pt->strace.index = strace_no_rows;
	strace_sum_set_spare(&pt->strace.calls, &pt->spare_row);
	if (!pp)
		return;
	strace_catch_up_process(pp);
	pt->strace.nr_resets = pp->strace.nr_resets;
	pp->strace.nr_accumulated_threads++;
	pt->strace.calls.table = take_table(pt);
	strace_use_table(pt);
}

void strace_process_exec(struct profile_process *pp)
{
	struct profile_task *pt = os_current_profile();

	if (pt->process == pp) {
		strace_read_task(pt);
		strace_begin_program(pt);
	}
	pp->strace.nr_accumulated_threads = 1;
	strace_begin_off_time(pp);
}

void strace_task_exit(struct profile_task *pt)
{
	struct profile_process *pp = pt->process;

	if (!pp)
		return;
	strace_read_task(pt);
	strace_end_thread(pt);
	strace_sum_fold(&pp->strace.exited, &pt->strace.calls);
	if (pt != os_current_profile())
		pp->strace.nr_accumulated_threads--; /* clone() failed: the thread never ran */
	pt->strace.index = strace_no_rows;
}

/* Moves all calls of a process that is gone, once. */
static pf_always_inline void move_calls(struct profile_process *pp, struct profile_syscall_sum *to)
{
	if (pp->strace.is_gone)
		return;
	strace_read_process(pp);
	strace_nr_gone++;
	pp->strace.is_gone = true;
	strace_sum_fold(to, &pp->strace.before);
	strace_sum_fold(to, &pp->strace.exited);
	strace_sum_fold(to, &pp->strace.children);
}

void profile_process_waited(os_process_t *child)
{
	struct profile_process *pp = os_process_profile(child);
	struct profile_process *parent;
	unsigned long flags;

	if (os_key_on(&profile_off_key) || !(parent = os_current_profile()->process))
		return;
	flags = os_lock(&lists_lock);
	strace_catch_up_process(parent);
	strace_catch_up_process(pp);
	strace_read_children(parent);
	move_calls(pp, &parent->strace.children);
	parent->strace.nr_children += pp->strace.nr_children + 1;
	os_unlock(&lists_lock, flags);
}

void strace_process_release(struct profile_process *pp)
{
	if (pp->strace.is_gone)
		return;
	strace_catch_up_process(pp);
	move_calls(pp, &strace_gone);
}
