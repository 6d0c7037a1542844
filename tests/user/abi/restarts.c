// SPDX-License-Identifier: BSD-2-Clause
/*
 * System calls that a handler interrupts. With SA_RESTART they are restarted, without it they fail
 * with EINTR. Some always fail with EINTR, and a sleep returns the remaining time. A child sends
 * the signal after 20 ms, and repeats it until the parent is done, in case the first one came
 * before the call.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/time.h>

#include "run.h"

#define FUTEX_WAIT 0
#define FUTEX_WAKE 1

static volatile int nr_handled;

static void on_signal(int sig)
{
	nr_handled++;
}

static void handle(int sig, int flags)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags };

	CHECK(!sigaction(sig, &action, NULL));
	nr_handled = 0;
}

/* Forks a child that sends SIGUSR1 @nr times, and then calls @then(@arg). */
static pid_t interrupter(int nr, void (*then)(void *), void *arg)
{
	pid_t pid = fork_child();

	if (pid)
		return pid;
	for (int i = 0; i < nr; i++) {
		sleep_ms(20);
		kill(getppid(), SIGUSR1);
	}
	if (then) {
		sleep_ms(20);
		then(arg);
	}
	child_exit(0);
	return 0;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	CHECK(child_status(pid) != -1);
}

static void write_byte(void *arg)
{
	CHECK(write(((int *)arg)[1], "x", 1) == 1);
}

static void read_byte(void *arg)
{
	char page[4096];

	CHECK(read(((int *)arg)[0], page, sizeof(page)) == sizeof(page));
}

