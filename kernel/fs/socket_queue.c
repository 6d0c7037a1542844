// SPDX-License-Identifier: BSD-2-Clause
/*
 * The queue of a socket: the bytes in flight to it, as a list of chunks of bounded size. A chunk
 * carries its sender's IDs, and maybe files. A message is one chunk.
 */

#include "socket.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/mm.h>
#include <lego/page.h>
#include <lego/sched.h>
#include <lego/slab.h>

/* The limit of bytes in the queue of a socket that is not accepted yet: see socket_held_bytes(). */
#define MAX_PENDING_BYTES PAGE_SIZE

static size_t chunk_bytes(const struct chunk *chunk)
{
	return sizeof(*chunk) + chunk->len;
}

/*
 * A large chunk needs contiguous pages: if memory is only fragmented, this fails
 * rather than kill a process.
 */
struct chunk *chunk_alloc(struct socket *source, size_t len)
{
	struct chunk *chunk = NULL;

	do {
		if (!page_is_scarce())
			chunk = kmalloc(sizeof(*chunk) + len);
	} while (!chunk && (len <= CHUNK_BYTES || page_is_scarce()) && oom_wait());
	if (!chunk)
		return NULL;
	atomic_set(&chunk->refs, 1);
	chunk->from = 0;
	chunk->len = len;
	chunk->sender = socket_current_user();
	chunk->source = socket_get(source);
	chunk->rights = NULL;
	return chunk;
}

void chunk_put(struct chunk *chunk)
{
	if (!atomic_dec_and_test(&chunk->refs))
		return;
	rights_drop(chunk->rights);
	socket_put(chunk->source);
	kfree(chunk);
}

void chunk_add(struct socket *socket, struct chunk *chunk, struct list_head *next)
{
	ASSERT_HELD(&socket->lock);
	list_add_tail(&chunk->node, next);
	WRITE_ONCE(socket->held_bytes, socket->held_bytes + chunk_bytes(chunk));
	WRITE_ONCE(socket->nr_chunks, socket->nr_chunks + 1);
}

void chunk_remove(struct socket *socket, struct chunk *chunk)
{
	ASSERT_HELD(&socket->lock);
	list_del(&chunk->node);
	WRITE_ONCE(socket->held_bytes, socket->held_bytes - chunk_bytes(chunk));
	WRITE_ONCE(socket->nr_chunks, socket->nr_chunks - 1);
}

bool socket_has_room(const struct socket *from, const struct socket *to)
{
	size_t limit = READ_ONCE(to->accepted) ? SOCKET_BUFFER_BYTES : MAX_PENDING_BYTES;

	if (socket_is_datagram(to) && from != to && READ_ONCE(to->peer) != from &&
	    READ_ONCE(to->nr_chunks) >= MAX_MESSAGES)
		return false;
	return READ_ONCE(to->held_bytes) < limit;
}

void socket_drop_chunks(struct socket *socket)
{
	struct chunk *chunk, *next;
	LIST_HEAD(chunks);

	mutex_lock(&socket->lock);
	list_for_each_entry_safe(chunk, next, &socket->chunks, node) {
		list_del(&chunk->node);
		list_add_tail(&chunk->node, &chunks);
	}
	WRITE_ONCE(socket->held_bytes, 0);
	WRITE_ONCE(socket->nr_chunks, 0);
	mutex_unlock(&socket->lock);
	/* Without the lock, because this may drop the last reference to a file. */
	list_for_each_entry_safe(chunk, next, &chunks, node)
		chunk_put(chunk);
}

/*
 * Returns whether the chunk can be sent now. Files and large messages need a receiver to which
 * their memory is charged, so they do not go into a backlog.
 */
static bool may_send(const struct socket *from, const struct socket *to, const struct chunk *chunk)
{
	return socket_has_room(from, to) &&
	       ((!chunk->rights && chunk->len <= CHUNK_BYTES) || READ_ONCE(to->accepted));
}

/* Returns 0, or the error if no more can be sent. */
static int send_error(const struct socket *from, const struct socket *to)
{
	if (READ_ONCE(from->write_shut))
		return -EPIPE;
	if (READ_ONCE(to->closed))
		return socket_is_datagram(from) ? -ECONNREFUSED : -EPIPE;
	return socket_is_datagram(from) && READ_ONCE(to->read_shut) ? -EPIPE : 0;
}

/* Sends a chunk. 0, -EAGAIN if there is no room, or another error. */
static int try_send(struct socket *from, struct socket *to, struct chunk *chunk)
{
	int error;

	mutex_lock(&to->lock);
	error = send_error(from, to);
	if (!error && !may_send(from, to, chunk))
		error = -EAGAIN;
	if (!error && chunk->rights)
		error = rights_begin_flight(chunk->rights, to);
	if (!error)
		chunk_add(to, chunk, &to->chunks);
	mutex_unlock(&to->lock);
	if (!error)
		wake_up(&to->read_wait);
	return error;
}

int chunk_send(struct socket *from, struct socket *to, struct chunk *chunk, int flags)
{
	/* A datagram socket has no list of its senders, so these wait on the receiver's queue. */
	struct wait_queue *wait = socket_is_datagram(to) ? &to->write_wait : &from->write_wait;

	int error;

	do {
		error = try_send(from, to, chunk);
		if (error != -EAGAIN || flags & MSG_DONTWAIT)
			break;
		error = wait_event_exclusive(wait,
					     may_send(from, to, chunk) || send_error(from, to));
	} while (!error);
	wake_up_next(wait, socket_has_room(from, to));
	return error;
}
