// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <lego/errno.h>
#include <lego/page.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

/*
 * The calls that move data. Regular files are copied between their pages and user memory
 * directly, devices through a kernel page at a time. An error after some bytes is not reported:
 * the bytes are.
 */

/* Linux's limit for one call: whole pages below 2 GiB. */
#define MAX_RW_BYTES 0x7ffff000UL
#define IOV_MAX	     1024

/* Where a call's position comes from. */
#define POS_FILE (-1)

static ssize_t read_device(struct file *file, char __user *buf, size_t n, u64 pos)
{
	void *bounce = kmalloc(PAGE_SIZE);
	size_t total = 0;
	ssize_t done = 0;

	if (!bounce)
		return -ENOMEM;
	while (total < n) {
		size_t chunk = min(n - total, (size_t)PAGE_SIZE);

		done = file->ops->read(file, bounce, chunk, pos + total);
		if (done <= 0)
			break;
		if (copy_to_user(buf + total, bounce, done)) {
			done = -EFAULT;
			break;
		}
		total += done;
		if ((size_t)done < chunk || task_interrupted(current))
			break;
		cond_resched();
	}
	kfree(bounce);
	return total ? (ssize_t)total : done;
}

static ssize_t write_device(struct file *file, const char __user *buf, size_t n, u64 pos)
{
	void *bounce = kmalloc(PAGE_SIZE);
	size_t total = 0;
	ssize_t done = 0;

	if (!bounce)
		return -ENOMEM;
	while (total < n) {
		/*
		 * Up to the end of the user's page: a fault then loses nothing that could be
		 * written.
		 */
		size_t chunk = PAGE_SIZE - ((u64)(buf + total) & (PAGE_SIZE - 1));

		chunk = min(chunk, n - total);
		if (copy_from_user(bounce, buf + total, chunk)) {
			done = -EFAULT;
			break;
		}
		done = file->ops->write(file, bounce, chunk, pos + total);
		if (done <= 0)
			break;
		total += done;
		if ((size_t)done < chunk || task_interrupted(current))
			break;
		cond_resched();
	}
	kfree(bounce);
	return total ? (ssize_t)total : done;
}

static ssize_t read_at(struct file *file, char __user *buf, size_t n, u64 pos)
{
	if (S_ISDIR(file->inode->mode))
		return -EISDIR;
	if (file->ops)
		return file->ops->read ? read_device(file, buf, n, pos) : -EINVAL;
	return inode_read(file->inode, buf, n, pos, true);
}

/* *pos becomes the end of the file for O_APPEND. */
static ssize_t write_at(struct file *file, const char __user *buf, size_t n, u64 *pos)
{
	struct inode *inode = file->inode;
	ssize_t done;

	if (file->ops)
		return file->ops->write ? write_device(file, buf, n, *pos) : -EINVAL;
	mutex_lock(&inode->write_lock);
	if (file->flags & O_APPEND)
		*pos = inode->size_bytes;
	done = inode_write(inode, buf, n, *pos, true);
	mutex_unlock(&inode->write_lock);
	return done;
}

struct iovec {
	void __user *base;
	size_t len;
};

/*
 * All the calls in one: move the bytes of nr buffers at a position of the caller's, or at the
 * file's own (POS_FILE), which is then moved.
 */
static ssize_t transfer(int fd, const struct iovec *iov, unsigned int nr, s64 user_pos, bool write)
{
	struct file *file = fd_get(fd);
	ssize_t total = 0, done = 0;
	bool locked;
	u64 pos;

	if (!file)
		return -EBADF;
	total = -EBADF;
	if (write ? !file_may_write(file) : !file_may_read(file))
		goto out_put;
	total = -ESPIPE;
	if (user_pos != POS_FILE && file_is_stream(file))
		goto out_put;

	locked = user_pos == POS_FILE && !file_is_stream(file);
	if (locked)
		mutex_lock(&file->pos_lock);
	pos = user_pos == POS_FILE ? file->pos : (u64)user_pos;
	total = 0;
	for (unsigned int i = 0; i < nr; i++) {
		size_t len = min(iov[i].len, MAX_RW_BYTES - (size_t)total);

		if (!len && nr > 1)
			continue;
		done = -EINVAL;
		if ((s64)(pos + len) < 0)
			break;
		done = write ? write_at(file, iov[i].base, len, &pos) :
			       read_at(file, iov[i].base, len, pos);
		if (done < 0)
			break;
		total += done;
		pos += done;
		if ((size_t)done < len)
			break;
	}
	if (locked) {
		if (total > 0)
			file->pos = pos;
		mutex_unlock(&file->pos_lock);
	}
	if (!total)
		total = done;
out_put:
	file_put(file);
	return total;
}

