// SPDX-License-Identifier: BSD-2-Clause
/*
 * The system calls that send and receive, with ancillary data: files (SCM_RIGHTS) and the sender's
 * IDs (SCM_CREDENTIALS).
 */

#include "fd.h"
#include "iov.h"
#include "poll.h"
#include "socket.h"

#include <lego/errno.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

#define MSG_OOB		 0x1
#define MSG_CTRUNC	 0x8
#define MSG_WAITFORONE	 0x10000
#define MSG_CMSG_CLOEXEC 0x40000000

#define SOL_SOCKET	1
#define SCM_RIGHTS	1
#define SCM_CREDENTIALS 2

#define MAX_CONTROL_BYTES   4096
#define MAX_MESSAGES_A_CALL 1024U /* of sendmmsg() */

/* Linux's layouts. */
struct msghdr {
	void __user *name;
	u32 name_len;
	u32 pad;
	struct iovec __user *iov;
	u64 nr_iov;
	char __user *control;
	u64 control_len;
	u32 flags;
	u32 pad2;
};

struct mmsghdr {
	struct msghdr msg;
	u32 len; /* out: bytes of the message */
	u32 pad;
};

struct cmsghdr {
	u64 len; /* including this header */
	s32 level;
	s32 type;
};

BUILD_BUG_ON(sizeof(struct msghdr) != 56);
BUILD_BUG_ON(sizeof(struct mmsghdr) != 64);

/* Sending */

static int add_right(struct rights *rights, int fd)
{
	struct file *file = fd_get_any(fd);

	if (!file)
		return -EBADF;
	rights->files[rights->nr++] = file;
	return 0;
}

static int take_rights(struct rights **rights, const int *fds, size_t nr)
{
	int error = 0;

	if (!*rights) {
		*rights = kzalloc(sizeof(**rights));
		if (!*rights)
			return -ENOMEM;
		atomic_set(&(*rights)->refs, 1);
	}
	if (nr > MAX_RIGHTS - (*rights)->nr)
		return -EINVAL;
	for (size_t i = 0; i < nr && !error; i++)
		error = add_right(*rights, fds[i]);
	return error;
}

/*
 * Checks the IDs that the sender passes: they must be its own, even for root. Every message carries
 * these anyway.
 */
static int check_user(const struct socket_user *user, size_t len)
{
	struct socket_user own = socket_current_user();

	if (len != sizeof(*user))
		return -EINVAL;
	return user->pid == own.pid && user->uid == own.uid && user->gid == own.gid ? 0 : -EPERM;
}

static int parse_control(const char *control, size_t size, struct rights **rights)
{
	int error = 0;

	for (size_t at = 0; !error && at + sizeof(struct cmsghdr) <= size;) {
		struct cmsghdr header;
		const char *data = control + at + sizeof(header);
		size_t len;

		memcpy(&header, control + at, sizeof(header));
		if (header.len < sizeof(header) || header.len > size - at)
			return -EINVAL;
		len = header.len - sizeof(header);
		at += ALIGN_UP(header.len, sizeof(u64));
		if (header.level != SOL_SOCKET)
			continue;
		if (header.type == SCM_RIGHTS)
			error = take_rights(rights, (const int *)data, len / sizeof(int));
		else if (header.type == SCM_CREDENTIALS)
			error = check_user((const struct socket_user *)data, len);
		else
			error = -EINVAL;
	}
	return error;
}

static int control_from_user(const struct msghdr *msg, struct rights **rights)
{
	char *control;
	int error;

	if (!msg->control_len)
		return 0;
	if (msg->control_len > MAX_CONTROL_BYTES)
		return -ENOBUFS;
	control = kmalloc(msg->control_len);
	if (!control)
		return -ENOMEM;
	error = copy_from_user(control, msg->control, msg->control_len);
	if (!error)
		error = parse_control(control, msg->control_len, rights);
	kfree(control);
	return error;
}

/*
 * Returns the file of a socket for a send or receive, or ERR_PTR. Adds its O_NONBLOCK to the flags.
 */
static struct file *get_socket(int fd, int *flags)
{
	struct file *file = fd_get_with(fd, &socket_ops);

	if (IS_ERR(file))
		return file == ERR_PTR(-EINVAL) ? ERR_PTR(-ENOTSOCK) : file;
	if (READ_ONCE(file->flags) & O_NONBLOCK)
		*flags |= MSG_DONTWAIT;
	if (!(*flags & MSG_OOB))
		return file;
	file_put(file);
	return ERR_PTR(-EOPNOTSUPP);
}

/* Stores the destination of a message in *name. NULL: the message has none. */
static const struct socket_name *get_address(const struct socket *socket, const struct msghdr *msg,
					     struct socket_name *name)
{
	int error;

	if (!msg->name || !msg->name_len)
		return NULL;
	if (socket->type == SOCK_STREAM)
		return ERR_PTR(READ_ONCE(socket->peer) ? -EISCONN : -EOPNOTSUPP);
	error = name_from_user(name, msg->name, msg->name_len);
	return error ? ERR_PTR(error) : name;
}

