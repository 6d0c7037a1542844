// SPDX-License-Identifier: BSD-2-Clause
/*
 * Enforcement of resource limits: length of files, address space, private writable memory, CPU
 * time, and the stack of the next program. Each test sets them in a child.
 */
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#include "run.h"

#define MIB  (1ul << 20)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
#define RW   (PROT_READ | PROT_WRITE)

static const char *self;
static volatile sig_atomic_t nr_signals;

static void count(int sig)
{
	nr_signals += sig != 0;
}

static void set_limit(int resource, rlim_t soft, rlim_t hard)
{
	struct rlimit limit = { soft, hard };

	CHECK(!setrlimit(resource, &limit));
}

/* Expects EFBIG and one more SIGXFSZ, each time that the limit is reached. */
#define TOO_LONG(call)                            \
	do {                                      \
		int before_ = nr_signals;         \
                                                  \
		errno = 0;                        \
		CHECK((call) == -1);              \
		CHECK(errno == EFBIG);            \
		CHECK(nr_signals == before_ + 1); \
	} while (0)

static void write_too_much(void)
{
	int fd = open(check_file_name(), O_CREAT | O_TRUNC | O_RDWR, 0600), end;
	char buf[200] = "x";
	struct iovec iov[3] = { { buf, 60 }, { buf, 60 }, { buf, 60 } };
	int pipe_fds[2];
	off_t zero = 0;

	signal(SIGXFSZ, count);
	CHECK(write(fd, buf, 150) == 150);
	set_limit(RLIMIT_FSIZE, 100, RLIM_INFINITY);
	/* Existing bytes may be overwritten, and the file may be truncated. */
	CHECK(pwrite(fd, buf, 50, 0) == 50);
	CHECK(!ftruncate(fd, 120) && !ftruncate(fd, 80));
	CHECK(pwrite(fd, buf, 50, 70) == 30);
	CHECK(pwrite(fd, buf, 0, 200) == 0);
	TOO_LONG(pwrite(fd, buf, 1, 100));
	CHECK(pwritev(fd, iov, 3, 0) == 100);
	TOO_LONG(pwritev(fd, iov, 3, 100));
	TOO_LONG(ftruncate(fd, 101));
	TOO_LONG(truncate(check_file_name(), 101));
	TOO_LONG(syscall(SYS_fallocate, fd, 0, 50L, 51L));
	end = open(check_file_name(), O_WRONLY | O_APPEND);
	TOO_LONG(write(end, buf, 1));
	CHECK(lseek(fd, 0, SEEK_END) == 100);
	/* From a file to a file. */
	CHECK(!ftruncate(fd, 90) && lseek(fd, 90, SEEK_SET) == 90);
	CHECK(sendfile(fd, fd, &zero, 20) == 10);
	TOO_LONG(sendfile(fd, fd, &zero, 20));
	close(end);
	/* Only files have a length. */
	CHECK(!pipe(pipe_fds) && lseek(fd, 0, SEEK_SET) == 0);
	CHECK(write(pipe_fds[1], buf, 150) == 150);
	close(fd);
}

TEST(file_size)
{
	/* The children use the file of this process, because a signal ends one of them. */
	const char *name = check_file_name();
	pid_t pid = fork_child();

	if (!pid) {
		write_too_much();
		child_exit(0);
	}
	CHECK(child_status(pid) == EXITED(0));
	/* Without a handler the signal ends the program. */
	pid = fork_child();
	if (!pid) {
		set_limit(RLIMIT_FSIZE, 0, 0);
		ftruncate(open(name, O_CREAT | O_TRUNC | O_WRONLY, 0600), 1);
		_exit(1);
	}
	CHECK(WTERMSIG(child_status(pid)) == SIGXFSZ);
}

