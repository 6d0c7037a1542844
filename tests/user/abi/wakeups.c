// SPDX-License-Identifier: BSD-2-Clause
/*
 * No wake-up is lost: of several processes that wait for the same thing, each gets one, although
 * some of them are killed while it comes. A kernel that wakes one waiter for one thing must wake
 * another if that one is killed, and go on if there is more.
 */
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/file.h>

#include "waitable.h"

#define NR_WAITERS 8
#define NR_KILLED  3 /* of these */
#define NR_ROUNDS  12

/* For each kind of wait: make() prepares it, wait() waits, and event() is what one waiter gets. */

/* Expires again and again: an expiry that nobody has read is not counted as another one. */
static void start_timer(void)
{
	struct itimerspec soon = { { 0, 1000000 }, { 0, 1 } };

	CHECK(!timerfd_settime(fds[0], 0, &soon, NULL));
}

/* Some need more room than others. */
static int write_much(void)
{
	return write(fds[1], page, getpid() % 2 ? sizeof(page) : MESSAGE_BYTES) > 0;
}

/* Linux makes room in a pipe by pages. */
static void read_page(void)
{
	char in[sizeof(page)];

	CHECK(read(fds[0], in, sizeof(in)) > 0);
}

/* The number of messages is limited: the receiver is not connected to the sender. */
static void make_full_datagrams(void)
{
	fds[0] = bind_socket(SOCK_DGRAM);
	CHECK((fds[1] = socket(AF_UNIX, SOCK_DGRAM, 0)) >= 0);
	CHECK(connect_to_it(fds[1]));
	fill_with_messages();
}

static int connect_one(void)
{
	return connect_to_it(socket(AF_UNIX, SOCK_STREAM, 0));
}

static void accept_event(void)
{
	struct pollfd one = { .fd = fds[0], .events = POLLIN };
	int fd;

	if (!poll(&one, 1, 0))
		return;
	fd = accept(fds[0], NULL, NULL);
	CHECK(fd >= 0 && !close(fd));
}

/* A lock: the holder, this process, releases it, and each that gets it does at its end. */
static void make_lock(void)
{
	use_for_both(open("/tmp/wakeups-lock", O_RDWR | O_CREAT, 0600));
}

static void make_flock(void)
{
	make_lock();
	CHECK(!flock(fds[0], LOCK_EX));
}

static int lock_file(void)
{
	int fd = open("/tmp/wakeups-lock", O_RDWR);

	/* Shared locks can be held at the same time. */
	return !flock(fd, getpid() % 3 ? LOCK_EX : LOCK_SH);
}

static void unlock_file(void)
{
	CHECK(!flock(fds[0], LOCK_UN));
}

static int set_record(int type, int start)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = 4 };

	return !fcntl(fds[0], F_SETLKW, &lock);
}

static void make_record(void)
{
	make_lock();
	CHECK(set_record(F_WRLCK, 0) && set_record(F_WRLCK, 4));
}

/* Ranges overlap: some wait for one or both halves, or for each other. */
static int lock_record(void)
{
	return set_record(getpid() % 3 ? F_WRLCK : F_RDLCK, getpid() % 5);
}

static void unlock_record(void)
{
	CHECK(set_record(F_UNLCK, 0) && set_record(F_UNLCK, 4));
}

/*
 * The poll event that is set while an event is left that no waiter has got; or, where none tells
 * that, how many events there are.
 */
enum {
	READABLE = POLLIN,
	WRITABLE = POLLOUT,
	MANY = 0,	   /* after the kills, until all have ended */
	ONE_FOR_ALL = -1,  /* waiters pass it on */
	ONE_FOR_EACH = -2, /* also for those that are killed */
};

static int is_left(short sign)
{
	struct pollfd one = { .fd = fds[sign == WRITABLE], .events = sign };

	return poll(&one, 1, 0) != 0;
}

/*
 * Waits for all. Some were killed, but may have got an event and ended before. So the event is
 * repeated, but not while one is left: then somebody must have been woken for that.
 */
