// SPDX-License-Identifier: BSD-2-Clause
/*
 * The calls that read and write. Data of regular files is copied directly between pages and user
 * memory, other data through a kernel buffer (bounce.c). After an error, the number of bytes done
 * is returned, if there are any.
 */

#include "fd.h"
#include "iov.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/slab.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

/* A position that stands for that of the file. */
#define POS_FILE (-1)

static ssize_t read_regular(struct file *file, const struct iovec *iov, unsigned int nr, u64 pos)
{
	size_t total = 0;
	ssize_t done = 0;

	for (unsigned int i = 0; i < nr; i++) {
		size_t len = min(iov[i].len, MAX_RW_BYTES - total);

		done = inode_read(file->inode, iov[i].base, len, pos + total, true);
		if (done < 0)
			break;
		total += done;
		if ((size_t)done < len)
			break;
	}
	return total ? (ssize_t)total : done;
}

/* Writes n bytes in all. With O_APPEND, sets *pos to the end of the file first. */
static ssize_t write_regular(struct file *file, const struct iovec *iov, unsigned int nr, size_t n,
			     u64 *pos)
{
	struct inode *inode = file->inode;
	ssize_t done = 0, room;
	size_t total = 0;

	mutex_lock(&inode->write_lock);
	if (file->flags & O_APPEND)
		*pos = inode->size_bytes;
	room = inode_limit_write(inode, *pos, n);
	if (room < 0)
		done = room;
	for (unsigned int i = 0; room >= 0 && i < nr; i++) {
		size_t len = min(iov[i].len, room - total);

		done = inode_write(inode, iov[i].base, len, *pos + total, true);
		if (done < 0)
			break;
		total += done;
		if ((size_t)done < len)
			break;
	}
	mutex_unlock(&inode->write_lock);
	return total ? (ssize_t)total : done;
}

static ssize_t transfer_at(struct file *file, const struct iovec *iov, unsigned int nr, u64 *pos,
			   bool write)
{
	struct iov_iter iter;

	iov_iter_init(&iter, iov, nr);
	if (S_ISDIR(file->inode->mode))
		return -EISDIR;
	if ((s64)(*pos + iter.left) < 0)
		return -EINVAL;
	if (file->ops)
		return write ? bounce_write(file, &iter, *pos) : bounce_read(file, &iter, *pos);
	return write ? write_regular(file, iov, nr, iter.left, pos) :
		       read_regular(file, iov, nr, *pos);
}

/*
 * Does the work of all calls: transfers nr buffers at the caller's position, or at the file's own
 * (POS_FILE), which it advances.
 */
static ssize_t transfer_file(struct file *file, const struct iovec *iov, unsigned int nr,
			     s64 user_pos, bool write)
{
	bool stream = file_is_stream(file);
	ssize_t done;
	u64 pos;

	if (write ? !file_may_write(file) : !file_may_read(file))
		return -EBADF;
	if (user_pos != POS_FILE && stream)
		return -ESPIPE;
	pos = user_pos == POS_FILE ? 0 : user_pos;
	if (stream || user_pos != POS_FILE) {
		done = transfer_at(file, iov, nr, &pos, write);
	} else {
		mutex_lock(&file->pos_lock);
		pos = file->pos;
		done = transfer_at(file, iov, nr, &pos, write);
		if (done > 0)
			file->pos = pos + done;
		mutex_unlock(&file->pos_lock);
	}
	file_count_io(write, done);
	return done;
}

static ssize_t rw_transfer(int fd, const struct iovec *iov, unsigned int nr, s64 pos, bool write)
{
	struct fd_use use = fd_use(fd);
	ssize_t ret;

	if (!use.file)
		return -EBADF;
	ret = transfer_file(use.file, iov, nr, pos, write);
	fd_use_end(use);
	return ret;
}

static ssize_t transfer_one(int fd, void __user *buf, size_t n, s64 pos, bool write)
{
	struct iovec iov = { .base = buf, .len = n };

	if (!access_ok(buf, n))
		return -EFAULT;
	return rw_transfer(fd, &iov, 1, pos, write);
}

SYSCALL_DEFINE3(read, int, fd, char __user *, buf, size_t, count)
{
	return transfer_one(fd, buf, count, POS_FILE, false);
}

SYSCALL_DEFINE3(write, int, fd, char __user *, buf, size_t, count)
{
	return transfer_one(fd, buf, count, POS_FILE, true);
}

SYSCALL_DEFINE4(pread64, int, fd, char __user *, buf, size_t, count, s64, pos)
{
	return pos < 0 ? -EINVAL : transfer_one(fd, buf, count, pos, false);
}

SYSCALL_DEFINE4(pwrite64, int, fd, char __user *, buf, size_t, count, s64, pos)
{
	return pos < 0 ? -EINVAL : transfer_one(fd, buf, count, pos, true);
}

