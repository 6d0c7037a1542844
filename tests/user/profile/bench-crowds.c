// SPDX-License-Identifier: BSD-2-Clause
/*
 * bench-crowds files|fds|sockets|locks CROWD N: operations on files in a directory, descriptors of
 * a process, AF_UNIX sockets with names (paths first, then abstract ones), or locks on one file:
 * record locks of one byte each, and shared locks of open files. crowds.h says what is printed.
 */
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "crowds.h"

static const char *file_path(long i)
{
	static char path[40];

	snprintf(path, sizeof(path), "/tmp/crowd/file%ld", i);
	return path;
}

static void create_file(long i)
{
	int fd = open(file_path(i), O_CREAT | O_EXCL | O_WRONLY, 0600);

	check(fd >= 0 && !close(fd), "create");
}

static void open_file(long i)
{
	int fd = open(file_path(i), O_RDONLY);

	check(fd >= 0 && !close(fd), "open");
}

static void stat_file(long i)
{
	struct stat st;

	check(!stat(file_path(i), &st), "stat");
}

static void miss_file(long i)
{
	struct stat st;

	check(stat(file_path(crowd + i), &st) && errno == ENOENT, "stat of none");
}

static void replace_file(long i)
{
	check(!unlink(file_path(i)), "unlink");
	create_file(i);
}

static void rename_file(long i)
{
	check(!rename(file_path(i), "/tmp/crowd/other"), "rename");
	check(!rename("/tmp/crowd/other", file_path(i)), "rename back");
}

/* Calls that find a file by its path, or make and remove one beside it. The rest do as stat(). */
static void use_path(long i)
{
	static const char other[] = "/tmp/crowd/other";
	const char *path = file_path(i);
	char buf[300];

	check(!access(path, F_OK) && !faccessat(AT_FDCWD, path, F_OK, 0), "access");
	check(!syscall(SYS_newfstatat, AT_FDCWD, path, buf, 0) && !syscall(SYS_lstat, path, buf),
	      "lstat");
	check(!syscall(SYS_statx, AT_FDCWD, path, 0, 0x7ff, buf), "statx");
	check(!syscall(SYS_statfs, path, buf), "statfs");
	check(!chmod(path, 0600) && !fchmodat(AT_FDCWD, path, 0600, 0), "chmod");
	check(!chown(path, 0, 0) && !lchown(path, 0, 0), "chown");
	check(!fchownat(AT_FDCWD, path, 0, 0, 0), "fchownat");
	check(!syscall(SYS_utime, path, NULL) && !syscall(SYS_utimes, path, NULL), "utimes");
	check(!syscall(SYS_futimesat, AT_FDCWD, path, NULL), "futimesat");
	check(!syscall(SYS_utimensat, AT_FDCWD, path, NULL, 0), "utimensat");
	check(!truncate(path, 1) && readlink(path, buf, 1) < 0 && errno == EINVAL, "truncate");
	check(!link(path, other) && !unlink(other), "link");
	check(!linkat(AT_FDCWD, path, AT_FDCWD, other, 0) && !unlinkat(AT_FDCWD, other, 0),
	      "linkat");
	check(!symlink(path, other) && readlink(other, buf, sizeof(buf)) > 0, "symlink");
	check(!stat(other, (struct stat *)buf) && !unlink(other), "stat of a link");
	check(!mkdir(other, 0700) && !chdir(other) && !chdir("/") && !rmdir(other), "mkdir");
	check(!mknod(other, S_IFREG | 0600, 0) && !unlink(other), "mknod");
	check(!syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, other, 1), "renameat2");
	check(!renameat(AT_FDCWD, other, AT_FDCWD, path), "renameat");
}

static void time_files(void)
{
	check(!mkdir("/tmp", 0777) || errno == EEXIST, "/tmp");
	check(!mkdir("/tmp/crowd", 0700), "/tmp/crowd");
	for (long i = 0; i < crowd; i++)
		create_file(i);
	time_each("open", open_file);
	time_each("stat", stat_file);
	time_each("miss", miss_file);
	time_each("replace", replace_file);
	time_each("rename", rename_file);
	time_each("paths", use_path);
	time_list("/tmp/crowd");
}

static int first_fd, epoll_fd, write_fd, read_fd;

static int fd_of(long i)
{
	return first_fd + (int)i;
}

static void dup_fd(long i)
{
	int fd = dup(fd_of(i));

	check(fd >= 0 && !close(fd), "dup");
}

static void replace_fd(long i)
{
	check(!close(fd_of(i)) && dup(read_fd) == fd_of(i), "not the lowest descriptor");
}

static void use_fd(long i)
{
	check(fcntl(fd_of(i), F_GETFD) >= 0, "fcntl");
}

