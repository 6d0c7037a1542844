// SPDX-License-Identifier: BSD-2-Clause
/*
 * Descriptors that need no path: close_range, many of them, memfd_create with seals.
 */
#include <fcntl.h>
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "run.h"

#define UNSHARE	 2
#define CLOEXEC	 4
#define FIRST_FD 100

static void open_some(void)
{
	for (int i = 0; i < 10; i++)
		CHECK(dup2(0, FIRST_FD + i) == FIRST_FD + i);
}

/* Returns a bit for each of the ten descriptors that is open. */
static int which_open(void)
{
	int bits = 0;

	for (int i = 0; i < 10; i++)
		bits |= (fcntl(FIRST_FD + i, F_GETFD) >= 0) << i;
	return bits;
}

static int which_cloexec(void)
{
	int bits = 0;

	for (int i = 0; i < 10; i++)
		bits |= (fcntl(FIRST_FD + i, F_GETFD) == FD_CLOEXEC) << i;
	return bits;
}

static long range(unsigned int first, unsigned int last, int flags)
{
	return syscall(SYS_close_range, first, last, flags);
}

TEST(close_range)
{
	open_some();
	CHECK(which_open() == 0x3ff);
	CHECK(!range(FIRST_FD + 2, FIRST_FD + 3, 0) && which_open() == 0x3f3);
	CHECK(!range(FIRST_FD + 1, FIRST_FD + 4, 0) && which_open() == 0x3e1);
	CHECK(!range(FIRST_FD + 6, FIRST_FD + 7, CLOEXEC) && which_cloexec() == 0xc0);
	CHECK(which_open() == 0x3e1);
	CHECK(!range(FIRST_FD + 8, -1, CLOEXEC | UNSHARE) && which_cloexec() == 0x3c0);
	CHECK(!range(FIRST_FD, -1, UNSHARE) && which_open() == 0);
	CHECK(!range(FIRST_FD, -1, 0) && !range(-1, -1, 0) && !range(5000, 6000, CLOEXEC));
	CHECK_ERROR(EINVAL, SYS_close_range, 5, 4, 0);
	CHECK_ERROR(EINVAL, SYS_close_range, 5, 6, 1);
	CHECK_ERROR(EINVAL, SYS_close_range, 5, 6, 8);
}

static char stack[65536] __attribute__((aligned(16)));

static int unshare_and_close(void *arg)
{
	_exit(range(FIRST_FD, FIRST_FD + 9, *(int *)arg) || which_open());
}

/* Two processes share descriptors: close_range() closes for both, or only for the caller. */
TEST(unshare)
{
	int flags = 0;
	pid_t pid;

	open_some();
	pid = clone(unshare_and_close, stack + sizeof(stack), CLONE_FILES | SIGCHLD, &flags);
	CHECK(pid > 0 && child_status(pid) == 0 && which_open() == 0);
	open_some();
	flags = UNSHARE;
	pid = clone(unshare_and_close, stack + sizeof(stack), CLONE_FILES | SIGCHLD, &flags);
	CHECK(pid > 0 && child_status(pid) == 0 && which_open() == 0x3ff);
	CHECK(!range(FIRST_FD, FIRST_FD + 9, 0));
}

#define MAX_MANY 20000

static int nr_many; /* descriptors; fewer where a host does not allow that */

static int set_limit(rlim_t soft, rlim_t hard)
{
	return setrlimit(RLIMIT_NOFILE, &(struct rlimit){ soft, hard });
}

/* Checks the hard limit: its value, and that only root may raise it, up to a maximum. */
TEST(limit)
{
	struct rlimit limit;
	pid_t pid = fork_child();

	if (pid) {
		CHECK(child_status(pid) == EXITED(0));
		return;
	}
	CHECK(!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_max >= 4096);
	if (check_on_lego())
		CHECK(limit.rlim_cur == 1024 && limit.rlim_max == 4096);
	CHECK(set_limit(1024, RLIM_INFINITY) == -1 && errno == EPERM);
	CHECK(set_limit(0, 1 << 30) == -1 && errno == EPERM);
	CHECK(!set_limit(100, 1000));
	if (check_on_lego() || !set_limit(100, 2000))
		CHECK(!set_limit(100, 2000) && !set_limit(100, 1000));
	if (!getuid())
		CHECK(!setuid(4711));
	CHECK(set_limit(100, 2000) == -1 && errno == EPERM);
	CHECK(!set_limit(1000, 1000) && !set_limit(500, 500));
	child_exit(0);
}

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	int nr = -1; /* without the directory's own descriptor */

	if (!CHECK(dir))
		return -1;
	while ((entry = readdir(dir)))
		nr += entry->d_name[0] != '.';
	closedir(dir);
	return nr;
}

