// SPDX-License-Identifier: BSD-2-Clause
/*
 * poll, ppoll, select and pselect6: results for pipes and files, wake-ups, timeouts, signal masks.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/select.h>

#include "run.h"

static int ends[2];

static void make_pipe(void)
{
	CHECK(!pipe2(ends, O_NONBLOCK));
}

static void close_pipe(void)
{
	close(ends[0]);
	close(ends[1]);
}

/* Returns the events that poll() finds on @fd; -1 if its count does not match them. */
static int poll_now(int fd, int events)
{
	struct pollfd one = { .fd = fd, .events = events, .revents = 0x7777 };
	int nr = poll(&one, 1, 0);

	return nr == !!one.revents && one.events == events ? one.revents : -1;
}

static void fill_pipe(void)
{
	static char block[4096];

	while (write(ends[1], block, sizeof(block)) > 0)
		;
	CHECK(errno == EAGAIN);
}

static void drain_pipe(void)
{
	static char block[65536];

	while (read(ends[0], block, sizeof(block)) > 0)
		;
}

TEST(states)
{
	int fd;

	make_pipe();
	CHECK(poll_now(ends[0], POLLIN) == 0 && poll_now(ends[1], POLLOUT) == POLLOUT);
	CHECK(poll_now(ends[0], POLLIN | POLLOUT) == 0 && poll_now(ends[1], POLLIN) == 0);
	CHECK(write(ends[1], "x", 1) == 1);
	CHECK(poll_now(ends[0], POLLIN) == POLLIN && poll_now(ends[0], 0) == 0);
	CHECK(poll_now(ends[0], POLLIN | POLLRDNORM | POLLPRI) == (POLLIN | POLLRDNORM));
	fill_pipe();
	CHECK(poll_now(ends[1], POLLOUT) == 0 && poll_now(ends[0], POLLIN) == POLLIN);
	drain_pipe();
	CHECK(poll_now(ends[1], POLLOUT | POLLWRNORM) == (POLLOUT | POLLWRNORM));
	close(ends[0]);
	CHECK(poll_now(ends[1], POLLOUT) == (POLLOUT | POLLERR) && poll_now(ends[1], 0) == POLLERR);
	close(ends[1]);
	CHECK(poll_now(ends[1], POLLIN) == POLLNVAL && poll_now(ends[1], 0) == POLLNVAL);
	CHECK(poll_now(-1, POLLIN) == 0);

	make_pipe();
	CHECK(write(ends[1], "x", 1) == 1 && !close(ends[1]));
	CHECK(poll_now(ends[0], POLLIN) == (POLLIN | POLLHUP) && poll_now(ends[0], 0) == POLLHUP);
	drain_pipe();
	CHECK(poll_now(ends[0], POLLIN) == POLLHUP);
	close(ends[0]);

	fd = open(check_file_name(), O_CREAT | O_RDWR | O_TRUNC, 0600); /* a file is always ready */
	CHECK(poll_now(fd, POLLIN | POLLOUT | POLLPRI) == (POLLIN | POLLOUT));
	close(fd);
}

TEST(many)
{
	struct pollfd fds[6];

	make_pipe();
	for (int i = 0; i < 6; i++)
		fds[i] = (struct pollfd){ .fd = ends[i & 1], .events = POLLIN | POLLOUT };
	fds[4].fd = -5;
	fds[5].fd = 999;
	CHECK(poll(fds, 6, -1) == 3);
	CHECK(!fds[0].revents && fds[1].revents == POLLOUT && !fds[2].revents);
	CHECK(fds[3].revents == POLLOUT && !fds[4].revents && fds[5].revents == POLLNVAL);
	CHECK(write(ends[1], "x", 1) == 1 && poll(fds, 4, 100000) == 4);
	close_pipe();
}

TEST(times)
{
	struct timespec time = { 0, 30000000 };
	struct timeval tv = { 0, 30000 };
	struct pollfd one;
	long start = now_ms();

	make_pipe();
	one = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	CHECK(poll(&one, 1, 30) == 0 && now_ms() - start >= 29 && one.revents == 0);
	start = now_ms();
	CHECK(poll(NULL, 0, 30) == 0 && now_ms() - start >= 29);
	start = now_ms();
	CHECK(ppoll(&one, 1, &time, NULL) == 0 && now_ms() - start >= 29);
	start = now_ms();
	CHECK(select(0, NULL, NULL, NULL, &tv) == 0 && now_ms() - start >= 29);
	CHECK(poll(&one, 1, 0) == 0);
	close_pipe();
	time.tv_nsec = 1000000000;
	CHECK_ERROR(EINVAL, SYS_ppoll, &one, 1, &time, NULL, 8);
	time.tv_nsec = -1;
	CHECK_ERROR(EINVAL, SYS_pselect6, 0, NULL, NULL, NULL, &time, NULL);
	time = (struct timespec){ 0, 1000 };
	CHECK_ERROR(EINVAL, SYS_ppoll, &one, 1, &time, &time, 4);
	CHECK_ERROR(EFAULT, SYS_ppoll, &one, 1, 8, NULL, 8);
	CHECK_ERROR(EFAULT, SYS_poll, 8, 1, 0);
	CHECK_ERROR(EINVAL, SYS_poll, &one, -1, 0);
}

