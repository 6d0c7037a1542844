// SPDX-License-Identifier: BSD-2-Clause
/*
 * dup and fcntl. Leases and signal owners are not supported (EINVAL). All pipes have the same size:
 * a request for a smaller one returns that size.
 */

#include "fd.h"
#include "lock.h"

#include <lego/errno.h>
#include <lego/sched.h>
#include <lego/syscall.h>

static long dup_at_least(int fd, int from, bool close_on_exec)
{
	struct file *file = fd_get_any(fd);
	int new_fd;

	if (!file)
		return -EBADF;
	new_fd = fd_install(file, from, close_on_exec);
	if (new_fd < 0)
		file_put(file);
	return new_fd;
}

static long dup_to(int fd, int new_fd, bool close_on_exec)
{
	struct file *file = fd_get_any(fd);
	int error = -EBADF;

	if (!file)
		return -EBADF;
	if (new_fd >= 0 && new_fd < fd_limit())
		error = fd_replace(new_fd, file, close_on_exec);
	if (error >= 0)
		return new_fd;
	file_put(file);
	return error;
}

SYSCALL_DEFINE1(dup, int, fd)
{
	return dup_at_least(fd, 0, false);
}

SYSCALL_DEFINE2(dup2, int, fd, int, new_fd)
{
	struct file *file;

	if (fd != new_fd)
		return dup_to(fd, new_fd, false);
	file = fd_get_any(fd);
	if (!file)
		return -EBADF;
	file_put(file);
	return fd;
}

SYSCALL_DEFINE3(dup3, int, fd, int, new_fd, int, flags)
{
	if (fd == new_fd || flags & ~O_CLOEXEC)
		return -EINVAL;
	return dup_to(fd, new_fd, flags & O_CLOEXEC);
}

#define F_DUPFD		0
#define F_GETFD		1
#define F_SETFD		2
#define F_GETFL		3
#define F_SETFL		4
#define F_DUPFD_CLOEXEC 1030
#define F_SETPIPE_SZ	1031
#define F_GETPIPE_SZ	1032
#define FD_CLOEXEC	1
#define SETFL_MASK	(O_APPEND | O_NONBLOCK)

SYSCALL_DEFINE3(fcntl, int, fd, int, command, unsigned long, arg)
{
	struct file *file = fd_get_any(fd);
	long ret = 0;

	if (!file)
		return -EBADF;
	switch (command) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		ret = -EINVAL;
		if (arg < (unsigned int)fd_limit())
			ret = dup_at_least(fd, arg, command == F_DUPFD_CLOEXEC);
		break;
	case F_GETFD:
		ret = fd_get_close_on_exec(fd) ? FD_CLOEXEC : 0;
		break;
	case F_SETFD:
		ret = fd_set_close_on_exec(fd, arg & FD_CLOEXEC);
		break;
	case F_GETFL:
		ret = READ_ONCE(file->flags);
		break;
	case F_SETFL:
		ret = -EBADF;
		if (file->flags & O_PATH)
			break;
		ret = 0;
		file_set_flags(file, SETFL_MASK, arg);
		break;
	case F_GETPIPE_SZ:
	case F_SETPIPE_SZ:
		ret = file_is_pipe(file) ? PIPE_BYTES : -EBADF;
		if (ret > 0 && command == F_SETPIPE_SZ && arg - 1 >= PIPE_BYTES)
			ret = -EINVAL;
		break;
	case F_ADD_SEALS:
		ret = seals_add(file, arg);
		break;
	case F_GET_SEALS:
		ret = seals_get(file);
		break;
	default:
		ret = file->flags & O_PATH ? -EBADF :
					     lock_fcntl(fd, file, command, (void __user *)arg);
		break;
	}
	file_put(file);
	return ret;
}
