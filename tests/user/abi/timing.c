// SPDX-License-Identifier: BSD-2-Clause
/*
 * Clocks are monotonic and agree with each other, on all CPUs. Sleeps last at least as long as
 * requested.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

#include "check.h"

static int64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	CHECK(!syscall(SYS_clock_gettime, clock, &ts));
	CHECK(ts.tv_nsec >= 0 && ts.tv_nsec < 1000000000);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

static void test_forward(clockid_t clock)
{
	int64_t last = now_ns(clock), now;

	for (int i = 0; i < 2000; i++) {
		now = now_ns(clock);
		if (now < last) {
			CHECK(!"a clock goes backwards");
			return;
		}
		last = now;
	}
}

/* The latest reading of any thread. Another thread's next reading is never earlier. */
static int64_t latest;

static void *compare(void *arg)
{
	for (int i = 0; i < 3000; i++) {
		int64_t seen = __atomic_load_n(&latest, __ATOMIC_ACQUIRE);
		int64_t now = now_ns(CLOCK_MONOTONIC);

		if (now < seen) {
			CHECK(!"clocks of two CPUs disagree");
			break;
		}
		__atomic_store_n(&latest, now, __ATOMIC_RELEASE);
		if (i % 100 == 0)
			sched_yield();
	}
	return arg;
}

static void test_across_cpus(void)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, compare, NULL));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(threads[i], NULL));
}

static void test_sleep(int64_t want_ns)
{
	struct timespec ts = { want_ns / 1000000000, want_ns % 1000000000 };
	int64_t start, took = INT64_MAX;

	/* Repeat a sleep that took too long: a busy host may delay one sleep, but not each. */
	for (int i = 0; i < 20 && took >= want_ns + 1000000000; i++) {
		start = now_ns(CLOCK_MONOTONIC);
		CHECK(!syscall(SYS_nanosleep, &ts, NULL));
		took = now_ns(CLOCK_MONOTONIC) - start;
		CHECK(took >= want_ns);
	}
	CHECK(took < want_ns + 1000000000);

	start = now_ns(CLOCK_MONOTONIC);
	CHECK(!syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ts, NULL));
	CHECK(now_ns(CLOCK_MONOTONIC) - start >= want_ns);

	start = now_ns(CLOCK_MONOTONIC) + want_ns;
	ts = (struct timespec){ start / 1000000000, start % 1000000000 };
	CHECK(!syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL));
	CHECK(now_ns(CLOCK_MONOTONIC) >= start);
	/* A time in the past does not sleep. */
	CHECK(!syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL));

	CHECK_ERROR(EOPNOTSUPP, SYS_clock_nanosleep, CLOCK_THREAD_CPUTIME_ID, 0, &ts, NULL);
	CHECK_ERROR(EINVAL, SYS_clock_nanosleep, 100, 0, &ts, NULL);
}

static void *sleep_some(void *arg)
{
	test_sleep(1000000 * (1 + (long)arg));
	return NULL;
}

static void test_many_sleepers(void)
{
	pthread_t threads[16];

	for (long i = 0; i < 16; i++)
		CHECK(!pthread_create(&threads[i], NULL, sleep_some, (void *)(i * 3)));
	for (int i = 0; i < 16; i++)
		CHECK(!pthread_join(threads[i], NULL));
}

static void test_agreement(void)
{
	struct timeval tv;
	struct timespec res, before, after;
	int64_t clock, day, seconds;

	clock = now_ns(CLOCK_REALTIME);
	CHECK(!syscall(SYS_gettimeofday, &tv, NULL));
	day = tv.tv_sec * 1000000000ll + tv.tv_usec * 1000;
	CHECK(day >= clock - 1000 && day <= now_ns(CLOCK_REALTIME));
	/* time() uses the coarse clock, which may be a tick behind. */
	CHECK(!syscall(SYS_clock_gettime, CLOCK_REALTIME_COARSE, &before));
	seconds = syscall(SYS_time, NULL);
	CHECK(!syscall(SYS_clock_gettime, CLOCK_REALTIME_COARSE, &after));
	CHECK(before.tv_sec <= seconds && seconds <= after.tv_sec);
	CHECK(clock / 1000000000 - 1 <= seconds && seconds <= now_ns(CLOCK_REALTIME) / 1000000000);
	CHECK(!syscall(SYS_clock_getres, CLOCK_MONOTONIC, &res));
	CHECK(res.tv_sec == 0 && res.tv_nsec > 0);
}

int main(void)
{
	test_forward(CLOCK_MONOTONIC);
	test_forward(CLOCK_REALTIME);
	test_agreement();
	test_across_cpus();
	test_sleep(0);
	test_sleep(50000);
	test_sleep(20000000);
	test_many_sleepers();
	return check_finish("timing");
}
