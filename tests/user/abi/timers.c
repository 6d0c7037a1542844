// SPDX-License-Identifier: BSD-2-Clause
/*
 * timerfd, timer_create and clock_nanosleep on CPU time: one-shot and periodic, absolute and
 * relative, remaining time, wake-ups and signals, and the number of expiries.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>

#include "run.h"

#define MS 1000000L
#define NS 1000000000L

static struct itimerspec spec(long value_ns, long interval_ns)
{
	return (struct itimerspec){ .it_value = { value_ns / NS, value_ns % NS },
				    .it_interval = { interval_ns / NS, interval_ns % NS } };
}

static long to_ns(struct timespec time)
{
	return time.tv_sec * NS + time.tv_nsec;
}

static long clock_ns(int clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return to_ns(now);
}

static int set(int fd, int flags, long value_ns, long interval_ns)
{
	struct itimerspec new = spec(value_ns, interval_ns);

	return timerfd_settime(fd, flags, &new, NULL);
}

/* Returns the remaining time, or -1 if the interval differs. */
static long left(int fd, long interval_ns)
{
	struct itimerspec now;

	CHECK(!timerfd_gettime(fd, &now));
	return to_ns(now.it_interval) == interval_ns ? to_ns(now.it_value) : -1;
}

static long expiries(int fd)
{
	uint64_t nr = 0;

	return read(fd, &nr, sizeof(nr)) == sizeof(nr) ? (long)nr : -1;
}

static int is_ready(int fd)
{
	struct pollfd one = { .fd = fd, .events = POLLIN | POLLOUT };

	return poll(&one, 1, 0) == 1 && one.revents == POLLIN;
}

TEST(once)
{
	int clocks[] = { CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME };

	for (int i = 0; i < 3; i++) {
		int fd = timerfd_create(clocks[i], 0);
		long start = clock_ns(clocks[i]);

		CHECK(fd >= 0 && left(fd, 0) == 0 && !is_ready(fd));
		CHECK(!set(fd, 0, 5 * MS, 0) && left(fd, 0) <= 5 * MS);
		CHECK(expiries(fd) == 1 && clock_ns(clocks[i]) - start >= 5 * MS);
		CHECK(left(fd, 0) == 0 && !is_ready(fd));
		CHECK(!set(fd, TFD_TIMER_ABSTIME, start + 10 * MS, 0) && expiries(fd) == 1);
		CHECK(clock_ns(clocks[i]) - start >= 10 * MS);
		/* A time in the past expires at once. */
		CHECK(!set(fd, TFD_TIMER_ABSTIME, 1, 0) && expiries(fd) == 1);
		CHECK(!close(fd));
	}
}

TEST(intervals)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	long start = clock_ns(CLOCK_MONOTONIC), nr, before, after;

	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC && expiries(fd) == -1 && errno == EAGAIN);
	CHECK(!set(fd, TFD_TIMER_ABSTIME, start, 2 * MS));
	sleep_ms(11);
	CHECK(WAIT_UNTIL(is_ready(fd)));
	before = (clock_ns(CLOCK_MONOTONIC) - start) / (2 * MS) + 1;
	nr = expiries(fd);
	after = (clock_ns(CLOCK_MONOTONIC) - start) / (2 * MS) + 1;
	CHECK(before <= nr && nr <= after && nr >= 6);
	CHECK(left(fd, 2 * MS) > 0 && left(fd, 2 * MS) <= 2 * MS);
	CHECK(WAIT_UNTIL(is_ready(fd)) && expiries(fd) >= 1);
	/* Expiries stay in phase with the start, however late they are read. */
	CHECK(!set(fd, TFD_TIMER_ABSTIME, start, 1));
	CHECK(WAIT_UNTIL(is_ready(fd)));
	before = clock_ns(CLOCK_MONOTONIC) - start + 1;
	nr = expiries(fd);
	CHECK(before <= nr && nr <= clock_ns(CLOCK_MONOTONIC) - start + 1);
	/* Stopping the timer drops unread expiries. */
	CHECK(!set(fd, 0, 1, 1000 * MS) && WAIT_UNTIL(is_ready(fd)));
	CHECK(!set(fd, 0, 0, 3 * MS) && !is_ready(fd) && expiries(fd) == -1);
	CHECK(left(fd, 3 * MS) == 0);
	CHECK(!close(fd));
}

