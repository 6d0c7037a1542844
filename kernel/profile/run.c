// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counts the processes of a run: all since boot or since the last reset, including those that ran
 * at the reset. A run of one process has the report of that process, a run of several has a report
 * of its own (report_lock.c).
 */

#include "report.h"

static u32 nr_begun, nr_ended; /* since boot */
static u32 nr_ended_base;      /* nr_ended at the last reset */
static u64 begin_cycles;       /* of the run; 0: no process has begun */

bool run_add_process(void)
{
	bool first = !pf_read_once(begin_cycles); /* which is alone */

	if (first)
		pf_write_once(begin_cycles, os_cycles());
	__atomic_fetch_add(&nr_begun, 1, __ATOMIC_RELAXED);
	return first;
}

void run_end_process(void)
{
	__atomic_fetch_add(&nr_ended, 1, __ATOMIC_RELAXED);
}

void run_forget_process(void)
{
	__atomic_fetch_sub(&nr_begun, 1, __ATOMIC_RELAXED);
}

void run_reset(void)
{
	pf_write_once(nr_ended_base, pf_read_once(nr_ended));
	pf_write_once(begin_cycles, os_cycles());
}

u32 run_nr_processes(u32 *nr_running)
{
	u32 ended = pf_read_once(nr_ended), begun = pf_read_once(nr_begun);

	*nr_running = begun - ended;
	return begun - pf_read_once(nr_ended_base);
}

bool run_is_last_process(void)
{
	u32 nr_running;

	run_nr_processes(&nr_running);
	return nr_running <= 1;
}

u64 run_age_ns(void)
{
	u64 begin = pf_read_once(begin_cycles);

	return begin ? os_cycles_to_ns(os_cycles() - begin) : 0;
}
