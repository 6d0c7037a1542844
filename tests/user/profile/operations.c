// SPDX-License-Identifier: BSD-2-Clause
/*
 * operations: what a kernel's operations cost, for `make check-perf`. Each operation is a loop with
 * a fixed number of rounds, and its cost is the time from before the loop to after it. Under
 * QEMU's icount that is the number of instructions, of the user and of all parts of the kernel, so
 * one more instruction anywhere on the path of an operation is seen.
 *
 * Each operation starts 1 ms after a timer tick and ends before the next one, so a change in one
 * operation moves no tick into another. Ticks, samples and sleeps are operations of their own.
 *
 * The lines `operation: <name> <rounds> <instructions>` follow when all is over, because the
 * console's interrupts would be in the next operation.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE	   4096
#define NR_PAGES   32
#define TICK_NS	   10000000 /* tick_hz=100 */
#define AFTER_TICK 1000000
#define SAMPLE_HZ  10000
#define NR_POLLED  100

static char large[100000];
static const struct iovec part = { large, sizeof(large) };
static char buffer[PAGE] __attribute__((aligned(PAGE)));
static int zero, null, file, pipe_fds[2], sockets[2], epoll;
static int there[2], back[2];
static struct pollfd polled[NR_POLLED]; /* reading ends of empty pipes */
static fd_set polled_set;
static uint32_t *ball, word;
static volatile int nr_signals;

static uint64_t rdtsc(void)
{
	uint32_t low, high;

	asm volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
	return (uint64_t)high << 32 | low;
}

/* Ends the run if a call fails, as its cost would be that of another path. */
#define MUST(call) must((long)(call), #call)
static void must(long ret, const char *text)
{
	if (ret != -1)
		return;
	fprintf(stderr, "operations: %s: %s\n", text, strerror(errno));
	exit(1);
}

#define CALLS(name, call)                    \
	static void name(long n)             \
	{                                    \
		for (long i = 0; i < n; i++) \
			MUST(call);          \
	}

static struct stat status;
static struct utsname names;
static struct timespec times;
static struct rusage usage;
static struct rlimit limit;
static struct epoll_event event;

CALLS(do_getppid, syscall(SYS_getppid))
CALLS(do_clock, syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &times))
CALLS(do_uname, uname(&names))
CALLS(do_getcwd, syscall(SYS_getcwd, buffer, PAGE))
CALLS(do_getrusage, getrusage(RUSAGE_SELF, &usage))
CALLS(do_getrlimit, getrlimit(RLIMIT_NOFILE, &limit))
CALLS(do_sigprocmask, syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, buffer, 8))
CALLS(do_yield, sched_yield())
CALLS(do_read_zero, read(zero, buffer, 64))
CALLS(do_write_null, write(null, buffer, 64))
CALLS(do_read_file, pread(file, buffer, PAGE, 0))
CALLS(do_write_file, pwrite(file, buffer, PAGE, 0))
CALLS(do_lseek, lseek(file, 0, SEEK_SET))
CALLS(do_fcntl, fcntl(file, F_GETFD))
CALLS(do_stat, stat("/data/file", &status))
CALLS(do_fstat, fstat(file, &status))
CALLS(do_access, access("/data/file", R_OK))
CALLS(do_readlink, readlink("/data/link", buffer, PAGE))
CALLS(do_madvise, madvise(buffer, PAGE, MADV_NORMAL))
CALLS(do_futex_wake, syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0))
CALLS(do_kill, kill(getpid(), SIGUSR1))
CALLS(do_epoll, epoll_wait(epoll, &event, 1, 0))
CALLS(do_poll, poll(polled, 1, 0))
CALLS(do_poll_many, poll(polled, NR_POLLED, 0))

static void do_select_many(long n)
{
	struct timeval none = { 0 };

	for (long i = 0; i < n; i++) {
		fd_set set = polled_set;

		MUST(select(polled[NR_POLLED - 1].fd + 1, &set, NULL, NULL, &none));
	}
}

static void do_open(long n)
{
	for (long i = 0; i < n; i++) {
		int fd = open("/data/file", O_RDONLY);

		MUST(fd);
		MUST(close(fd));
	}
}

static void do_dup(long n)
{
	for (long i = 0; i < n; i++) {
		int fd = dup(file);

		MUST(fd);
		MUST(close(fd));
	}
}

static void do_getdents(long n)
{
	for (long i = 0; i < n; i++) {
		int fd = open("/data", O_RDONLY | O_DIRECTORY);

		MUST(fd);
		MUST(syscall(SYS_getdents64, fd, buffer, PAGE));
		MUST(close(fd));
	}
}

