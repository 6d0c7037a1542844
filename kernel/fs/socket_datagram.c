// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sockets that keep the boundaries of messages: SOCK_SEQPACKET, connected like streams, and
 * SOCK_DGRAM, which can send to any other SOCK_DGRAM. The peer of a datagram socket is the
 * destination of messages without an address; it changes with each connect().
 *
 * The receiver's queue is bounded, so each sender waits for room there. A receiver wakes two kinds
 * of senders: system calls that sleep on the receiver's own write_wait; and pollers of the sockets
 * that have it as peer, on the write_wait of those sockets. It knows those for which a poll, or a
 * send that does not wait, has found no room. A poller of an edge polls only once per wake-up.
 */

#include "iov.h"
#include "socket.h"

#include <lego/errno.h>
#include <lego/sched.h>

/* Guards the peers of datagram sockets. The innermost lock, except for those of wait queues. */
static DEFINE_SPINLOCK(peer_lock);

/* Peers */

struct socket *socket_get_peer(struct socket *socket)
{
	struct socket *peer;

	if (!socket_is_datagram(socket)) {
		peer = smp_load_acquire(&socket->peer);
		return peer ? socket_get(peer) : NULL;
	}
	spin_lock(&peer_lock);
	peer = socket->peer ? socket_get(socket->peer) : NULL;
	spin_unlock(&peer_lock);
	return peer;
}

/* Returns whether `to` accepts messages of `from`. A socket with a peer accepts only the peer's. */
static bool hears(const struct socket *to, const struct socket *from)
{
	ASSERT_HELD(&peer_lock);
	return !to->peer || to->peer == from;
}

int datagram_set_peer(struct socket *socket, struct socket *peer)
{
	struct socket *old;
	bool mutual;

	spin_lock(&peer_lock);
	if (peer && !hears(peer, socket)) {
		spin_unlock(&peer_lock);
		return -EPERM;
	}
	old = socket->peer;
	mutual = old && old->peer == socket;
	list_del(&socket->peer_node);
	WRITE_ONCE(socket->peer, peer ? socket_get(peer) : NULL);
	spin_unlock(&peer_lock);
	if (old && old != peer && !READ_ONCE(socket->closed)) {
		/* As in Linux, drop the messages from the old peer, and give it an error. */
		if (READ_ONCE(socket->held_bytes)) {
			socket_drop_chunks(socket);
			datagram_wake_senders(socket, true);
		}
		if (mutual && !READ_ONCE(old->closed))
			socket_set_error(old, ECONNRESET);
	}
	if (old)
		socket_put(old);
	return 0;
}

/* Makes the peer wake the socket's pollers when it has room. */
static void join_senders(struct socket *socket)
{
	ASSERT_HELD(&peer_lock);
	if (list_empty(&socket->peer_node))
		list_add_tail(&socket->peer_node, &socket->peer->senders);
}

bool datagram_may_send(struct socket *socket)
{
	bool ret;

	spin_lock(&peer_lock);
	ret = !socket->peer || READ_ONCE(socket->peer->closed) ||
	      socket_has_room(socket, socket->peer);
	if (!ret)
		join_senders(socket);
	spin_unlock(&peer_lock);
	return ret;
}

void datagram_wake_senders(struct socket *socket, bool all)
{
	if (all)
		wake_up_all(&socket->write_wait);
	else
		wake_up(&socket->write_wait);
	spin_lock(&peer_lock);
	while (!list_empty(&socket->senders)) {
		struct socket *sender =
			list_first_entry(&socket->senders, struct socket, peer_node);

		list_del(&sender->peer_node);
		wake_up_all(&sender->write_wait);
	}
	spin_unlock(&peer_lock);
}

/* Sending */

/* Returns the destination of a message, with a reference, or ERR_PTR. */
static struct socket *find_receiver(struct socket *socket, const struct socket_name *name)
{
	struct socket *to;
	bool heard;

	to = name ? socket_find(name, socket->type) : socket_get_peer(socket);
	if (!to)
		return ERR_PTR(-ENOTCONN);
	if (IS_ERR(to) || !socket_is_datagram(socket))
		return to;
	spin_lock(&peer_lock);
	heard = hears(to, socket);
	spin_unlock(&peer_lock);
	if (heard)
		return to;
	socket_put(to);
	return ERR_PTR(-EPERM);
}

