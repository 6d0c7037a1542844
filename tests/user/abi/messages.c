// SPDX-License-Identifier: BSD-2-Clause
/*
 * AF_UNIX sockets that keep message boundaries, SOCK_DGRAM and SOCK_SEQPACKET: boundaries,
 * addresses, peers, limits, ancillary data, several messages in a call.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "run.h"

static int ends[2];
static char block[300000], other[300000];

static void make_pair(int type)
{
	CHECK(!socketpair(AF_UNIX, type, 0, ends));
}

static void close_pair(void)
{
	close(ends[0]);
	close(ends[1]);
}

static int poll_now(int fd)
{
	struct pollfd one = { .fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP | POLLPRI };

	return poll(&one, 1, 0) >= 0 ? one.revents : -1;
}

/* An abstract name of this process. */
static socklen_t set_name(struct sockaddr_un *name, char which)
{
	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	return offsetof(struct sockaddr_un, sun_path) + 1 +
	       snprintf(name->sun_path + 1, 100, "messages.%d.%c", getpid(), which);
}

static int bound_socket(int type, char which)
{
	struct sockaddr_un name;
	socklen_t len = set_name(&name, which);
	int fd = socket(AF_UNIX, type, 0);

	CHECK(fd >= 0 && !bind(fd, (void *)&name, len));
	return fd;
}

static int connect_socket(int fd, char which)
{
	struct sockaddr_un name;
	socklen_t len = set_name(&name, which);

	return connect(fd, (void *)&name, len);
}

static ssize_t send_to(int fd, const char *text, char which)
{
	struct sockaddr_un name;
	socklen_t len = set_name(&name, which);

	return sendto(fd, text, strlen(text), MSG_DONTWAIT, (void *)&name, len);
}

TEST(boundaries)
{
	static const int types[] = { SOCK_DGRAM, SOCK_SEQPACKET, SOCK_RAW };

	for (int i = 0; i < 3; i++) {
		struct iovec iov[2] = { { "abc", 3 }, { "defg", 4 } };
		int dgram = types[i] != SOCK_SEQPACKET, nr, value;
		socklen_t len = sizeof(value);
		char buf[16] = "";

		make_pair(types[i]);
		CHECK(!getsockopt(ends[0], SOL_SOCKET, SO_TYPE, &value, &len));
		CHECK(value == (dgram ? SOCK_DGRAM : SOCK_SEQPACKET));
		CHECK(poll_now(ends[0]) == POLLOUT && write(ends[0], "hello", 5) == 5);
		CHECK(write(ends[0], "", 0) == 0 && writev(ends[0], iov, 2) == 7);
		CHECK(poll_now(ends[1]) == (POLLIN | POLLOUT));
		CHECK(!ioctl(ends[1], FIONREAD, &nr) && nr == (dgram ? 5 : 12));
		CHECK(recv(ends[1], buf, 16, MSG_PEEK) == 5 && read(ends[1], buf, 0) == 0);
		CHECK(recv(ends[1], buf, 2, MSG_PEEK | MSG_TRUNC) == 5);
		CHECK(read(ends[1], buf, 16) == 5 && !memcmp(buf, "hello", 5));
		CHECK(read(ends[1], buf, 16) == 0 && read(ends[1], buf, 3) == 3);
		CHECK(!memcmp(buf, "abc", 3)); /* the rest is lost */
		CHECK(recv(ends[1], buf, 16, MSG_DONTWAIT) == -1 && errno == EAGAIN);
		CHECK(send(ends[1], "12345678", 8, 0) == 8 &&
		      recv(ends[0], buf, 3, MSG_TRUNC) == 8);
		CHECK(send(ends[1], "x", 1, MSG_OOB) == -1 && errno == EOPNOTSUPP);
		CHECK_ERROR(EFAULT, SYS_write, ends[0], 8, 1);
		CHECK(poll_now(ends[1]) == POLLOUT);
		close_pair();
	}
}

