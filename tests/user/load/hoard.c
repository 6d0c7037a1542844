// SPDX-License-Identifier: BSD-2-Clause
/*
 * hoard UID KIND...: as that user, processes take as much as they can of something that uses kernel
 * memory: pipes, files, threads and so on (see kinds). Meanwhile root starts processes that use
 * some memory, shells if there are any, all of which must succeed. While the user hoards files, so
 * must processes of the next user, which write files before. Then root kills all processes of
 * that user and removes its files, and the memory is free again. Prints `hoard KIND: ` and the
 * number of root's processes. Only for the guest, which should have little memory.
 */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/timerfd.h>

#include "run.h"

#define PAGE	   4096ul
#define MAX_FDS	   1024
#define NR_ROUNDS  20 /* root starts at least so many processes */
#define TIMEOUT_MS 60000
#define SLACK	   (4 << 20) /* kept by caches of the kernel */
#define FILES	   "/tmp/hoard"
#define ROOTS_FILE FILES "/open"

static struct shared {
	int nr_refused; /* threads, processes, files and the like */
	int error;	/* an errno that no hoarder expects */
} * shared;

/*
 * Memory of root's process: it must use more than a hoarder, and still be spared. The kernel keeps
 * 1/32 of the memory for root.
 */
static char ballast[3 << 20] __attribute__((aligned(4096)));

/* Ends a hoarder after an unexpected error, and reports the error to root's process. */
static void unexpected(int error)
{
	shared->error = error;
	child_exit(1);
}

static void count_refused(int error)
{
	if (error != EAGAIN && error != ENOMEM && error != ENOSPC)
		unexpected(error);
	__atomic_add_fetch(&shared->nr_refused, 1, __ATOMIC_RELAXED);
	sleep_ms(20);
}

static void go_on_in_child(void)
{
	pid_t pid;

	while ((pid = fork()) < 0)
		count_refused(errno);
	if (pid) {
		for (;;)
			pause();
	}
	for (int fd = 3; fd < MAX_FDS; fd++)
		close(fd);
}

static int make_pipe(int nr)
{
	static char bytes[1 << 16];
	int fds[2];

	if (pipe2(fds, O_NONBLOCK))
		return -1;
	if (write(fds[1], bytes, sizeof(bytes)) != sizeof(bytes))
		unexpected(errno);
	return 0;
}

/* Areas of a file with a long path, so that /proc/self/maps is a text of megabytes. */
static void make_long_maps(void)
{
	char name[201];
	int fd;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	if (chdir("/tmp"))
		unexpected(errno);
	for (int i = 0; i < 18; i++) {
		if ((mkdir(name, 0777) && errno != EEXIST) || chdir(name))
			unexpected(errno);
	}
	fd = open("file", O_RDWR | O_CREAT, 0666);
	if (fd < 0 || ftruncate(fd, PAGE))
		unexpected(errno);
	for (int i = 0; i < 300; i++) {
		if (mmap(NULL, PAGE, i & 1 ? PROT_READ : PROT_NONE, MAP_PRIVATE, fd, 0) ==
		    MAP_FAILED)
			unexpected(errno);
	}
}

static int make_text(int nr)
{
	char byte;
	int fd = open("/proc/self/maps", O_RDONLY);

	if (fd >= 0 && read(fd, &byte, 1) != 1 && errno != ENOMEM)
		unexpected(errno);
	return fd;
}

/* Writes shared memory and unmaps all but one page, which keeps the rest allocated. */
static int make_shared(int nr)
{
	char *memory =
		mmap(NULL, 256 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		unexpected(errno);
	memset(memory, 1, 256 * PAGE);
	return munmap(memory + PAGE, 255 * PAGE);
}

static void make_areas(void)
{
	char *memory = mmap(NULL, 32000 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int i = 0; memory != MAP_FAILED && i < 32000; i += 2) {
		if (mprotect(memory + i * PAGE, PAGE, PROT_READ))
			unexpected(errno);
	}
}

/* For what all children of a process have, too. */
static int make_nothing(int nr)
{
	errno = ENOMEM;
	return -1;
}

static void *wait_in_thread(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static int start_thread(void *(*run)(void *arg), size_t stack_bytes)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, stack_bytes);
	errno = pthread_create(&thread, &attr, run, NULL);
	return -errno;
}

