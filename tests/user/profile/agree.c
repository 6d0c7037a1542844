// SPDX-License-Identifier: BSD-2-Clause
/*
 * agree: children whose waits and system calls are compared. Two run getppid() in a loop, and share
 * a CPU. Others are stopped and continued in a call, or interrupted by a handler, and their calls
 * go on: nanosleep, poll, read, futex. One is killed while it is stopped.
 *
 * agree live: a child is stopped while /proc/<pid>/strace and waits are printed.
 */
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "proc_profile.h"

#define NR_CALLS 200000

static int ends[2];
static int word;

static void sleep_ms(long ms)
{
	syscall(SYS_nanosleep, &(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

static void on_signal(int sig)
{
	syscall(SYS_getpid);
}

static void handle(int flags)
{
	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = on_signal, .sa_flags = flags }, NULL);
}

static void loops(void)
{
	for (int i = 0; i < NR_CALLS; i++)
		syscall(SYS_getppid);
}

static void sleeps(void)
{
	sleep_ms(37);
}

static void polls(void)
{
	poll(NULL, 0, 60);
}

static void reads(void)
{
	char byte;

	if (read(ends[0], &byte, 1) != 1)
		puts("FAIL: read");
}

static void restarts(void)
{
	handle(SA_RESTART);
	reads();
}

static void fails(void)
{
	handle(0);
	poll(NULL, 0, 60);
}

static void waits(void)
{
	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &(struct timespec){ .tv_nsec = 60000000 });
}

static void pauses(void)
{
	for (;;)
		pause();
}

static pid_t start(const char *name, void (*run)(void))
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_NAME, name);
	run();
	_exit(0);
}

static void stop(pid_t pid, long ms)
{
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	sleep_ms(ms);
	kill(pid, SIGCONT);
}

/* Stops a child in its call, twice, and lets it go on. Then something may end the call. */
static void stop_in_call(const char *name, void (*run)(void))
{
	pid_t pid = start(name, run);

	for (int i = 0; i < 2; i++) {
		sleep_ms(5);
		stop(pid, 20);
	}
	sleep_ms(5);
	if (run == reads && write(ends[1], "x", 1) != 1)
		puts("FAIL: write");
	waitpid(pid, NULL, 0);
}

/* Interrupts a child's call with a handler, while it is stopped, too. */
static void interrupt(const char *name, void (*run)(void))
{
	pid_t pid = start(name, run);

	sleep_ms(5);
	kill(pid, SIGUSR1);
	sleep_ms(5);
	if (run == restarts) {
		kill(pid, SIGSTOP);
		waitpid(pid, NULL, WUNTRACED);
		kill(pid, SIGUSR1);
		sleep_ms(20);
		kill(pid, SIGCONT);
		sleep_ms(5);
		if (write(ends[1], "x", 1) != 1)
			puts("FAIL: write");
	}
	waitpid(pid, NULL, 0);
}

static void kill_stopped(void)
{
	pid_t pid = start("killed", pauses);

	sleep_ms(5);
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	sleep_ms(20);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static int look_at_stopped(void)
{
	pid_t pid = start("stopped", sleeps);
	char path[64];

	sleep_ms(5);
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	for (int i = 0; i < 2; i++) {
		sleep_ms(20);
		snprintf(path, sizeof(path), "/proc/%d/strace.json", pid);
		print_file(i ? "reset.strace" : "strace", path);
		snprintf(path, sizeof(path), "/proc/%d/waits", pid);
		print_file(i ? "reset.waits" : "waits", path);
		control("/proc/profile/report", "reset");
	}
	kill(pid, SIGCONT);
	waitpid(pid, NULL, 0);
	return 0;
}

int main(int argc, char **argv)
{
	pid_t first, second;

	if (argc > 1 && !strcmp(argv[1], "live"))
		return look_at_stopped();
	if (pipe(ends))
		perror("pipe");
	first = start("loop", loops);
	second = start("loop", loops);
	waitpid(first, NULL, 0);
	waitpid(second, NULL, 0);
	stop_in_call("sleeper", sleeps);
	stop_in_call("poller", polls);
	stop_in_call("reader", reads);
	stop_in_call("waiter", waits);
	interrupt("restarter", restarts);
	interrupt("failer", fails);
	kill_stopped();
	puts("PASS: agree");
	return 0;
}
