// SPDX-License-Identifier: BSD-2-Clause
/*
 * Pending signals: pending sets, the order of delivery, queued real-time signals, sigsuspend,
 * sigtimedwait, and which thread gets a signal.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>

#include "run.h"

static int order[64], values[64];
static volatile int nr_handled;

static void on_signal(int sig, siginfo_t *info, void *context)
{
	int at = __atomic_fetch_add(&nr_handled, 1, __ATOMIC_RELAXED);

	if (at < 64) {
		order[at] = sig;
		values[at] = info->si_value.sival_int;
	}
}

static void handle(int sig)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

	sigfillset(&action.sa_mask);
	CHECK(!sigaction(sig, &action, NULL));
	nr_handled = 0;
}

static void queue(int sig, int value)
{
	CHECK(!sigqueue(getpid(), sig, (union sigval){ .sival_int = value }));
}

static sigset_t set_of(int a, int b, int c)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, a);
	sigaddset(&set, b);
	sigaddset(&set, c);
	return set;
}

/*
 * Several signals are pending when they are unblocked: the one with the lowest number is handled
 * first. A standard signal is pending only once.
 */
TEST(order)
{
	static const int sigs[] = { 50, SIGUSR2, SIGTERM, 40, SIGUSR1, SIGHUP };
	static const int expected[] = { SIGHUP, SIGUSR1, SIGUSR2, SIGTERM, 40, 40, 40, 50 };
	static const int rt_values[] = { 1, 2, 3, 9 };
	sigset_t all, old, pending;

	for (int i = 0; i < 6; i++)
		handle(sigs[i]);
	sigfillset(&all);
	CHECK(!sigprocmask(SIG_BLOCK, &all, &old));
	queue(50, 9);
	queue(40, 1);
	for (int i = 1; i < 6; i++) {
		if (sigs[i] == 40)
			continue;
		CHECK(!kill(getpid(), sigs[i]));
		/* A second standard signal would change nothing. */
		CHECK(!kill(getpid(), sigs[i]));
	}
	queue(40, 2);
	queue(40, 3);
	CHECK(!sigpending(&pending) && nr_handled == 0);
	for (int i = 0; i < 6; i++)
		CHECK(sigismember(&pending, sigs[i]));
	CHECK(!sigismember(&pending, SIGALRM));
	CHECK(!sigprocmask(SIG_SETMASK, &old, NULL));
	CHECK(nr_handled == 8);
	/* If each handler blocks all signals, they run one after the other. */
	for (int i = 0; i < 8; i++)
		CHECK(order[i] == expected[i]);
	for (int i = 0; i < 4; i++)
		CHECK(values[4 + i] == rt_values[i]);
	CHECK(!sigpending(&pending) && !sigismember(&pending, 40));
}

TEST(sigsuspend)
{
	sigset_t blocked = set_of(SIGUSR1, SIGUSR1, SIGUSR1), none, old, now;
	pid_t pid, parent = getpid();

	handle(SIGUSR1);
	sigemptyset(&none);
	CHECK(!sigprocmask(SIG_BLOCK, &blocked, &old));
	for (int i = 0; i < 2; i++) {
		pid = fork_child();
		if (!pid) {
			sleep_ms(i * 30); /* before, or while it waits */
			child_exit(kill(parent, SIGUSR1));
		}
		if (!i)
			CHECK(child_status(pid) == 0 && nr_handled == 0);
		CHECK(sigsuspend(&none) == -1 && errno == EINTR && nr_handled == i + 1);
		CHECK(!sigprocmask(SIG_BLOCK, NULL, &now) && sigismember(&now, SIGUSR1));
		if (i)
			CHECK(child_status(pid) == 0);
	}
	CHECK_ERROR(EINVAL, SYS_rt_sigsuspend, &none, 4);
	CHECK_ERROR(EFAULT, SYS_rt_sigsuspend, 8, 8);
	CHECK(!sigprocmask(SIG_SETMASK, &old, NULL));
}

