// SPDX-License-Identifier: BSD-2-Clause
/*
 * Every futex operation of the kernel: its result and the waiters that it wakes; and robust lists,
 * the locks of threads that have ended.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "check.h"

#define NR_WAITERS 4

static uint32_t word1, word2;
static int private = FUTEX_PRIVATE_FLAG;

static long futex(uint32_t *word, int op, uint32_t value, unsigned long arg, uint32_t *word2,
		  uint32_t value3)
{
	long ret = syscall(SYS_futex, word, op | private, value, arg, word2, value3);

	return ret < 0 ? -errno : ret;
}

struct waiter {
	pthread_t thread;
	uint32_t *word;
	uint32_t bitset;
	int up; /* woken, with result 0 */
};

static struct waiter waiters[NR_WAITERS];

static void *wait(void *arg)
{
	struct waiter *waiter = arg;
	long ret = futex(waiter->word, FUTEX_WAIT_BITSET, 0, 0, NULL, waiter->bitset);

	CHECK(ret == 0);
	__atomic_store_n(&waiter->up, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* A requeue from a word to itself counts its waiters. */
static void start(uint32_t *word, const uint32_t *bitsets)
{
	word1 = word2 = 0;
	for (int i = 0; i < NR_WAITERS; i++) {
		waiters[i] = (struct waiter){ .word = word, .bitset = bitsets ? bitsets[i] : ~0u };
		CHECK(!pthread_create(&waiters[i].thread, NULL, wait, &waiters[i]));
		/* Each waiter queues before the next one starts. */
		while (futex(word, FUTEX_REQUEUE, 0, 1000, word, 0) != i + 1)
			usleep(1000);
	}
}

/* Returns a bit for each waiter that was woken. Waits until those in mask were. */
static unsigned int up(unsigned int mask)
{
	unsigned int seen;

	do {
		usleep(1000);
		seen = 0;
		for (int i = 0; i < NR_WAITERS; i++)
			seen |= __atomic_load_n(&waiters[i].up, __ATOMIC_ACQUIRE) << i;
	} while (mask & ~seen);
	return seen;
}

static void finish(void)
{
	for (int i = 0; i < NR_WAITERS; i++)
		CHECK(!pthread_join(waiters[i].thread, NULL));
}

static void test_wake(void)
{
	start(&word1, NULL);
	CHECK(futex(&word2, FUTEX_WAKE, 10, 0, NULL, 0) == 0);
	CHECK(up(0) == 0);
	CHECK(futex(&word1, FUTEX_WAKE, 1, 0, NULL, 0) == 1);
	CHECK(up(1) == 1);
	CHECK(futex(&word1, FUTEX_WAKE, 0, 0, NULL, 0) == 1); /* a quirk of Linux's */
	CHECK(up(3) == 3);
	CHECK(futex(&word1, FUTEX_WAKE, 10, 0, NULL, 0) == 2);
	CHECK(futex(&word1, FUTEX_WAKE, 10, 0, NULL, 0) == 0);
	finish();
}

/* Waking a private futex needs no memory at its address; waking one that may be shared does. */
static void test_unmapped(void)
{
	uint32_t *nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int i = 0; i < 2; i++) {
		private = FUTEX_PRIVATE_FLAG;
		CHECK(futex(nowhere, FUTEX_WAKE, 1, 0, NULL, 0) == 0);
		private = 0;
		CHECK(futex(nowhere, FUTEX_WAKE, 1, 0, NULL, 0) == -EFAULT);
		CHECK(futex(nowhere, FUTEX_REQUEUE, 1, 1, &word2, 0) == -EFAULT);
		CHECK(futex(&word1, FUTEX_REQUEUE, 1, 1, nowhere, 0) == -EFAULT);
		CHECK(futex(nowhere, FUTEX_WAIT, 0, 0, NULL, 0) == -EFAULT);
		private = FUTEX_PRIVATE_FLAG;
		CHECK(!munmap(nowhere, 4096));
	}
}

static void test_bitset(void)
{
	static const uint32_t bitsets[NR_WAITERS] = { 1, 2, 3, 0x80000000 };

	start(&word1, bitsets);
	CHECK(futex(&word1, FUTEX_WAKE_BITSET, 10, 0, NULL, 0) == -EINVAL);
	CHECK(futex(&word1, FUTEX_WAIT_BITSET, 0, 0, NULL, 0) == -EINVAL);
	CHECK(futex(&word1, FUTEX_WAKE_BITSET, 10, 0, NULL, 4) == 0);
	CHECK(futex(&word1, FUTEX_WAKE_BITSET, 1, 0, NULL, 2) == 1);
	CHECK(up(2) == 2);
	CHECK(futex(&word1, FUTEX_WAKE_BITSET, 10, 0, NULL, 1) == 2);
	CHECK(up(7) == 7);
	CHECK(futex(&word1, FUTEX_WAKE, 10, 0, NULL, 0) == 1);
	finish();
}

static void test_requeue(void)
{
	start(&word1, NULL);
	CHECK(futex(&word1, FUTEX_CMP_REQUEUE, 1, 1, &word2, 7) == -EAGAIN);
	CHECK(futex(&word1, FUTEX_CMP_REQUEUE, -1, 1, &word2, 0) == -EINVAL);
	CHECK(futex(&word1, FUTEX_CMP_REQUEUE, 1, -1ul, &word2, 0) == -EINVAL);
	CHECK(up(0) == 0);
	CHECK(futex(&word1, FUTEX_CMP_REQUEUE, 1, 1, &word2, 0) == 2);
	CHECK(up(1) == 1);
	CHECK(futex(&word2, FUTEX_WAKE, 10, 0, NULL, 0) == 1);
	CHECK(up(3) == 3);
	CHECK(futex(&word1, FUTEX_REQUEUE, 0, 10, &word2, 0) == 2);
	CHECK(up(3) == 3);
	CHECK(futex(&word1, FUTEX_WAKE, 10, 0, NULL, 0) == 0);
	CHECK(futex(&word2, FUTEX_REQUEUE, 0, 10, &word2, 0) == 2); /* onto itself */
	CHECK(futex(&word2, FUTEX_WAKE, 10, 0, NULL, 0) == 2);
	finish();
}

static void test_wake_op_waiters(void)
{
	start(&word2, NULL);
	/* word2 == 0 is not greater than 0: only word1's waiters, of whom there are none. */
	CHECK(futex(&word1, FUTEX_WAKE_OP, 1, 1, &word2,
		    FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_GT, 0)) == 0);
	CHECK(up(0) == 0);
	CHECK(futex(&word1, FUTEX_WAKE_OP, 1, 2, &word2,
		    FUTEX_OP(FUTEX_OP_SET, 5, FUTEX_OP_CMP_EQ, 0)) == 2);
	CHECK(word2 == 5);
	CHECK(up(3) == 3);
	CHECK(futex(&word2, FUTEX_WAKE_OP, 1, 1, &word2,
		    FUTEX_OP(FUTEX_OP_SET, 6, FUTEX_OP_CMP_EQ, 5)) == 2);
	finish();
}