static ssize_t send_message(struct socket *socket, const struct msghdr *msg,
			    const struct iovec *iov, int flags)
{
	struct rights *rights = NULL;
	struct socket_name buf;
	const struct socket_name *name = get_address(socket, msg, &buf);
	struct iov_iter iter;
	ssize_t ret;

	if (IS_ERR(name))
		return PTR_ERR(name);
	iov_iter_init(&iter, iov, msg->nr_iov);
	ret = control_from_user(msg, &rights);
	if (!ret)
		ret = socket_send(socket, &iter, name, &rights, flags);
	rights_drop(rights);
	return ret;
}

/* Copies a message's head. Returns a copy of its parts, which the caller frees, or an error. */
static struct iovec *message_from_user(struct msghdr *msg, struct msghdr __user *user_msg)
{
	if (get_user(*msg, user_msg))
		return ERR_PTR(-EFAULT);
	return iovec_from_user(msg->iov, msg->nr_iov);
}

static ssize_t send_user_message(struct socket *socket, struct msghdr __user *user_msg, int flags)
{
	struct msghdr msg;
	struct iovec *iov = message_from_user(&msg, user_msg);
	ssize_t ret;

	if (IS_ERR(iov))
		return PTR_ERR(iov);
	ret = send_message(socket, &msg, iov, flags);
	kfree(iov);
	return ret;
}

SYSCALL_DEFINE6(sendto, int, fd, void __user *, buf, size_t, n, int, flags, const void __user *,
		addr, u32, addr_len)
{
	struct iovec iov = { buf, n };
	struct msghdr msg = { .name = (void __user *)addr, .name_len = addr_len, .nr_iov = 1 };
	struct file *file;
	ssize_t ret;

	if (!access_ok(buf, n))
		return -EFAULT;
	file = get_socket(fd, &flags);
	if (IS_ERR(file))
		return PTR_ERR(file);
	ret = send_message(file->private, &msg, &iov, flags);
	file_put(file);
	return ret;
}

/* Receiving */

/* The unused rest of the user's control buffer. */
struct control {
	char __user *at;
	u64 left;
	u32 flags; /* MSG_CTRUNC: something did not fit */
};

static int put_control(struct control *control, int type, const void *data, size_t len)
{
	struct cmsghdr header = { sizeof(header) + len, SOL_SOCKET, type };

	if (control->left < header.len) {
		control->flags |= MSG_CTRUNC;
		return 0;
	}
	if (copy_to_user(control->at, &header, sizeof(header)) ||
	    copy_to_user(control->at + sizeof(header), data, len))
		return -EFAULT;
	len = min(ALIGN_UP(header.len, sizeof(u64)), control->left);
	control->at += len;
	control->left -= len;
	return 0;
}

/* Installs the files as descriptors, as many as fit, and drops the others. */
static int put_rights(struct control *control, struct rights *rights, bool close_on_exec)
{
	u64 room = control->left > sizeof(struct cmsghdr) ?
			   (control->left - sizeof(struct cmsghdr)) / sizeof(int) :
			   0;
	unsigned int nr = min((u64)rights->nr, room), done = 0;
	int *fds = kmalloc(MAX_RIGHTS * sizeof(*fds)), error = 0;

	while (fds && done < nr) {
		fds[done] = fd_install(rights->files[done], 0, close_on_exec);
		if (fds[done] < 0)
			break;
		file_get(rights->files[done++]); /* the caller drops its own reference */
	}
	if (done < rights->nr)
		control->flags |= MSG_CTRUNC;
	if (done)
		error = put_control(control, SCM_RIGHTS, fds, done * sizeof(*fds));
	kfree(fds);
	return error;
}

static int control_to_user(struct socket *socket, struct control *control,
			   const struct ancillary *ancillary, int flags)
{
	int error = 0;

	if (READ_ONCE(socket->wants_users))
		error = put_control(control, SCM_CREDENTIALS, &ancillary->sender,
				    sizeof(ancillary->sender));
	if (!error && ancillary->rights)
		error = put_rights(control, ancillary->rights, flags & MSG_CMSG_CLOEXEC);
	return error;
}

/* Stores the sender's address, if it is wanted. Its length is 0 if the sender has none. */
static int put_source(const struct ancillary *ancillary, void __user *user, u32 __user *user_len)
{
	if (!user)
		return 0;
	if (!ancillary->source || !smp_load_acquire(&ancillary->source->name.len))
		return put_user(0u, user_len);
	return name_to_user(&ancillary->source->name, user, user_len);
}

