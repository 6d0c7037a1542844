/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FS_SOCKET_H
#define FS_SOCKET_H

/*
 * Sockets of AF_UNIX: what socket.c (connections), socket_names.c, socket_data.c (bytes under
 * way), socket_rights.c (files in flight), socket_message.c (messages, and the peers of datagram
 * sockets) and the system calls share. Process context; all may sleep.
 */

#include "internal.h"
#include <lego/poll.h>

#define SOCKET_PATH_BYTES 108

#define SOCK_STREAM    1
#define SOCK_DGRAM     2
#define SOCK_RAW       3 /* another name of SOCK_DGRAM in AF_UNIX */
#define SOCK_SEQPACKET 5

/* Bytes of a path, not terminated; an abstract name begins with a NUL. len 0: no name. */
struct socket_name {
	unsigned int len; /* of a socket: set last, and once */
	char path[SOCKET_PATH_BYTES];
};

/* Linux's struct ucred. */
struct socket_user {
	s32 pid;
	u32 uid, gid;
};

/* Files in flight to another process, with references. */
#define MAX_RIGHTS 253 /* as in Linux */
struct rights {
	atomic_t refs;		/* more than one while a receiver peeks */
	struct socket *carrier; /* whose queue they are in, with a reference; NULL before */
	unsigned int nr;
	struct file *files[MAX_RIGHTS];
};

/* A piece of a stream, or a message. */
#define CHUNK_BYTES	  4000			     /* the most of a stream in one */
#define MAX_MESSAGE_BYTES (SOCKET_BUFFER_BYTES - 32) /* as in Linux */
struct chunk {
	struct list_head node;
	atomic_t refs;	  /* of a message: more than one while a receiver peeks */
	size_t from, len; /* what was not received yet: data[from] ... data[len - 1] */
	struct socket_user sender;
	struct socket *source; /* that it was sent from, with a reference */
	struct rights *rights; /* come with the first byte; NULL: none */
	char data[];
};

struct socket {
	atomic_t refs; /* of the file, the peers, chunks, and who waits to connect */
	int type;      /* SOCK_*; constant */

	struct mutex lock; /* guards this group; some are read without */
	struct list_head chunks;
	unsigned int nr_chunks;	      /* of them */
	size_t held_bytes;	      /* in them */
	bool read_shut;		      /* nothing more comes */
	bool write_shut;	      /* nothing more can be sent */
	bool closed;		      /* nobody will receive */
	bool accepted;		      /* or needs not be */
	bool wants_users;	      /* SO_PASSCRED */
	int error;		      /* SO_ERROR */
	struct wait_queue read_wait;  /* something came, or a connection */
	struct wait_queue write_wait; /* there is room: at the peer, in the backlog, of a datagram
				       * socket also its own */

	/* Of a datagram socket guarded by peer_lock. */
	struct socket *peer;	/* with a reference; set once in others, and read without a lock */
	struct list_head peers; /* whose peer it is: their peer_node */
	struct list_head peer_node;

	/* Guarded by flight_lock. */
	unsigned int nr_flights; /* how often the socket itself is in flight */
	unsigned int nr_carried; /* sockets in flight to this one */

	/* Guarded by socket_lock. */
	struct socket_user user, peer_user;
	struct socket_name name;
	bool bound;	     /* name is its own, not that of the socket which listened */
	struct inode *inode; /* with the name, with a reference; its ->private is the socket */
	struct socket *next_bound; /* with the same hash of an abstract name */
	bool listening;
	unsigned int max_pending, nr_pending;
	struct list_head pending; /* connected, not accepted: their pending_node */
	struct list_head pending_node;
};

/* socket.c */
extern struct mutex socket_lock;
extern const struct file_ops socket_ops;
struct socket *socket_alloc(int type); /* NULL: no memory */
struct socket *socket_get(struct socket *socket);
void socket_put(struct socket *socket);
struct file *socket_make_file(struct socket *socket, u32 flags); /* takes over; NULL: no memory */
void socket_release(struct socket *socket);	      /* its file is gone, or there will be none */
int socket_pair(int type, struct socket *sockets[2]); /* connected. 0 or -ENOMEM */
int socket_listen(struct socket *socket, int backlog);
int socket_connect(struct socket *socket, const struct socket_name *name, bool nonblock);
struct socket *socket_accept(struct socket *socket, bool nonblock); /* ERR_PTR */
void socket_shutdown(struct socket *socket, bool read, bool write);
void socket_set_error(struct socket *socket, int error); /* wakes those who wait */
int socket_take_error(struct socket *socket);		 /* 0 or an errno: told once */
struct socket_user socket_current_user(void);

