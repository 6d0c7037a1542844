/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_DIAGNOSIS_H
#define TESTS_DIAGNOSIS_H

/* For the programs in this folder and critical.c: threads with names, work, and sleep. */

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((__noinline__, __unused__))

static inline void die(const char *what)
{
	perror(what);
	exit(1);
}

static inline void set_name(const char *name)
{
	prctl(PR_SET_NAME, name);
}

static inline pthread_t start(void *(*fn)(void *arg), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fn, arg))
		die("pthread_create");
	return thread;
}

/* Keeps the CPU busy for nr loops. */
static void NOINLINE work(long nr)
{
	for (volatile long i = 0; i < nr; i++)
		;
}

static inline void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

#endif
