// SPDX-License-Identifier: BSD-2-Clause
/*
 * The receivers of a signal: processes, groups, everyone; alarms and interval timers; and process
 * 1, which only gets signals that it handles. Tests that need process 1, or signal everyone, run as
 * process 1 of a PID namespace. Without namespaces they run only if this is process 1 itself.
 */
#include <limits.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "run.h"

static volatile int nr_handled;

static void on_signal(int sig)
{
	nr_handled++;
}

static void handle(int sig)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	CHECK(!sigaction(sig, &action, NULL));
	nr_handled = 0;
}

static pid_t sleeper(pid_t group)
{
	pid_t pid = fork_sleeper();

	CHECK(!setpgid(pid, group));
	return pid;
}

TEST(groups)
{
	pid_t first = sleeper(0), second = sleeper(first), other = sleeper(0), mine;
	int status;

	CHECK(!kill(-first, 0) && !killpg(first, SIGCONT));
	CHECK(!kill(-first, SIGUSR1));
	CHECK(child_status(first) == SIGUSR1);
	CHECK(!kill(-first, 0)); /* the group is there while it has a member */
	CHECK(child_status(second) == SIGUSR1);
	CHECK(kill(-first, 0) == -1 && errno == ESRCH);
	CHECK(waitpid(other, &status, WNOHANG) == 0);

	/* 0 means the caller's own group, including the caller. */
	mine = sleeper(getpgrp());
	handle(SIGUSR1);
	CHECK(!kill(0, SIGUSR1) && nr_handled == 1 && child_status(mine) == SIGUSR1);
	CHECK(waitpid(other, &status, WNOHANG) == 0 && !kill(other, SIGKILL));
	CHECK(child_status(other) == SIGKILL);
	signal(SIGUSR1, SIG_DFL);
}