static int make_thread(int nr)
{
	return start_thread(wait_in_thread, 64 << 10);
}

static int make_process(int nr)
{
	return fork();
}

static void prepare_names(void)
{
	if (chdir(FILES) || mknod("first", S_IFREG | 0666, 0))
		unexpected(errno);
}

/* Names of all types, as long as possible, until there is no room for another inode. */
static int make_name(int nr)
{
	char name[256], target[128];

	memset(target, 't', sizeof(target) - 1);
	target[sizeof(target) - 1] = 0;
	snprintf(name, sizeof(name), "%0255d", nr);
	switch (nr % 4) {
	case 0:
		return symlink(target, name);
	case 1:
		return mkfifo(name, 0666);
	case 2:
		return link("first", name);
	default:
		return mkdir(name, 0777);
	}
}

/* A file as large as possible. */
static void fill_file(void)
{
	static char page[PAGE];
	int fd;

	if (chdir(FILES))
		unexpected(errno);
	fd = open("content", O_CREAT | O_WRONLY, 0666);
	while (write(fd, page, PAGE) > 0)
		;
	if (errno != ENOSPC)
		unexpected(errno);
	ftruncate(fd, lseek(fd, 0, SEEK_END) - (4 << 20)); /* room for pages of make_file() */
}

/* As much as one may have, and the file of root that everyone may write to. */
static int fill_roots_file(int nr)
{
	static char page[PAGE];
	int fd = open(ROOTS_FILE, O_WRONLY | O_APPEND);

	if (!nr)
		fill_file();
	if (fd < 0)
		unexpected(errno);
	while (write(fd, page, PAGE) > 0)
		;
	close(fd);
	return nr ? -1 : 0;
}

/* An empty file that once had a page at its end. */
static int make_file(int nr)
{
	char name[64];
	int fd, error;

	snprintf(name, sizeof(name), "%d", nr);
	fd = open(name, O_CREAT | O_WRONLY, 0666);
	if (fd < 0)
		return -1;
	error = pwrite(fd, "x", 1, 255 * PAGE) < 0 || ftruncate(fd, 0) ? errno : 0;
	close(fd);
	errno = error;
	return -error;
}

static int make_handle(int nr)
{
	sigset_t set;

	sigemptyset(&set);
	switch (nr % 4) {
	case 0:
		return eventfd(0, 0);
	case 1:
		return timerfd_create(CLOCK_MONOTONIC, 0);
	case 2:
		return signalfd(-1, &set, 0);
	default:
		return epoll_create1(0);
	}
}

/* An epoll instance that watches all descriptors before it. */
static int make_watches(int nr)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fd = nr < 500 ? eventfd(0, 0) : epoll_create1(0);

	for (int i = 3; nr >= 500 && fd >= 0 && i < 503; i++) {
		if (epoll_ctl(fd, EPOLL_CTL_ADD, i, &event) && errno != EEXIST) {
			if (errno != ENOMEM && errno != EPERM)
				unexpected(errno);
			return -1;
		}
	}
	return fd;
}

static void fill_socket(int fd)
{
	static char bytes[1 << 16];

	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	if (errno != EAGAIN && errno != ENOMEM && errno != ENOBUFS)
		unexpected(errno);
}

static int make_sockets(int nr)
{
	int fds[2], error = socketpair(AF_UNIX, nr & 1 ? SOCK_STREAM : SOCK_DGRAM, 0, fds);

	if (!error)
		fill_socket(fds[0]);
	return error;
}

/* Sends full sockets through a socket, and closes them, so that only messages hold them. */
static int make_rights(int nr)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { "x", 1 };
	struct msghdr msg = { NULL, 0, &iov, 1, control, sizeof(control), 0 };
	struct cmsghdr *rights = CMSG_FIRSTHDR(&msg);
	int through[2], fds[2];

	*rights = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, through))
		return -1;
	for (int i = 0; i < 8; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
			return -1;
		fill_socket(fds[0]);
		memcpy(CMSG_DATA(rights), &fds[1], sizeof(int));
		if (sendmsg(through[0], &msg, MSG_DONTWAIT) < 0 && errno != ENOMEM &&
		    errno != ETOOMANYREFS && errno != EAGAIN)
			unexpected(errno);
		close(fds[0]);
		close(fds[1]);
	}
	return 0;
}

static void block_signals(void)
{
	sigset_t set;

	sigfillset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
}

