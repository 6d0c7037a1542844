/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FS_SOCKET_H
#define FS_SOCKET_H

/*
 * Declarations for AF_UNIX sockets. Each file uses only those before it: socket_base.c,
 * socket_names.c, socket_rights.c (files in flight), socket_queue.c (bytes in flight),
 * socket_datagram.c (messages, and the peers of datagram sockets), socket_data.c (streams),
 * socket.c (connections) and the system calls. Process context; all functions may sleep.
 */

#include <lego/fs.h>
#include <lego/poll.h>

#define SOCKET_PATH_BYTES 108

#define SOCK_STREAM    1
#define SOCK_DGRAM     2
#define SOCK_RAW       3 /* another name of SOCK_DGRAM in AF_UNIX */
#define SOCK_SEQPACKET 5

/* A path without its NUL, or an abstract name, which begins with a NUL. len 0: no name. */
struct socket_name {
	unsigned int len; /* in struct socket: stored after path, and never changed again */
	char path[SOCKET_PATH_BYTES];
};

/* Linux's struct ucred. */
struct socket_user {
	s32 pid;
	u32 uid, gid;
};

/* Files in flight to another process. Holds a reference to each. */
#define MAX_RIGHTS 253 /* as in Linux */
struct rights {
	atomic_t refs; /* more than one while a receiver peeks */
	/* The receiver, with a reference; NULL until they are in its queue. */
	struct socket *carrier;
	unsigned int nr;
	struct file *files[MAX_RIGHTS];
};

/* Some bytes of a stream, or one whole message. */
#define CHUNK_BYTES	  4000			     /* the most bytes of a stream in one chunk */
#define MAX_MESSAGE_BYTES (SOCKET_BUFFER_BYTES - 32) /* as in Linux */
struct chunk {
	struct list_head node;
	atomic_t refs;	  /* of a message: more than one while a receiver peeks */
	size_t from, len; /* data[from] ... data[len - 1] are not received yet */
	struct socket_user sender;
	struct socket *source; /* the sending socket, with a reference */
	struct rights *rights; /* files that come with the first byte; NULL: none */
	char data[];
};

struct socket {
	/* Held by the file, peers, chunks, files in flight, and calls that use it. */
	atomic_t refs;
	int type; /* SOCK_*; constant */

	struct mutex lock; /* guards this group; some fields are also read without it */
	struct list_head chunks;
	unsigned int nr_chunks; /* in the list */
	size_t held_bytes;	/* memory of these chunks */
	bool read_shut;		/* no more bytes will arrive */
	bool write_shut;	/* no more bytes can be sent */
	bool closed;		/* its file is gone: sending to it fails */
	/* Connected, and not in a backlog; always true for a datagram socket. */
	bool accepted;
	bool wants_users; /* SO_PASSCRED */
	int error;	  /* SO_ERROR */
	/* Woken when bytes or a connection arrive, and at the end. */
	struct wait_queue read_wait;
	/*
	 * Woken when there is room: at the peer, in the backlog, or in a datagram socket's queue.
	 */
	struct wait_queue write_wait;

	/* Guarded by peer_lock in a datagram socket. */
	/* Holds a reference. In other types it is set once, and read without a lock. */
	struct socket *peer;
	/* The datagram sockets that found no room here, linked by peer_node. */
	struct list_head senders;
	struct list_head peer_node;

	/* Guarded by flight_lock. */
	unsigned int nr_flights; /* how many times this socket is in flight */
	unsigned int nr_carried; /* sockets in flight to this one */

	/* Guarded by socket_lock. */
	struct socket_user user, peer_user;
	struct socket_name name;
	/* It owns its name; an accepted socket only has a copy of the listener's. */
	bool bound;
	/* The inode of a bound path, with a reference; its ->private is this socket. */
	struct inode *inode;
	struct socket *next_bound; /* with the same hash of an abstract name */
	bool listening;
	unsigned int max_pending, nr_pending;
	struct list_head pending; /* the backlog: ends not accepted yet, linked by pending_node */
	struct list_head pending_node;
};

/* socket_base.c */
extern struct mutex socket_lock;
struct socket *socket_alloc(int type); /* NULL: no memory */
struct socket *socket_get(struct socket *socket);
void socket_put(struct socket *socket);
struct socket_user socket_current_user(void);
void socket_set_error(struct socket *socket, int error); /* wakes all waiters */
/* Returns a positive errno and clears it; 0: none. */
int socket_take_error(struct socket *socket);
/* Ends receiving, sending or both, sets an error unless it is 0, and wakes all waiters. */
void socket_shut(struct socket *socket, bool read, bool write, int error);
void socket_wake_both(struct socket *socket); /* all readers and writers */

/* socket.c */
extern const struct file_ops socket_ops;
/* Takes over the reference. NULL: no memory. */
struct file *socket_make_file(struct socket *socket, u32 flags);
/* Closes a socket whose file is gone or could not be made. */
void socket_release(struct socket *socket);
/* Makes two connected sockets. Returns 0 or -ENOMEM. */
int socket_pair(int type, struct socket *sockets[2]);
int socket_listen(struct socket *socket, int backlog);
int socket_connect(struct socket *socket, const struct socket_name *name, bool nonblock);
struct socket *socket_accept(struct socket *socket, bool nonblock); /* ERR_PTR */
void socket_shutdown(struct socket *socket, bool read, bool write);