static void do_create(long n)
{
	for (long i = 0; i < n; i++) {
		int fd = open("/data/new", O_CREAT | O_WRONLY | O_EXCL, 0600);

		MUST(fd);
		MUST(write(fd, buffer, 64));
		MUST(close(fd));
		MUST(rename("/data/new", "/data/renamed"));
		MUST(unlink("/data/renamed"));
	}
}

static void do_pipe(long n)
{
	for (long i = 0; i < n; i++) {
		MUST(write(pipe_fds[1], buffer, 64));
		MUST(read(pipe_fds[0], buffer, 64));
	}
}

static void do_pipe_pages(long n)
{
	MUST(write(pipe_fds[1], buffer, 100)); /* the rest begins in the middle of a page */
	MUST(read(pipe_fds[0], buffer, 100));
	for (long i = 0; i < n; i++) {
		MUST(write(pipe_fds[1], buffer, PAGE));
		MUST(read(pipe_fds[0], buffer, PAGE));
	}
}

static void do_socket(long n)
{
	for (long i = 0; i < n; i++) {
		MUST(send(sockets[0], buffer, 64, 0));
		MUST(recv(sockets[1], buffer, 64, 0));
	}
}

/*
 * Two processes pass a byte to and fro: two switches a round. The partners exist before, because
 * what profilers do for a new thread depends on the addresses of the kernel's code.
 */
static void do_ping_pong(long n)
{
	for (long i = 0; i < n; i++) {
		MUST(write(there[1], buffer, 1));
		MUST(read(back[0], buffer, 1));
	}
}

static void serve_pipes(void)
{
	for (;;) {
		MUST(read(there[0], buffer, 1));
		MUST(write(back[1], buffer, 1));
	}
}

/* Makes the next n of the turns that are even, or those that are odd. */
static void play(uint32_t mine, long n)
{
	uint32_t seen;

	for (long i = 0; i < n; i++) {
		while ((seen = __atomic_load_n(ball, __ATOMIC_ACQUIRE)) % 2 != mine)
			syscall(SYS_futex, ball, FUTEX_WAIT, seen, NULL, NULL, 0);
		__atomic_add_fetch(ball, 1, __ATOMIC_RELEASE);
		MUST(syscall(SYS_futex, ball, FUTEX_WAKE, 1, NULL, NULL, 0));
	}
}

static void do_futex(long n)
{
	play(0, n);
}

static void serve_futex(void)
{
	play(1, LONG_MAX);
}

static pid_t start(void (*serve)(void))
{
	pid_t child = fork();

	MUST(child);
	if (!child)
		serve();
	return child;
}

static void *end_at_once(void *arg)
{
	return arg;
}

static void do_thread(long n)
{
	pthread_t thread;

	for (long i = 0; i < n; i++) {
		MUST(-!!pthread_create(&thread, NULL, end_at_once, NULL));
		MUST(-!!pthread_join(thread, NULL));
	}
}

