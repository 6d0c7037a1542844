// SPDX-License-Identifier: BSD-2-Clause
/*
 * herds <n> [names]: n threads wait for the same thing, in one kind of call after the other. A few
 * events wake one of them each, or one event all. Then a signal ends the waits that are left. Lines
 * `bench: <name> <cycles> <woken>` say how long it takes from an event until all threads have
 * returned that it wakes. As crowd.c, the program switches the profile points before and sampling
 * after that: a QEMU plugin looks for the longest stretch with interrupts off in between.
 */
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include "bench.h"
#include "proc_profile.h"
#include "waitable.h"

#define STACK_BYTES (64 << 10)
#define NR_EVENTS   4
#define SIG	    SIGUSR1 /* blocked by all */
#define SIG_END	    SIGUSR2
#define TIMEOUT_S   100

static int nr;
static _Atomic int herd, nr_entered, nr_taken, nr_left;
static pid_t *tids;
static uint64_t start_cycles;
static int *each;	  /* one descriptor for each thread */
static __thread int *own; /* the calling thread's */

static long futex(void *word, int op, int value)
{
	return syscall(SYS_futex, word, op, value, NULL, NULL, 0);
}

/*
 * For each kind of wait: how to prepare it, the call that waits and returns whether its event came,
 * and the event.
 */

static sigset_t the_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIG);
	return set;
}

static void send_signal(void)
{
	CHECK(!kill(getpid(), SIG));
}

static void take_signal(void)
{
	sigset_t set = the_signal();
	struct timespec none = { 0 };

	while (sigtimedwait(&set, NULL, &none) == SIG)
		;
}

static void make_signalfd(void)
{
	sigset_t set = the_signal();

	CHECK((fds[0] = signalfd(-1, &set, 0)) >= 0);
}

static int read_signal(void)
{
	struct signalfd_siginfo info;

	return read(fds[0], &info, sizeof(info)) > 0;
}

static int wait_for_signal(void)
{
	sigset_t set = the_signal();

	return sigwaitinfo(&set, NULL) == SIG;
}

static int poll_it(void)
{
	struct pollfd one = { .fd = fds[0], .events = POLLIN };

	return poll(&one, 1, -1) == 1;
}

static int select_it(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fds[0], &set);
	return select(fds[0] + 1, &set, NULL, NULL, NULL) == 1;
}

/* fds[1] is watched. */
static void make_epoll_of(uint32_t events)
{
	struct epoll_event event = { .events = events };

	CHECK((fds[0] = epoll_create1(0)) >= 0 && (fds[1] = eventfd(0, EFD_SEMAPHORE)) >= 0);
	CHECK(!epoll_ctl(fds[0], EPOLL_CTL_ADD, fds[1], &event));
}

static void make_edge_epoll(void)
{
	make_epoll_of(EPOLLIN | EPOLLET);
}

static void make_level_epoll(void)
{
	make_epoll_of(EPOLLIN);
}

static int wait_for_epoll(void)
{
	struct epoll_event event;

	return epoll_wait(fds[0], &event, 1, -1) == 1;
}

/* An epoll for each thread, all of which watch fds[1]. */
static void make_epolls_of(uint32_t events)
{
	struct epoll_event event = { .events = events };

	make_eventfd();
	for (int i = 0; i < nr; i++) {
		CHECK((each[i] = epoll_create1(0)) >= 0);
		CHECK(!epoll_ctl(each[i], EPOLL_CTL_ADD, fds[1], &event));
	}
}

static void make_epolls(void)
{
	make_epolls_of(EPOLLIN);
}

static void make_exclusive_epolls(void)
{
	make_epolls_of(EPOLLIN | EPOLLEXCLUSIVE | EPOLLET);
}

static int wait_for_own_epoll(void)
{
	struct epoll_event event;

	return epoll_wait(*own, &event, 1, -1) == 1;
}

static void expire(void)
{
	struct itimerspec soon = { .it_value.tv_nsec = 1 };

	CHECK(!timerfd_settime(fds[0], 0, &soon, NULL));
}

static void make_full_datagrams(void)
{
	make_datagrams();
	fill_with_messages();
}

