// SPDX-License-Identifier: BSD-2-Clause
/* The system calls that create and connect sockets, and query their state. */

#include "fd.h"
#include "socket.h"

#include <lego/errno.h>
#include <lego/string.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

#define AF_UNSPEC 0
#define AF_UNIX	  1
#define SOCK_TYPE 0xf

#define SOL_SOCKET    1
#define SO_REUSEADDR  2
#define SO_TYPE	      3
#define SO_ERROR      4
#define SO_SNDBUF     7
#define SO_RCVBUF     8
#define SO_KEEPALIVE  9
#define SO_PASSCRED   16
#define SO_PEERCRED   17
#define SO_ACCEPTCONN 30
#define SO_PROTOCOL   38
#define SO_DOMAIN     39

/* Linux's layout. */
struct sockaddr_un {
	u16 family;
	char path[SOCKET_PATH_BYTES];
};

/* Returns the file of a socket, or ERR_PTR(-EBADF, -ENOTSOCK). */
static struct file *get_file(int fd)
{
	struct file *file = fd_get_with(fd, &socket_ops);

	return file == ERR_PTR(-EINVAL) ? ERR_PTR(-ENOTSOCK) : file;
}

/* Returns the type of a new socket, or a negative errno. */
static int kind_of(int domain, int type, int protocol)
{
	if (type & ~(SOCK_TYPE | O_CLOEXEC | O_NONBLOCK))
		return -EINVAL;
	if (domain != AF_UNIX)
		return -EAFNOSUPPORT;
	if (protocol && protocol != AF_UNIX)
		return -EPROTONOSUPPORT;
	switch (type & SOCK_TYPE) {
	case SOCK_RAW:
		return SOCK_DGRAM;
	case SOCK_STREAM:
	case SOCK_DGRAM:
	case SOCK_SEQPACKET:
		return type & SOCK_TYPE;
	default:
		return -ESOCKTNOSUPPORT;
	}
}

SYSCALL_DEFINE3(socket, int, domain, int, type, int, protocol)
{
	int kind = kind_of(domain, type, protocol);
	struct socket *socket;
	struct file *file;

	if (kind < 0)
		return kind;
	socket = socket_alloc(kind);
	file = socket ? socket_make_file(socket, type) : NULL;
	return file ? fd_install_or_put(file, type & O_CLOEXEC) : -ENOMEM;
}

SYSCALL_DEFINE4(socketpair, int, domain, int, type, int, protocol, int __user *, fds)
{
	int kind = kind_of(domain, type, protocol), error;
	struct socket *sockets[2];
	struct file *files[2];

	if (kind < 0)
		return kind;
	error = socket_pair(kind, sockets);
	if (error)
		return error;
	files[0] = socket_make_file(sockets[0], type);
	files[1] = socket_make_file(sockets[1], type);
	if (files[0] && files[1])
		return fd_install_pair(files, type & O_CLOEXEC, fds);
	for (int i = 0; i < 2; i++) {
		if (files[i])
			file_put(files[i]);
	}
	return -ENOMEM;
}

int name_from_user(struct socket_name *name, const void __user *user, u32 len)
{
	struct sockaddr_un addr;

	if (len > sizeof(addr) || len < sizeof(addr.family))
		return -EINVAL;
	memset(&addr, 0, sizeof(addr));
	if (copy_from_user(&addr, user, len))
		return -EFAULT;
	if (addr.family != AF_UNIX)
		return -EINVAL;
	name->len = len - sizeof(addr.family);
	memcpy(name->path, addr.path, sizeof(name->path));
	if (name->len && name->path[0])
		name->len = strnlen(name->path, name->len);
	return 0;
}