TEST(sigtimedwait)
{
	sigset_t set = set_of(SIGUSR1, 40, 41), old, pending;
	struct timespec time = { 0, 30000000 };
	siginfo_t info;
	pid_t pid;
	long start;

	for (int i = 40; i <= 41; i++)
		handle(i);
	handle(SIGUSR1);
	handle(SIGUSR2);
	CHECK(!sigprocmask(SIG_BLOCK, &set, &old));
	queue(41, 5);
	queue(40, 6);
	queue(40, 7);
	CHECK(!kill(getpid(), SIGUSR1));
	CHECK(sigwaitinfo(&set, &info) == SIGUSR1 && info.si_code == SI_USER);
	CHECK(info.si_pid == getpid());
	CHECK(sigwaitinfo(&set, &info) == 40 && info.si_value.sival_int == 6);
	CHECK(info.si_code == SI_QUEUE && info.si_signo == 40);
	CHECK(sigwaitinfo(&set, NULL) == 40);
	CHECK(sigtimedwait(&set, &info, &time) == 41 && info.si_value.sival_int == 5);
	start = now_ms();
	CHECK(sigtimedwait(&set, &info, &time) == -1 && errno == EAGAIN && now_ms() - start >= 29);
	time.tv_nsec = 0;
	CHECK(sigtimedwait(&set, &info, &time) == -1 && errno == EAGAIN);
	time.tv_nsec = -1;
	CHECK_ERROR(EINVAL, SYS_rt_sigtimedwait, &set, &info, &time, 8);
	CHECK_ERROR(EINVAL, SYS_rt_sigtimedwait, &set, &info, NULL, 4);
	CHECK_ERROR(EFAULT, SYS_rt_sigtimedwait, 8, &info, NULL, 8);
	CHECK(nr_handled == 0 && !sigpending(&pending) && !sigismember(&pending, 40));

	/*
	 * A signal arrives during the wait; then another one, which is not waited for and has a
	 * handler.
	 */
	pid = fork_child();
	if (!pid) {
		sleep_ms(30);
		CHECK(!sigqueue(getppid(), 41, (union sigval){ .sival_int = 8 }));
		/* Sends it repeatedly, because the parent may not wait yet. */
		for (int i = 0; i < 1000; i++) {
			sleep_ms(30);
			CHECK(!kill(getppid(), SIGUSR2));
		}
		child_exit(0);
	}
	CHECK(sigwaitinfo(&set, &info) == 41 && info.si_value.sival_int == 8 && info.si_pid == pid);
	CHECK(syscall(SYS_rt_sigtimedwait, &set, &info, NULL, 8) == -1 && errno == EINTR);
	CHECK(nr_handled >= 1 && !kill(pid, SIGKILL) && child_status(pid) == SIGKILL);
	CHECK(!sigprocmask(SIG_SETMASK, &old, NULL));
	for (int i = 0; i < nr_handled && i < 64; i++)
		CHECK(order[i] == SIGUSR2);
}

static volatile int threads_end, nr_started;
static volatile pid_t handled_by;
static __thread volatile int mine;

static void on_thread(int sig)
{
	mine++;
	handled_by = syscall(SYS_gettid);
	__atomic_add_fetch(&nr_handled, 1, __ATOMIC_RELAXED);
}

struct thread {
	pthread_t thread;
	volatile pid_t tid;
	int is_open, nr_mine; /* is_open: SIGUSR1 is not blocked */
};

static void *sleep_or_spin(void *arg)
{
	struct thread *t = arg;
	sigset_t set = set_of(SIGUSR1, SIGUSR1, SIGUSR1);

	CHECK(!pthread_sigmask(t->is_open ? SIG_UNBLOCK : SIG_BLOCK, &set, NULL));
	t->tid = syscall(SYS_gettid);
	__atomic_add_fetch(&nr_started, 1, __ATOMIC_RELEASE);
	while (!threads_end) {
		if (t->tid % 2)
			sched_yield();
		else
			usleep(1000);
	}
	t->nr_mine = mine;
	return NULL;
}

#define NR_THREADS 8

