// SPDX-License-Identifier: BSD-2-Clause
/*
 * stress <mode> <seconds> <processes>: storms whose counts must add up. Each mode counts in memory
 * that all its processes share, ends after the seconds (0.3, for example), and compares: children
 * made and reaped, bytes and tokens sent and received, signals sent and handled. `all` runs one
 * mode after the other.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "run.h"

#define PAGE	   4096ul
#define MAX_PROCS  64
#define NR_THREADS 4
extern char **environ;

/* Shared by all processes of a mode. */
struct counts {
	uint64_t made, reaped, sent, received, wrong;
	int word[MAX_PROCS];
	int end;
};

static struct counts *counts;
static const char *self;
static long end_ms;
static int nr_procs;

static void add(uint64_t *counter, uint64_t nr)
{
	__atomic_add_fetch(counter, nr, __ATOMIC_RELAXED);
}

static int is_over(void)
{
	return now_ms() >= end_ms;
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Reaps and counts @pid, which must exit with @code. */
static void reap(pid_t pid, int code)
{
	int status = child_status(pid);

	if (status != EXITED(code))
		add(&counts->wrong, 1);
	add(&counts->reaped, status != -1);
}

/* fork() for a storm: a fork that fails, for example for lack of memory, is repeated. */
static pid_t fork_again(void)
{
	pid_t pid;

	while ((pid = fork()) == -1 && (errno == EAGAIN || errno == ENOMEM))
		sleep_ms(1);
	if (pid > 0)
		add(&counts->made, 1);
	return pid;
}

/* Families that fork, write to what they share with their parents, and end. */
static void storm_fork(int nr)
{
	char *pages =
		mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t state = nr + 1;
	pid_t pids[4];

	while (!is_over()) {
		int width = 1 + next_random(&state) % 4;

		memset(pages, nr, 16 * PAGE);
		for (int i = 0; i < width; i++) {
			pids[i] = fork_again();
			if (pids[i])
				continue;
			for (int page = 0; page < 16; page += 1 + i) {
				if (pages[page * PAGE] != (char)nr)
					add(&counts->wrong, 1);
				pages[page * PAGE] = i + 100;
			}
			if (i == 1) { /* and a grandchild, reaped or left behind */
				pid_t pid = fork();

				if (!pid)
					_exit(0);
				waitpid(pid, NULL, state & 1 ? 0 : WNOHANG);
			}
			_exit(i + 7);
		}
		for (int i = 0; i < width; i++)
			reap(pids[i], i + 7);
		for (int page = 0; page < 16; page++) {
			if (pages[page * PAGE] != (char)nr)
				add(&counts->wrong, 1);
		}
	}
}

static void *idle(void *arg)
{
	for (;;)
		sleep_ms(100);
	return arg;
}

/*
 * Starts a child that executes another program: by vfork, by fork, or from a process with threads.
 */
static pid_t start_program(unsigned int how)
{
	char *argv[] = { (char *)self, how & 4 ? "--exec" : "--exit", NULL };
	pid_t pid = how & 1 ? vfork() : fork();
	pthread_t thread;

	if (pid)
		return pid;
	if (!(how & 1) && how & 2)
		pthread_create(&thread, NULL, idle, NULL);
	execve(self, argv, environ);
	_exit(1);
}

static void storm_exec(int nr)
{
	uint64_t state = nr + 1;

	while (!is_over()) {
		pid_t pid = start_program(next_random(&state));

		if (pid < 0)
			continue;
		add(&counts->made, 1);
		reap(pid, 9);
	}
}

static long futex(int *word, int op, int value)
{
	return syscall(SYS_futex, word, op, value, NULL, NULL, 0);
}

/* A token is passed round: its holder wakes the next process. At the end the last one keeps it. */
static void storm_futex(int nr)
{
	int *mine = &counts->word[nr], *next = &counts->word[(nr + 1) % nr_procs];

	for (int end = 0; !end;) {
		while (!__atomic_load_n(mine, __ATOMIC_ACQUIRE))
			futex(mine, FUTEX_WAIT, 0);
		__atomic_store_n(mine, 0, __ATOMIC_RELAXED);
		counts->received++; /* only the holder of the token writes it */
		if (nr == 0 && is_over())
			counts->end = 1;
		end = counts->end;
		if (end && nr == nr_procs - 1)
			return;
		counts->sent++;
		__atomic_store_n(next, 1, __ATOMIC_RELEASE);
		futex(next, FUTEX_WAKE, 1);
	}
}

static int (*ring)[2];

/*
 * Bytes are passed round through pipes in chunks of any size; each process passes on what it gets.
 */
static void storm_pipe(int nr)
{
	int in = ring[nr][0], out = ring[(nr + 1) % nr_procs][1];
	static unsigned char block[20000];
	uint64_t state = nr + 1, at = 0;
	ssize_t len;

	for (int i = 0; i < nr_procs; i++) {
		if (ring[i][0] != in)
			close(ring[i][0]);
		if (ring[i][1] != out)
			close(ring[i][1]);
	}
	if (nr == 0) { /* the source is also the drain: a thread of its own reads */
		pid_t source = fork();

		if (!source) {
			close(in);
			while (!is_over()) {
				len = 1 + next_random(&state) % sizeof(block);
				for (ssize_t i = 0; i < len; i++)
					block[i] = (at + i) * 7 >> 3;
				if (write(out, block, len) != len)
					add(&counts->wrong, 1);
				at += len;
			}
			add(&counts->sent, at);
			_exit(0);
		}
		close(out);
		while ((len = read(in, block, 1 + next_random(&state) % sizeof(block))) > 0) {
			for (ssize_t i = 0; i < len; i++)
				counts->wrong += block[i] != (unsigned char)((at + i) * 7 >> 3);
			at += len;
		}
		add(&counts->received, at);
		if (child_status(source))
			add(&counts->wrong, 1);
		return;
	}
	while ((len = read(in, block, 1 + next_random(&state) % sizeof(block))) > 0) {
		if (write(out, block, len) != len)
			add(&counts->wrong, 1);
	}
}

/* Checks that all pages have the value, and counts them. */
static void count_pages(char *pages, int nr, char value)
{
	for (int i = 0; i < nr; i++) {
		add(&counts->received, pages[i * PAGE] == value);
		pages[i * PAGE] = 0;
	}
}

static void *map_and_unmap(void *arg)
{
	uint64_t state = (uintptr_t)arg * 77 + getpid();
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/tmp/stress.%d.%ld", getpid(), (long)arg);
	fd = open(name, O_CREAT | O_RDWR | O_TRUNC, 0600);
	unlink(name);
	if (fd < 0 || ftruncate(fd, 32 * PAGE))
		add(&counts->wrong, 1);
	while (!is_over()) {
		int nr = 1 + next_random(&state) % 32,
		    flags = state & 64 ? MAP_SHARED : MAP_PRIVATE;
		int file = state & 128 ? fd : -1;
		char *pages = mmap(NULL, nr * PAGE, PROT_READ | PROT_WRITE,
				   flags | (file == -1 ? MAP_ANONYMOUS : 0), file, 0);

		if (pages == MAP_FAILED) {
			add(&counts->wrong, errno != ENOMEM);
			continue;
		}
		for (int i = 0; i < nr; i++)
			pages[i * PAGE] = nr;
		add(&counts->sent, nr);
		mprotect(pages, nr * PAGE, PROT_READ);
		mprotect(pages + (nr / 2) * PAGE, PAGE, PROT_NONE);
		mprotect(pages, nr * PAGE, PROT_READ | PROT_WRITE);
		count_pages(pages, nr, nr);
		if (state & 256)
			madvise(pages, nr * PAGE, MADV_DONTNEED);
		/* In parts, so that other processes get the free pages at once. */
		if (state & 512 && nr > 2) {
			munmap(pages + PAGE, PAGE);
			munmap(pages + 2 * PAGE, (nr - 2) * PAGE);
			nr = 1;
		}
		munmap(pages, nr * PAGE);
	}
	close(fd);
	return NULL;
}

static void run_threads(void *(*run)(void *))
{
	pthread_t threads[NR_THREADS];

	for (long i = 0; i < NR_THREADS; i++) {
		if (pthread_create(&threads[i], NULL, run, (void *)i))
			add(&counts->wrong, 1);
	}
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void storm_mmap(int nr)
{
	run_threads(map_and_unmap);
}

static void *one_more(void *arg)
{
	add(&counts->received, 1);
	return arg;
}

static void *make_threads(void *arg)
{
	pthread_t threads[8];
	void *result;

	while (!is_over()) {
		int nr = 0;

		while (nr < 8 && !pthread_create(&threads[nr], NULL, one_more, (void *)(long)nr))
			nr++;
		add(&counts->sent, nr);
		for (int i = 0; i < nr; i++) {
			if (pthread_join(threads[i], &result) || result != (void *)(long)i)
				add(&counts->wrong, 1);
		}
	}
	return NULL;
}

static void storm_thread(int nr)
{
	run_threads(make_threads);
}

static volatile uint64_t nr_queued, nr_alarms;

static void on_queued(int sig, siginfo_t *info, void *context)
{
	__atomic_add_fetch(&nr_queued, 1, __ATOMIC_RELAXED);
	if (info->si_code != SI_QUEUE || info->si_value.sival_int != 4711)
		add(&counts->wrong, 1);
}

static void on_alarm(int sig)
{
	__atomic_add_fetch(&nr_alarms, 1, __ATOMIC_RELAXED);
}

/*
 * Real-time signals, of which none may be lost, are sent to this busy child: it forks, runs
 * programs, sleeps and computes, and has an interval timer.
 */
static void busy_child(int ready, const int *end)
{
	struct sigaction action = { .sa_sigaction = on_queued,
				    .sa_flags = SA_SIGINFO | SA_RESTART };
	struct itimerval timer = { { 0, 3000 }, { 0, 3000 } }, none = { 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, 40);
	sigaction(40, &action, NULL);
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &timer, NULL);
	if (write(ready, "x", 1) != 1)
		_exit(1);
	for (int i = 0; !__atomic_load_n(end, __ATOMIC_ACQUIRE); i++) {
		pid_t pid = fork_again();

		if (!pid) {
			if (i % 4 == 0)
				execve(self, (char *[]){ (char *)self, "--exit", NULL }, environ);
			_exit(9);
		}
		reap(pid, 9);
		usleep(100);
	}
	setitimer(ITIMER_REAL, &none, NULL);
	/* All signals that were sent are here, pending or handled. */
	while (!sigpending(&set) && sigismember(&set, 40))
		sched_yield();
	add(&counts->received, nr_queued);
	_exit(nr_alarms ? 5 : 6);
}

static void storm_signal(int nr)
{
	uint64_t sent = 0;
	int ends[2];
	char c;
	pid_t pid;

	if (pipe(ends))
		add(&counts->wrong, 1);
	pid = fork_again();
	if (!pid)
		busy_child(ends[1], &counts->word[nr]);
	if (read(ends[0], &c, 1) != 1)
		add(&counts->wrong, 1);
	while (!is_over()) {
		if (!sigqueue(pid, 40, (union sigval){ .sival_int = 4711 }))
			sent++;
		else
			add(&counts->wrong, errno != EAGAIN);
		if (sent % 16 == 0) {
			kill(pid, SIGCONT);
			syscall(SYS_tgkill, pid, pid, SIGALRM);
			usleep(200);
		}
	}
	add(&counts->sent, sent);
	__atomic_store_n(&counts->word[nr], 1, __ATOMIC_RELEASE);
	reap(pid, 5);
	close(ends[0]);
	close(ends[1]);
}

static const struct mode {
	const char *name;
	void (*run)(int nr);
} modes[] = {
	{ "fork", storm_fork },	    { "exec", storm_exec }, { "futex", storm_futex },
	{ "pipe", storm_pipe },	    { "mmap", storm_mmap }, { "thread", storm_thread },
	{ "signal", storm_signal },
};

static void setup(const struct mode *mode)
{
	memset(counts, 0, sizeof(*counts));
	if (mode->run == storm_futex)
		counts->word[0] = counts->sent = 1;
	for (int i = 0; mode->run == storm_pipe && i < nr_procs; i++)
		CHECK(!pipe(ring[i]));
}

static int run_mode(const struct mode *mode, long ms)
{
	pid_t pids[MAX_PROCS];

	setup(mode);
	end_ms = now_ms() + ms;
	fflush(stdout);
	for (int i = 0; i < nr_procs; i++) {
		pids[i] = fork_child();
		if (!pids[i]) {
			mode->run(i);
			child_exit(0);
		}
	}
	for (int i = 0; mode->run == storm_pipe && i < nr_procs; i++) {
		close(ring[i][0]);
		close(ring[i][1]);
	}
	for (int i = 0; i < nr_procs; i++)
		CHECK(child_status(pids[i]) == 0);
	CHECK(counts->wrong == 0);
	CHECK(counts->made == counts->reaped && counts->sent == counts->received);
	CHECK(counts->made + counts->sent > 0);
	printf("%s: stress %s: %lu children made, %lu reaped, %lu sent, %lu received, %lu wrong\n",
	       check_failures() ? "FAIL" : "PASS", mode->name, (long)counts->made,
	       (long)counts->reaped, (long)counts->sent, (long)counts->received,
	       (long)counts->wrong);
	return check_failures() != 0;
}

static int usage(void)
{
	printf("usage: stress fork|exec|futex|pipe|mmap|thread|signal|all [seconds [processes]]\n");
	return 2;
}

/* Runs a mode in a child. If this is process 1, it reaps orphans meanwhile. */
static int run_apart(const struct mode *mode, long ms)
{
	pid_t pid = fork_child(), got;
	int status, ours = -1;

	if (!pid)
		exit(run_mode(mode, ms));
	while ((got = waitpid(-1, &status, 0)) > 0 || errno == EINTR) {
		if (got == pid)
			ours = status;
	}
	return ours != 0;
}

int main(int argc, char **argv)
{
	long ms = 1000 * (argc > 2 ? atof(argv[2]) : 3);
	int nr_run = 0, nr_failed = 0;

	self = argv[0][0] == '/' ? argv[0] : "/bin/stress";
	if (argc > 1 && !strcmp(argv[1], "--exit"))
		return 9;
	if (argc > 1 && !strcmp(argv[1], "--exec"))
		return execve(self, (char *[]){ (char *)self, "--exit", NULL }, environ);
	nr_procs = argc > 3 ? atoi(argv[3]) : 4;
	if (argc < 2 || ms <= 0 || nr_procs < 1 || nr_procs > MAX_PROCS)
		return usage();
	counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	ring = calloc(nr_procs, sizeof(*ring));
	if (!CHECK(counts != MAP_FAILED && ring))
		return 1;
	for (unsigned int i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(argv[1], "all") && strcmp(argv[1], modes[i].name))
			continue;
		nr_failed += run_apart(&modes[i], ms);
		nr_run++;
	}
	return nr_run ? nr_failed != 0 : usage();
}