/* Copies as much of the address as fits, and its whole length. user NULL: does nothing. */
int name_to_user(const struct socket_name *name, void __user *user, u32 __user *user_len)
{
	struct sockaddr_un addr = { .family = AF_UNIX };
	/* Pairs with the release in socket_names.c: the path is complete, or the length is 0. */
	u32 name_len = smp_load_acquire(&name->len);
	u32 len = sizeof(addr.family) + name_len, room;

	if (!user)
		return 0;
	if (get_user(room, user_len))
		return -EFAULT;
	if ((s32)room < 0)
		return -EINVAL;
	memcpy(addr.path, name->path, name_len);
	if (name_len && name->path[0] && name_len < sizeof(addr.path))
		len++; /* for the NUL */
	if (copy_to_user(user, &addr, min(room, len)))
		return -EFAULT;
	return put_user(len, user_len);
}

static int bind_file(struct file *file, const struct socket_name *name)
{
	return socket_bind(file->private, name);
}

static int connect_file(struct file *file, const struct socket_name *name)
{
	return socket_connect(file->private, name, READ_ONCE(file->flags) & O_NONBLOCK);
}

/* Runs a call that takes a socket and an address. */
static int call_named(int fd, const void __user *addr, u32 len,
		      int (*call)(struct file *file, const struct socket_name *name))
{
	struct file *file = get_file(fd);
	struct socket_name name;
	int error;

	if (IS_ERR(file))
		return PTR_ERR(file);
	error = name_from_user(&name, addr, len);
	if (!error)
		error = call(file, &name);
	file_put(file);
	return error;
}

SYSCALL_DEFINE3(bind, int, fd, const void __user *, addr, u32, len)
{
	return call_named(fd, addr, len, bind_file);
}

static int disconnect(int fd)
{
	struct file *file = get_file(fd);
	int error = -EINVAL;

	if (IS_ERR(file))
		return PTR_ERR(file);
	if (socket_is_datagram(file->private))
		error = datagram_set_peer(file->private, NULL);
	file_put(file);
	return error;
}

SYSCALL_DEFINE3(connect, int, fd, const void __user *, addr, u32, len)
{
	u16 family;

	if (len >= sizeof(family) && !get_user(family, (const u16 __user *)addr) &&
	    family == AF_UNSPEC)
		return disconnect(fd);
	return call_named(fd, addr, len, connect_file);
}

SYSCALL_DEFINE2(listen, int, fd, int, backlog)
{
	struct file *file = get_file(fd);
	int error;

	if (IS_ERR(file))
		return PTR_ERR(file);
	error = socket_listen(file->private, backlog);
	file_put(file);
	return error;
}

static long accept_end(struct socket *listener, void __user *addr, u32 __user *len, u32 flags,
		       bool nonblock)
{
	struct socket *end = socket_accept(listener, nonblock);
	struct file *file;
	long error;

	if (IS_ERR(end))
		return PTR_ERR(end);
	error = name_to_user(&end->peer->name, addr, len);
	file = socket_make_file(end, flags);
	if (!file)
		return -ENOMEM;
	if (!error)
		return fd_install_or_put(file, flags & O_CLOEXEC);
	file_put(file);
	return error;
}

static long accept_fd(int fd, void __user *addr, u32 __user *len, u32 flags)
{
	struct file *file;
	long ret;

	if (flags & ~(O_CLOEXEC | O_NONBLOCK))
		return -EINVAL;
	file = get_file(fd);
	if (IS_ERR(file))
		return PTR_ERR(file);
	ret = accept_end(file->private, addr, len, flags, READ_ONCE(file->flags) & O_NONBLOCK);
	file_put(file);
	return ret;
}

SYSCALL_DEFINE3(accept, int, fd, void __user *, addr, u32 __user *, len)
{
	return accept_fd(fd, addr, len, 0);
}

SYSCALL_DEFINE4(accept4, int, fd, void __user *, addr, u32 __user *, len, u32, flags)
{
	return accept_fd(fd, addr, len, flags);
}

SYSCALL_DEFINE2(shutdown, int, fd, u32, how)
{
	struct file *file = get_file(fd);

	if (IS_ERR(file))
		return PTR_ERR(file);
	if (how <= 2)
		socket_shutdown(file->private, how != 1, how != 0);
	file_put(file);
	return how <= 2 ? 0 : -EINVAL;
}