/*
 * A signal to a process goes to a thread that does not block it. A signal to a thread waits for
 * that thread.
 */
TEST(threads)
{
	struct sigaction action = { .sa_handler = on_thread, .sa_flags = SA_RESTART };
	sigset_t set = set_of(SIGUSR1, SIGUSR2, SIGUSR2), old, pending;
	struct thread threads[NR_THREADS] = { 0 };

	nr_handled = nr_started = threads_end = 0;
	CHECK(!sigaction(SIGUSR1, &action, NULL) && !sigaction(SIGUSR2, &action, NULL));
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, &old));
	for (int i = 0; i < NR_THREADS; i++) {
		threads[i].is_open = i == 5;
		CHECK(!pthread_create(&threads[i].thread, NULL, sleep_or_spin, &threads[i]));
	}
	CHECK(WAIT_UNTIL(nr_started == NR_THREADS));
	for (int i = 1; i <= 20; i++) {
		CHECK(!kill(getpid(), SIGUSR1) && WAIT_UNTIL(nr_handled == i));
		CHECK(handled_by == threads[5].tid);
	}
	CHECK(!syscall(SYS_tgkill, getpid(), threads[2].tid, SIGUSR1));
	sleep_ms(20);
	CHECK(nr_handled == 20); /* blocked in its thread; no other thread takes it */
	CHECK(!sigpending(&pending) && !sigismember(&pending, SIGUSR1));
	CHECK(!pthread_kill(threads[5].thread, SIGUSR1) && WAIT_UNTIL(nr_handled == 21));
	/* If all threads block a signal, it is pending for the process, and all threads see it. */
	CHECK(!kill(getpid(), SIGUSR2) && !sigpending(&pending));
	CHECK(sigismember(&pending, SIGUSR2) && nr_handled == 21);
	threads_end = 1;
	for (int i = 0; i < NR_THREADS; i++) {
		CHECK(!pthread_join(threads[i].thread, NULL));
		CHECK(threads[i].nr_mine == (i == 5 ? 21 : 0));
	}
	CHECK(!pthread_sigmask(SIG_SETMASK, &old, NULL) && nr_handled == 22);
	CHECK(handled_by == getpid());
	signal(SIGUSR1, SIG_DFL);
	signal(SIGUSR2, SIG_DFL);
}

static void *fault_here(void *arg)
{
	asm volatile("movl $1, 16");
	return arg;
}

/* A fault or a fatal signal of one thread ends all of them. */
TEST(threads_die)
{
	for (int how = 0; how < 3; how++) {
		pid_t pid = fork_child();
		struct thread threads[4] = { 0 };
		pthread_t thread;

		if (!pid) {
			signal(SIGTERM, SIG_DFL);
			nr_started = threads_end = 0;
			for (int i = 0; i < 4; i++)
				pthread_create(&threads[i].thread, NULL, sleep_or_spin,
					       &threads[i]);
			WAIT_UNTIL(nr_started == 4);
			if (how == 0)
				pthread_create(&thread, NULL, fault_here, NULL);
			else if (how == 1)
				syscall(SYS_tgkill, getpid(), threads[3].tid, SIGKILL);
			else
				kill(getpid(), SIGTERM);
			sleep_ms(10000);
			child_exit(1);
		}
		CHECK((child_status(pid) & 0x7f) == (how == 0 ? SIGSEGV :
						     how == 1 ? SIGKILL :
								SIGTERM));
	}
}

/* A stop signal stops all threads, and SIGCONT continues them. */
TEST(threads_stop)
{
	struct thread threads[4] = { 0 };
	pid_t pid = fork_child();
	int status;

	if (!pid) {
		nr_started = threads_end = 0;
		for (int i = 0; i < 4; i++)
			CHECK(!pthread_create(&threads[i].thread, NULL, sleep_or_spin,
					      &threads[i]));
		CHECK(WAIT_UNTIL(nr_started == 4));
		CHECK(!syscall(SYS_tgkill, getpid(), threads[1].tid, SIGSTOP));
		threads_end = 1;
		for (int i = 0; i < 4; i++)
			CHECK(!pthread_join(threads[i].thread, NULL));
		child_exit(6);
	}
	CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	sleep_ms(20);
	CHECK(waitpid(pid, &status, WUNTRACED | WNOHANG) == 0);
	CHECK(!kill(pid, SIGCONT) && child_status(pid) == EXITED(6));
}