TEST(large)
{
	int size;
	socklen_t len = sizeof(size);

	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = i * 7 + i / 1000;
	for (int i = 0; i < 2; i++) {
		ssize_t nr, total = 0;

		make_pair(i ? SOCK_SEQPACKET : SOCK_DGRAM);
		CHECK(!fcntl(ends[0], F_SETFL, O_NONBLOCK));
		CHECK(!getsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, &len) && size > 100000);
		CHECK(send(ends[0], block, size + 1, 0) == -1 && errno == EMSGSIZE);
		CHECK(send(ends[0], block, size - 32, 0) == size - 32);
		CHECK(recv(ends[1], other, sizeof(other), 0) == size - 32);
		CHECK(!memcmp(block, other, size - 32));
		/* A write stores as much as there is room for. */
		while ((nr = write(ends[0], block, 10000)) > 0)
			total += nr;
		CHECK(nr == -1 && errno == EAGAIN && total >= 100000 && total <= 2 * size);
		while ((nr = recv(ends[1], other, 20000, MSG_DONTWAIT)) > 0)
			total -= nr;
		CHECK(errno == EAGAIN && total == 0 && poll_now(ends[0]) == POLLOUT);
		close_pair();
	}
}

TEST(addresses)
{
	int a = bound_socket(SOCK_DGRAM, 'a'), b = bound_socket(SOCK_DGRAM, 'b');
	int unnamed = socket(AF_UNIX, SOCK_DGRAM, 0), seq = bound_socket(SOCK_SEQPACKET, 's');
	struct sockaddr_un name, got;
	socklen_t len, got_len = sizeof(got);
	struct iovec iov = { block, 100 };
	struct msghdr msg = {
		.msg_name = &got, .msg_namelen = sizeof(got), .msg_iov = &iov, .msg_iovlen = 1
	};

	CHECK(poll_now(a) == POLLOUT && send(a, "x", 1, 0) == -1 && errno == ENOTCONN);
	CHECK(send_to(a, "to b", 'b') == 4 && send_to(unnamed, "!", 'b') == 1);
	CHECK(recvfrom(b, block, 100, 0, (void *)&got, &got_len) == 4);
	len = set_name(&name, 'a');
	CHECK(got_len == len && !memcmp(&name, &got, len));
	got_len = sizeof(got);
	CHECK(recvfrom(b, block, 100, 0, (void *)&got, &got_len) == 1 && got_len == 0);
	CHECK(send_to(a, "to b", 'b') == 4 && recvmsg(b, &msg, 0) == 4);
	CHECK(msg.msg_namelen == len && !memcmp(&name, &got, len) && !msg.msg_flags);
	iov.iov_len = 2;
	CHECK(send_to(a, "to b", 'b') == 4 && recvmsg(b, &msg, 0) == 2);
	CHECK(msg.msg_flags == MSG_TRUNC);
	CHECK(send_to(a, "x", 'n') == -1 && errno == ECONNREFUSED);
	/* Each type has abstract names of its own; those in the file system are everybody's. */
	CHECK(send_to(a, "x", 's') == -1 && errno == ECONNREFUSED && !close(seq));
	seq = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	name.sun_family = AF_UNIX;
	strcpy(name.sun_path, check_file_name());
	unlink(check_file_name());
	CHECK(!bind(seq, (void *)&name, sizeof(name)));
	CHECK(sendto(a, "x", 1, 0, (void *)&name, sizeof(name)) == -1 && errno == EPROTOTYPE);
	CHECK(connect(a, (void *)&name, sizeof(name)) == -1 && errno == EPROTOTYPE);
	CHECK(!unlink(check_file_name()) && !close(seq));
	CHECK(sendto(a, "x", 1, 0, (void *)&name, sizeof(name)) == -1 && errno == ENOENT);
	CHECK_ERROR(EINVAL, SYS_sendto, a, "x", 1, 0, &name, 2);
	CHECK_ERROR(EINVAL, SYS_sendto, a, "x", 1, 0, &name, 111);
	CHECK_ERROR(EFAULT, SYS_sendto, a, "x", 1, 0, 8, 10);
	name.sun_family = AF_INET;
	CHECK_ERROR(EINVAL, SYS_sendto, a, "x", 1, 0, &name, 20);
	CHECK(listen(a, 1) == -1 && errno == EOPNOTSUPP);
	CHECK(accept(a, NULL, NULL) == -1 && errno == EOPNOTSUPP);
	close(a);
	close(b);
	close(unnamed);
}