TEST(pipe)
{
	static char block[65536];
	int ends[2];
	char c = 0;
	pid_t pid;

	CHECK(!pipe(ends));
	handle(SIGUSR1, SA_RESTART);
	pid = interrupter(3, write_byte, ends);
	CHECK(read(ends[0], &c, 1) == 1 && c == 'x' && nr_handled > 0);
	end(pid);
	handle(SIGUSR1, 0);
	pid = interrupter(1000, NULL, NULL);
	CHECK(read(ends[0], &c, 1) == -1 && errno == EINTR && nr_handled >= 1);
	end(pid);

	CHECK(write(ends[1], block, sizeof(block)) == sizeof(block));
	handle(SIGUSR1, SA_RESTART);
	pid = interrupter(2, read_byte, ends);
	CHECK(write(ends[1], "y", 1) == 1 && nr_handled > 0);
	end(pid);
	handle(SIGUSR1, 0);
	CHECK(write(ends[1], block, 4095) == 4095);
	CHECK(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
	while (write(ends[1], block, 1) == 1)
		;
	CHECK(fcntl(ends[1], F_SETFL, 0) == 0);
	pid = interrupter(1000, NULL, NULL);
	CHECK(write(ends[1], "z", 1) == -1 && errno == EINTR && nr_handled >= 1);
	/* A write that has begun returns the number of bytes instead. */
	CHECK(read(ends[0], block, 8192) == 8192);
	CHECK(write(ends[1], block, 30000) == 8192);
	end(pid);
	close(ends[0]);
	close(ends[1]);
}

static void kill_it(void *arg)
{
	kill(*(pid_t *)arg, SIGKILL);
}

TEST(wait)
{
	pid_t pid, sleeper = fork_child();
	siginfo_t info;
	int status;

	if (!sleeper) {
		sleep_ms(30000);
		child_exit(4);
	}
	handle(SIGUSR1, 0);
	pid = interrupter(1000, NULL, NULL);
	CHECK(waitpid(sleeper, &status, 0) == -1 && errno == EINTR);
	CHECK(waitid(P_PID, sleeper, &info, WEXITED) == -1 && errno == EINTR);
	end(pid);
	handle(SIGUSR1, SA_RESTART);
	pid = interrupter(3, kill_it, &sleeper);
	CHECK(waitpid(sleeper, &status, 0) == sleeper && status == SIGKILL && nr_handled > 0);
	end(pid);
}

static long futex(volatile int *word, int op, int value, const struct timespec *time, int bits)
{
	return syscall(SYS_futex, word, op, value, time, NULL, bits);
}

static void wake(void *arg)
{
	*(volatile int *)arg = 1;
	futex(arg, FUTEX_WAKE, 1, NULL, 0);
}

TEST(futex)
{
	volatile int *word =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct timespec time = { 10, 0 };
	long start;
	pid_t pid;

	handle(SIGUSR1, SA_RESTART);
	pid = interrupter(3, wake, (void *)word);
	CHECK(futex(word, FUTEX_WAIT, 0, NULL, 0) == 0 || (errno == EAGAIN && *word == 1));
	CHECK(nr_handled > 0);
	end(pid);

	/*
	 * A wait with a timeout is not restarted after a handler. If no handler runs, it is
	 * restarted, and keeps its deadline.
	 */
	*word = 0;
	pid = interrupter(1000, NULL, NULL);
	CHECK(futex(word, FUTEX_WAIT, 0, &time, 0) == -1 && errno == EINTR);
	signal(SIGUSR1, SIG_IGN);
	time = (struct timespec){ 0, 80000000 };
	start = now_ms();
	CHECK(futex(word, FUTEX_WAIT, 0, &time, 0) == -1 && errno == ETIMEDOUT);
	CHECK(now_ms() - start >= 79 && now_ms() - start < 5000);
	handle(SIGUSR1, 0);
	time.tv_sec = 10;
	CHECK(futex(word, FUTEX_WAIT, 0, NULL, 0) == -1 && errno == EINTR);
	CHECK(futex(word, FUTEX_WAIT, 0, &time, 0) == -1 && errno == EINTR);
	end(pid);
	munmap((void *)word, 4096);
}

static int64_t to_ns(const struct timespec *time)
{
	return time->tv_sec * 1000000000ll + time->tv_nsec;
}

/*
 * A sleep is never restarted after a handler; it returns the remaining time. If no handler runs, it
 * continues.
 */
TEST(sleep)
{
	struct timespec time = { 30, 0 }, left = { 77, 77 }, now;
	pid_t pid;
	long start;

	for (int restart = 0; restart < 2; restart++) {
		handle(SIGUSR1, restart ? SA_RESTART : 0);
		pid = interrupter(1000, NULL, NULL);
		CHECK(nanosleep(&time, &left) == -1 && errno == EINTR);
		CHECK(to_ns(&left) > to_ns(&time) - 10000000000 && to_ns(&left) < to_ns(&time));
		CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &left) == EINTR);
		CHECK(to_ns(&left) > to_ns(&time) - 10000000000 && to_ns(&left) < to_ns(&time));
		CHECK(nanosleep(&time, NULL) == -1 && errno == EINTR);
		clock_gettime(CLOCK_MONOTONIC, &now);
		now.tv_sec += 30;
		left = (struct timespec){ 77, 77 };
		CHECK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &now, &left) == EINTR);
		CHECK(left.tv_sec == 77 && left.tv_nsec == 77);
		end(pid);
	}
	signal(SIGUSR1, SIG_IGN);
	time = (struct timespec){ 0, 100000000 };
	pid = interrupter(1000, NULL, NULL);
	start = now_ms();
	CHECK(!nanosleep(&time, &left) && now_ms() - start >= 99);
	end(pid);
}

static void stop_and_continue(void *arg)
{
	kill(getppid(), SIGSTOP);
	sleep_ms(30);
	kill(getppid(), SIGCONT);
}

/* After a stop, which runs no handler, calls continue, and a sleep keeps its deadline. */
TEST(stopped)
{
	pid_t pid = fork_child(), helper;
	struct timespec time = { 0, 150000000 };
	int ends[2];
	long start;
	char c;

	if (!pid) {
		CHECK(!pipe(ends));
		start = now_ms();
		helper = interrupter(0, stop_and_continue, NULL);
		CHECK(!nanosleep(&time, NULL) && now_ms() - start >= 149);
		CHECK(child_status(helper) == 0);
		helper = interrupter(0, stop_and_continue, NULL);
		if (!fork_child()) {
			sleep_ms(150);
			write_byte(ends);
			child_exit(0);
		}
		CHECK(read(ends[0], &c, 1) == 1);
		CHECK(waitpid(-1, NULL, 0) > 0 && waitpid(-1, NULL, 0) > 0);
		child_exit(7);
	}
	CHECK(child_status(pid) == EXITED(7));
}

