// SPDX-License-Identifier: BSD-2-Clause
/*
 * owners: work that crosses between user code and the kernel in each way, for test_cputime.py.
 * Reads /proc/profile/accounts.json before each kind of work and after the last one. At the end it
 * prints what it has read, each time after a line {"before":"<work>"}. It does little after the
 * last reading, because that is compared with the report.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE	 4096
#define NR_PAGES 64

static char text[32768];
static size_t len;
static volatile int nr_signals;

#define MUST(cond) must(cond, #cond)
static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void make_calls(void)
{
	for (int i = 0; i < 3000; i++)
		getppid();
}

static void fork_and_exit(void)
{
	for (int i = 0; i < 30; i++) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		MUST(waitpid(child, NULL, 0) == child);
	}
}

static void execute(void)
{
	for (int i = 0; i < 10; i++) {
		pid_t child = vfork();

		if (!child) {
			execl("/bin/owners", "owners", "exit", NULL);
			_exit(1);
		}
		MUST(waitpid(child, NULL, 0) == child);
	}
}

static void echo(int from, int to)
{
	char byte;

	while (read(from, &byte, 1) == 1)
		MUST(write(to, &byte, 1) == 1);
	_exit(0);
}

static void play_ping_pong(void)
{
	int there[2], back[2];
	char byte = 0;
	pid_t child;

	MUST(!pipe(there) && !pipe(back));
	child = fork();
	if (!child) {
		close(there[1]);
		echo(there[0], back[1]);
	}
	for (int i = 0; i < 200; i++)
		MUST(write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1);
	close(there[1]);
	MUST(waitpid(child, NULL, 0) == child);
}

static void on_signal(int sig)
{
	nr_signals++;
}

/* A thread that sleeps again and again preempts one that spins. */
static void preempt(void)
{
	struct timespec ts = { .tv_nsec = 20000 };
	volatile int *ended =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	MUST(ended != MAP_FAILED);
	child = fork();
	if (!child) {
		for (int i = 0; i < 2; i++)
			MUST(!nanosleep(&ts, NULL));
		*ended = 1;
		_exit(0);
	}
	while (!*ended)
		;
	MUST(waitpid(child, NULL, 0) == child);
}

/* Of system calls, of exceptions, and of a timer that interrupts user code. */
static void take_signals(void)
{
	struct itimerval every = { .it_interval.tv_usec = 200, .it_value.tv_usec = 200 };
	struct itimerval never = { 0 };

	signal(SIGUSR1, on_signal);
	signal(SIGALRM, on_signal);
	signal(SIGTRAP, on_signal);
	for (int i = 0; i < 300; i++)
		MUST(!kill(getpid(), SIGUSR1));
	for (int i = 0; i < 100; i++)
		asm volatile("int3");
	MUST(!setitimer(ITIMER_REAL, &every, NULL));
	while (nr_signals < 410)
		;
	MUST(!setitimer(ITIMER_REAL, &never, NULL));
}

/* The page faults of user code, and of the kernel, which fills the second half. */
static void touch_pages(void)
{
	int zero = open("/dev/zero", O_RDONLY);

	for (int i = 0; i < 20; i++) {
		char *pages = mmap(NULL, NR_PAGES * PAGE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		MUST(pages != MAP_FAILED);
		for (int page = 0; page < NR_PAGES / 2; page++)
			((volatile char *)pages)[page * PAGE] = 1;
		MUST(read(zero, pages + NR_PAGES / 2 * PAGE, NR_PAGES / 2 * PAGE) > 0);
		MUST(!munmap(pages, NR_PAGES * PAGE));
	}
}

static const struct work {
	const char *name;
	void (*run)(void);
} works[] = {
	{ "calls", make_calls },	 { "forks", fork_and_exit }, { "execs", execute },
	{ "ping-pong", play_ping_pong }, { "preemption", preempt },  { "signals", take_signals },
	{ "faults", touch_pages },
};

static void read_accounts(const char *work)
{
	int fd = open("/proc/profile/accounts.json", O_RDONLY);
	ssize_t n;

	len += sprintf(text + len, "{\"before\":\"%s\"}\n", work);
	while ((n = read(fd, text + len, sizeof(text) - len)) > 0)
		len += n;
	MUST(!n);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return strcmp(argv[1], "exit") ? 2 : 0;
	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++) {
		read_accounts(works[i].name);
		works[i].run();
	}
	read_accounts("the end");
	MUST(write(STDOUT_FILENO, text, len) == (ssize_t)len);
	return 0;
}
