// SPDX-License-Identifier: BSD-2-Clause
/* signalfd: the data for each kind of signal, which process reads it, and wake-ups. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/time.h>

#include "run.h"

static sigset_t set_of(int sig, int other)
{
	sigset_t set;

	sigemptyset(&set);
	if (sig)
		sigaddset(&set, sig);
	if (other)
		sigaddset(&set, other);
	return set;
}

/* Blocks two signals (0: none) and opens a signalfd for them. */
static int open_blocked(int sig, int other, int flags)
{
	sigset_t set = set_of(sig, other);
	int fd = signalfd(-1, &set, flags);

	CHECK(fd >= 0 && !pthread_sigmask(SIG_BLOCK, &set, NULL));
	return fd;
}

static struct signalfd_siginfo take(int fd)
{
	struct signalfd_siginfo info = { 0 };

	CHECK(read(fd, &info, sizeof(info)) == sizeof(info));
	return info;
}

static int is_empty(int fd)
{
	struct pollfd one = { .fd = fd, .events = POLLIN | POLLOUT };
	struct signalfd_siginfo info;

	if (poll(&one, 1, 0))
		return 0;
	return read(fd, &info, sizeof(info)) == -1 && errno == EAGAIN;
}

static int is_ready(int fd)
{
	struct pollfd one = { .fd = fd, .events = POLLIN | POLLOUT };

	return poll(&one, 1, 0) == 1 && one.revents == POLLIN;
}

static int pending(int sig)
{
	sigset_t set;

	CHECK(!sigpending(&set));
	return sigismember(&set, sig);
}

TEST(kinds)
{
	int fd = open_blocked(SIGUSR1, SIGRTMIN + 2, SFD_NONBLOCK | SFD_CLOEXEC);
	union sigval value = { .sival_ptr = (void *)0x123456789a };
	struct signalfd_siginfo info, two[3];

	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC && fcntl(fd, F_GETFL) & O_NONBLOCK);
	CHECK(is_empty(fd) && !kill(getpid(), SIGUSR1) && is_ready(fd) && pending(SIGUSR1));
	info = take(fd);
	CHECK(info.ssi_signo == SIGUSR1 && info.ssi_code == SI_USER && is_empty(fd));
	CHECK(info.ssi_pid == (unsigned int)getpid() && info.ssi_uid == getuid());
	CHECK(!pending(SIGUSR1) && info.ssi_errno == 0 && info.ssi_ptr == 0 && info.ssi_fd == 0);
	CHECK(!pthread_kill(pthread_self(), SIGUSR1) && take(fd).ssi_code == SI_TKILL);
	/* One read takes several queued signals, as many as there is room for. */
	CHECK(!sigqueue(getpid(), SIGRTMIN + 2, value) && !kill(getpid(), SIGUSR1));
	CHECK(!sigqueue(getpid(), SIGRTMIN + 2, (union sigval){ .sival_int = -7 }));
	CHECK(read(fd, two, sizeof(two) - 1) == 2 * sizeof(*two));
	CHECK(two[0].ssi_signo == SIGUSR1 && (int)two[1].ssi_signo == SIGRTMIN + 2);
	CHECK(two[1].ssi_code == SI_QUEUE && two[1].ssi_ptr == 0x123456789a);
	CHECK(two[1].ssi_int == 0x3456789a && two[1].ssi_pid == (unsigned int)getpid());
	CHECK(take(fd).ssi_int == -7 && is_empty(fd));
	CHECK(!close(fd));
}

TEST(child_and_timers)
{
	int fd = open_blocked(SIGCHLD, SIGALRM, 0);
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
	struct itimerspec soon = { .it_value.tv_nsec = 1 };
	struct signalfd_siginfo info;
	timer_t timer;
	pid_t pid = fork_child();

	if (!pid)
		child_exit(5);
	info = take(fd);
	CHECK(info.ssi_signo == SIGCHLD && info.ssi_code == CLD_EXITED && info.ssi_status == 5);
	CHECK(info.ssi_pid == (unsigned int)pid && info.ssi_uid == getuid());
	CHECK(child_status(pid) == EXITED(5));
	event.sigev_value.sival_int = 77;
	CHECK(!timer_create(CLOCK_MONOTONIC, &event, &timer));
	CHECK(!timer_settime(timer, 0, &soon, NULL));
	info = take(fd);
	CHECK(info.ssi_signo == SIGALRM && info.ssi_code == SI_TIMER && info.ssi_int == 77);
	CHECK(info.ssi_overrun == 0 && info.ssi_pid == 0 && !timer_delete(timer));
	alarm(0);
	CHECK(!setitimer(ITIMER_REAL, &(struct itimerval){ .it_value.tv_usec = 1 }, NULL));
	info = take(fd);
	CHECK(info.ssi_signo == SIGALRM && info.ssi_code == SI_KERNEL && !close(fd));
}