#define WAIT_US 10000000L

/* Returns whether left_us, less than all, may be left of 10 s that began at @start_ms or later. */
static int is_left(long left_us, long start_ms)
{
	return left_us < WAIT_US && left_us >= WAIT_US - (now_ms() - start_ms + 1) * 1000;
}

/* The system calls write back the remaining time. The C library hides this for ppoll(). */
TEST(remaining)
{
	struct timespec time = { 10, 0 };
	struct timeval tv = { 10, 0 };
	struct pollfd one;
	long start = now_ms();
	fd_set set;

	make_pipe();
	one = (struct pollfd){ .fd = ends[1], .events = POLLOUT };
	CHECK(syscall(SYS_ppoll, &one, 1, &time, NULL, 8) == 1);
	CHECK(is_left(time.tv_sec * 1000000 + time.tv_nsec / 1000, start));
	FD_ZERO(&set);
	FD_SET(ends[1], &set);
	CHECK(syscall(SYS_select, ends[1] + 1, NULL, &set, NULL, &tv) == 1);
	CHECK(is_left(tv.tv_sec * 1000000 + tv.tv_usec, start));
	time = (struct timespec){ 10, 0 };
	CHECK(syscall(SYS_pselect6, ends[1] + 1, NULL, &set, NULL, &time, NULL) == 1);
	CHECK(is_left(time.tv_sec * 1000000 + time.tv_nsec / 1000, start));
	time = (struct timespec){ 0, 1000000 };
	FD_CLR(ends[1], &set);
	CHECK(syscall(SYS_pselect6, 0, NULL, NULL, NULL, &time, NULL) == 0);
	CHECK(time.tv_sec == 0 && time.tv_nsec == 0);
	close_pipe();
}

TEST(select)
{
	fd_set in, out, except;
	int high;

	make_pipe();
	high = fcntl(ends[0], F_DUPFD, 200);
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_ZERO(&except);
	FD_SET(ends[0], &in);
	FD_SET(high, &in);
	FD_SET(ends[1], &out);
	FD_SET(ends[0], &except);
	CHECK(select(high + 1, &in, &out, &except, NULL) == 1);
	CHECK(!FD_ISSET(ends[0], &in) && !FD_ISSET(high, &in) && FD_ISSET(ends[1], &out));
	CHECK(!FD_ISSET(ends[0], &except));
	FD_SET(ends[0], &in);
	FD_SET(high, &in);
	CHECK(write(ends[1], "x", 1) == 1 && select(high + 1, &in, &out, NULL, NULL) == 3);
	CHECK(FD_ISSET(ends[0], &in) && FD_ISSET(high, &in) && FD_ISSET(ends[1], &out));
	CHECK(select(high, &in, NULL, NULL, NULL) == 1); /* select() does not look at @high */
	CHECK(FD_ISSET(ends[0], &in));

	/*
	 * A read at the end of the stream, and a write without a reader, do not wait. So both ends
	 * are ready.
	 */
	close(ends[1]);
	drain_pipe();
	FD_ZERO(&in);
	FD_SET(ends[0], &in);
	CHECK(select(ends[0] + 1, &in, NULL, NULL, NULL) == 1 && FD_ISSET(ends[0], &in));
	close(high);
	FD_SET(high, &in);
	CHECK(select(high + 1, &in, NULL, NULL, NULL) == -1 && errno == EBADF);
	close(ends[0]);
	CHECK(select(-1, NULL, NULL, NULL, NULL) == -1 && errno == EINVAL);
	CHECK_ERROR(EFAULT, SYS_select, 64, 8, NULL, NULL, NULL);
}

static void *write_later(void *arg)
{
	sleep_ms(30);
	CHECK(write(ends[1], "x", 1) == 1);
	return NULL;
}

