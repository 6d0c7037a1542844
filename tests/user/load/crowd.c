// SPDX-License-Identifier: BSD-2-Clause
/*
 * crowd threads|processes|waiters|parents <n> [keys|calls]: starts n threads or processes that make
 * some calls and then sleep, and reads, resets and switches the profilers. Waiters are threads that
 * all poll one pipe before, parents are threads that all wait for one child before. With `keys` it
 * waits for a line instead, while sysrq keys do that; with `calls` it makes calls that concern all
 * of the threads. Before that it switches the profile points, and after that sampling, so that a
 * QEMU plugin knows in which time to look for the longest stretch with interrupts off
 * (tests/boot/test_nostop.py).
 */
#include <dirent.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <time.h>

#include "proc_profile.h"
#include "run.h"

#define PROFILE	    "/proc/profile/"
#define STACK_BYTES (64 << 10)

#define TICK_MS 10 /* at most */

static int *nr_ready, *start_line; /* shared by processes */
static int poll_pipe[2] = { -1, -1 };
static pid_t awaited; /* the parents' child */
static int nr_polled;
static pid_t last_tid; /* of the thread that started last */

/*
 * Makes 12 kinds of calls, 4 of which fail, and sleeps: as many table rows as a small program has.
 */
static void *work_and_sleep(void *unused)
{
	static const long calls[] = { SYS_getpid, SYS_gettid,  SYS_getppid, SYS_getuid,
				      SYS_getgid, SYS_geteuid, SYS_getegid, SYS_sched_yield };
	static const long failing[] = { SYS_close, SYS_dup, SYS_fsync, SYS_lseek };

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		syscall(calls[i]);
	for (size_t i = 0; i < sizeof(failing) / sizeof(*failing); i++)
		syscall(failing[i], -1);
	if (unused)
		last_tid = syscall(SYS_gettid);
	__atomic_add_fetch(nr_ready, 1, __ATOMIC_RELAXED);
	if (poll_pipe[0] >= 0) {
		struct pollfd one = { .fd = poll_pipe[0], .events = POLLIN };

		CHECK(poll(&one, 1, -1) == 1);
		__atomic_add_fetch(&nr_polled, 1, __ATOMIC_RELAXED);
	}
	if (awaited) {
		CHECK(waitpid(awaited, NULL, 0) == awaited || errno == ECHILD);
		__atomic_add_fetch(&nr_polled, 1, __ATOMIC_RELAXED);
	}
	for (;;)
		syscall(SYS_futex, start_line, FUTEX_WAIT, 0, NULL, NULL, 0);
	return NULL;
}

static void start(int is_process)
{
	pthread_attr_t attr;
	pthread_t thread;
	pid_t pid;

	if (is_process) {
		pid = fork_child();
		if (!pid)
			work_and_sleep(NULL);
		return;
	}
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	CHECK(!pthread_create(&thread, &attr, work_and_sleep, &last_tid));
}

/* Reads a file as print_file() does, but prints nothing. Returns the number of bytes. */
static size_t read_all(const char *path)
{
	static char buf[1 << 16];
	int fd = open(path, O_RDONLY);
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		len += n;
	CHECK(n == 0);
	close(fd);
	return len;
}

static void read_and_switch(void)
{
	CHECK(read_all(PROFILE "strace") > 1000);
	CHECK(read_all("/proc/self/strace") > 500);
	CHECK(read_all(PROFILE "report") > 1000);
	CHECK(read_all(PROFILE "heatmap") > 500);
	control(PROFILE "strace", "off");
	control(PROFILE "strace", "on");
	control("/proc/self/strace", "reset");
	control(PROFILE "strace", "reset");
	CHECK(read_all(PROFILE "strace") > 500);
	control(PROFILE "report", "reset");
}

