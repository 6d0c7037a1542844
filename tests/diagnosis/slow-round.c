// SPDX-License-Identifier: BSD-2-Clause
/* One of four threads is slow in each round: the others wait at a barrier in finish_round(). */
#include "diagnosis.h"

#define NR_THREADS 4
#define NR_ROUNDS  20

struct game {
	long nr_players;
	pthread_barrier_t round;
};

void NOINLINE finish_round(struct game *game)
{
	pthread_barrier_wait(&game->round);
	__atomic_fetch_add(&game->nr_players, 1, __ATOMIC_RELAXED);
}

static void *play(void *game)
{
	for (int i = 0; i < NR_ROUNDS; i++)
		finish_round(game);
	return NULL;
}

static void *play_slowly(void *game)
{
	for (int i = 0; i < NR_ROUNDS; i++) {
		sleep_ms(4);
		finish_round(game);
	}
	return NULL;
}

int main(void)
{
	struct game *game = calloc(1, sizeof(*game));
	pthread_t threads[NR_THREADS - 1];

	pthread_barrier_init(&game->round, NULL, NR_THREADS);
	for (int i = 0; i < NR_THREADS - 1; i++)
		threads[i] = start(i ? play : play_slowly, game);
	play(game);
	for (int i = 0; i < NR_THREADS - 1; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
