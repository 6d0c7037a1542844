// SPDX-License-Identifier: BSD-2-Clause
/*
 * accuracy <workload> <seed> <cycles> [<period> | <file> <word> <word>]: work for the heatmap, to
 * be compared with the truth (tests/accuracy/). Resets the counters, works for that many TSC
 * cycles, switches samples off and requests a report at its exit. A random generator chooses each
 * next step, so that the work is never in step with the samples. The exception is `periodic`: it
 * does one thing in the first half of each period of TSC cycles, and another in the second half.
 *
 * At the end it prints for how long samples were taken: `clock <least> <most>`, in TSC cycles. With
 * <file>, a path that begins with a slash, it writes one word to this file before the work and one
 * after it, and then copies all call chains of samples to /tmp/chains.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define PAGE 4096ul

static uint64_t random_state, end_cycles;
static char buf[64 * 1024];

static int is_over(void)
{
	return rdtsc() >= end_cycles;
}

static void must(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static uint32_t next_random(uint32_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 32) % limit;
}

/*
 * User code between two calls: mostly short, now and then some thousand instructions. So what a
 * sample without jitter finds does not depend on what the previous sample found.
 */
static void spin(void)
{
	static volatile uint32_t sink;

	for (uint32_t nr = next_random(next_random(4) ? 60 : 800); nr; nr--)
		sink += nr;
}

static int zero, null, pipe_fds[2], file;

static void read_and_write(uint32_t size)
{
	struct iovec iov[3] = { { buf, size }, { buf + PAGE, 7 }, { buf + 2 * PAGE, size / 2 } };

	switch (next_random(5)) {
	case 0:
		must(read(zero, buf, size) == size, "/dev/zero");
		break;
	case 1:
		must(write(null, buf, size) == size, "/dev/null");
		break;
	case 2:
		must(writev(null, iov, 3) > 0, "writev");
		break;
	case 3:
		must(pwrite(file, buf, size, next_random(PAGE)) == size, "pwrite");
		break;
	default:
		must(pread(file, buf, size, 0) >= 0, "pread");
	}
}

static void open_and_close(void)
{
	struct stat st;
	int fd;

	switch (next_random(4)) {
	case 0:
		fd = open("/tmp/accuracy", O_RDONLY);
		must(fd >= 0, "open");
		close(fd);
		break;
	case 1:
		fd = dup(zero);
		must(fd >= 0, "dup");
		close(fd);
		break;
	case 2:
		must(!stat("/tmp/accuracy", &st), "stat");
		break;
	default:
		must(!fstat(file, &st), "fstat");
	}
}

static void ask(void)
{
	struct utsname name;
	struct timespec ts;
	sigset_t set;
	long ret;

	switch (next_random(5)) {
	case 0:
		ret = syscall(SYS_getppid);
		must(ret >= 0, "getppid");
		break;
	case 1:
		must(!syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &ts), "clock_gettime");
		break;
	case 2:
		must(!uname(&name), "uname");
		break;
	case 3:
		sigemptyset(&set);
		must(!sigprocmask(SIG_BLOCK, &set, NULL), "sigprocmask");
		break;
	default:
		must(lseek(file, 0, SEEK_SET) == 0, "lseek");
	}
}

static void work_syscalls(void)
{
	uint32_t size;

	must(!pipe(pipe_fds), "pipe");
	while (!is_over()) {
		spin();
		switch (next_random(4)) {
		case 0:
			read_and_write(1 + next_random(3000));
			break;
		case 1:
			size = 1 + next_random(600);
			must(write(pipe_fds[1], buf, size) == size, "write to a pipe");
			must(read(pipe_fds[0], buf, size) == size, "read from a pipe");
			break;
		case 2:
			open_and_close();
			break;
		default:
			ask();
		}
	}
}

/* Touches random pages; every other time forks a child that does so, too. */
static void touch(char *area, uint32_t nr_pages)
{
	for (uint32_t nr = 1 + next_random(nr_pages); nr; nr--) {
		volatile char *page = area + next_random(nr_pages) * PAGE;

		if (next_random(3))
			*page = nr;
		else
			(void)*page;
	}
}

