// SPDX-License-Identifier: BSD-2-Clause
/* The system calls of epoll. */

#include "epoll.h"

#include "fd.h"
#include "iov.h"
#include "poll.h"
#include <lego/errno.h>
#include <lego/signal.h>
#include <lego/slab.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

#define EPOLL_CTL_ADD 1
#define EPOLL_CTL_DEL 2
#define EPOLL_CTL_MOD 3

/* The events and flags that may come with EPOLLEXCLUSIVE. */
#define EXCLUSIVE_EVENTS (POLLIN | POLLOUT | POLL_ALWAYS | EPOLLWAKEUP | EPOLLET | EPOLLEXCLUSIVE)

#define MAX_EVENTS (INT32_MAX / (int)sizeof(struct epoll_event)) /* of one call, as in Linux */
#define NR_INLINE  16						 /* events that fit on the stack */

/* Checks the use of EPOLLEXCLUSIVE, with which wake_up() wakes one of the epolls on a file. */
static bool may_be_exclusive(const struct file *file, int op, u32 events)
{
	return op == EPOLL_CTL_ADD && !file_is_epoll(file) && !(events & ~EXCLUSIVE_EVENTS);
}

static int control(struct file *file, int op, struct file *target, int fd,
		   const struct epoll_event *event)
{
	struct epoll *epoll = file->private;

	if (!file_can_poll(target))
		return -EPERM;
	if (file == target || !file_is_epoll(file))
		return -EINVAL;
	if (op != EPOLL_CTL_DEL && event->events & EPOLLEXCLUSIVE &&
	    !may_be_exclusive(target, op, event->events))
		return -EINVAL;
	switch (op) {
	case EPOLL_CTL_ADD:
		return epoll_add(epoll, target, fd, event);
	case EPOLL_CTL_DEL:
		return epoll_remove(epoll, target, fd);
	case EPOLL_CTL_MOD:
		return epoll_change(epoll, target, fd, event);
	default:
		return -EINVAL;
	}
}

SYSCALL_DEFINE4(epoll_ctl, int, epfd, int, op, int, fd, const struct epoll_event __user *,
		user_event)
{
	struct epoll_event event = { 0 };
	struct file *file, *target;
	long error = -EBADF;

	if (op != EPOLL_CTL_DEL && get_user(event, user_event))
		return -EFAULT;
	file = fd_get(epfd);
	target = fd_get(fd);
	if (file && target)
		error = control(file, op, target, fd, &event);
	if (target)
		file_put(target);
	if (file)
		file_put(file);
	return error;
}

/* Moves at most max events to the user. Returns their number, or -EFAULT. */
static long move_events(struct epoll *epoll, struct epoll_event __user *user_events, int max)
{
	struct epoll_event few[NR_INLINE], *events = few;
	int nr;

	max = min(max, epoll_max_events(epoll));
	if (!max)
		return 0;
	if (max > NR_INLINE)
		events = kmalloc(max * sizeof(*events));
	if (!events) {
		events = few; /* the others stay for the next call */
		max = NR_INLINE;
	}
	nr = -EFAULT;
	/* An event that is taken off the list cannot be put back. */
	if (user_make_writable(user_events, max * sizeof(*events)))
		goto out_free;
	nr = epoll_take(epoll, events, max);
	if (copy_to_user(user_events, events, nr * sizeof(*events)))
		nr = -EFAULT;
out_free:
	if (events != few)
		kfree(events);
	return nr;
}

static long wait_for_events(struct epoll *epoll, struct epoll_event __user *events, int max,
			    u64 deadline_ns)
{
	for (;;) {
		long ret = move_events(epoll, events, max);

		if (ret || !deadline_ns)
			return ret;
		ret = epoll_sleep(epoll, deadline_ns);
		if (ret)
			return ret == -ETIMEDOUT ? 0 : ret;
	}
}

static long epoll_wait_fd(int epfd, struct epoll_event __user *events, int max, u64 deadline_ns)
{
	struct fd_use use;
	long ret = -EINVAL;

	if (max <= 0 || max > MAX_EVENTS)
		return -EINVAL;
	if (!access_ok(events, max * sizeof(*events)))
		return -EFAULT;
	use = fd_use(epfd);
	if (!use.file)
		return -EBADF;
	if (file_is_epoll(use.file))
		ret = wait_for_events(use.file->private, events, max, deadline_ns);
	fd_use_end(use);
	return ret;
}

SYSCALL_DEFINE4(epoll_wait, int, epfd, struct epoll_event __user *, events, int, max, int,
		timeout_ms)
{
	return epoll_wait_fd(epfd, events, max, poll_deadline_ms(timeout_ms));
}

/*
 * Waits with a signal mask. Unlike ppoll(), it is not restarted. After a signal, the mask stays
 * until its handler has run.
 */
static long epoll_wait_masked(int epfd, struct epoll_event __user *events, int max, u64 deadline_ns,
			      const u64 __user *mask, size_t mask_bytes)
{
	long ret = poll_begin_mask(mask, mask_bytes);

	if (ret)
		return ret;
	ret = epoll_wait_fd(epfd, events, max, deadline_ns);
	if (mask && ret != -EINTR)
		signal_restore_mask();
	return ret;
}

SYSCALL_DEFINE6(epoll_pwait, int, epfd, struct epoll_event __user *, events, int, max, int,
		timeout_ms, const u64 __user *, mask, size_t, mask_bytes)
{
	return epoll_wait_masked(epfd, events, max, poll_deadline_ms(timeout_ms), mask, mask_bytes);
}

SYSCALL_DEFINE6(epoll_pwait2, int, epfd, struct epoll_event __user *, events, int, max,
		const struct timespec64 __user *, timeout, const u64 __user *, mask, size_t,
		mask_bytes)
{
	u64 deadline_ns;
	int error = poll_deadline(timeout, &deadline_ns);

	if (error)
		return error;
	return epoll_wait_masked(epfd, events, max, deadline_ns, mask, mask_bytes);
}

static long make_epoll(u32 flags)
{
	struct file *file;

	if (flags & ~O_CLOEXEC)
		return -EINVAL;
	file = epoll_make_file();
	return file ? fd_install_or_put(file, flags & O_CLOEXEC) : -ENOMEM;
}

SYSCALL_DEFINE1(epoll_create, int, size)
{
	return size > 0 ? make_epoll(0) : -EINVAL;
}

SYSCALL_DEFINE1(epoll_create1, u32, flags)
{
	return make_epoll(flags);
}
