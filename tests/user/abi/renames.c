// SPDX-License-Identifier: BSD-2-Clause
/*
 * renames: 100 ms under its own name, 200 ms under the name "second", then execve of itself and
 * 300 ms more. A call a round tells the time; the rest is user code.
 */
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static void work(long ms)
{
	struct timespec now, end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += ms * 1000000;
	do {
		for (volatile int i = 0; i < 100000; i++)
			;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - end.tv_sec) * 1000000000 + now.tv_nsec < end.tv_nsec);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		work(300);
		puts("PASS: renames");
		return 0;
	}
	work(100);
	prctl(PR_SET_NAME, "second");
	work(200);
	execl(argv[0], argv[0], "again", NULL);
	perror("renames: execl");
	return 1;
}
