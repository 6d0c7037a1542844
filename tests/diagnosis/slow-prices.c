// SPDX-License-Identifier: BSD-2-Clause
/* A reader of a list on the heap waits in read_price(), as change_prices() writes for long. */
#include "diagnosis.h"

#define NR_CHANGES 20

struct prices {
	long price;
	pthread_rwlock_t lock;
};

long NOINLINE read_price(struct prices *prices)
{
	long price;

	pthread_rwlock_rdlock(&prices->lock);
	price = prices->price;
	pthread_rwlock_unlock(&prices->lock);
	return price;
}

void NOINLINE change_prices(struct prices *prices)
{
	pthread_rwlock_wrlock(&prices->lock);
	sleep_ms(4);
	prices->price++;
	pthread_rwlock_unlock(&prices->lock);
}

static void *change_often(void *prices)
{
	for (int i = 0; i < NR_CHANGES; i++) {
		change_prices(prices);
		sleep_ms(1);
	}
	return NULL;
}

int main(void)
{
	struct prices *prices = calloc(1, sizeof(*prices));
	pthread_t writer;

	pthread_rwlock_init(&prices->lock, NULL);
	writer = start(change_often, prices);
	while (read_price(prices) < NR_CHANGES)
		work(1000);
	pthread_join(writer, NULL);
	return 0;
}