TEST(peers)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	int a = bound_socket(SOCK_DGRAM, 'a'), b = bound_socket(SOCK_DGRAM, 'b');
	int c = bound_socket(SOCK_DGRAM, 'c');
	struct sockaddr_un name;
	socklen_t len = sizeof(name);
	struct ucred user;
	char buf[16];

	CHECK(getpeername(a, (void *)&name, &len) == -1 && errno == ENOTCONN);
	CHECK(!connect_socket(a, 'b') && write(a, "one", 3) == 3);
	CHECK(!getpeername(a, (void *)&name, &len) && name.sun_path[len - 3] == 'b');
	len = sizeof(user);
	CHECK(!getsockopt(a, SOL_SOCKET, SO_PEERCRED, &user, &len));
	CHECK(user.pid == 0 && user.uid == (uid_t)-1 && user.gid == (gid_t)-1);
	/* A socket with a peer receives only from the peer, but may send to any socket. */
	CHECK(send_to(c, "x", 'a') == -1 && errno == EPERM);
	CHECK(connect_socket(c, 'a') == -1 && errno == EPERM);
	CHECK(send_to(a, "two", 'c') == 3 && recv(c, buf, 16, 0) == 3);
	CHECK(send_to(b, "yes", 'a') == 3 && recv(a, buf, 16, 0) == 3);
	CHECK(recv(b, buf, 16, 0) == 3 && !memcmp(buf, "one", 3));
	/*
	 * Two sockets are each other's peer. When one of them gets another peer, it loses the
	 * messages from the old peer, which gets an error.
	 */
	CHECK(!connect_socket(b, 'a') && write(b, "lost", 4) == 4 && write(a, "kept", 4) == 4);
	CHECK(!connect_socket(a, 'c') && recv(a, buf, 16, MSG_DONTWAIT) == -1 && errno == EAGAIN);
	CHECK(poll_now(b) & POLLERR && recv(b, buf, 16, 0) == -1 && errno == ECONNRESET);
	CHECK(recv(b, buf, 16, 0) == 4 && !memcmp(buf, "kept", 4));
	CHECK(!connect(a, &none, sizeof(none)) && write(a, "x", 1) == -1 && errno == ENOTCONN);
	/* The peer is closed. */
	CHECK(!connect_socket(a, 'c') && !close(c) && poll_now(a) == POLLOUT);
	CHECK(write(a, "x", 1) == -1 && errno == ECONNREFUSED);
	CHECK(write(a, "x", 1) == -1 && errno == ENOTCONN);
	CHECK(!close(a) && !close(b));
	make_pair(SOCK_DGRAM);
	len = sizeof(user);
	CHECK(!getsockopt(ends[0], SOL_SOCKET, SO_PEERCRED, &user, &len) && user.pid == getpid());
	CHECK(write(ends[0], "last", 4) == 4 && !close(ends[0]));
	CHECK(poll_now(ends[1]) == (POLLIN | POLLOUT) && read(ends[1], buf, 16) == 4);
	CHECK(recv(ends[1], buf, 16, MSG_DONTWAIT) == -1 && errno == EAGAIN && !close(ends[1]));
	/* A socket sends to itself. */
	a = bound_socket(SOCK_DGRAM, 'a');
	CHECK(!connect_socket(a, 'a') && write(a, "me", 2) == 2 && read(a, buf, 16) == 2);
	CHECK(write(a, "me", 2) == 2 && !close(a));
	a = bound_socket(SOCK_DGRAM, 'a'); /* the name is free */
	close(a);
}

