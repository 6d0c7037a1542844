// SPDX-License-Identifier: BSD-2-Clause
/*
 * epoll on pipes and eventfds: level and edge triggering, one-shot watches, wake-ups, watches of
 * closed files, and epolls that watch epolls.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>

#include "events.h"

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#define MANY 200

static int ends[2], epfd;
static struct epoll_event got[MANY];

static void setup(void)
{
	CHECK(!pipe2(ends, O_NONBLOCK));
	epfd = epoll_create1(EPOLL_CLOEXEC);
	CHECK(epfd >= 0);
}

static void teardown(void)
{
	close(ends[0]);
	close(ends[1]);
	close(epfd);
}

static int control(int op, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u64 = (uint64_t)fd << 32 | 7 };

	return epoll_ctl(epfd, op, fd, &event);
}

static int add(int fd, uint32_t events)
{
	return control(EPOLL_CTL_ADD, fd, events);
}

/* Returns the events of fd if no other file has events; 0 if no file has; -1: anything else. */
static long now_on(int fd)
{
	int nr = epoll_wait(epfd, got, MANY, 0);

	if (nr == 1 && got[0].data.u64 == ((uint64_t)fd << 32 | 7))
		return got[0].events;
	return nr ? -1 : 0;
}

static void put(int nr)
{
	static const char block[65536];

	CHECK(write(ends[1], block, nr) == nr);
}

static void get(int nr)
{
	static char block[65536];

	CHECK(read(ends[0], block, nr) == nr);
}

TEST(errors)
{
	struct epoll_event event = { .events = EPOLLIN };
	int file = open(check_file_name(), O_CREAT | O_RDWR | O_TRUNC, 0600), other;

	setup();
	other = epoll_create(1);
	CHECK_ERROR(EINVAL, SYS_epoll_create, 0);
	CHECK_ERROR(EINVAL, SYS_epoll_create, -1);
	CHECK_ERROR(EINVAL, SYS_epoll_create1, 1);
	CHECK(fcntl(epfd, F_GETFD) == FD_CLOEXEC && fcntl(other, F_GETFD) == 0);
	CHECK(add(file, EPOLLIN) == -1 && errno == EPERM);
	CHECK(add(epfd, EPOLLIN) == -1 && errno == EINVAL);
	CHECK(add(999, EPOLLIN) == -1 && errno == EBADF);
	CHECK(epoll_ctl(999, EPOLL_CTL_ADD, ends[0], &event) == -1 && errno == EBADF);
	CHECK(epoll_ctl(ends[1], EPOLL_CTL_ADD, ends[0], &event) == -1 && errno == EINVAL);
	CHECK_ERROR(EFAULT, SYS_epoll_ctl, epfd, EPOLL_CTL_ADD, ends[0], 8);
	CHECK_ERROR(EFAULT, SYS_epoll_ctl, epfd, EPOLL_CTL_ADD, 999, NULL);
	CHECK_ERROR(EINVAL, SYS_epoll_ctl, epfd, 4, ends[0], &event);
	CHECK_ERROR(EINVAL, SYS_epoll_ctl, epfd, 0, ends[0], &event);
	CHECK(control(EPOLL_CTL_MOD, ends[0], EPOLLIN) == -1 && errno == ENOENT);
	CHECK(control(EPOLL_CTL_DEL, ends[0], EPOLLIN) == -1 && errno == ENOENT);
	CHECK(!add(ends[0], EPOLLIN) && add(ends[0], EPOLLOUT) == -1 && errno == EEXIST);
	CHECK(!epoll_ctl(epfd, EPOLL_CTL_DEL, ends[0], NULL));
	CHECK(!add(ends[0], EPOLLEXCLUSIVE | EPOLLIN | EPOLLET));
	CHECK(control(EPOLL_CTL_MOD, ends[0], EPOLLIN) == -1 && errno == EINVAL);
	CHECK(add(ends[1], EPOLLEXCLUSIVE | EPOLLONESHOT | EPOLLIN) == -1 && errno == EINVAL);
	CHECK(add(other, EPOLLEXCLUSIVE | EPOLLIN) == -1 && errno == EINVAL);
	CHECK_ERROR(EINVAL, SYS_epoll_wait, epfd, got, 0, 0);
	CHECK_ERROR(EINVAL, SYS_epoll_wait, epfd, got, -1, 0);
	CHECK_ERROR(EINVAL, SYS_epoll_wait, epfd, got, 0x7fffffff, 0);
	CHECK_ERROR(EINVAL, SYS_epoll_wait, ends[0], got, 1, 0);
	CHECK_ERROR(EBADF, SYS_epoll_wait, 999, got, 1, 0);
	CHECK_ERROR(EFAULT, SYS_epoll_wait, epfd, -4096l, 1, 0);
	CHECK_ERROR(EINVAL, SYS_epoll_pwait, epfd, got, 1, 0, got, 4);
	CHECK(read(epfd, got, 1) == -1 && errno == EINVAL);
	CHECK(write(epfd, got, 1) == -1 && errno == EINVAL);
	put(1);
	CHECK_ERROR(EFAULT, SYS_epoll_wait, epfd, 8, 1, 0);
	CHECK(now_on(ends[0]) == EPOLLIN); /* an edge that was not lost */
	close(file);
	close(other);
	teardown();
}

