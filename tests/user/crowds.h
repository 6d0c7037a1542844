/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_USER_CROWDS_H
#define TESTS_USER_CROWDS_H

/*
 * For programs that measure operations on one of a crowd: `bench-x KIND CROWD N` makes CROWD
 * objects of that kind, and prints the TSC cycles for N of each operation. The object is chosen at
 * random. An operation that looks at all of them (`list`, `poll`) is done once, and its N is the
 * number of those that it looked at. Lines `bench: <name> <cycles> <operations>`.
 */

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

static long crowd, nr_operations;

static inline void check(int ok, const char *what)
{
	if (ok)
		return;
	printf("%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	exit(1);
}

static inline long any(void)
{
	static uint64_t random = 1;

	random = random * 6364136223846793005ull + 1442695040888963407ull;
	return (random >> 33) % crowd;
}

/* Times the operation, which is called with the index of a random member of the crowd. */
static inline void time_each(const char *name, void (*operation)(long i))
{
	uint64_t cycles = 0;

	for (long n = 0; n < nr_operations; n++) {
		long i = any();
		uint64_t start = rdtsc();

		operation(i);
		cycles += rdtsc() - start;
	}
	bench_print(name, cycles, nr_operations);
}

static inline long list(const char *path)
{
	DIR *dir = opendir(path);
	long nr = 0;

	check(dir != NULL, path);
	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

static inline void time_list(const char *path)
{
	uint64_t start = rdtsc();
	long nr = list(path);

	bench_print("list", rdtsc() - start, nr);
}

static inline void fork_and_wait(long i)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	check(pid > 0 && waitpid(pid, NULL, 0) == pid, "waitpid");
}

struct kind {
	const char *name;
	void (*time)(void);
};

/* Measures the kind that the arguments name. Returns the value for main(). */
static inline int time_crowd(const struct kind *kinds, int argc, char **argv)
{
	crowd = argc == 4 ? atol(argv[2]) : 0;
	nr_operations = argc == 4 ? atol(argv[3]) : 0;
	for (; crowd > 0 && nr_operations > 0 && kinds->name; kinds++) {
		if (strcmp(argv[1], kinds->name))
			continue;
		kinds->time();
		return 0;
	}
	printf("usage: %s KIND CROWD N\n", program_invocation_short_name);
	return 2;
}

#endif
