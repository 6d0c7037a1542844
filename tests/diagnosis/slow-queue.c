// SPDX-License-Identifier: BSD-2-Clause
/* A queue on the heap is mostly empty: take_order() waits for its condition variable. */
#include "diagnosis.h"

#define NR_ORDERS 30

struct queue {
	long nr_orders;
	pthread_mutex_t lock;
	pthread_cond_t filled;
};

void NOINLINE take_order(struct queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	while (!queue->nr_orders)
		pthread_cond_wait(&queue->filled, &queue->lock);
	queue->nr_orders--;
	pthread_mutex_unlock(&queue->lock);
}

static void *order(void *queue_)
{
	struct queue *queue = queue_;

	for (int i = 0; i < NR_ORDERS; i++) {
		sleep_ms(3);
		pthread_mutex_lock(&queue->lock);
		queue->nr_orders++;
		pthread_cond_signal(&queue->filled);
		pthread_mutex_unlock(&queue->lock);
	}
	return NULL;
}

int main(void)
{
	struct queue *queue = calloc(1, sizeof(*queue));
	pthread_t customer;

	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->filled, NULL);
	customer = start(order, queue);
	for (int i = 0; i < NR_ORDERS; i++)
		take_order(queue);
	pthread_join(customer, NULL);
	return 0;
}
