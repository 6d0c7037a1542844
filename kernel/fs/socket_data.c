// SPDX-License-Identifier: BSD-2-Clause
#include "socket.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/mm.h>
#include <lego/page.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/uaccess.h>

/*
 * Bytes on their way to a socket: it has a list of chunks, whose size is bounded. A
 * chunk carries its sender's numbers, and maybe files. Bytes of chunks with different files are not
 * received by one call.
 */

/* The bytes that may wait at a socket, and at one not accepted yet: see socket_held_bytes(). */
#define MAX_HELD_BYTES	  (208 * 1024)
#define MAX_PENDING_BYTES PAGE_SIZE

static size_t chunk_bytes(const struct chunk *chunk)
{
	return sizeof(*chunk) + chunk->len;
}

void rights_drop(struct rights *rights)
{
	for (unsigned int i = 0; rights && i < rights->nr; i++)
		file_put(rights->files[i]);
	kfree(rights);
}

static struct chunk *alloc_chunk(size_t len)
{
	struct chunk *chunk = NULL;

	do {
		if (!page_is_scarce())
			chunk = kmalloc(sizeof(*chunk) + len);
	} while (!chunk && oom_wait());
	if (!chunk)
		return NULL;
	chunk->from = 0;
	chunk->len = len;
	chunk->sender = socket_current_user();
	chunk->rights = NULL;
	return chunk;
}

static void free_chunk(struct chunk *chunk)
{
	rights_drop(chunk->rights);
	kfree(chunk);
}

bool socket_has_room(const struct socket *socket)
{
	size_t limit = READ_ONCE(socket->accepted) ? MAX_HELD_BYTES : MAX_PENDING_BYTES;

	return READ_ONCE(socket->held_bytes) < limit;
}

void socket_drop_chunks(struct socket *socket)
{
	struct chunk *chunk, *next;
	LIST_HEAD(chunks);

	mutex_lock(&socket->lock);
	socket->closed = true;
	list_for_each_entry_safe(chunk, next, &socket->chunks, node) {
		list_del(&chunk->node);
		list_add_tail(&chunk->node, &chunks);
	}
	WRITE_ONCE(socket->held_bytes, 0);
	mutex_unlock(&socket->lock);
	/* Without the lock, as the last reference to a file may go. */
	list_for_each_entry_safe(chunk, next, &chunks, node)
		free_chunk(chunk);
}

/* Files go to who can be blamed for their memory: not into a backlog. */
static bool may_send(const struct socket *peer, const struct chunk *chunk)
{
	return socket_has_room(peer) && (!chunk->rights || READ_ONCE(peer->accepted));
}

/* Memory of the files under way, unless somebody is at them just now. Any lock may be held. */
u64 socket_rights_bytes(struct socket *socket)
{
	struct chunk *chunk;
	u64 bytes = 0;

	if (!mutex_trylock(&socket->lock))
		return 0;
	list_for_each_entry(chunk, &socket->chunks, node) {
		bytes += chunk->rights ? sizeof(*chunk->rights) : 0;
		for (unsigned int i = 0; chunk->rights && i < chunk->rights->nr; i++)
			bytes += file_own_bytes(chunk->rights->files[i]);
	}
	mutex_unlock(&socket->lock);
	return bytes;
}

/* 0, -EPIPE, or -EAGAIN when there is no room. */
static int try_send(struct socket *socket, struct socket *peer, struct chunk *chunk)
{
	int error = 0;

	mutex_lock(&peer->lock);
	if (peer->closed || READ_ONCE(socket->write_shut))
		error = -EPIPE;
	else if (!may_send(peer, chunk))
		error = -EAGAIN;
	if (!error) {
		list_add_tail(&chunk->node, &peer->chunks);
		WRITE_ONCE(peer->held_bytes, peer->held_bytes + chunk_bytes(chunk));
	}
	mutex_unlock(&peer->lock);
	if (!error)
		wake_up_all(&peer->read_wait);
	return error;
}

static int send_chunk(struct socket *socket, struct chunk *chunk, int flags)
{
	struct socket *peer = READ_ONCE(socket->peer);

	if (!peer)
		return READ_ONCE(socket->write_shut) ? -EPIPE : -ENOTCONN;
	for (;;) {
		int error = try_send(socket, peer, chunk);

		if (error != -EAGAIN || flags & MSG_DONTWAIT)
			return error;
		error = wait_event_interruptible(&socket->write_wait,
						 may_send(peer, chunk) ||
							 READ_ONCE(socket->write_shut));
		if (error)
			return error;
	}
}

ssize_t socket_send(struct socket *socket, struct iov_iter *iter, struct rights **rights, int flags)
{
	ssize_t total = 0;
	int error = 0;

	while (iter->left && !error) {
		size_t n = min(iter->left, (size_t)CHUNK_BYTES);
		struct chunk *chunk = alloc_chunk(n);

		if (!chunk)
			error = -ENOMEM;
		else if (iov_copy_from(chunk->data, iter, n) < n)
			error = -EFAULT;
		if (error) {
			kfree(chunk);
			break;
		}
		chunk->rights = *rights;
		error = send_chunk(socket, chunk, flags);
		if (error) {
			kfree(chunk); /* the rights are still the caller's */
			break;
		}
		*rights = NULL;
		total += n;
		if (iter->left && task_interrupted(current))
			break;
		cond_resched();
	}
	if (error == -EPIPE && !total && !(flags & MSG_NOSIGNAL))
		signal_send_self(SIGPIPE);
	return total ?: error;
}

