// SPDX-License-Identifier: BSD-2-Clause
/*
 * bench-areas areas AREAS N: TSC cycles for N of each operation in an address space that has AREAS
 * areas of one page, side by side: munmap of a random area, mmap, which fills the hole, and the
 * first write to the new page; and for N / 10 forks, each with exit and wait. Ends if an mmap does
 * not fill the hole.
 *
 * bench-areas threads THREADS N: the same for N pairs of mmap and munmap in each of THREADS threads
 * at once, of a page that is not touched and of one that is. Lines `bench: <name> <cycles>
 * <operations>`.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define PAGE_BYTES 4096

static void die(const char *what)
{
	printf("bench-areas: %s\n", what);
	exit(1);
}

static char *map(long nr_pages, int prot)
{
	char *place = mmap(NULL, nr_pages * PAGE_BYTES, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (place == MAP_FAILED)
		die("no memory");
	return place;
}

static void unmap(char *place)
{
	if (munmap(place, PAGE_BYTES))
		die("munmap failed");
}

/* Neighbours differ, so that they stay areas of their own. */
static int prot_of(long i)
{
	return i % 2 ? PROT_READ | PROT_WRITE : PROT_READ | PROT_WRITE | PROT_EXEC;
}

static char *make_areas(long nr)
{
	char *base = map(nr, PROT_READ | PROT_WRITE);

	for (long i = 0; i < nr; i += 2) {
		if (mprotect(base + i * PAGE_BYTES, PAGE_BYTES, prot_of(i)))
			die("mprotect failed");
	}
	return base;
}

static void time_areas(long nr_areas, long nr)
{
	char *base = make_areas(nr_areas);
	uint64_t unmap_cycles = 0, map_cycles = 0, fault_cycles = 0, random = 1;

	for (long n = 0; n < nr; n++) {
		uint64_t start;
		char *place;
		long i;

		random = random * 6364136223846793005ull + 1442695040888963407ull;
		i = (random >> 33) % nr_areas;
		place = base + i * PAGE_BYTES;
		*place = 1; /* every munmap frees a page */
		start = rdtsc();
		unmap(place);
		unmap_cycles += rdtsc() - start;
		start = rdtsc();
		if (map(1, prot_of(i)) != place)
			die("mmap did not fill the highest hole");
		map_cycles += rdtsc() - start;
		start = rdtsc();
		*(volatile char *)place = 1;
		fault_cycles += rdtsc() - start;
	}
	bench_print("unmap", unmap_cycles, nr);
	bench_print("map", map_cycles, nr);
	bench_print("fault", fault_cycles, nr);
}

static void time_forks(long nr)
{
	uint64_t start = rdtsc();

	for (long n = 0; n < nr; n++) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			die("no child");
	}
	bench_print("fork", rdtsc() - start, nr);
}

static pthread_barrier_t all;
static long nr_pairs;
static int touches;

static void *map_and_unmap(void *unused)
{
	pthread_barrier_wait(&all);
	for (long n = 0; n < nr_pairs; n++) {
		char *place = map(1, PROT_READ | PROT_WRITE);

		if (touches)
			*(volatile char *)place = 1;
		unmap(place);
	}
	pthread_barrier_wait(&all);
	return unused;
}

static void time_threads(const char *name, long nr_threads)
{
	pthread_t thread;
	uint64_t start;

	pthread_barrier_init(&all, NULL, nr_threads + 1);
	for (long i = 0; i < nr_threads; i++) {
		if (pthread_create(&thread, NULL, map_and_unmap, NULL) || pthread_detach(thread))
			die("no thread");
	}
	pthread_barrier_wait(&all);
	start = rdtsc();
	pthread_barrier_wait(&all);
	bench_print(name, rdtsc() - start, nr_threads * nr_pairs);
}

int main(int argc, char **argv)
{
	long nr = argc == 4 ? atol(argv[2]) : 0;

	nr_pairs = argc == 4 ? atol(argv[3]) : 0;
	if (nr > 0 && nr_pairs > 0 && !strcmp(argv[1], "areas")) {
		time_areas(nr, nr_pairs);
		time_forks((nr_pairs + 9) / 10);
	} else if (nr > 0 && nr_pairs > 0 && !strcmp(argv[1], "threads")) {
		time_threads("pairs", nr);
		touches = 1;
		time_threads("pairs_touched", nr);
	} else {
		puts("usage: bench-areas areas AREAS N | threads THREADS N");
		return 2;
	}
	return 0;
}