static void *drain_later(void *arg)
{
	sleep_ms(30);
	drain_pipe();
	return NULL;
}

static void *close_later(void *arg)
{
	sleep_ms(30);
	close(*(int *)arg);
	return NULL;
}

TEST(wakes)
{
	struct pollfd fds[2];
	pthread_t thread;
	fd_set set;

	make_pipe();
	fds[0] = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	CHECK(!pthread_create(&thread, NULL, write_later, NULL));
	CHECK(poll(fds, 1, 10000) == 1 && fds[0].revents == POLLIN && !pthread_join(thread, NULL));
	drain_pipe();
	CHECK(!pthread_create(&thread, NULL, write_later, NULL));
	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	CHECK(select(ends[0] + 1, &set, NULL, NULL, NULL) == 1 && !pthread_join(thread, NULL));
	fill_pipe();
	fds[0] = (struct pollfd){ .fd = ends[1], .events = POLLOUT };
	CHECK(poll(fds, 1, 0) == 0);
	CHECK(!pthread_create(&thread, NULL, drain_later, NULL));
	CHECK(poll(fds, 1, -1) == 1 && fds[0].revents == POLLOUT && !pthread_join(thread, NULL));
	fds[0] = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	CHECK(!pthread_create(&thread, NULL, close_later, &ends[1]));
	CHECK(poll(fds, 1, 10000) == 1 && fds[0].revents == POLLHUP);
	CHECK(!pthread_join(thread, NULL));
	close(ends[0]);

	make_pipe();
	fill_pipe();
	fds[0] = (struct pollfd){ .fd = ends[1], .events = POLLOUT };
	CHECK(!pthread_create(&thread, NULL, close_later, &ends[0]));
	CHECK(poll(fds, 1, 10000) == 1 && fds[0].revents & POLLERR && !pthread_join(thread, NULL));
	close(ends[1]);
}

static volatile int nr_handled;

static void on_signal(int sig)
{
	nr_handled++;
}

/*
 * The mask of ppoll() and pselect6() applies while they wait. The handler of a signal that it lets
 * in runs before they return.
 */
TEST(masks)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct timespec soon = { 0, 20000000 };
	sigset_t blocked, none, saved, now;
	struct pollfd one;

	make_pipe();
	one = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	sigemptyset(&none);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	CHECK(!sigprocmask(SIG_BLOCK, &blocked, &saved) && !raise(SIGUSR1) && nr_handled == 0);
	CHECK(ppoll(&one, 1, &soon, NULL) == 0 && nr_handled == 0);
	CHECK(ppoll(&one, 1, NULL, &none) == -1 && errno == EINTR && nr_handled == 1);
	CHECK(!sigprocmask(SIG_BLOCK, NULL, &now) && sigismember(&now, SIGUSR1));
	raise(SIGUSR1);
	CHECK(pselect(0, NULL, NULL, NULL, NULL, &none) == -1 && errno == EINTR);
	CHECK(nr_handled == 2 && !sigprocmask(SIG_BLOCK, NULL, &now));
	CHECK(sigismember(&now, SIGUSR1));
	/* The signal is blocked only during the wait. */
	CHECK(!sigprocmask(SIG_SETMASK, &none, NULL));
	CHECK(ppoll(&one, 1, &soon, &blocked) == 0 && nr_handled == 2);
	CHECK(!sigprocmask(SIG_BLOCK, NULL, &now) && !sigismember(&now, SIGUSR1));
	/*
	 * With an event there is no wait: the call returns the result and does not take the signal.
	 */
	CHECK(!sigprocmask(SIG_BLOCK, &blocked, NULL) && !raise(SIGUSR1));
	CHECK(write(ends[1], "x", 1) == 1 && ppoll(&one, 1, NULL, &none) == 1);
	CHECK(!sigprocmask(SIG_SETMASK, &saved, NULL) && nr_handled == 3);
	signal(SIGUSR1, SIG_DFL);
	close_pipe();
}

/* More entries than RLIMIT_NOFILE. */
TEST(limit)
{
	static struct pollfd fds[300];
	struct rlimit limit, low;

	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	low = limit;
	low.rlim_cur = 256;
	for (int i = 0; i < 300; i++)
		fds[i].fd = -1;
	CHECK(poll(fds, 300, 0) == 0 && !setrlimit(RLIMIT_NOFILE, &low));
	CHECK(poll(fds, 256, 0) == 0 && poll(fds, 257, 0) == -1 && errno == EINVAL);
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
}

int main(int argc, char **argv)
{
	return run_tests("polls", argc, argv);
}