/* Does what chunk_send() does. If it would have to wait, pollers of the sender wait from now on. */
static int send_to(struct socket *socket, struct socket *to, struct chunk *chunk, int flags)
{
	int error = chunk_send(socket, to, chunk, flags);
	bool to_peer;

	if (error != -EAGAIN || !socket_is_datagram(socket))
		return error;
	spin_lock(&peer_lock);
	to_peer = socket->peer == to;
	if (to_peer)
		join_senders(socket);
	spin_unlock(&peer_lock);
	/* Maybe there was room before the peer knew the sender. */
	return to_peer ? chunk_send(socket, to, chunk, flags) : error;
}

int message_send(struct socket *socket, struct chunk *chunk, const struct socket_name *name,
		 int flags)
{
	int error = -socket_take_error(socket);
	struct socket *to;

	if (!error && socket_is_datagram(socket))
		error = socket_autobind(socket);
	if (error)
		return error;
	/* A SOCK_SEQPACKET socket is connected for good and ignores the address. */
	to = find_receiver(socket, socket_is_datagram(socket) ? name : NULL);
	if (IS_ERR(to))
		return (int)PTR_ERR(to);
	error = send_to(socket, to, chunk, flags);
	if (error == -ECONNREFUSED && READ_ONCE(socket->peer) == to)
		datagram_set_peer(socket, NULL);
	socket_put(to);
	return error;
}

/* Receiving */

static void wake_senders(struct socket *socket, bool was_full)
{
	if (!socket_is_datagram(socket))
		wake_up(&socket->peer->write_wait);
	else if (was_full)
		datagram_wake_senders(socket, false);
}

/* Takes the first message, with a reference; NULL: there is none. */
static struct chunk *take_message(struct socket *socket, bool peek)
{
	struct chunk *chunk = NULL;
	bool was_full = false;

	mutex_lock(&socket->lock);
	if (!list_empty(&socket->chunks)) {
		chunk = list_first_entry(&socket->chunks, struct chunk, node);
		was_full = socket->nr_chunks >= MAX_MESSAGES ||
			   socket->held_bytes >= SOCKET_BUFFER_BYTES;
		if (peek)
			atomic_inc(&chunk->refs);
		else
			chunk_remove(socket, chunk);
	}
	mutex_unlock(&socket->lock);
	if (chunk && !peek)
		wake_senders(socket, was_full);
	return chunk;
}

/* Puts back a message that could not be copied to the user. */
static void give_back(struct socket *socket, struct chunk *chunk)
{
	mutex_lock(&socket->lock);
	chunk_add(socket, chunk, socket->chunks.next);
	mutex_unlock(&socket->lock);
	wake_up(&socket->read_wait);
}

static struct chunk *wait_for_chunk(struct socket *socket, int flags)
{
	for (;;) {
		/* Read before the messages, because the last ones come before the end. */
		bool at_end = READ_ONCE(socket->read_shut);
		int error = socket_take_error(socket);
		struct chunk *chunk;

		if (error)
			return ERR_PTR(-error);
		chunk = take_message(socket, flags & MSG_PEEK);
		if (chunk)
			return chunk;
		if (at_end && !(socket_is_datagram(socket) && flags & MSG_DONTWAIT))
			return NULL;
		if (flags & MSG_DONTWAIT)
			return ERR_PTR(-EAGAIN);
		error = wait_event_exclusive(&socket->read_wait,
					     READ_ONCE(socket->nr_chunks) ||
						     READ_ONCE(socket->read_shut) ||
						     READ_ONCE(socket->error));
		if (error)
			return ERR_PTR(error);
	}
}

/* Takes a message, and waits if there is none. Returns NULL at the end, or ERR_PTR on failure. */
static struct chunk *wait_for_message(struct socket *socket, int flags)
{
	struct chunk *chunk = wait_for_chunk(socket, flags);

	wake_up_next(&socket->read_wait, READ_ONCE(socket->nr_chunks));
	return chunk;
}

ssize_t message_receive(struct socket *socket, struct iov_iter *iter, struct ancillary *got,
			int flags)
{
	bool peek = flags & MSG_PEEK;
	struct chunk *chunk;
	ssize_t ret;
	size_t n;

	if (!socket_is_datagram(socket) && !smp_load_acquire(&socket->peer))
		return -ENOTCONN;
	chunk = wait_for_message(socket, flags);
	if (!chunk || IS_ERR(chunk))
		return PTR_ERR(chunk);
	n = min(iter->left, chunk->len);
	if (iov_copy_to(iter, chunk->data, n) < n) {
		if (peek)
			chunk_put(chunk);
		else
			give_back(socket, chunk);
		return -EFAULT;
	}
	got->rights = rights_get(chunk->rights);
	got->source = socket_get(chunk->source);
	got->sender = chunk->sender;
	got->truncated = n < chunk->len;
	ret = flags & MSG_TRUNC ? chunk->len : n;
	chunk_put(chunk);
	return ret;
}
