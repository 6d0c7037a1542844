/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Switches the counting and tracing of all functions, with all events on, and looks for events that
 * were lost without a report: on each CPU the task that sched_switch switches to is the one that
 * the next sched_switch switches from, unless a line `CPU:n [LOST ...]` is in between.
 */
#ifndef TESTS_USER_FLIP_FUNCTIONS_H
#define TESTS_USER_FLIP_FUNCTIONS_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

#define TRACING	 "/sys/kernel/tracing/"
#define MAX_CPUS 64

struct flip_counts {
	unsigned long nr_flips, nr_reads, nr_switches, nr_lost;
};

static inline void flip_control(const char *path, const char *word)
{
	int fd = open(path, O_WRONLY | O_TRUNC);

	if (!CHECK(fd >= 0 && (!*word || write(fd, word, strlen(word)) > 0)))
		printf("%s: %s\n", path, word);
	close(fd);
}

static inline void flip_read_whole(const char *path)
{
	int fd = open(path, O_RDONLY);
	char text[4096];
	ssize_t n;

	while ((n = read(fd, text, sizeof(text))) > 0)
		;
	if (!CHECK(fd >= 0 && !n))
		printf("%s cannot be read\n", path);
	close(fd);
}

/* Returns the CPU of a line: the number in brackets or, in a graph, at the start of the line. */
static inline int flip_cpu_of(const char *line)
{
	const char *bracket = strstr(line, " [");
	int cpu = -1;

	if (sscanf(line, " %d)", &cpu) != 1 && bracket)
		sscanf(bracket, " [%d]", &cpu);
	return CHECK(cpu >= 0 && cpu < MAX_CPUS) ? cpu : 0;
}

/*
 * Returns the number after the last `name` in the line. Names of tasks, which could contain that,
 * come before it.
 */
static inline int flip_number(const char *line, const char *name)
{
	const char *at, *last = NULL;

	for (at = line; (at = strstr(at, name)); at++)
		last = at + strlen(name);
	return CHECK(last) ? atoi(last) : -1;
}

/*
 * Reads and checks the trace. Tracing is off meanwhile, because otherwise the text would not end.
 */
static inline void flip_read_trace(struct flip_counts *counts)
{
	int running[MAX_CPUS], cpu, prev;
	FILE *file = fopen(TRACING "trace", "r");
	unsigned long nr_lost;
	char line[1024];

	memset(running, 0xff, sizeof(running));
	while (CHECK(file) && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "CPU:%d [LOST %lu", &cpu, &nr_lost) == 2) {
			running[cpu % MAX_CPUS] = -1;
			counts->nr_lost += nr_lost;
		}
		if (!strstr(line, "sched_switch: "))
			continue;
		cpu = flip_cpu_of(line);
		prev = flip_number(line, " prev_pid=");
		if (!CHECK(running[cpu] == -1 || running[cpu] == prev))
			printf("%d was running: %s", running[cpu], line);
		running[cpu] = flip_number(line, " next_pid=");
		counts->nr_switches++;
	}
	fclose(file);
	fflush(stdout);
	counts->nr_reads++;
}

/* Changes the settings until the process is killed. */
static inline void flip_functions(uint64_t state, struct flip_counts *counts)
{
	static const char *const tracers[] = { "nop", "function", "function_graph" };
	static const char *const triggers[] = {
		"",
		"hist:keys=common_pid.execname:vals=bytes_req:sort=bytes_req.descending",
		"hist:keys=common_stacktrace,bytes_req.log2 if bytes_alloc > 64",
	};

	flip_control(TRACING "buffer_size_kb", "128");
	flip_control(TRACING "events/enable", "1");
	for (;;) {
		for (int i = 0; i < 2; i++) {
			flip_control(TRACING "current_tracer", tracers[flip_random(&state) % 3]);
			flip_control("/proc/profile/function_calls",
				     flip_random(&state) % 2 ? "on" : "off");
			flip_control(TRACING "events/count", flip_random(&state) % 2 ? "1" : "0");
			flip_control(TRACING "events/kmem/kmalloc/trigger",
				     triggers[flip_random(&state) % 3]);
			flip_read_whole(TRACING "events/kmem/kmalloc/hist");
			counts->nr_flips += 2;
		}
		flip_control(TRACING "tracing_on", "0");
		flip_read_trace(counts);
		flip_control(TRACING "trace", "");
		flip_control(TRACING "tracing_on", "1");
	}
}

#endif
