// SPDX-License-Identifier: BSD-2-Clause
/*
 * Checks that every call that waits for a time ends after that time, never before. With the
 * argument `exact`, for a machine whose time is instructions, it ends at most 1 % and 10 us late,
 * whatever the tick does. Timers that are cancelled, by a wake-up or by the death of their thread,
 * do not affect others.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>

#include "check.h"

/* From <linux/futex.h>, which musl does not have. */
#define FUTEX_WAIT_PRIVATE	  (0 | 128)
#define FUTEX_WAKE_PRIVATE	  (1 | 128)
#define FUTEX_WAIT_BITSET_PRIVATE (9 | 128)

#define NR_SLEEPERS 12
#define NR_ROUNDS   6

static int exact;
static int never; /* a futex that is never woken */

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

static struct timespec to_timespec(int64_t ns)
{
	return (struct timespec){ ns / 1000000000, ns % 1000000000 };
}

static void wait_nanosleep(int64_t ns)
{
	struct timespec ts = to_timespec(ns);

	CHECK(!syscall(SYS_nanosleep, &ts, NULL));
}

static void wait_nanosleep_until(int64_t ns)
{
	struct timespec ts = to_timespec(now_ns() + ns);

	CHECK(!syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL));
}

static void wait_ppoll(int64_t ns)
{
	struct timespec ts = to_timespec(ns);

	CHECK(syscall(SYS_ppoll, NULL, 0, &ts, NULL, 0) == 0);
}

static void wait_poll(int64_t ns)
{
	CHECK(poll(NULL, 0, ns / 1000000) == 0);
}

static void wait_select(int64_t ns)
{
	struct timeval tv = { ns / 1000000000, ns % 1000000000 / 1000 };

	CHECK(select(0, NULL, NULL, NULL, &tv) == 0);
}

static void wait_pselect(int64_t ns)
{
	struct timespec ts = to_timespec(ns);

	CHECK(syscall(SYS_pselect6, 0, NULL, NULL, NULL, &ts, NULL) == 0);
}

static void wait_futex(int64_t ns)
{
	struct timespec ts = to_timespec(ns);

	CHECK_ERROR(ETIMEDOUT, SYS_futex, &never, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0);
}

static void wait_futex_until(int64_t ns)
{
	struct timespec ts = to_timespec(now_ns() + ns);

	CHECK_ERROR(ETIMEDOUT, SYS_futex, &never, FUTEX_WAIT_BITSET_PRIVATE, 0, &ts, NULL, ~0u);
}

static void wait_signal(int64_t ns)
{
	struct timespec ts = to_timespec(ns);
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_ERROR(EAGAIN, SYS_rt_sigtimedwait, &set, NULL, &ts, 8);
}

static void wait_alarm(int64_t ns)
{
	struct itimerval timer = { .it_value = { ns / 1000000000, ns % 1000000000 / 1000 } };
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	CHECK(!setitimer(ITIMER_REAL, &timer, NULL));
	CHECK(!sigwait(&set, &sig) && sig == SIGALRM);
}

static const struct way {
	const char *name;
	void (*wait)(int64_t ns);
} ways[] = {
	{ "nanosleep", wait_nanosleep },
	{ "clock_nanosleep", wait_nanosleep_until },
	{ "ppoll", wait_ppoll },
	{ "poll", wait_poll },
	{ "select", wait_select },
	{ "pselect6", wait_pselect },
	{ "futex", wait_futex },
	{ "futex until", wait_futex_until },
	{ "rt_sigtimedwait", wait_signal },
	{ "setitimer", wait_alarm },
};

/* The profiler reads the call chain of a wait that has ended. The first one takes longer. */
#define FIRST_CHAIN_NS 10000

static void test_way(const struct way *way, int64_t ns)
{
	int64_t start = now_ns(), took;

	way->wait(ns);
	took = now_ns() - start;
	if (!CHECK(took >= ns) || (exact && !CHECK(took <= ns + ns / 100 + FIRST_CHAIN_NS)))
		printf("%s of %lld ns took %lld ns\n", way->name, (long long)ns, (long long)took);
	else if (exact)
		printf("%s: %lld of %lld ns\n", way->name, (long long)took, (long long)ns);
}

static void test_ways(void)
{
	/* The times are not multiples of a tick, so that they do not end at one. */
	for (unsigned int i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		ways[i].wait(1000); /* the first of its kind has page faults in it */
		test_way(&ways[i], 1000000);
		if (ways[i].wait != wait_poll)
			test_way(&ways[i], 2345000);
	}
}

/* Each period begins where the last one ended. One too short for the machine does not stop it. */
static void test_periods(int64_t period_us, int nr)
{
	struct itimerval timer = { { 0, period_us }, { 0, period_us } }, off = { 0 };
	int64_t start = now_ns(), took, want = nr * period_us * 1000;
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	CHECK(!setitimer(ITIMER_REAL, &timer, NULL));
	for (int i = 0; i < nr; i++)
		CHECK(!sigwait(&set, &sig) && sig == SIGALRM);
	took = now_ns() - start;
	CHECK(!setitimer(ITIMER_REAL, &off, NULL));
	CHECK(took >= want);
	if (exact && period_us > 1)
		CHECK(took <= want + want / 100);
	while (sigtimedwait(&set, NULL, &(struct timespec){ 0 }) == SIGALRM)
		;
}

/* Each thread sleeps for a different time. Those that started last end first. */
static void *sleep_on(void *arg)
{
	int64_t ns = 7000000 - 333000 * (intptr_t)arg;

	for (int i = 0; i < NR_ROUNDS; i++) {
		int64_t start = now_ns();

		wait_nanosleep(ns);
		CHECK(now_ns() - start >= ns);
	}
	return NULL;
}

static void test_sleepers(void)
{
	pthread_t threads[NR_SLEEPERS];

	for (intptr_t i = 0; i < NR_SLEEPERS; i++)
		CHECK(!pthread_create(&threads[i], NULL, sleep_on, (void *)i));
	for (int i = 0; i < NR_SLEEPERS; i++)
		CHECK(!pthread_join(threads[i], NULL));
}

/* Repeats a wait of an hour that is woken at once. */
static void *wait_for_turns(void *arg)
{
	int *turn = arg;
	struct timespec hour = { 3600, 0 };

	for (int i = 0; i < 200; i++) {
		while (__atomic_load_n(turn, __ATOMIC_ACQUIRE) == i)
			syscall(SYS_futex, turn, FUTEX_WAIT_PRIVATE, i, &hour, NULL, 0);
	}
	return NULL;
}

static void test_cancelled(void)
{
	int turn = 0;
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, wait_for_turns, &turn));
	for (int i = 1; i <= 200; i++) {
		__atomic_store_n(&turn, i, __ATOMIC_RELEASE);
		syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1);
		if (i % 50 == 0)
			wait_nanosleep(100000);
	}
	CHECK(!pthread_join(thread, NULL));
}

int main(int argc, char **argv)
{
	sigset_t set;

	exact = argc > 1 && !strcmp(argv[1], "exact");
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	test_ways();
	test_periods(1500, 20);
	test_periods(20, 50);
	test_periods(1, 50);
	test_sleepers();
	test_cancelled();
	/* Once more, in case the other tests have left timers behind. */
	test_ways();
	return check_finish("timeouts");
}