/* Uses the descriptors from @first to nr_many - 1, which are all the read end of one pipe. */
static void use_many(int first, int write_end)
{
	static fd_set sets[MAX_MANY / FD_SETSIZE + 1];
	static struct pollfd fds[MAX_MANY];
	struct epoll_event event = { .events = EPOLLIN, .data.fd = nr_many - 1 };
	int epoll;

	for (int fd = first; fd < nr_many; fd++)
		((unsigned char *)sets)[fd / 8] |= 1 << fd % 8;
	for (int fd = 0; fd < nr_many; fd++)
		fds[fd] = (struct pollfd){ .fd = fd < first ? -1 : fd, .events = POLLIN };
	CHECK(poll(fds, nr_many, 0) == 0 && write(write_end, "x", 1) == 1);
	CHECK(poll(fds, nr_many, 0) == nr_many - first && fds[nr_many - 1].revents == POLLIN);
	CHECK(syscall(SYS_poll, fds, nr_many + 101, 0) == -1 && errno == EINVAL);
	CHECK(syscall(SYS_select, nr_many, sets, NULL, NULL, NULL) == nr_many - first);
	close(first);
	CHECK(syscall(SYS_select, nr_many, sets, NULL, NULL, NULL) == -1 && errno == EBADF);
	epoll = epoll_create1(0);
	CHECK(epoll == first);
	CHECK(!epoll_ctl(epoll, EPOLL_CTL_ADD, nr_many - 1, &event));
	CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, nr_many - 1, &event) == -1 && errno == EEXIST);
	event.data.fd = 0;
	CHECK(epoll_wait(epoll, &event, 1, -1) == 1 && event.data.fd == nr_many - 1);
	CHECK(!epoll_ctl(epoll, EPOLL_CTL_DEL, nr_many - 1, NULL) && !close(epoll));
	CHECK(dup(first + 1) == first);
}

/*
 * A child inherits all of them; a program that the child executes, only those without FD_CLOEXEC.
 */
static void inherit_many(int first)
{
	char name[16], *args[] = { "fds", "--count", name, NULL };
	pid_t pid;

	snprintf(name, sizeof(name), "%d", nr_many / 2);
	CHECK(!range(nr_many / 2, nr_many - 1, CLOEXEC));
	CHECK(fcntl(nr_many - 1, F_GETFD) == FD_CLOEXEC && !fcntl(nr_many / 2 - 1, F_GETFD));
	pid = fork_child();
	if (!pid) {
		CHECK(count_fds() == nr_many);
		CHECK(!range(first, nr_many / 4 - 1, 0) && dup(nr_many - 1) == first);
		CHECK(dup2(1, nr_many / 4 - 1) == nr_many / 4 - 1);
		CHECK(!range(nr_many / 4, -1, 0) && count_fds() == first + 2);
		child_exit(0);
	}
	CHECK(child_status(pid) == EXITED(0) && count_fds() == nr_many);
	pid = fork_child();
	if (!pid) {
		execv("/proc/self/exe", args);
		_exit(1);
	}
	CHECK(child_status(pid) == EXITED(0));
}

TEST(many)
{
	struct rlimit limit;
	int ends[2], fd;
	pid_t pid;

	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	nr_many = MAX_MANY;
	if (!check_on_lego() && limit.rlim_max < MAX_MANY + 100)
		nr_many = (int)limit.rlim_max - 100;
	pid = fork_child();
	if (pid) {
		CHECK(child_status(pid) == EXITED(0));
		return;
	}
	CHECK(!range(3, -1, 0) && !set_limit(200, nr_many + 100));
	CHECK(!pipe(ends) && dup2(ends[1], 199) == 199 && dup2(1, 200) == -1 && errno == EBADF);
	CHECK(dup2(ends[1], 5) == 5 && !close(199) && !close(ends[1]));
	CHECK(!set_limit(nr_many, nr_many + 100) && dup(ends[0]) == 4);
	for (fd = 6; fd < nr_many && dup(3) == fd; fd++)
		;
	CHECK(fd == nr_many && dup(3) == -1 && errno == EMFILE);
	CHECK(!set_limit(nr_many + 100, nr_many + 100) && fcntl(3, F_DUPFD, nr_many + 50) > 0);
	CHECK(!close(nr_many + 50) && !close(777) && dup(3) == 777 && dup(3) == nr_many);
	CHECK(!close(nr_many) && count_fds() == nr_many);
	use_many(6, 5);
	inherit_many(6);
	child_exit(0);
}