/* Calls that find a file by its descriptor. Most of them fail, as this is a pipe. */
static void use_fd_much(long i)
{
	static const short calls[] = {
		SYS_fstat,	     SYS_fstatfs,      SYS_lseek,      SYS_fsync,
		SYS_fdatasync,	     SYS_ftruncate,    SYS_fchmod,     SYS_fadvise64,
		SYS_fallocate,	     SYS_readahead,    SYS_fgetxattr,  SYS_flistxattr,
		SYS_fsetxattr,	     SYS_fremovexattr, SYS_syncfs,     SYS_getsockname,
		SYS_getpeername,     SYS_getsockopt,   SYS_setsockopt, SYS_shutdown,
		SYS_listen,	     SYS_bind,	       SYS_connect,    SYS_accept,
		SYS_pread64,	     SYS_preadv,       SYS_pwrite64,   SYS_pwritev,
		SYS_getdents64,	     SYS_fchdir,       SYS_ioctl,      SYS_recvfrom,
		SYS_sendto,	     SYS_recvmsg,      SYS_sendmsg,    SYS_epoll_wait,
		SYS_timerfd_gettime,
	};

	for (size_t n = 0; n < sizeof(calls) / sizeof(*calls); n++)
		syscall(calls[n], fd_of(i), NULL, 0, 0, 0, 0);
	check(dup2(fd_of(i), fd_of(i)) == fd_of(i), "dup2");
}

static void watch_fd(long i)
{
	struct epoll_event event = { .events = EPOLLIN };

	check(!epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd_of(i), NULL), "EPOLL_CTL_DEL");
	check(!epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd_of(i), &event), "EPOLL_CTL_ADD");
}

static void change_watch(long i)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT };

	check(!epoll_ctl(epoll_fd, EPOLL_CTL_MOD, fd_of(i), &event), "EPOLL_CTL_MOD");
}

/* Waits for an event. One of all the watched files is ready. */
static void wait_for_watch(long i)
{
	struct epoll_event event;

	check(epoll_wait(epoll_fd, &event, 1, -1) == 1, "epoll_wait");
}

static void time_poll(void)
{
	struct pollfd *fds = calloc(crowd, sizeof(*fds));
	uint64_t start;

	check(fds != NULL, "memory");
	for (long i = 0; i < crowd; i++)
		fds[i] = (struct pollfd){ .fd = fd_of(i), .events = POLLIN };
	start = rdtsc();
	check(poll(fds, crowd, 0) == 0, "poll");
	bench_print("poll", rdtsc() - start, crowd);
	free(fds);
}

/* Times fork and exit, less the time without descriptors. */
static void time_fork_of_fds(uint64_t without)
{
	uint64_t start = rdtsc();

	fork_and_wait(0);
	bench_print("fork", rdtsc() - start - without, crowd);
}

static void close_fds(void)
{
	check(!syscall(SYS_close_range, first_fd, first_fd + crowd - 1, 0), "close_range");
}

static void time_fds(void)
{
	struct rlimit limit = { crowd + 100, crowd + 100 };
	struct epoll_event event = { .events = EPOLLIN };
	int fds[2], ready[2];
	uint64_t without_fds, start;

	fork_and_wait(0); /* not timed: the first fork takes longer */
	without_fds = rdtsc();
	fork_and_wait(0);
	without_fds = rdtsc() - without_fds;

	check(!setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
	check(!pipe(fds) && !pipe(ready) && write(ready[1], "", 1) == 1, "pipe");
	read_fd = fds[0];
	write_fd = fds[1];
	epoll_fd = epoll_create1(0);
	first_fd = epoll_fd + 1;
	for (long i = 0; i < crowd; i++) {
		check(dup(read_fd) == fd_of(i), "dup");
		check(!epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd_of(i), &event), "EPOLL_CTL_ADD");
	}
	time_each("use", use_fd);
	time_each("uses", use_fd_much);
	time_each("dup", dup_fd);
	time_each("watch", watch_fd);
	time_each("change", change_watch);
	check(!epoll_ctl(epoll_fd, EPOLL_CTL_ADD, ready[0], &event), "EPOLL_CTL_ADD");
	time_each("wait", wait_for_watch);
	check(!close(epoll_fd), "close");
	first_fd--; /* the epoll got the first free descriptor */
	check(dup(read_fd) == first_fd, "dup");
	time_each("replace", replace_fd);
	time_poll();
	time_fork_of_fds(without_fds);
	list("/proc/self/fd"); /* makes the links */
	time_list("/proc/self/fd");
	start = rdtsc();
	close_fds();
	bench_print("close", rdtsc() - start, crowd);
}

static struct sockaddr_un socket_address;
static int client, is_abstract;

