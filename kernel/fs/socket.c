// SPDX-License-Identifier: BSD-2-Clause
/*
 * Connections of sockets: unix(7). Two connected sockets keep each other alive until both files are
 * gone. connect() makes the other end itself and puts it into the backlog of the listening socket.
 * accept() takes it from there; until then, the client can send only a little. Datagram sockets:
 * see socket_datagram.c.
 */

#include "fd.h"
#include "socket.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/process.h>
#include <lego/sched.h>

#define MAX_BACKLOG 128

void socket_shutdown(struct socket *socket, bool read, bool write)
{
	struct socket *peer = socket_is_datagram(socket) ? NULL : READ_ONCE(socket->peer);

	socket_shut(socket, read, write, 0);
	if (peer)
		socket_shut(peer, write, read, 0);
	if (socket_is_datagram(socket))
		datagram_wake_senders(socket, true);
}

/* Removes the socket's name and releases the backlog. */
static void stop_listening(struct socket *socket)
{
	struct inode *inode;

	mutex_lock(&socket_lock);
	inode = socket_unbind(socket);
	WRITE_ONCE(socket->listening, false);
	while (!list_empty(&socket->pending)) {
		struct socket *pending =
			list_first_entry(&socket->pending, struct socket, pending_node);

		list_del(&pending->pending_node);
		mutex_unlock(&socket_lock);
		socket_release(pending);
		mutex_lock(&socket_lock);
	}
	mutex_unlock(&socket_lock);
	socket_wake_both(socket);
	if (inode)
		inode_put(inode);
}

void socket_release(struct socket *socket)
{
	bool unread = READ_ONCE(socket->held_bytes) || !READ_ONCE(socket->accepted);
	struct socket *peer;

	if (socket->bound || socket->listening)
		stop_listening(socket);
	mutex_lock(&socket->lock);
	WRITE_ONCE(socket->closed, true);
	mutex_unlock(&socket->lock);
	socket_drop_chunks(socket);
	if (socket_is_datagram(socket)) {
		datagram_set_peer(socket, NULL);
		datagram_wake_senders(socket, true);
		socket_put(socket);
		return;
	}
	peer = READ_ONCE(socket->peer);
	if (peer) {
		socket_shut(peer, true, true, unread ? ECONNRESET : 0);
		socket_put(peer);
	}
	socket_put(socket);
}

/* Connections */

static void join_sockets(struct socket *a, struct socket *b)
{
	a->peer_user = b->user;
	b->peer_user = a->user;
	if (socket_is_datagram(a)) {
		datagram_set_peer(a, b);
		datagram_set_peer(b, a);
		return;
	}
	smp_store_release(&a->peer, socket_get(b));
	smp_store_release(&b->peer, socket_get(a));
}

int socket_pair(int type, struct socket *sockets[2])
{
	sockets[0] = socket_alloc(type);
	sockets[1] = socket_alloc(type);
	if (!sockets[0] || !sockets[1]) {
		for (int i = 0; i < 2; i++) {
			if (sockets[i])
				socket_put(sockets[i]);
		}
		return -ENOMEM;
	}
	sockets[0]->accepted = true;
	sockets[1]->accepted = true;
	join_sockets(sockets[0], sockets[1]);
	return 0;
}

int socket_listen(struct socket *socket, int backlog)
{
	int error = 0;

	if (socket_is_datagram(socket))
		return -EOPNOTSUPP;
	mutex_lock(&socket_lock);
	if (!socket->name.len || socket->peer) {
		error = -EINVAL;
	} else {
		socket->max_pending = backlog < 0 ? MAX_BACKLOG : min(backlog, MAX_BACKLOG);
		socket->user = socket_current_user();
		WRITE_ONCE(socket->listening, true);
	}
	mutex_unlock(&socket_lock);
	socket_wake_both(socket);
	return error;
}

static bool has_place(const struct socket *listener)
{
	return READ_ONCE(listener->nr_pending) <= READ_ONCE(listener->max_pending);
}

/* Puts the new end into the backlog. 0, -EAGAIN if the backlog is full, or another error. */
static int try_connect(struct socket *socket, struct socket *end, struct socket *listener)
{
	ASSERT_HELD(&socket_lock);
	if (socket->peer)
		return -EISCONN;
	if (socket->listening)
		return -EINVAL;
	if (!listener->listening)
		return -ECONNREFUSED;
	if (!has_place(listener))
		return -EAGAIN;
	socket->user = socket_current_user();
	socket->accepted = true;
	end->user = listener->user;
	end->name = listener->name;
	join_sockets(socket, end);
	list_add_tail(&end->pending_node, &listener->pending);
	WRITE_ONCE(listener->nr_pending, listener->nr_pending + 1);
	wake_up(&listener->read_wait);
	return 0;
}

