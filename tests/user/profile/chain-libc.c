// SPDX-License-Identifier: BSD-2-Clause
/*
 * chain-libc MS: for MS milliseconds, record() calls functions of the C library that make system
 * calls, and a signal handler does so, too, on a stack of its own. The C library keeps no frame
 * pointers. Then it prints its samples: `stacks <line>` and `records <line>`, and its mappings:
 * `maps <line>`.
 */
#include <signal.h>

#include "clock.h"
#include "proc_profile.h"

#define ROUNDS 1000

static FILE *null;

static __attribute__((noinline)) int record(int nr)
{
	fprintf(null, "record %d\n", nr);
	return fflush(null) + nr;
}

static volatile int nr_handled;

static void handle(int signal)
{
	nr_handled += record(signal);
}

static __attribute__((noinline)) int work(void)
{
	volatile int sum = 0;

	for (int i = 0; i < ROUNDS; i++)
		sum += record(i);
	for (int i = 0; i < ROUNDS; i++)
		sum += raise(SIGUSR1);
	return sum;
}

int main(int argc, char **argv)
{
	static char stack[64 * 1024];
	stack_t on = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_ONSTACK };
	long end_ms;

	if (argc != 2) {
		puts("usage: chain-libc MS");
		return 2;
	}
	null = fopen("/dev/null", "w");
	sigaltstack(&on, NULL);
	sigaction(SIGUSR1, &action, NULL);
	end_ms = now_ms() + atol(argv[1]);
	while (now_ms() < end_ms)
		work();
	control("/proc/profile/heatmap", "off");
	print_file("maps", "/proc/self/maps");
	print_file("stacks", "/proc/profile/stacks");
	print_file("records", "/proc/profile/samples.json");
	puts("PASS: chain-libc");
	return 0;
}
