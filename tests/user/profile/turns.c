// SPDX-License-Identifier: BSD-2-Clause
/*
 * turns SPINNERS ROUNDS LIMIT_MS: threads that compute without a pause, which can starve each other
 * where CPUs take turns on one thread of the host (QEMU's -icount). The TSC then counts the
 * instructions of all CPUs together.
 *
 * Each thread has a CPU of its own, the main thread CPU 0. First SPINNERS threads spin, while the
 * main thread maps, touches and unmaps 1 MiB ROUNDS times: each unmap waits for all other CPUs.
 * Then the main thread spins, too, for 100 ms. Lines `bench: <name> <cycles> <count>`: unmap, all
 * rounds; turn, the longest time in which only one thread ran; wait, the longest time in which a
 * thread did not run. The last two are measured while all spin.
 *
 * Fails after LIMIT_MS of the guest's time, in whichever thread runs then.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"

#define MAX_THREADS   64
#define PAGE_BYTES    4096
#define MAP_BYTES     (1 << 20)
#define CYCLES_PER_MS 1000000 /* with -icount */
#define SPIN_MS	      100

static pthread_barrier_t all;
static uint64_t limit;
static volatile int all_spin, stop;
static volatile long runner; /* the thread that ran last */

static struct {
	uint64_t turn, wait;
} longest[MAX_THREADS];

static void compute(void)
{
	for (int i = 0; i < 1000; i++)
		asm volatile("");
}

static void raise_to(uint64_t *most, uint64_t value)
{
	if (*most < value)
		*most = value;
}

/* Runs the calling thread on one CPU. */
static void pin(long cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		exit(1);
}

/* Another thread may be anywhere in libc, so this one makes only system calls. */
static void check_limit(uint64_t now)
{
	static const char text[] = "FAIL: turns: the limit is over\n";

	if (now > limit)
		_exit(write(1, text, sizeof(text) - 1) < 0 ? 2 : 1);
}

/* Spins until the time is over or `stop` is set. */
static void spin(long me, uint64_t end)
{
	uint64_t now = rdtsc(), last = now, turn_start = now;

	while (!stop && now < end) {
		compute();
		now = rdtsc();
		check_limit(now);
		if (runner != me) {
			turn_start = now;
			runner = me;
		}
		raise_to(&longest[me].turn, now - turn_start);
		raise_to(&longest[me].wait, now - last);
		last = now;
	}
}

static void *spinner(void *me)
{
	pin((long)me);
	pthread_barrier_wait(&all);
	while (!all_spin)
		;
	spin((long)me, ~0ull);
	return NULL;
}

static void map_and_unmap(void)
{
	char *place =
		mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (place == MAP_FAILED)
		exit(1);
	for (long i = 0; i < MAP_BYTES; i += PAGE_BYTES)
		((volatile char *)place)[i] = 1;
	if (munmap(place, MAP_BYTES))
		exit(1);
}

int main(int argc, char **argv)
{
	long nr = argc == 4 ? atol(argv[1]) : 0, nr_rounds = argc == 4 ? atol(argv[2]) : 0;
	pthread_t threads[MAX_THREADS];
	uint64_t start, turn = 0, wait = 0;

	if (nr < 1 || nr >= MAX_THREADS || nr_rounds < 1) {
		puts("usage: turns SPINNERS ROUNDS LIMIT_MS");
		return 2;
	}
	limit = rdtsc() + atol(argv[3]) * CYCLES_PER_MS;
	pin(0);
	pthread_barrier_init(&all, NULL, nr + 1);
	for (long i = 0; i < nr; i++) {
		if (pthread_create(&threads[i], NULL, spinner, (void *)(i + 1)))
			return 1;
	}
	pthread_barrier_wait(&all);

	start = rdtsc();
	for (long i = 0; i < nr_rounds; i++) {
		map_and_unmap();
		check_limit(rdtsc());
	}
	bench_print("unmap", rdtsc() - start, nr_rounds);

	all_spin = 1;
	spin(0, rdtsc() + SPIN_MS * CYCLES_PER_MS);
	stop = 1;
	for (long i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	for (long i = 0; i <= nr; i++) {
		raise_to(&turn, longest[i].turn);
		raise_to(&wait, longest[i].wait);
	}
	bench_print("turn", turn, 1);
	bench_print("wait", wait, 1);
	return 0;
}
