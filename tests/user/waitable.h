/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_USER_WAITABLE_H
#define TESTS_USER_WAITABLE_H

/*
 * Files that several processes or threads wait for. Each make_*() sets fds: readers of fds[0] wait
 * for what comes to fds[1], or the queue of fds[1] is full, and writers wait for room.
 */

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>

#include "run.h"

#define MESSAGE_BYTES 8

static int fds[2];
static const char page[4096] = { 1 };

static inline int read_one(void)
{
	char in[MESSAGE_BYTES];

	return read(fds[0], in, sizeof(in)) == sizeof(in);
}

static inline void read_event(void)
{
	CHECK(read_one());
}

static inline int write_one(void)
{
	return write(fds[1], page, MESSAGE_BYTES) == MESSAGE_BYTES;
}

static inline void write_event(void)
{
	CHECK(write_one());
}

static inline void make_pipe(void)
{
	CHECK(!pipe(fds));
}

static inline void make_stream(void)
{
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
}

static inline void make_datagrams(void)
{
	CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, fds));
}

/* For a file with one end. */
static inline void use_for_both(int fd)
{
	CHECK((fds[0] = fd) >= 0 && (fds[1] = dup(fd)) >= 0);
}

static inline void make_eventfd(void)
{
	use_for_both(eventfd(0, EFD_SEMAPHORE));
}

static inline void make_timerfd(void)
{
	use_for_both(timerfd_create(CLOCK_MONOTONIC, 0));
}

/* Fills the queue to its last byte. */
static inline void fill(void)
{
	int flags = fcntl(fds[1], F_GETFL);

	CHECK(!fcntl(fds[1], F_SETFL, flags | O_NONBLOCK));
	while (write(fds[1], page, sizeof(page)) > 0)
		;
	while (write_one())
		;
	CHECK(!fcntl(fds[1], F_SETFL, flags));
}

static inline void make_full_pipe(void)
{
	make_pipe();
	fill();
}

static inline void fill_with_messages(void)
{
	while (send(fds[1], page, MESSAGE_BYTES, MSG_DONTWAIT) > 0)
		;
}

/* A socket with a name. */
static struct sockaddr_un address = { .sun_family = AF_UNIX };

static inline int bind_socket(int type)
{
	int fd = socket(AF_UNIX, type, 0);

	strcpy(address.sun_path, check_file_name());
	unlink(address.sun_path);
	CHECK(!bind(fd, (struct sockaddr *)&address, sizeof(address)));
	return fd;
}

static inline int connect_to_it(int fd)
{
	return !connect(fd, (struct sockaddr *)&address, sizeof(address));
}

static inline void connect_event(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	CHECK(connect_to_it(fd) && !close(fd));
}

static inline void make_listener(void)
{
	use_for_both(bind_socket(SOCK_STREAM));
	CHECK(!listen(fds[0], 100));
}

static inline int accept_one(void)
{
	return accept(fds[0], NULL, NULL) >= 0;
}

static inline void make_full_listener(void)
{
	make_listener();
	CHECK(!listen(fds[0], 0));
	connect_event();
}

#endif
