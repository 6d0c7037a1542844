// SPDX-License-Identifier: BSD-2-Clause
/*
 * wait4 and waitid: selection of children, results and errors; stopped and continued children,
 * zombies, orphans, and children without a waiting parent.
 */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "run.h"

static pid_t exiting(int code)
{
	pid_t pid = fork_child();

	if (!pid)
		child_exit(code);
	return pid;
}

/* Every kind of wait status. The children are waited for in another order than they end. */
TEST(status)
{
	static const int codes[] = { 0, 1, 127, 255, 256, 256 + 7, -1 };
	static const int signals[] = { SIGKILL, SIGTERM, SIGHUP, SIGUSR1, SIGALRM, 32 + 8 };
	static const int dumps[] = { SIGABRT, SIGQUIT, SIGSEGV };
	int status;
	pid_t pid;

	for (unsigned int i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		CHECK(child_status(exiting(codes[i])) == EXITED(codes[i] & 255));
	for (unsigned int i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		pid = fork_sleeper();
		CHECK(!kill(pid, signals[i]));
		CHECK(child_status(pid) == signals[i]);
	}
	for (unsigned int i = 0; i < sizeof(dumps) / sizeof(dumps[0]); i++) {
		pid = fork_sleeper();
		CHECK(!kill(pid, dumps[i]));
		CHECK((child_status(pid) & ~0x80) == dumps[i]); /* with or without a core file */
	}
	pid = exiting(3);
	CHECK(wait4(-1, NULL, 0, NULL) == pid);
	pid = exiting(4);
	CHECK(wait(&status) == pid && status == EXITED(4));
}

TEST(nohang)
{
	pid_t pid = fork_sleeper();
	int status = 12345;
	siginfo_t info;

	CHECK(waitpid(pid, &status, WNOHANG) == 0 && status == 12345);
	CHECK(waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED) == 0);
	memset(&info, 0x55, sizeof(info));
	CHECK(!waitid(P_PID, pid, &info, WEXITED | WNOHANG));
	CHECK(info.si_pid == 0 && info.si_signo == 0);
	kill(pid, SIGKILL);
	CHECK(WAIT_UNTIL(waitpid(pid, &status, WNOHANG)) && status == SIGKILL);
	CHECK(waitpid(pid, &status, WNOHANG) == -1 && errno == ECHILD);
}

TEST(errors)
{
	siginfo_t info;
	pid_t pid;

	CHECK_ERROR(ECHILD, SYS_wait4, -1, 0, 0, 0);
	CHECK_ERROR(ECHILD, SYS_wait4, -1, 0, WNOHANG, 0);
	CHECK_ERROR(ECHILD, SYS_wait4, getppid(), 0, 0, 0);
	CHECK_ERROR(ECHILD, SYS_wait4, getpid(), 0, 0, 0);
	CHECK_ERROR(ECHILD, SYS_waitid, P_ALL, 0, &info, WEXITED, 0);
	pid = fork_sleeper();
	CHECK_ERROR(ECHILD, SYS_wait4, 1 << 30, 0, 0, 0);
	CHECK_ERROR(ECHILD, SYS_wait4, -(1 << 30), 0, 0, 0);
	CHECK_ERROR(ESRCH, SYS_wait4, INT_MIN, 0, 0, 0);
	CHECK_ERROR(EINVAL, SYS_wait4, pid, 0, 0x100, 0);
	CHECK_ERROR(EINVAL, SYS_wait4, pid, 0, WNOWAIT, 0);
	CHECK_ERROR(EINVAL, SYS_wait4, pid, 0, WEXITED, 0);
	CHECK_ERROR(EINVAL, SYS_waitid, P_PID, pid, &info, 0, 0);
	CHECK_ERROR(EINVAL, SYS_waitid, P_PID, pid, &info, WNOHANG | WNOWAIT, 0);
	CHECK_ERROR(EINVAL, SYS_waitid, P_PID, pid, &info, WEXITED | 0x100, 0);
	CHECK_ERROR(EINVAL, SYS_waitid, P_PID, 0, &info, WEXITED, 0);
	CHECK_ERROR(EINVAL, SYS_waitid, P_PGID, -1, &info, WEXITED, 0);
	CHECK_ERROR(EINVAL, SYS_waitid, 77, pid, &info, WEXITED, 0);
	kill(pid, SIGKILL);
	CHECK_ERROR(EFAULT, SYS_wait4, pid, 8, 0, 0); /* the child is reaped all the same */
	CHECK_ERROR(ECHILD, SYS_wait4, pid, 0, 0, 0);
}

