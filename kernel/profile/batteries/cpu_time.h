/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_BATTERIES_CPU_TIME_H
#define PROFILE_BATTERIES_CPU_TIME_H

/*
 * The CPU time of a thread, for os_task_exec_cycles() and os_off_cycles(): a member of its
 * structure, zero at first, that the scheduler changes. It is one word, so other CPUs never see
 * half of a switch: with BATTERY_RUNS the time off a CPU since the clock was 0; without, that on
 * one.
 */

#include "cpu.h"

#define BATTERY_RUNS (1ul << 63)

struct battery_cpu_time {
	unsigned long word;
};

/* Starts the time of a thread that runs already, such as the first one of a CPU. */
static inline void battery_time_begin(struct battery_cpu_time *time, unsigned long now)
{
	pf_write_once(time->word, BATTERY_RUNS | now);
}

/* Returns the time off a CPU, of a thread that runs. */
static inline unsigned long battery_time_off(const struct battery_cpu_time *time)
{
	return pf_read_once(time->word) & ~BATTERY_RUNS;
}

/* Returns the time on a CPU so far, of any thread. now: what reads the clock, afterwards. */
#define battery_time_on(time, now)                                              \
	({                                                                      \
		unsigned long _word = pf_read_once((time)->word);               \
                                                                                \
		_word < BATTERY_RUNS ? _word : (now) - (_word & ~BATTERY_RUNS); \
	})

/* Called at a switch, with the clock, before profile_task_runs(). */
static inline void battery_time_switch(struct battery_cpu_time *prev, struct battery_cpu_time *next,
				       unsigned long now)
{
	pf_write_once(prev->word, now - battery_time_off(prev));
	pf_write_once(next->word, BATTERY_RUNS | (now - next->word));
}

#endif
