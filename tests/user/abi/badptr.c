// SPDX-License-Identifier: BSD-2-Clause
/*
 * Hostile arguments to every system call: bad pointers, lengths that overflow, bad descriptors,
 * unknown numbers and operations. Each must give the error Linux gives, and nothing else.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "check.h"

#define KERNEL	     ((void *)0xffffffff81000000)
#define DIRECT_MAP   ((void *)0xffff888000100000)
#define NONCANONICAL ((void *)0x8000000000000000)
#define LIMIT	     ((void *)0x00007ffffffff000) /* the first address after user space */
#define LAST	     ((void *)-1l)

#define AT_EMPTY 0x1000

static void *bad[] = { NULL, (void *)8, KERNEL, DIRECT_MAP, NONCANONICAL, LIMIT, LAST, NULL, NULL };

#define NR_BAD (sizeof(bad) / sizeof(bad[0]))

static char *hole; /* one good page, then one that is not mapped */
static int file;

static void setup(void)
{
	bad[NR_BAD - 2] = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	hole = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(hole, 'x', 8192);
	munmap(hole + 4096, 4096);
	bad[NR_BAD - 1] = hole + 4096;
	file = open(check_file_name(), O_CREAT | O_RDWR | O_TRUNC, 0600);
	CHECK(file >= 0);
	CHECK(write(file, "0123456789", 10) == 10);
}

static void test_files(void *p)
{
	struct {
		void *base;
		size_t len;
	} vec[2] = { { p, 10 }, { p, 10 } };

	CHECK(lseek(file, 0, SEEK_SET) == 0);
	CHECK_ERROR(EFAULT, SYS_read, file, p, 10);
	CHECK_ERROR(EFAULT, SYS_write, file, p, 10);
	CHECK_ERROR(EFAULT, SYS_pread64, file, p, 10, 0);
	CHECK_ERROR(EFAULT, SYS_pwrite64, file, p, 10, 0);
	CHECK_ERROR(EFAULT, SYS_writev, file, vec, 2);
	CHECK_ERROR(EFAULT, SYS_readv, file, vec, 2);
	CHECK_ERROR(EFAULT, SYS_writev, file, p, 1);
	CHECK_ERROR(EFAULT, SYS_readv, file, p, 1);
	CHECK_ERROR(EFAULT, SYS_open, p, O_RDONLY);
	CHECK_ERROR(EFAULT, SYS_openat, AT_FDCWD, p, O_RDONLY);
	CHECK_ERROR(EFAULT, SYS_stat, p, hole);
	CHECK_ERROR(EFAULT, SYS_lstat, p, hole);
	CHECK_ERROR(EFAULT, SYS_stat, "/", p);
	CHECK_ERROR(EFAULT, SYS_fstat, file, p);
	CHECK_ERROR(EFAULT, SYS_newfstatat, AT_FDCWD, "/", p, 0);
	CHECK_ERROR(EFAULT, SYS_newfstatat, AT_FDCWD, p, hole, 0);
	CHECK_ERROR(EFAULT, SYS_newfstatat, file, "", p, AT_EMPTY);
	CHECK_ERROR(EFAULT, SYS_access, p, F_OK);
	CHECK_ERROR(EFAULT, SYS_faccessat, AT_FDCWD, p, F_OK);
	CHECK_ERROR(EFAULT, SYS_readlink, p, hole, 10);
	CHECK_ERROR(EFAULT, SYS_readlink, "/proc/self/exe", p, 10);
	CHECK_ERROR(EFAULT, SYS_execve, p, NULL, NULL);
	CHECK_ERROR(EFAULT, SYS_getcwd, p, 4096);
}

