// SPDX-License-Identifier: BSD-2-Clause
/*
 * What every socket has: its references, its error, and whether it can still receive and send. The
 * other files of sockets stand on this one.
 *
 * Locks, outer first: socket_lock, socket->lock. At most one socket's ->lock is held at a time.
 */

#include "socket.h"

#include <lego/assert.h>
#include <lego/sched.h>
#include <lego/slab.h>

DEFINE_MUTEX(socket_lock);

struct socket_user socket_current_user(void)
{
	const struct process *proc = current->proc;

	return (struct socket_user){ proc->pid, proc->creds.euid, proc->creds.egid };
}

struct socket *socket_alloc(int type)
{
	struct socket *socket = kzalloc(sizeof(*socket));

	if (!socket)
		return NULL;
	atomic_set(&socket->refs, 1);
	socket->type = type;
	socket->accepted = socket_is_datagram(socket);
	mutex_init(&socket->lock);
	list_init(&socket->chunks);
	wait_queue_init_at(&socket->read_wait, "socket", LOCK_PLACE("socket->read_wait"));
	wait_queue_init_at(&socket->write_wait, "socket", LOCK_PLACE("socket->write_wait"));
	list_init(&socket->senders);
	list_init(&socket->peer_node);
	list_init(&socket->pending);
	list_init(&socket->pending_node);
	socket->user = socket_current_user();
	socket->peer_user = (struct socket_user){ 0, (u32)-1, (u32)-1 };
	return socket;
}

struct socket *socket_get(struct socket *socket)
{
	atomic_inc(&socket->refs);
	return socket;
}

void socket_put(struct socket *socket)
{
	DEBUG_ASSERT(atomic_read(&socket->refs) > 0);
	if (!atomic_dec_and_test(&socket->refs))
		return;
	DEBUG_ASSERT(list_empty(&socket->chunks) && list_empty(&socket->pending));
	DEBUG_ASSERT(!socket->bound && !socket->inode);
	DEBUG_ASSERT(list_empty(&socket->senders) && list_empty(&socket->peer_node));
	kfree(socket);
}

void socket_wake_both(struct socket *socket)
{
	wake_up_all(&socket->read_wait);
	wake_up_all(&socket->write_wait);
}

void socket_shut(struct socket *socket, bool read, bool write, int error)
{
	mutex_lock(&socket->lock);
	if (read)
		WRITE_ONCE(socket->read_shut, true);
	if (write)
		WRITE_ONCE(socket->write_shut, true);
	if (error)
		WRITE_ONCE(socket->error, error);
	mutex_unlock(&socket->lock);
	socket_wake_both(socket);
}

void socket_set_error(struct socket *socket, int error)
{
	socket_shut(socket, false, false, error);
}

int socket_take_error(struct socket *socket)
{
	int error;

	if (!READ_ONCE(socket->error))
		return 0;
	mutex_lock(&socket->lock);
	error = socket->error;
	WRITE_ONCE(socket->error, 0);
	mutex_unlock(&socket->lock);
	return error;
}