static int make_signal(int nr)
{
	return sigqueue(getpid(), SIGRTMIN, (union sigval){ 0 });
}

static int make_timer(int nr)
{
	struct sigevent event = { .sigev_notify = SIGEV_NONE };
	timer_t timer;

	if (!timer_create(CLOCK_MONOTONIC, &event, &timer))
		return 0;
	errno = errno == EAGAIN ? ENOMEM : errno;
	return -1;
}

static void take_descriptors(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	while (dup(0) >= 0)
		;
}

/* Threads that look at all their descriptors in /proc. */
static void *list_descriptors(void *arg)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* there is one descriptor */
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/self/task/%d/fd", gettid());
	pthread_mutex_lock(&lock);
	dir = opendir(path);
	while (dir && readdir(dir))
		;
	if (!dir || closedir(dir))
		unexpected(errno);
	pthread_mutex_unlock(&lock);
	return wait_in_thread(arg);
}

static void prepare_links(void)
{
	take_descriptors();
	close(100);
}

static int make_link(int nr)
{
	return start_thread(list_descriptors, 160 << 10);
}

/* Threads that poll all descriptors, in vain. */
static void *poll_all(void *arg)
{
	static struct pollfd fds[4096];

	for (int i = 0; i < 4096; i++)
		fds[i] = (struct pollfd){ i + 3, POLLIN, 0 };
	for (;;)
		poll(fds, 4000, -1);
	return arg;
}

static void prepare_polls(void)
{
	int ends[2];

	if (pipe(ends) || dup2(ends[0], 0))
		unexpected(errno);
	take_descriptors();
}

static int make_poll(int nr)
{
	return start_thread(poll_all, 160 << 10);
}

#define KIND(name_, make_, ...)                             \
	{                                                   \
		.name = name_, .make = make_, ##__VA_ARGS__ \
	}

static const struct kind {
	const char *name;
	int (*make)(int nr);   /* takes one more; negative, with errno: refused */
	void (*prepare)(void); /* called once before */
	bool stays;	       /* tries again if refused; else goes on in a child */
	bool of_files;
} kinds[] = {
	KIND("pipes", make_pipe),
	KIND("texts", make_text, .prepare = make_long_maps),
	KIND("shared", make_shared),
	KIND("areas", make_nothing, .prepare = make_areas),
	KIND("threads", make_thread, .stays = true),
	KIND("processes", make_process, .stays = true),
	KIND("names", make_name, .prepare = prepare_names, .stays = true, .of_files = true),
	KIND("files", make_file, .prepare = fill_file, .stays = true, .of_files = true),
	KIND("open", fill_roots_file, .stays = true, .of_files = true),
	KIND("signals", make_signal, .prepare = block_signals, .stays = true),
	KIND("timers", make_timer),
	KIND("handles", make_handle),
	KIND("watches", make_watches),
	KIND("sockets", make_sockets),
	KIND("rights", make_rights),
	KIND("links", make_link, .prepare = prepare_links, .stays = true),
	KIND("polls", make_poll, .prepare = prepare_polls, .stays = true),
};

static void hoard(const struct kind *kind)
{
	int nr = 0;

	if (kind->prepare)
		kind->prepare();
	for (;;) {
		while (kind->make(nr) >= 0)
			nr++;
		if (kind->stays) {
			count_refused(errno);
			continue;
		}
		if (errno != EMFILE && errno != ENOMEM)
			unexpected(errno);
		go_on_in_child();
		nr = 0;
	}
}

/* Returns how many processes were killed for lack of memory, by the log. */
static int nr_kills(void)
{
	static char log[1 << 18];
	int n = klogctl(3, log, sizeof(log) - 1), nr = 0;

	log[n < 0 ? 0 : n] = 0;
	for (const char *line = log; (line = strstr(line, "out of memory: killed")); line++)
		nr++;
	return nr;
}

static unsigned long free_bytes(void)
{
	struct sysinfo info = { 0 };

	CHECK(!sysinfo(&info));
	return info.freeram * info.mem_unit;
}

static void become(uid_t user)
{
	CHECK(!setgroups(0, NULL) && !setgid(user) && !setuid(user));
	/* Frees memory, or this process would be the one that the kernel kills. */
	munmap(ballast, sizeof(ballast));
}

static char memory[64 * PAGE];

