// SPDX-License-Identifier: BSD-2-Clause
/*
 * wait_for_reply() misses the signal, because the other thread signals between its look at the
 * replies and its wait. So each wait ends by its timeout, after 50 ms.
 */
#include "diagnosis.h"

#define NR_REQUESTS 10

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t replied = PTHREAD_COND_INITIALIZER;
static pthread_cond_t requested = PTHREAD_COND_INITIALIZER;
static volatile int nr_requests, nr_replies;

static void *reply(void *unused)
{
	set_name("server");
	for (int i = 1; i <= NR_REQUESTS; i++) {
		pthread_mutex_lock(&lock);
		while (nr_requests < i)
			pthread_cond_wait(&requested, &lock);
		pthread_mutex_unlock(&lock);
		nr_replies = i;
		pthread_cond_signal(&replied);
	}
	return unused;
}

static void send_request(void)
{
	pthread_mutex_lock(&lock);
	nr_requests++;
	pthread_cond_signal(&requested);
	pthread_mutex_unlock(&lock);
}

static void NOINLINE wait_for_reply(int number)
{
	while (nr_replies < number) {
		struct timespec until;

		sleep_ms(1); /* the reply often comes soon */
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 50000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_mutex_lock(&lock);
		pthread_cond_timedwait(&replied, &lock, &until);
		pthread_mutex_unlock(&lock);
	}
}

int main(void)
{
	pthread_t server = start(reply, NULL);

	for (int i = 1; i <= NR_REQUESTS; i++) {
		send_request();
		wait_for_reply(i);
	}
	pthread_join(server, NULL);
	return 0;
}
