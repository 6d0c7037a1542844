// SPDX-License-Identifier: BSD-2-Clause
/*
 * Copies from file to file inside the kernel, a page at a time. The source must be a regular file,
 * so that bytes which could not be written are not lost. splice() and tee() also take bytes out of
 * pipes, once they have reached the other file.
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

static ssize_t copy_files(struct file *in, u64 in_pos, struct file *out, u64 out_pos, size_t n)
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

/* Counts a copy as a read and a write, for /proc/<pid>/io. */
static void count_copy(ssize_t done)
{
	file_count_io(false, done);
	file_count_io(true, done);
}

/* count_all: as on Linux, sendfile() counts even if it copies nothing. */
static ssize_t copy_positions(struct position *in, struct position *out, size_t n, bool count_all)
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
	done = copy_files(in->file, in->pos, out->file, out->pos, n);
	if (done > 0 || count_all)
		count_copy(done);
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
	if (is_plain(in.file) && !(out.file->flags & O_APPEND)) {
		ret = copy_positions(&in, &out, n, true);
	} else {
		ret = -EINVAL;
		count_copy(ret); /* Linux notices this later */
	}
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
	return copy_positions(in, out, n, false);
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

#define SPLICE_F_NONBLOCK 2
#define SPLICE_F_ALL	  15

static ssize_t put_into_file(void *data, const void *bytes, size_t n)
{
	struct position *out = data;
	ssize_t done = write_out(out->file, bytes, n, out->pos);

	if (done > 0)
		out->pos += done;
	return done;
}

static ssize_t splice_to_file(struct file *in, struct position *out, size_t n, bool nonblock)
{
	s64 start;
	ssize_t done;
	int error;

	if (out->file->flags & O_APPEND)
		return -EINVAL;
	/* Other devices may wait, which must not happen with the pipe's lock held. */
	if (!is_plain(out->file) && !file_discards_writes(out->file))
		return -EINVAL;
	error = get_position(out);
	if (error)
		return error;
	if (!is_plain(out->file))
		return pipe_drain(in, n, nonblock, put_into_file, out);
	start = out->pos;
	if ((s64)((u64)start + n) < 0)
		return -EINVAL;
	done = pipe_drain(in, n, nonblock, put_into_file, out);
	out->pos = start;
	error = set_position(out, done);
	return error ? error : done;
}

/* Reads at most a page, so that a pipe with room for it takes all of it. */
static ssize_t splice_to_pipe(struct position *in, struct file *out, size_t n, bool nonblock)
{
	void *buf;
	ssize_t done;
	int error = get_position(in);

	n = min(n, (size_t)PAGE_SIZE);
	if (!error)
		error = pipe_wait_for_room(out, n, nonblock);
	if (error)
		return error;
	buf = kmalloc(PAGE_SIZE);
	if (!buf)
		return -ENOMEM;
	done = in->file->ops ? in->file->ops->read(in->file, buf, n, in->pos) :
			       inode_read(in->file->inode, buf, n, in->pos, false);
	if (done > 0)
		done = pipe_put(out, buf, done);
	kfree(buf);
	error = set_position(in, done);
	return error ? error : done;
}

static ssize_t splice_files(struct position *in, struct position *out, size_t n, bool nonblock)
{
	if (!file_may_read(in->file) || !file_may_write(out->file))
		return -EBADF;
	if ((in->user && file_is_stream(in->file)) || (out->user && file_is_stream(out->file)))
		return -ESPIPE;
	n = min(n, MAX_RW_BYTES);
	if (!n)
		return 0;
	if (file_is_pipe(in->file) && file_is_pipe(out->file))
		return pipe_move(in->file, out->file, n, false, nonblock);
	if (file_is_pipe(in->file))
		return splice_to_file(in->file, out, n, nonblock);
	if (!file_is_pipe(out->file) || S_ISDIR(in->file->inode->mode) ||
	    (in->file->ops && !in->file->ops->read))
		return -EINVAL;
	return splice_to_pipe(in, out->file, n, nonblock);
}

SYSCALL_DEFINE6(splice, int, in_fd, s64 __user *, in_pos, int, out_fd, s64 __user *, out_pos,
		size_t, n, unsigned int, flags)
{
	struct position in = { .file = fd_get(in_fd), .user = in_pos };
	struct position out = { .file = fd_get(out_fd), .user = out_pos };
	ssize_t ret = -EBADF;

	if (in.file && out.file)
		ret = flags & ~SPLICE_F_ALL ? -EINVAL :
					      splice_files(&in, &out, n, flags & SPLICE_F_NONBLOCK);
	if (in.file)
		file_put(in.file);
	if (out.file)
		file_put(out.file);
	return ret;
}

SYSCALL_DEFINE4(tee, int, in_fd, int, out_fd, size_t, n, unsigned int, flags)
{
	struct file *in, *out;
	ssize_t ret = -EBADF;

	if (flags & ~SPLICE_F_ALL)
		return -EINVAL;
	if (!n)
		return 0;
	in = fd_get(in_fd);
	out = fd_get(out_fd);
	if (in && out && file_may_read(in) && file_may_write(out)) {
		if (!file_is_pipe(in) || !file_is_pipe(out))
			ret = -EINVAL;
		else
			ret = pipe_move(in, out, min(n, MAX_RW_BYTES), true,
					flags & SPLICE_F_NONBLOCK);
	}
	if (in)
		file_put(in);
	if (out)
		file_put(out);
	return ret;
}
