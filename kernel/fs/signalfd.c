// SPDX-License-Identifier: BSD-2-Clause
/*
 * signalfd(2): reads signals. A read takes signals of the reading process and thread, which need
 * not be those that made the file.
 */

#include "fd.h"

#include <lego/errno.h>
#include <lego/poll.h>
#include <lego/sched.h>
#include <lego/signal.h>
#include <lego/slab.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

struct signalfd {
	u64 signals; /* the set to read; read and changed without a lock */
};

/* Linux's struct signalfd_siginfo. Members that a signal does not use are 0. */
struct signalfd_siginfo {
	u32 signo;
	s32 error, code;
	u32 pid, uid;
	s32 fd;
	u32 tid, band, overrun, trapno;
	s32 status, value_int;
	u64 value_ptr, utime, stime, addr;
	u16 addr_lsb, pad2;
	s32 syscall;
	u64 call_addr;
	u32 arch;
	u8 pad[28];
};

_Static_assert(sizeof(struct signalfd_siginfo) == 128, "the size is part of the interface");

#define FAULTS                                                                                \
	(SIGNAL_BIT(SIGILL) | SIGNAL_BIT(SIGFPE) | SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | \
	 SIGNAL_BIT(SIGTRAP))

static void set_value(struct signalfd_siginfo *out, u64 value)
{
	out->value_ptr = value;
	out->value_int = (s32)value;
}

static struct signalfd_siginfo describe(const struct siginfo *info)
{
	struct signalfd_siginfo out = { .signo = (u32)info->si_signo,
					.error = info->si_errno,
					.code = info->si_code };
	bool from_kernel = info->si_code > SI_USER && info->si_code < SI_KERNEL;

	if (info->si_code == SI_TIMER) {
		out.tid = (u32)info->timer.id;
		out.overrun = (u32)info->timer.overrun;
		set_value(&out, info->timer.value);
	} else if (from_kernel && SIGNAL_BIT(info->si_signo) & FAULTS) {
		out.addr = info->fault.addr;
	} else {
		out.pid = (u32)info->sender.pid;
		out.uid = info->sender.uid;
		if (from_kernel && info->si_signo == SIGCHLD) {
			out.status = info->child.status;
			out.utime = (u64)info->child.utime;
			out.stime = (u64)info->child.stime;
		} else if (info->si_code < 0) {
			set_value(&out, info->sender.value);
		}
	}
	return out;
}

static ssize_t signalfd_read(struct file *file, void *buf, size_t n, u64 pos)
{
	struct signalfd *signalfd = file->private;
	struct signalfd_siginfo *out = buf;
	size_t max = n / sizeof(*out), nr = 0;
	struct siginfo info;

	if (!max)
		return -EINVAL;
	while (nr < max) {
		int error = -EAGAIN;

		if (signal_dequeue(READ_ONCE(signalfd->signals), &info)) {
			out[nr++] = describe(&info);
			continue;
		}
		if (nr)
			break;
		if (!(READ_ONCE(file->flags) & O_NONBLOCK))
			error = wait_event_interruptible(
				signal_arrivals(), signal_waits(READ_ONCE(signalfd->signals)));
		if (error)
			return error;
	}
	return (ssize_t)(nr * sizeof(*out));
}

static u32 signalfd_poll(struct file *file, struct poll_table *table)
{
	struct signalfd *signalfd = file->private;

	poll_wait(table, signal_arrivals());
	return signal_waits(READ_ONCE(signalfd->signals)) ? POLLIN : 0;
}

static void signalfd_release(struct file *file)
{
	kfree(file->private);
}

static u64 signalfd_held_bytes(const struct file *file)
{
	return sizeof(struct signalfd);
}

static const struct file_ops signalfd_ops = {
	.read = signalfd_read,
	.poll = signalfd_poll,
	.release = signalfd_release,
	.held_bytes = signalfd_held_bytes,
	.has_records = true,
};

static long make_signalfd(u64 signals, u32 flags)
{
	struct signalfd *signalfd = kzalloc(sizeof(*signalfd));
	struct file *file;

	if (!signalfd)
		return -ENOMEM;
	signalfd->signals = signals;
	file = file_alloc_anon("anon_inode:[signalfd]", 0600, &signalfd_ops, signalfd,
			       O_RDWR | (flags & O_NONBLOCK));
	if (!file) {
		kfree(signalfd);
		return -ENOMEM;
	}
	return fd_install_or_put(file, flags & O_CLOEXEC);
}

static long change_signalfd(int fd, u64 signals)
{
	struct file *file = fd_get_with(fd, &signalfd_ops);
	struct signalfd *signalfd;

	if (IS_ERR(file))
		return PTR_ERR(file);
	signalfd = file->private;
	WRITE_ONCE(signalfd->signals, signals);
	/*
	 * Wakes the readers in this process, which look for the new signals at once. Readers in
	 * other processes look when a signal arrives.
	 */
	wake_up_all(signal_arrivals());
	file_put(file);
	return fd;
}

static long signalfd(int fd, const u64 __user *umask, size_t size, u32 flags)
{
	u64 signals;

	if (size != sizeof(signals))
		return -EINVAL;
	if (get_user(signals, umask))
		return -EFAULT;
	if (flags & ~(O_CLOEXEC | O_NONBLOCK))
		return -EINVAL;
	signals &= ~(SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP));
	return fd == -1 ? make_signalfd(signals, flags) : change_signalfd(fd, signals);
}

SYSCALL_DEFINE3(signalfd, int, fd, const u64 __user *, umask, size_t, size)
{
	return signalfd(fd, umask, size, 0);
}

SYSCALL_DEFINE4(signalfd4, int, fd, const u64 __user *, umask, size_t, size, u32, flags)
{
	return signalfd(fd, umask, size, flags);
}