/* These end with EINTR whatever the flags say. */
TEST(never)
{
	struct timeval tv = { 30, 0 };
	struct pollfd one;
	sigset_t set;
	int ends[2];
	pid_t pid;

	CHECK(!pipe(ends));
	one = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	handle(SIGUSR1, SA_RESTART);
	pid = interrupter(1000, NULL, NULL);
	CHECK(poll(&one, 1, -1) == -1 && errno == EINTR);
	CHECK(poll(&one, 1, 30000) == -1 && errno == EINTR);
	CHECK(ppoll(&one, 1, NULL, NULL) == -1 && errno == EINTR);
	CHECK(select(0, NULL, NULL, NULL, &tv) == -1 && errno == EINTR);
	CHECK(pause() == -1 && errno == EINTR);
	sigemptyset(&set);
	CHECK(sigsuspend(&set) == -1 && errno == EINTR);
	sigaddset(&set, SIGUSR2);
	CHECK(syscall(SYS_rt_sigtimedwait, &set, NULL, NULL, 8) == -1 && errno == EINTR);
	CHECK(nr_handled >= 7);
	end(pid);
	/* Ignored signals interrupt nothing. */
	signal(SIGUSR1, SIG_IGN);
	pid = interrupter(1000, NULL, NULL);
	CHECK(poll(&one, 1, 100) == 0);
	end(pid);
	close(ends[0]);
	close(ends[1]);
}

/* The SIGCHLD of a child that a call waits for does not make the call fail. */
TEST(sigchld)
{
	sigset_t set, none;
	siginfo_t info;
	pid_t pid;

	sigemptyset(&none);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	handle(SIGCHLD, 0);
	pid = fork_child();
	if (!pid) {
		sleep_ms(20);
		child_exit(9);
	}
	CHECK(waitpid(pid, NULL, 0) == pid && nr_handled == 1);
	CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
	pid = fork_child();
	if (!pid)
		child_exit(300 & 255);
	CHECK(sigwaitinfo(&set, &info) == SIGCHLD && info.si_code == CLD_EXITED);
	CHECK(info.si_pid == pid && info.si_status == (300 & 255) && info.si_uid == getuid());
	CHECK(child_status(pid) == EXITED(300 & 255));
	pid = fork_child();
	if (!pid) {
		raise(SIGSTOP);
		sleep_ms(10000);
		child_exit(0);
	}
	CHECK(sigwaitinfo(&set, &info) == SIGCHLD && info.si_code == CLD_STOPPED);
	CHECK(info.si_status == SIGSTOP && !kill(pid, SIGCONT));
	CHECK(sigwaitinfo(&set, &info) == SIGCHLD && info.si_code == CLD_CONTINUED);
	CHECK(info.si_status == SIGCONT && !kill(pid, SIGKILL));
	CHECK(sigwaitinfo(&set, &info) == SIGCHLD && info.si_code == CLD_KILLED);
	CHECK(info.si_status == SIGKILL && child_status(pid) == SIGKILL);
	/* The parent gets no SIGCHLD for stops. */
	handle(SIGCHLD, SA_NOCLDSTOP);
	pid = fork_child();
	if (!pid) {
		raise(SIGSTOP);
		child_exit(0);
	}
	CHECK(waitpid(pid, NULL, WUNTRACED) == pid && !kill(pid, SIGCONT));
	CHECK(sigwaitinfo(&set, &info) == SIGCHLD && info.si_code == CLD_EXITED);
	CHECK(child_status(pid) == 0 && !sigprocmask(SIG_UNBLOCK, &set, NULL));
	signal(SIGCHLD, SIG_DFL);
}

int main(int argc, char **argv)
{
	return run_tests("restarts", argc, argv);
}
