// SPDX-License-Identifier: BSD-2-Clause
/* Four threads take turns. wait_for_turn() calls sched_yield() until it is the thread's turn. */
#include "diagnosis.h"

#include <sched.h>

#define NR_THREADS 4
#define NR_TURNS   100

static volatile int turn;

static void NOINLINE wait_for_turn(int me)
{
	while (turn % NR_THREADS != me)
		sched_yield();
}

static void *take_turns(void *me)
{
	for (int i = 0; i < NR_TURNS / NR_THREADS; i++) {
		wait_for_turn((long)me);
		work(50000);
		turn++;
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[NR_THREADS];

	for (long i = 0; i < NR_THREADS; i++)
		threads[i] = start(take_turns, (void *)i);
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
