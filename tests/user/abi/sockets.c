// SPDX-License-Identifier: BSD-2-Clause
/* AF_UNIX stream sockets: pairs, names, connections, ancillary data, shutdown and close. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <stddef.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "run.h"

static int ends[2];
static char block[300000], other[300000];

static void make_pair(int flags)
{
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | flags, 0, ends));
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

TEST(pair)
{
	struct iovec iov[2] = { { "abc", 3 }, { "defg", 4 } };
	char buf[16] = "", path[32], link[64] = "";
	struct stat st;
	int nr;

	make_pair(SOCK_CLOEXEC);
	CHECK(fcntl(ends[0], F_GETFD) == FD_CLOEXEC && fcntl(ends[1], F_GETFL) == O_RDWR);
	CHECK(!fstat(ends[0], &st) && S_ISSOCK(st.st_mode));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
	if (readlink(path, link, sizeof(link) - 1) > 0)
		CHECK(!strncmp(link, "socket:[", 8));
	CHECK(open(path, O_RDWR) == -1 && (errno == ENXIO || errno == ENOENT));
	CHECK(write(ends[0], "hello", 5) == 5 && write(ends[0], " you", 4) == 4);
	CHECK(!ioctl(ends[1], FIONREAD, &nr) && nr == 9);
	CHECK(recv(ends[1], buf, 4, MSG_PEEK) == 4 && !memcmp(buf, "hell", 4));
	CHECK(read(ends[1], buf, 3) == 3 && !memcmp(buf, "hel", 3));
	CHECK(read(ends[1], buf, 16) == 6 && !memcmp(buf, "lo you", 6));
	CHECK(writev(ends[1], iov, 2) == 7 && recv(ends[0], buf, 16, 0) == 7);
	CHECK(!memcmp(buf, "abcdefg", 7) && write(ends[0], "", 0) == 0);
	CHECK(recv(ends[0], buf, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
	CHECK(send(ends[0], "x", 1, MSG_NOSIGNAL) == 1 && send(ends[1], "y", 1, 0) == 1);
	CHECK(read(ends[0], buf, 1) == 1 && buf[0] == 'y');
	CHECK(read(ends[1], buf, 1) == 1 && buf[0] == 'x');
	CHECK(lseek(ends[0], 0, SEEK_SET) == -1 && errno == ESPIPE);
	CHECK_ERROR(EFAULT, SYS_write, ends[0], 8, 1);
	CHECK(send(ends[0], "z", 1, 0) == 1);
	CHECK_ERROR(EFAULT, SYS_read, ends[1], 8, 1);
	CHECK(read(ends[1], buf, 1) == 1);
	close_pair();
}

TEST(ends)
{
	char c;

	signal(SIGPIPE, SIG_IGN);
	make_pair(SOCK_NONBLOCK);
	CHECK(poll_now(ends[0]) == POLLOUT && read(ends[0], &c, 1) == -1 && errno == EAGAIN);
	CHECK(write(ends[1], "ab", 2) == 2 && poll_now(ends[0]) == (POLLIN | POLLOUT));
	CHECK(!shutdown(ends[1], SHUT_WR));
	CHECK(poll_now(ends[0]) == (POLLIN | POLLOUT | POLLRDHUP));
	CHECK(write(ends[1], "x", 1) == -1 && errno == EPIPE);
	CHECK(read(ends[0], &c, 1) == 1 && read(ends[0], &c, 1) == 1 && read(ends[0], &c, 1) == 0);
	CHECK(write(ends[0], "x", 1) == 1 && read(ends[1], &c, 1) == 1);
	CHECK(!shutdown(ends[0], SHUT_WR) && read(ends[1], &c, 1) == 0);
	CHECK(poll_now(ends[0]) == (POLLIN | POLLOUT | POLLRDHUP | POLLHUP));
	CHECK(shutdown(ends[0], 3) == -1 && errno == EINVAL);
	close_pair();

	make_pair(0);
	CHECK(write(ends[0], "abc", 3) == 3 && !close(ends[0]));
	CHECK(poll_now(ends[1]) == (POLLIN | POLLOUT | POLLRDHUP | POLLHUP));
	CHECK(read(ends[1], block, 10) == 3 && read(ends[1], block, 10) == 0);
	CHECK(send(ends[1], "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
	close(ends[1]);

	/* Unread bytes reset the connection when it is closed. */
	make_pair(0);
	CHECK(write(ends[0], "abc", 3) == 3 && !close(ends[1]));
	CHECK(poll_now(ends[0]) & POLLERR);
	close(ends[0]);

	signal(SIGPIPE, SIG_DFL);
	make_pair(0);
	close(ends[1]);
	if (!fork_child()) {
		CHECK(send(ends[0], "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
		fflush(stdout);
		write(ends[0], "x", 1);
		child_exit(0);
	}
	{
		int status;

		CHECK(wait(&status) > 0 && status == SIGPIPE);
	}
	close(ends[0]);
}

static void *receive_all(void *arg)
{
	size_t total = 0;
	ssize_t nr;

	while (total < sizeof(other) &&
	       (nr = read(*(int *)arg, other + total, sizeof(other) - total)) > 0)
		total += nr;
	CHECK(total == sizeof(other));
	return NULL;
}

TEST(much)
{
	pthread_t thread;
	ssize_t total = 0, nr;

	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = i * 7 + i / 1000;
	make_pair(0);
	CHECK(!pthread_create(&thread, NULL, receive_all, &ends[1]));
	CHECK(write(ends[0], block, sizeof(block)) == sizeof(block));
	CHECK(!pthread_join(thread, NULL) && !memcmp(block, other, sizeof(block)));
	/* A write stores as much as there is room for. */
	CHECK(!fcntl(ends[0], F_SETFL, O_NONBLOCK));
	while ((nr = write(ends[0], block, 1000)) > 0)
		total += nr;
	CHECK(nr == -1 && errno == EAGAIN && total >= 65536 && poll_now(ends[0]) == 0);
	while (total > 0 && (nr = read(ends[1], other, sizeof(other))) > 0)
		total -= nr;
	CHECK(total == 0 && poll_now(ends[0]) == POLLOUT);
	close_pair();
}

static socklen_t set_name(struct sockaddr_un *name, int abstract)
{
	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	snprintf(name->sun_path + abstract, 100, "%s", check_file_name());
	return offsetof(struct sockaddr_un, sun_path) + abstract + strlen(check_file_name());
}

static void *connect_later(void *arg)
{
	struct sockaddr_un name;
	socklen_t len = set_name(&name, *(int *)arg);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char c = 0;

	sleep_ms(20);
	CHECK(!connect(fd, (void *)&name, len) && write(fd, "a", 1) == 1);
	CHECK(read(fd, &c, 1) == 1 && c == 'b' && !close(fd));
	return NULL;
}

TEST(connections)
{
	struct sockaddr_un name, got;
	struct ucred user;
	struct stat st;

	for (int abstract = 0; abstract < 2; abstract++) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0), clients[3], end, value;
		socklen_t len = set_name(&name, abstract), got_len;
		pthread_t thread;
		char c = 0;

		unlink(check_file_name());
		CHECK(poll_now(fd) == (POLLOUT | POLLHUP) && listen(fd, 1) == -1);
		CHECK(errno == EINVAL && !bind(fd, (void *)&name, len));
		CHECK(abstract || (!stat(check_file_name(), &st) && S_ISSOCK(st.st_mode)));
		CHECK(bind(fd, (void *)&name, len) == -1);
		clients[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		CHECK(bind(clients[0], (void *)&name, len) == -1 && errno == EADDRINUSE);
		CHECK(connect(clients[0], (void *)&name, len) == -1 && errno == ECONNREFUSED);
		CHECK(accept(fd, NULL, NULL) == -1 && errno == EINVAL && !listen(fd, 0));
		CHECK(poll_now(fd) == 0 && !connect(clients[0], (void *)&name, len));
		clients[1] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		CHECK(connect(clients[1], (void *)&name, len) == -1 && errno == EAGAIN);
		CHECK(poll_now(fd) == POLLIN && write(clients[0], "early", 5) == 5);
		got_len = sizeof(got);
		end = accept4(fd, (void *)&got, &got_len, SOCK_CLOEXEC | SOCK_NONBLOCK);
		CHECK(end >= 0 && got_len == 2 && fcntl(end, F_GETFD) == FD_CLOEXEC);
		CHECK(fcntl(end, F_GETFL) & O_NONBLOCK && read(end, block, 10) == 5);
		CHECK(connect(clients[0], (void *)&name, len) == -1 && errno == EISCONN);
		got_len = sizeof(got);
		CHECK(!getsockname(end, (void *)&got, &got_len));
		CHECK(got_len == len + !abstract && !memcmp(&got, &name, len));
		got_len = sizeof(got);
		CHECK(!getpeername(clients[0], (void *)&got, &got_len));
		CHECK(got_len == len + !abstract && !memcmp(&got, &name, len));
		got_len = sizeof(user);
		CHECK(!getsockopt(end, SOL_SOCKET, SO_PEERCRED, &user, &got_len));
		CHECK(user.pid == getpid() && user.uid == geteuid() && user.gid == getegid());
		got_len = sizeof(value);
		CHECK(!getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &got_len) && value == 1);
		close(clients[0]);
		CHECK(read(end, &c, 1) == 0 && !close(end));

		CHECK(!pthread_create(&thread, NULL, connect_later, &abstract));
		end = accept(fd, NULL, NULL);
		CHECK(end >= 0 && read(end, &c, 1) == 1 && c == 'a' && write(end, "b", 1) == 1);
		CHECK(!pthread_join(thread, NULL) && !close(end));
		/* Connected, but never accepted. */
		CHECK(!connect(clients[1], (void *)&name, len) && !close(fd));
		CHECK(poll_now(clients[1]) & POLLHUP);
		clients[2] = socket(AF_UNIX, SOCK_STREAM, 0);
		CHECK(connect(clients[2], (void *)&name, len) == -1 && errno == ECONNREFUSED);
		close(clients[1]);
		close(clients[2]);
	}
	unlink(check_file_name());
}

