// SPDX-License-Identifier: BSD-2-Clause
/* Each of many threads has a large array on its stack. */
#include "diagnosis.h"

#include <string.h>

#define NR_THREADS 48
#define BYTES	   (400 << 10)

static pthread_barrier_t all_are_here;

static char NOINLINE sort_block(char seed)
{
	volatile char block[BYTES];

	for (size_t i = 0; i < BYTES; i++)
		block[i] = seed;
	pthread_barrier_wait(&all_are_here);
	return block[BYTES / 2];
}

static void *run_sorter(void *arg)
{
	set_name("sorter");
	return (void *)(intptr_t)sort_block((char)(intptr_t)arg);
}

int main(void)
{
	pthread_t threads[NR_THREADS];

	pthread_barrier_init(&all_are_here, NULL, NR_THREADS);
	for (int i = 0; i < NR_THREADS; i++)
		threads[i] = start(run_sorter, (void *)(intptr_t)i);
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