/* All members of a large group get a signal, even if they fork meanwhile. */
TEST(storm)
{
	pid_t leader = sleeper(0), pid;
	int nr = 0;

	for (int i = 0; i < 4; i++) {
		pid = fork_child();
		if (pid) {
			CHECK(!setpgid(pid, leader)); /* before the group can be gone */
			continue;
		}
		setpgid(0, leader);
		for (;;) {
			pid = fork();
			if (!pid)
				_exit(0);
			while (waitpid(pid, NULL, 0) == -1 && errno == EINTR)
				;
		}
	}
	sleep_ms(50);
	/* The first signal kills all members; a later one kills children forked meanwhile. */
	while (nr < 5) {
		kill(-leader, SIGKILL);
		pid = waitpid(-1, NULL, WNOHANG);
		if (pid > 0)
			nr++;
		else
			sleep_ms(1);
	}
	CHECK(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
	CHECK(WAIT_UNTIL(kill(-leader, 0) == -1 && errno == ESRCH));
}

TEST(alarm)
{
	struct itimerval timer = { .it_value = { 0, 30000 } }, old;
	long start = now_ms();
	sigset_t blocked, saved;

	handle(SIGALRM);
	CHECK(alarm(0) == 0 && alarm(100) == 0 && is_alarm_left(alarm(50), 100, start));
	CHECK(is_alarm_left(alarm(0), 50, start));
	/*
	 * The signal is blocked until the wait begins, because an earlier one would not end the
	 * wait.
	 */
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGALRM);
	CHECK(!sigprocmask(SIG_BLOCK, &blocked, &saved));
	start = now_ms();
	CHECK(!setitimer(ITIMER_REAL, &timer, &old) && !old.it_value.tv_sec &&
	      !old.it_value.tv_usec);
	CHECK(sigsuspend(&saved) == -1 && errno == EINTR && nr_handled == 1);
	CHECK(now_ms() - start >= 29 && !sigprocmask(SIG_SETMASK, &saved, NULL));
	CHECK(!getitimer(ITIMER_REAL, &old) && !old.it_value.tv_sec && !old.it_value.tv_usec);
	/* Without an interval, the timer expires once. */
	sleep_ms(50);
	CHECK(nr_handled == 1);

	timer.it_interval = (struct timeval){ 0, 10000 };
	start = now_ms();
	CHECK(!setitimer(ITIMER_REAL, &timer, NULL));
	CHECK(!getitimer(ITIMER_REAL, &old) && old.it_interval.tv_usec == 10000);
	while (nr_handled < 6)
		pause();
	CHECK(now_ms() - start >= 69);
	timer = (struct itimerval){ 0 };
	CHECK(!setitimer(ITIMER_REAL, &timer, &old) && old.it_interval.tv_usec == 10000);
	nr_handled = 0;
	sleep_ms(30);
	CHECK(nr_handled == 0);

	/* A period beyond the end of the clock: the first time is the only one. */
	timer.it_value.tv_usec = 10000;
	timer.it_interval.tv_sec = LONG_MAX;
	CHECK(!setitimer(ITIMER_REAL, &timer, NULL) && WAIT_UNTIL(nr_handled));
	sleep_ms(40);
	CHECK(nr_handled == 1 && !getitimer(ITIMER_REAL, &old));
	CHECK(old.it_value.tv_sec > 1000000000 && old.it_interval.tv_sec > 1000000000);
	timer = (struct itimerval){ 0 };
	CHECK(!setitimer(ITIMER_REAL, &timer, NULL));
	nr_handled = 0;

	/* The timer interrupts a program that only computes. */
	timer.it_value.tv_usec = 20000;
	CHECK(!setitimer(ITIMER_REAL, &timer, NULL));
	while (!nr_handled)
		asm volatile("");
	CHECK(nr_handled == 1);
	timer.it_value.tv_usec = 1000000;
	CHECK(setitimer(ITIMER_REAL, &timer, NULL) == -1 && errno == EINVAL);
	timer.it_value.tv_usec = 0;
	timer.it_value.tv_sec = -1;
	CHECK(setitimer(ITIMER_REAL, &timer, NULL) == -1 && errno == EINVAL);
	CHECK(setitimer(9, &timer, NULL) == -1 && errno == EINVAL);
	CHECK_ERROR(EFAULT, SYS_getitimer, ITIMER_REAL, 8);
	CHECK_ERROR(EFAULT, SYS_setitimer, ITIMER_REAL, 8, NULL);
	signal(SIGALRM, SIG_DFL);
}

/* While its signal is pending, the timer stands still. It goes on when the signal is taken. */
TEST(alarm_pends)
{
	struct itimerval timer = { { 0, 10000 }, { 0, 10000 } }, left;
	sigset_t set, pending;
	long start = now_ms();

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	CHECK(!sigprocmask(SIG_BLOCK, &set, NULL) && !setitimer(ITIMER_REAL, &timer, NULL));
	sleep_ms(35);
	CHECK(!sigpending(&pending) && sigismember(&pending, SIGALRM));
	CHECK(!getitimer(ITIMER_REAL, &left) && left.it_interval.tv_usec == 10000);
	CHECK(!left.it_value.tv_sec && !left.it_value.tv_usec);
	CHECK(sigtimedwait(&set, NULL, &(struct timespec){ 0 }) == SIGALRM);
	CHECK(!getitimer(ITIMER_REAL, &left) && left.it_value.tv_usec > 0);
	CHECK(left.it_value.tv_usec <= 10000 && sigwaitinfo(&set, NULL) == SIGALRM);
	CHECK(now_ms() - start >= 39);
	timer = (struct itimerval){ 0 };
	CHECK(!setitimer(ITIMER_REAL, &timer, NULL));
	sigtimedwait(&set, NULL, &(struct timespec){ 0 });
	CHECK(!sigprocmask(SIG_UNBLOCK, &set, NULL));
}

/* The default of SIGALRM ends a process, sleeping or not; exec keeps an alarm (execs.c). */
TEST(alarm_kills)
{
	struct itimerval timer = { .it_value = { 0, 20000 } };

	for (int i = 0; i < 2; i++) {
		pid_t pid = fork_child();

		if (!pid) {
			CHECK(!setitimer(ITIMER_REAL, &timer, NULL));
			while (i)
				asm volatile("");
			sleep_ms(20000);
			child_exit(1);
		}
		CHECK(child_status(pid) == SIGALRM);
	}
}