static void test_wake_op_value(void)
{
	static const struct {
		uint32_t code, before, after;
	} cases[] = {
		{ FUTEX_OP(FUTEX_OP_SET, 0x7ff, 0, 0), 1, 0x7ff },
		{ FUTEX_OP(FUTEX_OP_SET, 0x800, 0, 0), 1, 0xfffff800 },
		{ FUTEX_OP(FUTEX_OP_ADD, 0xfff, 0, 0), 1, 0 },
		{ FUTEX_OP(FUTEX_OP_OR, 6, 0, 0), 3, 7 },
		{ FUTEX_OP(FUTEX_OP_ANDN, 6, 0, 0), 7, 1 },
		{ FUTEX_OP(FUTEX_OP_XOR, 6, 0, 0), 3, 5 },
		{ FUTEX_OP((FUTEX_OP_SET | FUTEX_OP_OPARG_SHIFT), 31, 0, 0), 0, 0x80000000 },
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		word2 = cases[i].before;
		CHECK(futex(&word1, FUTEX_WAKE_OP, 1, 1, &word2, cases[i].code) == 0);
		CHECK(word2 == cases[i].after);
	}
	CHECK(futex(&word1, FUTEX_WAKE_OP, 1, 1, &word2, FUTEX_OP(7u, 0, 0, 0)) == -ENOSYS);
	CHECK(futex(&word1, FUTEX_WAKE_OP, 1, 1, &word2, FUTEX_OP(0, 0, 6, 0)) == -ENOSYS);
}