TEST(shutdown)
{
	char buf[16];

	make_pair(SOCK_DGRAM);
	CHECK(write(ends[0], "ab", 2) == 2 && !shutdown(ends[1], SHUT_RD));
	CHECK(poll_now(ends[1]) == (POLLIN | POLLOUT | POLLRDHUP));
	CHECK(write(ends[0], "x", 1) == -1 && errno == EPIPE); /* no SIGPIPE */
	CHECK(read(ends[1], buf, 16) == 2 && read(ends[1], buf, 16) == 0);
	CHECK(recv(ends[1], buf, 16, MSG_DONTWAIT) == -1 && errno == EAGAIN);
	CHECK(write(ends[1], "y", 1) == 1 && !shutdown(ends[1], SHUT_WR));
	CHECK(write(ends[1], "y", 1) == -1 && errno == EPIPE && read(ends[0], buf, 16) == 1);
	close_pair();

	make_pair(SOCK_SEQPACKET);
	CHECK(write(ends[0], "ab", 2) == 2 && !shutdown(ends[0], SHUT_WR));
	CHECK(poll_now(ends[1]) == (POLLIN | POLLOUT | POLLRDHUP) && read(ends[1], buf, 16) == 2);
	CHECK(recv(ends[1], buf, 16, MSG_DONTWAIT) == 0 && read(ends[1], buf, 16) == 0);
	CHECK(write(ends[1], "x", 1) == 1 && !close(ends[0]));
	CHECK(read(ends[1], buf, 16) == -1 && errno == ECONNRESET);
	CHECK(read(ends[1], buf, 16) == 0 && !close(ends[1]));
	make_pair(SOCK_SEQPACKET);
	CHECK(write(ends[0], "last", 4) == 4 && !close(ends[0]));
	CHECK(poll_now(ends[1]) == (POLLIN | POLLOUT | POLLRDHUP | POLLHUP));
	CHECK(read(ends[1], buf, 16) == 4 && read(ends[1], buf, 16) == 0);
	CHECK(send(ends[1], "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE && !close(ends[1]));
}

TEST(connections)
{
	int listener = bound_socket(SOCK_SEQPACKET, 's'), client, end, stream;
	struct sockaddr_un got;
	socklen_t len = sizeof(got);
	char buf[16];

	client = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	CHECK(poll_now(client) == (POLLOUT | POLLHUP) && read(client, buf, 1) == -1);
	CHECK(errno == ENOTCONN && write(client, "x", 1) == -1 && errno == ENOTCONN);
	CHECK(connect_socket(client, 's') == -1 && errno == ECONNREFUSED && !listen(listener, 5));
	stream = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK(connect_socket(stream, 's') == -1 && errno == ECONNREFUSED && !close(stream));
	CHECK(!connect_socket(client, 's') && poll_now(listener) == POLLIN);
	CHECK(write(client, "ab", 2) == 2 && write(client, "cd", 2) == 2);
	end = accept(listener, NULL, NULL);
	CHECK(end >= 0 && read(end, buf, 16) == 2 && read(end, buf, 16) == 2);
	CHECK(send_to(end, "an address does not matter", 'x') == 26);
	CHECK(recvfrom(client, block, 100, 0, (void *)&got, &len) == 26);
	CHECK(got.sun_path[len - 3] == 's' && !close(client) && read(end, buf, 16) == 0);
	close(end);
	close(listener);
}

static void *receive_one(void *arg)
{
	char buf[16];

	sleep_ms(20);
	CHECK(read(*(int *)arg, buf, 16) == 1 && buf[0] == 'a');
	return NULL;
}

/* The number of messages in the queue of a socket whose peer is not the sender. */
TEST(queue)
{
	int to = bound_socket(SOCK_DGRAM, 'q'), from = socket(AF_UNIX, SOCK_DGRAM, 0), nr = 0;
	int second = socket(AF_UNIX, SOCK_DGRAM, 0), epfd = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLOUT | EPOLLET };
	pthread_t thread;
	char buf[16];

	CHECK(!connect_socket(from, 'q') && !connect_socket(second, 'q'));
	while (nr < 1000 && send(from, "a", 1, MSG_DONTWAIT) == 1)
		nr++;
	CHECK(nr > 1 && nr < 1000 && errno == EAGAIN);
	CHECK(poll_now(from) == 0 && poll_now(second) == 0);
	CHECK(!epoll_ctl(epfd, EPOLL_CTL_ADD, second, &event));
	CHECK(epoll_wait(epfd, &event, 1, 0) == 0);
	CHECK(!pthread_create(&thread, NULL, receive_one, &to));
	CHECK(write(from, "b", 1) == 1 && !pthread_join(thread, NULL)); /* waits */
	CHECK(poll_now(second) == 0 && read(to, buf, 1) == 1 && poll_now(second) == POLLOUT);
	CHECK(epoll_wait(epfd, &event, 1, 0) == 1 && event.events == EPOLLOUT);
	while (nr-- > 1)
		CHECK(read(to, buf, 1) == 1 && (buf[0] == 'b') == (nr == 1));
	/* A poll for room succeeds when the receiver is closed: the send then fails. */
	while (send(from, "c", 1, MSG_DONTWAIT) == 1)
		continue;
	CHECK(poll_now(from) == 0 && !close(to) && poll_now(from) == POLLOUT);
	CHECK(send(from, "c", 1, 0) == -1 && errno == ECONNREFUSED);
	close(from);
	close(second);
	close(epfd);
}

/* An edge comes also if there was room at the last poll, and the send did not wait. */
TEST(edge)
{
	int to = bound_socket(SOCK_DGRAM, 'e'), from = socket(AF_UNIX, SOCK_DGRAM, 0);
	struct epoll_event event = { .events = EPOLLOUT | EPOLLET };
	int epfd = epoll_create1(0);
	char buf[16];

	CHECK(!epoll_ctl(epfd, EPOLL_CTL_ADD, from, &event) && !connect_socket(from, 'e'));
	CHECK(epoll_wait(epfd, &event, 1, 0) == 1 && event.events == EPOLLOUT);
	for (int i = 0; i < 3; i++) {
		while (send(from, "a", 1, MSG_DONTWAIT) == 1)
			continue;
		CHECK(errno == EAGAIN && epoll_wait(epfd, &event, 1, 0) == 0);
		while (recv(to, buf, 1, MSG_DONTWAIT) == 1)
			continue;
		CHECK(epoll_wait(epfd, &event, 1, 0) == 1 && event.events == EPOLLOUT);
	}
	close(epfd);
	close(from);
	close(to);
}

union control {
	struct cmsghdr header;
	char room[256];
};

TEST(ancillary)
{
	for (int i = 0; i < 2; i++) {
		struct iovec iov = { block, 16 };
		union control control = { 0 };
		struct msghdr msg = { .msg_iov = &iov,
				      .msg_iovlen = 1,
				      .msg_control = &control,
				      .msg_controllen = CMSG_SPACE(sizeof(int)) };
		int pipes[2], fds[2], on = 1, status;
		struct ucred user;
		char buf[16];
		pid_t pid;

		make_pair(i ? SOCK_SEQPACKET : SOCK_DGRAM);
		CHECK(!pipe(pipes));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &pipes[1], sizeof(int));
		CHECK(sendmsg(ends[0], &msg, 0) == 16 && write(ends[0], "x", 1) == 1);
		close(pipes[1]);
		/* A peek at the message gives a descriptor, too. */
		for (int k = 0; k < 2; k++) {
			msg.msg_controllen = sizeof(control);
			CHECK(recvmsg(ends[1], &msg, k ? 0 : MSG_PEEK) == 16);
			CHECK(msg.msg_controllen == CMSG_SPACE(sizeof(int)));
			memcpy(&fds[k], CMSG_DATA(&control.header), sizeof(int));
		}
		CHECK(fds[0] != fds[1] && write(fds[0], "1", 1) == 1 && write(fds[1], "2", 1) == 1);
		CHECK(!close(fds[0]) && !close(fds[1]) && read(pipes[0], buf, 16) == 2);
		CHECK(read(pipes[0], buf, 16) == 0 && !close(pipes[0]) &&
		      read(ends[1], buf, 16) == 1);

		CHECK(!setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)));
		pid = fork_child();
		if (!pid) {
			CHECK(write(ends[0], "", 0) == 0);
			child_exit(0);
		}
		msg.msg_controllen = sizeof(control);
		CHECK(recvmsg(ends[1], &msg, 0) == 0);
		CHECK(control.header.cmsg_type == SCM_CREDENTIALS);
		memcpy(&user, CMSG_DATA(&control.header), sizeof(user));
		CHECK(user.pid == pid && user.uid == geteuid() && user.gid == getegid());
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
		close_pair();
	}
	{
		/* A sender with SO_PASSCRED gets a name of its own. */
		int to = bound_socket(SOCK_DGRAM, 'a'), from = socket(AF_UNIX, SOCK_DGRAM, 0),
		    on = 1;
		struct sockaddr_un got;
		socklen_t len = sizeof(got);

		CHECK(!setsockopt(from, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)));
		CHECK(send_to(from, "x", 'a') == 1);
		CHECK(recvfrom(to, block, 16, 0, (void *)&got, &len) == 1 && len == 8);
		CHECK(!got.sun_path[0] && !close(to) && !close(from));
	}
}

