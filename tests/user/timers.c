// SPDX-License-Identifier: BSD-2-Clause
/*
 * timerfd: once and again and again, absolute and relative, what is left, who is woken.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "run.h"

#define MS 1000000L
#define NS 1000000000L

static struct itimerspec spec(long value_ns, long interval_ns)
{
	return (struct itimerspec){ .it_value = { value_ns / NS, value_ns % NS },
				    .it_interval = { interval_ns / NS, interval_ns % NS } };
}

static long to_ns(struct timespec time)
{
	return time.tv_sec * NS + time.tv_nsec;
}

static long clock_ns(int clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return to_ns(now);
}

static int set(int fd, int flags, long value_ns, long interval_ns)
{
	struct itimerspec new = spec(value_ns, interval_ns);

	return timerfd_settime(fd, flags, &new, NULL);
}

/* Time left; -1 if the interval is not that. */
static long left(int fd, long interval_ns)
{
	struct itimerspec now;

	CHECK(!timerfd_gettime(fd, &now));
	return to_ns(now.it_interval) == interval_ns ? to_ns(now.it_value) : -1;
}

static long expiries(int fd)
{
	uint64_t nr = 0;

	return read(fd, &nr, sizeof(nr)) == sizeof(nr) ? (long)nr : -1;
}

static int is_ready(int fd)
{
	struct pollfd one = { .fd = fd, .events = POLLIN | POLLOUT };

	return poll(&one, 1, 0) == 1 && one.revents == POLLIN;
}

static void test_once(void)
{
	int clocks[] = { CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME };

	for (int i = 0; i < 3; i++) {
		int fd = timerfd_create(clocks[i], 0);
		long start = clock_ns(clocks[i]);

		CHECK(fd >= 0 && left(fd, 0) == 0 && !is_ready(fd));
		CHECK(!set(fd, 0, 5 * MS, 0) && left(fd, 0) <= 5 * MS);
		CHECK(expiries(fd) == 1 && clock_ns(clocks[i]) - start >= 5 * MS);
		CHECK(left(fd, 0) == 0 && !is_ready(fd));
		CHECK(!set(fd, TFD_TIMER_ABSTIME, start + 10 * MS, 0) && expiries(fd) == 1);
		CHECK(clock_ns(clocks[i]) - start >= 10 * MS);
		/* In the past: at once. */
		CHECK(!set(fd, TFD_TIMER_ABSTIME, 1, 0) && expiries(fd) == 1);
		CHECK(!close(fd));
	}
}

static void test_intervals(void)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	long start = clock_ns(CLOCK_MONOTONIC), nr, before, after;

	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC && expiries(fd) == -1 && errno == EAGAIN);
	CHECK(!set(fd, TFD_TIMER_ABSTIME, start, 2 * MS));
	sleep_ms(11);
	before = (clock_ns(CLOCK_MONOTONIC) - start) / (2 * MS) + 1;
	CHECK(is_ready(fd));
	nr = expiries(fd);
	after = (clock_ns(CLOCK_MONOTONIC) - start) / (2 * MS) + 1;
	CHECK(before <= nr && nr <= after && nr >= 6);
	CHECK(left(fd, 2 * MS) > 0 && left(fd, 2 * MS) <= 2 * MS);
	CHECK(WAIT_UNTIL(is_ready(fd)) && expiries(fd) >= 1);
	/* In phase with the start, however late it is read. */
	CHECK(!set(fd, TFD_TIMER_ABSTIME, start, 1));
	sleep_ms(1);
	before = clock_ns(CLOCK_MONOTONIC) - start + 1;
	nr = expiries(fd);
	CHECK(before <= nr && nr <= clock_ns(CLOCK_MONOTONIC) - start + 1);
	/* Stopped: what was not read is gone. */
	CHECK(!set(fd, 0, 1, 1000 * MS) && WAIT_UNTIL(is_ready(fd)));
	CHECK(!set(fd, 0, 0, 3 * MS) && !is_ready(fd) && expiries(fd) == -1);
	CHECK(left(fd, 3 * MS) == 0);
	CHECK(!close(fd));
}

