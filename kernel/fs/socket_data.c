// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sends and receives the bytes of streams, and passes messages on to socket_datagram.c. One call
 * never receives bytes of a stream that came with different files.
 */

#include "iov.h"
#include "socket.h"

#include <lego/errno.h>
#include <lego/sched.h>
#include <lego/signal.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/uaccess.h>

#define SMALL_BYTES 128 /* a buffer that does not need an allocation */

void ancillary_drop(struct ancillary *ancillary)
{
	rights_drop(ancillary->rights);
	if (ancillary->source)
		socket_put(ancillary->source);
}

static int send_any(struct socket *socket, struct chunk *chunk, const struct socket_name *name,
		    int flags)
{
	struct socket *peer = READ_ONCE(socket->peer);

	if (socket->type != SOCK_STREAM)
		return message_send(socket, chunk, name, flags);
	if (!peer)
		return READ_ONCE(socket->write_shut) ? -EPIPE : -ENOTCONN;
	return chunk_send(socket, peer, chunk, flags);
}

static int send_user(struct socket *socket, struct iov_iter *iter, size_t n,
		     const struct socket_name *name, struct rights **rights, int flags)
{
	struct chunk *chunk = chunk_alloc(socket, n);
	int error = 0;

	if (!chunk)
		return n <= CHUNK_BYTES ? -ENOMEM : -ENOBUFS;
	if (iov_copy_from(chunk->data, iter, n) < n) {
		error = -EFAULT;
	} else {
		chunk->rights = *rights;
		error = send_any(socket, chunk, name, flags);
	}
	if (!error) {
		*rights = NULL;
		return 0;
	}
	chunk->rights = NULL;
	chunk_put(chunk);
	return error;
}

ssize_t socket_send(struct socket *socket, struct iov_iter *iter, const struct socket_name *name,
		    struct rights **rights, int flags)
{
	bool stream = socket->type == SOCK_STREAM;
	ssize_t total = 0;
	int error;

	if (stream && !iter->left)
		return 0;
	if (!stream && iter->left > MAX_MESSAGE_BYTES)
		return -EMSGSIZE;
	do {
		size_t n = stream ? min(iter->left, (size_t)CHUNK_BYTES) : iter->left;

		error = send_user(socket, iter, n, name, rights, flags);
		if (error)
			break;
		total += n;
		cond_resched();
	} while (iter->left && !task_interrupted(current));
	if (error == -EPIPE && stream && !total && !(flags & MSG_NOSIGNAL))
		signal_send_self(SIGPIPE);
	return total ?: error;
}

static bool same_sender(const struct socket_user *a, const struct socket_user *b)
{
	return a->pid == b->pid && a->uid == b->uid && a->gid == b->gid;
}

/* Returns whether the call can receive the chunk after the bytes before it, if there are any. */
static bool fits(const struct socket *socket, const struct chunk *chunk,
		 const struct ancillary *before)
{
	if (!before)
		return true;
	return !chunk->rights && !before->rights &&
	       (!socket->wants_users || same_sender(&chunk->sender, &before->sender));
}

/*
 * Takes up to n bytes from the queue. If `any` is set, the system call has taken bytes before, and
 * *got is their ancillary data. References to a chunk's files pass to *got.
 */
static size_t take_bytes(struct socket *socket, char *buf, size_t n, struct ancillary *got,
			 bool any, bool peek)
{
	struct chunk *chunk, *next;
	size_t total = 0;

	mutex_lock(&socket->lock);
	list_for_each_entry_safe(chunk, next, &socket->chunks, node) {
		size_t piece = min(n - total, chunk->len - chunk->from);

		if (!piece || !fits(socket, chunk, any ? got : NULL))
			break;
		any = true;
		got->sender = chunk->sender;
		if (!got->source)
			got->source = socket_get(chunk->source);
		memcpy(buf + total, chunk->data + chunk->from, piece);
		total += piece;
		if (chunk->rights)
			got->rights = peek ? rights_get(chunk->rights) : chunk->rights;
		if (peek)
			continue;
		chunk->rights = NULL;
		chunk->from += piece;
		if (chunk->from < chunk->len)
			break;
		chunk_remove(socket, chunk);
		chunk_put(chunk);
	}
	mutex_unlock(&socket->lock);
	return total;
}

