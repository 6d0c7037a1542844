// SPDX-License-Identifier: BSD-2-Clause
/* scan_log() maps a large file and reads all of it, for one line at its end. */
#include "diagnosis.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#define BYTES (24ul << 20)

static char block[64 << 10];

static void NOINLINE write_log(int fd)
{
	memset(block, 'x', sizeof(block));
	for (size_t i = 0; i < BYTES; i += sizeof(block)) {
		if (write(fd, block, sizeof(block)) != sizeof(block))
			die("write");
	}
}

static size_t NOINLINE scan_log(int fd)
{
	const char *log = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
	size_t nr = 0;

	if (log == MAP_FAILED)
		die("mmap");
	for (size_t i = 0; i < BYTES; i += 64)
		nr += log[i] == '\n';
	return nr;
}

int main(void)
{
	int fd = open("/log", O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (fd < 0)
		die("open");
	write_log(fd);
	printf("%zu lines\n", scan_log(fd));
	return 0;
}