static uint64_t now_ns(int clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void test_timeout(void)
{
	struct timespec ts = { 0, 20000000 };
	uint64_t start_ns = now_ns(CLOCK_MONOTONIC), ns;

	word1 = 0;
	CHECK(futex(&word1, FUTEX_WAIT, 1, 0, NULL, 0) == -EAGAIN);
	CHECK(futex(&word1, FUTEX_WAIT, 0, (long)&ts, NULL, 0) == -ETIMEDOUT);
	CHECK(now_ns(CLOCK_MONOTONIC) - start_ns >= 20000000);

	ns = now_ns(CLOCK_MONOTONIC) + 20000000;
	ts = (struct timespec){ ns / 1000000000, ns % 1000000000 };
	CHECK(futex(&word1, FUTEX_WAIT_BITSET, 0, (long)&ts, NULL, 1) == -ETIMEDOUT);
	CHECK(now_ns(CLOCK_MONOTONIC) >= ns);
	/* Past already. */
	CHECK(futex(&word1, FUTEX_WAIT_BITSET, 0, (long)&ts, NULL, 1) == -ETIMEDOUT);
	CHECK(futex(&word1, FUTEX_WAIT_BITSET, 9, (long)&ts, NULL, 1) == -EAGAIN);

	ns = now_ns(CLOCK_REALTIME) + 20000000;
	ts = (struct timespec){ ns / 1000000000, ns % 1000000000 };
	CHECK(futex(&word1, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0, (long)&ts, NULL, 1) ==
	      -ETIMEDOUT);
	CHECK(now_ns(CLOCK_REALTIME) >= ns);

	ts = (struct timespec){ 0, 1000000000 };
	CHECK(futex(&word1, FUTEX_WAIT, 0, (long)&ts, NULL, 0) == -EINVAL);
	ts = (struct timespec){ -1, 0 };
	CHECK(futex(&word1, FUTEX_WAIT, 0, (long)&ts, NULL, 0) == -EINVAL);
	ts = (struct timespec){ 0, 1000 };
	CHECK(futex(&word1, FUTEX_WAIT | FUTEX_CLOCK_REALTIME, 0, (long)&ts, NULL, 0) == -ENOSYS);
	CHECK(futex(&word1, FUTEX_WAKE | FUTEX_CLOCK_REALTIME, 1, 0, NULL, 0) == -ENOSYS);
}

struct lock {
	struct lock *next;
	uint32_t word;
};

#define LOCK_OFFSET ((long)offsetof(struct lock, word))

static struct {
	struct lock *first;
	long offset;
	struct lock *pending;
} list;

static struct lock held, foreign, pending, zero;

/*
 * Ends with a robust list: a lock that it holds, one that another thread holds, and one that it was
 * about to take.
 */
static void *die_with_locks(void *arg)
{
	uint32_t tid = syscall(SYS_gettid);

	held = (struct lock){ &foreign, tid | FUTEX_WAITERS };
	foreign = (struct lock){ (struct lock *)&list, tid + 1 };
	pending = (struct lock){ NULL, tid };
	list.first = &held;
	list.offset = LOCK_OFFSET;
	list.pending = arg ? arg : &pending;
	CHECK(!syscall(SYS_set_robust_list, &list, sizeof(list)));
	word2 = tid;
	return NULL;
}

static void test_robust(void)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, die_with_locks, NULL));
	CHECK(!pthread_join(thread, NULL));
	CHECK(held.word == (FUTEX_WAITERS | FUTEX_OWNER_DIED));
	CHECK(foreign.word == word2 + 1);
	CHECK(pending.word == FUTEX_OWNER_DIED);
}

