// SPDX-License-Identifier: BSD-2-Clause
/* Clocks of the CPU time of other processes and threads: reading, sleeping and timers. */
#include <pthread.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>

#include "run.h"

#define MS		1000000L
#define NOBODY		(1 << 24) /* a number that no process gets */
#define OF_PROCESS(pid) (~(clockid_t)(pid)*8 | 2)
#define OF_THREAD(tid)	(~(clockid_t)(tid)*8 | 6)

static struct timespec span(long ns)
{
	return (struct timespec){ ns / 1000000000, ns % 1000000000 };
}

static long read_ns(clockid_t clock)
{
	struct timespec now = { 0 };

	CHECK(!clock_gettime(clock, &now));
	return now.tv_sec * 1000000000 + now.tv_nsec;
}

static int sleep_by(clockid_t clock, int flags, long ns)
{
	struct timespec time = span(ns);

	return clock_nanosleep(clock, flags, &time, NULL);
}

static int sleep_error(clockid_t clock)
{
	struct timespec time = span(MS);

	return syscall(SYS_clock_nanosleep, clock, 0, &time, NULL) ? errno : 0;
}

/* Takes a signal, waiting up to 20 s for it, and checks that it is the timer's. */
static int take_signal(void)
{
	struct timespec limit = { .tv_sec = 20 };
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return sigtimedwait(&set, &info, &limit) == SIGUSR1 && info.si_code == SI_TIMER;
}

static int make_timer(clockid_t clock)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	int id = -1;

	CHECK(!syscall(SYS_timer_create, clock, &event, &id));
	return id;
}

static long arm(int id, int flags, long value_ns, long interval_ns)
{
	struct itimerspec new = { span(interval_ns), span(value_ns) };

	return syscall(SYS_timer_settime, id, flags, &new, NULL);
}

/* Blocks the signal of the timers, because the tests take it by sigtimedwait(). */
static void block_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
}

static pid_t start_spinner(void)
{
	pid_t pid = fork_child();

	while (!pid)
		;
	return pid;
}

static void stop_spinner(pid_t pid)
{
	CHECK(!kill(pid, SIGKILL) && child_status(pid) == SIGKILL);
}

TEST(sleeps)
{
	pid_t pid = start_spinner();
	clockid_t clock;
	long start;

	CHECK(!clock_getcpuclockid(pid, &clock) && clock == OF_PROCESS(pid));
	start = read_ns(clock);
	CHECK(!sleep_by(clock, 0, 10 * MS) && read_ns(clock) - start >= 10 * MS);
	CHECK(!sleep_by(clock, TIMER_ABSTIME, start + 20 * MS));
	CHECK(read_ns(clock) - start >= 20 * MS);
	CHECK(!sleep_by(clock, TIMER_ABSTIME, start));
	stop_spinner(pid);
	CHECK(sleep_by(clock, 0, MS) == EINVAL && clock_getcpuclockid(pid, &clock));
}

static void on_alarm(int sig)
{
}

/*
 * The clock of a stopped process stands still, so a sleep by it lasts until a signal. The signal is
 * sent repeatedly, because the first one may come before the sleep begins.
 */
TEST(interrupted)
{
	struct timespec time = span(1000 * MS), left = { 0 };
	struct sigaction action = { .sa_handler = on_alarm };
	struct itimerval soon = { { 0, 30000 }, { 0, 30000 } }, off = { 0 };
	pid_t pid = start_spinner();
	int status;

	CHECK(!kill(pid, SIGSTOP) && waitpid(pid, &status, WUNTRACED) == pid);
	CHECK(!sigaction(SIGALRM, &action, NULL) && !setitimer(ITIMER_REAL, &soon, NULL));
	CHECK(clock_nanosleep(OF_PROCESS(pid), 0, &time, &left) == EINTR);
	CHECK(left.tv_sec == 1 || left.tv_nsec > 900 * MS);
	CHECK(!setitimer(ITIMER_REAL, &off, NULL));
	stop_spinner(pid);
}

TEST(timers)
{
	pid_t pid = start_spinner();
	clockid_t clock = OF_PROCESS(pid);
	struct itimerspec left;
	long start;
	int id;

	block_signal();
	id = make_timer(clock);
	start = read_ns(clock);
	CHECK(!arm(id, 0, 20 * MS, 10 * MS) && take_signal() && read_ns(clock) - start >= 20 * MS);
	CHECK(take_signal() && read_ns(clock) - start >= 30 * MS);
	CHECK(!syscall(SYS_timer_gettime, id, &left) && left.it_interval.tv_nsec == 10 * MS);
	CHECK(left.it_value.tv_nsec > 0 && left.it_value.tv_nsec <= 10 * MS);
	CHECK(take_signal());
	CHECK(!arm(id, TIMER_ABSTIME, start + 1, 0) && take_signal());
	CHECK(!arm(id, 0, 1000000 * MS, 0));
	stop_spinner(pid);
	CHECK(arm(id, 0, MS, 0) == -1 && errno == ESRCH);
	CHECK(!syscall(SYS_timer_gettime, id, &left) && left.it_value.tv_sec == 0);
	CHECK(!syscall(SYS_timer_delete, id));
}

