// SPDX-License-Identifier: BSD-2-Clause
/* memory_used() reads /proc/self/status, and the program asks it before each step. */
#include "diagnosis.h"

#define NR_STEPS 5000

static long NOINLINE memory_used(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	long kib = 0;

	if (!file)
		die("/proc/self/status");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "VmRSS: %ld", &kib) == 1)
			break;
	fclose(file);
	return kib;
}

int main(void)
{
	for (int i = 0; i < NR_STEPS; i++) {
		if (memory_used() > 100000)
			die("too much memory");
		work(100);
	}
	return 0;
}