static ssize_t transfer_vector(int fd, const struct iovec __user *user_iov, unsigned long nr,
			       s64 pos, bool write)
{
	struct iovec *iov = iovec_from_user(user_iov, nr);
	ssize_t ret;

	if (IS_ERR(iov))
		return PTR_ERR(iov);
	ret = rw_transfer(fd, iov, nr, pos, write);
	kfree(iov);
	return ret;
}

SYSCALL_DEFINE3(readv, int, fd, const struct iovec __user *, iov, unsigned long, nr)
{
	return transfer_vector(fd, iov, nr, POS_FILE, false);
}

SYSCALL_DEFINE3(writev, int, fd, const struct iovec __user *, iov, unsigned long, nr)
{
	return transfer_vector(fd, iov, nr, POS_FILE, true);
}

/* Linux passes the position in two halves; on x86-64, the first one has all of it. */
SYSCALL_DEFINE4(preadv, int, fd, const struct iovec __user *, iov, unsigned long, nr, s64, pos)
{
	return pos < 0 ? -EINVAL : transfer_vector(fd, iov, nr, pos, false);
}

SYSCALL_DEFINE4(pwritev, int, fd, const struct iovec __user *, iov, unsigned long, nr, s64, pos)
{
	return pos < 0 ? -EINVAL : transfer_vector(fd, iov, nr, pos, true);
}

/* Supports no flags. A position of -1 means the file's own. */
static ssize_t transfer_vector2(int fd, const struct iovec __user *iov, unsigned long nr, s64 pos,
				u32 flags, bool write)
{
	if (flags)
		return -EOPNOTSUPP;
	if (pos < 0 && pos != POS_FILE)
		return -EINVAL;
	return transfer_vector(fd, iov, nr, pos, write);
}

SYSCALL_DEFINE6(preadv2, int, fd, const struct iovec __user *, iov, unsigned long, nr, s64, pos,
		u64, pos_high, u32, flags)
{
	return transfer_vector2(fd, iov, nr, pos, flags, false);
}

SYSCALL_DEFINE6(pwritev2, int, fd, const struct iovec __user *, iov, unsigned long, nr, s64, pos,
		u64, pos_high, u32, flags)
{
	return transfer_vector2(fd, iov, nr, pos, flags, true);
}

/* Returns the new position, or a negative errno. */
static s64 seek(struct file *file, s64 offset, int whence)
{
	s64 base = 0, pos;

	ASSERT_HELD(&file->pos_lock);
	if (file->ops && file->ops->stays_at_start)
		return (unsigned int)whence > SEEK_HOLE ? -EINVAL : 0;
	switch (whence) {
	case SEEK_DATA:
	case SEEK_HOLE:
		if (!file_has_pages(file))
			return -EINVAL;
		return inode_seek(file->inode, offset, whence == SEEK_HOLE);
	case SEEK_SET:
		break;
	case SEEK_CUR:
		base = file->pos;
		break;
	case SEEK_END:
		base = file_size_bytes(file);
		break;
	default:
		return -EINVAL;
	}
	return __builtin_add_overflow(base, offset, &pos) || pos < 0 ? -EINVAL : pos;
}

SYSCALL_DEFINE3(lseek, int, fd, s64, offset, int, whence)
{
	struct file *file = fd_get(fd);
	long ret = -ESPIPE;

	if (!file)
		return -EBADF;
	if (file_is_stream(file))
		goto out_put;
	mutex_lock(&file->pos_lock);
	ret = seek(file, offset, whence);
	if (ret >= 0)
		file->pos = ret;
	mutex_unlock(&file->pos_lock);
out_put:
	file_put(file);
	return ret;
}

#define FIONREAD 0x541b
#define FIONBIO	 0x5421
#define FIONCLEX 0x5450
#define FIOCLEX	 0x5451

static long set_nonblock(struct file *file, const int __user *arg)
{
	int on;

	if (get_user(on, arg))
		return -EFAULT;
	file_set_flags(file, O_NONBLOCK, on ? O_NONBLOCK : 0);
	return 0;
}

static long bytes_to_read(struct file *file, int __user *arg)
{
	u64 size = file_size_bytes(file), pos = READ_ONCE(file->pos);

	return put_user((int)(size - pos), arg);
}

SYSCALL_DEFINE3(ioctl, int, fd, unsigned int, command, unsigned long, arg)
{
	struct file *file = fd_get(fd);
	long ret = -ENOTTY;

	if (!file)
		return -EBADF;
	if (command == FIONBIO)
		ret = set_nonblock(file, (int __user *)arg);
	else if (command == FIOCLEX || command == FIONCLEX)
		ret = fd_set_close_on_exec(fd, command == FIOCLEX);
	else if (command == FIONREAD && file_is_regular(file) && !file->ops)
		ret = bytes_to_read(file, (int __user *)arg);
	else if (file->ops && file->ops->ioctl)
		ret = file->ops->ioctl(file, command, arg);
	file_put(file);
	return ret;
}