TEST(levels)
{
	setup();
	CHECK(!add(ends[0], EPOLLIN | EPOLLRDNORM) && now_on(ends[0]) == 0);
	put(1);
	for (int i = 0; i < 3; i++)
		CHECK(now_on(ends[0]) == (EPOLLIN | EPOLLRDNORM));
	get(1);
	CHECK(now_on(ends[0]) == 0);
	put(2);
	get(1);
	CHECK(now_on(ends[0]) == (EPOLLIN | EPOLLRDNORM));
	CHECK(!control(EPOLL_CTL_MOD, ends[0], 0) && now_on(ends[0]) == 0);
	CHECK(!control(EPOLL_CTL_MOD, ends[0], EPOLLIN) && now_on(ends[0]) == EPOLLIN);
	CHECK(!add(ends[1], EPOLLOUT) && epoll_wait(epfd, got, MANY, -1) == 2);
	CHECK(got[0].events == EPOLLIN && got[1].events == EPOLLOUT);
	CHECK(epoll_wait(epfd, got, 1, 0) == 1 && got[0].events == EPOLLIN);
	/* The ready list is served in turn. */
	CHECK(epoll_wait(epfd, got, 1, 0) == 1 && got[0].events == EPOLLOUT);
	CHECK(!control(EPOLL_CTL_DEL, ends[0], 0) && now_on(ends[1]) == EPOLLOUT);
	get(1);
	put(65536);
	CHECK(now_on(ends[1]) == 0);
	get(65536);
	CHECK(now_on(ends[1]) == EPOLLOUT);
	close(ends[0]);
	CHECK(now_on(ends[1]) == (EPOLLOUT | EPOLLERR));
	CHECK(!control(EPOLL_CTL_MOD, ends[1], 0) && now_on(ends[1]) == EPOLLERR);
	teardown();
}

TEST(edges)
{
	setup();
	put(1);
	CHECK(!add(ends[0], EPOLLIN | EPOLLET));
	CHECK(now_on(ends[0]) == EPOLLIN && now_on(ends[0]) == 0);
	put(1);
	put(1);
	CHECK(now_on(ends[0]) == EPOLLIN && now_on(ends[0]) == 0);
	get(2);
	CHECK(now_on(ends[0]) == 0);
	put(1);
	get(2);
	CHECK(now_on(ends[0]) == 0); /* the event is over before anyone has asked for it */
	put(1);
	CHECK(now_on(ends[0]) == EPOLLIN);
	CHECK(!control(EPOLL_CTL_MOD, ends[0], EPOLLIN | EPOLLET) && now_on(ends[0]) == EPOLLIN);
	close(ends[1]);
	CHECK(now_on(ends[0]) == (EPOLLIN | EPOLLHUP) && now_on(ends[0]) == 0);
	teardown();
}

TEST(oneshot)
{
	setup();
	CHECK(!add(ends[0], EPOLLIN | EPOLLONESHOT));
	put(1);
	CHECK(now_on(ends[0]) == EPOLLIN && now_on(ends[0]) == 0);
	put(1);
	CHECK(now_on(ends[0]) == 0);
	CHECK(!control(EPOLL_CTL_MOD, ends[0], EPOLLIN | EPOLLONESHOT));
	CHECK(now_on(ends[0]) == EPOLLIN && now_on(ends[0]) == 0);
	get(2);
	CHECK(!control(EPOLL_CTL_MOD, ends[0], EPOLLIN | EPOLLONESHOT) && now_on(ends[0]) == 0);
	close(ends[1]);
	CHECK(now_on(ends[0]) == EPOLLHUP && now_on(ends[0]) == 0);
	teardown();
}

