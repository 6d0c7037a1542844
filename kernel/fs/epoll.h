/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FS_EPOLL_H
#define FS_EPOLL_H

/* The interface of epoll.c for the system calls (epoll_calls.c). Process context. */

#include <lego/fs.h>
#include <lego/poll.h>

#define EPOLLEXCLUSIVE BIT(28)
#define EPOLLWAKEUP    BIT(29) /* about suspending the machine: no effect */
#define EPOLLONESHOT   BIT(30)
#define EPOLLET	       BIT(31)
#define EPOLL_FLAGS    (EPOLLEXCLUSIVE | EPOLLWAKEUP | EPOLLONESHOT | EPOLLET)

/* Linux's layout. */
struct epoll_event {
	u32 events;
	u64 data;
} __packed;

struct epoll;

bool file_is_epoll(const struct file *file); /* its ->private is the struct epoll */
struct file *epoll_make_file(void);	     /* NULL: no memory */

/*
 * Add, remove and change a watch of a file by its descriptor. The caller has a reference to the
 * file, which can be polled. Return 0 or an error. epoll_add(): -EEXIST, -ENOSPC, -ENOMEM, or
 * -ELOOP if the file is an epoll. epoll_remove(): -ENOENT. epoll_change(): -ENOENT, or -EINVAL if
 * the watch has EPOLLEXCLUSIVE.
 */
int epoll_add(struct epoll *epoll, struct file *file, int fd, const struct epoll_event *event);
int epoll_remove(struct epoll *epoll, struct file *file, int fd);
int epoll_change(struct epoll *epoll, struct file *file, int fd, const struct epoll_event *event);

/* Returns an upper bound of the events that epoll_take() could find now. */
int epoll_max_events(const struct epoll *epoll);
/* Takes at most max events. Returns their number, which can be 0. */
int epoll_take(struct epoll *epoll, struct epoll_event *events, int max);
/* Sleeps until there may be an event. Returns 0, -ETIMEDOUT or -EINTR. */
int epoll_sleep(struct epoll *epoll, u64 deadline_ns);

/* Removes all watches of a file whose last reference is gone. */
void epoll_forget_file(struct file *file);

#endif
