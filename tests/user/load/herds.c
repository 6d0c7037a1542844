// SPDX-License-Identifier: BSD-2-Clause
/*
 * herds <n> [names]: n threads wait for the same thing, in one kind of call after the other. A few
 * events wake one of them each, or one event all. Then a signal ends the waits that are left. Lines
 * `bench: <name> <cycles> <woken>` say how long it takes from an event until all threads have
 * returned that it wakes. As crowd.c, the program switches the profile points before and sampling
 * after that: a QEMU plugin looks for the longest stretch with interrupts off in between.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>

#include "proc_profile.h"
#include "run.h"

#define STACK_BYTES (64 << 10)
#define NR_EVENTS   4
#define SIG	    SIGUSR1 /* blocked by all */
#define SIG_END	    SIGUSR2
#define TIMEOUT_S   100

#define FUTEX_WAIT 0
#define FUTEX_WAKE 1

static int nr, herd, nr_entered, nr_taken, nr_left;
static pid_t *tids;
static uint64_t start_cycles;
static int fds[2], *each; /* one descriptor for each thread */

static uint64_t rdtsc(void)
{
	uint32_t low, high;

	asm volatile("lfence; rdtsc; lfence" : "=a"(low), "=d"(high) : : "memory");
	return (uint64_t)high << 32 | low;
}

static long futex(int *word, int op, int value)
{
	return syscall(SYS_futex, word, op, value, NULL, NULL, 0);
}

/* For each kind of wait: how to prepare it, the call that waits, and the event. */

static const char byte[8] = { 1 };

static sigset_t the_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIG);
	return set;
}

static void send_signal(int i)
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

static long read_signal(int i)
{
	struct signalfd_siginfo info;

	return read(fds[0], &info, sizeof(info));
}

static long wait_for_signal(int i)
{
	sigset_t set = the_signal();

	return sigwaitinfo(&set, NULL);
}

static long poll_it(int i)
{
	struct pollfd one = { .fd = fds[0], .events = POLLIN };

	return poll(&one, 1, -1);
}

static long select_it(int i)
{
	fd_set set;

	if (fds[0] >= FD_SETSIZE)
		return -1;
	FD_ZERO(&set);
	FD_SET(fds[0], &set);
	return select(fds[0] + 1, &set, NULL, NULL, NULL);
}

static int epoll_target;

static void make_epoll(uint32_t events)
{
	struct epoll_event event = { .events = events };

	epoll_target = eventfd(0, EFD_SEMAPHORE);
	CHECK((fds[0] = epoll_create1(0)) >= 0);
	CHECK(!epoll_ctl(fds[0], EPOLL_CTL_ADD, epoll_target, &event));
}

static void make_edge_epoll(void)
{
	make_epoll(EPOLLIN | EPOLLET);
}

static void make_level_epoll(void)
{
	make_epoll(EPOLLIN);
}

static long wait_for_epoll(int i)
{
	struct epoll_event event;

	return epoll_wait(fds[0], &event, 1, -1);
}

static void write_target(int i)
{
	CHECK(write(epoll_target, byte, 8) == 8);
}

static void close_epoll(void)
{
	close(epoll_target);
}

/* An epoll for each thread, all of which watch one file. */
static void make_epolls(uint32_t events)
{
	struct epoll_event event = { .events = events };

	epoll_target = eventfd(0, EFD_SEMAPHORE);
	for (int i = 0; i < nr; i++) {
		CHECK((each[i] = epoll_create1(0)) >= 0);
		CHECK(!epoll_ctl(each[i], EPOLL_CTL_ADD, epoll_target, &event));
	}
}

static void make_all_epolls(void)
{
	make_epolls(EPOLLIN);
}

static void make_exclusive_epolls(void)
{
	make_epolls(EPOLLIN | EPOLLEXCLUSIVE | EPOLLET);
}

static long wait_for_own_epoll(int i)
{
	struct epoll_event event;

	return epoll_wait(each[i], &event, 1, -1);
}

static void close_epolls(void)
{
	for (int i = 0; i < nr; i++)
		close(each[i]);
	close(epoll_target);
}

static void make_timerfd(void)
{
	CHECK((fds[0] = timerfd_create(CLOCK_MONOTONIC, 0)) >= 0);
}

static void expire(int i)
{
	struct itimerspec soon = { .it_value.tv_nsec = 1 };

	CHECK(!timerfd_settime(fds[0], 0, &soon, NULL));
}

static long read_8(int i)
{
	char buf[8];

	return read(fds[0], buf, 8);
}

static void make_eventfd(void)
{
	CHECK((fds[0] = eventfd(0, EFD_SEMAPHORE)) >= 0);
}

static void write_8(int i)
{
	CHECK(write(fds[0], byte, 8) == 8);
}

static void make_pipe(void)
{
	CHECK(!pipe(fds));
}

static void make_stream(void)
{
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
}

static void make_datagrams(void)
{
	CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, fds));
}