/* Many real-time signals from several senders: none is lost, each sender's come in order. */
TEST(many)
{
	sigset_t set = set_of(45, 45, 45), old;
	int next[4] = { 0 }, nr_wrong = 0;
	pid_t pids[4];
	siginfo_t info;

	CHECK(!sigprocmask(SIG_BLOCK, &set, &old));
	for (int i = 0; i < 4; i++) {
		pids[i] = fork_child();
		if (pids[i])
			continue;
		for (int j = 0; j < 200; j++) {
			union sigval value = { .sival_int = i * 1000 + j };

			while (sigqueue(getppid(), 45, value) && CHECK(errno == EAGAIN))
				sleep_ms(1);
		}
		child_exit(0);
	}
	for (int i = 0; i < 800; i++) {
		int value = sigwaitinfo(&set, &info) == 45 ? info.si_value.sival_int : -1;

		if (value < 0 || value >= 4000 || info.si_pid != pids[value / 1000] ||
		    next[value / 1000]++ != value % 1000)
			nr_wrong++;
	}
	CHECK(nr_wrong == 0);
	for (int i = 0; i < 4; i++)
		CHECK(child_status(pids[i]) == 0 && next[i] == 200);
	CHECK(!sigprocmask(SIG_SETMASK, &old, NULL));
}

/* Among more threads than a kernel looks at in one step, the last does not block the signal. */
#define NR_MANY 700

static volatile pid_t last_tid;

static void *sleep_long(void *is_last)
{
	sigset_t set = set_of(SIGUSR1, SIGUSR1, SIGUSR1);

	if (is_last) {
		last_tid = syscall(SYS_gettid);
		CHECK(!pthread_sigmask(SIG_UNBLOCK, &set, NULL));
		__atomic_add_fetch(&nr_started, 1, __ATOMIC_RELEASE);
	}
	for (;;)
		sleep_ms(10000);
	return NULL;
}

static void start_many(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	nr_started = nr_handled = 0;
	for (long i = 1; i <= NR_MANY; i++)
		CHECK(!pthread_create(&thread, &attr, sleep_long, (void *)(i / NR_MANY)));
	CHECK(WAIT_UNTIL(nr_started == 1));
}

TEST(last_thread)
{
	struct sigaction action = { .sa_handler = on_thread, .sa_flags = SA_RESTART };
	sigset_t set = set_of(SIGUSR1, SIGUSR1, SIGUSR1), old;
	pid_t pid = fork_child();

	if (pid) {
		CHECK(child_status(pid) == SIGUSR1);
		return;
	}
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, &old));
	start_many();
	for (int i = 1; i <= 20; i++) {
		CHECK(!kill(getpid(), SIGUSR1) && WAIT_UNTIL(nr_handled == i));
		CHECK(handled_by == last_tid);
	}
	signal(SIGUSR1, SIG_DFL);
	kill(getpid(), SIGUSR1);
	sleep_ms(10000);
	child_exit(1);
}

struct waiting {
	pthread_t thread;
	sigset_t set;
	volatile pid_t tid;
	volatile int got;
};

static void *wait_for_set(void *arg)
{
	struct waiting *waiting = arg;

	/* Preempts no other thread on Linux then. Here none does, and there is no such policy. */
	syscall(SYS_sched_setscheduler, 0, SCHED_BATCH, (int[1]){ 0 });
	waiting->tid = syscall(SYS_gettid);
	waiting->got = sigwaitinfo(&waiting->set, NULL);
	while (!threads_end)
		sleep_ms(1);
	return NULL;
}

static void start_waiting(struct waiting *waiting)
{
	CHECK(!pthread_create(&waiting->thread, NULL, wait_for_set, waiting));
	CHECK(WAIT_UNTIL(waiting->tid && is_asleep(getpid(), waiting->tid)));
}

