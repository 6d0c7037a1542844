// SPDX-License-Identifier: BSD-2-Clause
/*
 * eatmem [megabytes]: a child allocates memory until there is none and it is killed. The parent
 * must survive, with its memory unchanged. On a machine with more memory than that (default 1024
 * MB), such as a host, a resource limit makes the child's allocation fail instead.
 */
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include "run.h"

#define PAGE 4096ul

static void eat(void)
{
	for (;;) {
		volatile char *more = mmap(NULL, 256 * PAGE, PROT_READ | PROT_WRITE,
					   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (more == MAP_FAILED)
			child_exit(errno == ENOMEM ? 3 : 4);
		for (int i = 0; i < 256; i++)
			more[i * PAGE] = 1;
	}
}

static unsigned long free_bytes(void)
{
	struct sysinfo info = { 0 };

	CHECK(!sysinfo(&info));
	return info.freeram * info.mem_unit;
}

int main(int argc, char **argv)
{
	unsigned long most = (argc > 1 ? strtoul(argv[1], NULL, 0) : 1024) << 20, before;
	struct rlimit space = { most / 4, most / 4 };
	struct sysinfo info = { 0 };
	int small;

	setvbuf(stdout, NULL, _IOLBF, 0);
	CHECK(!sysinfo(&info));
	small = info.totalram * info.mem_unit <= most;
	before = free_bytes();
	for (int i = 0; i < 2; i++) {
		char *mine = malloc(1 << 20);
		pid_t pid;

		memset(mine, i + 1, 1 << 20);
		pid = fork_child();
		if (!pid) {
			if (!small)
				CHECK(!setrlimit(RLIMIT_AS, &space));
			eat();
		}
		CHECK(child_status(pid) == (small ? SIGKILL : EXITED(3)));
		CHECK(mine[0] == i + 1 && mine[(1 << 20) - 1] == i + 1);
		free(mine);
		if (small) /* the child's memory is free again, or will be soon */
			CHECK(WAIT_UNTIL(free_bytes() + (8 << 20) > before));
	}
	printf("eatmem: %lu KiB free before, %lu KiB after\n", before >> 10, free_bytes() >> 10);
	return check_finish("eatmem");
}
