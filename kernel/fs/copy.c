// SPDX-License-Identifier: BSD-2-Clause
/*
 * Moves bytes from file to file inside the kernel, by the operations of read(2) and write(2), with
 * a buffer of the kernel. sendfile() and copy_file_range() move a page at a time, from a source
 * with a position, so that bytes which could not be written are not lost. splice() reads as much as
 * its pipe has room for. It takes bytes out of a pipe once they have reached the other file. What
 * goes to a socket goes in one piece, up to what a pipe may have, as it may become a message.
 */

#include "fd.h"
#include "iov.h"

#include <lego/errno.h>
#include <lego/page.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

static ssize_t read_in(struct file *in, void *buf, size_t n, u64 pos, bool nonblock)
{
	struct iov_iter iter = { .kernel = buf, .left = n, .nonblock = nonblock };

	return in->ops ? bounce_read(in, &iter, pos) : inode_read(in->inode, buf, n, pos, false);
}

static ssize_t write_out(struct file *out, const void *buf, size_t n, u64 pos)
{
	struct iov_iter iter = { .kernel = (char *)buf, .left = n };
	struct inode *inode = out->inode;
	ssize_t done;

	if (out->ops)
		return bounce_write(out, &iter, pos);
	mutex_lock(&inode->write_lock);
	done = inode_limit_write(inode, pos, n);
	if (done > 0)
		done = inode_write(inode, buf, done, pos, false);
	mutex_unlock(&inode->write_lock);
	return done;
}

/* The position given by the caller, or else that of the file. */
struct position {
	struct file *file;
	s64 __user *user;
	s64 pos;
};

/* Returns whether the position advances. As on Linux, that of a device does not. */
static bool advances(const struct file *file)
{
	return !file_is_stream(file) && !file->inode->device;
}

static int load_position(struct position *position)
{
	if (position->user)
		return get_user(position->pos, position->user);
	position->pos = advances(position->file) ? position->file->pos : 0;
	return 0;
}

static int check_range(const struct position *position, size_t n)
{
	s64 end;

	if ((s64)n < 0 || position->pos < 0 || __builtin_add_overflow(position->pos, n, &end))
		return -EINVAL;
	return 0;
}

/* Gets a position, at which n bytes are to be moved. Returns 0, -EFAULT or -EINVAL. */
static int get_position(struct position *position, size_t n)
{
	return load_position(position) ?: check_range(position, n);
}

static int set_position(const struct position *position, ssize_t done)
{
	if (!advances(position->file))
		return 0;
	if (position->user)
		return put_user(position->pos + done, position->user);
	mutex_lock(&position->file->pos_lock);
	position->file->pos = position->pos + done;
	mutex_unlock(&position->file->pos_lock);
	return 0;
}

/* Returns whether the file is a pipe with O_NONBLOCK, which stands for both files of a call. */
static bool is_nonblock_pipe(const struct file *file)
{
	return file_is_pipe(file) && READ_ONCE(file->flags) & O_NONBLOCK;
}

/* Moves up to n bytes, and counts what it did. Returns their number or a negative errno. */
typedef ssize_t (*move_fn)(struct position *in, struct position *out, size_t n, bool nonblock);

static ssize_t move_between(int in_fd, s64 __user *in_pos, int out_fd, s64 __user *out_pos,
			    size_t n, bool nonblock, move_fn move)
{
	struct position in = { .file = fd_get(in_fd), .user = in_pos };
	struct position out = { .file = fd_get(out_fd), .user = out_pos };
	ssize_t done = -EBADF;
	int error = 0;

	if (in.file && out.file) {
		nonblock |= is_nonblock_pipe(in.file) || is_nonblock_pipe(out.file);
		done = move(&in, &out, n, nonblock);
	}
	if (done > 0)
		error = set_position(&in, done) ?: set_position(&out, done);
	if (in.file)
		file_put(in.file);
	if (out.file)
		file_put(out.file);
	return error ? error : done;
}

static bool may_move(const struct position *in, const struct position *out)
{
	return file_may_read(in->file) && file_may_write(out->file);
}

static bool is_socket(const struct file *file)
{
	return S_ISSOCK(file->inode->mode);
}

/* Allocates a buffer for *n bytes, or for a page if memory is scarce or fragmented. */
static void *get_buffer(size_t *n)
{
	void *buf = kmalloc(*n);

	if (!buf && *n > PAGE_SIZE) {
		*n = PAGE_SIZE;
		buf = kmalloc(*n);
	}
	if (buf)
		current->call_bytes += *n;
	return buf;
}

