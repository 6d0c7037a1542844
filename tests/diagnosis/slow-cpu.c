// SPDX-License-Identifier: BSD-2-Clause
/* A thread with some work shares the only CPU with a thread that never stops. */
#include "diagnosis.h"

static volatile int is_over;

static void *burn(void *unused)
{
	set_name("hog");
	while (!is_over)
		work(10000);
	return unused;
}

int main(void)
{
	pthread_t hog = start(burn, NULL);

	for (int i = 0; i < 20; i++)
		work(1000000);
	is_over = 1;
	pthread_join(hog, NULL);
	return 0;
}
