// SPDX-License-Identifier: BSD-2-Clause
/*
 * critical <case>: threads whose critical path is known. Each function compute_*() takes a time
 * that is given in loops, so a test knows which functions, calls and waits are on the path, and
 * which are not.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "../../diagnosis/diagnosis.h"

#define LOOPS	    1000000 /* some milliseconds */
#define FAULT_PAGES 4000

/* __noipa__: the compiler makes neither one function of all, nor others of them. */
#define COMPUTE(name)                                                     \
	static void __attribute__((__noipa__)) compute_##name(long loops) \
	{                                                                 \
		for (volatile long i = 0; i < loops; i++)                 \
			;                                                 \
	}

COMPUTE(first)
COMPUTE(second)
COMPUTE(third)
COMPUTE(hidden) /* never on the path */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int fds[2], back[2], word;

static void stay_on_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

static void put(int fd)
{
	if (write(fd, "x", 1) != 1)
		die("write");
}

static void get(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		die("read");
}

/* The consumer is faster than the producer. */
static void *produce(void *unused)
{
	for (int i = 0; i < 10; i++) {
		compute_first(LOOPS / 10);
		put(fds[1]);
	}
	return unused;
}

static void run_pipeline(void)
{
	pthread_t producer = start(produce, NULL);

	for (int i = 0; i < 10; i++) {
		get(fds[0]);
		compute_hidden(LOOPS / 100);
	}
	pthread_join(producer, NULL);
}

/* The longest of three threads counts. */
static void *fork_join_short(void *unused)
{
	compute_hidden(LOOPS / 4);
	return unused;
}

static void *fork_join_long(void *unused)
{
	compute_first(LOOPS * 2);
	return unused;
}

static void run_fork_join(void)
{
	pthread_t threads[] = {
		start(fork_join_short, NULL),
		start(fork_join_long, NULL),
		start(fork_join_short, NULL),
	};

	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

/* Three threads hold a mutex, one after the other. */
static void *hold_second(void *unused)
{
	pthread_mutex_lock(&mutex);
	compute_second(LOOPS);
	pthread_mutex_unlock(&mutex);
	return unused;
}

static void run_locks(void)
{
	pthread_t thread;

	pthread_mutex_lock(&mutex);
	thread = start(hold_second, NULL);
	compute_first(LOOPS);
	pthread_mutex_unlock(&mutex);
	compute_hidden(LOOPS / 10);
	pthread_join(thread, NULL);
	pthread_mutex_lock(&mutex);
	compute_third(LOOPS);
	pthread_mutex_unlock(&mutex);
}

static void run_timer(void)
{
	for (int i = 0; i < 5; i++)
		sleep_ms(4);
}

/* Asks a thread to read a file, and waits for its answer. */
static void *serve(void *unused)
{
	static char buffer[1 << 16];
	int file = open("/proc/self/exe", O_RDONLY);

	if (file < 0)
		die("open");
	get(fds[0]);
	for (int i = 0; i < 200; i++) {
		if (pread(file, buffer, sizeof(buffer), 0) <= 0)
			die("pread");
	}
	put(back[1]);
	return unused;
}

static void run_io(void)
{
	pthread_t server = start(serve, NULL);

	put(fds[1]);
	get(back[0]);
	pthread_join(server, NULL);
}

/* A thread needs the CPU that another one has. */
static void *hog(void *unused)
{
	stay_on_cpu(1);
	put(back[1]);
	compute_second(LOOPS * 2);
	return unused;
}

static void *hurry(void *unused)
{
	get(back[0]);
	stay_on_cpu(1);
	compute_first(LOOPS);
	return unused;
}

static void run_cpus(void)
{
	pthread_t slow = start(hog, NULL), urgent = start(hurry, NULL);

	stay_on_cpu(0);
	pthread_join(urgent, NULL);
	pthread_join(slow, NULL);
}

/* One thread waits for a signal that another one sends. */
static void *send(void *to)
{
	compute_first(LOOPS);
	pthread_kill(*(pthread_t *)to, SIGUSR1);
	compute_hidden(LOOPS / 100);
	return NULL;
}

static void run_signal(void)
{
	pthread_t self = pthread_self(), sender;
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	sender = start(send, &self);
	sigwait(&set, &sig);
	compute_second(LOOPS);
	pthread_join(sender, NULL);
}

static void *wake(void *unused)
{
	compute_first(LOOPS);
	__atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0);
	return unused;
}

static void run_futex(void)
{
	pthread_t waker = start(wake, NULL);

	while (!__atomic_load_n(&word, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
	compute_second(LOOPS);
	pthread_join(waker, NULL);
}

static void *give(void *unused)
{
	compute_first(LOOPS);
	pthread_mutex_lock(&mutex);
	word = 1;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&mutex);
	return unused;
}

static void run_condition(void)
{
	pthread_t giver = start(give, NULL);

	pthread_mutex_lock(&mutex);
	while (!word)
		pthread_cond_wait(&cond, &mutex);
	pthread_mutex_unlock(&mutex);
	compute_second(LOOPS);
	pthread_join(giver, NULL);
}

static void run_exec(void)
{
	compute_first(LOOPS);
	execl("/bin/critical", "critical", "execed", NULL);
	die("execl");
}

static void run_execed(void)
{
	compute_second(LOOPS);
}

/* A thread has ended long before anyone waits for it. */
static void run_early(void)
{
	pthread_t early = start(fork_join_short, NULL);

	compute_first(LOOPS * 2);
	pthread_join(early, NULL);
}

static void __attribute__((__noinline__)) touch_pages(char *pages)
{
	for (long i = 0; i < FAULT_PAGES; i++)
		pages[i * 4096] = 1;
}

static void run_faults(void)
{
	char *pages = mmap(NULL, FAULT_PAGES * 4096, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		die("mmap");
	touch_pages(pages);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "pipeline", run_pipeline },
	{ "fork-join", run_fork_join },
	{ "locks", run_locks },
	{ "timer", run_timer },
	{ "io", run_io },
	{ "cpus", run_cpus },
	{ "signal", run_signal },
	{ "futex", run_futex },
	{ "condition", run_condition },
	{ "exec", run_exec },
	{ "execed", run_execed },
	{ "early", run_early },
	{ "faults", run_faults },
};

int main(int argc, char **argv)
{
	if (argc != 2 || pipe(fds) || pipe(back))
		return 1;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (!strcmp(cases[i].name, argv[1])) {
			cases[i].run();
			return 0;
		}
	}
	return 1;
}
