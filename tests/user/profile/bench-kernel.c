// SPDX-License-Identifier: BSD-2-Clause
/*
 * bench-kernel N: TSC cycles for N rounds of each operation that consists of kernel code: those
 * that once cost more than in Linux, those of which profilers are the largest part, and a mix.
 * Lines `bench: <name> <cycles> <rounds>`.
 *
 * bench-kernel N OPERATION CPUS: N rounds on each of as many CPUs at once, in processes of their
 * own, or in threads of one (operations `shared_*`). A QEMU plugin counts the instructions, from
 * when points are switched on until sampling is switched off.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define NO_SUCH_CALL 999
#define PAGE	     4096
#define NR_PAGES     32
#define NR_POLLED    100

static char buffer[PAGE] __attribute__((aligned(PAGE)));
static int null, file, epoll, odd_pipe[2], ready_pipe[2], there[2], back[2];
static struct pollfd polled[NR_POLLED]; /* reading ends of empty pipes */
static fd_set polled_set;
static uint32_t *ball;

/* Ends the run if a call fails, as its cost would be that of another path. */
#define MUST(call) must((call) != -1, #call)
static void must(int ok, const char *what)
{
	if (ok)
		return;
	printf("bench-kernel: %s: %s\n", what, strerror(errno));
	exit(1);
}

static long call(long nr, long argument)
{
	long ret;

	asm volatile("syscall" : "=a"(ret) : "0"(nr), "D"(argument) : "rcx", "r11", "memory");
	return ret;
}

static void get_parent(void)
{
	call(SYS_getppid, 0);
}

static void fail(void)
{
	must(call(SYS_close, -1) == -EBADF, "close");
}

static void call_unknown(void)
{
	must(call(NO_SUCH_CALL, 0) == -ENOSYS, "unknown call");
}

static void get_usage(void)
{
	struct rusage usage;

	MUST(getrusage(RUSAGE_SELF, &usage));
}

static void write_byte(void)
{
	must(write(null, buffer, 1) == 1, "write");
}

static void poll_one(void)
{
	must(poll(polled, 1, 0) == 0, "poll");
}

static void poll_many(void)
{
	must(poll(polled, NR_POLLED, 0) == 0, "poll");
}

static void select_many(void)
{
	struct timeval none = { 0 };
	fd_set set = polled_set;

	must(select(polled[NR_POLLED - 1].fd + 1, &set, NULL, NULL, &none) == 0, "select");
}

static void epoll_one(void)
{
	struct epoll_event event;

	must(epoll_wait(epoll, &event, 1, 0) == 1, "epoll_wait");
}

static void pass_page(void)
{
	must(write(odd_pipe[1], buffer, PAGE) == PAGE, "write");
	must(read(odd_pipe[0], buffer, PAGE) == PAGE, "read");
}

static void create_thread(void)
{
	pthread_t thread;

	must(!pthread_create(&thread, NULL, (void *(*)(void *))(void *)getppid, NULL), "thread");
	must(!pthread_join(thread, NULL), "join");
}

static void wait_for(pid_t child)
{
	int status;

	must(waitpid(child, &status, 0) == child && !status, "waitpid");
}

static void fork_and_wait(void)
{
	pid_t child = fork();

	MUST(child);
	if (!child)
		_exit(0);
	wait_for(child);
}

static void exec_and_wait(void)
{
	pid_t child = fork();

	MUST(child);
	if (!child) {
		execl("/proc/self/exe", "bench-kernel", "nothing", NULL);
		_exit(1);
	}
	wait_for(child);
}

static void read_first_page(void)
{
	int fd = open("/tmp/file", O_RDONLY);

	MUST(fd);
	must(read(fd, buffer, PAGE) == PAGE, "read");
	MUST(close(fd));
}

static void do_mix(void)
{
	int ends[2];

	fork_and_wait();
	exec_and_wait();
	MUST(pipe(ends));
	MUST(close(ends[0]));
	MUST(close(ends[1]));
	read_first_page();
}

/* Two processes pass a byte to and fro: two switches a round. */
static void pass_byte(void)
{
	MUST(write(there[1], buffer, 1));
	MUST(read(back[0], buffer, 1));
}