/* A file with two wait queues: an edge in one direction is no edge in the other. */
TEST(directions)
{
	int fd = eventfd(0, EFD_NONBLOCK);

	setup();
	CHECK(!add(fd, EPOLLIN | EPOLLET) && now_on(fd) == 0);
	CHECK(event_add(fd, 1) == 8 && now_on(fd) == EPOLLIN && now_on(fd) == 0);
	CHECK(event_add(fd, 1) == 8 && now_on(fd) == EPOLLIN && event_get(fd) == 2);
	CHECK(now_on(fd) == 0);
	CHECK(!control(EPOLL_CTL_MOD, fd, EPOLLOUT | EPOLLET) && now_on(fd) == EPOLLOUT);
	CHECK(event_add(fd, 1) == 8 && now_on(fd) == 0 && event_get(fd) == 1);
	CHECK(now_on(fd) == EPOLLOUT && now_on(fd) == 0);
	CHECK(!control(EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLOUT) && now_on(fd) == EPOLLOUT);
	CHECK(event_add(fd, -2ull) == 8 && now_on(fd) == EPOLLIN);
	close(fd);
	CHECK(now_on(fd) == 0);
	teardown();
}

#define NR_EXCLUSIVE 8

#define NR_ALONE (NR_EXCLUSIVE + 2)

static int alone[NR_ALONE]; /* of each thread, its number; 0: it has not waited yet; -1: woken */

static void *wait_alone(void *number)
{
	long i = (long)number;
	struct epoll_event event = { .events = EPOLLIN | (i < NR_EXCLUSIVE ? EPOLLEXCLUSIVE : 0) };
	int fd = epoll_create1(0);

	CHECK(!epoll_ctl(fd, EPOLL_CTL_ADD, ends[0], &event));
	__atomic_store_n(&alone[i], syscall(SYS_gettid), __ATOMIC_RELEASE);
	CHECK(epoll_wait(fd, &event, 1, -1) == 1);
	__atomic_store_n(&alone[i], -1, __ATOMIC_RELEASE);
	return (void *)(long)fd;
}

/* Returns whether each thread sleeps, or has been woken, and counts the latter by kind. */
static int all_stay(int *nr_exclusive, int *nr_plain)
{
	*nr_exclusive = *nr_plain = 0;
	for (int i = 0; i < NR_ALONE; i++) {
		int tid = __atomic_load_n(&alone[i], __ATOMIC_ACQUIRE);

		if (!tid || (tid > 0 && !is_asleep(getpid(), tid)))
			return 0;
		if (tid < 0)
			++*(i < NR_EXCLUSIVE ? nr_exclusive : nr_plain);
	}
	return 1;
}

/* A byte wakes one exclusive epoll that has a sleeper, and all others; an end wakes all. */
TEST(exclusive)
{
	pthread_t threads[NR_ALONE];
	int nr_exclusive, nr_plain;
	void *fd;

	setup();
	for (long i = 0; i < NR_ALONE; i++)
		CHECK(!pthread_create(&threads[i], NULL, wait_alone, (void *)i));
	CHECK(WAIT_UNTIL(all_stay(&nr_exclusive, &nr_plain)));
	for (int i = 1; i <= 3; i++) {
		put(1);
		CHECK(WAIT_UNTIL(all_stay(&nr_exclusive, &nr_plain)));
		CHECK(nr_exclusive == i && nr_plain == 2);
	}
	close(ends[1]);
	for (int i = 0; i < NR_ALONE; i++)
		CHECK(!pthread_join(threads[i], &fd) && !close((int)(long)fd));
	CHECK(all_stay(&nr_exclusive, &nr_plain) && nr_exclusive == NR_EXCLUSIVE);
	teardown();
}

/* A watch exists as long as its file is open, even if its descriptor is closed. */
TEST(close)
{
	pid_t pid;
	int copy;

	setup();
	put(1);
	CHECK(!add(ends[0], EPOLLIN) && now_on(ends[0]) == EPOLLIN);
	copy = dup(ends[0]);
	CHECK(!add(copy, EPOLLIN) && epoll_wait(epfd, got, MANY, 0) == 2);
	close(ends[0]);
	CHECK(epoll_wait(epfd, got, MANY, 0) == 2);
	CHECK(control(EPOLL_CTL_DEL, ends[0], 0) == -1 && errno == EBADF);
	CHECK(dup2(copy, ends[0]) == ends[0] && !control(EPOLL_CTL_DEL, ends[0], 0));
	CHECK(!close(ends[0]) && now_on(copy) == EPOLLIN);
	close(copy);
	CHECK(epoll_wait(epfd, got, MANY, 0) == 0);
	close(ends[1]);
	/* Another file now has the same descriptor. */
	CHECK(!pipe2(ends, O_NONBLOCK) && !add(ends[0], EPOLLIN) && now_on(ends[0]) == 0);
	teardown();

	/*
	 * A child has the same epoll. Its watches stay even if only the parent has the file open.
	 */
	setup();
	CHECK(!add(ends[0], EPOLLIN));
	put(1);
	pid = fork_child();
	if (!pid) {
		close(ends[0]);
		CHECK(now_on(ends[0]) == EPOLLIN);
		child_exit(0);
	}
	CHECK(child_status(pid) == 0 && now_on(ends[0]) == EPOLLIN);
	get(1);
	teardown();
}

