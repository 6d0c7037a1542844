/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FS_SOCKET_H
#define FS_SOCKET_H

/*
 * Stream sockets of AF_UNIX: what socket.c (who talks to whom), socket_data.c (what is under way)
 * and the system calls share. Process context; all may sleep.
 */

#include "internal.h"
#include <lego/poll.h>

#define SOCKET_PATH_BYTES 108

/* Bytes of a path, not terminated; an abstract name begins with a NUL. len 0: no name. */
struct socket_name {
	unsigned int len;
	char path[SOCKET_PATH_BYTES];
};

/* Linux's struct ucred. */
struct socket_user {
	s32 pid;
	u32 uid, gid;
};

/* Files under way to another process, with references. */
#define MAX_RIGHTS 253 /* as in Linux */
struct rights {
	unsigned int nr;
	struct file *files[MAX_RIGHTS];
};

/* A piece of what was sent. */
#define CHUNK_BYTES 4000
struct chunk {
	struct list_head node;
	size_t from, len; /* what was not received yet: data[from] ... data[len - 1] */
	struct socket_user sender;
	struct rights *rights; /* come with the first byte; NULL: none */
	char data[];
};

struct socket {
	atomic_t refs; /* of the file, the peer, and who waits to connect */

	struct mutex lock; /* guards this group; some are read without */
	struct list_head chunks;
	size_t held_bytes;	      /* in chunks */
	bool read_shut;		      /* nothing more comes */
	bool write_shut;	      /* nothing more can be sent */
	bool closed;		      /* nobody will receive */
	bool accepted;		      /* or needs not be */
	bool wants_users;	      /* SO_PASSCRED */
	int error;		      /* SO_ERROR */
	struct wait_queue read_wait;  /* something came, or a connection */
	struct wait_queue write_wait; /* there is room, at the peer or in the backlog */

	/* Guarded by socket_lock. */
	struct socket *peer; /* with a reference, set once; read without the lock */
	struct socket_user user, peer_user;
	struct socket_name name;
	struct inode *inode; /* bound to it, with a reference */
	struct list_head bound_node;
	bool listening;
	unsigned int max_pending, nr_pending;
	struct list_head pending; /* connected, not accepted: their pending_node */
	struct list_head pending_node;
};

/* socket.c */
extern const struct file_ops socket_ops;
struct socket *socket_alloc(void); /* NULL: no memory */
void socket_put(struct socket *socket);
struct file *socket_make_file(struct socket *socket, u32 flags); /* takes over; NULL: no memory */
void socket_release(struct socket *socket); /* its file is gone, or there will be none */
int socket_pair(struct socket *sockets[2]); /* connected. 0 or -ENOMEM */
int socket_bind(struct socket *socket, const struct socket_name *name);
int socket_listen(struct socket *socket, int backlog);
int socket_connect(struct socket *socket, const struct socket_name *name, bool nonblock);
struct socket *socket_accept(struct socket *socket, bool nonblock); /* ERR_PTR */
void socket_shutdown(struct socket *socket, bool read, bool write);
struct socket_user socket_current_user(void);

/* socket_data.c */
#define MSG_PEEK     0x2
#define MSG_DONTWAIT 0x40
#define MSG_WAITALL  0x100
#define MSG_NOSIGNAL 0x4000

/* Sent along with bytes: descriptors and credentials. */
struct ancillary {
	struct rights *rights; /* the receiver's from now on */
	struct socket_user sender;
};

void rights_drop(struct rights *rights); /* NULL is allowed */
/* Sends all; rights pass to the first bytes, and are NULL then. Bytes, or a negative errno. */
ssize_t socket_send(struct socket *socket, struct iov_iter *iter, struct rights **rights,
		    int flags);
ssize_t socket_receive(struct socket *socket, struct iov_iter *iter, struct ancillary *ancillary,
		       int flags);
void socket_drop_chunks(struct socket *socket); /* nobody receives any more */
u64 socket_rights_bytes(struct socket *socket);
bool socket_has_room(const struct socket *socket);

/* file_ops */
ssize_t socket_file_read(struct file *file, void *buf, size_t n, u64 pos);
ssize_t socket_file_read_more(struct file *file, void *buf, size_t n);
ssize_t socket_file_write(struct file *file, const void *buf, size_t n, u64 pos);
long socket_file_ioctl(struct file *file, unsigned int command, unsigned long arg);

#endif