static void work_faults(void)
{
	uint32_t nr_pages, what;
	pid_t pid;
	char *area;

	while (!is_over()) {
		nr_pages = 1 + next_random(48);
		what = next_random(64);
		spin();
		area = mmap(NULL, nr_pages * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		must(area != MAP_FAILED, "mmap");
		touch(area, nr_pages);
		if (what < 24) {
			must(!madvise(area, nr_pages * PAGE, MADV_DONTNEED), "madvise");
			touch(area, nr_pages);
		} else if (what < 40) {
			must(!mprotect(area, nr_pages * PAGE, PROT_READ), "mprotect");
			must(!mprotect(area, nr_pages * PAGE, PROT_READ | PROT_WRITE), "mprotect");
			touch(area, nr_pages);
		} else if (what == 40) {
			pid = fork();
			must(pid >= 0, "fork");
			touch(area, nr_pages);
			if (!pid)
				_exit(0);
			must(waitpid(pid, NULL, 0) == pid, "waitpid");
		}
		must(!munmap(area, nr_pages * PAGE), "munmap");
	}
}

static uint32_t ball;

static long futex(uint32_t *addr, int op, uint32_t value)
{
	return syscall(SYS_futex, addr, op, value, NULL, NULL, 0);
}

/* Plays ping-pong until the first player sets bit 31, which means the end. */
static void *play(void *arg)
{
	uint32_t mine = (uintptr_t)arg, seen;

	for (;;) {
		while ((seen = __atomic_load_n(&ball, __ATOMIC_ACQUIRE)) % 2 != mine &&
		       !(seen >> 31))
			futex(&ball, FUTEX_WAIT_PRIVATE, seen);
		if (seen >> 31)
			return NULL;
		spin();
		if (!mine && is_over())
			__atomic_or_fetch(&ball, 1u << 31, __ATOMIC_RELEASE);
		else
			__atomic_store_n(&ball, (seen + 1) & ~(1u << 31), __ATOMIC_RELEASE);
		futex(&ball, FUTEX_WAKE_PRIVATE, 1);
	}
}

static void *short_life(void *arg)
{
	sched_yield();
	return arg;
}

/* A ping-pong of threads, one of processes through pipes, and threads that come and go. */
static void work_sched(void)
{
	int there[2], back[2];
	pthread_t player, other;
	uint32_t size, first = random_state;
	pid_t pid;

	must(!pipe(there) && !pipe(back), "pipe");
	pid = fork();
	must(pid >= 0, "fork");
	if (!pid) {
		close(there[1]);
		while ((size = read(there[0], buf, sizeof(buf))))
			must(write(back[1], buf, size) == size, "write to a pipe");
		_exit(0);
	}
	must(!pthread_create(&player, NULL, play, (void *)1ul), "thread");
	must(!pthread_create(&other, NULL, play, (void *)0ul), "thread");
	random_state = first + 1;
	while (!is_over()) {
		if (next_random(8)) {
			size = 1 + next_random(200);
			must(write(there[1], buf, size) == size, "write to a pipe");
			must(read(back[0], buf, size) > 0, "read from a pipe");
		} else {
			pthread_t thread;

			must(!pthread_create(&thread, NULL, short_life, NULL), "thread");
			sched_yield();
			must(!pthread_join(thread, NULL), "join");
		}
	}
	pthread_join(player, NULL);
	pthread_join(other, NULL);
	close(there[1]);
	waitpid(pid, NULL, 0);
}

/* The kernel makes its random numbers with interrupts off. */
static void work_irqsoff(void)
{
	while (!is_over()) {
		uint32_t size = 1 + next_random(1000);

		if (next_random(10))
			must(getrandom(buf, size, 0) == size, "getrandom");
		else
			read_and_write(size);
		spin();
	}
}

/* One byte there, one byte back, between two processes: nearly all of it is switching. */
static void work_pingpong(void)
{
	int there[2], back[2];
	char byte = 0;
	pid_t pid;

	must(!pipe(there) && !pipe(back), "pipe");
	pid = fork();
	must(pid >= 0, "fork");
	if (!pid) {
		close(there[1]);
		while (read(there[0], &byte, 1) == 1)
			must(write(back[1], &byte, 1) == 1, "write to a pipe");
		_exit(0);
	}
	while (!is_over()) {
		must(write(there[1], &byte, 1) == 1, "write to a pipe");
		must(read(back[0], &byte, 1) == 1, "read from a pipe");
		if (!next_random(8))
			spin();
	}
	close(there[1]);
	must(waitpid(pid, NULL, 0) == pid, "waitpid");
}

#define NR_FILES 16

/* Operations on the files of a tmpfs. */
static void use_file(const char *name, const char *other)
{
	uint32_t size = 1 + next_random(sizeof(buf));
	struct stat st;
	int fd;

	switch (next_random(6)) {
	case 0:
	case 1:
		fd = open(name, O_RDWR | O_CREAT, 0600);
		must(fd >= 0, name);
		must(pwrite(fd, buf, size, next_random(PAGE)) == size, "pwrite");
		close(fd);
		break;
	case 2:
		fd = open(name, O_RDONLY);
		while (fd >= 0 && read(fd, buf, size) > 0)
			;
		close(fd);
		break;
	case 3:
		rename(name, other);
		break;
	case 4:
		if (!stat(name, &st))
			must(!truncate(name, next_random(st.st_size + PAGE)), "truncate");
		break;
	default:
		unlink(name);
	}
}

static void work_tmpfs(void)
{
	char name[32], other[32];

	must(!mkdir("/tmp/fs", 0700) && !mount("accuracy", "/tmp/fs", "tmpfs", 0, NULL), "mount");
	while (!is_over()) {
		snprintf(name, sizeof(name), "/tmp/fs/%u", next_random(NR_FILES));
		snprintf(other, sizeof(other), "/tmp/fs/%u", next_random(NR_FILES));
		use_file(name, other);
		spin();
	}
}

#define NR_PAGES 256

/* Does nothing but page faults: first touches of pages, and copies of pages that a child shares. */
static void work_pagefaults(void)
{
	char *area = mmap(NULL, NR_PAGES * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	must(area != MAP_FAILED, "mmap");
	while (!is_over()) {
		for (uint32_t page = 0; page < NR_PAGES; page += 1 + next_random(2)) {
			if (next_random(4))
				area[page * PAGE] = 1;
			else
				(void)*(volatile char *)(area + page * PAGE);
		}
		if (next_random(8)) {
			must(!madvise(area, NR_PAGES * PAGE, MADV_DONTNEED), "madvise");
			continue;
		}
		pid = fork();
		must(pid >= 0, "fork");
		if (!pid) {
			for (uint32_t page = 0; page < NR_PAGES; page++)
				area[page * PAGE] = 2;
			_exit(0);
		}
		must(waitpid(pid, NULL, 0) == pid, "waitpid");
	}
}

static uint64_t period = 1;

static void work_periodic(void)
{
	uint64_t now;

	while ((now = rdtsc()) < end_cycles) {
		if (now % period < period / 2)
			must(read(zero, buf, 300) == 300, "/dev/zero");
		else
			must(syscall(SYS_getppid) >= 0, "getppid");
	}
}

static const struct {
	const char *name;
	void (*work)(void);
} workloads[] = {
	{ "syscalls", work_syscalls },	   { "faults", work_faults },	  { "sched", work_sched },
	{ "irqsoff", work_irqsoff },	   { "pingpong", work_pingpong }, { "tmpfs", work_tmpfs },
	{ "pagefaults", work_pagefaults }, { "periodic", work_periodic },
};

static void (*find_workload(const char *name))(void)
{
	for (size_t i = 0; i < sizeof(workloads) / sizeof(workloads[0]); i++) {
		if (!strcmp(name, workloads[i].name))
			return workloads[i].work;
	}
	fputs("usage: accuracy WORKLOAD SEED CYCLES [PERIOD | FILE WORD WORD]\n", stderr);
	exit(2);
}

static void control(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	must(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
	close(fd);
}

static void copy_chains(void)
{
	int from = open("/proc/profile/samples.json", O_RDONLY);
	int to = open("/tmp/chains", O_WRONLY | O_CREAT, 0600);
	ssize_t size;

	must(from >= 0 && to >= 0, "open");
	while ((size = read(from, buf, sizeof(buf))) > 0)
		must(write(to, buf, size) == size, "/tmp/chains");
	close(from);
	close(to);
}

/* Does the work, and takes the times before and after the writes that begin and end sampling. */
static void work_and_time(void (*work)(void), uint64_t cycles)
{
	uint64_t before = rdtsc(), begin, end;

	control("/proc/profile/report", "reset\n");
	begin = rdtsc();
	end_cycles = begin + cycles;
	work();
	end = rdtsc();
	control("/proc/profile/heatmap", "off\n");
	printf("clock %lu %lu\n", end - begin, rdtsc() - before);
}

int main(int argc, char **argv)
{
	void (*work)(void) = find_workload(argc < 4 ? "" : argv[1]);
	int has_file = argc > 6 && *argv[4] == '/';

	random_state = strtoull(argv[2], NULL, 0) * 0x9e3779b97f4a7c15ull + 1;
	if (has_file)
		control(argv[4], argv[5]);
	else if (argc > 4)
		period = strtoull(argv[4], NULL, 0);
	zero = open("/dev/zero", O_RDONLY);
	null = open("/dev/null", O_WRONLY);
	file = open("/tmp/accuracy", O_RDWR | O_CREAT, 0600);
	must(zero >= 0 && null >= 0 && file >= 0, "open");
	work_and_time(work, strtoull(argv[3], NULL, 0));
	if (has_file) {
		control(argv[4], argv[6]);
		copy_chains();
	}
	control("/proc/sysrq-trigger", "p"); /* prints the report of the whole machine */
	return 0;
}
