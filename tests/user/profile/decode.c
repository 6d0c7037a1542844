// SPDX-License-Identifier: BSD-2-Clause
/*
 * Makes calls whose arguments are hard to decode: every flag alone, all together, none; undefined
 * values; strings with all kinds of characters, bad pointers, huge sizes. Nearly all calls fail,
 * because descriptors are -1 and pointers are bad. The test compares the trace of this program with
 * that of the host's strace.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

#define BAD    ((void *)8)
#define BAD_FD (-1)

#define call(nr, ...) ((void)syscall(__NR_##nr, ##__VA_ARGS__))

/* Runs the body with each bit alone, with all bits, with the odd bits, and with none. */
#define for_each_flag(value)                                         \
	for (int bit_ = 0; bit_ < 36; bit_++)                        \
		for (unsigned int value = bit_ < 32  ? 1u << bit_ :  \
					  bit_ == 32 ? ~0u :         \
					  bit_ == 33 ? 0x55555555u : \
					  bit_ == 34 ? 0 :           \
						       0x0f0f0f0fu,  \
				  once_ = 1;                         \
		     once_; once_ = 0)

#define for_each_value(value, to) for (int value = -2; value <= (to); value++)

static void make_file_calls(void)
{
	for_each_flag(flags) {
		call(open, BAD, flags, 0644);
		call(openat, BAD_FD, BAD, flags, flags);
		call(dup3, BAD_FD, BAD_FD, flags);
		call(pipe2, BAD, flags);
		call(eventfd2, 7, flags | 16);
		call(accept4, BAD_FD, BAD, NULL, flags & 02004000);
		call(sendto, BAD_FD, BAD, 1L, flags & 0x4000c1ef, NULL, 0);
		call(sendmmsg, BAD_FD, BAD, 1, flags & 0x4000c1ee);
		call(recvmmsg, BAD_FD, BAD, 1, flags & 0x4001c1ee, NULL);
		call(timerfd_create, flags, flags | 16);
		call(timerfd_settime, BAD_FD, flags, BAD, NULL);
		call(signalfd4, BAD_FD, BAD, 8L, flags);
		call(memfd_create, "memory", (flags & 0x3ffffff) | 0x1000);
		call(close_range, 7, 6, flags);
		call(epoll_create1, flags | 16);
		call(access, BAD, flags);
		call(faccessat2, BAD_FD, BAD, flags, flags);
		call(newfstatat, BAD_FD, BAD, BAD, flags);
		call(unlinkat, BAD_FD, BAD, flags);
		call(linkat, BAD_FD, BAD, BAD_FD, BAD, flags);
		call(fchownat, BAD_FD, BAD, flags, -1, flags);
		call(utimensat, BAD_FD, BAD, BAD, flags);
		call(renameat2, BAD_FD, BAD, BAD_FD, BAD, flags);
		call(statx, BAD_FD, BAD, flags, ~flags, BAD);
		call(fallocate, BAD_FD, flags, 1L, -2L);
		call(preadv2, BAD_FD, BAD, 1L, 2L, 0L, flags);
		call(mount, BAD, BAD, BAD, (unsigned long)flags, BAD);
		call(umount2, BAD, flags);
		call(mkdir, BAD, flags);
		call(fchmod, BAD_FD, flags);
		call(mknod, BAD, flags, 0);
	}
	call(mknod, BAD, S_IFCHR | 0600, 0x103);
	call(epoll_create, -1);
	call(epoll_wait, BAD_FD, NULL, 1, -1);
	call(epoll_pwait, BAD_FD, NULL, 1, -1, NULL, 8L);
	call(mknodat, BAD_FD, BAD, S_IFBLK | 0640, 0xfff00ff);
	call(mknodat, BAD_FD, BAD, S_IFREG | 0640, 0x103);
	for_each_value(value, 12) {
		call(lseek, BAD_FD, -1L, value);
		call(epoll_ctl, BAD_FD, value, BAD_FD, BAD);
		call(lseek, BAD_FD, 1L << 40, value);
		call(fadvise64, BAD_FD, 0L, 1L, value);
	}
	for_each_value(cmd, 40) {
		call(fcntl, BAD_FD, cmd, 0x802L);
	}
	for_each_value(cmd, 20) {
		call(fcntl, BAD_FD, 1024 + cmd, 1L);
	}
	for_each_value(cmd, 0x60) {
		call(ioctl, BAD_FD, 0x5400 + cmd, 7L);
	}
	call(ioctl, BAD_FD, 0x12345678, 7L);
	call(ioctl, BAD_FD, 0x80045430, 7L);
	call(ioctl, BAD_FD, 0xc0081234, 7L);
}

