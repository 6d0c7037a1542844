// SPDX-License-Identifier: BSD-2-Clause
/* eventfd(2): a counter of 64 bits. A write adds to it, a read takes all of it, or 1. */

#include "fd.h"

#include <lego/errno.h>
#include <lego/poll.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/syscall.h>

#define EFD_SEMAPHORE 1
#define EVENTFD_MAX   (~0ULL - 1)

struct eventfd {
	spinlock_t lock; /* guards count */
	u64 count;	 /* at most EVENTFD_MAX */
	bool semaphore;
	struct wait_queue read_wait;  /* it is no longer 0 */
	struct wait_queue write_wait; /* it has become smaller */
};

/* Takes a value from the counter. Returns 0 if the counter is 0. */
static u64 try_read(struct eventfd *event)
{
	u64 value;

	spin_lock(&event->lock);
	value = event->semaphore ? min(event->count, 1ULL) : event->count;
	WRITE_ONCE(event->count, event->count - value);
	spin_unlock(&event->lock);
	return value;
}

static bool try_write(struct eventfd *event, u64 value)
{
	bool fits;

	spin_lock(&event->lock);
	fits = value <= EVENTFD_MAX - event->count;
	if (fits)
		WRITE_ONCE(event->count, event->count + value);
	spin_unlock(&event->lock);
	return fits;
}

static ssize_t eventfd_read(struct file *file, void *buf, size_t n, u64 pos)
{
	struct eventfd *event = file->private;
	int error = 0;
	u64 value;

	if (n < sizeof(value))
		return -EINVAL;
	while (!error && !(value = try_read(event))) {
		error = -EAGAIN;
		if (!(READ_ONCE(file->flags) & O_NONBLOCK))
			error = wait_event_exclusive(&event->read_wait, READ_ONCE(event->count));
	}
	wake_up_next(&event->read_wait, READ_ONCE(event->count));
	if (error)
		return error;
	wake_up(&event->write_wait);
	memcpy(buf, &value, sizeof(value));
	return sizeof(value);
}

static ssize_t eventfd_write(struct file *file, const void *buf, size_t n, u64 pos)
{
	struct eventfd *event = file->private;
	u64 value;

	if (n < sizeof(value))
		return -EINVAL;
	memcpy(&value, buf, sizeof(value));
	if (value > EVENTFD_MAX)
		return -EINVAL;
	while (!try_write(event, value)) {
		int error = -EAGAIN;

		if (!(READ_ONCE(file->flags) & O_NONBLOCK))
			error = wait_event_interruptible(
				&event->write_wait, value <= EVENTFD_MAX - READ_ONCE(event->count));
		if (error)
			return error;
	}
	wake_up(&event->read_wait);
	return sizeof(value);
}

static u32 eventfd_poll(struct file *file, struct poll_table *table)
{
	struct eventfd *event = file->private;
	u64 count;

	poll_wait_ends(table, &event->read_wait, &event->write_wait);
	count = READ_ONCE(event->count);
	return (count ? POLLIN : 0) | (count < EVENTFD_MAX ? POLLOUT : 0);
}

static void eventfd_release(struct file *file)
{
	kfree(file->private);
}

static u64 eventfd_held_bytes(const struct file *file)
{
	return sizeof(struct eventfd);
}

static const struct file_ops eventfd_ops = {
	.read = eventfd_read,
	.write = eventfd_write,
	.poll = eventfd_poll,
	.release = eventfd_release,
	.held_bytes = eventfd_held_bytes,
	.has_records = true,
};

static long make_eventfd(u32 count, u32 flags)
{
	struct eventfd *event;
	struct file *file;

	if (flags & ~(O_CLOEXEC | O_NONBLOCK | EFD_SEMAPHORE))
		return -EINVAL;
	event = kzalloc(sizeof(*event));
	if (!event)
		return -ENOMEM;
	spin_lock_init(&event->lock);
	event->count = count;
	event->semaphore = flags & EFD_SEMAPHORE;
	wait_queue_init_at(&event->read_wait, "eventfd", LOCK_PLACE("eventfd->read_wait"));
	wait_queue_init_at(&event->write_wait, "eventfd", LOCK_PLACE("eventfd->write_wait"));
	file = file_alloc_anon("anon_inode:[eventfd]", 0600, &eventfd_ops, event,
			       O_RDWR | (flags & O_NONBLOCK));
	if (!file) {
		kfree(event);
		return -ENOMEM;
	}
	return fd_install_or_put(file, flags & O_CLOEXEC);
}

SYSCALL_DEFINE1(eventfd, u32, count)
{
	return make_eventfd(count, 0);
}

SYSCALL_DEFINE2(eventfd2, u32, count, u32, flags)
{
	return make_eventfd(count, flags);
}