static void write_other(int i)
{
	CHECK(write(fds[1], byte, 8) == 8);
}

static struct sockaddr_un name = { AF_UNIX, "/tmp/herd" };

static void make_listener(void)
{
	unlink(name.sun_path);
	CHECK((fds[0] = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0);
	CHECK(!bind(fds[0], (struct sockaddr *)&name, sizeof(name)) && !listen(fds[0], 1000));
}

static long accept_one(int i)
{
	return accept(fds[0], NULL, NULL);
}

static void connect_one(int i)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	CHECK(!connect(fd, (struct sockaddr *)&name, sizeof(name)));
}

/* A listener whose backlog is full. The threads want to connect, and each event accepts. */
static void make_full_listener(void)
{
	make_listener();
	CHECK(!listen(fds[0], 0));
	connect_one(0);
	for (int i = 0; i < nr; i++)
		CHECK((each[i] = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0);
}

static long connect_own(int i)
{
	return connect(each[i], (struct sockaddr *)&name, sizeof(name));
}

static void accept_event(int i)
{
	CHECK(accept(fds[0], NULL, NULL) >= 0);
}

/* A datagram socket whose queue is full. */
static void make_full_datagrams(void)
{
	make_datagrams();
	while (send(fds[1], byte, 8, MSG_DONTWAIT) == 8)
		;
}

static void make_full_pipe(void)
{
	static char page[4096];

	make_pipe();
	CHECK(!fcntl(fds[1], F_SETFL, O_NONBLOCK));
	while (write(fds[1], page, sizeof(page)) > 0)
		;
	CHECK(!fcntl(fds[1], F_SETFL, 0));
}

static long write_byte(int i)
{
	return write(fds[1], byte, 8);
}

static void read_page(int i)
{
	char page[8];

	CHECK(read(fds[0], page, sizeof(page)) == sizeof(page));
}

/* Each event unlocks the file, and the thread that gets the lock does it for the next one. */
static void open_locked(void)
{
	CHECK((fds[0] = open("/tmp/lock", O_RDWR | O_CREAT, 0600)) >= 0);
	for (int i = 0; i < nr; i++)
		CHECK((each[i] = open("/tmp/lock", O_RDWR)) >= 0);
}

static void make_flock(void)
{
	open_locked();
	CHECK(!flock(fds[0], LOCK_EX));
}

static int owner;

static long lock_own(int i)
{
	long ret = flock(each[i], LOCK_EX);

	if (!ret)
		__atomic_store_n(&owner, each[i], __ATOMIC_SEQ_CST);
	return ret;
}

static void unlock(int i)
{
	CHECK(!flock(i ? __atomic_load_n(&owner, __ATOMIC_SEQ_CST) : fds[0], LOCK_UN));
}

static struct flock64 whole(int type)
{
	return (struct flock64){ .l_type = type, .l_whence = SEEK_SET };
}

static void make_record(void)
{
	struct flock64 lock = whole(F_WRLCK);

	open_locked();
	CHECK(!fcntl(fds[0], F_OFD_SETLK, &lock));
}

static long lock_record(int i)
{
	struct flock64 lock = whole(F_WRLCK);
	long ret = fcntl(each[i], F_OFD_SETLKW, &lock);

	if (!ret)
		__atomic_store_n(&owner, each[i], __ATOMIC_SEQ_CST);
	return ret;
}

static void unlock_record(int i)
{
	struct flock64 lock = whole(F_UNLCK);
	int fd = i ? __atomic_load_n(&owner, __ATOMIC_SEQ_CST) : fds[0];

	CHECK(!fcntl(fd, F_OFD_SETLK, &lock));
}

static void close_each(void)
{
	for (int i = 0; i < nr; i++)
		close(each[i]);
}

static int word;

static long wait_for_word(int i)
{
	return futex(&word, FUTEX_WAIT, 0);
}

static void wake_word(int i)
{
	CHECK(futex(&word, FUTEX_WAKE, 1) == 1);
}

static struct timespec alarm_time;

static void set_alarm(void)
{
	CHECK(!clock_gettime(CLOCK_MONOTONIC, &alarm_time));
	alarm_time.tv_sec += 2;
}

static long sleep_until(int i)
{
	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &alarm_time, NULL) ? -1 : 0;
}

static void await_alarm(int i)
{
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &alarm_time, NULL))
		;
	start_cycles = rdtsc();
}

static void make_fifo(void)
{
	unlink("/tmp/fifo");
	CHECK(!mkfifo("/tmp/fifo", 0600));
}

static long open_fifo(int i)
{
	return (each[i] = open("/tmp/fifo", O_RDONLY));
}

static void open_writer(int i)
{
	CHECK((fds[1] = open("/tmp/fifo", O_WRONLY)) >= 0);
}