static void test_times(void *p)
{
	CHECK_ERROR(EFAULT, SYS_nanosleep, p, NULL);
	CHECK_ERROR(EFAULT, SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, p, NULL);
	CHECK_ERROR(EFAULT, SYS_clock_gettime, CLOCK_MONOTONIC, p);
	if (p) { /* these calls accept NULL */
		CHECK_ERROR(EFAULT, SYS_clock_getres, CLOCK_MONOTONIC, p);
		CHECK_ERROR(EFAULT, SYS_gettimeofday, p, NULL);
		CHECK_ERROR(EFAULT, SYS_time, p);
		CHECK_ERROR(EFAULT, SYS_rt_sigaction, 10, p, NULL, 8);
		CHECK_ERROR(EFAULT, SYS_rt_sigaction, 10, NULL, p, 8);
		CHECK_ERROR(EFAULT, SYS_rt_sigprocmask, 0, p, NULL, 8);
		CHECK_ERROR(EFAULT, SYS_rt_sigprocmask, 0, NULL, p, 8);
		CHECK_ERROR(EFAULT, SYS_prlimit64, 0, 3, NULL, p);
		CHECK_ERROR(EFAULT, SYS_prlimit64, 0, 3, p, NULL);
	}
	CHECK_ERROR(EFAULT, SYS_sysinfo, p);
	CHECK_ERROR(EFAULT, SYS_getrandom, p, 16, 0);
	CHECK_ERROR(EFAULT, SYS_sched_getaffinity, 0, 128, p);
	CHECK_ERROR(EFAULT, SYS_sched_setaffinity, 0, 128, p);
	CHECK_ERROR(EFAULT, SYS_uname, p);
}

static void test_tasks(void *p)
{
	uintptr_t at = (uintptr_t)p;

	/* Aligned, because futex looks at the alignment first. */
	if (at % 4 == 0 && at != (uintptr_t)bad[NR_BAD - 2]) {
		CHECK_ERROR(EFAULT, SYS_futex, p, 128, 0, NULL, NULL, 0);
		CHECK_ERROR(EFAULT, SYS_futex, p, 0, 0, NULL, NULL, 0);
	}
	if (p)
		CHECK_ERROR(EFAULT, SYS_futex, &file, 128, file, p, NULL, 0);
	CHECK_ERROR(EFAULT, SYS_clone3, p, 64);
	CHECK_ERROR(EFAULT, SYS_arch_prctl, 0x1003, p);
	if (at >= (uintptr_t)LIMIT) {
		CHECK_ERROR(EPERM, SYS_arch_prctl, 0x1001, p);
		CHECK_ERROR(EPERM, SYS_arch_prctl, 0x1002, p);
	}
	if (p) {
		CHECK_ERROR(EFAULT, SYS_get_robust_list, 0, p, hole);
		CHECK_ERROR(EFAULT, SYS_get_robust_list, 0, hole, p);
	}
}

/* Transfers that begin in good memory and run into a hole, or that are as long as can be. */
static void test_partial(void)
{
	long page = 4096;

	CHECK(lseek(file, 0, SEEK_SET) == 0);
	CHECK_ERROR(EFAULT, SYS_open, memset(hole + page - 8, 'a', 8), O_RDONLY);
	CHECK_ERROR(EFAULT, SYS_clock_gettime, CLOCK_MONOTONIC, hole + page - 8);
	CHECK_ERROR(EFAULT, SYS_fstat, file, hole + page - 8);
	CHECK_ERROR(EFAULT, SYS_uname, hole + page - 8);
	CHECK(syscall(SYS_write, file, "", 0) == 0);
	CHECK(syscall(SYS_read, file, NULL, 0) == 0);
	CHECK_ERROR(EFAULT, SYS_write, file, hole, -1l);
	CHECK_ERROR(EFAULT, SYS_read, file, hole, -1l);
	CHECK_ERROR(EINVAL, SYS_pread64, file, hole, 10, -1l);
	CHECK_ERROR(EINVAL, SYS_pwrite64, file, hole, 10, -1l);
	CHECK(syscall(SYS_pread64, file, hole, 10, INT64_MAX - 20) == 0);
}

static void test_vectors(void)
{
	struct {
		void *base;
		size_t len;
	} vec[3] = { { hole, 4 }, { hole, -1l }, { hole, 4 } };

	CHECK_ERROR(EINVAL, SYS_readv, file, vec, 3);
	CHECK_ERROR(EINVAL, SYS_writev, file, vec, 3);
	CHECK_ERROR(EINVAL, SYS_readv, file, vec, -1);
	CHECK_ERROR(EINVAL, SYS_writev, file, vec, 1025);
	CHECK(syscall(SYS_writev, file, NULL, 0) == 0);
	vec[1].len = 0;
	vec[1].base = KERNEL;
	CHECK_ERROR(EFAULT, SYS_writev, file, vec, 3);
	vec[1].base = NULL;
	CHECK(syscall(SYS_writev, file, vec, 3) == 8);
}