static void map_too_much(void)
{
	char *p = mmap(NULL, 20 * MIB, PROT_NONE, ANON, -1, 0), *q;
	long end = syscall(SYS_brk, 0);

	CHECK(p != MAP_FAILED);
	set_limit(RLIMIT_AS, 30 * MIB, RLIM_INFINITY);
	q = mmap(NULL, 5 * MIB, PROT_READ, ANON, -1, 0);
	CHECK(q != MAP_FAILED);
	errno = 0;
	CHECK(mmap(NULL, 8 * MIB, PROT_READ, ANON, -1, 0) == MAP_FAILED && errno == ENOMEM);
	CHECK(mmap(NULL, 8 * MIB, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	/* A mapping that replaces another one does not add to the total. */
	CHECK(mmap(p, 20 * MIB, RW, ANON | MAP_FIXED, -1, 0) == p);
	errno = 0;
	CHECK(mremap(q, 5 * MIB, 15 * MIB, MREMAP_MAYMOVE) == MAP_FAILED && errno == ENOMEM);
	CHECK(mremap(p, 20 * MIB, 10 * MIB, 0) == p);
	CHECK((q = mremap(q, 5 * MIB, 15 * MIB, MREMAP_MAYMOVE)) != MAP_FAILED);
	CHECK(syscall(SYS_brk, end + 20 * MIB) == end);
	CHECK(!munmap(p, 10 * MIB) && !munmap(q, 15 * MIB));
	CHECK(syscall(SYS_brk, end + 20 * MIB) == end + 20 * MIB);
}

static void map_too_much_data(void)
{
	char *p = mmap(NULL, 20 * MIB, PROT_NONE, ANON, -1, 0);
	long end = syscall(SYS_brk, 0);

	set_limit(RLIMIT_DATA, 10 * MIB, RLIM_INFINITY);
	errno = 0;
	CHECK(mmap(NULL, 20 * MIB, RW, ANON, -1, 0) == MAP_FAILED && errno == ENOMEM);
	CHECK(syscall(SYS_brk, end + 20 * MIB) == end);
	CHECK(mprotect(p, 20 * MIB, RW) == -1 && errno == ENOMEM);
	CHECK(!mprotect(p, 5 * MIB, RW) && !mprotect(p, 5 * MIB, RW));
	/* Read-only memory and shared memory do not count. */
	CHECK(mmap(NULL, 20 * MIB, PROT_READ, ANON, -1, 0) != MAP_FAILED);
	CHECK(mmap(NULL, 20 * MIB, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
	CHECK(!mprotect(p, 20 * MIB, PROT_READ));
}

TEST(memory)
{
	void (*const tests[])(void) = { map_too_much, map_too_much_data };

	for (int i = 0; i < 2; i++) {
		pid_t pid = fork_child();

		if (!pid) {
			tests[i]();
			child_exit(0);
		}
		CHECK(child_status(pid) == EXITED(0));
	}
}

static long cpu_ms(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

/*
 * On this kernel the signal comes after a second of the CPU time that a program can read. Linux
 * charges whole ticks to the process that runs when they come: on a busy host its second is over
 * sooner. The limit moves on with each signal, and so says how many seconds were counted.
 */
TEST(cpu_time)
{
	pid_t pid = fork_child();
	struct rlimit limit;

	if (!pid) {
		signal(SIGXCPU, count);
		set_limit(RLIMIT_CPU, 1, 60);
		while (!nr_signals && cpu_ms() < 50000)
			;
		CHECK(cpu_ms() >= (check_on_lego() ? 1000 : 1) && cpu_ms() < 50000);
		CHECK(!getrlimit(RLIMIT_CPU, &limit) && limit.rlim_max == 60);
		CHECK(limit.rlim_cur == 1 + (rlim_t)nr_signals);
		fflush(stdout);
		/* One second has gone already. */
		set_limit(RLIMIT_CPU, 1, 1);
		while (cpu_ms() < 50000)
			;
		_exit(1);
	}
	CHECK(WTERMSIG(child_status(pid)) == SIGKILL);
}

/* Uses n bytes of the stack, in a program that was started with another limit. */
static int use_stack(size_t n)
{
	volatile char *room = __builtin_alloca(n);

	for (size_t at = n; at > 4096; at -= 4096)
		room[at - 1] = 1;
	return room[n - 1] == 1 ? 7 : 1;
}

/* Returns the wait status of a program with this stack limit that uses n bytes. */
static int stack_status(rlim_t limit, const char *n)
{
	pid_t pid = fork_child();

	if (!pid) {
		set_limit(RLIMIT_STACK, limit, RLIM_INFINITY);
		execl(self, self, "--stack", n, NULL);
		_exit(1);
	}
	return child_status(pid);
}

TEST(stack)
{
	CHECK(stack_status(8 * MIB, "7000000") == EXITED(7));
	CHECK(WTERMSIG(stack_status(8 * MIB, "9000000")) == SIGSEGV);
	CHECK(stack_status(64 * MIB, "60000000") == EXITED(7));
	CHECK(stack_status(1 * MIB, "900000") == EXITED(7));
	CHECK(WTERMSIG(stack_status(1 * MIB, "7000000")) == SIGSEGV);
	CHECK(stack_status(RLIM_INFINITY, "60000000") == EXITED(7));
}

int main(int argc, char **argv)
{
	self = argv[0][0] == '/' ? argv[0] : "/proc/self/exe";
	if (argc == 3 && !strcmp(argv[1], "--stack"))
		return use_stack(atol(argv[2]));
	return run_tests("limits", argc, argv);
}
