// SPDX-License-Identifier: BSD-2-Clause
/*
 * Names of sockets. A path leads to an inode, whose ->private is the socket. Abstract names are in
 * a hash table. socket_lock guards both.
 */

#include "path.h"
#include "permission.h"
#include "socket.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/printk.h>
#include <lego/string.h>

#define LOG2_NAMES 12

static struct socket *abstract[1 << LOG2_NAMES];

static bool same_name(const struct socket_name *a, const struct socket_name *b)
{
	return a->len == b->len && !memcmp(a->path, b->path, a->len);
}

static bool is_abstract(const struct socket_name *name)
{
	return name->len && !name->path[0];
}

/* Returns the link in the table of abstract names. Each type of sockets has its own names. */
static struct socket **find_link(const struct socket_name *name, int type)
{
	struct socket **link;
	u64 hash = (u64)type;

	ASSERT_HELD(&socket_lock);
	for (unsigned int i = 0; i < name->len; i++)
		hash = (hash ^ (u8)name->path[i]) * 0x9e3779b97f4a7c15;
	link = &abstract[hash >> (64 - LOG2_NAMES)];
	while (*link && !((*link)->type == type && same_name(&(*link)->name, name)))
		link = &(*link)->next_bound;
	return link;
}

/* Returns the socket with a name. inode NULL: the name is abstract. */
static struct socket *find_bound(const struct socket_name *name, const struct inode *inode,
				 int type)
{
	ASSERT_HELD(&socket_lock);
	return inode ? inode->private : *find_link(name, type);
}

static void add_bound(struct socket *socket, struct inode *inode)
{
	ASSERT_HELD(&socket_lock);
	socket->bound = true;
	socket->inode = inode;
	if (inode)
		inode->private = socket;
	else
		*find_link(&socket->name, socket->type) = socket;
}

struct inode *socket_unbind(struct socket *socket)
{
	struct inode *inode = socket->inode;

	ASSERT_HELD(&socket_lock);
	if (inode)
		inode->private = NULL;
	else if (socket->bound)
		*find_link(&socket->name, socket->type) = socket->next_bound;
	socket->bound = false;
	socket->inode = NULL;
	return inode;
}

/* Chooses an unused name of the form that Linux uses. */
static void choose_name(struct socket_name *name, int type)
{
	static u32 last; /* guarded by socket_lock */

	ASSERT_HELD(&socket_lock);
	do {
		memset(name, 0, sizeof(*name));
		name->len = 6;
		snprintf(name->path + 1, 6, "%05x", ++last & 0xfffff);
	} while (find_bound(name, NULL, type));
}

static void path_of(const struct socket_name *name, char path[SOCKET_PATH_BYTES + 1])
{
	memcpy(path, name->path, name->len);
	path[name->len] = '\0';
}

int socket_bind(struct socket *socket, const struct socket_name *name)
{
	struct socket_name own = *name;
	char path[SOCKET_PATH_BYTES + 1];
	struct inode *inode = NULL;
	int error = 0;

	mutex_lock(&socket_lock);
	if (socket->name.len) {
		error = name->len ? -EINVAL : 0;
		goto out_unlock;
	}
	if (!name->len) {
		choose_name(&own, socket->type);
	} else if (is_abstract(name)) {
		error = find_bound(name, NULL, socket->type) ? -EADDRINUSE : 0;
	} else {
		path_of(name, path);
		error = name_make_socket(path, &inode);
		error = error == -EEXIST ? -EADDRINUSE : error;
	}
	if (error)
		goto out_unlock;
	memcpy(socket->name.path, own.path, sizeof(own.path));
	smp_store_release(&socket->name.len, own.len);
	add_bound(socket, inode);
out_unlock:
	mutex_unlock(&socket_lock);
	return error;
}

int socket_autobind(struct socket *socket)
{
	if (!READ_ONCE(socket->wants_users) || READ_ONCE(socket->name.len))
		return 0;
	return socket_bind(socket, &(struct socket_name){ 0 });
}

/* Returns the inode at a path, with a reference, or ERR_PTR. */
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
	path_put(&base);
	if (error)
		return ERR_PTR(error);
	error = S_ISSOCK(found.inode->mode) ? inode_permission(found.inode, MAY_WRITE) :
					      -ECONNREFUSED;
	inode_get(found.inode);
	path_put(&found);
	if (!error)
		return found.inode;
	inode_put(found.inode);
	return ERR_PTR(error);
}

struct socket *socket_find(const struct socket_name *name, int type)
{
	struct inode *inode = NULL;
	struct socket *socket;

	if (!name->len)
		return ERR_PTR(-EINVAL);
	if (!is_abstract(name))
		inode = find_inode(name);
	if (IS_ERR(inode))
		return (struct socket *)inode;
	mutex_lock(&socket_lock);
	socket = find_bound(name, inode, type);
	if (!socket)
		socket = ERR_PTR(-ECONNREFUSED);
	else if (socket->type != type)
		socket = ERR_PTR(-EPROTOTYPE);
	else
		socket_get(socket);
	mutex_unlock(&socket_lock);
	if (inode)
		inode_put(inode);
	return socket;
}