/* Makes a directory and a file with content, and removes them. */
static int write_files(void)
{
	int fd = mkdir("/tmp/neighbor", 0777) ? -1 : creat("/tmp/neighbor/file", 0666);

	return fd >= 0 && write(fd, memory, sizeof(memory)) == sizeof(memory) &&
	       !unlink("/tmp/neighbor/file") && !rmdir("/tmp/neighbor");
}

/*
 * Runs a process of a user: a shell, or one that needs 256 KiB. Users other than root write files
 * before. Returns whether it succeeded.
 */
static int work(uid_t user)
{
	union sigval value = { 0 };
	pid_t pid = fork();
	sigset_t set;

	if (!pid) {
		if (user) {
			become(user);
			if (!write_files())
				_exit(errno);
		}
		sigemptyset(&set);
		sigaddset(&set, SIGRTMIN);
		sigprocmask(SIG_BLOCK, &set, NULL);
		if (sigqueue(getpid(), SIGRTMIN, value))
			_exit(errno);
		execl("/bin/sh", "sh", "-c", "test $(echo ok | cat) = ok && exit 3", NULL);
		memset(memory, 1, sizeof(memory));
		_exit(3);
	}
	return CHECK(pid > 0 && child_status(pid) == EXITED(3));
}

/* Kills all processes of the user, as `su` with `kill -9 -1` does. Once must be enough. */
static void kill_all(uid_t user, pid_t first)
{
	pid_t pid = fork_child();

	if (!pid) {
		become(user);
		CHECK(!kill(-1, SIGKILL) || errno == ESRCH);
		child_exit(3);
	}
	CHECK(child_status(pid) == EXITED(3));
	CHECK(child_status(first) == SIGKILL);
	/* No process is left. */
	CHECK(WAIT_UNTIL(getpriority(PRIO_USER, user) == -1 && errno == ESRCH));
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void test(const struct kind *kind, uid_t user)
{
	unsigned long free_before = free_bytes(), least = free_before;
	int kills_before = nr_kills(), nr = 0;
	long end_ms = now_ms() + TIMEOUT_MS;
	pid_t pid;

	mkdir("/tmp", 0777);
	CHECK(!chmod("/tmp", 0777) && !mkdir(FILES, 0777) && !chmod(FILES, 0777));
	CHECK(!mknod(ROOTS_FILE, S_IFREG | 0666, 0) && !chmod(ROOTS_FILE, 0666));
	pid = fork_child();
	shared->nr_refused = 0;
	if (!pid) {
		become(user);
		hoard(kind);
	}
	while (nr < NR_ROUNDS || (nr_kills() == kills_before && shared->nr_refused < 20)) {
		if (!CHECK(now_ms() < end_ms) || !work(0) || (kind->of_files && !work(user + 1)))
			break;
		nr++;
		least = free_bytes() < least ? free_bytes() : least;
	}
	kill_all(user, pid);
	if (!CHECK(!shared->error))
		printf("errno %d in %s\n", shared->error, kind->name);
	shared->error = 0;
	CHECK(!nftw(FILES, remove_entry, 16, FTW_DEPTH | FTW_PHYS));
	if (!CHECK(WAIT_UNTIL(free_bytes() + SLACK > free_before)))
		printf("%lu of %lu bytes are free\n", free_bytes(), free_before);
	printf("hoard %s: root started %d processes, %d were killed, %lu KiB were free\n",
	       kind->name, nr, nr_kills() - kills_before, least >> 10);
}

static int run(uid_t user, char **names)
{
	struct sysinfo info;

	CHECK(!sysinfo(&info));
	memset(ballast, 1, info.totalram < 100 << 20 ? sizeof(ballast) / 4 : sizeof(ballast));
	for (; *names; names++) {
		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
			if (!strcmp(kinds[i].name, *names))
				test(&kinds[i], user);
		}
	}
	return check_finish("hoard");
}

/* Process 1 only reaps, because the kernel never kills it. */
int main(int argc, char **argv)
{
	int status = -1, other;
	pid_t pid, got;

	setvbuf(stdout, NULL, _IOLBF, 0);
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (argc < 3 || shared == MAP_FAILED)
		return 1;
	pid = fork_child();
	if (!pid)
		exit(run(atoi(argv[1]), argv + 2));
	while ((got = wait(&other)) > 0 && got != pid)
		;
	if (got == pid)
		status = other;
	return status != 0;
}