static ssize_t receive_next(struct socket *socket, char *buf, size_t n, struct ancillary *got,
			    bool any, int flags)
{
	for (;;) {
		/* Read before the bytes, because the last bytes come before the end. */
		bool at_end = READ_ONCE(socket->read_shut);
		size_t done = take_bytes(socket, buf, n, got, any, flags & MSG_PEEK);
		int error;

		if (done && !(flags & MSG_PEEK) && READ_ONCE(socket->peer))
			wake_up(&socket->peer->write_wait);
		if (done)
			return done;
		error = any ? 0 : socket_take_error(socket);
		if (error || at_end)
			return -error;
		if (!READ_ONCE(socket->peer))
			return -EINVAL;
		if (any && !(flags & MSG_WAITALL))
			return 0;
		if (any && READ_ONCE(socket->held_bytes))
			return 0; /* the next chunk needs a call of its own */
		if (flags & MSG_DONTWAIT)
			return -EAGAIN;
		error = wait_event_exclusive(&socket->read_wait,
					     READ_ONCE(socket->held_bytes) ||
						     READ_ONCE(socket->read_shut));
		if (error)
			return error;
	}
}

/*
 * Receives bytes, and waits for them. Returns their number; 0 at the end of the stream, or if this
 * system call can receive no more; or a negative errno.
 */
static ssize_t receive_some(struct socket *socket, char *buf, size_t n, struct ancillary *got,
			    bool any, int flags)
{
	ssize_t ret = receive_next(socket, buf, n, got, any, flags);

	wake_up_next(&socket->read_wait, READ_ONCE(socket->held_bytes));
	return ret;
}

ssize_t socket_receive(struct socket *socket, struct iov_iter *iter, struct ancillary *ancillary,
		       int flags)
{
	size_t buf_bytes = min(iter->left, (size_t)CHUNK_BYTES), total = 0;
	char small[SMALL_BYTES], *buf = small;
	ssize_t done = 0;

	if (socket->type != SOCK_STREAM)
		return message_receive(socket, iter, ancillary, flags);
	if (!iter->iov && iter->nonblock)
		flags |= MSG_DONTWAIT;
	if (buf_bytes > SMALL_BYTES)
		buf = kmalloc(buf_bytes);
	if (!buf)
		return -ENOMEM;
	while (iter->left) {
		size_t n = min(iter->left, buf_bytes);

		done = -EFAULT;
		if (iov_make_writable(iter, n))
			break;
		done = receive_some(socket, buf, n, ancillary, total, flags);
		if (done <= 0)
			break;
		if (iov_copy_to(iter, buf, done) < (size_t)done) {
			done = -EFAULT;
			break;
		}
		total += done;
		if (flags & MSG_PEEK || (iter->left && task_interrupted(current)))
			break;
		cond_resched();
	}
	if (buf != small)
		kfree(buf);
	return total ? (ssize_t)total : done;
}

/* file_ops */

static int flags_of(const struct file *file)
{
	return READ_ONCE(file->flags) & O_NONBLOCK ? MSG_DONTWAIT : 0;
}

/* Receives bytes by read(). Files that come with them are dropped. */
ssize_t socket_read_user(struct file *file, struct iov_iter *iter)
{
	struct ancillary ancillary = { 0 };
	ssize_t done = 0;

	if (iter->left)
		done = socket_receive(file->private, iter, &ancillary, flags_of(file));
	ancillary_drop(&ancillary);
	return done;
}

ssize_t socket_write_user(struct file *file, struct iov_iter *iter)
{
	return socket_send(file->private, iter, NULL, &(struct rights *){ NULL }, flags_of(file));
}

#define FIONREAD 0x541b

long socket_file_ioctl(struct file *file, unsigned int command, unsigned long arg)
{
	struct socket *socket = file->private;
	struct chunk *chunk;
	int nr = 0;

	if (command != FIONREAD)
		return -ENOTTY;
	if (socket->listening)
		return -EINVAL;
	mutex_lock(&socket->lock);
	list_for_each_entry(chunk, &socket->chunks, node) {
		nr += chunk->len - chunk->from;
		if (socket_is_datagram(socket))
			break; /* only one message per call */
	}
	mutex_unlock(&socket->lock);
	return put_user(nr, (int __user *)arg);
}