TEST(settings)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	struct itimerspec new = spec(1000 * NS, 7 * NS), old;
	uint64_t nr;

	CHECK(!timerfd_settime(fd, 0, &new, &old));
	CHECK(to_ns(old.it_value) == 0 && to_ns(old.it_interval) == 0);
	new = spec(0, 0);
	CHECK(!timerfd_settime(fd, 0, &new, &old) && to_ns(old.it_interval) == 7 * NS);
	CHECK(to_ns(old.it_value) > 900 * NS && to_ns(old.it_value) <= 1000 * NS);
	/* A time that never comes. */
	new.it_value.tv_sec = 0x7fffffffffffffffL;
	CHECK(!timerfd_settime(fd, 0, &new, NULL) && left(fd, 0) > 1L << 60);
	CHECK(!timerfd_settime(fd, TFD_TIMER_ABSTIME, &new, NULL) && !is_ready(fd));

	new = spec(1, 0);
	new.it_value.tv_nsec = NS;
	CHECK(timerfd_settime(fd, 0, &new, NULL) == -1 && errno == EINVAL);
	new.it_value.tv_nsec = -1;
	CHECK(timerfd_settime(fd, 0, &new, NULL) == -1 && errno == EINVAL);
	new = spec(1, 0);
	new.it_interval.tv_sec = -1;
	CHECK(timerfd_settime(fd, 0, &new, NULL) == -1 && errno == EINVAL);
	new = spec(0, 0);
	CHECK_ERROR(EINVAL, SYS_timerfd_settime, fd, 4, &new, NULL);
	CHECK_ERROR(EFAULT, SYS_timerfd_settime, fd, 0, 8, NULL);
	CHECK_ERROR(EFAULT, SYS_timerfd_settime, fd, 0, NULL, NULL);
	CHECK_ERROR(EFAULT, SYS_timerfd_gettime, fd, 8);
	CHECK_ERROR(EBADF, SYS_timerfd_gettime, 999, &new);
	CHECK_ERROR(EINVAL, SYS_timerfd_gettime, 0, &new);
	CHECK_ERROR(EINVAL, SYS_timerfd_settime, 0, 0, &new, NULL);
	CHECK_ERROR(EINVAL, SYS_timerfd_create, CLOCK_THREAD_CPUTIME_ID, 0);
	CHECK_ERROR(EINVAL, SYS_timerfd_create, CLOCK_MONOTONIC, 1);
	CHECK(read(fd, &nr, 7) == -1 && errno == EINVAL);
	CHECK_ERROR(EINVAL, SYS_read, fd, &nr, 0);
	CHECK(write(fd, &nr, 8) == -1 && errno == EINVAL);
	CHECK(!close(fd));
}

static void *set_later(void *arg)
{
	sleep_ms(10);
	CHECK(!set(*(int *)arg, 0, 1, 0));
	return NULL;
}

TEST(waits)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, 0), epfd = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	long start = now_ms();
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, set_later, &fd) && expiries(fd) == 1);
	CHECK(!pthread_join(thread, NULL));
	CHECK(!epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) && epoll_wait(epfd, &event, 1, 0) == 0);
	CHECK(!set(fd, 0, 10 * MS, 5 * MS) && epoll_wait(epfd, &event, 1, -1) == 1);
	CHECK(now_ms() - start >= 10 && expiries(fd) >= 1);
	for (int i = 0; i < 3; i++)
		CHECK(epoll_wait(epfd, &event, 1, -1) == 1 && expiries(fd) >= 1);
	/* The file is closed while the timer runs. */
	CHECK(!set(fd, 0, 1, 1) && !close(fd) && !close(epfd));
}