/* The threads want to connect, and each event accepts. */
static void make_connecting(void)
{
	make_full_listener();
	for (int i = 0; i < nr; i++)
		CHECK((each[i] = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0);
}

static int connect_own(void)
{
	return connect_to_it(*own);
}

static void accept_event(void)
{
	CHECK(accept_one());
}

/* Each event unlocks the file, and the thread that gets the lock does it for the next one. */
static _Atomic int owner;

static void open_locked(void)
{
	CHECK((owner = fds[0] = open("/tmp/lock", O_RDWR | O_CREAT, 0600)) >= 0);
	for (int i = 0; i < nr; i++)
		CHECK((each[i] = open("/tmp/lock", O_RDWR)) >= 0);
}

static void make_flock(void)
{
	open_locked();
	CHECK(!flock(fds[0], LOCK_EX));
}

static int lock_own(void)
{
	if (flock(*own, LOCK_EX))
		return 0;
	owner = *own;
	return 1;
}

static void unlock(void)
{
	CHECK(!flock(owner, LOCK_UN));
}

static int set_record(int fd, int type)
{
	struct flock64 lock = { .l_type = type, .l_whence = SEEK_SET };

	return !fcntl(fd, F_OFD_SETLKW, &lock);
}

static void make_record(void)
{
	open_locked();
	CHECK(set_record(fds[0], F_WRLCK));
}

static int lock_record(void)
{
	if (!set_record(*own, F_WRLCK))
		return 0;
	owner = *own;
	return 1;
}

static void unlock_record(void)
{
	CHECK(set_record(owner, F_UNLCK));
}

static void close_each(void)
{
	for (int i = 0; i < nr; i++)
		close(each[i]);
}

static int word;

static int wait_for_word(void)
{
	return !futex(&word, FUTEX_WAIT, 0);
}

static void wake_word(void)
{
	CHECK(futex(&word, FUTEX_WAKE, 1) == 1);
}

static struct timespec alarm_time;

static void set_alarm(void)
{
	CHECK(!clock_gettime(CLOCK_MONOTONIC, &alarm_time));
	alarm_time.tv_sec += 2;
}

static int sleep_until(void)
{
	return !clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &alarm_time, NULL);
}

static void await_alarm(void)
{
	while (!sleep_until())
		;
	start_cycles = rdtsc();
}

static void make_fifo(void)
{
	unlink("/tmp/fifo");
	CHECK(!mkfifo("/tmp/fifo", 0600));
}

static int open_fifo(void)
{
	return (*own = open("/tmp/fifo", O_RDONLY)) >= 0;
}

static void open_writer(void)
{
	CHECK((fds[1] = open("/tmp/fifo", O_WRONLY)) >= 0);
}

static const struct herd {
	const char *name;
	void (*make)(void);
	int (*wait)(void);
	void (*event)(void);
	void (*end)(void);
	enum {
		WAKES_ONE,
		WAKES_ALL
	} wakes; /* each event */
} herds[] = {
	{ "signalfd_read", make_signalfd, read_signal, send_signal, NULL, WAKES_ONE },
	{ "sigwait", NULL, wait_for_signal, send_signal, NULL, WAKES_ONE },
	{ "epoll_wait", make_edge_epoll, wait_for_epoll, write_event, NULL, WAKES_ONE },
	{ "epolls_exclusive", make_exclusive_epolls, wait_for_own_epoll, write_event, close_each,
	  WAKES_ONE },
	{ "timerfd_read", make_timerfd, read_one, expire, NULL, WAKES_ONE },
	{ "eventfd_read", make_eventfd, read_one, write_event, NULL, WAKES_ONE },
	{ "pipe_read", make_pipe, read_one, write_event, NULL, WAKES_ONE },
	{ "pipe_write", make_full_pipe, write_one, read_event, NULL, WAKES_ONE },
	{ "stream_receive", make_stream, read_one, write_event, NULL, WAKES_ONE },
	{ "datagram_receive", make_datagrams, read_one, write_event, NULL, WAKES_ONE },
	{ "datagram_send", make_full_datagrams, write_one, read_event, NULL, WAKES_ONE },
	{ "accept", make_listener, accept_one, connect_event, NULL, WAKES_ONE },
	{ "connect", make_connecting, connect_own, accept_event, close_each, WAKES_ONE },
	{ "flock", make_flock, lock_own, unlock, close_each, WAKES_ONE },
	{ "record_lock", make_record, lock_record, unlock_record, close_each, WAKES_ONE },
	{ "futex", NULL, wait_for_word, wake_word, NULL, WAKES_ONE },
	{ "signalfd_poll", make_signalfd, poll_it, send_signal, take_signal, WAKES_ALL },
	{ "epoll_wait_all", make_level_epoll, wait_for_epoll, write_event, NULL, WAKES_ALL },
	{ "epoll_poll", make_level_epoll, poll_it, write_event, NULL, WAKES_ALL },
	{ "epolls", make_epolls, wait_for_own_epoll, write_event, close_each, WAKES_ALL },
	{ "timerfd_poll", make_timerfd, poll_it, expire, NULL, WAKES_ALL },
	{ "eventfd_select", make_eventfd, select_it, write_event, NULL, WAKES_ALL },
	{ "sleep", set_alarm, sleep_until, await_alarm, NULL, WAKES_ALL },
	{ "fifo_open", make_fifo, open_fifo, open_writer, close_each, WAKES_ALL },
};

