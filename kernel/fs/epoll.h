/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FS_EPOLL_H
#define FS_EPOLL_H

/* The set of watched files (epoll.c), as the system calls use it. Process context. */

#include <lego/fs.h>
#include <lego/poll.h>

#define EPOLLEXCLUSIVE BIT(28)
#define EPOLLWAKEUP    BIT(29) /* about suspending the machine: no effect */
#define EPOLLONESHOT   BIT(30)
#define EPOLLET	       BIT(31)
#define EPOLL_FLAGS    (EPOLLEXCLUSIVE | EPOLLWAKEUP | EPOLLONESHOT | EPOLLET)

/* Linux's. */
struct epoll_event {
	u32 events;
	u64 data;
} __packed;

struct epoll;

bool file_is_epoll(const struct file *file); /* its ->private is the struct epoll */
struct file *epoll_make_file(void);	     /* NULL: no memory */

/*
 * Begin and end to watch a file by that descriptor, and change for what. The caller has a reference
 * to the file, which can be polled. 0 or: -EEXIST, -ENOSPC, -ENOMEM, and -ELOOP of an epoll; or
 * -ENOENT; or -ENOENT, -EINVAL (EPOLLEXCLUSIVE).
 */
int epoll_add(struct epoll *epoll, struct file *file, int fd, const struct epoll_event *event);
int epoll_remove(struct epoll *epoll, struct file *file, int fd);
int epoll_change(struct epoll *epoll, struct file *file, int fd, const struct epoll_event *event);

/* How many events there could be now. */
int epoll_max_events(const struct epoll *epoll);
/* Takes the events that there are, at most max: how many, maybe none. */
int epoll_take(struct epoll *epoll, struct epoll_event *events, int max);
/* Until there may be an event: 0, or -ETIMEDOUT, -EINTR. */
int epoll_sleep(struct epoll *epoll, u64 deadline_ns);

#endif