static void reap(const pid_t *pids, int first_killed, void (*event)(void), short sign)
{
	for (int i = 0; i < NR_WAITERS; i++) {
		int is_killed = i >= first_killed && i < first_killed + NR_KILLED;
		int status;

		while (!waitpid(pids[i], &status, sign < 0 ? 0 : WNOHANG)) {
			if (!is_left(sign))
				event();
			sched_yield();
		}
		CHECK(status == EXITED(0) || (is_killed && status == SIGKILL));
	}
}

static void check_waiters(void (*make)(void), int (*wait)(void), void (*event)(void), short sign)
{
	pid_t pids[NR_WAITERS];

	for (int round = 0; round < NR_ROUNDS; round++) {
		int is_one_for_one = sign != MANY && sign != ONE_FOR_ALL;
		int nr_before = is_one_for_one ? round / 4 : 0;
		int nr_events = is_one_for_one ? NR_KILLED : sign == ONE_FOR_ALL;

		make();
		for (int i = 0; i < NR_WAITERS; i++) {
			pids[i] = fork_child();
			if (!pids[i])
				child_exit(wait() ? 0 : 2);
			sleep_ms(round % 2);
		}
		sleep_ms(5);
		for (int i = 0; i < nr_before; i++)
			event();
		/* Kills those that are next, each just before or after an event. */
		for (int i = 0; i < NR_KILLED; i++) {
			if (round & 2 && i < nr_events)
				event();
			CHECK(!kill(pids[round / 4 + i], SIGKILL));
			if (!(round & 2) && i < nr_events)
				event();
		}
		for (int i = nr_before + NR_KILLED; sign == ONE_FOR_EACH && i < NR_WAITERS; i++)
			event();
		reap(pids, round / 4, event, sign);
		close(fds[0]);
		close(fds[1]);
	}
}

#define WAITERS(name, make, wait, event, sign)          \
	TEST(name)                                      \
	{                                               \
		check_waiters(make, wait, event, sign); \
	}

WAITERS(pipe_read, make_pipe, read_one, write_event, READABLE)
WAITERS(stream_receive, make_stream, read_one, write_event, READABLE)
WAITERS(datagram_receive, make_datagrams, read_one, write_event, READABLE)
WAITERS(eventfd_read, make_eventfd, read_one, write_event, READABLE)
WAITERS(timerfd_read, make_timerfd, read_one, start_timer, ONE_FOR_ALL)
WAITERS(pipe_write, make_full_pipe, write_one, read_page, WRITABLE)
WAITERS(pipe_write_much, make_full_pipe, write_much, read_page, WRITABLE)
/* On Linux, a sender that is woken and killed tells no other one. */
WAITERS(datagram_send, make_full_datagrams, write_one, read_event,
	check_on_lego() ? WRITABLE : ONE_FOR_EACH)
WAITERS(accept, make_listener, accept_one, connect_event, READABLE)
WAITERS(connect, make_full_listener, connect_one, accept_event, MANY)
WAITERS(flock, make_flock, lock_file, unlock_file, ONE_FOR_ALL)
WAITERS(record_lock, make_record, lock_record, unlock_record, ONE_FOR_ALL)

/* An epoll that waits for the end of a pipe only does not take the wake-up of a reader. */
TEST(exclusive_watch)
{
	struct epoll_event event = { .events = EPOLLEXCLUSIVE | EPOLLHUP };
	pid_t watcher, reader, ended = 0;
	int status;

	make_pipe();
	watcher = fork_child();
	if (!watcher) {
		int epoll_fd = epoll_create1(0);

		close(fds[1]);
		CHECK(!epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fds[0], &event));
		child_exit(epoll_wait(epoll_fd, &event, 1, -1) == 1 ? 0 : 2);
	}
	CHECK(WAIT_UNTIL(is_asleep(watcher, watcher)));
	reader = fork_child();
	if (!reader)
		child_exit(read_one() ? 0 : 2);
	CHECK(WAIT_UNTIL(is_asleep(reader, reader)));
	write_event();
	CHECK(WAIT_UNTIL(ended || (ended = waitpid(reader, &status, WNOHANG))));
	if (ended != reader)
		kill(reader, SIGKILL);
	CHECK(ended == reader && status == EXITED(0));
	close(fds[1]);
	CHECK(child_status(watcher) == EXITED(0));
	close(fds[0]);
}

int main(int argc, char **argv)
{
	return run_tests("wakeups", argc, argv);
}