static void do_mmap(long n)
{
	for (long i = 0; i < n; i++) {
		void *at = mmap(NULL, NR_PAGES * PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		MUST(at);
		MUST(mprotect(at, PAGE, PROT_READ));
		MUST(munmap(at, NR_PAGES * PAGE));
	}
}

static void do_brk(long n)
{
	for (long i = 0; i < n; i++) {
		MUST(sbrk(PAGE));
		MUST(sbrk(-PAGE));
	}
}

/* A round is one fault: of an anonymous page, or of a page of a file. */
static void touch(long n, int flags, int fd)
{
	for (long i = 0; i < n; i += NR_PAGES) {
		char *at = mmap(NULL, NR_PAGES * PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);

		MUST(at);
		for (long page = 0; page < NR_PAGES; page++)
			((volatile char *)at)[page * PAGE] = 1;
		MUST(munmap(at, NR_PAGES * PAGE));
	}
}

static void do_page_fault(long n)
{
	touch(n, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static void do_file_fault(long n)
{
	touch(n, MAP_PRIVATE, file);
}

static void do_fork(long n)
{
	for (long i = 0; i < n; i++) {
		pid_t child = fork();

		MUST(child);
		if (!child)
			_exit(0);
		MUST(waitpid(child, NULL, 0));
	}
}

static void exec_once(void)
{
	pid_t child = vfork();

	MUST(child);
	if (!child) {
		execl("/bin/operations", "operations", "exit", NULL);
		_exit(1);
	}
	MUST(waitpid(child, NULL, 0));
}

static void do_exec(long n)
{
	for (long i = 0; i < n; i++)
		exec_once();
}

static void do_nanosleep(long n)
{
	struct timespec ts = { .tv_nsec = 100000 };

	for (long i = 0; i < n; i++)
		MUST(nanosleep(&ts, NULL));
}

/* Executes n * 100,000 times the same instruction, so samples all have its address. */
static void spin(long n)
{
	long left = n * 100000;

	asm volatile("1: loop 1b" : "+c"(left));
}

/* The signals of a timer interrupt a loop. */
static void do_timer(long n)
{
	struct itimerval every = { .it_interval.tv_usec = 100, .it_value.tv_usec = 50 };
	struct itimerval never = {};

	MUST(setitimer(ITIMER_REAL, &every, NULL));
	spin(n);
	MUST(setitimer(ITIMER_REAL, &never, NULL));
}

static void do_tick(long n)
{
	spin(n * (TICK_NS / 100000));
}

/* Writes to a file of /proc/profile, if the kernel has that profiler. */
static void control(const char *profiler, const char *words)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/profile/%s", profiler);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		return;
	MUST(write(fd, words, strlen(words)));
	MUST(close(fd));
}

/* Samples at equal distances: of user code, or of the kernel, which fills the buffer. */
static void sample(long n, const char *source, int of_kernel)
{
	char words[64];

	snprintf(words, sizeof(words), "source %s hz %d seed none on", source, SAMPLE_HZ);
	control("source", words);
	for (long i = 0; i < n; i++) {
		if (of_kernel)
			MUST(readv(zero, &part, 1));
		else
			spin(1);
	}
	control("source", "off");
}

static void do_sample_nmi(long n)
{
	sample(n, "nmi", 0);
}

static void do_sample_kernel(long n)
{
	sample(n, "nmi", 1);
}

static void do_sample_timer(long n)
{
	sample(n, "timer", 0);
}

static void on_signal(int number)
{
	nr_signals++;
}

static const struct operation {
	const char *name;
	void (*run)(long n);
	long nr_rounds;
	bool makes_threads;
} operations[] = {
	{ "getppid", do_getppid, 500, false },
	{ "clock_gettime", do_clock, 500, false },
	{ "uname", do_uname, 200, false },
	{ "getcwd", do_getcwd, 200, false },
	{ "getrusage", do_getrusage, 200, false },
	{ "getrlimit", do_getrlimit, 200, false },
	{ "sigprocmask", do_sigprocmask, 200, false },
	{ "yield", do_yield, 200, false },
	{ "read /dev/zero", do_read_zero, 200, false },
	{ "write /dev/null", do_write_null, 200, false },
	{ "read file", do_read_file, 100, false },
	{ "write file", do_write_file, 100, false },
	{ "lseek", do_lseek, 200, false },
	{ "fcntl", do_fcntl, 200, false },
	{ "stat", do_stat, 200, false },
	{ "fstat", do_fstat, 200, false },
	{ "access", do_access, 200, false },
	{ "readlink", do_readlink, 200, false },
	{ "open, close", do_open, 200, false },
	{ "dup, close", do_dup, 200, false },
	{ "open, getdents, close", do_getdents, 100, false },
	{ "create, write, rename, unlink", do_create, 50, false },
	{ "madvise", do_madvise, 200, false },
	{ "mmap, mprotect, munmap", do_mmap, 100, false },
	{ "brk", do_brk, 100, false },
	{ "page fault", do_page_fault, 10 * NR_PAGES, false },
	{ "page fault, file", do_file_fault, 5 * NR_PAGES, false },
	{ "pipe write, read", do_pipe, 200, false },
	{ "pipe ping-pong", do_ping_pong, 100, false },
	{ "socket send, recv", do_socket, 100, false },
	{ "pipe write, read 4 KiB", do_pipe_pages, 100, false },
	{ "epoll_wait", do_epoll, 100, false },
	{ "poll", do_poll, 200, false },
	{ "poll of 100", do_poll_many, 20, false },
	{ "select of 100", do_select_many, 20, false },
	{ "futex wake", do_futex_wake, 200, false },
	{ "futex ping-pong", do_futex, 100, false },
	{ "kill, signal handler", do_kill, 100, false },
	{ "clone, join", do_thread, 20, true },
	{ "fork, exit, wait", do_fork, 10, true },
	{ "vfork, exec, exit, wait", do_exec, 10, true },
	{ "nanosleep", do_nanosleep, 50, false },
	{ "timer interrupt, signal", do_timer, 50, false },
	{ "sample by NMI", do_sample_nmi, 50, false },
	{ "sample of the kernel by NMI", do_sample_kernel, 200, false },
	{ "sample by timer", do_sample_timer, 50, false },
	{ "tick", do_tick, 4, false },
};

#define NR_OPERATIONS (sizeof(operations) / sizeof(operations[0]))

static void open_files(void)
{
	MUST(mkdir("/data", 0700) < 0 && errno != EEXIST ? -1 : 0);
	zero = open("/dev/zero", O_RDONLY);
	null = open("/dev/null", O_WRONLY);
	file = open("/data/file", O_CREAT | O_RDWR, 0600);
	epoll = epoll_create1(0);
	MUST(zero);
	MUST(null);
	MUST(file);
	MUST(epoll);
	for (int i = 0; i < NR_PAGES; i++)
		MUST(write(file, buffer, PAGE));
	MUST(symlink("file", "/data/link"));
	MUST(pipe(pipe_fds));
	MUST(pipe(there));
	MUST(pipe(back));
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	event.events = EPOLLIN;
	MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, sockets[0], &event));
	for (int i = 0; i < NR_POLLED; i++) {
		int ends[2];

		MUST(pipe(ends));
		polled[i] = (struct pollfd){ .fd = ends[0], .events = POLLIN };
		FD_SET(ends[0], &polled_set);
	}
}