TEST(errors)
{
	struct sockaddr_un name;
	socklen_t len = set_name(&name, 0);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), value;

	CHECK(connect(fd, (void *)&name, len) == -1 && errno == ENOENT);
	CHECK(send(fd, "x", 1, MSG_NOSIGNAL) == -1 && errno == ENOTCONN);
	CHECK(read(fd, &value, 1) == -1 && errno == EINVAL);
	CHECK(getpeername(fd, (void *)&name, &len) == -1 && errno == ENOTCONN);
	CHECK_ERROR(EAFNOSUPPORT, SYS_socket, 77, SOCK_STREAM, 0);
	CHECK_ERROR(EPROTONOSUPPORT, SYS_socket, AF_UNIX, SOCK_STREAM, 77);
	CHECK_ERROR(EINVAL, SYS_socket, AF_UNIX, SOCK_STREAM | 0x100, 0);
	CHECK_ERROR(EFAULT, SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, 8);
	CHECK_ERROR(EINVAL, SYS_bind, fd, &name, 1);
	CHECK_ERROR(EINVAL, SYS_bind, fd, &name, 111);
	CHECK_ERROR(EFAULT, SYS_bind, fd, 8, 10);
	CHECK_ERROR(ENOTSOCK, SYS_listen, 0, 1);
	CHECK_ERROR(EBADF, SYS_listen, 999, 1);
	CHECK_ERROR(ENOTSOCK, SYS_accept4, 0, NULL, NULL, 0);
	CHECK_ERROR(EINVAL, SYS_accept4, fd, NULL, NULL, 1);
	CHECK_ERROR(ENOTSOCK, SYS_sendto, 0, "x", 1, 0, NULL, 0);
	CHECK_ERROR(ENOTSOCK, SYS_recvmsg, 0, 8, 0);
	len = sizeof(value);
	CHECK(!getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &len) && value == SOCK_STREAM);
	CHECK(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &value, &len) && value == 0);
	CHECK(getsockopt(fd, SOL_SOCKET, 999, &value, &len) == -1 && errno == ENOPROTOOPT);
	CHECK_ERROR(EFAULT, SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, 8, &len);
	CHECK_ERROR(EFAULT, SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &value, 8);
	close(fd);
}

