// SPDX-License-Identifier: BSD-2-Clause
/* Maps, touches and unmaps fresh memory in each round. Most of the time is spent in page faults. */
#include "diagnosis.h"

#include <sys/mman.h>

#define NR_PAGES 512

int main(void)
{
	for (int i = 0; i < 50; i++) {
		volatile char *pages = mmap(NULL, NR_PAGES * 4096, PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (pages == MAP_FAILED)
			die("mmap");
		for (int j = 0; j < NR_PAGES; j++)
			pages[j * 4096] = 1;
		munmap((void *)pages, NR_PAGES * 4096);
	}
	return 0;
}
