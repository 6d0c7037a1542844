// SPDX-License-Identifier: BSD-2-Clause
/* A consumer waits most of the time, because the producer sleeps before each item. */
#include "diagnosis.h"

#define NR_ITEMS 20

static int ends[2];

static void *produce(void *unused)
{
	set_name("producer");
	for (int i = 0; i < NR_ITEMS; i++) {
		sleep_ms(5);
		if (write(ends[1], "x", 1) != 1)
			die("write");
	}
	return unused;
}

int main(void)
{
	pthread_t producer;
	char item;

	if (pipe(ends))
		die("pipe");
	producer = start(produce, NULL);
	set_name("consumer");
	for (int i = 0; i < NR_ITEMS; i++) {
		if (read(ends[0], &item, 1) != 1)
			die("read");
		work(1000);
	}
	pthread_join(producer, NULL);
	return 0;
}