static ssize_t transfer_one(int fd, void __user *buf, size_t n, s64 pos, bool write)
{
	struct iovec iov = { .base = buf, .len = n };

	if (!access_ok(buf, n))
		return -EFAULT;
	return transfer(fd, &iov, 1, pos, write);
}

SYSCALL_DEFINE3(read, int, fd, char __user *, buf, size_t, n)
{
	return transfer_one(fd, buf, n, POS_FILE, false);
}

SYSCALL_DEFINE3(write, int, fd, char __user *, buf, size_t, n)
{
	return transfer_one(fd, buf, n, POS_FILE, true);
}

SYSCALL_DEFINE4(pread64, int, fd, char __user *, buf, size_t, n, s64, pos)
{
	return pos < 0 ? -EINVAL : transfer_one(fd, buf, n, pos, false);
}

SYSCALL_DEFINE4(pwrite64, int, fd, char __user *, buf, size_t, n, s64, pos)
{
	return pos < 0 ? -EINVAL : transfer_one(fd, buf, n, pos, true);
}

/* Copy and check the vector; kfree() it. ERR_PTR on failure. */
static struct iovec *iovec_from_user(const struct iovec __user *user_iov, unsigned long nr)
{
	struct iovec *iov;
	int error;

	if (nr > IOV_MAX)
		return ERR_PTR(-EINVAL);
	iov = kmalloc(nr * sizeof(*iov));
	if (!iov)
		return ERR_PTR(-ENOMEM);
	error = copy_from_user(iov, user_iov, nr * sizeof(*iov));
	for (unsigned long i = 0; !error && i < nr; i++)
		error = (ssize_t)iov[i].len < 0 ? -EINVAL : 0;
	for (unsigned long i = 0; !error && i < nr; i++)
		error = access_ok(iov[i].base, iov[i].len) ? 0 : -EFAULT;
	if (error) {
		kfree(iov);
		return ERR_PTR(error);
	}
	return iov;
}

static ssize_t transfer_vector(int fd, const struct iovec __user *user_iov, unsigned long nr,
			       bool write)
{
	struct iovec *iov = iovec_from_user(user_iov, nr);
	ssize_t ret;

	if (IS_ERR(iov))
		return PTR_ERR(iov);
	ret = transfer(fd, iov, nr, POS_FILE, write);
	kfree(iov);
	return ret;
}

SYSCALL_DEFINE3(readv, int, fd, const struct iovec __user *, iov, unsigned long, nr)
{
	return transfer_vector(fd, iov, nr, false);
}

SYSCALL_DEFINE3(writev, int, fd, const struct iovec __user *, iov, unsigned long, nr)
{
	return transfer_vector(fd, iov, nr, true);
}

enum {
	SEEK_SET,
	SEEK_CUR,
	SEEK_END
};

SYSCALL_DEFINE3(lseek, int, fd, s64, offset, int, whence)
{
	struct file *file = fd_get(fd);
	s64 base = 0, pos;
	long ret = -ESPIPE;

	if (!file)
		return -EBADF;
	if (file_is_stream(file))
		goto out_put;
	mutex_lock(&file->pos_lock);
	ret = -EINVAL;
	if (whence < SEEK_SET || whence > SEEK_END)
		goto out_unlock;
	if (whence != SEEK_SET)
		base = whence == SEEK_CUR ? file->pos : file_size_bytes(file);
	if (!__builtin_add_overflow(base, offset, &pos) && pos >= 0) {
		file->pos = pos;
		ret = pos;
	}
out_unlock:
	mutex_unlock(&file->pos_lock);
out_put:
	file_put(file);
	return ret;
}

SYSCALL_DEFINE3(ioctl, int, fd, unsigned int, command, unsigned long, arg)
{
	struct file *file = fd_get(fd);
	long ret = -ENOTTY;

	if (!file)
		return -EBADF;
	if (file->ops && file->ops->ioctl)
		ret = file->ops->ioctl(file, command, arg);
	file_put(file);
	return ret;
}
