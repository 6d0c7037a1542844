// SPDX-License-Identifier: BSD-2-Clause
#include "socket.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/printk.h>
#include <lego/slab.h>
#include <lego/string.h>

/*
 * Names and connections of sockets: unix(7), stream sockets only. Two connected sockets keep
 * each other alive until both files are gone. connect() makes the other end itself and leaves it
 * with the listening socket, where accept() finds it; so a client can send before that, a little.
 *
 * Locks, outer first: socket_lock, socket->lock. No two sockets' ->lock are held at a time.
 */

#define MAX_BACKLOG 128

static DEFINE_MUTEX(socket_lock);
static LIST_HEAD(bound_sockets);

struct socket_user socket_current_user(void)
{
	const struct process *proc = current->proc;

	return (struct socket_user){ proc->pid, proc->creds.euid, proc->creds.egid };
}

struct socket *socket_alloc(void)
{
	struct socket *socket = kzalloc(sizeof(*socket));

	if (!socket)
		return NULL;
	atomic_set(&socket->refs, 1);
	mutex_init(&socket->lock);
	list_init(&socket->chunks);
	wait_queue_init_at(&socket->read_wait, "socket", LOCK_PLACE("socket->read_wait"));
	wait_queue_init_at(&socket->write_wait, "socket", LOCK_PLACE("socket->write_wait"));
	list_init(&socket->bound_node);
	list_init(&socket->pending);
	list_init(&socket->pending_node);
	socket->user = socket_current_user();
	return socket;
}

static struct socket *get(struct socket *socket)
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
	DEBUG_ASSERT(list_empty(&socket->bound_node) && !socket->inode);
	kfree(socket);
}

static void wake_both(struct socket *socket)
{
	wake_up_all(&socket->read_wait);
	wake_up_all(&socket->write_wait);
}

static void shut(struct socket *socket, bool read, bool write, int error)
{
	mutex_lock(&socket->lock);
	if (read)
		WRITE_ONCE(socket->read_shut, true);
	if (write)
		WRITE_ONCE(socket->write_shut, true);
	if (error)
		socket->error = error;
	mutex_unlock(&socket->lock);
	wake_both(socket);
}

void socket_shutdown(struct socket *socket, bool read, bool write)
{
	struct socket *peer = READ_ONCE(socket->peer);

	shut(socket, read, write, 0);
	if (peer)
		shut(peer, write, read, 0);
}

/* No name any more, and nobody in the backlog. */
static void stop_listening(struct socket *socket)
{
	struct inode *inode;

	mutex_lock(&socket_lock);
	list_del(&socket->bound_node);
	inode = socket->inode;
	socket->inode = NULL;
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
	wake_both(socket);
	if (inode)
		inode_put(inode);
}

void socket_release(struct socket *socket)
{
	bool unread = READ_ONCE(socket->held_bytes) || !READ_ONCE(socket->accepted);
	struct socket *peer;

	if (!list_empty(&socket->bound_node) || socket->listening)
		stop_listening(socket);
	socket_drop_chunks(socket);
	peer = READ_ONCE(socket->peer);
	if (peer) {
		shut(peer, true, true, unread ? ECONNRESET : 0);
		socket_put(peer);
	}
	socket_put(socket);
}

/* Names */

static bool same_name(const struct socket_name *a, const struct socket_name *b)
{
	return a->len == b->len && !memcmp(a->path, b->path, a->len);
}

static bool is_abstract(const struct socket_name *name)
{
	return name->len && !name->path[0];
}

/* inode NULL: of an abstract name. */
static struct socket *find_bound(const struct socket_name *name, const struct inode *inode)
{
	struct socket *socket;

	ASSERT_HELD(&socket_lock);
	list_for_each_entry(socket, &bound_sockets, bound_node) {
		if (inode ? socket->inode == inode :
			    is_abstract(&socket->name) && same_name(&socket->name, name))
			return socket;
	}
	return NULL;
}