/* A waiter for a lock that was released, but whose owner died before it could wake anyone. */
static void test_robust_pending(void)
{
	pthread_t thread;

	private = 0; /* waiters of a dead owner's lock are woken as those of a shared futex */
	zero.word = 0;
	start(&zero.word, NULL);
	CHECK(!pthread_create(&thread, NULL, die_with_locks, &zero));
	CHECK(!pthread_join(thread, NULL));
	CHECK(up(1) == 1);
	CHECK(zero.word == 0);
	CHECK(futex(&zero.word, FUTEX_WAKE, 10, 0, NULL, 0) == 3);
	finish();
	private = FUTEX_PRIVATE_FLAG;
}

static void *die_in_a_circle(void *arg)
{
	uint32_t tid = syscall(SYS_gettid);

	held = (struct lock){ &foreign, tid };
	foreign = (struct lock){ &held, tid };
	list.first = &held;
	list.offset = LOCK_OFFSET;
	list.pending = NULL;
	CHECK(!syscall(SYS_set_robust_list, &list, sizeof(list)));
	return NULL;
}

static void *die_in_the_dark(void *arg)
{
	CHECK(!syscall(SYS_set_robust_list, arg, sizeof(list)));
	return NULL;
}

/* Robust lists that are cyclic or lead to invalid addresses only end the walk. */
static void test_robust_broken(void)
{
	static const unsigned long nowhere[] = { 8, 0xffffffff81000000, 0x8000000000000000, -1ul };
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, die_in_a_circle, NULL));
	CHECK(!pthread_join(thread, NULL));
	CHECK(held.word == FUTEX_OWNER_DIED && foreign.word == FUTEX_OWNER_DIED);
	for (unsigned int i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
		CHECK(!pthread_create(&thread, NULL, die_in_the_dark, (void *)nowhere[i]));
		CHECK(!pthread_join(thread, NULL));
		list.first = (struct lock *)nowhere[i];
		list.offset = (long)nowhere[i];
		list.pending = (struct lock *)nowhere[i];
		CHECK(!pthread_create(&thread, NULL, die_in_the_dark, &list));
		CHECK(!pthread_join(thread, NULL));
	}
}

/* A thread that takes the mutex in word1, notes its turn in word2, and releases the mutex. */
static void *take_turn(void *arg)
{
	uint32_t tid = syscall(SYS_gettid);

	CHECK(futex(&word1, FUTEX_LOCK_PI, 0, 0, NULL, 0) == 0);
	CHECK((word1 & FUTEX_TID_MASK) == tid);
	CHECK(word2++ == (uintptr_t)arg);
	CHECK(futex(&word1, FUTEX_UNLOCK_PI, 0, 0, NULL, 0) == 0);
	return NULL;
}