TEST(many)
{
	static int fds[MANY];
	int nr = 0, sum = 0;

	setup();
	for (int i = 0; i < MANY; i++) {
		fds[i] = eventfd(i % 2, EFD_NONBLOCK);
		CHECK(!add(fds[i], EPOLLIN));
		sum += i % 2 ? fds[i] : 0;
	}
	CHECK(epoll_wait(epfd, got, MANY, 0) == MANY / 2);
	for (int i = 0; i < MANY / 2; i++)
		sum -= got[i].data.u64 >> 32;
	CHECK(sum == 0);
	/* Every watch is served, even if few are taken at a time. */
	for (int i = 0; i < MANY / 2; i += nr) {
		nr = epoll_wait(epfd, got, 10, 0);
		if (!CHECK(nr == 10))
			break;
		for (int j = 0; j < nr; j++)
			CHECK(event_get(got[j].data.u64 >> 32) == 1);
	}
	CHECK(epoll_wait(epfd, got, MANY, 0) == 0);
	for (int i = 0; i < MANY; i += 3)
		CHECK(event_add(fds[i], 1) == 8);
	for (int i = 0; i < MANY; i += 2)
		close(fds[i]);
	CHECK(epoll_wait(epfd, got, MANY, 0) == MANY / 6);
	teardown();
	for (int i = 1; i < MANY; i += 2)
		close(fds[i]);
}

static void *write_later(void *arg)
{
	sleep_ms(20);
	put(1);
	return NULL;
}

static void *close_later(void *arg)
{
	sleep_ms(20);
	close(ends[1]);
	return NULL;
}

static void *watch_later(void *arg)
{
	sleep_ms(20);
	CHECK(!add(ends[0], EPOLLIN));
	return NULL;
}

TEST(waits)
{
	struct timespec time = { 0, 30000000 };
	pthread_t thread;
	long start = now_ms();

	setup();
	CHECK(!pthread_create(&thread, NULL, write_later, NULL) && !add(ends[0], EPOLLIN));
	CHECK(epoll_wait(epfd, got, MANY, 10000) == 1 && !pthread_join(thread, NULL));
	get(1);
	start = now_ms();
	CHECK(epoll_wait(epfd, got, MANY, 30) == 0 && now_ms() - start >= 29);
	start = now_ms();
	CHECK(syscall(SYS_epoll_pwait2, epfd, got, MANY, &time, NULL, 8) == 0);
	CHECK(now_ms() - start >= 29 && time.tv_nsec == 30000000);
	time.tv_nsec = -1;
	CHECK_ERROR(EINVAL, SYS_epoll_pwait2, epfd, got, MANY, &time, NULL, 8);
	CHECK_ERROR(EFAULT, SYS_epoll_pwait2, epfd, got, MANY, 8, NULL, 8);
	CHECK(!pthread_create(&thread, NULL, close_later, NULL));
	CHECK(epoll_wait(epfd, got, MANY, -1) == 1 && got[0].events == EPOLLHUP);
	CHECK(!pthread_join(thread, NULL));
	teardown();

	setup();
	put(1);
	CHECK(!pthread_create(&thread, NULL, watch_later, NULL));
	CHECK(epoll_wait(epfd, got, MANY, -1) == 1 && !pthread_join(thread, NULL));
	teardown();
}

#define NR_TAKERS 4
#define NR_EVENTS 400

static int nr_taken;

/* Takes one event at a time. Leaves the last one there, for the other threads. */
static void *take(void *arg)
{
	struct epoll_event event;
	uint64_t value;

	while (epoll_wait(epfd, &event, 1, -1) == 1) {
		int fd = event.data.u64 >> 32;

		if (fd == ends[0])
			break;
		if (read(fd, &value, sizeof(value)) == sizeof(value))
			__atomic_add_fetch(&nr_taken, value, __ATOMIC_RELAXED);
	}
	return NULL;
}

/*
 * Several threads wait for one epoll. Each event is taken, and no thread sleeps while there is one.
 */