static int info_is(const siginfo_t *info, pid_t pid, int code, int status)
{
	return info->si_signo == SIGCHLD && info->si_errno == 0 && info->si_pid == pid &&
	       info->si_uid == getuid() && info->si_code == code && info->si_status == status;
}

TEST(waitid)
{
	pid_t pid = exiting(300 & 255), other;
	siginfo_t info;

	CHECK(!waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
	CHECK(info_is(&info, pid, CLD_EXITED, 300 & 255));
	CHECK(!waitid(P_ALL, 12345, &info, WEXITED | WNOWAIT | WNOHANG));
	CHECK(info_is(&info, pid, CLD_EXITED, 300 & 255));
	CHECK(!waitid(P_PID, pid, NULL, WEXITED));
	CHECK(waitid(P_PID, pid, &info, WEXITED) == -1 && errno == ECHILD);

	pid = fork_sleeper();
	kill(pid, SIGTERM);
	CHECK(!waitid(P_ALL, 0, &info, WEXITED) && info_is(&info, pid, CLD_KILLED, SIGTERM));

	pid = fork_sleeper();
	other = exiting(1);
	CHECK(!waitid(P_PID, other, &info, WEXITED) && info_is(&info, other, CLD_EXITED, 1));
	kill(pid, SIGSTOP);
	CHECK(!waitid(P_PID, pid, &info, WEXITED | WSTOPPED | WNOWAIT));
	CHECK(info_is(&info, pid, CLD_STOPPED, SIGSTOP));
	CHECK(!waitid(P_PID, pid, &info, WSTOPPED) && info.si_code == CLD_STOPPED);
	CHECK(!waitid(P_PID, pid, &info, WSTOPPED | WNOHANG) && info.si_pid == 0);
	kill(pid, SIGCONT);
	CHECK(!waitid(P_PID, pid, &info, WCONTINUED));
	CHECK(info_is(&info, pid, CLD_CONTINUED, SIGCONT));
	kill(pid, SIGKILL);
	CHECK(child_status(pid) == SIGKILL);
}

/* A stop is reported once, and only to a wait that asks for stops. */
TEST(stops)
{
	static const int signals[] = { SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU };
	int status;
	pid_t pid;

	for (int i = 0; i < 4; i++) {
		pid = fork_sleeper();
		/* The other three would do nothing in the tests' group if it is orphaned. */
		if (i)
			CHECK(!setpgid(pid, pid));
		CHECK(!kill(pid, signals[i]));
		CHECK(waitpid(pid, &status, WUNTRACED) == pid);
		CHECK(WIFSTOPPED(status) && status == (signals[i] << 8 | 0x7f));
		CHECK(waitpid(pid, &status, WUNTRACED | WNOHANG) == 0);
		CHECK(!kill(pid, SIGUSR1)); /* stays pending */
		sleep_ms(20);
		CHECK(waitpid(pid, &status, WNOHANG) == 0);
		/* SIGKILL ends a stopped process, too. */
		CHECK(!kill(pid, i % 2 ? SIGKILL : SIGCONT));
		CHECK(child_status(pid) == (i % 2 ? SIGKILL : SIGUSR1));
	}
	pid = fork_sleeper();
	kill(pid, SIGSTOP);
	CHECK(waitpid(pid, &status, WUNTRACED) == pid && WSTOPSIG(status) == SIGSTOP);
	kill(pid, SIGCONT);
	CHECK(waitpid(pid, &status, WCONTINUED) == pid && status == 0xffff);
	CHECK(waitpid(pid, &status, WCONTINUED | WNOHANG) == 0);
	CHECK(!kill(pid, SIGCONT)); /* the process was not stopped, so nothing is reported */
	CHECK(waitpid(pid, &status, WCONTINUED | WNOHANG) == 0);
	kill(pid, SIGTERM);
	CHECK(child_status(pid) == SIGTERM);
}

/* If several children have ended or stopped, wait() returns the one that was created first. */
TEST(first_made)
{
	pid_t pids[4];
	siginfo_t info;
	int status;

	for (int i = 0; i < 4; i++)
		pids[i] = fork_sleeper();
	for (int i = 3; i >= 0; i--) {
		CHECK(!kill(pids[i], i == 1 ? SIGSTOP : SIGKILL));
		CHECK(!waitid(P_PID, pids[i], &info, WEXITED | WSTOPPED | WNOWAIT));
	}
	CHECK(waitpid(-1, NULL, 0) == pids[0]);
	CHECK(waitpid(-1, NULL, WNOWAIT | WEXITED) == -1 && errno == EINVAL);
	CHECK(!waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) && info.si_pid == pids[2]);
	CHECK(waitpid(-1, &status, WUNTRACED) == pids[1] && WIFSTOPPED(status));
	CHECK(waitpid(-1, NULL, WUNTRACED) == pids[2]);
	CHECK(!kill(pids[1], SIGKILL));
	CHECK(!waitid(P_PID, pids[1], &info, WEXITED | WNOWAIT));
	CHECK(waitpid(-1, &status, WUNTRACED) == pids[1] && status == SIGKILL);
	CHECK(waitpid(-1, NULL, 0) == pids[3]);
	CHECK(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
}

#define NR_ENDED 32

/* The same in whichever order they end, and with waits in between. */
TEST(many_ended)
{
	pid_t pids[NR_ENDED], *first;
	siginfo_t info;

	for (int i = 0; i < NR_ENDED; i++)
		pids[i] = fork_sleeper();
	for (int n = 0; n < 2 * NR_ENDED; n++) {
		int i = n * 13 % NR_ENDED;

		if (n < NR_ENDED) {
			CHECK(!kill(pids[i], SIGKILL));
			CHECK(!waitid(P_PID, pids[i], &info, WEXITED | WNOWAIT));
			pids[i] = -pids[i]; /* a negative number: the child has ended */
		}
		if (n < NR_ENDED && n % 3)
			continue;
		for (first = pids; first < pids + NR_ENDED && *first >= 0; first++)
			;
		if (first == pids + NR_ENDED)
			break;
		CHECK(waitpid(-1, NULL, 0) == -*first);
		*first = 0;
	}
	CHECK(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
}

/* A stopped process does not run, and later continues where it was. */
TEST(stopped_is_still)
{
	volatile int *count =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status, before;
	pid_t pid;

	if (!CHECK(count != MAP_FAILED))
		return;
	pid = fork_child();
	while (!pid)
		++*count;
	CHECK(WAIT_UNTIL(*count > 1000));
	CHECK(!kill(pid, SIGSTOP) && waitpid(pid, &status, WUNTRACED) == pid);
	before = *count;
	sleep_ms(50);
	CHECK(*count == before);
	CHECK(!kill(pid, SIGCONT));
	CHECK(WAIT_UNTIL(*count > before + 1000));
	kill(pid, SIGKILL);
	CHECK(child_status(pid) == SIGKILL);
	munmap((void *)count, 4096);
}

static int sleep_for_ever(void *arg)
{
	while (pause())
		;
	return 0;
}

/*
 * Makes threads by clone(). Threads of the C library begin with system calls, in which they would
 * find the stop signal.
 */
static void *make_threads(void *arg)
{
	const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;
	static char stacks[101][8192] __attribute__((aligned(16)));
	volatile int *nr_made = arg;

	while (*nr_made < 100 && clone(sleep_for_ever, stacks[*nr_made + 1], flags, NULL) > 0)
		++*nr_made;
	return NULL;
}

/*
 * Threads that start while the process stops must stop, too, or the stop would never be complete.
 */
TEST(stopped_threads)
{
	volatile int *nr_made =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_t maker;
	int status;

	if (!CHECK(nr_made != MAP_FAILED))
		return;
	for (int i = 0; i < 40; i++) {
		pid_t pid, got = 0;

		*nr_made = 0;
		pid = fork_child();
		if (!pid) {
			CHECK(!pthread_create(&maker, NULL, make_threads, (void *)nr_made));
			sleep_for_ever(NULL);
		}
		while (*nr_made <= i % 5) /* stop it while it still creates threads */
			sched_yield();
		CHECK(!kill(pid, SIGSTOP));
		CHECK(WAIT_UNTIL(got || (got = waitpid(pid, &status, WUNTRACED | WNOHANG))));
		CHECK(got == pid && WIFSTOPPED(status));
		kill(pid, SIGKILL);
		CHECK(child_status(pid) == SIGKILL);
	}
	munmap((void *)nr_made, 4096);
}

TEST(groups)
{
	pid_t mine = exiting(1), first = fork_sleeper(), second = fork_sleeper();
	siginfo_t info;
	int status;

	CHECK(!setpgid(first, first) && !setpgid(second, first));
	CHECK(getpgid(first) == first && getpgid(second) == first);
	CHECK(waitpid(-first, &status, WNOHANG) == 0);
	CHECK(waitpid(0, &status, 0) == mine && status == EXITED(1));
	CHECK_ERROR(ECHILD, SYS_wait4, 0, 0, 0, 0);
	CHECK(!kill(-first, SIGTERM));
	CHECK(!waitid(P_PGID, first, &info, WEXITED | WNOWAIT) && info.si_code == CLD_KILLED);
	CHECK(waitpid(-first, &status, 0) > 0 && status == SIGTERM);
	CHECK(waitpid(-first, &status, 0) > 0 && status == SIGTERM);
	CHECK_ERROR(ECHILD, SYS_wait4, -first, 0, 0, 0);
	CHECK(kill(-first, 0) == -1 && errno == ESRCH);
}

/* A zombie is visible and belongs to its group, until it has been waited for. */
TEST(zombie)
{
	pid_t pid = exiting(5);
	siginfo_t info;

	CHECK(!waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
	CHECK(!kill(pid, 0) && !kill(pid, SIGKILL) && getpgid(pid) == getpgrp());
	CHECK(child_status(pid) == EXITED(5));
	CHECK(kill(pid, 0) == -1 && errno == ESRCH);
	CHECK(getpgid(pid) == -1 && errno == ESRCH);
}

/* A child of a process that ends gets another parent, but not its grandparent. */
TEST(orphan)
{
	int fd = open(check_file_name(), O_CREAT | O_RDWR | O_TRUNC, 0600);
	pid_t pid, parent = 0;

	pid = fork_child();
	if (!pid) {
		pid_t middle = getpid();

		if (!fork_child()) {
			while (getppid() == middle)
				sleep_ms(1);
			parent = getppid();
			CHECK(write(fd, &parent, sizeof(parent)) == sizeof(parent));
			child_exit(0);
		}
		child_exit(6);
	}
	CHECK(child_status(pid) == EXITED(6));
	CHECK(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
	CHECK(WAIT_UNTIL(pread(fd, &parent, sizeof(parent), 0) == sizeof(parent)));
	CHECK(parent > 0 && parent != pid && parent != getpid());
	close(fd);
}

static long used_us(const struct rusage *usage)
{
	return (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000 +
	       usage->ru_utime.tv_usec + usage->ru_stime.tv_usec;
}

TEST(rusage)
{
	struct rusage usage, before, after;
	siginfo_t info;
	pid_t pid;

	CHECK(!getrusage(RUSAGE_CHILDREN, &before));
	for (int i = 0; i < 2; i++) {
		pid = fork_child();
		if (!pid) {
			long end_ms = now_ms() + 10000;

			do {
				CHECK(!getrusage(RUSAGE_SELF, &usage));
			} while (used_us(&usage) < 20000 && now_ms() < end_ms);
			child_exit(0);
		}
		memset(&usage, 0, sizeof(usage));
		if (i)
			CHECK(!syscall(SYS_waitid, P_PID, pid, &info, WEXITED, &usage));
		else
			CHECK(wait4(pid, NULL, 0, &usage) == pid);
		CHECK(used_us(&usage) >= 20000 && used_us(&usage) < 10000000);
	}
	CHECK(!getrusage(RUSAGE_CHILDREN, &after));
	CHECK(used_us(&after) - used_us(&before) >= 40000);
}

/* If SIGCHLD is ignored or SA_NOCLDWAIT is set, children do not become zombies. */
TEST(nobody_waits)
{
	struct sigaction action = { .sa_handler = SIG_IGN }, old;
	pid_t pid;

	for (int i = 0; i < 2; i++) {
		CHECK(!sigaction(SIGCHLD, &action, &old));
		pid = exiting(1);
		CHECK(WAIT_UNTIL(kill(pid, 0) == -1 && errno == ESRCH));
		pid = fork_child();
		if (!pid) {
			sleep_ms(30);
			child_exit(2);
		}
		/* The wait returns when the last child has ended, with ECHILD. */
		CHECK(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
		/* Linux frees the pid a moment later. */
		CHECK(WAIT_UNTIL(kill(pid, 0) == -1 && errno == ESRCH));
		action.sa_handler = SIG_DFL;
		action.sa_flags = SA_NOCLDWAIT;
	}
	action.sa_flags = 0;
	CHECK(!sigaction(SIGCHLD, &action, NULL));
	CHECK(child_status(exiting(3)) == EXITED(3));
}

static void *wait_for(void *arg)
{
	return (void *)(long)child_status((pid_t)(long)arg);
}

/* Any thread can wait for a child of another; each gets the one it asked for. */
TEST(threads)
{
	pthread_t threads[16];
	pid_t pids[16];
	void *status;

	for (long i = 0; i < 16; i++) {
		pids[i] = fork_sleeper();
		CHECK(!pthread_create(&threads[i], NULL, wait_for, (void *)(long)pids[i]));
	}
	for (int i = 15; i >= 0; i--)
		CHECK(!kill(pids[i], i % 2 ? SIGTERM : SIGKILL));
	for (int i = 0; i < 16; i++)
		CHECK(!pthread_join(threads[i], &status) &&
		      (long)status == (i % 2 ? SIGTERM : SIGKILL));
}

static void *end_when_told(void *ends)
{
	char byte;

	_exit(read(*(int *)ends, &byte, 1) == 0 ? 5 : 6);
	return NULL;
}

/*
 * A process whose first thread is gone lives on; a waiting parent returns when the last thread
 * ends.
 */
TEST(first_thread_ends)
{
	int ends[2], status;
	pid_t pid;

	CHECK(!pipe(ends));
	pid = fork_child();
	if (!pid) {
		pthread_t thread;

		CHECK(!close(ends[1]));
		CHECK(!pthread_create(&thread, NULL, end_when_told, ends));
		syscall(SYS_exit, 1);
	}
	sleep_ms(10);
	CHECK(waitpid(pid, &status, WNOHANG) == 0);
	CHECK(!close(ends[0]) && !close(ends[1]) && child_status(pid) == EXITED(5));
}

int main(int argc, char **argv)
{
	return run_tests("waits", argc, argv);
}