/* timer_create(), without the C library, which uses other timer IDs */

struct event {
	uint64_t value;
	int signo, notify, tid, room[11];
};

#define TIMER(...) ((int)syscall(__VA_ARGS__))

/* The contents of the last signal, and the number of all. */
static volatile int nr_signals, last_signal, last_code, last_overrun, last_tid;
static volatile long last_value;

static void on_signal(int sig, siginfo_t *info, void *context)
{
	last_signal = sig;
	last_code = info->si_code;
	last_overrun = info->si_overrun;
	last_value = (long)info->si_value.sival_ptr;
	last_tid = syscall(SYS_gettid);
	nr_signals++;
}

static int make_timer(int notify, int sig, int tid)
{
	struct event event = { .value = 0x123456789, .signo = sig, .notify = notify, .tid = tid };
	int id = -1;

	CHECK(!TIMER(SYS_timer_create, CLOCK_MONOTONIC, &event, &id) && id >= 0);
	return id;
}

static int arm(int id, int flags, long value_ns, long interval_ns)
{
	struct itimerspec new = spec(value_ns, interval_ns);

	return TIMER(SYS_timer_settime, id, flags, &new, NULL);
}

static void block(int how, int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	CHECK(!pthread_sigmask(how, &set, NULL));
}

TEST(signals)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	struct itimerspec now;
	int id, other, sigs[] = { SIGUSR1, SIGRTMIN + 1 };

	for (int i = 0; i < 2; i++) {
		CHECK(!sigaction(sigs[i], &action, NULL));
		id = make_timer(SIGEV_SIGNAL, sigs[i], 0);
		nr_signals = 0;
		CHECK(!arm(id, 0, MS, 0) && WAIT_UNTIL(nr_signals == 1));
		CHECK(last_signal == sigs[i] && last_code == SI_TIMER && last_value == 0x123456789);
		CHECK(last_overrun == 0 && TIMER(SYS_timer_getoverrun, id) == 0);
		CHECK(!TIMER(SYS_timer_gettime, id, &now) && to_ns(now.it_value) == 0);
		/* It expires in every period, until it is stopped. */
		CHECK(!arm(id, 0, 1, 2 * MS) && WAIT_UNTIL(nr_signals >= 4));
		CHECK(!TIMER(SYS_timer_gettime, id, &now) && to_ns(now.it_value) <= 2 * MS);
		CHECK(to_ns(now.it_interval) == 2 * MS && !arm(id, 0, 0, 0));
		nr_signals = 0;
		sleep_ms(5);
		CHECK(nr_signals == 0);
		CHECK(!TIMER(SYS_timer_delete, id));
		CHECK_ERROR(EINVAL, SYS_timer_delete, id);
	}
	/* Without an event, the signal is SIGALRM. */
	CHECK(!sigaction(SIGALRM, &action, NULL));
	CHECK(!TIMER(SYS_timer_create, CLOCK_REALTIME, NULL, &id) && !arm(id, 0, MS, 0));
	CHECK(WAIT_UNTIL(nr_signals == 1) && last_signal == SIGALRM && last_value == id);
	other = make_timer(SIGEV_SIGNAL, SIGUSR1, 0);
	CHECK(other != id && !arm(other, TIMER_ABSTIME, clock_ns(CLOCK_MONOTONIC) + MS, 0));
	CHECK(WAIT_UNTIL(nr_signals == 2) && last_signal == SIGUSR1);
	CHECK(!arm(other, TIMER_ABSTIME, 1, 0) && WAIT_UNTIL(nr_signals == 3));
	/* SIGEV_NONE sends no signal; the timer is only read. */
	CHECK(!TIMER(SYS_timer_delete, id) && !TIMER(SYS_timer_delete, other));
	id = make_timer(SIGEV_NONE, 0, 0);
	CHECK(!arm(id, 0, 1000 * NS, 0) && !TIMER(SYS_timer_gettime, id, &now));
	CHECK(to_ns(now.it_value) > 0 && to_ns(now.it_value) <= 1000 * NS);
	CHECK(!arm(id, 0, 1, 0));
	sleep_ms(1);
	CHECK(!TIMER(SYS_timer_gettime, id, &now) && to_ns(now.it_value) == 0);
	CHECK(!TIMER(SYS_timer_delete, id));
}

