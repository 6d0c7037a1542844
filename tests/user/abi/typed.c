// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program at a terminal, for tests that type: typed <what> [<tty> [<number>...]] prints what it
 * reads. The terminal is its standard input or, if <tty> is given, that one, which becomes its
 * controlling terminal.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static int numbers[4];
static const char *tty;

static void die(const char *what)
{
	printf("typed: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void show(const char *what, const char *bytes, ssize_t n)
{
	printf("%s %zd:", what, n);
	if (n < 0)
		printf(" %s", strerror(errno));
	for (ssize_t i = 0; i < n && i < 64; i++)
		printf(bytes[i] > ' ' && bytes[i] < 0x7f ? " %c" : " %02x",
		       (unsigned char)bytes[i]);
	printf("\n");
}

/* Prints each read, until the second end of file. */
static void lines(void)
{
	char buf[8192];
	int nr_ends = 0;
	ssize_t n;

	printf("typed: go\n");
	while (nr_ends < 2) {
		n = read(0, buf, numbers[0] ? (size_t)numbers[0] : sizeof(buf));
		show("read", buf, n);
		nr_ends += n <= 0;
	}
}

static void wake(int sig)
{
}

/* Moves what is typed through a pipe to the terminal, until the end of the file. */
static void splices(void)
{
	struct sigaction action = { .sa_handler = wake };
	int ends[2], left = -1;
	ssize_t n, out;

	if (pipe(ends) || sigaction(SIGALRM, &action, NULL))
		die("pipe");
	printf("typed: go\n");
	while ((n = splice(0, NULL, ends[1], NULL, 4096, 0)) > 0) {
		out = splice(ends[0], NULL, 1, NULL, 4096, 0);
		printf("spliced %zd, %zd\n", n, out);
	}
	show("spliced", "", n);
	show("offset", "", splice(0, &(loff_t){ 0 }, ends[1], NULL, 1, 0));
	fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK);
	show("in", "", splice(0, NULL, ends[1], NULL, 1, 0));
	/* Bytes that are not sent stay in the pipe. */
	if (write(ends[1], "abc\n", 4) != 4 || tcflow(1, TCOOFF))
		die("tcflow");
	n = splice(ends[0], NULL, 1, NULL, 4096, 0);
	tcflow(1, TCOON);
	show("stopped", "", n);
	fcntl(0, F_SETFL, fcntl(0, F_GETFL) & ~O_NONBLOCK);
	tcflow(1, TCOOFF);
	ualarm(20000, 20000);
	n = splice(ends[0], NULL, 1, NULL, 4096, 0);
	ualarm(0, 0);
	tcflow(1, TCOON);
	show("stopped", "", n);
	ioctl(ends[0], FIONREAD, &left);
	printf("left %d, %zd\n", left, splice(ends[0], NULL, 1, NULL, 4096, 0));
}

static void set_raw(int min, int time, struct termios *saved)
{
	struct termios termios;

	if (tcgetattr(0, saved))
		die("tcgetattr");
	termios = *saved;
	cfmakeraw(&termios);
	termios.c_oflag |= OPOST;
	termios.c_cc[VMIN] = min;
	termios.c_cc[VTIME] = time;
	if (tcsetattr(0, TCSAFLUSH, &termios))
		die("tcsetattr");
}

/* raw <tty> <MIN> <TIME> <how many reads> */
static void raw(void)
{
	struct termios saved;
	char buf[100];

	set_raw(numbers[0], numbers[1], &saved);
	printf("typed: go\n");
	for (int i = 0; i < numbers[2]; i++)
		show("read", buf, read(0, buf, sizeof(buf)));
	tcsetattr(0, TCSANOW, &saved);
}

/* sum <tty> <seconds before the first read>: reads all input, and prints its length and a hash */
static void sum(void)
{
	unsigned int hash = 2166136261u;
	size_t total = 0;
	struct termios termios;
	char buf[4096];
	ssize_t n;

	tcgetattr(0, &termios);
	termios.c_lflag &= ~ECHO;
	tcsetattr(0, TCSANOW, &termios);
	printf("typed: go\n");
	sleep(numbers[0]);
	while ((n = read(0, buf, sizeof(buf))) > 0) {
		for (ssize_t i = 0; i < n; i++)
			hash = (hash ^ (unsigned char)buf[i]) * 16777619u;
		total += n;
	}
	printf("sum: %zu bytes, %08x\n", total, hash);
}

/* flood <tty> <number of lines> */
static void flood(void)
{
	printf("typed: go\n");
	for (int i = 0; i < numbers[0]; i++)
		printf("flood: line %d of %d\n", i, numbers[0]);
}

static void polls(void)
{
	struct pollfd pfd = { .fd = 0, .events = POLLIN | POLLOUT };
	struct termios saved;
	char buf[100];
	int n = -1;

	printf("typed: go\n");
	poll(&pfd, 1, -1);
	printf("poll: %#x\n", pfd.revents);
	pfd.events = POLLIN;
	poll(&pfd, 1, -1);
	ioctl(0, FIONREAD, &n);
	printf("poll: %#x, %d bytes\n", pfd.revents, n);
	fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK);
	show("read", buf, read(0, buf, sizeof(buf)));
	show("read", buf, read(0, buf, sizeof(buf)));
	set_raw(0, 0, &saved);
	show("read", buf, read(0, buf, sizeof(buf)));
	tcsetattr(0, TCSANOW, &saved);
}