union control {
	struct cmsghdr header;
	char room[256];
};

static ssize_t send_fds(int fd, const char *text, const int *fds, int nr)
{
	struct iovec iov = { (char *)text, strlen(text) };
	union control control = { 0 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control };

	msg.msg_controllen = CMSG_SPACE(nr * sizeof(int));
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(nr * sizeof(int));
	memcpy(CMSG_DATA(&control.header), fds, nr * sizeof(int));
	return sendmsg(fd, &msg, 0);
}

/*
 * Returns the bytes received. Stores the descriptors that came with them in @fds, and their number
 * in *nr.
 */
static ssize_t receive_fds(int fd, char *buf, size_t n, int *fds, int *nr, int flags)
{
	struct iovec iov = { buf, n };
	union control control;
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	ssize_t done = recvmsg(fd, &msg, flags);
	struct cmsghdr *header = done >= 0 ? CMSG_FIRSTHDR(&msg) : NULL;

	*nr = 0;
	if (header && header->cmsg_type == SCM_RIGHTS) {
		*nr = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(header), *nr * sizeof(int));
	}
	return done;
}

TEST(rights)
{
	int pipes[2], fds[8], nr, both[2];
	char buf[16] = "";

	make_pair(0);
	CHECK(!pipe(pipes) && send_fds(ends[0], "ab", pipes, 2) == 2);
	CHECK(write(ends[0], "c", 1) == 1);
	CHECK(!close(pipes[0]) && !close(pipes[1]));
	CHECK(receive_fds(ends[1], buf, 16, fds, &nr, MSG_CMSG_CLOEXEC) == 2 && nr == 2);
	CHECK(fcntl(fds[0], F_GETFD) == FD_CLOEXEC && write(fds[1], "hey", 3) == 3);
	CHECK(read(fds[0], buf, 16) == 3 && !memcmp(buf, "hey", 3));
	CHECK(receive_fds(ends[1], buf, 16, both, &nr, 0) == 1 && nr == 0 && buf[0] == 'c');
	/* Descriptors that are never received are closed. */
	CHECK(send_fds(ends[0], "x", &fds[1], 1) == 1 && !close(fds[1]));
	CHECK(read(ends[1], buf, 1) == 1 && read(fds[0], buf, 1) == 0);
	CHECK(!close(fds[0]) && !pipe(pipes) && send_fds(ends[0], "x", &pipes[1], 1) == 1);
	close(pipes[1]);
	close_pair();
	CHECK(read(pipes[0], buf, 1) == 0 && !close(pipes[0]));
	make_pair(0);
	both[0] = 999;
	CHECK(send_fds(ends[0], "x", both, 1) == -1 && errno == EBADF);
	close_pair();
}