static void prepare(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	open_files();
	ball = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(ball);
	MUST(sigaction(SIGUSR1, &action, NULL));
	MUST(sigaction(SIGALRM, &action, NULL));
}

/* Returns the time of a tick: the longest gap between two looks at the clock. */
static uint64_t find_tick(void)
{
	uint64_t start = rdtsc(), last = start, now, longest = 0, tick = 0;

	do {
		now = rdtsc();
		if (now - last > longest) {
			longest = now - last;
			tick = last;
		}
		last = now;
	} while (now - start < 2 * TICK_NS);
	return tick;
}

/* Runs an operation between two ticks, and returns its cost. */
static uint64_t run(const struct operation *op, long nr_rounds, uint64_t tick)
{
	uint64_t now = rdtsc();
	struct timespec ts = { .tv_nsec = TICK_NS - (now - tick - AFTER_TICK) % TICK_NS };

	MUST(nanosleep(&ts, NULL));
	/*
	 * A round that does not count puts back what the sleep has evicted from caches of waits. It
	 * looks a chain up by a hash of addresses, so its cost depends on the size of the kernel:
	 * strace counts from here on.
	 */
	if (op->run != do_tick)
		op->run(1);
	control("strace", "on");
	now = rdtsc();
	op->run(nr_rounds);
	now = rdtsc() - now;
	control("strace", "off");
	if (now > TICK_NS - 2 * AFTER_TICK && op->run != do_tick) {
		fprintf(stderr, "operations: %s: too long for a tick\n", op->name);
		exit(1);
	}
	return now;
}

/* The profilers record the operations alone, and no waits of new threads: see serve_pipes(). */
static void run_all(uint64_t *costs)
{
	uint64_t tick;

	control("source", "off");
	tick = find_tick();
	control("strace", "off");
	control("strace", "reset");
	control("waits", "reset");
	control("points", "reset");
	for (size_t i = 0; i < NR_OPERATIONS; i++) {
		const struct operation *op = &operations[i];

		if (op->makes_threads)
			control("waits", "off");
		/* Caches, tables and stores get what they need. */
		run(op, op->nr_rounds / 2, tick);
		costs[i] = run(op, op->nr_rounds, tick);
		if (op->makes_threads)
			control("waits", "on");
	}
	control("waits", "off");
}

int main(int argc, char **argv)
{
	static uint64_t costs[NR_OPERATIONS];
	pid_t partners[2];

	if (argc > 1)
		return strcmp(argv[1], "exit") ? 2 : 0; /* do_exec() has executed it */
	prepare();
	partners[0] = start(serve_pipes);
	partners[1] = start(serve_futex);
	run_all(costs);
	for (int i = 0; i < 2; i++) {
		MUST(kill(partners[i], SIGKILL));
		MUST(waitpid(partners[i], NULL, 0));
	}
	for (size_t i = 0; i < NR_OPERATIONS; i++)
		printf("operation: %s: %ld %llu\n", operations[i].name, operations[i].nr_rounds,
		       (unsigned long long)costs[i]);
	return 0;
}
