// SPDX-License-Identifier: BSD-2-Clause
/* Three locks, and one is hot: update_totals() holds totals_lock while it adds up a table. */
#include "diagnosis.h"

#define NR_THREADS 4
#define NR_ORDERS  300
#define NR_TOTALS  16384

pthread_mutex_t customers_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t stock_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t totals_lock = PTHREAD_MUTEX_INITIALIZER;

static long customers[64], stock[64], totals[NR_TOTALS], sum;

static void NOINLINE find_customer(int order)
{
	pthread_mutex_lock(&customers_lock);
	customers[order % 64]++;
	pthread_mutex_unlock(&customers_lock);
}

static void NOINLINE take_from_stock(int order)
{
	pthread_mutex_lock(&stock_lock);
	stock[order % 64]--;
	pthread_mutex_unlock(&stock_lock);
}

void NOINLINE update_totals(int order)
{
	pthread_mutex_lock(&totals_lock);
	totals[order % NR_TOTALS]++;
	sum = 0;
	for (int i = 0; i < NR_TOTALS; i++)
		sum += totals[i];
	pthread_mutex_unlock(&totals_lock);
}

static void *sell(void *unused)
{
	for (int order = 0; order < NR_ORDERS; order++) {
		find_customer(order);
		take_from_stock(order);
		update_totals(order);
		work(500);
	}
	return unused;
}

int main(void)
{
	pthread_t threads[NR_THREADS];

	for (int i = 0; i < NR_THREADS; i++)
		threads[i] = start(sell, NULL);
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