SYSCALL_DEFINE3(getsockname, int, fd, void __user *, addr, u32 __user *, len)
{
	struct file *file = get_file(fd);
	const struct socket *socket;
	int error;

	if (IS_ERR(file))
		return PTR_ERR(file);
	socket = file->private;
	error = addr ? name_to_user(&socket->name, addr, len) : -EFAULT;
	file_put(file);
	return error;
}

SYSCALL_DEFINE3(getpeername, int, fd, void __user *, addr, u32 __user *, len)
{
	struct file *file = get_file(fd);
	struct socket *peer;
	int error = -ENOTCONN;

	if (IS_ERR(file))
		return PTR_ERR(file);
	peer = socket_get_peer(file->private);
	if (peer) {
		error = addr ? name_to_user(&peer->name, addr, len) : -EFAULT;
		socket_put(peer);
	}
	file_put(file);
	return error;
}

/* Returns the value of a numeric option, or -ENOPROTOOPT. */
static int get_option(struct socket *socket, int option)
{
	switch (option) {
	case SO_TYPE:
		return socket->type;
	case SO_ERROR:
		return socket_take_error(socket);
	case SO_SNDBUF:
	case SO_RCVBUF:
		return SOCKET_BUFFER_BYTES;
	case SO_PASSCRED:
		return READ_ONCE(socket->wants_users);
	case SO_ACCEPTCONN:
		return READ_ONCE(socket->listening);
	case SO_DOMAIN:
		return AF_UNIX;
	case SO_REUSEADDR:
	case SO_KEEPALIVE:
	case SO_PROTOCOL:
		return 0;
	default:
		return -ENOPROTOOPT;
	}
}

static int option_to_user(struct socket *socket, int option, void __user *user,
			  u32 __user *user_len)
{
	struct socket_user peer = { 0, (u32)-1, (u32)-1 };
	u32 len, size = sizeof(int);
	void *value;
	int number;

	if (get_user(len, user_len))
		return -EFAULT;
	if ((s32)len < 0)
		return -EINVAL;
	if (option == SO_PEERCRED) {
		if (smp_load_acquire(&socket->peer))
			peer = socket->peer_user;
		value = &peer;
		size = sizeof(peer);
	} else {
		number = get_option(socket, option);
		if (number < 0)
			return number;
		value = &number;
	}
	len = min(len, size);
	if (copy_to_user(user, value, len))
		return -EFAULT;
	return put_user(len, user_len);
}

SYSCALL_DEFINE5(getsockopt, int, fd, int, level, int, option, void __user *, value, u32 __user *,
		len)
{
	struct file *file = get_file(fd);
	int error = -EOPNOTSUPP;

	if (IS_ERR(file))
		return PTR_ERR(file);
	if (level == SOL_SOCKET)
		error = option_to_user(file->private, option, value, len);
	file_put(file);
	return error;
}

static int set_option(struct socket *socket, int option, int value)
{
	switch (option) {
	case SO_PASSCRED:
		WRITE_ONCE(socket->wants_users, value);
		return 0;
	case SO_REUSEADDR: /* has no effect here */
	case SO_KEEPALIVE:
	case SO_SNDBUF:
	case SO_RCVBUF:
		return 0;
	default:
		return -ENOPROTOOPT;
	}
}

SYSCALL_DEFINE5(setsockopt, int, fd, int, level, int, option, const int __user *, user, u32, len)
{
	struct file *file = get_file(fd);
	int value, error = -EOPNOTSUPP;

	if (IS_ERR(file))
		return PTR_ERR(file);
	if (level == SOL_SOCKET) {
		error = len < sizeof(value) ? -EINVAL : get_user(value, user);
		if (!error)
			error = set_option(file->private, option, value);
	}
	file_put(file);
	return error;
}
