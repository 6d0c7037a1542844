/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_USER_EVENTS_H
#define TESTS_USER_EVENTS_H

/* For programs that use eventfds, and files that are ready. */

#include <poll.h>
#include <stdint.h>
#include <sys/eventfd.h>

#include "run.h"

static inline int event_add(int fd, uint64_t value)
{
	return write(fd, &value, sizeof(value));
}

static inline uint64_t event_get(int fd)
{
	uint64_t value = 0;

	return read(fd, &value, sizeof(value)) == sizeof(value) ? value : -1ull;
}

static inline int poll_now(int fd, int events)
{
	struct pollfd one = { .fd = fd, .events = events };

	return poll(&one, 1, 0) >= 0 ? one.revents : -1;
}

#endif
