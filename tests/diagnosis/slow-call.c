// SPDX-License-Identifier: BSD-2-Clause
/* Makes many quick system calls and a few slow ones: each pwrite() writes a megabyte. */
#include "diagnosis.h"

#include <fcntl.h>
#include <sys/syscall.h>

static char data[1 << 20];

int main(void)
{
	int fd = open("/tmp/log", O_RDWR | O_CREAT, 0600);

	if (fd < 0)
		die("/tmp/log");
	for (int i = 0; i < 20; i++) {
		for (int j = 0; j < 500; j++)
			syscall(SYS_getppid);
		if (pwrite(fd, data, sizeof(data), 0) != sizeof(data))
			die("pwrite");
		work(10000);
	}
	return 0;
}
