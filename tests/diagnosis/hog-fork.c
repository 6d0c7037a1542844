// SPDX-License-Identifier: BSD-2-Clause
/* Each child of a large process writes to all of its memory, so the kernel copies all of it. */
#include "diagnosis.h"

#include <string.h>
#include <sys/wait.h>

#define BYTES	    (16ul << 20)
#define NR_CHILDREN 4

static char *prices;

static char NOINLINE load_prices(void)
{
	prices = malloc(BYTES);
	if (!prices)
		die("malloc");
	memset(prices, 1, BYTES);
	return prices[BYTES / 2];
}

static void NOINLINE change_prices(void)
{
	for (size_t i = 0; i < BYTES; i++)
		prices[i]++;
}

int main(void)
{
	if (!load_prices())
		die("no prices");
	for (int i = 0; i < NR_CHILDREN; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (!pid) {
			change_prices();
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	return 0;
}
