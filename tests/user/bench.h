/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_USER_BENCH_H
#define TESTS_USER_BENCH_H

/* For programs that measure: the clock, and the lines that tests/bench/ reads. */

#include <stdint.h>
#include <stdio.h>

/* Returns TSC cycles. What stands before is in the time, what stands after is not. */
static inline uint64_t rdtsc(void)
{
	uint32_t low, high;

	asm volatile("lfence; rdtsc; lfence" : "=a"(low), "=d"(high) : : "memory");
	return (uint64_t)high << 32 | low;
}

/* Leaves nothing in the buffer, which a child would print again. */
static inline void bench_print(const char *name, uint64_t cycles, long nr)
{
	printf("bench: %s %llu %ld\n", name, (unsigned long long)cycles, nr);
	fflush(stdout);
}

/* The first times take longer. */
static inline void time_operation(const char *name, void (*operation)(void), long nr)
{
	uint64_t start;

	for (int i = 0; i < 2; i++)
		operation();
	start = rdtsc();
	for (long i = 0; i < nr; i++)
		operation();
	bench_print(name, rdtsc() - start, nr);
}

#endif
