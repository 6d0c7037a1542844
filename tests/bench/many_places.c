// SPDX-License-Identifier: BSD-2-Clause
/*
 * Fills the stores of samples: runs so many different instructions on each CPU that hardly any
 * instruction is sampled twice.
 */
#define _GNU_SOURCE
#include <sched.h>

#define CPUS   4
#define PASSES 270 /* on each CPU: some 13,600 different stacks at 100,000 samples a second */

static __attribute__((noinline)) void places(void)
{
	asm volatile(".rept 400000; add $1, %%eax; .endr" ::: "eax", "cc");
}

/* Makes a stack of some frames, as programs have. The barrier prevents tail calls. */
static __attribute__((noinline)) void call(int depth)
{
	if (depth)
		call(depth - 1);
	else
		places();
	asm volatile("" ::: "memory");
}

int main(void)
{
	for (int cpu = 0; cpu < CPUS; cpu++) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		if (sched_setaffinity(0, sizeof(set), &set))
			return 1;
		for (int i = 0; i < PASSES; i++)
			call(6);
	}
	return 0;
}