#define NR_HERDS (int)(sizeof(herds) / sizeof(*herds))

/* The threads */

static void *run_thread(void *arg)
{
	long i = (long)arg;
	int now, last = -1;

	tids[i] = syscall(SYS_gettid);
	own = &each[i];
	for (;;) {
		while ((now = herd) == last || now < 0)
			futex(&herd, FUTEX_WAIT, now);
		last = now;
		nr_entered++;
		nr_taken += herds[now].wait();
		nr_left++;
	}
	return NULL;
}

static void wait_for(_Atomic int *counter, int least, const char *what)
{
	long start_ms = now_ms();

	while (*counter < least && now_ms() < start_ms + TIMEOUT_S * 1000)
		sched_yield();
	if (!CHECK(*counter >= least))
		printf("%s: %d of %d\n", what, *counter, least);
}

static void run_herd(int index)
{
	const struct herd *this = &herds[index];
	int nr_events = this->wakes == WAKES_ALL ? 1 : NR_EVENTS;
	int nr_woken = this->wakes == WAKES_ALL ? nr : NR_EVENTS;
	long start_ms = now_ms();

	nr_entered = nr_taken = nr_left = 0;
	fds[0] = fds[1] = -1;
	if (this->make)
		this->make();
	herd = index;
	CHECK(futex(&herd, FUTEX_WAKE, nr) >= 0);
	wait_for(&nr_entered, nr, this->name);
	sleep_ms(20); /* the last ones reach their call */
	start_cycles = rdtsc();
	for (int i = 0; i < nr_events; i++) {
		this->event();
		wait_for(&nr_taken, this->wakes == WAKES_ALL ? nr : i + 1, this->name);
	}
	bench_print(this->name, rdtsc() - start_cycles, nr_woken);
	CHECK(nr_taken == nr_woken);
	/* Again for those that got the signal before they were in their call. */
	while (nr_left < nr && CHECK(now_ms() < start_ms + TIMEOUT_S * 1000)) {
		for (int i = 0; i < nr && nr_left < nr; i++)
			CHECK(!syscall(SYS_tgkill, getpid(), tids[i], SIG_END));
		sleep_ms(20);
	}
	if (this->end)
		this->end();
	close(fds[0]);
	close(fds[1]);
}

static void end_wait(int sig)
{
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = end_wait };
	struct rlimit limit = { 30000, 30000 };
	sigset_t set = the_signal();
	pthread_attr_t attr;
	pthread_t thread;

	nr = argc > 1 ? atoi(argv[1]) : 100;
	tids = calloc(nr, sizeof(*tids));
	each = calloc(nr, sizeof(*each));
	mkdir("/tmp", 0777);
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
	CHECK(!sigaction(SIG_END, &action, NULL));
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	herd = -1;
	for (int i = 0; i < nr; i++)
		CHECK(!pthread_create(&thread, &attr, run_thread, (void *)(long)i));
	control("/proc/profile/points", "*");
	for (int i = 0; i < NR_HERDS; i++) {
		if (run_is_wanted(herds[i].name, argc - 1, argv + 1))
			run_herd(i);
	}
	control("/proc/profile/heatmap", "off");
	return check_finish("herds");
}