static inline bool socket_is_datagram(const struct socket *socket)
{
	return socket->type == SOCK_DGRAM;
}

/* socket_names.c */
int socket_bind(struct socket *socket, const struct socket_name *name);
/* Nobody finds the socket any more. Returns the inode, to be put. socket_lock is held. */
struct inode *socket_unbind(struct socket *socket);
/* Binds a socket that wants credentials to a name of the kernel's choice, unless it has one. */
int socket_autobind(struct socket *socket);
/* The socket of a type that has the name, with a reference, or ERR_PTR. */
struct socket *socket_find(const struct socket_name *name, int type);

/* socket_calls.c: addresses as the user gives and gets them. */
int name_from_user(struct socket_name *name, const void __user *user, u32 len);
int name_to_user(const struct socket_name *name, void __user *user, u32 __user *user_len);

/* socket_data.c */
#define MSG_PEEK     0x2
#define MSG_TRUNC    0x20
#define MSG_DONTWAIT 0x40
#define MSG_WAITALL  0x100
#define MSG_NOSIGNAL 0x4000

#define SOCKET_BUFFER_BYTES 212992 /* may wait at a socket; the default of Linux */
/* May wait at a datagram socket, as in Linux, of those that are not its peer. */
#define MAX_MESSAGES 11

/* Received along with bytes. ancillary_drop() gives back what it holds. */
struct ancillary {
	struct rights *rights; /* NULL: none */
	struct socket *source; /* the first bytes' sender; NULL: nothing was received */
	struct socket_user sender;
	bool truncated; /* the message is longer than what was received of it */
};

void ancillary_drop(struct ancillary *ancillary);
/*
 * Sends all, to a datagram socket's peer if name is NULL; rights pass to the first bytes, and are
 * NULL then. Bytes, or a negative errno.
 */
ssize_t socket_send(struct socket *socket, struct iov_iter *iter, const struct socket_name *name,
		    struct rights **rights, int flags);
ssize_t socket_receive(struct socket *socket, struct iov_iter *iter, struct ancillary *ancillary,
		       int flags);
void socket_drop_chunks(struct socket *socket); /* all that was sent to it */
/* Whether bytes that are sent from one socket may wait at another. */
bool socket_has_room(const struct socket *from, const struct socket *to);

void chunk_put(struct chunk *chunk); /* and its rights */
/* Hands it over, waiting for room. 0, or a negative errno; then it is still the caller's. */
int chunk_send(struct socket *socket, struct socket *to, struct chunk *chunk, int flags);
/* Puts a chunk before another one of the socket, and takes one off. The socket's lock is held. */
void chunk_add(struct socket *socket, struct chunk *chunk, struct list_head *next);
void chunk_remove(struct socket *socket, struct chunk *chunk);

/* socket_rights.c: files in flight */
struct rights *rights_get(struct rights *rights); /* NULL is allowed, also in the next */
void rights_drop(struct rights *rights);
/*
 * Called when the files go into the queue of `to`, whose lock is held. Returns 0, or -ETOOMANYREFS
 * if there are sockets among them, and `to` is in flight or sockets are in flight to one of them.
 */
int rights_begin_flight(struct rights *rights, struct socket *to);
u64 socket_rights_bytes(struct socket *socket);

/* file_ops */
ssize_t socket_read_user(struct file *file, struct iov_iter *iter);
ssize_t socket_write_user(struct file *file, struct iov_iter *iter);
ssize_t socket_file_write(struct file *file, const void *buf, size_t n, u64 pos);
long socket_file_ioctl(struct file *file, unsigned int command, unsigned long arg);

/* socket_message.c: SOCK_DGRAM and SOCK_SEQPACKET. As chunk_send(), and socket_receive(). */
int message_send(struct socket *socket, struct chunk *chunk, const struct socket_name *name,
		 int flags);
ssize_t message_receive(struct socket *socket, struct iov_iter *iter, struct ancillary *ancillary,
			int flags);
struct socket *socket_get_peer(struct socket *socket); /* with a reference; NULL: none */
/* Of datagram sockets: to this peer go its messages without an address. NULL: to none. */
int datagram_set_peer(struct socket *socket, struct socket *peer); /* 0 or -EPERM */
bool datagram_may_send(struct socket *socket); /* without waiting: its peer, if any, has room */
void datagram_wake_senders(struct socket *socket);

#endif