/* Sets an abstract name or a path, and returns its length. */
static socklen_t name_socket(long i)
{
	int len;

	socket_address.sun_family = AF_UNIX;
	len = snprintf(socket_address.sun_path, sizeof(socket_address.sun_path), "/tmp/socket%ld",
		       i);
	if (is_abstract)
		socket_address.sun_path[0] = '\0';
	return offsetof(struct sockaddr_un, sun_path) + len + !is_abstract;
}

static void bind_socket(long i)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	socklen_t len = name_socket(i);

	check(fd == fd_of(i), "not the lowest descriptor");
	check(!bind(fd, (struct sockaddr *)&socket_address, len), "bind");
}

static void connect_socket(long i)
{
	socklen_t len = name_socket(i);

	check(!connect(client, (struct sockaddr *)&socket_address, len), "connect");
}

static void replace_socket(long i)
{
	name_socket(i);
	check(!close(fd_of(i)), "close");
	check(is_abstract || !unlink(socket_address.sun_path), "unlink");
	bind_socket(i);
}

static int server;

/* The queue is full before and after that, so it takes the way on which senders are woken. */
static void receive(long i)
{
	char byte;

	check(recv(server, &byte, 1, 0) == 1 && send(client, "", 1, 0) == 1, "receive");
}

/* Receives on a socket to which all others are connected. */
static void time_receive(void)
{
	socklen_t len = name_socket(crowd);

	server = socket(AF_UNIX, SOCK_DGRAM, 0);
	first_fd = server + 1;
	check(!bind(server, (struct sockaddr *)&socket_address, len), "bind");
	for (long i = 0; i < crowd; i++) {
		check(socket(AF_UNIX, SOCK_DGRAM, 0) == fd_of(i), "not the lowest descriptor");
		check(!connect(fd_of(i), (struct sockaddr *)&socket_address, len), "connect");
	}
	check(!connect(client, (struct sockaddr *)&socket_address, len), "connect");
	while (send(client, "", 1, MSG_DONTWAIT) == 1)
		;
	time_each("receive", receive);
}

static void time_sockets(void)
{
	struct rlimit limit = { crowd + 100, crowd + 100 };

	check(!setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
	check(!mkdir("/tmp", 0777) || errno == EEXIST, "/tmp");
	client = socket(AF_UNIX, SOCK_DGRAM, 0);
	first_fd = client + 1;
	for (is_abstract = 0; is_abstract < 2; is_abstract++) {
		for (long i = 0; i < crowd; i++)
			bind_socket(i);
		time_each(is_abstract ? "connect_abstract" : "connect", connect_socket);
		time_each(is_abstract ? "replace_abstract" : "replace", replace_socket);
		close_fds();
	}
	time_receive();
}

#define LOCK_PATH "/tmp/locked"

static int locked_fd;

/* Sets a lock of one byte, or drops it. The process's own locks never conflict. */
static void lock_byte(long byte, short type)
{
	struct flock lock = { .l_type = type, .l_start = byte, .l_len = 1 };

	check(!fcntl(locked_fd, F_SETLK, &lock), "F_SETLK");
}

static void lock_beside(long i)
{
	lock_byte(4 * i + 2, F_WRLCK);
	lock_byte(4 * i + 2, F_UNLCK);
}

/* An open file is another owner than the process. */
static void find_conflict(long i)
{
	struct flock lock = { .l_type = F_RDLCK, .l_start = 4 * i - 1, .l_len = 3 };

	lock.l_start += !i;
	check(!fcntl(locked_fd, F_OFD_GETLK, &lock) && lock.l_start == 4 * i, "F_OFD_GETLK");
}

static void share(long i)
{
	int fd = open(LOCK_PATH, O_RDONLY);

	check(fd == fd_of(i), "not the lowest descriptor");
	check(!flock(fd, LOCK_SH), "flock");
}

static void share_again(long i)
{
	check(!close(fd_of(i)), "close");
	share(i);
}

static void time_locks(void)
{
	struct rlimit limit = { crowd + 100, crowd + 100 };

	check(!setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
	check(!mkdir("/tmp", 0777) || errno == EEXIST, "/tmp");
	locked_fd = open(LOCK_PATH, O_CREAT | O_RDWR, 0600);
	for (long i = 0; i < crowd; i++)
		lock_byte(4 * i, F_WRLCK);
	time_each("record", lock_beside);
	time_each("find", find_conflict);
	check(!close(dup(locked_fd)),
	      "close"); /* drops the record locks, as they are the process's */
	first_fd = locked_fd + 1;
	for (long i = 0; i < crowd; i++)
		share(i);
	time_each("share", share_again);
}

int main(int argc, char **argv)
{
	static const struct kind kinds[] = { { "files", time_files },
					     { "fds", time_fds },
					     { "sockets", time_sockets },
					     { "locks", time_locks },
					     { 0 } };

	return time_crowd(kinds, argc, argv);
}
