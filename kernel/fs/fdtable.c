// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <lego/errno.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/syscall.h>

/*
 * Descriptors. A file is looked up with a reference under the table's spinlock and used without
 * it; closing a descriptor that another thread is using ends nothing for that thread.
 */

struct files {
	atomic_t refs;
	spinlock_t lock; /* guards the rest */
	struct inode *cwd;
	struct file *fds[FILE_MAX_FDS];
	u64 close_on_exec[FILE_MAX_FDS / 64];
};

static void set_close_on_exec(struct files *files, int fd, bool on)
{
	u64 bit = BIT(fd % 64);

	files->close_on_exec[fd / 64] &= ~bit;
	if (on)
		files->close_on_exec[fd / 64] |= bit;
}

static bool get_close_on_exec(const struct files *files, int fd)
{
	return files->close_on_exec[fd / 64] & BIT(fd % 64);
}

static bool fd_is_valid(int fd)
{
	return fd >= 0 && fd < FILE_MAX_FDS;
}

struct files *files_alloc(void)
{
	struct files *files = kzalloc(sizeof(*files));
	struct file *console;

	if (!files)
		return NULL;
	console = file_open("/dev/console", O_RDWR, 0);
	if (IS_ERR(console)) {
		kfree(files);
		return NULL;
	}
	atomic_set(&files->refs, 1);
	spin_lock_init(&files->lock);
	files->cwd = inode_get(root_inode);
	for (int fd = 0; fd <= 2; fd++) {
		file_get(console);
		files->fds[fd] = console;
	}
	file_put(console);
	return files;
}

struct files *files_get(struct files *files)
{
	atomic_inc(&files->refs);
	return files;
}

void files_put(struct files *files)
{
	if (!atomic_dec_and_test(&files->refs))
		return;
	for (int fd = 0; fd < FILE_MAX_FDS; fd++) {
		if (files->fds[fd])
			file_put(files->fds[fd]);
	}
	inode_put(files->cwd);
	kfree(files);
}

/* Put another file, or none, in a slot; the old one, whose reference passes to the caller. */
static struct file *replace(struct files *files, int fd, struct file *file, bool close_on_exec)
{
	struct file *old;

	spin_lock(&files->lock);
	old = files->fds[fd];
	files->fds[fd] = file;
	set_close_on_exec(files, fd, close_on_exec);
	spin_unlock(&files->lock);
	return old;
}

void files_close_on_exec(struct files *files)
{
	for (int fd = 0; fd < FILE_MAX_FDS; fd++) {
		struct file *file;

		if (!get_close_on_exec(files, fd))
			continue;
		file = replace(files, fd, NULL, false);
		if (file)
			file_put(file);
	}
}

struct file *fd_get(int fd)
{
	struct files *files = current->proc->files;
	struct file *file;

	if (!fd_is_valid(fd))
		return NULL;
	spin_lock(&files->lock);
	file = files->fds[fd];
	if (file)
		file_get(file);
	spin_unlock(&files->lock);
	return file;
}

int fd_install(struct file *file, int from, bool close_on_exec)
{
	struct files *files = current->proc->files;
	int fd;

	spin_lock(&files->lock);
	for (fd = from; fd < FILE_MAX_FDS && files->fds[fd]; fd++)
		;
	if (fd < FILE_MAX_FDS) {
		files->fds[fd] = file;
		set_close_on_exec(files, fd, close_on_exec);
	}
	spin_unlock(&files->lock);
	return fd < FILE_MAX_FDS ? fd : -EMFILE;
}

struct inode *cwd_get(void)
{
	struct files *files = current->proc->files;
	struct inode *inode;

	spin_lock(&files->lock);
	inode = inode_get(files->cwd);
	spin_unlock(&files->lock);
	return inode;
}

void cwd_set(struct inode *inode)
{
	struct files *files = current->proc->files;
	struct inode *old;

	spin_lock(&files->lock);
	old = files->cwd;
	files->cwd = inode;
	spin_unlock(&files->lock);
	inode_put(old);
}

SYSCALL_DEFINE1(close, int, fd)
{
	struct file *file;

	if (!fd_is_valid(fd))
		return -EBADF;
	file = replace(current->proc->files, fd, NULL, false);
	if (!file)
		return -EBADF;
	file_put(file);
	return 0;
}

static long dup_at_least(int fd, int from, bool close_on_exec)
{
	struct file *file = fd_get(fd);
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
	struct file *file = fd_get(fd), *old;

	if (!file)
		return -EBADF;
	if (!fd_is_valid(new_fd)) {
		file_put(file);
		return -EBADF;
	}
	old = replace(current->proc->files, new_fd, file, close_on_exec);
	if (old)
		file_put(old);
	return new_fd;
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
	file = fd_get(fd);
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
#define FD_CLOEXEC	1
#define O_LARGEFILE	00100000 /* set on every file of a 64-bit process */
#define SETFL_MASK	(O_APPEND | O_NONBLOCK)

/* The descriptor's own flag. */
static long control_fd(struct files *files, int fd, int command, unsigned long arg)
{
	long ret = 0;

	spin_lock(&files->lock);
	if (!files->fds[fd])
		ret = -EBADF;
	else if (command == F_GETFD)
		ret = get_close_on_exec(files, fd) ? FD_CLOEXEC : 0;
	else
		set_close_on_exec(files, fd, arg & FD_CLOEXEC);
	spin_unlock(&files->lock);
	return ret;
}

SYSCALL_DEFINE3(fcntl, int, fd, int, command, unsigned long, arg)
{
	struct file *file = fd_get(fd);
	long ret = 0;

	if (!file)
		return -EBADF;
	switch (command) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		ret = -EINVAL;
		if (arg < FILE_MAX_FDS)
			ret = dup_at_least(fd, arg, command == F_DUPFD_CLOEXEC);
		break;
	case F_GETFD:
	case F_SETFD:
		ret = control_fd(current->proc->files, fd, command, arg);
		break;
	case F_GETFL:
		ret = READ_ONCE(file->flags) | O_LARGEFILE;
		break;
	case F_SETFL:
		WRITE_ONCE(file->flags, (file->flags & ~SETFL_MASK) | (arg & SETFL_MASK));
		break;
	default:
		ret = -EINVAL;
		break;
	}
	file_put(file);
	return ret;
}