/* A siginfo of a fault that another process has made up. */
TEST(fault)
{
	int fd = open_blocked(SIGSEGV, SIGPIPE, SFD_NONBLOCK), ends[2];
	siginfo_t made = { .si_signo = SIGSEGV, .si_code = SI_QUEUE };
	struct signalfd_siginfo info;

	CHECK(!pipe(ends) && !close(ends[0]) && write(ends[1], "x", 1) == -1 && errno == EPIPE);
	info = take(fd);
	CHECK(info.ssi_signo == SIGPIPE && info.ssi_pid == (unsigned int)getpid());
	made.si_pid = 99;
	made.si_value.sival_int = 3;
	CHECK(!syscall(SYS_rt_sigqueueinfo, getpid(), SIGSEGV, &made));
	info = take(fd);
	CHECK(info.ssi_signo == SIGSEGV && info.ssi_addr == 0 && info.ssi_pid == 99);
	CHECK(info.ssi_int == 3 && !close(ends[1]) && !close(fd));
}

static volatile int nr_handled;

static void handle(int sig)
{
	nr_handled++;
}

/* The set can be changed. Signals not in it stay pending. */
TEST(sets)
{
	int fd = open_blocked(SIGUSR1, 0, SFD_NONBLOCK);
	sigset_t set = set_of(SIGUSR2, 0), all;
	struct signalfd_siginfo info;

	CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL) && !kill(getpid(), SIGUSR2) && is_empty(fd));
	CHECK(signalfd(fd, &set, SFD_CLOEXEC) == fd && is_ready(fd) && fcntl(fd, F_GETFD) == 0);
	CHECK(!kill(getpid(), SIGUSR1) && take(fd).ssi_signo == SIGUSR2 && is_empty(fd));
	/* The handler gets the signal after all. */
	signal(SIGUSR1, handle);
	nr_handled = 0;
	set = set_of(SIGUSR1, 0);
	CHECK(!pthread_sigmask(SIG_UNBLOCK, &set, NULL) && nr_handled == 1);
	/*
	 * A signal that is not blocked goes to its handler first. An ignored one never becomes
	 * pending.
	 */
	CHECK(signalfd(fd, &set, 0) == fd && !raise(SIGUSR1) && nr_handled == 2 && is_empty(fd));
	signal(SIGUSR1, SIG_IGN);
	CHECK(!raise(SIGUSR1) && is_empty(fd));
	/* SIGKILL and SIGSTOP are left out without an error. */
	sigfillset(&all);
	CHECK(signalfd(fd, &all, 0) == fd && is_empty(fd));
	/* A signal that is blocked and ignored stays pending, as for sigwait(). */
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL) && !raise(SIGUSR1));
	CHECK(take(fd).ssi_signo == SIGUSR1);
	signal(SIGUSR1, SIG_DFL);
	CHECK(write(fd, &info, sizeof(info)) == -1 && errno == EINVAL && !close(fd));
}

TEST(errors)
{
	int fd = open_blocked(SIGUSR1, 0, SFD_NONBLOCK);
	struct signalfd_siginfo info;
	uint64_t set = 1;

	CHECK_ERROR(EINVAL, SYS_signalfd4, -1, &set, 4, 0);
	CHECK_ERROR(EINVAL, SYS_signalfd4, -1, &set, 8, 1);
	CHECK_ERROR(EINVAL, SYS_signalfd4, 0, &set, 8, 0);
	CHECK_ERROR(EBADF, SYS_signalfd4, 999, &set, 8, 0);
	CHECK_ERROR(EBADF, SYS_signalfd4, -2, &set, 8, 0);
	CHECK_ERROR(EFAULT, SYS_signalfd4, fd, 8, 8, 0);
	CHECK_ERROR(EFAULT, SYS_signalfd, -1, NULL, 8);
	CHECK_ERROR(EINVAL, SYS_signalfd, -1, &set, 16);
	CHECK(read(fd, &info, sizeof(info) - 1) == -1 && errno == EINVAL);
	CHECK_ERROR(EINVAL, SYS_read, fd, &info, 0);
	CHECK(!raise(SIGUSR1));
	CHECK_ERROR(EFAULT, SYS_read, fd, 8, sizeof(info));
	signal(SIGUSR1, SIG_IGN); /* drops the signal if the read has not taken it */
	signal(SIGUSR1, SIG_DFL);
	CHECK(is_empty(fd) && !close(fd));
}

