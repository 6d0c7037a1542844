// SPDX-License-Identifier: BSD-2-Clause
/*
 * Splices pipes: moves their bytes to and from other files, or from one pipe to another, without a
 * copy in user memory. Waits are those of the ends' reads and writes, except that one who waits for
 * bytes to splice may find that a reader has taken them.
 */

#include "pipe.h"

#include "fd.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/mm.h>
#include <lego/sched.h>

/* Waits until there are bytes. Returns 0, also if there will be none; or as the next function. */
static int wait_for_bytes(struct file *file, bool nonblock)
{
	struct pipe *pipe = pipe_of(file);

	if (pipe_bytes(pipe) || !READ_ONCE(pipe->nr_writers))
		return 0;
	if (nonblock || READ_ONCE(file->flags) & O_NONBLOCK)
		return -EAGAIN;
	return wait_event_interruptible(&pipe->read_wait,
					pipe_bytes(pipe) || !READ_ONCE(pipe->nr_writers));
}

int pipe_wait_for_room(struct file *file, size_t n, bool nonblock)
{
	struct pipe *pipe = pipe_of(file);

	if (pipe_room(pipe) >= n || !READ_ONCE(pipe->nr_readers))
		return 0;
	if (nonblock || READ_ONCE(file->flags) & O_NONBLOCK)
		return -EAGAIN;
	return wait_event_interruptible(&pipe->write_wait,
					pipe_room(pipe) >= n || !READ_ONCE(pipe->nr_readers));
}

ssize_t pipe_put(struct file *file, const void *buf, size_t n)
{
	struct pipe *pipe = pipe_of(file);
	ssize_t ret;

	while ((ret = pipe_try_write(pipe, buf, n, NULL)) == -EAGAIN ||
	       (ret == -ENOMEM && oom_wait())) {
		int error = wait_event_killable(
			&pipe->write_wait, pipe_room(pipe) >= n || !READ_ONCE(pipe->nr_readers));
		if (error)
			return error;
	}
	if (ret > 0)
		pipe_wake_readers(pipe);
	if (ret == -EPIPE)
		signal_send_self(SIGPIPE);
	return ret;
}

/*
 * Shows the oldest n bytes to put(), and takes as many as it has accepted. Returns their number, or
 * the error of put().
 */
static ssize_t take_bytes(struct pipe *pipe, size_t n, bool keeps, pipe_put_fn put, void *data)
{
	size_t total = 0, piece = 0;
	ssize_t done = 0;

	ASSERT_HELD(&pipe->lock);
	for (n = min(n, pipe_bytes(pipe)); total < n && done == (ssize_t)piece;) {
		u64 at = pipe->head + total;

		piece = pipe_piece_bytes(at, n - total);
		done = put(data, (char *)page_address(*pipe_page_at(pipe, at)) + at % PAGE_SIZE,
			   piece);
		if (done > 0)
			total += done;
	}
	if (!keeps)
		pipe_take_out(pipe, NULL, total);
	return total ? (ssize_t)total : done;
}

ssize_t pipe_drain(struct file *file, size_t n, bool nonblock, pipe_put_fn put, void *data)
{
	struct pipe *pipe = pipe_of(file);
	ssize_t done;
	int error;

	do {
		error = wait_for_bytes(file, nonblock);
		if (error)
			return error;
		mutex_lock(&pipe->lock);
		done = take_bytes(pipe, n, false, put, data);
		mutex_unlock(&pipe->lock);
		/* Another reader may have taken the bytes. */
	} while (!done && n && READ_ONCE(pipe->nr_writers));
	if (done > 0)
		wake_up(&pipe->write_wait);
	return done;
}

static ssize_t put_into_pipe(void *data, const void *bytes, size_t n)
{
	return pipe_put_in(data, bytes, n, NULL) ? (ssize_t)n : -ENOMEM;
}

static ssize_t try_move(struct pipe *in, struct pipe *out, size_t n, bool keeps)
{
	struct pipe *first = in < out ? in : out, *second = in < out ? out : in;
	ssize_t done = -EPIPE;

	mutex_lock(&first->lock);
	mutex_lock_ordered(&second->lock);
	if (out->nr_readers)
		done = take_bytes(in, min(n, PIPE_BYTES - pipe_bytes(out)), keeps, put_into_pipe,
				  out);
	mutex_unlock(&second->lock);
	mutex_unlock(&first->lock);
	return done;
}

ssize_t pipe_move(struct file *in, struct file *out, size_t n, bool keeps, bool nonblock)
{
	ssize_t done;
	int error;

	if (pipe_of(in) == pipe_of(out))
		return -EINVAL;
	do {
		error = wait_for_bytes(in, nonblock) ?: pipe_wait_for_room(out, 1, nonblock);
		if (error)
			return error;
		done = try_move(pipe_of(in), pipe_of(out), n, keeps);
	} while (!done && n && (pipe_bytes(pipe_of(in)) || READ_ONCE(pipe_of(in)->nr_writers)));
	if (done > 0 && !keeps)
		wake_up(&pipe_of(in)->write_wait);
	if (done > 0)
		pipe_wake_readers(pipe_of(out));
	if (done == -EPIPE)
		signal_send_self(SIGPIPE);
	return done;
}