static void test_settings(void)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	struct itimerspec new = spec(1000 * NS, 7 * NS), old;
	uint64_t nr;

	CHECK(!timerfd_settime(fd, 0, &new, &old));
	CHECK(to_ns(old.it_value) == 0 && to_ns(old.it_interval) == 0);
	new = spec(0, 0);
	CHECK(!timerfd_settime(fd, 0, &new, &old) && to_ns(old.it_interval) == 7 * NS);
	CHECK(to_ns(old.it_value) > 900 * NS && to_ns(old.it_value) <= 1000 * NS);
	/* One that never comes. */
	new.it_value.tv_sec = 0x7fffffffffffffffL;
	CHECK(!timerfd_settime(fd, 0, &new, NULL) && left(fd, 0) > 1L << 60);
	CHECK(!timerfd_settime(fd, TFD_TIMER_ABSTIME, &new, NULL) && !is_ready(fd));

	new = spec(1, 0);
	new.it_value.tv_nsec = NS;
	CHECK(timerfd_settime(fd, 0, &new, NULL) == -1 && errno == EINVAL);
	new.it_value.tv_nsec = -1;
	CHECK(timerfd_settime(fd, 0, &new, NULL) == -1 && errno == EINVAL);
	new = spec(1, 0);
	new.it_interval.tv_sec = -1;
	CHECK(timerfd_settime(fd, 0, &new, NULL) == -1 && errno == EINVAL);
	new = spec(0, 0);
	CHECK_ERROR(EINVAL, SYS_timerfd_settime, fd, 4, &new, NULL);
	CHECK_ERROR(EFAULT, SYS_timerfd_settime, fd, 0, 8, NULL);
	CHECK_ERROR(EFAULT, SYS_timerfd_settime, fd, 0, NULL, NULL);
	CHECK_ERROR(EFAULT, SYS_timerfd_gettime, fd, 8);
	CHECK_ERROR(EBADF, SYS_timerfd_gettime, 999, &new);
	CHECK_ERROR(EINVAL, SYS_timerfd_gettime, 0, &new);
	CHECK_ERROR(EINVAL, SYS_timerfd_settime, 0, 0, &new, NULL);
	CHECK_ERROR(EINVAL, SYS_timerfd_create, CLOCK_THREAD_CPUTIME_ID, 0);
	CHECK_ERROR(EINVAL, SYS_timerfd_create, CLOCK_MONOTONIC, 1);
	CHECK(read(fd, &nr, 7) == -1 && errno == EINVAL);
	CHECK(write(fd, &nr, 8) == -1 && errno == EINVAL);
	CHECK(!close(fd));
}

static void *set_later(void *arg)
{
	sleep_ms(10);
	CHECK(!set(*(int *)arg, 0, 1, 0));
	return NULL;
}

static void test_waits(void)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, 0), epfd = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	long start = now_ms();
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, set_later, &fd) && expiries(fd) == 1);
	CHECK(!pthread_join(thread, NULL));
	CHECK(!epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) && epoll_wait(epfd, &event, 1, 0) == 0);
	CHECK(!set(fd, 0, 10 * MS, 5 * MS) && epoll_wait(epfd, &event, 1, -1) == 1);
	CHECK(now_ms() - start >= 10 && expiries(fd) >= 1);
	for (int i = 0; i < 3; i++)
		CHECK(epoll_wait(epfd, &event, 1, -1) == 1 && expiries(fd) >= 1);
	/* Closed while it runs. */
	CHECK(!set(fd, 0, 1, 1) && !close(fd) && !close(epfd));
}

static const struct test tests[] = {
	TEST(once), TEST(intervals), TEST(settings), TEST(waits), { 0 },
};

int main(int argc, char **argv)
{
	return run_tests("timers", tests, argc, argv);
}
