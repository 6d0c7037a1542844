// SPDX-License-Identifier: BSD-2-Clause
/* Threads map and unmap large areas. They wait for each other, by mm->lock. */
#include "diagnosis.h"

#include <sys/mman.h>

#define NR_THREADS 16
#define NR_ROUNDS  5
#define NR_PAGES   512

static void *map_and_unmap(void *unused)
{
	for (int i = 0; i < NR_ROUNDS; i++) {
		volatile char *pages = mmap(NULL, NR_PAGES * 4096, PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (pages == MAP_FAILED)
			die("mmap");
		for (int j = 0; j < NR_PAGES; j++)
			pages[j * 4096] = 1;
		munmap((void *)pages, NR_PAGES * 4096);
	}
	return unused;
}

int main(void)
{
	pthread_t threads[NR_THREADS];

	for (int i = 0; i < NR_THREADS; i++)
		threads[i] = start(map_and_unmap, NULL);
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
