// SPDX-License-Identifier: BSD-2-Clause
/*
 * offcpu: threads that wait for futexes, a pipe, each other's mutex, and in sleep, and one thread
 * that never waits. Switches waits off after a while and prints /proc/profile/waits,
 * waits_stacks.json and waits_tasks.json.
 *
 * offcpu stuck: prints tables of waits while one thread waits for a pipe and another for a futex,
 * for ever.
 *
 * offcpu files: like `stuck`, but threads wait for an epoll, an eventfd, a timerfd, a socket, and
 * for the exit of a thread.
 *
 * offcpu usage: a child sleeps 7 times and shares its CPU with a thread of its own. Prints `usage
 * <voluntary> <involuntary>`: its context switches, and `faults <number>`.
 *
 * offcpu times: a child computes, makes system calls and touches pages, before and after an execve.
 * Prints `times <user> <system>`: its CPU time in microseconds.
 *
 * offcpu switched: the same, with strace reset, off and on in between. Prints `reset <user>`, how
 * much user time that added, and whether any time went back.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>

#include "proc_profile.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static volatile int is_over, turn;
static int pipe_fds[2];

static void work(int nr)
{
	for (volatile int i = 0; i < nr; i++)
		;
}

static void sleep_us(long us)
{
	nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL);
}

static void *take_turns(void *me)
{
	while (!is_over) {
		pthread_mutex_lock(&mutex);
		while (turn != (long)me && !is_over)
			pthread_cond_wait(&cond, &mutex);
		work(300);
		turn = !turn;
		pthread_cond_broadcast(&cond);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

static void *write_to_pipe(void *unused)
{
	while (!is_over) {
		sleep_us(300);
		if (write(pipe_fds[1], "x", 1) != 1)
			perror("write");
	}
	close(pipe_fds[1]);
	return unused;
}

static void *read_from_pipe(void *unused)
{
	char byte;

	while (read(pipe_fds[0], &byte, 1) == 1)
		work(100);
	return unused;
}

static void *never_wait(void *unused)
{
	while (!is_over) {
		work(5000);
		sched_yield();
	}
	return unused;
}

static int stuck_word;

static void *wait_for_ever(void *unused)
{
	for (;;)
		syscall(SYS_futex, &stuck_word, FUTEX_WAIT_PRIVATE, 0, NULL);
	return unused;
}

static void *read_for_ever(void *fd)
{
	char buf[8];

	return (void *)read((long)fd, buf, sizeof(buf));
}

static void *wait_for_epoll(void *fd)
{
	struct epoll_event event;

	return (void *)(long)epoll_wait((long)fd, &event, 1, -1);
}

static void *join(void *thread)
{
	return (void *)(long)pthread_join((pthread_t)thread, NULL);
}

static int print_files(void)
{
	pthread_t threads[5];
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) ||
	    pthread_create(&threads[0], NULL, wait_for_epoll, (void *)(long)epoll_create1(0)) ||
	    pthread_create(&threads[1], NULL, read_for_ever, (void *)(long)eventfd(0, 0)) ||
	    pthread_create(&threads[2], NULL, read_for_ever,
			   (void *)(long)timerfd_create(CLOCK_MONOTONIC, 0)) ||
	    pthread_create(&threads[3], NULL, read_for_ever, (void *)(long)ends[0]) ||
	    pthread_create(&threads[4], NULL, join, (void *)threads[3]))
		perror("threads");
	sleep_us(20000);
	print_file("waits.json", "/proc/profile/waits.json");
	return 0;
}

static int print_stuck(void)
{
	pthread_t reader, waiter;

	printf("stuck_word %p\n", (void *)&stuck_word);
	if (pipe(pipe_fds) || pthread_create(&reader, NULL, read_from_pipe, NULL) ||
	    pthread_create(&waiter, NULL, wait_for_ever, NULL))
		perror("threads");
	sleep_us(20000);
	print_file("waits.json", "/proc/profile/waits.json");
	print_file("tasks", "/proc/profile/waits_tasks.json");
	print_file("self", "/proc/self/waits");
	print_file("self.json", "/proc/self/waits.json");
	print_file("folded", "/proc/profile/waits");
	print_file("records", "/proc/profile/waits_stacks.json");
	return 0;
}

static int print_usage(void)
{
	struct rusage usage;
	pthread_t thread;
	pid_t pid = fork();

	if (!pid) {
		pthread_create(&thread, NULL, never_wait, NULL);
		for (int i = 0; i < 7; i++) {
			work(300000);
			sleep_us(1000);
		}
		is_over = 1;
		pthread_join(thread, NULL);
		getrusage(RUSAGE_SELF, &usage);
		printf("self %ld %ld\n", usage.ru_nvcsw, usage.ru_nivcsw);
		exit(0);
	}
	waitpid(pid, NULL, 0);
	getrusage(RUSAGE_CHILDREN, &usage);
	printf("usage %ld %ld\n", usage.ru_nvcsw, usage.ru_nivcsw);
	printf("faults %ld\n", usage.ru_minflt);
	return 0;
}

static long user_us, system_us, went_back;

static long to_us(struct timeval time)
{
	return time.tv_sec * 1000000 + time.tv_usec;
}

/* Notes the CPU time of the process; `went_back` counts times that are less than before. */
static void look(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	went_back += to_us(usage.ru_utime) < user_us || to_us(usage.ru_stime) < system_us;
	user_us = to_us(usage.ru_utime);
	system_us = to_us(usage.ru_stime);
}

