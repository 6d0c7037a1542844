// SPDX-License-Identifier: BSD-2-Clause
/*
 * bench-crowds files|fds|sockets|processes|timers CROWD N: TSC cycles for N of each operation on
 * one of CROWD files in a directory, descriptors of a process, AF_UNIX sockets with names (paths
 * first, then abstract ones), processes that sleep, or POSIX timers that run. The one is chosen at
 * random. An operation that looks at all of them (`list`, `poll`) is done once, and its N is the
 * number of those that it looked at. Lines `bench: <name> <cycles> <operations>`.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static uint64_t rdtsc(void)
{
	uint32_t low, high;

	asm volatile("lfence; rdtsc; lfence" : "=a"(low), "=d"(high) : : "memory");
	return (uint64_t)high << 32 | low;
}

static void check(int ok, const char *what)
{
	if (ok)
		return;
	printf("bench-crowds: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void print(const char *name, uint64_t cycles, long nr)
{
	printf("bench: %s %llu %ld\n", name, (unsigned long long)cycles, nr);
}

static long crowd;

static long any(void)
{
	static uint64_t random = 1;

	random = random * 6364136223846793005ull + 1442695040888963407ull;
	return (random >> 33) % crowd;
}

/* Times nr operations. Each is called with the index of a random member of the crowd. */
static void time_each(const char *name, void (*operation)(long i), long nr)
{
	uint64_t cycles = 0;

	for (long n = 0; n < nr; n++) {
		long i = any();
		uint64_t start = rdtsc();

		operation(i);
		cycles += rdtsc() - start;
	}
	print(name, cycles, nr);
}

static long list(const char *path)
{
	DIR *dir = opendir(path);
	long nr = 0;

	check(dir != NULL, path);
	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

static void time_list(const char *path)
{
	uint64_t start = rdtsc();
	long nr = list(path);

	print("list", rdtsc() - start, nr);
}

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

static void time_files(long nr)
{
	check(!mkdir("/tmp", 0777) || errno == EEXIST, "/tmp");
	check(!mkdir("/tmp/crowd", 0700), "/tmp/crowd");
	for (long i = 0; i < crowd; i++)
		create_file(i);
	time_each("open", open_file, nr);
	time_each("stat", stat_file, nr);
	time_each("miss", miss_file, nr);
	time_each("replace", replace_file, nr);
	time_each("rename", rename_file, nr);
	time_each("paths", use_path, nr);
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
	print("poll", rdtsc() - start, crowd);
	free(fds);
}

static void fork_and_wait(long i);

/* Times fork and exit, less the time without descriptors. */
static void time_fork_of_fds(uint64_t without)
{
	uint64_t start = rdtsc();

	fork_and_wait(0);
	print("fork", rdtsc() - start - without, crowd);
}

static void close_fds(void)
{
	check(!syscall(SYS_close_range, first_fd, first_fd + crowd - 1, 0), "close_range");
}

static void time_fds(long nr)
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
	time_each("use", use_fd, nr);
	time_each("uses", use_fd_much, nr);
	time_each("dup", dup_fd, nr);
	time_each("watch", watch_fd, nr);
	time_each("change", change_watch, nr);
	check(!epoll_ctl(epoll_fd, EPOLL_CTL_ADD, ready[0], &event), "EPOLL_CTL_ADD");
	time_each("wait", wait_for_watch, nr);
	check(!close(epoll_fd), "close");
	first_fd--; /* the epoll got the first free descriptor */
	check(dup(read_fd) == first_fd, "dup");
	time_each("replace", replace_fd, nr);
	time_poll();
	time_fork_of_fds(without_fds);
	list("/proc/self/fd"); /* makes the links */
	time_list("/proc/self/fd");
	start = rdtsc();
	close_fds();
	print("close", rdtsc() - start, crowd);
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
static void time_receive(long nr)
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
	time_each("receive", receive, nr);
}

static void time_sockets(long nr)
{
	struct rlimit limit = { crowd + 100, crowd + 100 };

	check(!setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
	check(!mkdir("/tmp", 0777) || errno == EEXIST, "/tmp");
	client = socket(AF_UNIX, SOCK_DGRAM, 0);
	first_fd = client + 1;
	for (is_abstract = 0; is_abstract < 2; is_abstract++) {
		for (long i = 0; i < crowd; i++)
			bind_socket(i);
		time_each(is_abstract ? "connect_abstract" : "connect", connect_socket, nr);
		time_each(is_abstract ? "replace_abstract" : "replace", replace_socket, nr);
		close_fds();
	}
	time_receive(nr);
}

static pid_t *pids;

static pid_t make_sleeper(void)
{
	pid_t pid = fork();

	if (!pid) {
		for (;;)
			pause();
	}
	check(pid > 0, "fork");
	return pid;
}

static void fork_and_wait(long i)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	check(pid > 0 && waitpid(pid, NULL, 0) == pid, "waitpid");
}

static void fork_and_wait_for_any(long i)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	check(pid > 0 && wait(NULL) == pid, "wait");
}

static void replace_process(long i)
{
	check(!kill(pids[i], SIGKILL), "kill");
	check(waitpid(pids[i], NULL, 0) == pids[i], "waitpid");
	pids[i] = make_sleeper();
}

static void find_process(long i)
{
	check(!kill(pids[i], 0), "kill 0");
}

