// SPDX-License-Identifier: BSD-2-Clause
/*
 * late-kills <rounds> [<seed> [tracers]]: measures how long SIGKILL takes, from kill() to the
 * return of waitpid(), while as many processes compute as there are CPUs, and another one changes
 * the profilers' settings and switches all events and, if told so, the tracers of functions, which
 * patches code. The victims are of all kinds. Prints the longest time for each kind, in
 * microseconds; the limit is meant for -icount. With 0 rounds, kills one process only.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "flip.h"
#include "run.h"

#define NR_THREADS  4
#define CHUNK_BYTES (1 << 20)
#define LIMIT_US    100000

static long now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* With -icount, a nanosecond of this costs the host less than that of a loop of one instruction. */
static void burn(void)
{
	for (;;)
		asm volatile(".rept 200\n\tnop\n\t.endr");
}

static void call(void)
{
	for (;;)
		syscall(SYS_getppid);
}

#define TRACING "../../sys/kernel/tracing/"

static uint64_t seed; /* of the settings that are drawn, with the process's number */
static bool has_tracers;

static void flip(void)
{
	static const struct flip flips_of_events[] = {
		{ TRACING "events/enable", "1" },
		{ TRACING "events/enable", "0" },
	};
	static const struct flip flips_of_tracers[] = {
		{ TRACING "current_tracer", "function" },
		{ TRACING "current_tracer", "function_graph" },
		{ TRACING "current_tracer", "nop" },
	};
	uint64_t state = (getpid() + (seed << 32)) * 0x9e3779b97f4a7c15ul;

	for (;;) {
		flip_one(flips_of_events, NR_FLIPS(flips_of_events), &state);
		if (has_tracers)
			flip_one(flips_of_tracers, NR_FLIPS(flips_of_tracers), &state);
		/* CPUs that take turns have no time for 80,000 samples a second that are traced. */
		flip_one(flips_of_samples, NR_FLIPS(flips_of_samples) - has_tracers, &state);
		flip_one(flips_of_others, NR_FLIPS(flips_of_others), &state);
		flip_one(flips_of_strace, NR_FLIPS(flips_of_strace), &state);
	}
}

static void report(void)
{
	for (;;) {
		flip_read("/proc/profile/report");
		flip_read("/proc/profile/stacks");
	}
}

static void touch(void)
{
	for (;;) {
		char *memory = mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		memset(memory, 1, CHUNK_BYTES);
		munmap(memory, CHUNK_BYTES);
	}
}

static void *touch_thread(void *unused)
{
	touch();
	return NULL;
}

static void touch_together(void)
{
	pthread_t thread;

	for (int i = 1; i < NR_THREADS; i++)
		pthread_create(&thread, NULL, touch_thread, NULL);
	touch();
}

static void fork_often(void)
{
	for (;;) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
}

static void wait_on_pipe(void)
{
	int fds[2];
	char byte;

	if (!pipe(fds))
		read(fds[0], &byte, 1);
	burn();
}

static const struct victim {
	const char *name;
	void (*run)(void);
} victims[] = {
	{ "burn", burn },	  { "call", call },
	{ "flip", flip },	  { "report", report },
	{ "touch", touch },	  { "fork", fork_often },
	{ "pipe", wait_on_pipe }, { "threads", touch_together },
};

#define NR_VICTIMS (int)(sizeof(victims) / sizeof(*victims))

static pid_t start(void (*run)(void))
{
	pid_t pid = fork_child();

	if (!pid)
		run();
	return pid;
}

/* Kills one process, which a test of the kernel delays. */
static int kill_one(void)
{
	pid_t pid = start(touch);

	sleep_ms(1000);
	CHECK(!kill(pid, SIGKILL));
	CHECK(child_status(pid) == SIGKILL);
	return check_finish("late-kills");
}

int main(int argc, char **argv)
{
	int nr_rounds = argc > 1 ? atoi(argv[1]) : 1;
	long worst[NR_VICTIMS] = { 0 }, begin_us, us;
	cpu_set_t cpus;
	pid_t pid, flipper;

	seed = argc > 2 ? atoi(argv[2]) : 0;
	has_tracers = argc > 3;
	if (!nr_rounds)
		return kill_one();
	CHECK(!sched_getaffinity(0, sizeof(cpus), &cpus));
	for (int i = 0; i < CPU_COUNT(&cpus); i++)
		start(burn);
	flipper = start(flip);
	for (int i = 0; i < nr_rounds * NR_VICTIMS; i++) {
		const struct victim *victim = &victims[i % NR_VICTIMS];

		pid = start(victim->run);
		sleep_ms(20 + i * 7 % 23);
		if (victim->run == flip) { /* the older one does not wait for the other */
			pid_t older = flipper;

			flipper = pid;
			pid = older;
		}
		begin_us = now_us();
		CHECK(!kill(pid, SIGKILL));
		CHECK(child_status(pid) == SIGKILL);
		us = now_us() - begin_us;
		if (us > worst[i % NR_VICTIMS])
			worst[i % NR_VICTIMS] = us;
	}
	for (int i = 0; i < NR_VICTIMS; i++) {
		CHECK(worst[i] <= LIMIT_US);
		printf("late-kills: %s %ld\n", victims[i].name, worst[i]);
	}
	return check_finish("late-kills");
}