static volatile int may_end, tid;

static void *spin(void *nothing)
{
	tid = syscall(SYS_gettid);
	while (!may_end)
		;
	return nothing;
}

TEST(threads)
{
	pthread_t thread;
	long start;
	int id;

	block_signal();
	CHECK(!pthread_create(&thread, NULL, spin, NULL) && WAIT_UNTIL(tid));
	start = read_ns(OF_THREAD(tid));
	CHECK(!sleep_by(OF_THREAD(tid), 0, 10 * MS));
	CHECK(read_ns(OF_THREAD(tid)) - start >= 10 * MS);
	id = make_timer(OF_THREAD(tid));
	start = read_ns(OF_THREAD(tid));
	CHECK(!arm(id, 0, 10 * MS, 0) && take_signal());
	CHECK(read_ns(OF_THREAD(tid)) - start >= 10 * MS && !syscall(SYS_timer_delete, id));
	may_end = 1;
	CHECK(!pthread_join(thread, NULL));
}

static void *do_nothing(void *arg)
{
	return arg;
}

static void *come_and_go(void *is_over)
{
	pthread_t thread;

	for (int i = 0; i < 300; i++)
		CHECK(!pthread_create(&thread, NULL, do_nothing, NULL) &&
		      !pthread_join(thread, NULL));
	*(volatile int *)is_over = 1;
	return NULL;
}

/* The time of a thread that ends stays in the clock of its process, which never goes back. */
TEST(ends_of_threads)
{
	volatile int is_over = 0;
	long now, last = 0, nr_back = 0;
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, come_and_go, (void *)&is_over));
	while (!is_over) {
		now = read_ns(CLOCK_PROCESS_CPUTIME_ID);
		nr_back += now < last;
		last = now;
	}
	CHECK(nr_back == 0 && !pthread_join(thread, NULL));
}

#define NR_SUMMED 6

static struct summed {
	volatile pid_t tid;
	volatile long nr_faults, nr_switches, nr_at_end;
} summed[NR_SUMMED];
static volatile int summed_may_end;

