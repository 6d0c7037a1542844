// SPDX-License-Identifier: BSD-2-Clause
/*
 * Splices pipes: moves their bytes to and from other files, or from one pipe to another, without a
 * copy in user memory. Waits are those of the ends' reads and writes, except that one who waits for
 * bytes to splice may find that a reader has taken them.
 *
 * The other file may wait, so the pipe's bytes are claimed, or its room is reserved: its lock is
 * not held while they are written or read. What the other file does not accept stays in the pipe.
 */

#include "pipe.h"

#include "fd.h"

#include <lego/errno.h>
#include <lego/mm.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/string.h>

/* Waits until there are bytes. Returns 0, also if there will be none, or a negative errno. */
static int wait_for_bytes(struct pipe *pipe, bool nonblock)
{
	if (pipe_bytes(pipe) || pipe_is_at_end(pipe))
		return 0;
	if (nonblock)
		return -EAGAIN;
	return wait_event_interruptible(&pipe->read_wait, pipe_bytes(pipe) || pipe_is_at_end(pipe));
}

static bool has_room(const struct pipe *pipe, size_t n)
{
	return pipe_room(pipe) >= n || !READ_ONCE(pipe->nr_readers);
}

static int broken_pipe(void)
{
	signal_send_self(SIGPIPE);
	return -EPIPE;
}

/* Waits until there is room for n bytes. Returns 0 or a negative errno. */
static int wait_for_room(struct pipe *pipe, size_t n, bool nonblock)
{
	int error = 0;

	if (!has_room(pipe, n)) {
		if (nonblock)
			return -EAGAIN;
		error = wait_event_interruptible(&pipe->write_wait, has_room(pipe, n));
	}
	if (!error && !READ_ONCE(pipe->nr_readers))
		error = broken_pipe();
	return error;
}

ssize_t pipe_reserve(struct file *file, size_t n, bool nonblock)
{
	struct pipe *pipe = pipe_of(file);
	size_t least = min(n, (size_t)PAGE_SIZE), room = 0;
	int error;

	do {
		error = wait_for_room(pipe, least, nonblock);
		if (error)
			return error;
		mutex_lock(&pipe->lock);
		room = min(n, pipe_room(pipe));
		if (room >= least)
			WRITE_ONCE(pipe->reserved, pipe->reserved + room);
		mutex_unlock(&pipe->lock);
	} while (room < least);
	return room;
}

ssize_t pipe_put(struct file *file, const void *buf, size_t n, size_t reserved)
{
	struct pipe *pipe = pipe_of(file);
	ssize_t ret;

	do {
		ret = pipe_write_reserved(pipe, buf, n, reserved);
	} while (ret == -ENOMEM && oom_wait());
	if (ret == -ENOMEM)
		pipe_write_reserved(pipe, NULL, 0, reserved);
	if (ret > 0)
		pipe_wake_readers(pipe);
	if (ret < (ssize_t)reserved)
		wake_up(&pipe->write_wait);
	return ret == -EPIPE ? broken_pipe() : ret;
}

/* Claims the bytes, if there are any that nobody else has claimed. */
static bool claim_bytes(struct pipe *pipe)
{
	bool done;

	mutex_lock(&pipe->lock);
	done = pipe_bytes(pipe);
	if (done)
		WRITE_ONCE(pipe->claimed, true);
	mutex_unlock(&pipe->lock);
	return done;
}

/* Takes n bytes out, and lets others read again. */
static void release_bytes(struct pipe *pipe, size_t n)
{
	mutex_lock(&pipe->lock);
	WRITE_ONCE(pipe->claimed, false);
	pipe_take_out(pipe, NULL, n);
	mutex_unlock(&pipe->lock);
	if (n)
		wake_up(&pipe->write_wait);
	if (pipe_bytes(pipe) || pipe_is_at_end(pipe))
		wake_up_all(&pipe->read_wait);
}

/* Shows the oldest n bytes, which are claimed, page by page. Returns as drain_now(). */
static ssize_t show_bytes(struct pipe *pipe, size_t n, pipe_put_fn put, void *data)
{
	size_t total = 0, piece = 0;
	ssize_t done = 0;

	while (total < n && done == (ssize_t)piece) {
		u64 at = pipe->head + total;

		piece = pipe_piece_bytes(at, n - total);
		done = put(data, (char *)page_address(*pipe_page_at(pipe, at)) + at % PAGE_SIZE,
			   piece);
		if (done > 0)
			total += done;
	}
	return total ? (ssize_t)total : done;
}

static ssize_t copy_bytes(void *data, const void *bytes, size_t n)
{
	char **to = data;

	memcpy(*to, bytes, n);
	*to += n;
	return n;
}

/* Shows them in one piece. */
static ssize_t show_whole(struct pipe *pipe, size_t n, pipe_put_fn put, void *data)
{
	char *buf = kmalloc(n), *end = buf;
	ssize_t done;

	if (!buf)
		return -ENOMEM;
	current->call_bytes += n;
	show_bytes(pipe, n, copy_bytes, &end);
	done = put(data, buf, n);
	current->call_bytes -= n;
	kfree(buf);
	return done;
}

/*
 * Shows the oldest n bytes to put(), which may wait, and takes as many as it has accepted, unless
 * keeps is set. Returns their number, or the error of put(); 0: there are no bytes to claim.
 */
static ssize_t drain_now(struct pipe *pipe, size_t n, bool keeps, bool whole, pipe_put_fn put,
			 void *data)
{
	ssize_t done;

	if (!claim_bytes(pipe))
		return 0;
	n = min(n, pipe_used(pipe));
	done = (whole ? show_whole : show_bytes)(pipe, n, put, data);
	release_bytes(pipe, keeps ? 0 : max(done, (ssize_t)0));
	return done;
}

ssize_t pipe_drain(struct file *file, size_t n, bool nonblock, bool whole, pipe_put_fn put,
		   void *data)
{
	struct pipe *pipe = pipe_of(file);
	ssize_t done;

	do {
		done = wait_for_bytes(pipe, nonblock) ?:
							drain_now(pipe, n, false, whole, put, data);
		/* Another reader may have taken the bytes. */
	} while (!done && !pipe_is_at_end(pipe));
	return done;
}

static ssize_t put_into_pipe(void *data, const void *bytes, size_t n)
{
	return pipe_try_write(data, bytes, min(n, pipe_room(data)), NULL) ?: -EAGAIN;
}

ssize_t pipe_move(struct file *in, struct file *out, size_t n, bool keeps, bool nonblock)
{
	struct pipe *from = pipe_of(in), *to = pipe_of(out);
	ssize_t done;

	if (from == to)
		return -EINVAL;
	do {
		done = wait_for_bytes(from, nonblock) ?: wait_for_room(to, 1, nonblock);
		if (done < 0)
			return done;
		done = drain_now(from, n, keeps, false, put_into_pipe, to);
		/* Others may have taken the bytes or the room, or closed the reading end. */
	} while (done == -EAGAIN || done == -EPIPE || (!done && !pipe_is_at_end(from)));
	if (done > 0)
		pipe_wake_readers(to);
	return done;
}
