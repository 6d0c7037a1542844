// SPDX-License-Identifier: BSD-2-Clause
/* queue_job() writes to pipes that nobody reads until all are full: the memory is the kernel's. */
#include "diagnosis.h"

#include <string.h>

#define NR_PIPES  200
#define NR_BYTES  (60 << 10) /* a pipe has room for 64 KiB */
#define JOB_BYTES 1000

static int pipes[NR_PIPES][2];

static void NOINLINE queue_job(int fd)
{
	char job[JOB_BYTES];

	memset(job, 'x', sizeof(job));
	for (int i = 0; i < NR_BYTES; i += JOB_BYTES) {
		if (write(fd, job, JOB_BYTES) != JOB_BYTES)
			die("write");
	}
}

int main(void)
{
	for (int i = 0; i < NR_PIPES; i++) {
		if (pipe(pipes[i]))
			die("pipe");
		queue_job(pipes[i][1]);
	}
	for (int i = 0; i < NR_PIPES; i++) {
		close(pipes[i][0]);
		close(pipes[i][1]);
	}
	return 0;
}
