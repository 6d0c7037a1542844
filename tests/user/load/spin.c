// SPDX-License-Identifier: BSD-2-Clause
/*
 * spin MS|- [THREADS]: burns CPU time in user code for MS milliseconds, or until a line is typed,
 * in each of THREADS threads (default 1), with a few system calls in between. Prints a line when it
 * starts.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"

static long duration_ms; /* -1: until a line is typed */
static volatile int is_typed;

/* arg: NULL for the thread that reads the line. */
static int is_over(long end, const void *arg)
{
	struct pollfd input = { .events = POLLIN };

	if (duration_ms >= 0)
		return now_ms() >= end;
	if (!arg && poll(&input, 1, 0) == 1)
		is_typed = 1;
	return is_typed;
}

static void *burn(void *arg)
{
	long end = now_ms() + duration_ms;

	do {
		for (volatile int i = 0; i < 1000000; i++)
			;
	} while (!is_over(end, arg));
	return arg;
}

int main(int argc, char **argv)
{
	static const char started[] = "spin: started\n", done[] = "PASS: spin\n";
	pthread_t threads[64];
	int nr_threads = argc > 2 ? atoi(argv[2]) : 1;

	if (argc < 2 || nr_threads < 1 || nr_threads > 64) {
		puts("usage: spin MS|- [THREADS] (THREADS from 1 to 64)");
		return 2;
	}
	duration_ms = strcmp(argv[1], "-") ? atol(argv[1]) : -1;
	(void)!write(1, started, strlen(started));
	for (int i = 1; i < nr_threads; i++) {
		if (pthread_create(&threads[i], NULL, burn, threads))
			return 1;
	}
	burn(NULL);
	for (int i = 1; i < nr_threads; i++)
		pthread_join(threads[i], NULL);
	(void)!write(1, done, strlen(done));
	return 0;
}