static void put_buffer(void *buf, size_t n)
{
	current->call_bytes -= n;
	kfree(buf);
}

static ssize_t copy_files(const struct position *in, const struct position *out, size_t n)
{
	size_t bytes = min(n, is_socket(out->file) ? (size_t)PIPE_BYTES : (size_t)PAGE_SIZE);
	void *buf = get_buffer(&bytes);
	ssize_t done = 0;
	size_t total = 0;

	if (!buf)
		return -ENOMEM;
	while (total < n && !(total && task_interrupted(current))) {
		size_t chunk = min(n - total, bytes);
		ssize_t got = read_in(in->file, buf, chunk, in->pos + total, false);

		done = got > 0 ? write_out(out->file, buf, got, out->pos + total) : got;
		if (done <= 0)
			break;
		total += done;
		if (done < got)
			break;
		cond_resched();
	}
	put_buffer(buf, bytes);
	return total ? (ssize_t)total : done;
}

/* Counts a copy as a read and a write, for /proc/<pid>/io. */
static void count_copy(ssize_t done)
{
	file_count_io(false, done);
	file_count_io(true, done);
}

/* Returns whether a file can be the source of a splice() to a pipe, and of sendfile(). */
static bool is_source(const struct file *file)
{
	if (!file->ops)
		return file_is_regular(file);
	return !file_is_pipe(file) && !file->ops->has_records && !file->ops->no_splice;
}

/* Returns whether it can be the target of a splice() from a pipe, and of sendfile(). */
static bool is_target(const struct file *file)
{
	return is_source(file) && !(file->flags & O_APPEND) && !file_is_full_device(file);
}

/* Where the bytes for a pipe come from: a file, or user memory if file is NULL. */
struct pipe_source {
	struct file *file;
	u64 pos;
	struct iov_iter *iter;
};

static ssize_t read_source(const struct pipe_source *source, void *buf, size_t n, bool nonblock)
{
	if (!source->file)
		return iov_copy_from(buf, source->iter, n) ?: (ssize_t)-EFAULT;
	if (!is_source(source->file))
		return -EINVAL;
	return read_in(source->file, buf, n, source->pos, nonblock);
}

/* Fills a pipe with what one read returns. */
static ssize_t fill_pipe(struct file *out, const struct pipe_source *source, size_t n,
			 bool nonblock)
{
	ssize_t room = pipe_reserve(out, n, nonblock), done, put;
	size_t bytes = room;
	void *buf;

	if (room < 0)
		return room;
	buf = get_buffer(&bytes);
	done = buf ? read_source(source, buf, bytes, nonblock) : -ENOMEM;
	put = pipe_put(out, buf, max(done, (ssize_t)0), room);
	if (buf)
		put_buffer(buf, bytes);
	return done > 0 ? put : done;
}

static ssize_t splice_to_pipe(struct position *in, struct position *out, size_t n, bool nonblock)
{
	struct pipe_source source = { .file = in->file, .pos = in->pos };

	return fill_pipe(out->file, &source, n, nonblock);
}

static ssize_t send_file(struct position *in, struct position *out, size_t n, bool nonblock)
{
	n = min(n, MAX_RW_BYTES);
	if (file_is_pipe(out->file))
		return splice_to_pipe(in, out, n, nonblock);
	if (file_is_stream(in->file) || !is_source(in->file) || !is_target(out->file))
		return -EINVAL;
	return get_position(out, n) ?: copy_files(in, out, n);
}

static ssize_t move_by_sendfile(struct position *in, struct position *out, size_t n, bool nonblock)
{
	ssize_t done;

	if (!may_move(in, out))
		return -EBADF;
	if (in->user && file_is_stream(in->file))
		return -ESPIPE;
	done = get_position(in, n);
	if (done)
		return done;
	done = send_file(in, out, n, nonblock);
	count_copy(done); /* as on Linux, even if it copies nothing */
	return done;
}

SYSCALL_DEFINE4(sendfile, int, out_fd, int, in_fd, s64 __user *, user_pos, size_t, n)
{
	return move_between(in_fd, user_pos, out_fd, NULL, n, false, move_by_sendfile);
}