/* Asks for the CPU time of all threads, also at each tick: a timer has that clock. */
static void measure_time(void)
{
	struct itimerspec later = { .it_value.tv_sec = 1000 };
	struct timespec time, start;
	struct rusage usage;
	struct tms tms;
	timer_t timer;

	CHECK(!timer_create(CLOCK_PROCESS_CPUTIME_ID, NULL, &timer));
	CHECK(!timer_settime(timer, 0, &later, NULL));
	CHECK(!clock_gettime(CLOCK_MONOTONIC, &start));
	do {
		CHECK(!clock_gettime(CLOCK_MONOTONIC, &time));
	} while (time.tv_sec * 1000 + time.tv_nsec / 1000000 <
		 start.tv_sec * 1000 + start.tv_nsec / 1000000 + 3 * TICK_MS);
	CHECK(!timer_delete(timer));
	CHECK(!clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time));
	CHECK(!getrusage(RUSAGE_SELF, &usage));
	CHECK(times(&tms) != -1);
	CHECK(read_all("/proc/self/stat") > 50);
}

/* Lets many timers expire at the same moment, and drops all their signals at once. */
static void expire_timers(int nr)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 1 };
	struct itimerspec at = { 0 };
	pid_t self = getpid();
	struct timespec now;
	sigset_t set;
	int id;

	memcpy(&event.sigev_notify_function, &self, sizeof(self)); /* musl has no name for it */
	sigemptyset(&set);
	sigaddset(&set, event.sigev_signo);
	CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
	CHECK(!clock_gettime(CLOCK_MONOTONIC, &at.it_value));
	at.it_value.tv_sec++;
	for (int i = 0; i < nr; i++) {
		CHECK(!syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id));
		CHECK(!syscall(SYS_timer_settime, id, TIMER_ABSTIME, &at, NULL));
	}
	CHECK(!clock_gettime(CLOCK_MONOTONIC, &now) && now.tv_sec <= at.it_value.tv_sec);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at.it_value, NULL))
		;
	sleep_ms(2 * TICK_MS);
	CHECK(!sigpending(&set) && sigismember(&set, event.sigev_signo));
	CHECK(signal(event.sigev_signo, SIG_IGN) == SIG_DFL);
	CHECK(!sigpending(&set) && !sigismember(&set, event.sigev_signo));
}

static void ignore_blocked(int sig)
{
	sigset_t set;

	CHECK(!sigpending(&set) && sigismember(&set, sig));
	CHECK(signal(sig, SIG_IGN) == SIG_DFL);
	CHECK(!sigpending(&set) && !sigismember(&set, sig) && signal(sig, SIG_DFL) == SIG_IGN);
}

/* Drops many signals: behind others that stay pending, of one thread, and 32 each of others. */
static void ignore_signals(int nr)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	int left = nr;

	for (int i = 0; i < nr; i++)
		CHECK(!syscall(SYS_tgkill, getpid(), getpid(), SIGRTMIN + 2));
	expire_timers(nr);
	ignore_blocked(SIGRTMIN + 2);
	CHECK(dir != NULL);
	while (left > 0 && (entry = readdir(dir))) {
		for (int i = 0; atoi(entry->d_name) && i < 32; i++, left--)
			CHECK(!syscall(SYS_tgkill, getpid(), atoi(entry->d_name), SIGRTMIN + 2));
	}
	closedir(dir);
	ignore_blocked(SIGRTMIN + 2);
}

/* SIGCONT drops the stop signals that are pending for single threads. */
static void discard_stops(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	sigset_t set;

	CHECK(dir != NULL);
	while ((entry = readdir(dir))) {
		if (atoi(entry->d_name))
			CHECK(!syscall(SYS_tgkill, getpid(), atoi(entry->d_name), SIGTSTP));
	}
	closedir(dir);
	CHECK(!sigpending(&set) && sigismember(&set, SIGTSTP));
	CHECK(!kill(getpid(), SIGCONT));
	CHECK(!sigpending(&set) && !sigismember(&set, SIGTSTP));
}

static int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	int nr = 0;

	CHECK(dir != NULL);
	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

/* Sends signals that all threads block, or that stop them. Process 1 continues them. */
static void send_signals(void)
{
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK(!kill(getpid(), SIGUSR1));
	CHECK(sigwaitinfo(&set, &info) == SIGUSR1);
	CHECK(!kill(getpid(), SIGSTOP));
}

/* Stops the children, whose group is orphaned when this process ends: then they get a SIGHUP. */
static void leave_stopped(int nr)
{
	siginfo_t info;

	CHECK(!kill(-1, SIGSTOP));
	for (int i = 0; i < nr; i++)
		CHECK(!waitid(P_ALL, 0, &info, WSTOPPED));
	CHECK(!setpgid(0, getpgid(1)));
}

