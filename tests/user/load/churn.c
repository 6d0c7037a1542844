// SPDX-License-Identifier: BSD-2-Clause
/*
 * churn THREADS: until a byte comes from the console, THREADS threads make system calls and start
 * and join short-lived threads that make more. Prints how many calls and threads there were, to
 * compare with the report, and ends by exit_group() with one thread asleep in a call.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_THREADS    64
#define NR_SHORT_CALLS 20

static int stop;
static long nr_getppid, nr_bad_close, nr_threads;

static void call(int n)
{
	for (int i = 0; i < n; i++) {
		getppid();
		close(-1);
	}
	__atomic_fetch_add(&nr_getppid, n, __ATOMIC_RELAXED);
	__atomic_fetch_add(&nr_bad_close, n, __ATOMIC_RELAXED);
}

static void *short_lived(void *arg)
{
	call(NR_SHORT_CALLS);
	return arg;
}

static void start(pthread_t *thread, void *(*fn)(void *arg))
{
	if (pthread_create(thread, NULL, fn, NULL)) {
		puts("FAIL: pthread_create");
		exit(1);
	}
	__atomic_fetch_add(&nr_threads, 1, __ATOMIC_RELAXED);
}

static void *churn(void *arg)
{
	pthread_t thread;

	do {
		start(&thread, short_lived);
		call(500);
		pthread_join(thread, NULL);
	} while (!__atomic_load_n(&stop, __ATOMIC_RELAXED));
	return arg;
}

static void *sleep_for_ever(void *arg)
{
	sleep(100000);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t threads[MAX_THREADS], sleeper;
	int nr = argc == 2 ? atoi(argv[1]) : 0;
	char byte;

	if (nr < 1 || nr > MAX_THREADS) {
		puts("usage: churn THREADS (1 to 64)");
		return 2;
	}
	puts("churn: started");
	fflush(stdout);
	start(&sleeper, sleep_for_ever);
	for (int i = 0; i < nr; i++)
		start(&threads[i], churn);
	if (read(0, &byte, 1) != 1)
		puts("FAIL: read");
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	printf("churn: getppid %ld close %ld threads %ld\n", nr_getppid, nr_bad_close, nr_threads);
	puts("PASS: churn");
	return 0;
}