/* A process that is stopped, blocks everything and has handlers is still ended by SIGKILL. */
TEST(sigkill)
{
	int status, ready[2];
	char byte;

	if (!CHECK(!pipe(ready)))
		return;
	for (int how = 0; how < 4; how++) {
		pid_t pid = fork_child();
		sigset_t all;

		if (!pid) {
			sigfillset(&all);
			CHECK(!sigprocmask(SIG_BLOCK, &all, NULL));
			CHECK(write(ready[1], "", 1) == 1);
			while (how == 1)
				asm volatile("pause");
			while (how == 2)
				syscall(SYS_getppid);
			if (how == 3)
				raise(SIGSTOP); /* not blocked either */
			sleep_ms(30000);
			child_exit(1);
		}
		CHECK(read(ready[0], &byte, 1) == 1);
		if (how == 3)
			CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
		CHECK(!kill(pid, SIGTERM) && waitpid(pid, &status, WNOHANG) == 0);
		CHECK(!kill(pid, SIGKILL) && child_status(pid) == SIGKILL);
	}
	close(ready[0]);
	close(ready[1]);
}

/* Runs in process 1 of some PID namespace. No signal may affect it. */
static void as_process_1(void)
{
	static const int sigs[] = { SIGTERM, SIGINT, SIGUSR2, SIGSTOP, SIGKILL, SIGSEGV, SIGALRM };
	pid_t pid, others[3], parent = getpid();
	int status;

	CHECK(parent == 1);
	for (int i = 0; i < 7; i++)
		CHECK(!kill(1, sigs[i]));
	pid = fork_child();
	if (!pid) {
		for (int i = 0; i < 7; i++)
			CHECK(!kill(1, sigs[i]));
		child_exit(3);
	}
	CHECK(child_status(pid) == EXITED(3));
	handle(SIGUSR1);
	pid = fork_child();
	if (!pid)
		child_exit(kill(1, SIGUSR1));
	CHECK(child_status(pid) == 0 && nr_handled == 1);

	/* kill(-1) signals all processes except process 1 and the sender. */
	for (int i = 0; i < 3; i++)
		others[i] = sleeper(0);
	pid = fork_child();
	if (!pid)
		child_exit(kill(-1, SIGUSR2));
	CHECK(child_status(pid) == 0);
	for (int i = 0; i < 3; i++)
		CHECK(child_status(others[i]) == SIGUSR2);
	CHECK(kill(-1, SIGUSR2) == -1 && errno == ESRCH); /* no process is left */

	/* Process 1 becomes the parent of an orphan. */
	pid = fork_child();
	if (!pid) {
		if (!fork_child()) {
			CHECK(WAIT_UNTIL(getppid() == 1));
			child_exit(5);
		}
		child_exit(4);
	}
	CHECK(child_status(pid) == EXITED(4));
	CHECK(waitpid(-1, &status, 0) > 0 && status == EXITED(5));
	signal(SIGUSR1, SIG_DFL);
}

TEST(process_1)
{
	pid_t pid = fork_child(), init;

	if (!pid) {
		if (unshare(CLONE_NEWPID)) {
			CHECK(errno == ENOSYS || errno == EINVAL || errno == EPERM);
			child_exit(0); /* main() did it then, if this is where process 1 is ours */
		}
		init = fork_child();
		if (!init) {
			as_process_1();
			child_exit(0);
		}
		child_exit(child_status(init) != 0);
	}
	CHECK(child_status(pid) == 0);
}

int main(int argc, char **argv)
{
	if (getpid() == 1 && run_is_wanted("process_1", argc, argv)) {
		as_process_1();
		if (check_nr_failed)
			return check_finish("kills");
	}
	return run_tests("kills", argc, argv);
}