static void make_calls(int nr, int is_process)
{
	cpu_set_t cpus;

	measure_time();
	ignore_signals(nr);
	discard_stops();
	CHECK(read_all("/proc/self/io") > 50);
	CHECK(count_entries("/proc/self/task") == 2 + (is_process ? 1 : nr + 1));
	if (poll_pipe[1] >= 0 || awaited) {
		CHECK(awaited ? !kill(awaited, SIGKILL) : write(poll_pipe[1], "", 1) == 1);
		while (__atomic_load_n(&nr_polled, __ATOMIC_RELAXED) < nr)
			sleep_ms(1);
		sleep_ms(2 * TICK_MS); /* the last ones reach the futex */
	}
	CHECK(!syscall(SYS_tgkill, getpid(), last_tid, 0));
	CHECK(syscall(SYS_sched_getaffinity, last_tid, sizeof(cpus), &cpus) > 0);
	CHECK(getpriority(PRIO_USER, getuid()) == 0);
	CHECK(getpriority(PRIO_PGRP, 0) == 0);
	/* Neither init nor the sender is meant. */
	CHECK(kill(-1, 0) == (is_process ? 0 : -1));
	CHECK(!kill(0, 0));
	CHECK(read_all("/proc/loadavg") > 10);
	CHECK(syscall(SYS_futex, start_line, FUTEX_REQUEUE, 0, (long)INT_MAX, start_line + 1, 0) ==
	      nr);
	CHECK(syscall(SYS_futex, start_line + 1, FUTEX_WAKE, INT_MAX, NULL, NULL, 0) == nr);
	send_signals();
	/* Ends all other threads. */
	if (!is_process && !check_failures())
		CHECK(execl("/proc/self/exe", "crowd", "threads", "0", "end", NULL) == 0);
	if (is_process)
		leave_stopped(nr);
}

static int finish(void)
{
	control(PROFILE "heatmap", "off");
	return check_finish("crowd");
}

/* Continues a child that has stopped, and waits until no child is left. */
static void wait_for_all(pid_t child)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WUNTRACED)) > 0) {
		if (WIFSTOPPED(status))
			CHECK(!kill(pid, SIGCONT));
		else if (pid == child)
			CHECK(status == 0);
	}
}

static void wait_for_line(void)
{
	char line[16];

	puts("crowd: waits");
	fflush(stdout);
	CHECK(read(0, line, sizeof(line)) > 0);
}

int main(int argc, char **argv)
{
	int nr = argc > 2 ? atoi(argv[2]) : 1000;
	int is_process = argc > 1 && !strcmp(argv[1], "processes");
	int is_poll = argc > 1 && !strcmp(argv[1], "waiters");
	int makes_calls = argc > 3 && !strcmp(argv[3], "calls");
	sigset_t blocked;
	pid_t pid;

	if (argc > 3 && !strcmp(argv[3], "end"))
		return 0;
	nr_ready = mmap(NULL, 3 * sizeof(*nr_ready), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!CHECK(nr_ready != MAP_FAILED))
		return 1;
	if (makes_calls && (pid = fork_child())) {
		wait_for_all(pid);
		return finish();
	}
	start_line = nr_ready + 1;
	last_tid = getpid();
	CHECK(!is_poll || !pipe(poll_pipe));
	if (argc > 1 && !strcmp(argv[1], "parents") && !(awaited = fork_child()))
		return pause();
	CHECK(!setpgid(0, 0));
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigaddset(&blocked, SIGRTMIN + 2);
	sigaddset(&blocked, SIGTSTP);
	CHECK(!sigprocmask(SIG_BLOCK, &blocked, NULL));
	for (int i = 0; i < nr; i++)
		start(is_process);
	CHECK(WAIT_UNTIL(__atomic_load_n(nr_ready, __ATOMIC_RELAXED) == nr));
	control(PROFILE "points", "*");
	if (makes_calls) {
		make_calls(nr, is_process);
		child_exit(0);
	}
	if (argc > 3)
		wait_for_line();
	else
		read_and_switch();
	return finish();
}