static void say(int sig)
{
	static const char text[] = "typed: interrupted\n";

	if (write(1, text, sizeof(text) - 1) < 0)
		_exit(9);
}

static void wait_for(pid_t pid, const char *who)
{
	int status;

	if (waitpid(pid, &status, WUNTRACED) != pid)
		die("waitpid");
	if (WIFSTOPPED(status))
		printf("%s: stopped by %d\n", who, WSTOPSIG(status));
	else if (WIFSIGNALED(status))
		printf("%s: ended by %d\n", who, WTERMSIG(status));
	else
		printf("%s: exit %d\n", who, WEXITSTATUS(status));
	fflush(stdout);
}

/* Starts a child in its own process group and, if `foreground` is set, in the foreground. */
static pid_t start(void (*fn)(void), int foreground)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		setpgid(0, 0);
		if (foreground) {
			signal(SIGTTOU, SIG_IGN);
			tcsetpgrp(0, getpgrp());
			signal(SIGTTOU, SIG_DFL);
		}
		fn();
		fflush(stdout);
		_exit(0);
	}
	setpgid(pid, pid);
	return pid;
}

static void read_one(void)
{
	char buf[100];

	show("child", buf, read(0, buf, sizeof(buf)));
}

static void wait_for_key(void)
{
	printf("typed: go\n");
	fflush(stdout);
	pause();
}

static void write_one(void)
{
	if (write(1, "child: wrote\n", 13) < 0)
		_exit(2);
}

static void take_foreground(void)
{
	_exit(tcsetpgrp(0, getpgrp()) ? 3 : 0);
}

static void to_foreground(pid_t pid)
{
	if (tcsetpgrp(0, pid))
		die("tcsetpgrp");
	kill(-pid, SIGCONT);
}

/* Does what a shell does. */
static void jobs(void)
{
	struct termios termios;
	pid_t pid;

	signal(SIGTTOU, SIG_IGN);
	printf("jobs: mine %d\n", tcgetpgrp(0) == getpgrp() && tcgetsid(0) == getpid());

	pid = start(wait_for_key, 1);
	wait_for(pid, "pause"); /* ^Z */
	to_foreground(pid);
	printf("typed: go\n");
	fflush(stdout);
	wait_for(pid, "pause"); /* ^C */

	tcsetpgrp(0, getpgrp());
	signal(SIGTTOU, SIG_DFL);
	pid = start(read_one, 0);
	wait_for(pid, "reader"); /* SIGTTIN */
	signal(SIGTTOU, SIG_IGN);
	printf("typed: go\n");
	fflush(stdout);
	to_foreground(pid);
	wait_for(pid, "reader");
	tcsetpgrp(0, getpgrp());

	signal(SIGTTIN, SIG_IGN);
	wait_for(start(read_one, 0), "ignorer"); /* EIO */
	signal(SIGTTIN, SIG_DFL);

	tcgetattr(0, &termios);
	termios.c_lflag |= TOSTOP;
	tcsetattr(0, TCSANOW, &termios);
	signal(SIGTTOU, SIG_DFL);
	pid = start(write_one, 0);
	wait_for(pid, "writer"); /* SIGTTOU */
	signal(SIGTTOU, SIG_IGN);
	to_foreground(pid);
	wait_for(pid, "writer");
	tcsetpgrp(0, getpgrp());
	termios.c_lflag &= ~TOSTOP;
	tcsetattr(0, TCSANOW, &termios);
	signal(SIGTTOU, SIG_DFL);
	pid = start(take_foreground, 0);
	wait_for(pid, "taker"); /* SIGTTOU */
	kill(pid, SIGKILL);
	wait_for(pid, "taker");
}