static bool same_sender(const struct socket_user *a, const struct socket_user *b)
{
	return a->pid == b->pid && a->uid == b->uid && a->gid == b->gid;
}

/* Whether the chunk can be received with what came before it, if anything did. */
static bool fits(const struct socket *socket, const struct chunk *chunk,
		 const struct ancillary *before)
{
	if (!before)
		return true;
	return !chunk->rights && !before->rights &&
	       (!socket->wants_users || same_sender(&chunk->sender, &before->sender));
}

/*
 * Takes up to n bytes that are there. got: what came with the bytes that this call has had before;
 * any: there were some. The files of a chunk are got's.
 */
static size_t take(struct socket *socket, char *buf, size_t n, struct ancillary *got, bool any,
		   bool peek)
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
		memcpy(buf + total, chunk->data + chunk->from, piece);
		total += piece;
		if (peek)
			continue;
		if (chunk->rights)
			got->rights = chunk->rights;
		chunk->rights = NULL;
		chunk->from += piece;
		if (chunk->from < chunk->len)
			break;
		WRITE_ONCE(socket->held_bytes, socket->held_bytes - chunk_bytes(chunk));
		list_del(&chunk->node);
		kfree(chunk);
	}
	mutex_unlock(&socket->lock);
	return total;
}

/* Bytes; 0 at the end, or when n is 0; negative errno. */
static ssize_t receive_some(struct socket *socket, char *buf, size_t n, struct ancillary *got,
			    bool any, int flags)
{
	for (;;) {
		/* Looked at before the bytes: the last ones come before the end. */
		bool at_end = READ_ONCE(socket->read_shut);
		size_t done = take(socket, buf, n, got, any, flags & MSG_PEEK);
		int error;

		if (done && !(flags & MSG_PEEK) && READ_ONCE(socket->peer))
			wake_up_all(&socket->peer->write_wait);
		if (done || at_end)
			return done;
		if (!READ_ONCE(socket->peer))
			return socket->listening ? -EINVAL : -ENOTCONN;
		if (any && !(flags & MSG_WAITALL))
			return 0;
		if (any && READ_ONCE(socket->held_bytes))
			return 0; /* of another kind */
		if (flags & MSG_DONTWAIT)
			return -EAGAIN;
		error = wait_event_interruptible(&socket->read_wait,
						 READ_ONCE(socket->held_bytes) ||
							 READ_ONCE(socket->read_shut));
		if (error)
			return error;
	}
}

ssize_t socket_receive(struct socket *socket, struct iov_iter *iter, struct ancillary *ancillary,
		       int flags)
{
	size_t buf_bytes = min(iter->left, (size_t)CHUNK_BYTES), total = 0;
	char *buf = kmalloc(buf_bytes);
	ssize_t done = 0;

	if (!buf)
		return -ENOMEM;
	while (iter->left) {
		size_t n = min(iter->left, buf_bytes);

		done = -EFAULT;
		if (iov_make_writable(*iter, n))
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
	kfree(buf);
	return total ? (ssize_t)total : done;
}

/* file_ops */

static int flags_of(const struct file *file)
{
	return READ_ONCE(file->flags) & O_NONBLOCK ? MSG_DONTWAIT : 0;
}

/* Files that come with bytes are lost for who only reads these. */
static ssize_t read_bytes(struct file *file, void *buf, size_t n, int flags, bool any)
{
	struct ancillary ancillary = { 0 };
	ssize_t done = receive_some(file->private, buf, n, &ancillary, any, flags);

	rights_drop(ancillary.rights);
	return done;
}

ssize_t socket_file_read(struct file *file, void *buf, size_t n, u64 pos)
{
	return read_bytes(file, buf, n, flags_of(file), false);
}

ssize_t socket_file_read_more(struct file *file, void *buf, size_t n)
{
	ssize_t done = read_bytes(file, buf, n, MSG_DONTWAIT, false);

	return max(done, (ssize_t)0);
}

ssize_t socket_file_write(struct file *file, const void *buf, size_t n, u64 pos)
{
	struct socket *socket = file->private;
	struct chunk *chunk = alloc_chunk(n);
	int error;

	if (!chunk)
		return -ENOMEM;
	memcpy(chunk->data, buf, n);
	error = send_chunk(socket, chunk, flags_of(file));
	if (!error)
		return n;
	kfree(chunk);
	if (error == -EPIPE)
		signal_send_self(SIGPIPE);
	return error;
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
	list_for_each_entry(chunk, &socket->chunks, node)
		nr += chunk->len - chunk->from;
	mutex_unlock(&socket->lock);
	return put_user(nr, (int __user *)arg);
}