/* One pending signal stands for all expiries until it is taken. */
TEST(overruns)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	int id = make_timer(SIGEV_SIGNAL, SIGUSR1, 0), taken;
	long start, periods;

	CHECK(!sigaction(SIGUSR1, &action, NULL));
	block(SIG_BLOCK, SIGUSR1);
	nr_signals = 0;
	start = clock_ns(CLOCK_MONOTONIC);
	CHECK(!arm(id, TIMER_ABSTIME, start + MS, MS));
	sleep_ms(20);
	periods = (clock_ns(CLOCK_MONOTONIC) - start) / MS;
	block(SIG_UNBLOCK, SIGUSR1);
	CHECK(WAIT_UNTIL(nr_signals >= 1));
	CHECK(!arm(id, 0, 0, 0));
	/* The first signal was for all of them; another one may have come since. */
	id = TIMER(SYS_timer_delete, id) ? -1 : make_timer(SIGEV_SIGNAL, SIGUSR1, 0);
	block(SIG_BLOCK, SIGUSR1);
	start = clock_ns(CLOCK_MONOTONIC);
	CHECK(periods >= 20 && !arm(id, TIMER_ABSTIME, start + MS, 100000 * MS));
	sleep_ms(5);
	nr_signals = 0;
	block(SIG_UNBLOCK, SIGUSR1);
	CHECK(WAIT_UNTIL(nr_signals) && nr_signals == 1 && last_overrun == 0);
	block(SIG_BLOCK, SIGUSR1);
	while ((start = clock_ns(CLOCK_MONOTONIC)) < 500 * MS)
		sleep_ms(10); /* the machine has only just been started */
	CHECK(!arm(id, TIMER_ABSTIME, start - 500 * MS, 100 * MS));
	sleep_ms(2);
	nr_signals = 0;
	block(SIG_UNBLOCK, SIGUSR1);
	CHECK(WAIT_UNTIL(nr_signals));
	taken = clock_ns(CLOCK_MONOTONIC) - start < 80 * MS; /* unless the host is slow */
	CHECK(!taken || (nr_signals == 1 && last_overrun == 5));
	CHECK(!taken || TIMER(SYS_timer_getoverrun, id) == 5);
	/*
	 * The timer continues after its signal was ignored for a while, and after it was pending.
	 */
	CHECK(!arm(id, 0, 1, MS));
	block(SIG_BLOCK, SIGUSR1);
	sleep_ms(3);
	signal(SIGUSR1, SIG_IGN);
	block(SIG_UNBLOCK, SIGUSR1);
	sleep_ms(3);
	nr_signals = 0;
	CHECK(!sigaction(SIGUSR1, &action, NULL) && WAIT_UNTIL(nr_signals >= 2));
	CHECK(!TIMER(SYS_timer_delete, id));
}

static volatile int thread_tid, may_end;

static void *be_signalled(void *arg)
{
	thread_tid = syscall(SYS_gettid);
	WAIT_UNTIL(may_end);
	return NULL;
}

TEST(threads)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	struct event event = { .signo = SIGUSR2, .notify = 4, .tid = 1 };
	pthread_t thread;
	int id;

	CHECK(!sigaction(SIGUSR2, &action, NULL));
	CHECK(!pthread_create(&thread, NULL, be_signalled, NULL) && WAIT_UNTIL(thread_tid));
	CHECK_ERROR(EINVAL, SYS_timer_create, CLOCK_MONOTONIC, &event, &id);
	id = make_timer(4, SIGUSR2, thread_tid);
	nr_signals = 0;
	CHECK(!arm(id, 0, MS, MS) && WAIT_UNTIL(nr_signals >= 3) && last_tid == thread_tid);
	may_end = 1;
	CHECK(!pthread_join(thread, NULL));
	nr_signals = 0;
	sleep_ms(3);
	CHECK(nr_signals == 0 && !TIMER(SYS_timer_delete, id));
}