static void make_calls(int nr)
{
	for (int i = 0; i < nr; i++)
		syscall(SYS_getpid);
}

static void touch_pages(size_t nr)
{
	char *pages =
		mmap(NULL, nr << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; i < nr; i++)
		pages[i << 12] = 1;
	munmap(pages, nr << 12);
}

static void *use_time(void *unused)
{
	for (int i = 0; i < 20; i++) {
		make_calls(300);
		look(RUSAGE_SELF);
		work(20000);
		look(RUSAGE_SELF);
		touch_pages(20);
		look(RUSAGE_SELF);
	}
	return unused;
}

static void use_time_in_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, use_time, NULL);
	pthread_join(thread, NULL);
}

static int print_times(const char *program)
{
	pid_t pid = fork();

	if (!pid) {
		use_time(NULL);
		execl(program, program, "timed", NULL);
	}
	waitpid(pid, NULL, 0);
	look(RUSAGE_CHILDREN);
	printf("times %ld %ld\n", user_us, system_us);
	return 0;
}

static void print_time_of_calls(void)
{
	long before_us;

	look(RUSAGE_SELF);
	before_us = system_us;
	make_calls(3000);
	look(RUSAGE_SELF);
	printf("calls %ld\n", system_us - before_us);
}

static int switch_strace(void)
{
	long before_us;

	use_time_in_thread();
	use_time(NULL);
	print_time_of_calls();
	look(RUSAGE_SELF);
	before_us = user_us;
	control("/proc/profile/report", "reset");
	look(RUSAGE_SELF);
	printf("reset %ld\n", user_us - before_us);
	print_time_of_calls();
	for (int i = 0; i < 2; i++) {
		use_time_in_thread();
		control("/proc/profile/strace", i ? "on" : "off");
		use_time(NULL);
	}
	puts(went_back ? "FAIL: time went back" : "PASS: offcpu switched");
	return 0;
}

int main(int argc, char **argv)
{
	void *(*const threads[])(void *arg) = { take_turns, take_turns, write_to_pipe,
						read_from_pipe, never_wait };
	pthread_t ids[sizeof(threads) / sizeof(threads[0])];

	if (argc > 1 && !strcmp(argv[1], "stuck"))
		return print_stuck();
	if (argc > 1 && !strcmp(argv[1], "files"))
		return print_files();
	if (argc > 1 && !strcmp(argv[1], "usage"))
		return print_usage();
	if (argc > 1 && !strcmp(argv[1], "times"))
		return print_times(argv[0]);
	if (argc > 1 && !strcmp(argv[1], "switched"))
		return switch_strace();
	if (argc > 1 && !strcmp(argv[1], "timed")) {
		use_time_in_thread();
		use_time(NULL);
		return 0;
	}
	if (pipe(pipe_fds))
		perror("pipe");
	for (long i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		pthread_create(&ids[i], NULL, threads[i], (void *)i);
	sleep_us(20000);
	control("/proc/profile/waits", "reset");
	sleep_us(50000);
	control("/proc/profile/waits", "off");
	print_file("waits", "/proc/profile/waits");
	print_file("records", "/proc/profile/waits_stacks.json");
	print_file("tasks", "/proc/profile/waits_tasks.json");
	is_over = 1;
	for (int i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		pthread_join(ids[i], NULL);
	puts("PASS: offcpu");
	return 0;
}