/* Calls that find another process or thread by its number. */
static void use_process(long i)
{
	pid_t pid = pids[i];
	long buf[32] = { 0 };

	check(getpgid(pid) >= 0 && getsid(pid) >= 0, "getpgid");
	check(!syscall(SYS_sched_getscheduler, pid) && !syscall(SYS_sched_getparam, pid, buf),
	      "sched_getparam");
	check(!syscall(SYS_sched_rr_get_interval, pid, buf), "sched_rr_get_interval");
	check(!syscall(SYS_sched_getattr, pid, buf, 48, 0), "sched_getattr");
	check(syscall(SYS_sched_getaffinity, pid, sizeof(buf), buf) > 0, "sched_getaffinity");
	check(!syscall(SYS_sched_setaffinity, pid, sizeof(buf), buf), "sched_setaffinity");
	check(!syscall(SYS_sched_setscheduler, pid, 0, (int[1]){ 0 }), "sched_setscheduler");
	check(!setpriority(PRIO_PROCESS, pid, 0), "setpriority");
	check(!getpriority(PRIO_PROCESS, pid), "getpriority");
	check(!syscall(SYS_prlimit64, pid, RLIMIT_CORE, NULL, buf), "prlimit64");
	check(!syscall(SYS_tkill, pid, 0) && !syscall(SYS_tgkill, pid, pid, 0), "tkill");
	check(!syscall(SYS_get_robust_list, pid, buf, buf + 1), "get_robust_list");
	check(!syscall(SYS_clock_gettime, ~pid << 3 | 2, buf), "clock_gettime");
}

static void look_at_child(long i)
{
	check(waitpid(pids[i], NULL, WNOHANG) == 0, "WNOHANG");
}

static void open_stat(long i)
{
	char path[40], text[1000];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pids[i]);
	fd = open(path, O_RDONLY);
	check(fd >= 0 && read(fd, text, sizeof(text)) > 0 && !close(fd), path);
}

/* Moves a process into a group of its own, signals that group, and moves the process back. */
static void signal_group(long i)
{
	check(!setpgid(pids[i], pids[i]) && !kill(-pids[i], SIGCONT), "kill of a group");
	check(!setpgid(pids[i], getpgrp()), "setpgid");
}

/* Ends the youngest first. All of them are zombies before the first wait. */
static void end_processes(void)
{
	uint64_t start = rdtsc();
	siginfo_t info;

	for (long i = crowd; i--;)
		check(!kill(pids[i], SIGKILL), "kill");
	for (long i = crowd; i--;)
		check(!waitid(P_PID, pids[i], &info, WEXITED | WNOWAIT), "waitid");
	for (long i = 0; i < crowd; i++)
		check(wait(NULL) > 0, "wait");
	print("end", rdtsc() - start, crowd);
}

/* Times forks of a user with a limit (RLIMIT_NPROC), in a process without other children. */
static void time_forks_of_user(long nr)
{
	pid_t pid = fork();

	check(pid >= 0, "fork");
	if (!pid) {
		check(!setuid(4711), "setuid");
		time_each("fork_user", fork_and_wait, nr);
		fflush(stdout);
		_exit(0);
	}
	check(waitpid(pid, NULL, 0) == pid, "waitpid");
}

static void time_processes(long nr)
{
	pids = calloc(crowd, sizeof(*pids));
	check(pids != NULL, "memory");
	for (long i = 0; i < crowd; i++)
		pids[i] = make_sleeper();
	fflush(stdout);
	time_forks_of_user(nr);
	time_each("fork", fork_and_wait, nr);
	time_each("fork_any", fork_and_wait_for_any, nr);
	time_each("replace", replace_process, nr);
	time_each("find", find_process, nr);
	time_each("child", look_at_child, nr);
	time_each("uses", use_process, nr);
	time_each("stat", open_stat, nr);
	time_each("group", signal_group, nr);
	list("/proc"); /* makes the directories that were not looked up yet */
	time_list("/proc");
	end_processes();
}

/* IDs of timers: the first is 0, and each is the first one that is free. */
static void create_timer(long i)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	int id = -1;

	check(!syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id) && id == i, "timer_create");
}

static void set_timer(long i)
{
	struct itimerspec later = { .it_value.tv_sec = 1000 + i };

	check(!syscall(SYS_timer_settime, (int)i, 0, &later, NULL), "timer_settime");
}

static void get_timer(long i)
{
	struct itimerspec left;

	check(!syscall(SYS_timer_gettime, (int)i, &left), "timer_gettime");
	check(left.it_value.tv_sec >= 500 + i, "timer_gettime: the time left");
}

static void replace_timer(long i)
{
	check(!syscall(SYS_timer_delete, (int)i), "timer_delete");
	create_timer(i);
	set_timer(i);
}

static void time_timers(long nr)
{
	for (long i = 0; i < crowd; i++) {
		create_timer(i);
		set_timer(i);
	}
	time_each("get", get_timer, nr);
	time_each("set", set_timer, nr);
	time_each("replace", replace_timer, nr);
}

int main(int argc, char **argv)
{
	long nr = argc == 4 ? atol(argv[3]) : 0;

	crowd = argc == 4 ? atol(argv[2]) : 0;
	if (crowd > 0 && nr > 0 && !strcmp(argv[1], "files")) {
		time_files(nr);
	} else if (crowd > 0 && nr > 0 && !strcmp(argv[1], "fds")) {
		time_fds(nr);
	} else if (crowd > 0 && nr > 0 && !strcmp(argv[1], "sockets")) {
		time_sockets(nr);
	} else if (crowd > 0 && nr > 0 && !strcmp(argv[1], "processes")) {
		time_processes(nr);
	} else if (crowd > 0 && nr > 0 && !strcmp(argv[1], "timers")) {
		time_timers(nr);
	} else {
		puts("usage: bench-crowds files|fds|sockets|processes|timers CROWD N");
		return 2;
	}
	return 0;
}
