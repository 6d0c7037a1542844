// SPDX-License-Identifier: BSD-2-Clause
/*
 * timerfd_create(2): a timer that is read. When it expires, it stops until it is read. The read
 * computes how often it would have expired, and restarts it. So a short interval causes no
 * interrupts for which no reader waits.
 *
 * The clock cannot be set, so TFD_TIMER_CANCEL_ON_SET has no effect.
 */

#include "fd.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/poll.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/syscall.h>
#include <lego/time.h>
#include <lego/timer.h>
#include <lego/uaccess.h>

#define TFD_TIMER_CANCEL_ON_SET 2

struct timerfd {
	struct mutex lock; /* guards the rest, except expired, which the handler sets */
	int clock;
	struct timer_setting setting;
	struct timer timer;
	bool expired; /* and not read since: the timer is stopped */
	struct wait_queue read_wait;
	struct wake_timer read_wake;
};

static const struct file_ops timerfd_ops;

static void expire_timerfd(struct timer *timer)
{
	struct timerfd *tfd = container_of(timer, struct timerfd, timer);

	WRITE_ONCE(tfd->expired, true);
	wake_up_in_steps(&tfd->read_wake, false);
}

/* Stops the timer. Its handler may still be about to wake readers. */
static void stop(struct timerfd *tfd)
{
	ASSERT_HELD(&tfd->lock);
	timer_cancel(&tfd->timer);
	WRITE_ONCE(tfd->expired, false);
}

static void start(struct timerfd *tfd)
{
	ASSERT_HELD(&tfd->lock);
	DEBUG_ASSERT(!tfd->expired);
	if (tfd->setting.expires_ns)
		timer_start(&tfd->timer, tfd->setting.expires_ns);
}

/* Returns the number of expiries since the last call, and restarts the timer. */
static u64 take_expirations(struct timerfd *tfd)
{
	u64 nr = 0;

	mutex_lock(&tfd->lock);
	if (tfd->expired) {
		stop(tfd);
		nr = timer_setting_advance(&tfd->setting, clock_monotonic_ns());
		start(tfd);
	}
	mutex_unlock(&tfd->lock);
	return nr;
}

static ssize_t timerfd_read(struct file *file, void *buf, size_t n, u64 pos)
{
	struct timerfd *tfd = file->private;
	int error = 0;
	u64 nr;

	if (n < sizeof(nr))
		return -EINVAL;
	while (!error && !(nr = take_expirations(tfd))) {
		error = -EAGAIN;
		if (!(READ_ONCE(file->flags) & O_NONBLOCK))
			error = wait_event_exclusive(&tfd->read_wait, READ_ONCE(tfd->expired));
	}
	wake_up_next(&tfd->read_wait, READ_ONCE(tfd->expired));
	if (error)
		return error;
	memcpy(buf, &nr, sizeof(nr));
	return sizeof(nr);
}

static u32 timerfd_poll(struct file *file, struct poll_table *table)
{
	struct timerfd *tfd = file->private;

	poll_wait(table, &tfd->read_wait);
	return READ_ONCE(tfd->expired) ? POLLIN : 0;
}

static void timerfd_release(struct file *file)
{
	struct timerfd *tfd = file->private;

	timer_cancel(&tfd->timer);
	wake_timer_end(&tfd->read_wake);
	kfree(tfd);
}

static u64 timerfd_held_bytes(const struct file *file)
{
	return sizeof(struct timerfd);
}

static const struct file_ops timerfd_ops = {
	.read = timerfd_read,
	.poll = timerfd_poll,
	.release = timerfd_release,
	.held_bytes = timerfd_held_bytes,
	.has_records = true,
};

SYSCALL_DEFINE2(timerfd_create, int, clock, u32, flags)
{
	struct timerfd *tfd;
	struct file *file;

	if (flags & ~(O_CLOEXEC | O_NONBLOCK) || !clock_has_timers(clock) || clock == CLOCK_TAI)
		return -EINVAL;
	tfd = kzalloc(sizeof(*tfd));
	if (!tfd)
		return -ENOMEM;
	mutex_init(&tfd->lock);
	tfd->clock = clock;
	timer_setup(&tfd->timer, expire_timerfd);
	wait_queue_init_at(&tfd->read_wait, "timerfd", LOCK_PLACE("timerfd->read_wait"));
	wake_timer_init(&tfd->read_wake, &tfd->read_wait);
	file = file_alloc_anon("anon_inode:[timerfd]", 0600, &timerfd_ops, tfd,
			       O_RDWR | (flags & O_NONBLOCK));
	if (!file) {
		kfree(tfd);
		return -ENOMEM;
	}
	return fd_install_or_put(file, flags & O_CLOEXEC);
}

/* Sets the timer. Stores the previous setting in *old. */
static void set_timer(struct timerfd *tfd, const struct timer_setting *setting,
		      struct itimerspec64 *old)
{
	mutex_lock(&tfd->lock);
	stop(tfd);
	*old = timer_setting_left(&tfd->setting, clock_monotonic_ns());
	tfd->setting = *setting;
	start(tfd);
	mutex_unlock(&tfd->lock);
}

SYSCALL_DEFINE4(timerfd_settime, int, fd, u32, flags, const struct itimerspec64 __user *, unew,
		struct itimerspec64 __user *, uold)
{
	struct timer_setting setting;
	struct itimerspec64 new, old;
	struct timerfd *tfd;
	struct file *file;
	long error;

	if (get_user(new, unew))
		return -EFAULT;
	if (flags & ~(TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET))
		return -EINVAL;
	file = fd_get_with(fd, &timerfd_ops);
	if (IS_ERR(file))
		return PTR_ERR(file);
	tfd = file->private;
	error = timer_setting_from(&setting, &new, tfd->clock, flags & TIMER_ABSTIME,
				   clock_monotonic_ns());
	if (!error)
		set_timer(tfd, &setting, &old);
	file_put(file);
	return error || !uold ? error : put_user(old, uold);
}

SYSCALL_DEFINE2(timerfd_gettime, int, fd, struct itimerspec64 __user *, user)
{
	struct file *file = fd_get_with(fd, &timerfd_ops);
	struct itimerspec64 left;
	struct timerfd *tfd;

	if (IS_ERR(file))
		return PTR_ERR(file);
	tfd = file->private;
	mutex_lock(&tfd->lock);
	left = timer_setting_left(&tfd->setting, clock_monotonic_ns());
	mutex_unlock(&tfd->lock);
	file_put(file);
	return put_user(left, user);
}
