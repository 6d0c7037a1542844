// SPDX-License-Identifier: BSD-2-Clause
/*
 * Copies from file to file inside the kernel, a page at a time. The source must be a regular file,
 * so that bytes which could not be written are not lost.
 */

#include "fd.h"
#include "iov.h"

#include <lego/errno.h>
#include <lego/page.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

/* Writes at pos or, with O_APPEND, at the end. Returns the bytes written, or a negative errno. */
static ssize_t write_out(struct file *out, const void *buf, size_t n, u64 pos)
{
	struct inode *inode = out->inode;
	ssize_t done;

	if (out->ops)
		return out->ops->write ? out->ops->write(out, buf, n, pos) : -EINVAL;
	mutex_lock(&inode->write_lock);
	if (out->flags & O_APPEND)
		pos = inode->size_bytes;
	done = inode_limit_write(inode, pos, n);
	if (done > 0)
		done = inode_write(inode, buf, done, pos, false);
	mutex_unlock(&inode->write_lock);
	return done;
}

static ssize_t copy(struct file *in, u64 in_pos, struct file *out, u64 out_pos, size_t n)
{
	void *buf = kmalloc(PAGE_SIZE);
	ssize_t done = 0;
	size_t total = 0;

	if (!buf)
		return -ENOMEM;
	while (total < n && !(total && task_interrupted(current))) {
		size_t chunk = min(n - total, (size_t)PAGE_SIZE);
		ssize_t got = inode_read(in->inode, buf, chunk, in_pos + total, false);

		if (got <= 0)
			break;
		done = write_out(out, buf, got, out_pos + total);
		if (done <= 0)
			break;
		total += done;
		if (done < got)
			break;
		cond_resched();
	}
	kfree(buf);
	return total ? (ssize_t)total : done;
}

/* The position given by the caller, or else that of the file. */
struct position {
	struct file *file;
	s64 __user *user;
	s64 pos;
};

static int get_position(struct position *position)
{
	if (!position->user)
		position->pos = file_is_stream(position->file) ? 0 : (s64)position->file->pos;
	else if (get_user(position->pos, position->user))
		return -EFAULT;
	return position->pos < 0 ? -EINVAL : 0;
}

static int set_position(const struct position *position, ssize_t done)
{
	if (done <= 0)
		return 0;
	if (position->user)
		return put_user(position->pos + done, position->user);
	if (file_is_stream(position->file))
		return 0;
	mutex_lock(&position->file->pos_lock);
	position->file->pos = position->pos + done;
	mutex_unlock(&position->file->pos_lock);
	return 0;
}

static ssize_t copy_positions(struct position *in, struct position *out, size_t n)
{
	ssize_t done;
	int error = get_position(in);

	if (!error)
		error = get_position(out);
	if (error)
		return error;
	n = min(n, MAX_RW_BYTES);
	if ((s64)((u64)in->pos + n) < 0 || (s64)((u64)out->pos + n) < 0)
		return -EINVAL;
	done = copy(in->file, in->pos, out->file, out->pos, n);
	error = set_position(in, done);
	if (!error)
		error = set_position(out, done);
	return error ? error : done;
}

static bool is_plain(const struct file *file)
{
	return file_is_regular(file) && !file->ops;
}

SYSCALL_DEFINE4(sendfile, int, out_fd, int, in_fd, s64 __user *, user_pos, size_t, n)
{
	struct position in = { .file = fd_get(in_fd), .user = user_pos };
	struct position out = { .file = fd_get(out_fd) };
	ssize_t ret = -EBADF;

	if (!in.file || !out.file || !file_may_read(in.file) || !file_may_write(out.file))
		goto out_put;
	ret = -EINVAL;
	if (is_plain(in.file) && !(out.file->flags & O_APPEND))
		ret = copy_positions(&in, &out, n);
out_put:
	if (in.file)
		file_put(in.file);
	if (out.file)
		file_put(out.file);
	return ret;
}

static ssize_t copy_range(struct position *in, struct position *out, size_t n)
{
	s64 a = in->user ? 0 : (s64)in->file->pos, b = out->user ? 0 : (s64)out->file->pos;

	if (S_ISDIR(in->file->inode->mode) || S_ISDIR(out->file->inode->mode))
		return -EISDIR;
	if (!is_plain(in->file) || !is_plain(out->file))
		return -EINVAL;
	if (!file_may_read(in->file) || !file_may_write(out->file) || out->file->flags & O_APPEND)
		return -EBADF;
	if (in->file->inode->fs != out->file->inode->fs)
		return -EXDEV;
	if ((in->user && get_user(a, in->user)) || (out->user && get_user(b, out->user)))
		return -EFAULT;
	if (in->file->inode == out->file->inode && (u64)a < (u64)b + n && (u64)b < (u64)a + n)
		return -EINVAL;
	return copy_positions(in, out, n);
}

SYSCALL_DEFINE6(copy_file_range, int, in_fd, s64 __user *, in_pos, int, out_fd, s64 __user *,
		out_pos, size_t, n, unsigned int, flags)
{
	struct position in = { .file = fd_get(in_fd), .user = in_pos };
	struct position out = { .file = fd_get(out_fd), .user = out_pos };
	ssize_t ret = -EBADF;

	if (in.file && out.file)
		ret = flags ? -EINVAL : copy_range(&in, &out, n);
	if (in.file)
		file_put(in.file);
	if (out.file)
		file_put(out.file);
	return ret;
}
