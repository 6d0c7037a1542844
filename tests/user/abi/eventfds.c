// SPDX-License-Identifier: BSD-2-Clause
/* eventfd: its counter, its limits, what waits for it, and what it is not. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include "events.h"

TEST(counter)
{
	int fd = eventfd(3, EFD_NONBLOCK), copy;
	uint64_t value[3] = { 1, 2, 3 };
	char path[32], link[64] = "";
	struct stat st;

	CHECK(fd >= 0 && event_get(fd) == 3 && event_get(fd) == -1ull && errno == EAGAIN);
	CHECK(poll_now(fd, POLLIN | POLLOUT) == POLLOUT);
	CHECK(event_add(fd, 5) == 8 && event_add(fd, 6) == 8);
	CHECK(poll_now(fd, POLLIN | POLLOUT) == (POLLIN | POLLOUT) && event_get(fd) == 11);
	CHECK(event_add(fd, -1ull) == -1 && errno == EINVAL);
	CHECK(event_add(fd, -2ull) == 8 && event_add(fd, 1) == -1 && errno == EAGAIN);
	CHECK(event_add(fd, 0) == 8 && poll_now(fd, POLLIN | POLLOUT) == POLLIN);
	CHECK(event_get(fd) == -2ull && event_add(fd, 0) == 8);
	CHECK(event_get(fd) == -1ull && errno == EAGAIN);
	CHECK(write(fd, value, 7) == -1 && errno == EINVAL);
	CHECK_ERROR(EINVAL, SYS_write, fd, value, 0);
	CHECK_ERROR(EINVAL, SYS_read, fd, value, 0);
	CHECK(event_add(fd, 1) == 8 && read(fd, value, 7) == -1 && errno == EINVAL);
	CHECK(read(fd, value, 24) == 8 && value[0] == 1 && value[1] == 2);
	CHECK_ERROR(EFAULT, SYS_write, fd, 8, 8);
	CHECK(event_add(fd, 9) == 8);
	CHECK_ERROR(EFAULT, SYS_read, fd, 8, 8);
	event_get(fd); /* drops the value, which Linux has lost already */
	CHECK_ERROR(ESPIPE, SYS_pread64, fd, value, 8, 0);
	CHECK(ftruncate(fd, 0) == -1 && errno == EINVAL);
	CHECK(!fstat(fd, &st) && !(st.st_mode & S_IFMT) && !st.st_size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (readlink(path, link, sizeof(link) - 1) > 0)
		CHECK(!strcmp(link, "anon_inode:[eventfd]"));
	CHECK(open(path, O_RDWR) == -1 && (errno == ENXIO || errno == ENOENT));
	copy = dup(fd);
	CHECK(event_add(copy, 4) == 8 && !close(copy) && event_get(fd) == 4 && !close(fd));

	fd = eventfd(2, EFD_NONBLOCK | EFD_SEMAPHORE | EFD_CLOEXEC);
	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC && fcntl(fd, F_GETFL) == (O_RDWR | O_NONBLOCK));
	CHECK(event_get(fd) == 1 && event_get(fd) == 1 && event_get(fd) == -1ull);
	CHECK(event_add(fd, 1) == 8 && event_get(fd) == 1 && !close(fd));
	CHECK_ERROR(EINVAL, SYS_eventfd2, 0, 2);
	fd = syscall(SYS_eventfd2, -1u, 0);
	CHECK(fd >= 0 && event_get(fd) == 0xffffffff && !close(fd));
}

static void *add_later(void *arg)
{
	sleep_ms(20);
	CHECK(event_add(*(int *)arg, 3) == 8);
	return NULL;
}

static void *get_later(void *arg)
{
	sleep_ms(20);
	CHECK(event_get(*(int *)arg) == -3ull);
	return NULL;
}

static volatile int nr_handled;

static void on_signal(int sig)
{
	nr_handled++;
}

static volatile int kicks_end;

/* Sends a signal repeatedly, because the thread may not wait yet. */
static void *kick_until_end(void *arg)
{
	while (!kicks_end) {
		sleep_ms(20);
		CHECK(!pthread_kill(*(pthread_t *)arg, SIGUSR1));
	}
	return NULL;
}

TEST(waits)
{
	struct sigaction action = { .sa_handler = on_signal };
	pthread_t thread, self = pthread_self();
	int fd = eventfd(0, 0);

	CHECK(!pthread_create(&thread, NULL, add_later, &fd));
	CHECK(event_get(fd) == 3 && !pthread_join(thread, NULL));
	CHECK(event_add(fd, -3ull) == 8 && !pthread_create(&thread, NULL, get_later, &fd));
	CHECK(event_add(fd, 2) == 8 && !pthread_join(thread, NULL) && event_get(fd) == 2);
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	CHECK(!pthread_create(&thread, NULL, kick_until_end, &self));
	CHECK(event_get(fd) == -1ull && errno == EINTR && nr_handled >= 1);
	kicks_end = 1;
	CHECK(!pthread_join(thread, NULL) && !close(fd));
	signal(SIGUSR1, SIG_DFL);
}

int main(int argc, char **argv)
{
	return run_tests("eventfds", argc, argv);
}
