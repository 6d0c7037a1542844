// SPDX-License-Identifier: BSD-2-Clause
/*
 * soak <changes> <seconds> <processes> <seed>: changes the source and rate of samples and the
 * profile points, at most so many times and seconds, while processes fork, fault, wait and make
 * calls (tests/soak).
 */
#include <sched.h>
#include <sys/mman.h>

#include "flip.h"
#include "run.h"

#define NR_PER_LINE 250 /* changes */
#define NR_PER_READ 20
#define BYTES	    (1 << 18)
#define PAUSE_MS    20 /* without a pause, an emulator on few CPUs makes hardly any changes */

static void touch_memory(void)
{
	char *memory =
		mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED);
	for (int i = 0; i < BYTES; i += 4096)
		memory[i] = 1;
	CHECK(!munmap(memory, BYTES));
}

/* Makes events until it is killed. */
static void work(void)
{
	int ends[2];
	pid_t pid;
	char byte;

	CHECK(!pipe(ends));
	for (;;) {
		pid = fork();
		if (!pid) {
			touch_memory();
			_exit(write(ends[1], "x", 1) != 1);
		}
		CHECK(pid > 0 && read(ends[0], &byte, 1) == 1 && child_status(pid) == 0);
		for (int i = 0; i < 200; i++)
			syscall(i % 16 ? SYS_getppid : SYS_sched_yield);
		touch_memory();
		sleep_ms(PAUSE_MS);
		if (check_nr_failed)
			child_exit(0);
	}
}

int main(int argc, char **argv)
{
	long nr_changes = argc > 1 ? atol(argv[1]) : 1000;
	long end_ms = now_ms() + 1000 * (argc > 2 ? atol(argv[2]) : 60);
	int nr_processes = argc > 3 ? atoi(argv[3]) : 8;
	uint64_t state = 0x9e3779b97f4a7c15ull * (argc > 4 ? strtoull(argv[4], NULL, 0) : 1);
	long nr = 0;

	for (int i = 0; i < nr_processes; i++) {
		if (!fork_child())
			work();
	}
	printf("soak: begins\n");
	while (nr < nr_changes && now_ms() < end_ms) {
		CHECK(flip_one(flips_of_samples, NR_FLIPS(flips_of_samples), &state));
		nr++;
		if (nr % NR_PER_READ == 0) {
			CHECK(flip_one(flips_of_others, NR_FLIPS(flips_of_others), &state));
			CHECK(flip_read(nr % (2 * NR_PER_READ) ? "/proc/profile/report" :
								 "/proc/profile/stacks"));
		}
		if (nr % NR_PER_LINE == 0) {
			printf("soak: %ld changes\n", nr);
			fflush(stdout);
		}
	}
	printf("soak: made %ld changes\n", nr);
	CHECK(!nr_processes || waitpid(-1, NULL, WNOHANG) == 0); /* no process has ended */
	return check_finish("soak");
}