static void serve_bytes(void)
{
	for (;;) {
		MUST(read(there[0], buffer, 1));
		MUST(write(back[1], buffer, 1));
	}
}

/* Makes the next turn, if even turns are its own (0) or odd ones (1). */
static void play(uint32_t mine)
{
	uint32_t seen;

	while ((seen = __atomic_load_n(ball, __ATOMIC_ACQUIRE)) % 2 != mine)
		syscall(SYS_futex, ball, FUTEX_WAIT, seen, NULL, NULL, 0);
	__atomic_add_fetch(ball, 1, __ATOMIC_RELEASE);
	MUST(syscall(SYS_futex, ball, FUTEX_WAKE, 1, NULL, NULL, 0));
}

static void play_even(void)
{
	play(0);
}

static void serve_futex(void)
{
	for (;;)
		play(1);
}

static void serve_yields(void)
{
	for (;;)
		sched_yield();
}

static void yield(void)
{
	sched_yield();
}

static void map_and_touch(void)
{
	volatile char *at =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(at != MAP_FAILED, "mmap");
	*at = 1;
	MUST(munmap((void *)at, PAGE));
}

/* Times an operation with a partner, another process. */
static void time_together(const char *name, void (*operation)(void), void (*serve)(void), long nr)
{
	pid_t partner = fork();

	MUST(partner);
	if (!partner)
		serve();
	time_operation(name, operation, nr);
	MUST(kill(partner, SIGKILL));
	MUST(waitpid(partner, NULL, 0));
}

/* Maps a file, reads each of its pages, and returns the cycles of these reads. */
static uint64_t read_mapped(void)
{
	volatile char *at = mmap(NULL, NR_PAGES * PAGE, PROT_READ, MAP_SHARED, file, 0);
	uint64_t cycles;

	must(at != MAP_FAILED, "mmap");
	cycles = rdtsc();
	for (long page = 0; page < NR_PAGES; page++)
		(void)at[page * PAGE];
	cycles = rdtsc() - cycles;
	MUST(munmap((void *)at, NR_PAGES * PAGE));
	return cycles;
}

static void touch_file(void)
{
	read_mapped();
}

static void time_file_faults(long nr)
{
	uint64_t cycles = 0;

	read_mapped();
	for (long i = 0; i < nr; i++)
		cycles += read_mapped();
	bench_print("file_fault", cycles, nr * NR_PAGES);
}

static void prepare(void)
{
	struct epoll_event event = { .events = EPOLLIN };

	must(!mkdir("/tmp", 0777) || errno == EEXIST, "/tmp");
	null = open("/dev/null", O_WRONLY);
	file = open("/tmp/file", O_CREAT | O_RDWR, 0600);
	epoll = epoll_create1(0);
	MUST(null);
	MUST(file);
	MUST(epoll);
	for (int i = 0; i < NR_PAGES; i++)
		MUST(write(file, buffer, PAGE));
	MUST(pipe(odd_pipe));
	MUST(pipe(there));
	MUST(pipe(back));
	MUST(write(odd_pipe[1], buffer, 100)); /* the rest begins in the middle of a page */
	MUST(read(odd_pipe[0], buffer, 100));
	ball = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(ball != MAP_FAILED, "mmap");
	for (int i = 0; i < NR_POLLED; i++) {
		int ends[2];

		MUST(pipe(ends));
		polled[i] = (struct pollfd){ .fd = ends[0], .events = POLLIN };
		FD_SET(ends[0], &polled_set);
		MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event));
	}
	/* One of the 100 has an event. */
	MUST(pipe(ready_pipe));
	MUST(write(ready_pipe[1], buffer, 1));
	MUST(epoll_ctl(epoll, EPOLL_CTL_DEL, polled[0].fd, NULL));
	MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, ready_pipe[0], &event));
}

