// SPDX-License-Identifier: BSD-2-Clause
/* One desk serves all customers: serve_customer() holds the desk's lock, which is on the heap. */
#include "diagnosis.h"

#define NR_CLERKS    3
#define NR_CUSTOMERS 20

struct desk {
	long nr_served;
	pthread_mutex_t lock;
};

void NOINLINE serve_customer(struct desk *desk)
{
	pthread_mutex_lock(&desk->lock);
	sleep_ms(2);
	desk->nr_served++;
	pthread_mutex_unlock(&desk->lock);
}

static void *work_at(void *desk)
{
	for (int i = 0; i < NR_CUSTOMERS; i++)
		serve_customer(desk);
	return NULL;
}

int main(void)
{
	struct desk *desk = calloc(1, sizeof(*desk));
	pthread_t clerks[NR_CLERKS];

	pthread_mutex_init(&desk->lock, NULL);
	for (int i = 0; i < NR_CLERKS; i++)
		clerks[i] = start(work_at, desk);
	for (int i = 0; i < NR_CLERKS; i++)
		pthread_join(clerks[i], NULL);
	return desk->nr_served != NR_CLERKS * NR_CUSTOMERS;
}