static int shared_fd;
static volatile int reader_tid;

static void *read_one(void *sig)
{
	reader_tid = syscall(SYS_gettid);
	CHECK(take(shared_fd).ssi_signo == (unsigned long)sig);
	return NULL;
}

/* A sleeping reader is woken by a signal to its thread or process, and by a change of the set. */
TEST(sleepers)
{
	sigset_t set = set_of(SIGUSR2, 0);
	pthread_t thread;

	shared_fd = open_blocked(SIGUSR1, 0, 0);
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL));
	CHECK(!pthread_create(&thread, NULL, read_one, (void *)SIGUSR1));
	sleep_ms(5);
	CHECK(!kill(getpid(), SIGUSR1) && !pthread_join(thread, NULL));
	CHECK(!pthread_create(&thread, NULL, read_one, (void *)SIGUSR1));
	sleep_ms(5);
	CHECK(!pthread_kill(thread, SIGUSR1) && !pthread_join(thread, NULL));
	CHECK(!kill(getpid(), SIGUSR2));
	CHECK(!pthread_create(&thread, NULL, read_one, (void *)SIGUSR2));
	sleep_ms(5);
	CHECK(signalfd(shared_fd, &set, 0) == shared_fd && !pthread_join(thread, NULL));
	CHECK(!close(shared_fd));
}

/* A thread does not read a signal sent to another thread. */
static void *wait_with_signal(void *fd)
{
	CHECK(!raise(SIGUSR1) && is_ready(*(int *)fd));
	reader_tid = 1;
	WAIT_UNTIL(reader_tid == 2);
	CHECK(take(*(int *)fd).ssi_code == SI_TKILL);
	return NULL;
}

TEST(threads)
{
	int fd = open_blocked(SIGUSR1, 0, SFD_NONBLOCK);
	pthread_t thread;

	reader_tid = 0;
	CHECK(!pthread_create(&thread, NULL, wait_with_signal, &fd) && WAIT_UNTIL(reader_tid == 1));
	CHECK(is_empty(fd));
	reader_tid = 2;
	CHECK(!pthread_join(thread, NULL) && !close(fd));
}

/* A read is interrupted by a signal that it does not read. */
TEST(interrupted)
{
	struct sigaction action = { .sa_handler = handle };
	int fd = open_blocked(SIGUSR1, 0, 0);
	struct signalfd_siginfo info;
	pid_t parent = getpid(), pid;

	CHECK(!sigaction(SIGTERM, &action, NULL));
	nr_handled = 0;
	pid = fork_child();
	if (!pid) {
		while (!kill(parent, SIGTERM) && getppid() == parent)
			sleep_ms(2);
		child_exit(0);
	}
	CHECK(read(fd, &info, sizeof(info)) == -1 && errno == EINTR && nr_handled);
	CHECK(!kill(pid, SIGKILL) && child_status(pid) == SIGKILL && !close(fd));
	signal(SIGTERM, SIG_DFL);
}

TEST(epoll)
{
	int fd = open_blocked(SIGUSR1, SIGCHLD, SFD_NONBLOCK), epfd = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN };
	pid_t parent = getpid(), pid;

	signal(SIGCHLD, SIG_DFL); /* drops that of the previous test */
	CHECK(!epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) && epoll_wait(epfd, &event, 1, 0) == 0);
	pid = fork_child();
	if (!pid) {
		sleep_ms(5);
		CHECK(!kill(parent, SIGUSR1));
		child_exit(0);
	}
	CHECK(epoll_wait(epfd, &event, 1, -1) == 1 && event.events == EPOLLIN);
	CHECK(take(fd).ssi_pid == (unsigned int)pid);
	CHECK(epoll_wait(epfd, &event, 1, -1) == 1 && take(fd).ssi_signo == SIGCHLD);
	CHECK(child_status(pid) == 0 && epoll_wait(epfd, &event, 1, 0) == 0);
	/* The child's callback stays on its queue until the epoll is polled again. */
	pid = fork_child();
	if (!pid) {
		CHECK(!raise(SIGUSR1) && is_ready(fd) &&
		      take(fd).ssi_pid == (unsigned int)getpid());
		epoll_wait(epfd, &event, 1, 1);
		child_exit(0);
	}
	CHECK(child_status(pid) == 0 && WAIT_UNTIL(is_ready(fd)));
	CHECK(take(fd).ssi_signo == SIGCHLD);
	CHECK(!raise(SIGUSR1) && take(fd).ssi_pid == (unsigned int)getpid());
	CHECK(!close(epfd) && !close(fd));
}

int main(int argc, char **argv)
{
	return run_tests("signalfds", argc, argv);
}
