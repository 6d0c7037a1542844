// SPDX-License-Identifier: BSD-2-Clause
/* run_helper() forks a process of 64 MiB for a job that needs only a few bytes. */
#include "diagnosis.h"

#include <string.h>
#include <sys/wait.h>

#define NR_JOBS	   60
#define CACHE_SIZE (64 << 20)

static char *cache;

static void NOINLINE run_helper(int job)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		die("fork");
	if (!pid)
		_exit(cache[job] != 1);
	if (waitpid(pid, &status, 0) != pid || status)
		die("waitpid");
}

int main(void)
{
	cache = malloc(CACHE_SIZE);
	if (!cache)
		die("malloc");
	memset(cache, 1, CACHE_SIZE);
	for (int i = 0; i < NR_JOBS; i++) {
		run_helper(i);
		work(1000);
	}
	free(cache);
	return 0;
}
