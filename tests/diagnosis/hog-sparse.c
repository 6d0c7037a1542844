// SPDX-License-Identifier: BSD-2-Clause
/* mark_block() touches one page in each 2 MiB and drops it again. The page tables stay. */
#include "diagnosis.h"

#include <sys/mman.h>

#define NR_BLOCKS   4000
#define BLOCK_BYTES (2ul << 20)

static void NOINLINE mark_block(char *block)
{
	block[0] = 1;
	madvise(block, 4096, MADV_DONTNEED);
}

int main(void)
{
	char *map = mmap(NULL, NR_BLOCKS * BLOCK_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (map == MAP_FAILED)
		die("mmap");
	for (long i = 0; i < NR_BLOCKS; i++)
		mark_block(map + i * BLOCK_BYTES);
	return 0;
}