static int connect_to(struct socket *socket, struct socket *listener, bool nonblock)
{
	struct socket *end = socket_alloc(socket->type);
	int error;

	if (!end)
		return -ENOMEM;
	for (;;) {
		mutex_lock(&socket_lock);
		error = try_connect(socket, end, listener);
		mutex_unlock(&socket_lock);
		if (error != -EAGAIN || nonblock)
			break;
		error = wait_event_exclusive(&listener->write_wait,
					     has_place(listener) ||
						     !READ_ONCE(listener->listening));
		if (error)
			break;
	}
	wake_up_next(&listener->write_wait, has_place(listener));
	if (error)
		socket_put(end);
	return error;
}

int socket_connect(struct socket *socket, const struct socket_name *name, bool nonblock)
{
	struct socket *to;
	int error = socket_autobind(socket);

	if (error)
		return error;
	to = socket_find(name, socket->type);
	if (IS_ERR(to))
		return (int)PTR_ERR(to);
	error = socket_is_datagram(socket) ? datagram_set_peer(socket, to) :
					     connect_to(socket, to, nonblock);
	socket_put(to);
	if (!error)
		socket_wake_both(socket);
	return error;
}

static struct socket *take_pending(struct socket *listener)
{
	struct socket *end = NULL;

	mutex_lock(&socket_lock);
	if (!list_empty(&listener->pending)) {
		end = list_first_entry(&listener->pending, struct socket, pending_node);
		list_del(&end->pending_node);
		WRITE_ONCE(listener->nr_pending, listener->nr_pending - 1);
		WRITE_ONCE(end->accepted, true);
	}
	mutex_unlock(&socket_lock);
	return end;
}

struct socket *socket_accept(struct socket *listener, bool nonblock)
{
	struct socket *end;
	int error = 0;

	if (socket_is_datagram(listener))
		return ERR_PTR(-EOPNOTSUPP);
	while (!error && !(end = take_pending(listener))) {
		if (!READ_ONCE(listener->listening))
			error = -EINVAL;
		else if (nonblock)
			error = -EAGAIN;
		else
			error = wait_event_exclusive(&listener->read_wait,
						     READ_ONCE(listener->nr_pending));
	}
	wake_up_next(&listener->read_wait, READ_ONCE(listener->nr_pending));
	if (error)
		return ERR_PTR(error);
	wake_up(&listener->write_wait);
	wake_up(&end->peer->write_wait); /* the peer may send more now */
	return end;
}

/* Files */

static u32 socket_poll(struct file *file, struct poll_table *table)
{
	struct socket *socket = file->private, *peer;
	bool read_shut, write_shut;
	u32 events = 0;

	poll_wait_ends(table, &socket->read_wait, &socket->write_wait);
	if (READ_ONCE(socket->listening))
		return READ_ONCE(socket->nr_pending) ? POLLIN | POLLRDNORM : 0;
	peer = smp_load_acquire(&socket->peer);
	if (!peer && !socket_is_datagram(socket))
		return POLLOUT | POLLWRNORM | POLLHUP;
	read_shut = READ_ONCE(socket->read_shut);
	write_shut = READ_ONCE(socket->write_shut);
	if (READ_ONCE(socket->held_bytes) || read_shut)
		events |= POLLIN | POLLRDNORM;
	if (read_shut)
		events |= POLLRDHUP;
	if (read_shut && write_shut)
		events |= POLLHUP;
	if (write_shut || (socket_is_datagram(socket) ? datagram_may_send(socket) :
							socket_has_room(socket, peer)))
		events |= POLLOUT | POLLWRNORM;
	return events | (READ_ONCE(socket->error) ? POLLERR : 0);
}

static void socket_file_release(struct file *file)
{
	socket_release(file->private);
}

/*
 * Each end is charged for half of the bytes in flight; a datagram socket for all it has received.
 * The backlog is charged with its maximum, because no other process can have those ends open.
 */
static u64 socket_held_bytes(const struct file *file)
{
	struct socket *socket = file->private;
	struct socket *peer = socket_is_datagram(socket) ? NULL : READ_ONCE(socket->peer);
	u64 own = READ_ONCE(socket->held_bytes), others = peer ? READ_ONCE(peer->held_bytes) : 0;

	own = peer && !READ_ONCE(peer->closed) ? own / 2 : own;
	return sizeof(*socket) + own + others / 2 + socket_rights_bytes(socket) +
	       READ_ONCE(socket->nr_pending) * (sizeof(*socket) + 2 * PAGE_SIZE);
}

const struct file_ops socket_ops = {
	.read_user = socket_read_user,
	.write_user = socket_write_user,
	.ioctl = socket_file_ioctl,
	.poll = socket_poll,
	.release = socket_file_release,
	.held_bytes = socket_held_bytes,
};

struct file *socket_make_file(struct socket *socket, u32 flags)
{
	struct file *file = file_alloc_anon("socket", S_IFSOCK | 0777, &socket_ops, socket,
					    O_RDWR | (flags & O_NONBLOCK));

	if (!file)
		socket_release(socket);
	return file;
}
