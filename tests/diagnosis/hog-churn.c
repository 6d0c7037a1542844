// SPDX-License-Identifier: BSD-2-Clause
/* decode_frame() maps and unmaps its buffer each time, so each page is made again and again. */
#include "diagnosis.h"

#include <string.h>
#include <sys/mman.h>

#define NR_FRAMES 300
#define BYTES	  (256 << 10)

static long NOINLINE decode_frame(int frame)
{
	char *buffer =
		mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long sum;

	if (buffer == MAP_FAILED)
		die("mmap");
	for (size_t i = 0; i < BYTES; i += 64)
		buffer[i] = (char)(frame + i);
	sum = buffer[BYTES / 2];
	munmap(buffer, BYTES);
	return sum;
}

int main(void)
{
	long sum = 0;

	for (int i = 0; i < NR_FRAMES; i++)
		sum += decode_frame(i);
	printf("%ld\n", sum);
	return 0;
}