/* A name that is free, as Linux makes them. */
static void choose_name(struct socket_name *name)
{
	static u32 last; /* guarded by socket_lock */

	ASSERT_HELD(&socket_lock);
	do {
		memset(name, 0, sizeof(*name));
		name->len = 6;
		snprintf(name->path + 1, 6, "%05x", ++last & 0xfffff);
	} while (find_bound(name, NULL));
}

static void path_of(const struct socket_name *name, char path[SOCKET_PATH_BYTES + 1])
{
	memcpy(path, name->path, name->len);
	path[name->len] = '\0';
}

int socket_bind(struct socket *socket, const struct socket_name *name)
{
	char path[SOCKET_PATH_BYTES + 1];
	struct inode *inode = NULL;
	int error = 0;

	mutex_lock(&socket_lock);
	if (socket->name.len || socket->peer)
		error = -EINVAL;
	else if (is_abstract(name) && find_bound(name, NULL))
		error = -EADDRINUSE;
	if (!error && name->len && !is_abstract(name)) {
		path_of(name, path);
		error = name_make_socket(path, &inode);
		error = error == -EEXIST ? -EADDRINUSE : error;
	}
	if (!error) {
		socket->name = *name;
		if (!name->len)
			choose_name(&socket->name);
		socket->inode = inode;
		list_add(&socket->bound_node, &bound_sockets);
	}
	mutex_unlock(&socket_lock);
	return error;
}

/* The inode that a path leads to, with a reference, or ERR_PTR. */
static struct inode *find_inode(const struct socket_name *name)
{
	char path[SOCKET_PATH_BYTES + 1];
	struct path base, found;
	int error;

	path_of(name, path);
	error = path_base(AT_FDCWD, path, &base);
	if (error)
		return ERR_PTR(error);
	error = path_find(&base, path, 0, &found);
	path_release(&base);
	if (error)
		return ERR_PTR(error);
	error = S_ISSOCK(found.inode->mode) ? inode_permission(found.inode, MAY_WRITE) :
					      -ECONNREFUSED;
	inode_get(found.inode);
	path_release(&found);
	if (!error)
		return found.inode;
	inode_put(found.inode);
	return ERR_PTR(error);
}

/* Connections */

static void join(struct socket *a, struct socket *b)
{
	a->peer_user = b->user;
	b->peer_user = a->user;
	smp_store_release(&a->peer, get(b));
	smp_store_release(&b->peer, get(a));
}

int socket_pair(struct socket *sockets[2])
{
	sockets[0] = socket_alloc();
	sockets[1] = socket_alloc();
	if (!sockets[0] || !sockets[1]) {
		for (int i = 0; i < 2; i++) {
			if (sockets[i])
				socket_put(sockets[i]);
		}
		return -ENOMEM;
	}
	sockets[0]->accepted = true;
	sockets[1]->accepted = true;
	join(sockets[0], sockets[1]);
	return 0;
}

int socket_listen(struct socket *socket, int backlog)
{
	int error = 0;

	mutex_lock(&socket_lock);
	if (!socket->name.len || socket->peer) {
		error = -EINVAL;
	} else {
		socket->max_pending = backlog < 0 ? MAX_BACKLOG : min(backlog, MAX_BACKLOG);
		socket->user = socket_current_user();
		WRITE_ONCE(socket->listening, true);
	}
	mutex_unlock(&socket_lock);
	wake_both(socket);
	return error;
}

static bool has_place(const struct socket *listener)
{
	return READ_ONCE(listener->nr_pending) <= READ_ONCE(listener->max_pending);
}