static inline bool socket_is_datagram(const struct socket *socket)
{
	return socket->type == SOCK_DGRAM;
}

/* socket_names.c */
int socket_bind(struct socket *socket, const struct socket_name *name);
/*
 * Removes the socket from the names, so that no look-up finds it. Returns its inode, for the caller
 * to put, or NULL. socket_lock is held.
 */
struct inode *socket_unbind(struct socket *socket);
/* Binds a socket that wants credentials to a name of the kernel's choice, unless it has one. */
int socket_autobind(struct socket *socket);
/* Returns the socket of this type that is bound to the name, with a reference, or ERR_PTR. */
struct socket *socket_find(const struct socket_name *name, int type);

/* socket_calls.c: copy addresses from and to user memory. */
int name_from_user(struct socket_name *name, const void __user *user, u32 len);
int name_to_user(const struct socket_name *name, void __user *user, u32 __user *user_len);

/* socket_data.c */
#define MSG_PEEK     0x2
#define MSG_TRUNC    0x20
#define MSG_DONTWAIT 0x40
#define MSG_WAITALL  0x100
#define MSG_NOSIGNAL 0x4000

#define SOCKET_BUFFER_BYTES 212992 /* limit of the bytes in a socket's queue; Linux's default */
/*
 * Limit of the messages in a datagram socket's queue, as in Linux. It does not apply to messages
 * from the socket's peer or from the socket itself.
 */
#define MAX_MESSAGES 11

/* Data that a receiver gets together with bytes. ancillary_drop() drops its references. */
struct ancillary {
	struct rights *rights; /* NULL: none */
	/* The socket that sent the first bytes; NULL: nothing was received. */
	struct socket *source;
	struct socket_user sender;
	bool truncated; /* the message did not fit into the buffer */
};

void ancillary_drop(struct ancillary *ancillary);
/*
 * Sends all bytes. A datagram socket sends to the name or, if it is NULL, to its peer. *rights are
 * sent with the first bytes, and set to NULL then. Returns the number of bytes, or a negative
 * errno.
 */
ssize_t socket_send(struct socket *socket, struct iov_iter *iter, const struct socket_name *name,
		    struct rights **rights, int flags);
ssize_t socket_receive(struct socket *socket, struct iov_iter *iter, struct ancillary *ancillary,
		       int flags);

/* file_ops */
ssize_t socket_read_user(struct file *file, struct iov_iter *iter);
ssize_t socket_write_user(struct file *file, struct iov_iter *iter);
long socket_file_ioctl(struct file *file, unsigned int command, unsigned long arg);

/* socket_queue.c */
void socket_drop_chunks(struct socket *socket); /* empties its queue */
/* Returns whether the queue of `to` has room for more from `from`. */
bool socket_has_room(const struct socket *from, const struct socket *to);
/* Allocates a chunk, whose sender is the current process. NULL: no memory. */
struct chunk *chunk_alloc(struct socket *source, size_t len);
void chunk_put(struct chunk *chunk); /* the last reference frees it and its rights */
/*
 * Puts the chunk into the queue of `to`, and waits for room. Returns 0; or a negative errno, and
 * the caller still owns the chunk.
 */
int chunk_send(struct socket *socket, struct socket *to, struct chunk *chunk, int flags);
/* Add a chunk before `next` in the socket's queue, and take one out. socket->lock is held. */
void chunk_add(struct socket *socket, struct chunk *chunk, struct list_head *next);
void chunk_remove(struct socket *socket, struct chunk *chunk);

/* socket_rights.c: files in flight */
struct rights *rights_get(struct rights *rights); /* NULL is allowed, also for rights_drop() */
void rights_drop(struct rights *rights);
/*
 * Called when the files go into the queue of `to`, whose lock is held. Returns 0, or -ETOOMANYREFS
 * if there are sockets among them, and `to` is in flight or sockets are in flight to one of them.
 */
int rights_begin_flight(struct rights *rights, struct socket *to);
u64 socket_rights_bytes(struct socket *socket);

/*
 * socket_datagram.c: messages of SOCK_DGRAM and SOCK_SEQPACKET. The results are those of
 * chunk_send() and socket_receive().
 */
int message_send(struct socket *socket, struct chunk *chunk, const struct socket_name *name,
		 int flags);
ssize_t message_receive(struct socket *socket, struct iov_iter *iter, struct ancillary *ancillary,
			int flags);
struct socket *socket_get_peer(struct socket *socket); /* with a reference; NULL: none */
/* Sets the peer of a datagram socket: the destination of its messages without an address. */
int datagram_set_peer(struct socket *socket, struct socket *peer); /* 0 or -EPERM */
bool datagram_may_send(struct socket *socket); /* true if its peer, if any, has room */
/* Wakes pollers of sockets that send to this one, and one sender or all. */
void datagram_wake_senders(struct socket *socket, bool all);

#endif