static void test_descriptors(void)
{
	static const int fds[] = { -1, 99, 1 << 20, INT32_MAX, INT32_MIN };

	for (unsigned int i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		int fd = fds[i];

		CHECK_ERROR(EBADF, SYS_read, fd, hole, 1);
		CHECK_ERROR(EBADF, SYS_write, fd, hole, 1);
		CHECK_ERROR(EBADF, SYS_close, fd);
		CHECK_ERROR(EBADF, SYS_fstat, fd, hole);
		CHECK_ERROR(EBADF, SYS_lseek, fd, 0, 0);
		CHECK_ERROR(EBADF, SYS_pread64, fd, hole, 1, 0);
		CHECK_ERROR(EBADF, SYS_dup, fd);
		CHECK_ERROR(EBADF, SYS_fcntl, fd, F_GETFL);
		CHECK_ERROR(EBADF, SYS_ioctl, fd, 0x5401, hole);
		CHECK_ERROR(EBADF, SYS_openat, fd, "relative", O_RDONLY);
		CHECK_ERROR(EBADF, SYS_mmap, NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	}
	CHECK_ERROR(EINVAL, SYS_lseek, file, 0, 77);
	CHECK_ERROR(EINVAL, SYS_lseek, file, -1l, SEEK_SET);
	CHECK_ERROR(EINVAL, SYS_fcntl, file, 12345, 0);
	CHECK_ERROR(ENOTTY, SYS_ioctl, file, 0x5401, hole);
}

static void test_memory_arguments(void)
{
	long map = MAP_PRIVATE | MAP_ANONYMOUS;
	int fd;

	CHECK_ERROR(EINVAL, SYS_mmap, NULL, 0, PROT_READ, map, -1, 0);
	CHECK_ERROR(ENOMEM, SYS_mmap, NULL, -1l, PROT_READ, map, -1, 0);
	CHECK_ERROR(ENOMEM, SYS_mmap, NULL, -4096l, PROT_READ, map, -1, 0);
	CHECK_ERROR(ENOMEM, SYS_mmap, NULL, 1ul << 47, PROT_READ, map, -1, 0);
	CHECK_ERROR(EINVAL, SYS_mmap, hole + 1, 4096, PROT_READ, map | MAP_FIXED, -1, 0);
	CHECK_ERROR(ENOMEM, SYS_mmap, LIMIT, 4096, PROT_READ, map | MAP_FIXED, -1, 0);
	CHECK_ERROR(ENOMEM, SYS_mmap, -4096l, 4096, PROT_READ, map | MAP_FIXED, -1, 0);
	CHECK_ERROR(EINVAL, SYS_mmap, NULL, 4096, PROT_READ, MAP_ANONYMOUS, -1, 0);
	CHECK_ERROR(EINVAL, SYS_mmap, NULL, 4096, PROT_READ, MAP_PRIVATE, file, 1);
	CHECK_ERROR(EINVAL, SYS_munmap, hole, 0);
	CHECK_ERROR(EINVAL, SYS_munmap, hole + 1, 4096);
	CHECK_ERROR(EINVAL, SYS_munmap, 0, -1l);
	CHECK_ERROR(EINVAL, SYS_munmap, LIMIT, 4096);
	CHECK_ERROR(EINVAL, SYS_munmap, KERNEL, 4096);
	CHECK_ERROR(EINVAL, SYS_mprotect, hole + 1, 4096, PROT_READ);
	CHECK_ERROR(ENOMEM, SYS_mprotect, hole + 4096, 4096, PROT_READ);
	CHECK_ERROR(ENOMEM, SYS_mprotect, KERNEL, 4096, PROT_READ);
	CHECK_ERROR(ENOMEM, SYS_mprotect, hole, -4096l, PROT_READ);
	CHECK_ERROR(EINVAL, SYS_mprotect, hole, 4096, 0x1000);
	CHECK_ERROR(EINVAL, SYS_madvise, hole + 1, 4096, MADV_DONTNEED);
	CHECK_ERROR(EINVAL, SYS_madvise, hole, 4096, 9999);
	CHECK_ERROR(ENOMEM, SYS_madvise, hole + 4096, 4096, MADV_DONTNEED);
	fd = open(check_file_name(), O_WRONLY);
	CHECK_ERROR(EACCES, SYS_mmap, NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	CHECK(syscall(SYS_brk, -1l) == syscall(SYS_brk, 0));
	CHECK(syscall(SYS_brk, KERNEL) == syscall(SYS_brk, 0));
}

static void test_odd_arguments(void)
{
	struct timespec ts = { 0, 1000000000 };
	long args[8] = { 0 };

	CHECK_ERROR(EINVAL, SYS_nanosleep, &ts, NULL);
	ts = (struct timespec){ -1, 0 };
	CHECK_ERROR(EINVAL, SYS_nanosleep, &ts, NULL);
	CHECK_ERROR(EINVAL, SYS_clock_gettime, 9999, &ts);
	CHECK_ERROR(EINVAL, SYS_rt_sigprocmask, 77, args, NULL, 8);
	CHECK_ERROR(EINVAL, SYS_rt_sigprocmask, 0, args, NULL, 4);
	CHECK_ERROR(EINVAL, SYS_rt_sigaction, 9, args, NULL, 8);
	CHECK_ERROR(EINVAL, SYS_rt_sigaction, 65, NULL, args, 8);
	CHECK_ERROR(EINVAL, SYS_rt_sigaction, 0, NULL, args, 8);
	CHECK_ERROR(ENOSYS, SYS_futex, &file, 0x7f, 0, NULL, NULL, 0);
	CHECK_ERROR(EINVAL, SYS_futex, (char *)&file + 1, 128, 0, NULL, NULL, 0);
	CHECK_ERROR(EINVAL, SYS_futex, &file, 137, file, NULL, NULL, 0);
	CHECK_ERROR(EINVAL, SYS_set_robust_list, args, 1);
	CHECK_ERROR(EINVAL, SYS_arch_prctl, 0x7777, args);
	CHECK_ERROR(EINVAL, SYS_clone3, args, 8);
	CHECK_ERROR(E2BIG, SYS_clone3, args, 5000);
	args[0] = 1l << 40;
	CHECK_ERROR(EINVAL, SYS_clone3, args, sizeof(args));
	CHECK_ERROR(EINVAL, SYS_newfstatat, AT_FDCWD, "/", hole, 0x10000);
	CHECK_ERROR(EINVAL, SYS_getrandom, hole, 16, 0x100);
	CHECK_ERROR(EINVAL, SYS_prlimit64, 0, 77, NULL, args);
	CHECK_ERROR(ESRCH, SYS_kill, 99999, 0);
	CHECK_ERROR(EINVAL, SYS_kill, getpid(), 65);
	CHECK_ERROR(EINVAL, SYS_tgkill, 0, 0, 0);
	CHECK_ERROR(ESRCH, SYS_tgkill, getpid(), 99999, 0);
	CHECK_ERROR(EINVAL, SYS_sched_getaffinity, 0, 1, args);
	CHECK_ERROR(ENOENT, SYS_open, "", O_RDONLY);
	CHECK_ERROR(ENOENT, SYS_open, "/no/such/file", O_RDONLY);
	CHECK_ERROR(ENOENT, SYS_execve, "/no/such/file", NULL, NULL);
	CHECK_ERROR(EINVAL, SYS_readlink, "/proc/self/exe", hole, 0);
	CHECK_ERROR(ERANGE, SYS_getcwd, hole, 1);
}

static void test_long_path(void)
{
	char *path = malloc(8192);

	memset(path, 'a', 8191);
	path[0] = '/';
	path[8191] = 0;
	CHECK_ERROR(ENAMETOOLONG, SYS_open, path, O_RDONLY);
	CHECK_ERROR(ENAMETOOLONG, SYS_execve, path, NULL, NULL);
	path[300] = 0;
	CHECK_ERROR(ENAMETOOLONG, SYS_open, path, O_RDONLY);
	free(path);
}

static void test_unknown_numbers(void)
{
	static const long numbers[] = { 600,	   700,	 999,	    1023,
					4095,	   4096, 65535,	    INT32_MAX - 1,
					INT32_MAX, -2,	 INT32_MIN, (1l << 32) - 2,
					INT64_MAX };

	for (unsigned int i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		/* Linux looks at the low half of the number only: -2 in it is unknown too. */
		CHECK_ERROR(ENOSYS, numbers[i], 1, 2, 3, 4, 5, 6);
	}
}

int main(void)
{
	setup();
	for (unsigned int i = 0; i < NR_BAD; i++) {
		test_files(bad[i]);
		test_times(bad[i]);
		test_tasks(bad[i]);
	}
	test_partial();
	test_vectors();
	test_descriptors();
	test_memory_arguments();
	test_odd_arguments();
	test_long_path();
	test_unknown_numbers();
	return check_finish("badptr");
}