static ssize_t receive_message(struct socket *socket, struct msghdr __user *user_msg,
			       const struct msghdr *msg, const struct iovec *iov, int flags)
{
	struct control control = { msg->control, msg->control_len, flags & MSG_CMSG_CLOEXEC };
	struct ancillary ancillary = { 0 };
	struct iov_iter iter;
	ssize_t ret;
	int error = 0;

	iov_iter_init(&iter, iov, msg->nr_iov);
	ret = socket_receive(socket, &iter, &ancillary, flags);
	if (ancillary.source)
		error = control_to_user(socket, &control, &ancillary, flags);
	if (ancillary.truncated)
		control.flags |= MSG_TRUNC;
	if (ret >= 0 && !error)
		error = put_source(&ancillary, msg->name, &user_msg->name_len);
	ancillary_drop(&ancillary);
	if (ret < 0)
		return ret;
	if (error || put_user(msg->control_len - control.left, &user_msg->control_len) ||
	    put_user(control.flags, &user_msg->flags))
		return error ?: -EFAULT;
	return ret;
}

static ssize_t receive_user_message(struct socket *socket, struct msghdr __user *user_msg,
				    int flags)
{
	struct msghdr msg;
	struct iovec *iov = message_from_user(&msg, user_msg);
	ssize_t ret;

	if (IS_ERR(iov))
		return PTR_ERR(iov);
	ret = receive_message(socket, user_msg, &msg, iov, flags);
	kfree(iov);
	return ret;
}

SYSCALL_DEFINE6(recvfrom, int, fd, void __user *, buf, size_t, n, int, flags, void __user *, addr,
		u32 __user *, addr_len)
{
	struct iovec iov = { buf, n };
	struct ancillary ancillary = { 0 };
	struct iov_iter iter;
	struct file *file;
	ssize_t ret;
	int error = 0;

	if (!access_ok(buf, n))
		return -EFAULT;
	file = get_socket(fd, &flags);
	if (IS_ERR(file))
		return PTR_ERR(file);
	iov_iter_init(&iter, &iov, 1);
	ret = socket_receive(file->private, &iter, &ancillary, flags);
	file_put(file);
	if (ret >= 0)
		error = put_source(&ancillary, addr, addr_len);
	ancillary_drop(&ancillary);
	return error ?: ret;
}

/* One message, or several */

typedef ssize_t message_fn(struct socket *socket, struct msghdr __user *msg, int flags);

static ssize_t do_one(int fd, struct msghdr __user *msg, int flags, message_fn *move)
{
	struct file *file = get_socket(fd, &flags);
	ssize_t ret;

	if (IS_ERR(file))
		return PTR_ERR(file);
	ret = move(file->private, msg, flags);
	file_put(file);
	return ret;
}

SYSCALL_DEFINE3(sendmsg, int, fd, struct msghdr __user *, msg, int, flags)
{
	return do_one(fd, msg, flags, send_user_message);
}

SYSCALL_DEFINE3(recvmsg, int, fd, struct msghdr __user *, msg, int, flags)
{
	return do_one(fd, msg, flags, receive_user_message);
}

/*
 * Sends or receives messages. Returns their number. The deadline is checked only after a message,
 * so the last one may come later. *error says why it stopped, or is 0.
 */
static long move_messages(struct socket *socket, struct mmsghdr __user *msgs, u32 nr, int flags,
			  message_fn *move, u64 deadline_ns, int *error)
{
	bool wait_for_one = flags & MSG_WAITFORONE;
	long done;

	*error = 0;
	flags &= ~MSG_WAITFORONE;
	for (done = 0; done < nr;) {
		ssize_t ret = move(socket, &msgs[done].msg, flags);

		if (ret >= 0 && put_user((u32)ret, &msgs[done].len))
			ret = -EFAULT;
		if (ret < 0) {
			*error = ret;
			break;
		}
		done++;
		if (wait_for_one)
			flags |= MSG_DONTWAIT;
		if (deadline_ns != TIME_NEVER_NS && clock_monotonic_ns() >= deadline_ns)
			break;
		if (task_interrupted(current))
			break;
		cond_resched();
	}
	return done;
}

SYSCALL_DEFINE4(sendmmsg, int, fd, struct mmsghdr __user *, msgs, u32, nr, int, flags)
{
	struct file *file = get_socket(fd, &flags);
	long done;
	int error;

	if (IS_ERR(file))
		return PTR_ERR(file);
	done = move_messages(file->private, msgs, min(nr, MAX_MESSAGES_A_CALL), flags,
			     send_user_message, TIME_NEVER_NS, &error);
	file_put(file);
	return done ?: error;
}

/* An error after some messages is returned by the next call. */
SYSCALL_DEFINE5(recvmmsg, int, fd, struct mmsghdr __user *, msgs, u32, nr, int, flags,
		struct timespec64 __user *, timeout)
{
	struct socket *socket;
	struct file *file;
	u64 deadline_ns;
	long done;
	int error = poll_deadline(timeout, &deadline_ns);

	if (error)
		return error;
	file = get_socket(fd, &flags);
	if (IS_ERR(file))
		return PTR_ERR(file);
	socket = file->private;
	done = move_messages(socket, msgs, nr, flags, receive_user_message, deadline_ns, &error);
	if (done && error && error != -EAGAIN && error != -ERESTARTSYS)
		socket_set_error(socket, -error);
	file_put(file);
	if (done && timeout)
		poll_return_time(timeout, deadline_ns);
	return done ?: error;
}