/* Many rounds of what is short, so that each has the same share of timer interrupts. */
static void time_all(long nr)
{
	long many = 50 * nr;

	time_operation("getppid", get_parent, many);
	time_operation("fail", fail, many);
	time_operation("unknown", call_unknown, many);
	time_operation("getrusage", get_usage, many);
	time_operation("write_byte", write_byte, many);
	time_operation("poll", poll_one, many);
	time_operation("poll_100", poll_many, 10 * nr);
	time_operation("select_100", select_many, 10 * nr);
	time_operation("epoll_100", epoll_one, many);
	time_operation("pipe_odd", pass_page, 10 * nr);
	time_file_faults(10 * nr);
	time_together("yields", yield, serve_yields, 10 * nr);
	time_together("pipe_bytes", pass_byte, serve_bytes, 10 * nr);
	time_together("futex", play_even, serve_futex, 10 * nr);
	time_operation("thread", create_thread, nr);
	time_operation("fork", fork_and_wait, nr);
	time_operation("exec", exec_and_wait, nr);
	time_operation("mix", do_mix, nr);
}

static const struct operation {
	const char *name;
	void (*run)(void);
	int in_threads;
} operations[] = {
	{ "getppid", get_parent, 0 },
	{ "open", read_first_page, 0 },
	{ "pipe", pass_page, 0 },
	{ "fork", fork_and_wait, 0 },
	{ "exec", exec_and_wait, 0 },
	{ "map", map_and_touch, 0 },
	{ "poll_100", poll_many, 0 },
	{ "getrusage", get_usage, 0 },
	{ "file_fault", touch_file, 0 },
	{ "shared_map", map_and_touch, 1 },
	{ "shared_open", read_first_page, 1 },
	{ "shared_thread", create_thread, 1 },
};

static const struct operation *operation;
static long nr_rounds;
static int ready[2], go[2], done[2], stay[2];

/* Writes to a file of /proc/profile: that begins and ends the time in which the plugin counts. */
static void control(const char *path, const char *words)
{
	int fd = open(path, O_WRONLY);

	MUST(fd);
	MUST(write(fd, words, strlen(words)));
	MUST(close(fd));
}

static void pass(int from, int to)
{
	char byte = 0;

	if (to >= 0)
		MUST(write(to, &byte, 1));
	if (from >= 0)
		MUST(read(from, &byte, 1));
}

/* Makes the rounds on a CPU, and then stays: the end of a process would cost more than they. */
static void *work(void *cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET((long)cpu, &cpus);
	MUST(sched_setaffinity(0, sizeof(cpus), &cpus));
	if (!operation->in_threads)
		prepare();
	for (int i = 0; i < 2; i++)
		operation->run();
	pass(go[0], ready[1]);
	for (long i = 0; i < nr_rounds; i++)
		operation->run();
	pass(stay[0], done[1]);
	return NULL;
}

static void start_worker(long cpu)
{
	pthread_t thread;
	pid_t child;

	if (operation->in_threads) {
		must(!pthread_create(&thread, NULL, work, (void *)cpu), "thread");
		return;
	}
	child = fork();
	MUST(child);
	if (!child)
		work((void *)cpu);
}

static void run_on(long nr_cpus)
{
	MUST(pipe(ready));
	MUST(pipe(go));
	MUST(pipe(done));
	MUST(pipe(stay));
	if (operation->in_threads)
		prepare();
	for (long cpu = 0; cpu < nr_cpus; cpu++) {
		start_worker(cpu);
		pass(ready[0], -1);
	}
	control("/proc/profile/points", "*");
	for (long cpu = 0; cpu < nr_cpus; cpu++)
		pass(-1, go[1]);
	for (long cpu = 0; cpu < nr_cpus; cpu++)
		pass(done[0], -1);
	control("/proc/profile/heatmap", "off");
}

int main(int argc, char **argv)
{
	nr_rounds = argc > 1 ? atol(argv[1]) : 0;
	if (argc == 2 && !strcmp(argv[1], "nothing"))
		return 0;
	for (size_t i = 0; argc == 4 && i < sizeof(operations) / sizeof(operations[0]); i++) {
		if (!strcmp(argv[2], operations[i].name))
			operation = &operations[i];
	}
	if (nr_rounds > 0 && operation && atol(argv[3]) > 0) {
		run_on(atol(argv[3]));
	} else if (nr_rounds > 0 && argc == 2) {
		prepare();
		time_all(nr_rounds);
	} else {
		puts("usage: bench-kernel N [OPERATION CPUS]");
		return 2;
	}
	return 0;
}