static int is_asleep(pid_t pid)
{
	char name[32], text[256] = "", *end;
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	fd = open(name, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		die(name);
	close(fd);
	end = strrchr(text, ')');
	return end && end[2] == 'S';
}

/* Starts a child that prints "typed: go" when this process sleeps in its next read(). */
static void go_when_asleep(void)
{
	pid_t parent = getpid(), pid;
	sigset_t keys;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid)
		return;
	sigemptyset(&keys);
	sigaddset(&keys, SIGINT); /* for the parent alone */
	sigprocmask(SIG_BLOCK, &keys, NULL);
	while (!is_asleep(parent))
		usleep(1000);
	printf("typed: go\n");
	fflush(stdout);
	_exit(0);
}

/* A handler without SA_RESTART ends a read, one with it does not. */
static void interrupts(void)
{
	struct sigaction action = { .sa_handler = say };
	struct winsize size = { 24, 80, 0, 0 };
	char buf[100];

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGWINCH, &action, NULL);
	size.ws_row += !ioctl(0, TIOCSWINSZ, &size);
	ioctl(0, TIOCSWINSZ, &size);
	go_when_asleep();
	show("read", buf, read(0, buf, sizeof(buf)));
	action.sa_flags = SA_RESTART;
	sigaction(SIGINT, &action, NULL);
	go_when_asleep();
	show("read", buf, read(0, buf, sizeof(buf)));
}

static const struct {
	const char *name;
	void (*run)(void);
} programs[] = {
	{ "lines", lines },	      { "raw", raw },	      { "sum", sum },
	{ "flood", flood },	      { "polls", polls },     { "jobs", jobs },
	{ "interrupts", interrupts }, { "splices", splices },
};

static void run(const char *name)
{
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		if (!strcmp(programs[i].name, name)) {
			programs[i].run();
			printf("PASS: typed: %s\n", name);
			exit(0);
		}
	}
	printf("FAIL: typed: no such program: %s\n", name);
	exit(1);
}

/* Makes this process a session leader, which opens its terminal. */
static void enter_session(void)
{
	int fd;

	if (setsid() < 0)
		die("setsid");
	if (open("/dev/tty", O_RDWR) >= 0 || errno != ENXIO)
		die("/dev/tty before the terminal");
	fd = open(tty, O_RDWR);
	if (fd < 0)
		die(tty);
	for (int i = 0; i < 3; i++)
		dup2(fd, i);
	if (close(open("/dev/tty", O_RDWR)))
		die("/dev/tty");
}

int main(int argc, char **argv)
{
	int status;
	pid_t pid;

	setvbuf(stdout, NULL, _IOLBF, 0);
	tty = argc > 2 && strcmp(argv[2], "-") ? argv[2] : NULL;
	for (int i = 3; i < argc && i < 7; i++)
		numbers[i - 3] = atoi(argv[i]);
	if (!tty)
		run(argc > 1 ? argv[1] : "lines");
	/* Process 1 has no parent in its session, so its group would be orphaned. */
	pid = fork();
	if (!pid) {
		enter_session();
		run(argv[1]);
	}
	waitpid(pid, &status, 0);
	return !WIFEXITED(status) || WEXITSTATUS(status);
}
