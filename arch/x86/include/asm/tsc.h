/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_TSC_H
#define ASM_TSC_H

#include <lego/types.h>

/*
 * Returns whether the TSC counts the instructions of all CPUs together, as under QEMU's -icount.
 * Recognizes QEMU's TCG with a TSC of exactly 1 GHz; without -icount it has the host's frequency.
 * After clock_init().
 */
bool tsc_counts_instructions(void);

/* Then several CPUs take turns on one thread of the host: see tick.c. Set by clock_init(). */
extern bool cpus_take_turns;

/*
 * Reads the time stamp counter, unordered: it may be read before earlier or after later
 * instructions (SDM vol. 2, RDTSC).
 */
static inline void rdtsc_halves(u64 *low, u64 *high)
{
	/* The instruction clears the upper halves of both registers. */
	asm volatile("rdtsc" : "=a"(*low), "=d"(*high));
}

static inline u64 rdtsc(void)
{
	u64 low, high;

	rdtsc_halves(&low, &high);
	return high << 32 | low;
}

/* Starts a timed section: no instruction of the section runs before the read. */
static inline u64 rdtsc_begin(void)
{
	u32 low, high;

	asm volatile("rdtsc; lfence" : "=a"(low), "=d"(high)::"memory");
	return (u64)high << 32 | low;
}

/* Ends a timed section: all instructions of the section are done before the read. */
static inline u64 rdtsc_end(void)
{
	u32 low, high;

	asm volatile("lfence; rdtsc" : "=a"(low), "=d"(high)::"memory");
	return (u64)high << 32 | low;
}

#endif