/* Sockets are sent through sockets: with unread bytes, and dropped while in flight. */
TEST(sockets_in_flight)
{
	int pair[2], fds[8], nr, done;
	char buf[16] = "";

	make_pair(0);
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair) && write(pair[0], "waits", 5) == 5);
	CHECK(send_fds(ends[0], "s", &pair[1], 1) == 1 && !close(pair[1]));
	CHECK(write(pair[0], "ing", 3) == 3);
	CHECK(receive_fds(ends[1], buf, 16, fds, &nr, 0) == 1 && nr == 1);
	CHECK(read(fds[0], buf, 16) == 8 && !memcmp(buf, "waitsing", 8));
	CHECK(write(fds[0], "back", 4) == 4 && read(pair[0], buf, 16) == 4);
	/* Nothing is in flight now, so either can be sent through the other. */
	CHECK(send_fds(fds[0], "r", &ends[0], 1) == 1);
	CHECK(receive_fds(pair[0], buf, 16, &fds[1], &nr, 0) == 1 && nr == 1 && !close(fds[1]));
	/* A socket in flight is dropped with the queue that it is in. */
	CHECK(send_fds(ends[0], "s", &fds[0], 1) == 1 && !close(fds[0]));
	CHECK(recv(pair[0], buf, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
	close_pair();
	CHECK(read(pair[0], buf, 1) == 0 && !close(pair[0]));
	/* Sockets in flight to each other: Linux frees them, this kernel does not let them fly. */
	make_pair(0);
	done = send_fds(ends[0], "s", &ends[1], 1);
	CHECK(done == 1 || (done == -1 && errno == ETOOMANYREFS));
	CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	CHECK(send_fds(ends[0], "s", pair, 2) == 1);
	done = send_fds(pair[0], "s", ends, 2);
	CHECK(done == 1 || (done == -1 && errno == ETOOMANYREFS));
	close_pair();
	CHECK(!close(pair[0]) && !close(pair[1]));
}

TEST(users)
{
	struct iovec iov = { block, 16 };
	union control control;
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	int on = 1, status;
	struct ucred user;
	pid_t pid;

	make_pair(0);
	CHECK(!setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)));
	pid = fork_child();
	if (!pid) {
		CHECK(write(ends[0], "hello", 5) == 5);
		child_exit(0);
	}
	CHECK(recvmsg(ends[1], &msg, 0) == 5 && control.header.cmsg_type == SCM_CREDENTIALS);
	memcpy(&user, CMSG_DATA(&control.header), sizeof(user));
	CHECK(user.pid == pid && user.uid == geteuid() && user.gid == getegid());
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	close_pair();
}

static void *write_later(void *arg)
{
	sleep_ms(20);
	CHECK(write(ends[1], "x", 1) == 1);
	return NULL;
}

TEST(epoll)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET };
	int epfd = epoll_create1(0);
	pthread_t thread;
	char c;

	make_pair(0);
	CHECK(!epoll_ctl(epfd, EPOLL_CTL_ADD, ends[0], &event));
	CHECK(epoll_wait(epfd, &event, 1, -1) == 1 && event.events == EPOLLOUT);
	CHECK(!pthread_create(&thread, NULL, write_later, NULL));
	CHECK(epoll_wait(epfd, &event, 1, -1) == 1 && event.events == (EPOLLIN | EPOLLOUT));
	CHECK(!pthread_join(thread, NULL) && epoll_wait(epfd, &event, 1, 0) == 0);
	CHECK(read(ends[0], &c, 1) == 1 && !close(ends[1]));
	CHECK(epoll_wait(epfd, &event, 1, -1) == 1 && event.events & EPOLLHUP);
	CHECK(event.events & EPOLLRDHUP && !close(ends[0]));
	CHECK(epoll_wait(epfd, &event, 1, 0) == 0 && !close(epfd));
}

int main(int argc, char **argv)
{
	return run_tests("sockets", argc, argv);
}