/*
 * Neither a child nor a program after execve has the timers. The signal of a timer can end its
 * process.
 */
TEST(processes)
{
	struct itimerspec now;
	int id = make_timer(SIGEV_SIGNAL, SIGTERM, 0);
	pid_t pid;

	CHECK(!arm(id, 0, 100000 * MS, 0));
	pid = fork_child();
	if (!pid) {
		CHECK_ERROR(EINVAL, SYS_timer_gettime, id, &now);
		id = make_timer(SIGEV_SIGNAL, SIGTERM, 0);
		CHECK(!arm(id, 0, MS, 1));
		sleep_ms(10000);
		child_exit(0);
	}
	CHECK(child_status(pid) == SIGTERM && !TIMER(SYS_timer_gettime, id, &now));
	pid = fork_child();
	if (!pid) {
		for (int i = 0; i < 10; i++) {
			id = make_timer(SIGEV_SIGNAL, SIGCHLD, 0);
			CHECK(!arm(id, 0, 1, 1));
		}
		child_exit(0);
	}
	CHECK(child_status(pid) == 0 && !TIMER(SYS_timer_delete, id));
}

/* Uses CPU time until the condition holds, but not for ever, in case the signal never comes. */
#define SPIN_UNTIL(cond)                                                                \
	({                                                                              \
		long start_ = clock_ns(CLOCK_THREAD_CPUTIME_ID);                        \
		while (!(cond) && clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ < 20 * NS) \
			continue;                                                       \
		(cond);                                                                 \
	})

static volatile int leave;

static void *spin(void *arg)
{
	while (!leave)
		continue;
	return arg;
}

/* The kernel's number for the clock of a process (kind 2) or thread (6). */
static clockid_t cpu_clock(pid_t number, int kind)
{
	return (clockid_t)(~(unsigned int)number << 3 | kind);
}

/*
 * Arms the timer of `clock` for `ns` and sleeps for twice that long, which takes no CPU time: no
 * signal comes. If the host stops the machine while the thread runs, that is CPU time, too; then it
 * tries again. Returns the time by that clock at which the timer was armed.
 */
static long arm_and_sleep(int id, int clock, long ns)
{
	struct itimerspec left;
	long start = 0, used = ns;
	int nr = 0;

	for (int i = 0; i < 20 && used >= ns / 2; i++) {
		nr_signals = 0;
		start = clock_ns(clock);
		CHECK(!arm(id, 0, ns, 0));
		sleep_ms(2 * ns / MS);
		CHECK(!TIMER(SYS_timer_gettime, id, &left));
		nr = nr_signals;
		used = clock_ns(clock) - start;
	}
	CHECK(used < ns / 2 && nr == 0 && to_ns(left.it_value) > 0 && to_ns(left.it_value) <= ns);
	return start;
}

/* Sleeps by the clock of the process. Sleeps again after a signal that was handled. */
static void sleep_by_process(int flags, long ns)
{
	struct timespec time = spec(ns, 0).it_value;
	int error, before;

	do {
		before = nr_signals;
		error = clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, flags, &time, NULL);
	} while (error == EINTR && nr_signals != before);
	CHECK(!error);
}

/* A timer on this thread's CPU time does not count other threads; a clock of the process does. */
static void use_time_in_thread(int timer)
{
	pthread_t thread;
	long start, mine = 0;

	/* Again, if the host held up this thread for so long that its timer had to expire. */
	for (int i = 0; i < 20 && (!i || mine >= 30 * MS); i++) {
		leave = nr_signals = 0;
		mine = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		CHECK(!arm(timer, 0, 30 * MS, 0));
		CHECK(!pthread_create(&thread, NULL, spin, NULL));
		start = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		sleep_by_process(0, 50 * MS);
		CHECK(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start >= 50 * MS);
		start = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		sleep_by_process(TIMER_ABSTIME, start + 20 * MS);
		CHECK(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start >= 20 * MS);
		leave = 1;
		CHECK(!pthread_join(thread, NULL));
		mine = clock_ns(CLOCK_THREAD_CPUTIME_ID) - mine;
	}
	CHECK(mine < 30 * MS && nr_signals == 0);
}