TEST(takers)
{
	pthread_t threads[NR_TAKERS];
	int fds[NR_TAKERS];

	setup();
	nr_taken = 0;
	CHECK(!add(ends[0], EPOLLIN));
	for (int i = 0; i < NR_TAKERS; i++) {
		fds[i] = eventfd(0, EFD_NONBLOCK);
		CHECK(!add(fds[i], i % 2 ? EPOLLIN : EPOLLIN | EPOLLET));
		CHECK(!pthread_create(&threads[i], NULL, take, NULL));
	}
	for (int i = 0; i < NR_EVENTS; i++)
		CHECK(event_add(fds[i % NR_TAKERS], 1) == 8);
	CHECK(WAIT_UNTIL(__atomic_load_n(&nr_taken, __ATOMIC_RELAXED) == NR_EVENTS));
	put(1);
	for (int i = 0; i < NR_TAKERS; i++) {
		CHECK(!pthread_join(threads[i], NULL));
		close(fds[i]);
	}
	teardown();
}

static volatile int nr_handled;

static void on_signal(int sig)
{
	nr_handled++;
}

TEST(masks)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	sigset_t blocked, none, now;

	setup();
	nr_handled = 0;
	sigemptyset(&none);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	CHECK(!sigaction(SIGUSR1, &action, NULL) && !sigprocmask(SIG_BLOCK, &blocked, NULL));
	raise(SIGUSR1);
	CHECK(epoll_wait(epfd, got, 1, 10) == 0 && nr_handled == 0);
	CHECK(epoll_pwait(epfd, got, 1, -1, &none) == -1 && errno == EINTR && nr_handled == 1);
	CHECK(!sigprocmask(SIG_BLOCK, NULL, &now) && sigismember(&now, SIGUSR1));
	put(1);
	CHECK(!add(ends[0], EPOLLIN) && !raise(SIGUSR1));
	CHECK(epoll_pwait(epfd, got, 1, -1, &none) == 1);
	CHECK(!sigprocmask(SIG_UNBLOCK, &blocked, NULL) && nr_handled == 2);
	signal(SIGUSR1, SIG_DFL);
	teardown();
}

TEST(nested)
{
	int inner, chain[6];
	pthread_t thread;

	setup();
	inner = epfd;
	CHECK(!add(ends[0], EPOLLIN) && poll_now(inner, POLLIN) == 0);
	epfd = epoll_create1(0);
	CHECK(!add(inner, EPOLLIN) && now_on(inner) == 0);
	put(1);
	CHECK(poll_now(inner, POLLIN) == POLLIN && now_on(inner) == EPOLLIN);
	CHECK(now_on(inner) == EPOLLIN);
	get(1);
	CHECK(poll_now(inner, POLLIN) == 0 && now_on(inner) == 0);
	CHECK(!pthread_create(&thread, NULL, write_later, NULL));
	CHECK(epoll_wait(epfd, got, MANY, -1) == 1 && !pthread_join(thread, NULL));
	get(1);
	CHECK(now_on(inner) == 0 && !pthread_create(&thread, NULL, write_later, NULL));
	CHECK(poll(&(struct pollfd){ .fd = epfd, .events = POLLIN }, 1, -1) == 1);
	CHECK(!pthread_join(thread, NULL));
	/* A loop. */
	CHECK(epoll_ctl(inner, EPOLL_CTL_ADD, epfd, &(struct epoll_event){ 0 }) == -1);
	CHECK(errno == ELOOP);
	close(inner);
	CHECK(now_on(inner) == 0);
	teardown();

	/* A chain of six. */
	for (int i = 0; i < 6; i++) {
		chain[i] = epfd = epoll_create1(0);
		CHECK(i == 0 || add(chain[i - 1], EPOLLIN) == (i < 5 ? 0 : -1));
	}
	CHECK(errno == ELOOP);
	epfd = chain[4];
	CHECK(!control(EPOLL_CTL_DEL, chain[3], 0));
	epfd = chain[0];
	CHECK(!add(chain[5], EPOLLIN)); /* 3, 2, 1, 0, 5 */
	epfd = chain[4];
	CHECK(add(chain[3], EPOLLIN) == -1 && errno == ELOOP);
	CHECK(!add(chain[2], EPOLLIN));
	epfd = chain[5];
	CHECK(add(chain[3], EPOLLIN) == -1 && errno == ELOOP);
	for (int i = 0; i < 6; i++)
		close(chain[i]);
}

int main(int argc, char **argv)
{
	return run_tests("epolls", argc, argv);
}