static long nr_switches(int who)
{
	struct rusage usage;

	CHECK(!getrusage(who, &usage));
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

/* Computes for a while, and then sleeps. */
static void *compute_and_sleep(void *arg)
{
	struct summed *self = arg;
	struct rusage usage;

	self->tid = syscall(SYS_gettid);
	while (read_ns(CLOCK_THREAD_CPUTIME_ID) < 20 * MS)
		;
	CHECK(!getrusage(RUSAGE_THREAD, &usage));
	self->nr_faults = usage.ru_minflt;
	self->nr_switches = usage.ru_nvcsw + usage.ru_nivcsw + 1;
	while (!summed_may_end)
		sleep_by(CLOCK_MONOTONIC, 0, MS);
	self->nr_at_end = nr_switches(RUSAGE_THREAD);
	return NULL;
}

static long sum_of_clocks(void)
{
	long sum = read_ns(CLOCK_THREAD_CPUTIME_ID);

	for (int i = 0; i < NR_SUMMED; i++)
		sum += read_ns(OF_THREAD(summed[i].tid));
	return sum;
}

/* The clock of a process is the sum of its threads', which run on several CPUs or sleep. */
static void check_sum(void)
{
	long before = sum_of_clocks(), clock = read_ns(CLOCK_PROCESS_CPUTIME_ID), time;
	long after = sum_of_clocks();
	struct rusage usage;

	CHECK(before <= clock && clock <= after + NR_SUMMED + 1);
	CHECK(!getrusage(RUSAGE_SELF, &usage));
	time = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 * MS +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
	CHECK(time >= clock - 2000 && time <= read_ns(CLOCK_PROCESS_CPUTIME_ID));
}

static void check_events(void)
{
	struct rusage own = { 0 }, all = { 0 }; /* present: the calls cause no page fault */
	long nr_faults = 0, nr_switches = 0;

	for (int i = 0; i < NR_SUMMED; i++) {
		CHECK(WAIT_UNTIL(summed[i].nr_switches));
		nr_faults += summed[i].nr_faults;
		nr_switches += summed[i].nr_switches - 1;
	}
	CHECK(!getrusage(RUSAGE_THREAD, &own) && !getrusage(RUSAGE_SELF, &all));
	CHECK(all.ru_minflt == nr_faults + own.ru_minflt);
	CHECK(all.ru_nvcsw + all.ru_nivcsw >= nr_switches + own.ru_nvcsw + own.ru_nivcsw);
}

static void sum_up(void)
{
	pthread_t threads[NR_SUMMED];
	long nr_at_end = 0;

	for (int i = 0; i < NR_SUMMED; i++)
		CHECK(!pthread_create(&threads[i], NULL, compute_and_sleep, &summed[i]));
	for (int i = 0; i < NR_SUMMED; i++)
		CHECK(WAIT_UNTIL(summed[i].tid));
	for (int i = 0; i < 200; i++)
		check_sum();
	check_events();
	check_sum();
	summed_may_end = 1;
	for (int i = 0; i < NR_SUMMED; i++) {
		CHECK(!pthread_join(threads[i], NULL));
		nr_at_end += summed[i].nr_at_end;
	}
	/* They have slept, and the CPUs were idle or ran other processes. */
	nr_at_end += nr_switches(RUSAGE_THREAD);
	CHECK(nr_switches(RUSAGE_SELF) >= nr_at_end);
}

/* Lets processes end, whose last piece of work the thread that runs next does for them. */
static void end_children(void)
{
	for (;;) {
		pid_t pid = fork_child();

		if (!pid)
			child_exit(0);
		CHECK(child_status(pid) == 0);
	}
}

/* In a process in which no thread has ended yet, while processes end on the same CPUs. */
TEST(sums)
{
	pid_t ender = fork_child(), pid;

	if (!ender)
		end_children();
	pid = fork_child();
	if (!pid) {
		sum_up();
		child_exit(0);
	}
	CHECK(child_status(pid) == 0);
	CHECK(!kill(ender, SIGKILL) && child_status(ender) == SIGKILL);
}

TEST(errors)
{
	int parent = getppid(), id;

	CHECK(sleep_error(OF_THREAD(getpid())) == EINVAL && sleep_error(OF_THREAD(0)) == EINVAL);
	CHECK(sleep_error(CLOCK_THREAD_CPUTIME_ID) == EOPNOTSUPP);
	CHECK(sleep_error(OF_THREAD(parent)) == EINVAL &&
	      sleep_error(OF_PROCESS(NOBODY)) == EINVAL);
	CHECK(sleep_error(-1) == EINVAL && sleep_error(100) == EINVAL);
	CHECK_ERROR(EINVAL, SYS_timer_create, OF_THREAD(parent), NULL, &id);
	CHECK_ERROR(EINVAL, SYS_timer_create, OF_PROCESS(NOBODY), NULL, &id);
	CHECK_ERROR(EINVAL, SYS_timer_create, -1, NULL, &id);
	id = make_timer(OF_PROCESS(parent));
	CHECK(!arm(id, 0, 1000000 * MS, 0) && !syscall(SYS_timer_delete, id));
}

/* CLOCK_TAI is ahead of the time of day by an offset, which is 0 until it is set. */
TEST(tai)
{
	long day = read_ns(CLOCK_REALTIME), start = read_ns(CLOCK_TAI);
	int id;

	CHECK(start >= day && start - day < 60000 * MS);
	CHECK(!sleep_by(CLOCK_TAI, TIMER_ABSTIME, start + 10 * MS));
	CHECK(read_ns(CLOCK_TAI) >= start + 10 * MS && !sleep_by(CLOCK_TAI, 0, MS));
	block_signal();
	id = make_timer(CLOCK_TAI);
	start = read_ns(CLOCK_TAI);
	CHECK(!arm(id, TIMER_ABSTIME, start + 10 * MS, 0) && take_signal());
	CHECK(read_ns(CLOCK_TAI) >= start + 10 * MS && !syscall(SYS_timer_delete, id));
	CHECK_ERROR(EINVAL, SYS_timerfd_create, CLOCK_TAI, 0);
}

/* Computes until it has had a CPU for 60 ms, and checks how long it was ready without one. */
static int compute(void)
{
	FILE *file = fopen("/proc/self/schedstat", "r");
	long long on_cpu, ready;

	while (read_ns(CLOCK_PROCESS_CPUTIME_ID) < 60 * MS)
		;
	CHECK(file && fscanf(file, "%lld %lld", &on_cpu, &ready) == 2);
	return on_cpu >= 50 * MS && ready > on_cpu / 4;
}

/* Two processes that compute share a CPU, so each is ready without it about half of the time. */
TEST(ready)
{
	pid_t child, found;
	cpu_set_t cpus;
	int status;

	signal(SIGCHLD, SIG_DFL); /* test_errors() ignores it */
	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	CHECK(!sched_setaffinity(0, sizeof(cpus), &cpus));
	child = fork();
	if (!child)
		_exit(!compute());
	while (!(found = waitpid(child, &status, WNOHANG)))
		;
	CHECK(found == child && status == 0);
}

int main(int argc, char **argv)
{
	return run_tests("clocks", argc, argv);
}