static pthread_barrier_t barrier;
static int ends[2];

static void *find_closed(void *nothing)
{
	CHECK(which_open() == 0 && !fcntl(ends[1], F_GETFD));
	return nothing;
}

/*
 * Gets a descriptor table of its own without the ten. A thread that it creates shares this table.
 */
static void *unshare_in_thread(void *tid)
{
	pthread_t thread;

	*(pid_t *)tid = syscall(SYS_gettid);
	CHECK(!range(FIRST_FD, FIRST_FD + 9, UNSHARE) && which_open() == 0);
	CHECK(dup2(ends[1], FIRST_FD + 20) == FIRST_FD + 20);
	CHECK(!pthread_create(&thread, NULL, find_closed, NULL) && !pthread_join(thread, NULL));
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static int has_link(pid_t tid, int fd)
{
	char path[64], to[8];

	snprintf(path, sizeof(path), "/proc/self/task/%d/fd/%d", tid, fd);
	return readlink(path, to, sizeof(to)) > 0;
}

/* Returns true if the other end of the pipe is closed everywhere. */
static int is_at_end(int fd)
{
	char byte;

	return read(fd, &byte, 1) == 0;
}

/* A thread gets its own descriptors. When it ends, files that only it had open are closed. */
TEST(unshare_threads)
{
	pthread_t thread;
	pid_t tid;

	open_some();
	CHECK(!pipe2(ends, O_NONBLOCK) && !pthread_barrier_init(&barrier, NULL, 2));
	CHECK(!pthread_create(&thread, NULL, unshare_in_thread, &tid));
	pthread_barrier_wait(&barrier);
	CHECK(which_open() == 0x3ff && fcntl(FIRST_FD + 20, F_GETFD) == -1);
	CHECK(has_link(tid, FIRST_FD + 20) && !has_link(tid, FIRST_FD));
	CHECK(has_link(getpid(), FIRST_FD) && !has_link(getpid(), FIRST_FD + 20));
	CHECK(!close(ends[1]) && !is_at_end(ends[0]) && errno == EAGAIN);
	pthread_barrier_wait(&barrier);
	CHECK(!pthread_join(thread, NULL) && WAIT_UNTIL(is_at_end(ends[0])));
	CHECK(!close(ends[0]) && !range(FIRST_FD, FIRST_FD + 9, 0));
}

static void *wait_and_end(void *nothing)
{
	pthread_barrier_wait(&barrier);
	return nothing;
}

/*
 * A file that is open only in the table of the process is closed when no thread uses this table any
 * more, although the process goes on.
 */
static void unshare_and_outlive(void)
{
	pthread_t thread;
	char fd[16];

	CHECK(!pipe2(ends, O_NONBLOCK) && !pthread_barrier_init(&barrier, NULL, 2));
	CHECK(!pthread_create(&thread, NULL, wait_and_end, NULL));
	CHECK(!range(ends[1], ends[1], UNSHARE) && !is_at_end(ends[0]) && errno == EAGAIN);
	pthread_barrier_wait(&barrier);
	CHECK(!pthread_join(thread, NULL) && WAIT_UNTIL(is_at_end(ends[0])));
	CHECK(has_link(getpid(), ends[0]) && !has_link(getpid(), ends[1]));
	snprintf(fd, sizeof(fd), "%d", ends[0]);
	execl("/proc/self/exe", "fds", "is-at-end", fd, NULL);
}

TEST(unshare_alone)
{
	pid_t pid = fork_child();

	if (!pid) {
		unshare_and_outlive();
		_exit(99);
	}
	CHECK(child_status(pid) == EXITED(42));
}

static int make_memfd(const char *name, unsigned int flags)
{
	return syscall(SYS_memfd_create, name, flags);
}

TEST(memfd)
{
	char path[64], link[64] = "", name[300];
	int fd = make_memfd("it's", 1);
	struct stat st;
	char *map;

	CHECK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	CHECK((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR);
	CHECK(!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size == 0 && st.st_nlink == 0);
	CHECK((st.st_mode & 0777) == 0777 && write(fd, "hello", 5) == 5);
	CHECK(!ftruncate(fd, 10000) && !fstat(fd, &st) && st.st_size == 10000);
	map = mmap(NULL, 10000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED && !memcmp(map, "hello", 6));
	memcpy(map + 8000, "there", 5);
	CHECK(pread(fd, name, 5, 8000) == 5 && !memcmp(name, "there", 5));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (readlink(path, link, sizeof(link) - 1) > 0)
		CHECK(!strcmp(link, "/memfd:it's (deleted)"));
	CHECK(!close(fd) && !memcmp(map + 8000, "there", 5) && !munmap(map, 10000));
	fd = make_memfd("", 0);
	CHECK(fd >= 0 && fcntl(fd, F_GETFD) == 0 && !close(fd));
	memset(name, 'n', 250);
	name[249] = '\0';
	fd = make_memfd(name, 0);
	CHECK(fd >= 0 && !close(fd));
	name[249] = 'n';
	name[250] = '\0';
	CHECK(make_memfd(name, 0) == -1 && errno == EINVAL);
	CHECK(make_memfd("x", 0x100) == -1 && errno == EINVAL);
	CHECK_ERROR(EFAULT, SYS_memfd_create, 8, 0);
}

static int seal(int fd, int seals)
{
	return fcntl(fd, F_ADD_SEALS, seals);
}

/* A memfd of 6000 bytes that can be sealed. */
static int make_sealable(void)
{
	int fd = make_memfd("sealed", MFD_ALLOW_SEALING);

	CHECK(fd >= 0 && fcntl(fd, F_GET_SEALS) == 0 && !ftruncate(fd, 6000));
	return fd;
}

static int fails(long ret, int error)
{
	return ret == -1 && errno == error;
}

TEST(seal_size)
{
	int fd = make_sealable();
	char bytes[8192] = "bytes";
	struct stat st;

	CHECK(!seal(fd, 0) && !seal(fd, F_SEAL_SHRINK) && fcntl(fd, F_GET_SEALS) == F_SEAL_SHRINK);
	CHECK(fails(ftruncate(fd, 5999), EPERM) && !ftruncate(fd, 6000) && !ftruncate(fd, 6001));
	CHECK(!fallocate(fd, 0, 0, 10));
	CHECK(!seal(fd, F_SEAL_GROW) && fcntl(fd, F_GET_SEALS) == (F_SEAL_SHRINK | F_SEAL_GROW));
	CHECK(fails(ftruncate(fd, 6002), EPERM) && !ftruncate(fd, 6001));
	CHECK(fails(fallocate(fd, 0, 6000, 2), EPERM) && !fallocate(fd, 0, 0, 6001));
	CHECK(pwrite(fd, bytes, 5, 5996) == 5 && fails(pwrite(fd, bytes, 5, 5997), EPERM));
	CHECK(fails(pwrite(fd, bytes, 1, 20000), EPERM) && pwrite(fd, bytes, 0, 20000) == 0);
	/* A write that would grow the file writes only the whole pages before that. */
	CHECK(pwrite(fd, bytes, sizeof(bytes), 0) == 4096);
	CHECK(pread(fd, bytes, sizeof(bytes), 4096) == 6001 - 4096 &&
	      !memcmp(bytes + 1900, "bytes", 5));
	CHECK(!fstat(fd, &st) && st.st_size == 6001 && !close(fd));
}

/* Files of one file system can be copied in the kernel; for others the caller has to do it. */
TEST(copy_file_range)
{
	int from = make_memfd("from", 0), to = make_memfd("to", 0);
	int file = open(check_file_name(), O_CREAT | O_RDWR | O_TRUNC, 0600);
	off_t at = 2;
	char text[8];

	CHECK(write(from, "abcdef", 6) == 6 && copy_file_range(from, &at, to, NULL, 9, 0) == 4);
	CHECK(at == 6 && pread(to, text, 8, 0) == 4 && !memcmp(text, "cdef", 4));
	at = 0;
	CHECK(fails(copy_file_range(from, &at, file, NULL, 6, 0), EXDEV) && at == 0);
	CHECK(fails(copy_file_range(from, &at, file, NULL, 6, 1), EINVAL));
	CHECK(!close(from) && !close(to) && !close(file) && !unlink(check_file_name()));
}

TEST(seal_writes)
{
	int fd = make_sealable(), other, ends[2];
	char path[64], *map;
	off_t at = 0;

	map = mmap(NULL, 6000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED && fails(seal(fd, F_SEAL_WRITE), EBUSY));
	CHECK(fcntl(fd, F_GET_SEALS) == 0 && pwrite(fd, "more", 4, 0) == 4);
	CHECK(!munmap(map, 6000));
	map = mmap(NULL, 6000, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	CHECK(map != MAP_FAILED && !seal(fd, F_SEAL_WRITE | F_SEAL_SEAL));
	CHECK(fcntl(fd, F_GET_SEALS) == (F_SEAL_WRITE | F_SEAL_SEAL));
	CHECK(fails(seal(fd, F_SEAL_GROW), EPERM) && fails(seal(fd, 0), EPERM));
	CHECK(fails(pwrite(fd, "x", 1, 0), EPERM) && fails(pwrite(fd, "x", 1, 7000), EPERM));
	/* A private mapping can still be changed, because that does not change the file. */
	map[0] = 'M';
	CHECK(pread(fd, path, 4, 0) == 4 && !memcmp(path, "more", 4) && !munmap(map, 6000));
	map = mmap(NULL, 6000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(map == MAP_FAILED && errno == EPERM);
	/* Another open file has the same seals, and the kernel's own copies obey them. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	other = open(path, O_RDONLY);
	CHECK(other >= 0 && fcntl(other, F_GET_SEALS) == (F_SEAL_WRITE | F_SEAL_SEAL));
	CHECK(fails(seal(other, F_SEAL_GROW), EPERM));
	map = mmap(NULL, 6000, PROT_READ, MAP_SHARED, other, 0);
	CHECK(map != MAP_FAILED && !memcmp(map, "more", 4));
	CHECK(fails(mprotect(map, 6000, PROT_READ | PROT_WRITE), EACCES) && !munmap(map, 6000));
	CHECK(lseek(fd, 0, SEEK_SET) == 0 && fails(sendfile(fd, other, &at, 4), EPERM));
	/* Without F_SEAL_GROW and F_SEAL_SHRINK, its size may change. */
	CHECK(!ftruncate(fd, 10) && !ftruncate(fd, 20) && !close(fd) && !close(other));
	/* Files that cannot be sealed. */
	fd = make_memfd("plain", 0);
	CHECK(fcntl(fd, F_GET_SEALS) == F_SEAL_SEAL && fails(seal(fd, F_SEAL_WRITE), EPERM));
	CHECK(!close(fd) && !pipe(ends) && fails(fcntl(ends[0], F_GET_SEALS), EINVAL));
	CHECK(fails(seal(ends[1], F_SEAL_WRITE), EINVAL) && !close(ends[0]) && !close(ends[1]));
	fd = make_sealable();
	CHECK(fails(seal(fd, 0x100), EINVAL) && fcntl(fd, F_GET_SEALS) == 0 && !close(fd));
	CHECK(fails(fcntl(999, F_GET_SEALS), EBADF));
}

/*
 * A child's writable mapping prevents F_SEAL_WRITE, too. After F_SEAL_FUTURE_WRITE, existing
 * mappings can still write.
 */
TEST(seal_mappings)
{
	int fd = make_sealable(), ends[2];
	char *map = mmap(NULL, 6000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	char c;
	pid_t pid;

	CHECK(map != MAP_FAILED && !pipe(ends));
	pid = fork_child();
	if (!pid) {
		CHECK(!close(ends[1]) && read(ends[0], &c, 1) == 0 && map[1] == 'p');
		child_exit(0);
	}
	CHECK(!munmap(map, 6000) && fails(seal(fd, F_SEAL_WRITE), EBUSY));
	map = mmap(NULL, 6000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED && !seal(fd, F_SEAL_FUTURE_WRITE));
	memcpy(map, "up", 2);
	CHECK(fails(pwrite(fd, "x", 1, 0), EPERM));
	CHECK(mmap(NULL, 6000, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EPERM);
	CHECK(!close(ends[1]) && child_status(pid) == 0 && fails(seal(fd, F_SEAL_WRITE), EBUSY));
	CHECK(!munmap(map, 6000) && !seal(fd, F_SEAL_WRITE) && !close(fd) && !close(ends[0]));
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--count"))
		return count_fds() != atoi(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "is-at-end"))
		return is_at_end(atoi(argv[2])) ? 42 : 1;
	return run_tests("fds", argc, argv);
}
