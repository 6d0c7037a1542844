// SPDX-License-Identifier: BSD-2-Clause
/*
 * Descriptors that need no path: close_range, memfd_create.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>

#include "run.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#define UNSHARE	 2
#define CLOEXEC	 4
#define FIRST_FD 100

static void open_some(void)
{
	for (int i = 0; i < 10; i++)
		CHECK(dup2(0, FIRST_FD + i) == FIRST_FD + i);
}

/* One bit for each of the ten that is open. */
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

static void test_close_range(void)
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
static void test_unshare(void)
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

static int make_memfd(const char *name, unsigned int flags)
{
	return syscall(SYS_memfd_create, name, flags);
}

static void test_memfd(void)
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

static const struct test tests[] = {
	TEST(close_range),
	TEST(unshare),
	TEST(memfd),
	{ 0 },
};

int main(int argc, char **argv)
{
	return run_tests("fds", tests, argc, argv);
}
