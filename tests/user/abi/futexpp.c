// SPDX-License-Identifier: BSD-2-Clause
/* Futex: ping-pong between two threads, timeouts, mismatch, wake counts, wait bitset. */
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include "check.h"

/* linux/futex.h is not in musl's include path. */
#define FUTEX_WAIT_PRIVATE	  128
#define FUTEX_WAKE_PRIVATE	  129
#define FUTEX_REQUEUE_PRIVATE	  131
#define FUTEX_WAIT_BITSET_PRIVATE 137
#define FUTEX_BITSET_MATCH_ANY	  0xffffffff

#define NR_ROUNDS 2000

static uint32_t ball, word, word2;

static long futex(uint32_t *addr, int op, uint32_t val, void *arg, uint32_t *addr2, uint32_t val3)
{
	return syscall(SYS_futex, addr, op, val, arg, addr2, val3);
}

static int64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

static void play(uint32_t mine)
{
	uint32_t seen;

	for (int i = 0; i < NR_ROUNDS; i++) {
		while ((seen = __atomic_load_n(&ball, __ATOMIC_ACQUIRE)) % 2 != mine) {
			if (futex(&ball, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0))
				CHECK(errno == EAGAIN);
		}
		__atomic_add_fetch(&ball, 1, __ATOMIC_RELEASE);
		CHECK(futex(&ball, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) <= 1);
	}
}

static void *partner(void *arg)
{
	play(1);
	return arg;
}

static void test_pingpong(void)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, partner, NULL));
	play(0);
	CHECK(!pthread_join(thread, NULL));
	CHECK(ball == 2 * NR_ROUNDS);
}

static void test_timeout(void)
{
	struct timespec ts = { 0, 30000000 };
	int64_t start = now_ns(CLOCK_MONOTONIC);

	CHECK(futex(&word, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0) == -1 && errno == ETIMEDOUT);
	CHECK(now_ns(CLOCK_MONOTONIC) - start >= 30000000);

	/* WAIT_BITSET takes an absolute time. */
	start = now_ns(CLOCK_MONOTONIC);
	ts.tv_sec = (start + 30000000) / 1000000000;
	ts.tv_nsec = (start + 30000000) % 1000000000;
	CHECK(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, &ts, NULL, FUTEX_BITSET_MATCH_ANY) == -1 &&
	      errno == ETIMEDOUT);
	CHECK(now_ns(CLOCK_MONOTONIC) - start >= 30000000);

	ts = (struct timespec){ 0, 0 };
	CHECK(futex(&word, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0) == -1 && errno == ETIMEDOUT);
	CHECK(futex(&word, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0) == -1 && errno == EAGAIN);
	ts = (struct timespec){ 0, 1000000000 };
	CHECK(futex(&word, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0) == -1 && errno == EINVAL);
	ts = (struct timespec){ -1, 0 };
	CHECK(futex(&word, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0) == -1 && errno == EINVAL);
	CHECK(futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 0);
}

static int nr_woken;

static void *wait_once(void *arg)
{
	while (futex(&word2, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0) && errno == EINTR)
		;
	__atomic_add_fetch(&nr_woken, 1, __ATOMIC_RELEASE);
	return arg;
}

/* Returns how many threads wait for word2: a requeue from a word to itself counts them. */
static long nr_waiting(void)
{
	return futex(&word2, FUTEX_REQUEUE_PRIVATE, 0, (void *)1000, &word2, 0);
}

/*
 * Wakes exactly as many as asked for. The short sleep gives threads that must not wake time to do
 * so.
 */
static void test_wake_counts(void)
{
	pthread_t threads[10];

	for (int i = 0; i < 10; i++)
		CHECK(!pthread_create(&threads[i], NULL, wait_once, NULL));
	while (nr_waiting() != 10)
		usleep(1000);
	CHECK(futex(&word2, FUTEX_WAKE_PRIVATE, 3, NULL, NULL, 0) == 3);
	while (__atomic_load_n(&nr_woken, __ATOMIC_ACQUIRE) < 3)
		usleep(1000);
	usleep(50000);
	CHECK(__atomic_load_n(&nr_woken, __ATOMIC_ACQUIRE) == 3 && nr_waiting() == 7);
	__atomic_store_n(&word2, 1, __ATOMIC_RELEASE);
	CHECK(futex(&word2, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0) == 7);
	for (int i = 0; i < 10; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(nr_woken == 10);
}

int main(void)
{
	test_pingpong();
	test_timeout();
	test_wake_counts();
	return check_finish("futexpp");
}
