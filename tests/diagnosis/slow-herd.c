// SPDX-License-Identifier: BSD-2-Clause
/* run_job() wakes all 32 threads for a job that only one of them can take. The rest wait again. */
#include "diagnosis.h"

#define NR_THREADS 32
#define NR_JOBS	   200

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static int nr_waiting, nr_running, is_over;

static void *do_jobs(void *unused)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		while (!nr_waiting && !is_over)
			pthread_cond_wait(&changed, &lock);
		if (is_over)
			break;
		nr_waiting--;
		pthread_mutex_unlock(&lock);
		work(1000);
		pthread_mutex_lock(&lock);
		nr_running--;
		pthread_cond_signal(&done);
	}
	pthread_mutex_unlock(&lock);
	return unused;
}

static void NOINLINE run_job(void)
{
	pthread_mutex_lock(&lock);
	nr_waiting++;
	nr_running++;
	pthread_cond_broadcast(&changed);
	while (nr_running)
		pthread_cond_wait(&done, &lock);
	pthread_mutex_unlock(&lock);
}

int main(void)
{
	pthread_t threads[NR_THREADS];

	for (int i = 0; i < NR_THREADS; i++)
		threads[i] = start(do_jobs, NULL);
	for (int i = 0; i < NR_JOBS; i++)
		run_job();
	pthread_mutex_lock(&lock);
	is_over = 1;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
