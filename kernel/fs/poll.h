/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FS_POLL_H
#define FS_POLL_H

/* Waiting for events of files, for poll(2), select(2) and epoll(7). */

#include "fd.h"

#include <lego/time.h>

/* Linux's layout of a descriptor to wait for. */
struct pollfd {
	s32 fd;	     /* negative: ignored */
	u16 events;  /* POLL* to wait for */
	u16 revents; /* result: those that are there, or POLLNVAL */
};

struct poll_item {
	struct pollfd poll;
	struct fd_use use; /* used by poll_items() */
};

/*
 * Waits until an item has an event, at most until clock_monotonic_ns() reaches the deadline.
 * Returns the number of items with events; 0 at the deadline; -EINTR after a signal; or -ENOMEM.
 */
int poll_items(struct poll_item *items, unsigned int nr, u64 deadline_ns);

/*
 * Converts a user's relative time to a deadline; NULL: TIME_NEVER_NS. Returns 0, -EFAULT or
 * -EINVAL.
 */
int poll_deadline(const struct timespec64 __user *user_time, u64 *deadline_ns);
int poll_deadline_of(const struct timespec64 *time, u64 *deadline_ns); /* 0 or -EINVAL */
u64 poll_deadline_ms(int timeout_ms);				       /* negative: TIME_NEVER_NS */
struct timespec64 poll_time_left(u64 deadline_ns);
/* Copies the remaining time to the user. A bad address is no error. */
void poll_return_time(struct timespec64 __user *user_time, u64 deadline_ns);
/*
 * Set a signal mask for the time of a call, if user_mask is given. poll_end_mask() returns the
 * call's result.
 */
int poll_begin_mask(const u64 __user *user_mask, size_t mask_bytes);
long poll_end_mask(long ret, bool has_mask);

/* Returns true if the file can be polled. Any other file is always ready. */
static inline bool file_can_poll(const struct file *file)
{
	return file->ops && file->ops->poll;
}

#endif