/* Clocks of CPU time stand still while their thread or process does not run. */
TEST(cpu_clocks)
{
	static const int clocks[] = { CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID };
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	struct event event = { .signo = SIGUSR1 };
	struct itimerspec now, new;
	clockid_t clock, other;
	long start;
	int id;

	CHECK(!sigaction(SIGUSR1, &action, NULL));
	for (int i = 0; i < 2; i++) {
		int sent;

		CHECK(!TIMER(SYS_timer_create, clocks[i], &event, &id));
		start = arm_and_sleep(id, clocks[i], 30 * MS);
		CHECK(SPIN_UNTIL(nr_signals > 0) && nr_signals == 1);
		CHECK(clock_ns(clocks[i]) - start >= 30 * MS && last_code == SI_TIMER);
		CHECK(!TIMER(SYS_timer_gettime, id, &now) && to_ns(now.it_value) == 0);
		/* With an interval; then at an absolute time. */
		CHECK(!arm(id, 0, MS, 5 * MS) && SPIN_UNTIL(nr_signals >= 5));
		CHECK(!arm(id, 0, 0, 0));
		sent = nr_signals;
		CHECK(!arm(id, TIMER_ABSTIME, clock_ns(clocks[i]) + 10 * MS, 0));
		CHECK(SPIN_UNTIL(nr_signals > sent) && !TIMER(SYS_timer_delete, id));
		sent = nr_signals;
		SPIN_UNTIL(clock_ns(clocks[i]) - start >= 150 * MS);
		CHECK(nr_signals == sent);
	}
	CHECK(!TIMER(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &id));
	use_time_in_thread(id);
	CHECK(!TIMER(SYS_timer_delete, id));
	/* A signal ends a sleep, which returns the rest. Others follow, as one may be too early. */
	id = make_timer(SIGEV_SIGNAL, SIGUSR1, 0);
	new = spec(100 * NS, 0);
	CHECK(!arm(id, 0, 20 * MS, 20 * MS));
	CHECK(clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, 0, &new.it_value, &now.it_value) == EINTR);
	CHECK(to_ns(now.it_value) > 90 * NS && to_ns(now.it_value) < 100 * NS);
	CHECK(!TIMER(SYS_timer_delete, id));
	/* Clocks of CPU time by the number of a process or thread. */
	CHECK(!clock_getcpuclockid(getppid(), &clock) && clock_ns(clock) > 0);
	CHECK(!clock_getcpuclockid(0, &clock) && !pthread_getcpuclockid(pthread_self(), &other));
	start = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	CHECK(clock_ns(clock) >= start && clock_ns(clock) <= clock_ns(CLOCK_PROCESS_CPUTIME_ID));
	start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	CHECK(clock_ns(other) >= start && clock_ns(other) <= clock_ns(CLOCK_THREAD_CPUTIME_ID));
	CHECK(!TIMER(SYS_timer_create, other, &event, &id) && !TIMER(SYS_timer_delete, id));
	CHECK_ERROR(EINVAL, SYS_clock_gettime, cpu_clock(1 << 24, 2), &now.it_value);
	CHECK_ERROR(EINVAL, SYS_clock_gettime, cpu_clock(getppid(), 6), &now.it_value);
	CHECK_ERROR(EOPNOTSUPP, SYS_clock_nanosleep, CLOCK_THREAD_CPUTIME_ID, 0, &new.it_value,
		    NULL);
	/* With the default action, the signal of the timer ends the process. */
	if (!fork_child()) {
		signal(SIGUSR1, SIG_DFL);
		CHECK(!TIMER(SYS_timer_create, CLOCK_PROCESS_CPUTIME_ID, &event, &id));
		CHECK(!arm(id, 0, 20 * MS, 0));
		SPIN_UNTIL(0);
		child_exit(1);
	}
	{
		int status;

		CHECK(wait(&status) > 0 && status == SIGUSR1);
	}
}

