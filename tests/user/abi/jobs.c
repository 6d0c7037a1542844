// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sessions and process groups: the rules for setpgid() and setsid(), and a terminal's foreground
 * group. test_terminal() uses a pseudoterminal, if the kernel has them.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <termios.h>

#include "run.h"

extern char **environ;

static const char *self;

static void end(pid_t pid)
{
	CHECK(!kill(pid, SIGKILL) && child_status(pid) == SIGKILL);
}

TEST(session)
{
	pid_t pid = fork_child(), mine = getsid(0);

	if (!pid) {
		CHECK(setsid() == getpid() && getsid(0) == getpid() && getpgrp() == getpid());
		FAILS(setsid(), EPERM);	     /* leads a group */
		FAILS(setpgid(0, 0), EPERM); /* leads a session */
		CHECK(getsid(getppid()) == mine);
		FAILS(tcgetpgrp(0), ENOTTY);
		FAILS(open("/dev/tty", O_RDWR), ENXIO);
		pid = fork_child();
		if (!pid) {
			CHECK(getsid(0) == getppid() && getpgrp() == getppid());
			CHECK(setsid() == getpid()); /* did not lead */
			child_exit(6);
		}
		CHECK(child_status(pid) == EXITED(6));
		child_exit(5);
	}
	CHECK(child_status(pid) == EXITED(5));
	CHECK(getsid(0) == mine && getsid(getpid()) == mine);
	FAILS(getsid(1 << 30), ESRCH);
	FAILS(getpgid(1 << 30), ESRCH);
	FAILS(setpgid(0, -1), EINVAL);
	FAILS(setpgid(-1, 0), EINVAL);
	FAILS(setpgid(1 << 30, 0), ESRCH);
	FAILS(setpgid(getppid(), 0), ESRCH); /* no child of ours */
}

TEST(groups)
{
	pid_t first = fork_sleeper(), second = fork_sleeper(), third = fork_sleeper(),
	      mine = getpgrp();

	CHECK(getpgid(first) == mine && !setpgid(first, 0) && getpgid(first) == first);
	CHECK(!setpgid(first, first) && !setpgid(second, first) && getpgid(second) == first);
	FAILS(setpgid(third, second), EPERM); /* no such group */
	FAILS(setpgid(third, 1 << 30), EPERM);
	CHECK(getpgid(third) == mine && !setpgid(third, first) && !setpgid(third, third));
	CHECK(!setpgid(third, mine));
	end(first);
	CHECK(getpgid(second) == first && !kill(-first, 0)); /* the group outlives its leader */
	CHECK(!setpgid(third, first) && getpgid(third) == first);
	end(second);
	end(third);
	FAILS(kill(-first, 0), ESRCH);
	/* The number of a group is not given to a process while the group is there, so: */
	for (int i = 0; i < 50; i++) {
		first = fork_child();
		if (!first)
			child_exit(setpgid(0, 0) || getpgrp() != getpid());
		CHECK(child_status(first) == 0);
	}
}

/*
 * The group of a child cannot be changed once it has called execve, or if it is in another session.
 */
TEST(too_late)
{
	volatile int *ready =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int ends[2];
	pid_t pid;
	char c;

	CHECK(!pipe2(ends, O_CLOEXEC));
	pid = fork_child();
	if (!pid) {
		execve(self, (char *[]){ (char *)self, "--sleep", NULL }, environ);
		child_exit(77);
	}
	close(ends[1]);
	CHECK(read(ends[0], &c, 1) == 0 && !close(ends[0])); /* execve has closed the other end */
	FAILS(setpgid(pid, pid), EACCES);
	end(pid);

	pid = fork_child();
	if (!pid) {
		setsid();
		*ready = 1;
		sleep_ms(30000);
		child_exit(98);
	}
	CHECK(WAIT_UNTIL(*ready));
	FAILS(setpgid(pid, getpgrp()), EPERM);
	CHECK(getsid(pid) == pid && getpgid(pid) == pid);
	end(pid);
	munmap((void *)ready, 4096);
}

/*
 * SIGTSTP, SIGTTIN and SIGTTOU do not stop an orphaned group, because no process could continue it.
 */
TEST(orphaned_group)
{
	int status;
	pid_t pid;

	pid = fork_child();
	if (!pid) {
		setsid(); /* alone: its group is orphaned */
		for (int sig = SIGTSTP; sig <= SIGTTOU; sig++)
			CHECK(!raise(sig));
		child_exit(4);
	}
	CHECK(waitpid(pid, &status, WUNTRACED) == pid && status == EXITED(4));
}

static volatile int nr_hups, nr_conts;

static void on_signal(int sig)
{
	if (sig == SIGHUP)
		nr_hups++;
	else
		nr_conts++;
}

