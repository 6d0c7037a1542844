// SPDX-License-Identifier: BSD-2-Clause
/* Threads: creation, names, thread-locals, mutexes, condition variables, barriers, join. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "check.h"

#define NR_THREADS 64
#define NR_ROUNDS  200

static _Thread_local long local = 7;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static long counter, turn;

static void *count(void *arg)
{
	long me = (long)arg;

	CHECK(local == 7);
	local = me;
	for (int i = 0; i < NR_ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		counter++;
		pthread_mutex_unlock(&lock);
		if (i % 50 == 0)
			sched_yield();
	}
	pthread_barrier_wait(&barrier);
	CHECK(local == me);
	CHECK(counter == NR_THREADS * NR_ROUNDS);
	return (void *)(me * 3);
}

static void test_counting(void)
{
	pthread_t threads[NR_THREADS];
	void *ret;

	pthread_barrier_init(&barrier, NULL, NR_THREADS);
	for (long i = 0; i < NR_THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, count, (void *)i));
	for (long i = 0; i < NR_THREADS; i++) {
		CHECK(!pthread_join(threads[i], &ret));
		CHECK((long)ret == i * 3);
	}
	CHECK(local == 7);
}

/* Threads take turns in order: a lost wakeup hangs, a wrong one breaks the order. */
static void *take_turn(void *arg)
{
	long me = (long)arg;

	for (long i = 0; i < 20; i++) {
		pthread_mutex_lock(&lock);
		while (turn != i * 8 + me)
			pthread_cond_wait(&cond, &lock);
		turn++;
		pthread_cond_broadcast(&cond);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void test_turns(void)
{
	pthread_t threads[8];

	for (long i = 0; i < 8; i++)
		CHECK(!pthread_create(&threads[i], NULL, take_turn, (void *)i));
	for (long i = 0; i < 8; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(turn == 160);
}

static void *say_ids(void *arg)
{
	pid_t *ids = arg;

	ids[0] = getpid();
	ids[1] = syscall(SYS_gettid);
	pthread_exit(arg);
}

static void test_ids(void)
{
	pid_t ids[4][2];
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, say_ids, ids[i]));
	for (int i = 0; i < 4; i++) {
		CHECK(!pthread_join(threads[i], NULL));
		CHECK(ids[i][0] == getpid());
		CHECK(ids[i][1] != getpid());
		for (int j = 0; j < i; j++)
			CHECK(ids[i][1] != ids[j][1]);
	}
	CHECK(syscall(SYS_gettid) == getpid());
}

/* Threads that come and go: tids, stacks and exit must not run out. */
static void *nothing(void *arg)
{
	return arg;
}

static void *wait_twice(void *number)
{
	*(pid_t *)number = syscall(SYS_gettid);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

/* Writes a thread's name to the /proc file that the C library uses. */
static long write_name(pid_t pid, pid_t tid, const char *name)
{
	char path[64];
	ssize_t ret;
	int fd, error;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
	fd = open(path, O_RDWR);
	ret = write(fd, name, strlen(name));
	error = errno;
	close(fd);
	errno = error;
	return ret;
}

static void test_names(void)
{
	char name[16], own[16];
	pthread_t thread;
	pid_t tid, pid;

	pthread_barrier_init(&barrier, NULL, 2);
	CHECK(!pthread_create(&thread, NULL, wait_twice, &tid));
	pthread_barrier_wait(&barrier);
	CHECK(!prctl(PR_GET_NAME, own));
	CHECK(!pthread_setname_np(thread, "other") && !pthread_getname_np(thread, name, 16));
	CHECK(!strcmp(name, "other") && !prctl(PR_GET_NAME, name) && !strcmp(name, own));
	CHECK(pthread_setname_np(thread, "sixteen letters.") == ERANGE);
	CHECK(write_name(getpid(), tid, "sixteen letters and more") == 24);
	CHECK(!pthread_getname_np(thread, name, 16) && !strcmp(name, "sixteen letters"));
	CHECK(write_name(getpid(), getpid(), "first") == 5);
	CHECK(!prctl(PR_GET_NAME, name) && !strcmp(name, "first"));
	pid = fork();
	if (!pid)
		_exit(write_name(getppid(), tid, "mine") != -1 || errno != EINVAL);
	CHECK(waitpid(pid, &tid, 0) == pid && tid == 0);
	CHECK(!pthread_setname_np(pthread_self(), own));
	pthread_barrier_wait(&barrier);
	CHECK(!pthread_join(thread, NULL));
}

static void test_churn(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	for (int i = 0; i < 300; i++) {
		if (!CHECK(!pthread_create(&thread, NULL, nothing, NULL)))
			return;
		CHECK(!pthread_join(thread, NULL));
	}
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (int i = 0; i < 100; i++)
		CHECK(!pthread_create(&thread, &attr, nothing, NULL));
}

static void *use_heap(void *arg)
{
	unsigned int seed = (uintptr_t)arg;

	for (int i = 0; i < 200; i++) {
		size_t len = 1 + rand_r(&seed) % 20000;
		unsigned char *p = malloc(len);

		if (!CHECK(p))
			return NULL;
		memset(p, (int)seed, len);
		CHECK(p[len / 2] == (seed & 0xff));
		free(p);
	}
	return NULL;
}

static void test_heap(void)
{
	pthread_t threads[8];

	for (long i = 0; i < 8; i++)
		CHECK(!pthread_create(&threads[i], NULL, use_heap, (void *)i));
	for (long i = 0; i < 8; i++)
		CHECK(!pthread_join(threads[i], NULL));
}

int main(void)
{
	test_counting();
	test_turns();
	test_ids();
	test_names();
	test_churn();
	test_heap();
	return check_finish("threads");
}
