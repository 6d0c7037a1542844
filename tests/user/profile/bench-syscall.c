// SPDX-License-Identifier: BSD-2-Clause
/*
 * bench-syscall CALLS LOOPS: TSC cycles for CALLS getppid system calls and for LOOPS rounds of a
 * fixed user loop of two instructions a round (the difference to a kernel without a tick is the
 * cost of the tick). Lines `bench: <name> <value>`. The first line is the TSC at main(): the time
 * from power on to user code, if the TSC starts at 0.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

static void call_many(long nr)
{
	long ret;

	for (long i = 0; i < nr; i++)
		asm volatile("syscall" : "=a"(ret) : "0"(SYS_getppid) : "rcx", "r11", "memory");
}

int main(int argc, char **argv)
{
	long nr_calls = argc > 1 ? atol(argv[1]) : 10000;
	long nr_loops = argc > 2 ? atol(argv[2]) : 10000000;
	long left = nr_loops;
	uint64_t start = rdtsc();

	printf("bench: main_tsc %llu\n", (unsigned long long)start);
	if (nr_calls < 1 || nr_loops < 1) {
		puts("usage: bench-syscall CALLS LOOPS");
		return 2;
	}
	call_many(100);
	start = rdtsc();
	call_many(nr_calls);
	start = rdtsc() - start;
	printf("bench: syscall_getppid_calls %ld\nbench: syscall_getppid_cycles %llu\n", nr_calls,
	       (unsigned long long)start);

	start = rdtsc();
	asm volatile("1: dec %0\n\tjnz 1b" : "+r"(left));
	start = rdtsc() - start;
	printf("bench: loop_rounds %ld\nbench: loop_cycles %llu\n", nr_loops,
	       (unsigned long long)start);
	return 0;
}