/* A stopped group that becomes orphaned gets SIGHUP and SIGCONT. */
TEST(hangup)
{
	volatile int *told =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = fork_child(), grandchild;
	int status;

	if (!pid) {
		grandchild = fork_child();
		if (!grandchild) {
			struct sigaction action = { .sa_handler = on_signal };

			sigaction(SIGHUP, &action, NULL);
			sigaction(SIGCONT, &action, NULL);
			setpgid(0, 0);
			raise(SIGSTOP);
			told[1] = nr_conts;
			told[0] = nr_hups;
			child_exit(0);
		}
		CHECK(waitpid(grandchild, &status, WUNTRACED) == grandchild && WIFSTOPPED(status));
		child_exit(3);
	}
	CHECK(child_status(pid) == EXITED(3));
	CHECK(WAIT_UNTIL(told[0]) && told[0] == 1 && told[1] == 1);
	munmap((void *)told, 4096);
}

/*
 * The foreground group of a session's terminal: processes that may change it, and signals to the
 * background.
 */
static void run_terminal(int terminal)
{
	pid_t pid, job;
	int status, group = 0;
	char c;

	CHECK(setsid() == getpid());
	CHECK(!ioctl(terminal, TIOCSCTTY, 0));
	CHECK(tcgetpgrp(terminal) == getpid() && tcgetsid(terminal) == getpid());
	CHECK(!close(open("/dev/tty", O_RDWR)));
	FAILS(tcsetpgrp(terminal, 1 << 30), ESRCH);
	FAILS(tcsetpgrp(terminal, -1), EINVAL);
	FAILS(ioctl(terminal, TIOCGPGRP, 8), EFAULT);
	job = fork_child();
	if (!job) {
		setpgid(0, 0);
		CHECK(read(terminal, &c, 1) ==
		      1); /* from the background: SIGTTIN, and again after */
		child_exit(5);
	}
	CHECK(!setpgid(job, job));
	CHECK(waitpid(job, &status, WUNTRACED) == job && WSTOPSIG(status) == SIGTTIN);
	CHECK(!tcsetpgrp(terminal, job) && tcgetpgrp(terminal) == job);
	CHECK(!ioctl(terminal, TIOCGPGRP, &group) && group == job);
	signal(SIGTTOU, SIG_DFL);
	pid = fork_child(); /* now the others are in the background */
	if (!pid) {
		setpgid(0, 0);
		CHECK(!tcsetpgrp(terminal, getpid()));
		child_exit(6);
	}
	CHECK(waitpid(pid, &status, WUNTRACED) == pid && WSTOPSIG(status) == SIGTTOU);
	CHECK(!kill(pid, SIGKILL) && child_status(pid) == SIGKILL);
	signal(SIGTTOU, SIG_IGN); /* then the call is allowed */
	CHECK(!kill(job, SIGCONT) && write(terminal + 1, "x\n", 2) == 2);
	CHECK(child_status(job) == EXITED(5) && !tcsetpgrp(terminal, getpgrp()));

	/* Keys of the terminal signal the foreground group. */
	for (int i = 0; i < 3; i++) {
		pid = fork_child();
		if (!pid) {
			setpgid(0, 0);
			CHECK(!tcsetpgrp(terminal, getpid()) &&
			      write(terminal + 1, &"\3\34\32"[i], 1) == 1);
			sleep_ms(30000);
			child_exit(98);
		}
		CHECK(waitpid(pid, &status, WUNTRACED) == pid);
		CHECK(i == 2 ? WSTOPSIG(status) == SIGTSTP :
			       WTERMSIG(status) == (i ? SIGQUIT : SIGINT));
		if (i == 2)
			end(pid);
		CHECK(!tcsetpgrp(terminal, getpgrp()));
	}
	CHECK(!ioctl(terminal, TIOCNOTTY));
	FAILS(open("/dev/tty", O_RDWR), ENXIO);
}

TEST(terminal)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), terminal;
	pid_t pid;

	if (master < 0) {
		CHECK(errno == ENOENT || errno == ENOSYS || errno == ENODEV);
		return;
	}
	CHECK(!grantpt(master) && !unlockpt(master));
	terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
	pid = fork_child();
	if (!pid) {
		CHECK(dup2(terminal, 200) == 200 && dup2(master, 201) == 201);
		signal(SIGHUP, SIG_IGN); /* giving up the terminal sends it */
		run_terminal(200);
		child_exit(0);
	}
	CHECK(child_status(pid) == 0);
	close(terminal);
	close(master);
}

int main(int argc, char **argv)
{
	self = argv[0][0] == '/' ? argv[0] : "/bin/jobs";
	if (argc > 1 && !strcmp(argv[1], "--sleep")) {
		sleep_ms(30000);
		return 98;
	}
	return run_tests("jobs", argc, argv);
}
