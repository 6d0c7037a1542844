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

#endif