/* The new end joins the backlog. 0, or -EAGAIN when that is full: *full, with a reference. */
static int try_connect(struct socket *socket, struct socket *end, const struct socket_name *name,
		       const struct inode *inode, struct socket **full)
{
	struct socket *listener = find_bound(name, inode);

	ASSERT_HELD(&socket_lock);
	if (socket->peer)
		return -EISCONN;
	if (socket->listening)
		return -EINVAL;
	if (!listener || !listener->listening)
		return -ECONNREFUSED;
	if (!has_place(listener)) {
		*full = get(listener);
		return -EAGAIN;
	}
	socket->user = socket_current_user();
	socket->accepted = true;
	end->user = listener->user;
	end->name = listener->name;
	join(socket, end);
	list_add_tail(&end->pending_node, &listener->pending);
	WRITE_ONCE(listener->nr_pending, listener->nr_pending + 1);
	wake_up_all(&listener->read_wait);
	return 0;
}

static int connect_to(struct socket *socket, struct socket *end, const struct socket_name *name,
		      const struct inode *inode, bool nonblock)
{
	for (;;) {
		struct socket *full = NULL;
		int error;

		mutex_lock(&socket_lock);
		error = try_connect(socket, end, name, inode, &full);
		mutex_unlock(&socket_lock);
		if (!full)
			return error;
		if (!nonblock)
			error = wait_event_interruptible(
				&full->write_wait, has_place(full) || !READ_ONCE(full->listening));
		socket_put(full);
		if (error)
			return error;
	}
}

int socket_connect(struct socket *socket, const struct socket_name *name, bool nonblock)
{
	struct inode *inode = NULL;
	struct socket *end;
	int error = -ENOMEM;

	if (!name->len)
		return -EINVAL;
	if (!is_abstract(name))
		inode = find_inode(name);
	if (IS_ERR(inode))
		return (int)PTR_ERR(inode);
	end = socket_alloc();
	if (end)
		error = connect_to(socket, end, name, inode, nonblock);
	if (end && error)
		socket_put(end);
	if (inode)
		inode_put(inode);
	if (!error)
		wake_both(socket);
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
	int error;

	while (!(end = take_pending(listener))) {
		if (!READ_ONCE(listener->listening))
			return ERR_PTR(-EINVAL);
		if (nonblock)
			return ERR_PTR(-EAGAIN);
		error = wait_event_interruptible(&listener->read_wait,
						 READ_ONCE(listener->nr_pending));
		if (error)
			return ERR_PTR(error);
	}
	wake_up_all(&listener->write_wait);
	wake_up_all(&end->peer->write_wait); /* it may send more now */
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
	if (!peer)
		return POLLOUT | POLLWRNORM | POLLHUP;
	read_shut = READ_ONCE(socket->read_shut);
	write_shut = READ_ONCE(socket->write_shut);
	if (READ_ONCE(socket->held_bytes) || read_shut)
		events |= POLLIN | POLLRDNORM;
	if (read_shut)
		events |= POLLRDHUP;
	if (read_shut && write_shut)
		events |= POLLHUP;
	if (socket_has_room(peer) || write_shut)
		events |= POLLOUT | POLLWRNORM;
	return events | (READ_ONCE(socket->error) ? POLLERR : 0);
}

static void socket_file_release(struct file *file)
{
	socket_release(file->private);
}

/*
 * Half of what is under way for each end. Of the backlog, as much as may wait there: nobody else
 * may have it open.
 */
static u64 socket_held_bytes(const struct file *file)
{
	struct socket *socket = file->private, *peer = READ_ONCE(socket->peer);
	u64 own = READ_ONCE(socket->held_bytes), others = peer ? READ_ONCE(peer->held_bytes) : 0;

	own = peer && !READ_ONCE(peer->closed) ? own / 2 : own;
	return sizeof(*socket) + own + others / 2 + socket_rights_bytes(socket) +
	       READ_ONCE(socket->nr_pending) * (sizeof(*socket) + 2 * PAGE_SIZE);
}

const struct file_ops socket_ops = {
	.read = socket_file_read,
	.read_more = socket_file_read_more,
	.write = socket_file_write,
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
