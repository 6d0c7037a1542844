// SPDX-License-Identifier: BSD-2-Clause
/*
 * Measures the TSC cycles that the accounts of CPU time add to a system call, on this machine: the
 * macros of entry.S, among the instructions that save and restore registers. Prints
 * "bench: <name> <value>", cycles a round: the best of many rounds, in which the loops take turns.
 *
 * A program cannot execute the kernel's SWAPGS and SYSRET, so some loops have a real system call of
 * this machine in the middle. straced_calls* measure it as strace does: by two reads of its own or,
 * with the accounts, by theirs at the begin and by one more at the end.
 */
#include <stdint.h>
#include <stdio.h>

#define NR_ROUNDS 2000
#define NR_CALLS  200

void calls(long nr);
void calls_with_reads(long nr);
void calls_with_accounts(long nr);
void system_calls(long nr);
void system_calls_with_accounts(long nr);
void straced_calls(long nr);
void straced_calls_with_accounts(long nr);

uint64_t cpu_account[10];

static const struct {
	const char *name;
	void (*run)(long nr);
} loops[] = {
	{ "calls", calls },
	{ "calls_with_reads", calls_with_reads },
	{ "calls_with_accounts", calls_with_accounts },
	{ "system_calls", system_calls },
	{ "system_calls_with_accounts", system_calls_with_accounts },
	{ "straced_calls", straced_calls },
	{ "straced_calls_with_accounts", straced_calls_with_accounts },
};

#define NR_LOOPS (sizeof(loops) / sizeof(loops[0]))

static uint64_t clock_now(void)
{
	uint32_t low, high;

	asm volatile("lfence; rdtsc; lfence" : "=a"(low), "=d"(high) : : "memory");
	return (uint64_t)high << 32 | low;
}

int main(void)
{
	uint64_t best[NR_LOOPS];

	for (size_t i = 0; i < NR_LOOPS; i++)
		best[i] = UINT64_MAX;
	for (int round = 0; round < NR_ROUNDS; round++) {
		for (size_t i = 0; i < NR_LOOPS; i++) {
			uint64_t start = clock_now(), cycles;

			loops[i].run(NR_CALLS);
			cycles = clock_now() - start;
			if (cycles < best[i])
				best[i] = cycles;
		}
	}
	for (size_t i = 0; i < NR_LOOPS; i++)
		printf("bench: native_%s %.2f\n", loops[i].name, (double)best[i] / NR_CALLS);
	return 0;
}
