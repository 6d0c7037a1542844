// SPDX-License-Identifier: BSD-2-Clause
/* A pool on the heap has one connection for four threads: take_connection() waits for it. */
#include "diagnosis.h"

#include <semaphore.h>

#define NR_THREADS  4
#define NR_REQUESTS 10

struct pool {
	long size;
	sem_t free;
};

void NOINLINE take_connection(struct pool *pool)
{
	while (sem_wait(&pool->free))
		;
}

static void *send_requests(void *pool_)
{
	struct pool *pool = pool_;

	for (int i = 0; i < NR_REQUESTS; i++) {
		take_connection(pool);
		sleep_ms(2);
		sem_post(&pool->free);
	}
	return NULL;
}

int main(void)
{
	struct pool *pool = calloc(1, sizeof(*pool));
	pthread_t threads[NR_THREADS];

	sem_init(&pool->free, 0, 1);
	for (int i = 0; i < NR_THREADS; i++)
		threads[i] = start(send_requests, pool);
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