static ssize_t copy_range(struct position *in, struct position *out, size_t n, bool nonblock)
{
	u64 size = file_size_bytes(in->file), a, b;
	ssize_t done = load_position(in) ?: load_position(out);

	if (S_ISDIR(in->file->inode->mode) || S_ISDIR(out->file->inode->mode))
		return -EISDIR;
	if (!file_has_pages(in->file) || !file_has_pages(out->file))
		return -EINVAL;
	if (!may_move(in, out) || out->file->flags & O_APPEND)
		return -EBADF;
	if (in->file->inode->fs != out->file->inode->fs)
		return -EXDEV;
	if (done)
		return done;
	a = in->pos;
	b = out->pos;
	if (a + n < a || b + n < b)
		return -EOVERFLOW;
	n = min(n, in->pos < (s64)size ? size - a : 0);
	if (in->file->inode == out->file->inode && a < b + n && b < a + n)
		return -EINVAL;
	n = min(n, MAX_RW_BYTES);
	done = check_range(in, n) ?: check_range(out, n) ?: copy_files(in, out, n);
	if (done > 0)
		count_copy(done);
	return done;
}

SYSCALL_DEFINE6(copy_file_range, int, in_fd, s64 __user *, in_pos, int, out_fd, s64 __user *,
		out_pos, size_t, n, unsigned int, flags)
{
	return flags ? -EINVAL : move_between(in_fd, in_pos, out_fd, out_pos, n, false, copy_range);
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

static ssize_t splice_from_pipe(struct position *in, struct position *out, size_t n, bool nonblock)
{
	struct position next = *out;

	return pipe_drain(in->file, n, nonblock, is_socket(out->file), put_into_file, &next);
}

static ssize_t move_by_splice(struct position *in, struct position *out, size_t n, bool nonblock)
{
	bool from_pipe = file_is_pipe(in->file), to_pipe = file_is_pipe(out->file);

	if (!may_move(in, out))
		return -EBADF;
	if ((from_pipe && in->user) || (to_pipe && out->user))
		return -ESPIPE;
	if (from_pipe && to_pipe)
		return pipe_move(in->file, out->file, n, false, nonblock);
	if ((in->user && file_is_stream(in->file)) || (out->user && file_is_stream(out->file)))
		return -EINVAL;
	if (to_pipe)
		return get_position(in, n) ?: splice_to_pipe(in, out, n, nonblock);
	if (!from_pipe || !is_target(out->file))
		return -EINVAL;
	return get_position(out, n) ?: splice_from_pipe(in, out, n, nonblock);
}

SYSCALL_DEFINE6(splice, int, in_fd, s64 __user *, in_pos, int, out_fd, s64 __user *, out_pos,
		size_t, n, unsigned int, flags)
{
	if (!n)
		return 0;
	if (flags & ~SPLICE_F_ALL)
		return -EINVAL;
	return move_between(in_fd, in_pos, out_fd, out_pos, n, flags & SPLICE_F_NONBLOCK,
			    move_by_splice);
}

static ssize_t move_by_tee(struct position *in, struct position *out, size_t n, bool nonblock)
{
	if (!may_move(in, out))
		return -EBADF;
	if (!file_is_pipe(in->file) || !file_is_pipe(out->file))
		return -EINVAL;
	return pipe_move(in->file, out->file, n, true, nonblock);
}

SYSCALL_DEFINE4(tee, int, in_fd, int, out_fd, size_t, n, unsigned int, flags)
{
	if (flags & ~SPLICE_F_ALL)
		return -EINVAL;
	if (!n)
		return 0;
	return move_between(in_fd, NULL, out_fd, NULL, n, flags & SPLICE_F_NONBLOCK, move_by_tee);
}

static ssize_t put_into_user(void *iter, const void *bytes, size_t n)
{
	return iov_copy_to(iter, bytes, n) < n ? -EFAULT : (ssize_t)n;
}

static ssize_t move_user(struct file *file, struct iov_iter *iter, bool nonblock)
{
	if (!file_is_pipe(file))
		return -EBADF;
	if (file_may_write(file))
		return fill_pipe(file, &(struct pipe_source){ .iter = iter }, iter->left, nonblock);
	return pipe_drain(file, iter->left, nonblock, false, put_into_user, iter);
}

/* Copies, where Linux may let the pipe have the user's pages. */
SYSCALL_DEFINE4(vmsplice, int, fd, const struct iovec __user *, user_iov, unsigned long, nr,
		unsigned int, flags)
{
	struct file *file;
	struct iovec *iov;
	struct iov_iter iter;
	ssize_t done = 0;

	if (flags & ~SPLICE_F_ALL)
		return -EINVAL;
	file = fd_get(fd);
	if (!file)
		return -EBADF;
	iov = iovec_from_user(user_iov, nr);
	if (IS_ERR(iov)) {
		done = PTR_ERR(iov);
		goto out_put;
	}
	iov_iter_init(&iter, iov, nr);
	if (iter.left)
		done = move_user(file, &iter, flags & SPLICE_F_NONBLOCK);
	kfree(iov);
out_put:
	file_put(file);
	return done;
}
