// SPDX-License-Identifier: BSD-2-Clause
/* wait_for_item() asks poll() again and again with a timeout of 0, so it never sleeps. */
#include "diagnosis.h"

#include <poll.h>

#define NR_ITEMS 10

static int ends[2];

static void *produce(void *unused)
{
	set_name("producer");
	for (int i = 0; i < NR_ITEMS; i++) {
		sleep_ms(20);
		if (write(ends[1], "x", 1) != 1)
			die("write");
	}
	return unused;
}

static void NOINLINE wait_for_item(void)
{
	struct pollfd fd = { .fd = ends[0], .events = POLLIN };

	while (!poll(&fd, 1, 0))
		;
}

int main(void)
{
	pthread_t producer;
	char item;

	if (pipe(ends))
		die("pipe");
	producer = start(produce, NULL);
	for (int i = 0; i < NR_ITEMS; i++) {
		wait_for_item();
		if (read(ends[0], &item, 1) != 1)
			die("read");
		work(1000);
	}
	pthread_join(producer, NULL);
	return 0;
}