static void *try_pi(void *arg)
{
	struct timespec ts = { 0, 20000000 };
	uint64_t ns = now_ns(CLOCK_REALTIME) + 20000000;

	CHECK(futex(&word1, FUTEX_UNLOCK_PI, 0, 0, NULL, 0) == -EPERM);
	CHECK(futex(&word1, FUTEX_TRYLOCK_PI, 0, 0, NULL, 0) == -EAGAIN);
	ts = (struct timespec){ ns / 1000000000, ns % 1000000000 };
	CHECK(futex(&word1, FUTEX_LOCK_PI, 0, (long)&ts, NULL, 0) == -ETIMEDOUT);
	CHECK(now_ns(CLOCK_REALTIME) >= ns && word1 & FUTEX_WAITERS);
	ns = now_ns(CLOCK_MONOTONIC) + 20000000;
	ts = (struct timespec){ ns / 1000000000, ns % 1000000000 };
	CHECK(futex(&word1, 13 /* FUTEX_LOCK_PI2 */, 0, (long)&ts, NULL, 0) == -ETIMEDOUT);
	CHECK(now_ns(CLOCK_MONOTONIC) >= ns);
	return arg;
}

/* The owner's number is in the word, and the kernel passes the mutex on, in turn. */
static void test_pi(void)
{
	uint32_t tid = syscall(SYS_gettid);
	uint32_t *nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t threads[3];

	word1 = word2 = 0;
	CHECK(futex(&word1, FUTEX_LOCK_PI, 0, 0, NULL, 0) == 0 && word1 == tid);
	CHECK(futex(&word1, FUTEX_LOCK_PI, 0, 0, NULL, 0) == -EDEADLK);
	CHECK(futex(&word1, FUTEX_TRYLOCK_PI, 0, 0, NULL, 0) == -EDEADLK);
	CHECK(!pthread_create(&threads[0], NULL, try_pi, NULL) && !pthread_join(threads[0], NULL));
	CHECK(futex(&word1, FUTEX_UNLOCK_PI, 0, 0, NULL, 0) == 0 && word1 == 0);
	CHECK(futex(&word1, FUTEX_UNLOCK_PI, 0, 0, NULL, 0) == -EPERM);
	CHECK(futex(&word1, FUTEX_TRYLOCK_PI, 0, 0, NULL, 0) == 0 && word1 == tid);
	for (long i = 0; i < 3; i++) {
		CHECK(!pthread_create(&threads[i], NULL, take_turn, (void *)i));
		usleep(30000); /* each waits before the next one begins */
	}
	CHECK(word1 == (tid | FUTEX_WAITERS) && word2 == 0);
	CHECK(futex(&word1, FUTEX_WAKE, 10, 0, NULL, 0) <= 0); /* they wait for the mutex alone */
	CHECK(futex(&word1, FUTEX_UNLOCK_PI, 0, 0, NULL, 0) == 0);
	for (int i = 0; i < 3; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(word1 == 0 && word2 == 3);
	word1 = 0x3ffffffe; /* no thread has this number */
	CHECK(futex(&word1, FUTEX_LOCK_PI, 0, 0, NULL, 0) == -ESRCH);
	CHECK(futex(nowhere, FUTEX_LOCK_PI, 0, 0, NULL, 0) == -EFAULT);
	CHECK(futex(nowhere, FUTEX_UNLOCK_PI, 0, 0, NULL, 0) == -EFAULT);
	CHECK(futex(NULL, FUTEX_TRYLOCK_PI, 0, 0, NULL, 0) == -EFAULT);
	CHECK(!munmap(nowhere, 4096));
}

static void *die_with_pi(void *arg)
{
	if (arg) {
		held = (struct lock){ (struct lock *)&list, 0 };
		list.first = (struct lock *)((char *)&held + 1); /* priority-inheriting */
		list.offset = LOCK_OFFSET;
		list.pending = NULL;
		CHECK(!syscall(SYS_set_robust_list, &list, sizeof(list)));
	}
	CHECK(futex(&held.word, FUTEX_LOCK_PI, 0, 0, NULL, 0) == 0);
	__atomic_store_n(&word2, 1, __ATOMIC_RELEASE);
	usleep(100000);
	return NULL;
}

/* A mutex whose owner has ended passes to the first waiter, which is told; robust or not. */
static void test_pi_died(void)
{
	uint32_t tid = syscall(SYS_gettid);
	pthread_t thread, other;

	for (long robust = 0; robust < 2; robust++) {
		held.word = word2 = 0;
		CHECK(!pthread_create(&thread, NULL, die_with_pi, (void *)robust));
		while (!__atomic_load_n(&word2, __ATOMIC_ACQUIRE))
			usleep(1000);
		CHECK(futex(&held.word, FUTEX_LOCK_PI, 0, 0, NULL, 0) == 0);
		CHECK((held.word & ~FUTEX_WAITERS) == (FUTEX_OWNER_DIED | tid));
		CHECK(!pthread_join(thread, NULL));
		CHECK(futex(&held.word, FUTEX_UNLOCK_PI, 0, 0, NULL, 0) == 0 && held.word == 0);
	}
	/* Without a waiter, the next thread that comes gets a robust one. Two die in a row. */
	CHECK(!pthread_create(&thread, NULL, die_with_pi, (void *)1));
	CHECK(!pthread_join(thread, NULL) && held.word == FUTEX_OWNER_DIED);
	CHECK(!pthread_create(&thread, NULL, die_with_pi, NULL));
	usleep(30000);
	CHECK(!pthread_create(&other, NULL, die_with_pi, NULL));
	usleep(30000);
	CHECK(futex(&held.word, FUTEX_LOCK_PI, 0, 0, NULL, 0) == 0);
	CHECK((held.word & FUTEX_TID_MASK) == tid && held.word & FUTEX_OWNER_DIED);
	CHECK(!pthread_join(thread, NULL) && !pthread_join(other, NULL));
	CHECK(futex(&held.word, FUTEX_UNLOCK_PI, 0, 0, NULL, 0) == 0 && held.word == 0);
}

#define NR_ROUNDS 2000

static pthread_mutex_t pi_mutex;
static long nr_inside, nr_rounds;

static void *use_mutex(void *arg)
{
	for (int i = 0; i < NR_ROUNDS; i++) {
		CHECK(!pthread_mutex_lock(&pi_mutex));
		CHECK(++nr_inside == 1);
		nr_rounds++;
		if (i % 64 == 0)
			sched_yield();
		nr_inside--;
		CHECK(!pthread_mutex_unlock(&pi_mutex));
	}
	return arg;
}

static void *leave_locked(void *arg)
{
	CHECK(!pthread_mutex_lock(&pi_mutex));
	usleep(20000);
	return arg;
}

/* The C library's mutexes are made of them. */
static void test_pi_mutex(void)
{
	pthread_t threads[4];
	pthread_mutexattr_t attr;

	CHECK(!pthread_mutexattr_init(&attr));
	CHECK(!pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT));
	CHECK(!pthread_mutex_init(&pi_mutex, &attr));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, use_mutex, NULL));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(nr_rounds == 4 * NR_ROUNDS && !pthread_mutex_destroy(&pi_mutex));

	CHECK(!pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
	CHECK(!pthread_mutex_init(&pi_mutex, &attr));
	CHECK(!pthread_create(&threads[0], NULL, leave_locked, NULL));
	usleep(10000);
	CHECK(pthread_mutex_lock(&pi_mutex) == EOWNERDEAD);
	CHECK(!pthread_mutex_consistent(&pi_mutex) && !pthread_mutex_unlock(&pi_mutex));
	CHECK(!pthread_join(threads[0], NULL) && !pthread_mutex_lock(&pi_mutex));
	CHECK(!pthread_mutex_unlock(&pi_mutex) && !pthread_mutex_destroy(&pi_mutex));
}

int main(void)
{
	test_wake();
	test_unmapped();
	test_bitset();
	test_requeue();
	test_wake_op_waiters();
	test_wake_op_value();
	test_timeout();
	test_robust();
	test_robust_pending();
	test_robust_broken();
	test_pi();
	test_pi_died();
	test_pi_mutex();
	return check_finish("futexops");
}