static void make_memory_calls(void)
{
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(page != MAP_FAILED);
	for_each_flag(flags) {
		/* Size 0: EINVAL whatever the flags. */
		call(mmap, NULL, 0L, flags, flags, BAD_FD, 4096L);
		call(mprotect, (char *)page + 1, 1L, flags);
		call(mremap, (char *)page + 1, 0L, 1L, flags, BAD);
		call(msync, (char *)page + 1, 1L, flags | 8);
		call(getrandom, BAD, 0L, flags | 8);
	}
	for_each_value(value, 30) {
		call(madvise, (char *)page + 1, 1L, value);
	}
}

/* The operations of prctl() that do not affect later calls. */
static const unsigned char prctls[] = { 0,  1,	2,  3,	4,  5,	7,  8,	13, 14, 15, 16, 17, 18,
					21, 25, 26, 27, 29, 30, 36, 37, 39, 41, 42, 48, 65, 70 };

static void make_process_calls(void)
{
	for_each_flag(flags) {
		call(wait4, 1234567, BAD, flags | 0x10, BAD);
		call(waitid, 77, 1, BAD, flags, NULL);
		/* CLONE_THREAD without CLONE_SIGHAND: EINVAL. */
		call(clone, (flags | 0x10000) & ~0x800u, BAD, BAD, BAD, BAD);
		call(clock_nanosleep, 0, flags, BAD, BAD);
	}
	for_each_value(value, 140) {
		call(futex, 1L, value, 2, BAD, BAD, 3);
	}
	for_each_value(value, 70) {
		call(kill, 0x7fffffff, value);
		call(tgkill, 0x7fffffff, 0x7fffffff, value);
		call(rt_sigaction, value, BAD, NULL, 8L);
		call(rt_sigprocmask, value, BAD, BAD, 4L);
		call(getitimer, value, BAD);
		call(setitimer, value | 8, BAD, NULL);
		call(clock_gettime, value, BAD);
		call(clock_getres, value | 16, BAD);
		call(getrlimit, value | 16, BAD);
		call(prlimit64, 0x7fffffff, value, NULL, NULL);
		call(getrusage, value, BAD);
		call(getpriority, value | 4, 1);
		call(sched_get_priority_max, value | 16);
		call(sched_getscheduler, -5);
	}
	for_each_value(value, 10) {
		call(prctl, 1000 + value, 1L, 2L, 3L, 4L);
	}
	for (unsigned int i = 0; i < sizeof(prctls); i++)
		call(prctl, prctls[i], BAD, 2L, 3L, 4L);
	for_each_value(value, 4) {
		call(arch_prctl, 0x5000 + value, BAD);
	}
	call(arch_prctl, 0x1003, BAD);
	call(sigaltstack, BAD, BAD);
	call(nanosleep, BAD, NULL);
	call(set_tid_address, NULL);
	call(getresuid, BAD, BAD, BAD);
	call(setpgid, -1, -1);
	call(getpgid, 0x7fffffff);
}

static void make_string_calls(void)
{
	static const char odd[] = "\001\0022\0039 \"q\\\n\t\r\v\f\b\033\177\200\3777\0end of it";
	char all[256], path[300];

	for (int i = 0; i < 256; i++)
		all[i] = i;
	for (int i = 0; i <= 40; i++)
		call(write, BAD_FD, odd, (long)i);
	for (int i = 0; i < 256; i += 16)
		call(pwrite64, BAD_FD, all + i, 16L, -1L);
	for (int i = 1; i < 255; i += 60) {
		memcpy(path, all + i, 60);
		path[60] = '\0';
		call(chdir, path);
		call(access, path, 0);
	}
	memset(path, 'p', 254);
	path[0] = '/';
	path[254] = '\0';
	call(rename, path, path + 1);
	call(write, BAD_FD, BAD, 1L << 40);
	call(write, BAD_FD, NULL, 0L);
	call(write, BAD_FD, path, 1L << 62);
	call(read, BAD_FD, path, ~0L);
	call(readlink, "/proc/none", path, 300L);
	call(getcwd, path, 1L);
	call(getcwd, path, 300L);
	call(open, "", 0);
	call(openat, AT_FDCWD, NULL, O_RDWR | O_TRUNC, 0);
	call(sethostname, BAD, -1L);
}

int main(void)
{
	make_file_calls();
	make_memory_calls();
	make_process_calls();
	make_string_calls();
	syscall(900, 1L, 2L, 3L, 4L, 5L, 6L);
	return check_finish("decode");
}