TEST(bad_timers)
{
	struct event event = { .signo = 65 };
	struct itimerspec new = spec(1, 1);
	int id;

	CHECK_ERROR(EINVAL, SYS_timer_create, CLOCK_MONOTONIC, &event, &id);
	event = (struct event){ .notify = 3 };
	CHECK_ERROR(EINVAL, SYS_timer_create, CLOCK_MONOTONIC, &event, &id);
	CHECK_ERROR(EINVAL, SYS_timer_create, 77, NULL, &id);
	CHECK_ERROR(EFAULT, SYS_timer_create, CLOCK_MONOTONIC, 8, &id);
	CHECK_ERROR(EFAULT, SYS_timer_create, CLOCK_MONOTONIC, NULL, 8);
	CHECK_ERROR(EINVAL, SYS_timer_settime, 0, 0, &new, NULL);
	CHECK_ERROR(EINVAL, SYS_timer_gettime, 0, &new);
	CHECK_ERROR(EINVAL, SYS_timer_getoverrun, 0);
	id = make_timer(SIGEV_NONE, 0, 0);
	CHECK_ERROR(EINVAL, SYS_timer_settime, id, 0, NULL, NULL);
	CHECK_ERROR(EFAULT, SYS_timer_settime, id, 0, 8, NULL);
	CHECK_ERROR(EFAULT, SYS_timer_gettime, id, 8);
	new.it_value.tv_nsec = NS;
	CHECK_ERROR(EINVAL, SYS_timer_settime, id, 0, &new, NULL);
	CHECK(!TIMER(SYS_timer_delete, id));
}

#define NR_MANY 2000

/* Thousands of timers. RLIMIT_SIGPENDING bounds their number. */
TEST(many)
{
	static int ids[NR_MANY];
	struct rlimit limit = { NR_MANY, NR_MANY };
	struct itimerspec now;
	pid_t pid = fork_child();
	int id;

	if (pid) {
		CHECK(child_status(pid) == 0);
		return;
	}
	for (int i = 0; i < NR_MANY; i++) {
		ids[i] = make_timer(SIGEV_SIGNAL, SIGUSR1, 0);
		CHECK(!arm(ids[i], 0, (1000 + i) * NS, 0));
	}
	for (int i = 1; i < NR_MANY; i++)
		CHECK(ids[i] == ids[i - 1] + 1);
	CHECK(!TIMER(SYS_timer_delete, ids[NR_MANY / 2]));
	CHECK_ERROR(EINVAL, SYS_timer_gettime, ids[NR_MANY / 2], &now);
	CHECK_ERROR(EINVAL, SYS_timer_gettime, ids[NR_MANY - 1] + 1, &now);
	ids[NR_MANY / 2] = make_timer(SIGEV_SIGNAL, SIGUSR1, 0);
	CHECK(!arm(ids[NR_MANY / 2], 0, (1000 + NR_MANY / 2) * NS, 0));
	CHECK(!setrlimit(RLIMIT_SIGPENDING, &limit));
	CHECK_ERROR(EAGAIN, SYS_timer_create, CLOCK_MONOTONIC, NULL, &id);
	for (int i = 0; i < NR_MANY; i++) {
		CHECK(!TIMER(SYS_timer_gettime, ids[i], &now));
		CHECK(now.it_value.tv_sec < 1000 + i && now.it_value.tv_sec > 500 + i);
	}
	CHECK_ERROR(EINVAL, SYS_timer_gettime, -1, &now);
	child_exit(0);
}

int main(int argc, char **argv)
{
	return run_tests("timers", argc, argv);
}
