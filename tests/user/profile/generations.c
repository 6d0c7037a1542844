// SPDX-License-Identifier: BSD-2-Clause
/*
 * generations N: runs N short processes, of three names, up to four at a time. Each computes with
 * call chains of its own and waits for its parent with chains of its own, so that a store of chains
 * which forgets nothing runs full. The first process is named `first`, the last one `last`; they do
 * the same, and more than the others, so that their reports can be compared. At the end prints how
 * much memory the last three quarters of the run have taken, and all views of the samples.
 */
#include "proc_profile.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define AT_ONCE	   4
#define NR_WORK	   60
#define NR_MEASURE 1500
#define NR_WAITS   5

static volatile unsigned long sum;
static int pipe_to[2];

static void compute(void)
{
	for (int i = 0; i < 2000; i++)
		sum += i;
}

static void wait_for_parent(void)
{
	char byte;

	if (read(pipe_to[0], &byte, 1) != 1)
		exit(1);
}

/* Calls fn() through frames whose return addresses spell the number. */
static void through(unsigned int number, int depth, void (*fn)(void))
{
	if (!depth)
		fn();
	else if (number & 1) {
		through(number / 2, depth - 1, fn);
		asm volatile("nop");
	} else {
		through(number / 2, depth - 1, fn);
		asm volatile(""); /* differs from the other end, so there are two calls */
	}
}

static void child(const char *name, unsigned int number, int nr)
{
	prctl(PR_SET_NAME, name);
	for (int i = 0; i < nr; i++)
		through(number * 31 + i * (i % 4 == 0), 12, compute);
	for (int i = 0; i < NR_WAITS; i++)
		through(number * 17 + i, 12, wait_for_parent);
	_exit(0);
}

static pid_t start(const char *name, unsigned int number, int nr)
{
	static const char bytes[NR_WAITS];
	pid_t pid = fork();

	if (pid < 0) {
		puts("FAIL: fork");
		exit(1);
	}
	if (!pid)
		child(name, number, nr);
	if (write(pipe_to[1], bytes, NR_WAITS) != NR_WAITS)
		exit(1);
	return pid;
}

static void end(int nr)
{
	int status;

	for (int i = 0; i < nr; i++) {
		if (wait(&status) < 0 || status) {
			puts("FAIL: child");
			exit(1);
		}
	}
}

static long free_kib(void)
{
	FILE *file = fopen("/proc/meminfo", "r");
	char line[128];
	long kib = -1;

	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "MemFree: %ld", &kib);
	if (file)
		fclose(file);
	return kib;
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "spring", "summer", "autumn" };
	int nr = argc > 1 ? atoi(argv[1]) : 100;
	long kib = 0;

	if (pipe(pipe_to))
		return 1;
	start("first", 1, NR_MEASURE);
	end(1);
	for (int i = 0; i < nr; i++) {
		if (i >= AT_ONCE)
			end(1);
		start(names[i % 3], i, NR_WORK);
		if (i == nr / 4)
			kib = free_kib();
	}
	end(nr < AT_ONCE ? nr : AT_ONCE);
	printf("memory: %ld KiB\n", kib - free_kib());
	start("last", 1, NR_MEASURE);
	end(1);
	print_file("heatmap", "/proc/profile/heatmap");
	return 0;
}