/*
 * A thread that waits for two signals gets both at once, but takes one. The other one is for a
 * thread that waits for it, too. Returns false if the first thread ran between the two signals.
 */
static int share_signals(void)
{
	struct waiting both = { .set = set_of(SIGUSR1, SIGUSR2, SIGUSR2) };
	struct waiting one = { .set = set_of(SIGUSR2, SIGUSR2, SIGUSR2) };
	struct timespec none = { 0 };
	int is_done;

	threads_end = 0;
	start_waiting(&both);
	start_waiting(&one);
	CHECK(!kill(getpid(), SIGUSR2) && !kill(getpid(), SIGUSR1));
	CHECK(WAIT_UNTIL(both.got));
	is_done = both.got == SIGUSR1;
	if (is_done)
		CHECK(WAIT_UNTIL(one.got == SIGUSR2));
	else
		CHECK(sigtimedwait(&both.set, NULL, &none) == SIGUSR1 || one.got);
	if (!one.got)
		CHECK(!pthread_kill(one.thread, SIGUSR2));
	threads_end = 1;
	CHECK(!pthread_join(both.thread, NULL) && !pthread_join(one.thread, NULL));
	sigtimedwait(&both.set, NULL, &none);
	return is_done;
}

/* All threads share a CPU, and none preempts the first: the tick alone can come in between. */
TEST(wait_for_both)
{
	sigset_t set = set_of(SIGUSR1, SIGUSR2, SIGUSR2), old;
	cpu_set_t all, this;
	int tries = 0;

	CPU_ZERO(&this);
	CPU_SET(sched_getcpu(), &this);
	CHECK(!sched_getaffinity(0, sizeof(all), &all));
	CHECK(!sched_setaffinity(0, sizeof(this), &this));
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, &old));
	while (!share_signals() && tries < 50)
		tries++;
	CHECK(tries < 50);
	CHECK(!pthread_sigmask(SIG_SETMASK, &old, NULL));
	CHECK(!sched_setaffinity(0, sizeof(all), &all));
}

static int pending_jobs(void)
{
	sigset_t set;

	CHECK(!sigpending(&set));
	return sigismember(&set, SIGTSTP) + 2 * sigismember(&set, SIGCONT);
}

/* SIGCONT drops pending stop signals, and these drop it, of a thread and of the process. */
TEST(jobs)
{
	sigset_t set = set_of(SIGTSTP, SIGCONT, SIGCONT), old,
		 stop = set_of(SIGTSTP, SIGTSTP, SIGTSTP);
	struct timespec none = { 0 };
	pid_t pid = fork_child();
	siginfo_t info;

	if (pid) {
		CHECK(child_status(pid) == EXITED(0));
		return;
	}
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, &old));
	for (int i = 0; i < 16; i++) {
		int stops = i & 1, to_thread = i & 2, next_to_thread = i & 4;
		int sig = stops ? SIGTSTP : SIGCONT, next = stops ? SIGCONT : SIGTSTP;

		for (int repeated = 0; repeated < 2; repeated++) {
			CHECK(!(to_thread ? raise(sig) : kill(getpid(), sig)));
			if (!(i & 8))
				CHECK(pending_jobs() == (stops ? 1 : 2));
			CHECK(!(next_to_thread ? raise(next) : kill(getpid(), next)));
			if (!(i & 8))
				CHECK(pending_jobs() == (stops ? 2 : 1));
		}
		CHECK(pending_jobs() == (stops ? 2 : 1));
	}
	CHECK(!raise(SIGTSTP) && !raise(SIGCONT) && !raise(SIGTSTP));
	CHECK(sigtimedwait(&stop, &info, &none) == SIGTSTP && info.si_pid == getpid());
	CHECK(sigtimedwait(&stop, &info, &none) == -1 && errno == EAGAIN && !pending_jobs());
	child_exit(0);
}

int main(int argc, char **argv)
{
	return run_tests("sigqueues", argc, argv);
}