static const struct herd {
	const char *name;
	void (*make)(void);
	long (*wait)(int thread);
	void (*event)(int i);
	void (*end)(void);
	int wakes_all;
} herds[] = {
/* Each event wakes one thread. */
#define ONE(...)               \
	{                      \
		__VA_ARGS__, 0 \
	}
	ONE("signalfd_read", make_signalfd, read_signal, send_signal, NULL),
	ONE("sigwait", NULL, wait_for_signal, send_signal, NULL),
	ONE("epoll_wait", make_edge_epoll, wait_for_epoll, write_target, close_epoll),
	ONE("epolls_exclusive", make_exclusive_epolls, wait_for_own_epoll, write_target,
	    close_epolls),
	ONE("timerfd_read", make_timerfd, read_8, expire, NULL),
	ONE("eventfd_read", make_eventfd, read_8, write_8, NULL),
	ONE("pipe_read", make_pipe, read_8, write_other, NULL),
	ONE("pipe_write", make_full_pipe, write_byte, read_page, NULL),
	ONE("stream_receive", make_stream, read_8, write_other, NULL),
	ONE("datagram_receive", make_datagrams, read_8, write_other, NULL),
	ONE("datagram_send", make_full_datagrams, write_byte, read_page, NULL),
	ONE("accept", make_listener, accept_one, connect_one, NULL),
	ONE("connect", make_full_listener, connect_own, accept_event, close_each),
	ONE("flock", make_flock, lock_own, unlock, close_each),
	ONE("record_lock", make_record, lock_record, unlock_record, close_each),
	ONE("futex", NULL, wait_for_word, wake_word, NULL),
/* One event wakes all. */
#define ALL(...)               \
	{                      \
		__VA_ARGS__, 1 \
	}
	ALL("signalfd_poll", make_signalfd, poll_it, send_signal, take_signal),
	ALL("epoll_wait_all", make_level_epoll, wait_for_epoll, write_target, close_epoll),
	ALL("epoll_poll", make_level_epoll, poll_it, write_target, close_epoll),
	ALL("epolls", make_all_epolls, wait_for_own_epoll, write_target, close_epolls),
	ALL("timerfd_poll", make_timerfd, poll_it, expire, NULL),
	ALL("eventfd_select", make_eventfd, select_it, write_8, NULL),
	ALL("sleep", set_alarm, sleep_until, await_alarm, NULL),
	ALL("fifo_open", make_fifo, open_fifo, open_writer, close_each),
};

#define NR_HERDS (int)(sizeof(herds) / sizeof(*herds))

/* The threads */

static void add(int *counter)
{
	__atomic_add_fetch(counter, 1, __ATOMIC_SEQ_CST);
}

static int get(int *counter)
{
	return __atomic_load_n(counter, __ATOMIC_SEQ_CST);
}

static void *run_thread(void *arg)
{
	int i = (int)(long)arg, now, last = -1;

	tids[i] = syscall(SYS_gettid);
	for (;;) {
		while ((now = get(&herd)) == last || now < 0)
			futex(&herd, FUTEX_WAIT, now);
		if (now == NR_HERDS)
			return NULL;
		last = now;
		add(&nr_entered);
		if (herds[now].wait(i) >= 0)
			add(&nr_taken);
		add(&nr_left);
	}
}

static void wait_for(int *counter, int least, const char *what)
{
	long start_ms = now_ms();

	while (get(counter) < least && now_ms() < start_ms + TIMEOUT_S * 1000)
		sched_yield();
	if (!CHECK(get(counter) >= least))
		printf("%s: %d of %d\n", what, get(counter), least);
}

static void run_herd(int index)
{
	const struct herd *this = &herds[index];
	int nr_events = this->wakes_all ? 1 : NR_EVENTS;
	int nr_woken = this->wakes_all ? nr : NR_EVENTS;
	long start_ms = now_ms();

	nr_entered = nr_taken = nr_left = 0;
	fds[0] = fds[1] = -1;
	if (this->make)
		this->make();
	__atomic_store_n(&herd, index, __ATOMIC_SEQ_CST);
	CHECK(futex(&herd, FUTEX_WAKE, nr) >= 0);
	wait_for(&nr_entered, nr, this->name);
	sleep_ms(20); /* the last ones reach their call */
	start_cycles = rdtsc();
	for (int i = 0; i < nr_events; i++) {
		this->event(i);
		wait_for(&nr_taken, this->wakes_all ? nr : i + 1, this->name);
	}
	printf("bench: %s %llu %d\n", this->name, (unsigned long long)(rdtsc() - start_cycles),
	       nr_woken);
	CHECK(get(&nr_taken) == nr_woken);
	/* Again for those that got the signal before they were in their call. */
	while (get(&nr_left) < nr && CHECK(now_ms() < start_ms + TIMEOUT_S * 1000)) {
		for (int i = 0; i < nr && get(&nr_left) < nr; i++)
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

static int is_wanted(const char *herd_name, int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		if (!strcmp(argv[i], herd_name))
			return 1;
	}
	return argc <= 2;
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
		if (is_wanted(herds[i].name, argc, argv))
			run_herd(i);
	}
	control("/proc/profile/heatmap", "off");
	return check_finish("herds");
}