static void *send_later(void *arg)
{
	sleep_ms(20);
	CHECK(write(ends[0], "late", 4) == 4);
	return NULL;
}

TEST(many)
{
	struct iovec iov[4] = { { "a", 1 }, { "bc", 2 }, { "def", 3 }, { "", 0 } }, in[8];
	struct mmsghdr out[4], msgs[8];
	struct timespec time = { 0, 1 }, bad = { 0, -1 };
	char bufs[8][16];
	pthread_t thread;

	memset(out, 0, sizeof(out));
	memset(msgs, 0, sizeof(msgs));
	for (int i = 0; i < 4; i++) {
		out[i].msg_hdr.msg_iov = &iov[i];
		out[i].msg_hdr.msg_iovlen = 1;
	}
	for (int i = 0; i < 8; i++) {
		in[i] = (struct iovec){ bufs[i], 2 };
		msgs[i].msg_hdr.msg_iov = &in[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	make_pair(SOCK_DGRAM);
	CHECK(sendmmsg(ends[0], out, 4, 0) == 4 && out[2].msg_len == 3 && out[3].msg_len == 0);
	CHECK(recvmmsg(ends[1], msgs, 2, 0, NULL) == 2 && msgs[1].msg_len == 2);
	CHECK(recvmmsg(ends[1], msgs, 8, MSG_DONTWAIT, NULL) == 2 && msgs[0].msg_len == 2);
	CHECK(msgs[0].msg_hdr.msg_flags == MSG_TRUNC && !msgs[1].msg_hdr.msg_flags);
	CHECK(recvmmsg(ends[1], msgs, 8, MSG_DONTWAIT, NULL) == -1 && errno == EAGAIN);
	CHECK(!pthread_create(&thread, NULL, send_later, NULL));
	CHECK(recvmmsg(ends[1], msgs, 8, MSG_WAITFORONE, NULL) == 1 && msgs[0].msg_len == 2);
	CHECK(!pthread_join(thread, NULL));
	/*
	 * The timeout is checked only after each message. It is over when the first one has come.
	 */
	CHECK(!pthread_create(&thread, NULL, send_later, NULL));
	CHECK(recvmmsg(ends[1], msgs, 8, 0, &time) == 1 && !time.tv_sec && !time.tv_nsec);
	CHECK(!pthread_join(thread, NULL));
	CHECK(recvmmsg(ends[1], msgs, 8, MSG_DONTWAIT, &bad) == -1 && errno == EINVAL);
	CHECK_ERROR(EBADF, SYS_sendmmsg, 999, out, 4, 0);
	CHECK_ERROR(ENOTSOCK, SYS_recvmmsg, 0, msgs, 4, 0, NULL);
	CHECK_ERROR(EFAULT, SYS_recvmmsg, ends[1], msgs, 4, 0, 8);
	/* The second of these cannot be sent; the first was. */
	iov[1].iov_base = (void *)8;
	CHECK(sendmmsg(ends[0], out, 4, 0) == 1);
	CHECK(sendmmsg(ends[0], out + 1, 3, 0) == -1 && errno == EFAULT);
	CHECK(sendmmsg(ends[0], out, 0, 0) == 0 && recv(ends[1], bufs[0], 16, 0) == 1);
	close_pair();
}

#define NR_SENDERS  4
#define NR_MESSAGES 2000

struct numbered {
	int sender, nr;
	char fill[100];
};

static void *send_many(void *arg)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	struct numbered message = { .sender = (long)arg };

	CHECK(!connect_socket(fd, 't'));
	for (; message.nr < NR_MESSAGES; message.nr++) {
		memset(message.fill, message.nr, sizeof(message.fill));
		if (!CHECK(write(fd, &message, 8 + message.nr % 100) == 8 + message.nr % 100))
			break;
	}
	close(fd);
	return NULL;
}

/* Several senders' messages come whole, and each sender's in order. */
TEST(threads)
{
	int fd = bound_socket(SOCK_DGRAM, 't'), next[NR_SENDERS] = { 0 }, nr_bad = 0;
	pthread_t threads[NR_SENDERS];

	for (long i = 0; i < NR_SENDERS; i++)
		CHECK(!pthread_create(&threads[i], NULL, send_many, (void *)i));
	for (int i = 0; i < NR_SENDERS * NR_MESSAGES; i++) {
		struct numbered message;
		ssize_t n = read(fd, &message, sizeof(message));
		int ok = n >= 8 && message.nr == next[message.sender]++ &&
			 n == 8 + message.nr % 100;

		for (int k = 8; ok && k < n; k++)
			ok = message.fill[k - 8] == (char)message.nr;
		nr_bad += !ok;
	}
	CHECK(nr_bad == 0);
	for (int i = 0; i < NR_SENDERS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	close(fd);
}

int main(int argc, char **argv)
{
	return run_tests("messages", argc, argv);
}
