// SPDX-License-Identifier: BSD-2-Clause
/*
 * SCHED_FIFO and SCHED_RR: who may set them, what children inherit, and in which order threads run
 * that share a CPU. Calls are made without the C library, as musl's refuse them.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

#include "run.h"

#define OTHER	      0
#define FIFO	      1
#define RR	      2
#define RESET_ON_FORK 0x40000000

/* Linux's; its header clashes with those of the C libraries. */
struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
	uint32_t util[2];
};

static int set(pid_t pid, int policy, int priority)
{
	return (int)syscall(SYS_sched_setscheduler, pid, policy, &priority);
}

static int policy_of(pid_t pid)
{
	return (int)syscall(SYS_sched_getscheduler, pid);
}

static int priority_of(pid_t pid)
{
	int priority = -1;

	CHECK(!syscall(SYS_sched_getparam, pid, &priority));
	return priority;
}

static void stay_on_one_cpu(void)
{
	cpu_set_t all, one;

	CHECK(!sched_getaffinity(0, sizeof(all), &all));
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		CHECK(!sched_setaffinity(0, sizeof(one), &one));
		return;
	}
}

TEST(policies)
{
	int one = 1, zero = 0, hundred = 100;
	struct timespec slice;

	CHECK(policy_of(0) == OTHER && priority_of(0) == 0);
	CHECK(syscall(SYS_sched_get_priority_min, FIFO) == 1);
	CHECK(syscall(SYS_sched_get_priority_max, RR) == 99);
	CHECK(syscall(SYS_sched_get_priority_max, OTHER) == 0);
	CHECK_ERROR(EINVAL, SYS_sched_get_priority_max, 77);
	CHECK_ERROR(EINVAL, SYS_sched_setscheduler, 0, FIFO, &zero);
	CHECK_ERROR(EINVAL, SYS_sched_setscheduler, 0, FIFO, &hundred);
	CHECK_ERROR(EINVAL, SYS_sched_setscheduler, 0, OTHER, &one);
	CHECK_ERROR(EINVAL, SYS_sched_setscheduler, 0, 77, &zero);
	CHECK_ERROR(EINVAL, SYS_sched_setscheduler, 0, -1, &zero);
	CHECK_ERROR(EINVAL, SYS_sched_setscheduler, -1, FIFO, &one);
	CHECK_ERROR(EINVAL, SYS_sched_setscheduler, 0, FIFO, NULL);
	CHECK_ERROR(EFAULT, SYS_sched_setscheduler, 0, FIFO, 8);
	CHECK_ERROR(ESRCH, SYS_sched_setscheduler, 1 << 30, FIFO, &one);
	CHECK_ERROR(EINVAL, SYS_sched_setparam, 0, &one);
	CHECK(!syscall(SYS_sched_setparam, 0, &zero));

	CHECK(!set(0, FIFO, 99) && policy_of(0) == FIFO && priority_of(0) == 99);
	CHECK(!syscall(SYS_sched_rr_get_interval, 0, &slice) && !slice.tv_sec && !slice.tv_nsec);
	CHECK(!syscall(SYS_sched_setparam, 0, &one) && priority_of(0) == 1);
	CHECK_ERROR(EINVAL, SYS_sched_setparam, 0, &zero);
	CHECK(policy_of(0) == FIFO && priority_of(0) == 1);
	CHECK(!set(0, RR, 50) && policy_of(0) == RR && priority_of(0) == 50);
	CHECK(!syscall(SYS_sched_rr_get_interval, 0, &slice));
	CHECK(!slice.tv_sec && slice.tv_nsec > 0);
	CHECK(!set(0, OTHER, 0) && policy_of(0) == OTHER && priority_of(0) == 0);
}

TEST(attributes)
{
	struct {
		struct attr attr;
		uint64_t rest;
	} long_one = { .attr = { .size = sizeof(long_one), .policy = FIFO, .priority = 7 } };
	struct attr attr = { .size = 48, .policy = RR, .flags = 1, .priority = 20 }, got;

	CHECK(!syscall(SYS_sched_setattr, 0, &attr, 0));
	CHECK(policy_of(0) == (RR | RESET_ON_FORK) && priority_of(0) == 20);
	memset(&got, 0x55, sizeof(got));
	CHECK(!syscall(SYS_sched_getattr, 0, &got, sizeof(got), 0));
	CHECK(got.size == sizeof(got) && got.policy == RR && got.flags == 1 && !got.nice);
	CHECK(got.priority == 20 && !got.runtime && !got.deadline && !got.period);
	memset(&got, 0x55, sizeof(got));
	CHECK(!syscall(SYS_sched_getattr, 0, &got, 48, 0));
	CHECK(got.size == 48 && got.priority == 20 && got.util[0] == 0x55555555);
	CHECK_ERROR(EINVAL, SYS_sched_getattr, 0, &got, 47, 0);
	CHECK_ERROR(EINVAL, SYS_sched_getattr, 0, &got, 8192, 0);
	CHECK_ERROR(EINVAL, SYS_sched_getattr, 0, &got, 48, 1);
	CHECK_ERROR(EINVAL, SYS_sched_getattr, 0, NULL, 48, 0);

	/* Bytes behind the members that a kernel knows must be zero. */
	CHECK(!syscall(SYS_sched_setattr, 0, &long_one, 0) && priority_of(0) == 7);
	CHECK(policy_of(0) == FIFO);
	long_one.rest = 1;
	CHECK_ERROR(E2BIG, SYS_sched_setattr, 0, &long_one, 0);
	CHECK(long_one.attr.size >= sizeof(attr) && long_one.attr.size < sizeof(long_one));
	attr.size = 40;
	CHECK_ERROR(E2BIG, SYS_sched_setattr, 0, &attr, 0);
	CHECK(attr.size >= sizeof(attr));
	attr.size = 48;
	CHECK_ERROR(EINVAL, SYS_sched_setattr, 0, &attr, 1);
	attr.flags = 1ull << 40;
	CHECK_ERROR(EINVAL, SYS_sched_setattr, 0, &attr, 0);
	/* Keeps the policy, then both. */
	attr = (struct attr){ .size = 48, .policy = OTHER, .flags = 8, .priority = 9 };
	CHECK(!syscall(SYS_sched_setattr, 0, &attr, 0));
	CHECK(policy_of(0) == FIFO && priority_of(0) == 9);
	attr = (struct attr){ .size = 48, .flags = 8 | 16, .priority = 44 };
	CHECK(!syscall(SYS_sched_setattr, 0, &attr, 0));
	CHECK(policy_of(0) == FIFO && priority_of(0) == 9);
	attr = (struct attr){ .size = 48, .nice = 3 };
	CHECK(!syscall(SYS_sched_setattr, 0, &attr, 0) && policy_of(0) == OTHER);
	CHECK(getpriority(PRIO_PROCESS, 0) == 3);
	attr.nice = 0;
	CHECK(!syscall(SYS_sched_setattr, 0, &attr, 0));
}

TEST(rights)
{
	struct rlimit limit = { 10, 20 };
	struct attr nicer = { .size = 48, .nice = -5 };
	pid_t pid = fork_child();
	int five = 5, zero = 0;

	if (pid) {
		CHECK(child_status(pid) == EXITED(0));
		CHECK(policy_of(0) == OTHER);
		return;
	}
	CHECK(!setuid(1000));
	CHECK(!getrlimit(RLIMIT_RTPRIO, &limit) && !limit.rlim_cur);
	CHECK_ERROR(EPERM, SYS_sched_setscheduler, 0, FIFO, &five);
	CHECK_ERROR(EPERM, SYS_sched_setscheduler, 1, OTHER, &zero);
	CHECK_ERROR(EPERM, SYS_sched_setattr, 0, &nicer, 0);
	CHECK(policy_of(0) == OTHER);
	child_exit(0);
}

TEST(limit)
{
	struct rlimit limit = { 10, 20 };
	pid_t pid = fork_child();
	int nine = 9, ten = 10, eleven = 11, zero = 0;

	if (pid) {
		CHECK(child_status(pid) == EXITED(0));
		return;
	}
	/* In some containers, root has not all rights. */
	if (setrlimit(RLIMIT_RTPRIO, &limit) && !check_on_lego())
		child_exit(0);
	CHECK(!getrlimit(RLIMIT_RTPRIO, &limit) && limit.rlim_cur == 10 && !setuid(1000));
	CHECK_ERROR(EPERM, SYS_sched_setscheduler, 0, FIFO, &eleven);
	CHECK(!set(0, FIFO, ten) && !set(0, RR, ten));
	limit.rlim_cur = 0;
	CHECK(!setrlimit(RLIMIT_RTPRIO, &limit));
	/* It may go down, but not up, nor to the other policy. */
	CHECK(!syscall(SYS_sched_setparam, 0, &nine) && priority_of(0) == 9);
	CHECK_ERROR(EPERM, SYS_sched_setparam, 0, &ten);
	CHECK_ERROR(EPERM, SYS_sched_setscheduler, 0, FIFO, &nine);
	CHECK(!set(0, RR | RESET_ON_FORK, 9));
	CHECK_ERROR(EPERM, SYS_sched_setscheduler, 0, OTHER, &zero);
	CHECK(!set(0, OTHER | RESET_ON_FORK, 0) && policy_of(0) == (OTHER | RESET_ON_FORK));
	child_exit(0);
}

/* Returns the fields of /proc/self/stat that show a policy. */
static void read_stat(int *priority, int *rt_priority, int *policy)
{
	int fd = open("/proc/self/stat", O_RDONLY);
	char text[1024] = "", *at;
	long n = read(fd, text, sizeof(text) - 1);

	close(fd);
	at = strrchr(text, ')');
	CHECK(n > 0 && at);
	CHECK(sscanf(at,
		     ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %d %*d"
		     " %*d %*d %*u %*u %*d %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u"
		     " %*d %*d %d %d",
		     priority, rt_priority, policy) == 3);
}

TEST(fork)
{
	int priority, rt_priority, policy;
	pid_t pid;

	CHECK(!set(0, RR, 30));
	pid = fork_child();
	if (!pid) {
		CHECK(policy_of(0) == RR && priority_of(0) == 30);
		read_stat(&priority, &rt_priority, &policy);
		CHECK(priority == -31 && rt_priority == 30 && policy == RR);
		child_exit(0);
	}
	CHECK(child_status(pid) == EXITED(0));
	CHECK(!set(0, FIFO | RESET_ON_FORK, 30) && policy_of(0) == (FIFO | RESET_ON_FORK));
	pid = fork_child();
	if (!pid) {
		CHECK(policy_of(0) == OTHER && priority_of(0) == 0);
		read_stat(&priority, &rt_priority, &policy);
		CHECK(priority == 20 && rt_priority == 0 && policy == OTHER);
		child_exit(0);
	}
	CHECK(child_status(pid) == EXITED(0));
	CHECK(!set(0, OTHER, 0));
}

/* The letters of the children, in the order in which they ran. */
static struct {
	int nr, is_over;
	char text[200];
} * shared;

static void write_letter(char letter)
{
	shared->text[__atomic_fetch_add(&shared->nr, 1, __ATOMIC_SEQ_CST) % 199] = letter;
}

/*
 * Has a child do the rest of a test. Returns 0 in the child, and 1 when it has ended. Returns 1 at
 * once on Linux, which shares the CPUs with the host's other programs and throttles all together.
 */
static int is_done_by_child(void)
{
	pid_t pid;

	if (!check_on_lego())
		return 1;
	pid = fork_child();
	if (pid)
		CHECK(child_status(pid) == EXITED(0));
	return pid != 0;
}

static void begin_order(void)
{
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	stay_on_one_cpu();
	CHECK(!set(0, FIFO, 90)); /* until it waits, no child runs */
}

static void end_order(const char *expected)
{
	while (waitpid(-1, NULL, 0) > 0)
		;
	CHECK(!strcmp(shared->text, expected) || !printf("FAIL: %s\n", shared->text));
	CHECK(!set(0, OTHER, 0));
	munmap(shared, 4096);
}

/* Starts a child that runs when the caller waits. */
static void start(char letter, int policy, int priority, int yields)
{
	pid_t pid = fork_child();

	if (pid) {
		CHECK(!set(pid, policy, priority));
		return;
	}
	for (int i = 0; i <= yields; i++) {
		write_letter(letter);
		if (i < yields)
			sched_yield();
	}
	_exit(0);
}

/*
 * The highest runs first. The priority of each child was lowered, so the last one goes before its
 * equals; one that yields goes behind them.
 */
TEST(order)
{
	if (is_done_by_child())
		return;
	begin_order();
	start('o', OTHER, 0, 0);
	start('a', FIFO, 10, 2);
	start('b', FIFO, 10, 1);
	start('c', FIFO, 20, 3);
	start('d', RR, 10, 0);
	start('e', FIFO, 5, 0);
	end_order("ccccdbabaaeo");
	child_exit(0);
}

/* A thread that wakes preempts a lower one at once, not only when that has used up its share. */
TEST(wakeup)
{
	long start_ms;
	pid_t pid;

	if (is_done_by_child())
		return;
	begin_order();
	pid = fork_child();
	if (!pid) {
		CHECK(!set(0, FIFO, 10));
		write_letter('l');
		while (!__atomic_load_n(&shared->is_over, __ATOMIC_ACQUIRE))
			;
		write_letter('L');
		_exit(0);
	}
	sleep_ms(50);
	write_letter('H');
	start_ms = now_ms();
	/* The other one's share is 950 ms. A busy host may be late, too. */
	for (int i = 0; i < 20; i++)
		sleep_ms(2);
	CHECK(now_ms() - start_ms < 10000);
	write_letter('H');
	__atomic_store_n(&shared->is_over, 1, __ATOMIC_RELEASE);
	end_order("lHHL");
	child_exit(0);
}

/*
 * Equals of SCHED_RR share a CPU; those of SCHED_FIFO do not. The first one runs until it sees that
 * the other one has run, or for this time.
 */
static void share_cpu(int policy, long most_ms, const char *expected)
{
	pid_t pid;

	if (is_done_by_child())
		return;
	begin_order();
	for (char letter = 'a'; letter <= 'b'; letter++) {
		pid = fork_child();
		if (!pid) {
			struct timespec used = { 0 };

			write_letter(letter);
			while (__atomic_load_n(&shared->nr, __ATOMIC_RELAXED) < 2 &&
			       used.tv_sec * 1000 + used.tv_nsec / 1000000 < most_ms)
				clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
			write_letter(letter - 'a' + 'A');
			_exit(0);
		}
		CHECK(!set(pid, policy, 10));
	}
	end_order(expected);
	child_exit(0);
}

TEST(round_robin)
{
	share_cpu(RR, 10000, "baAB");
	share_cpu(FIFO, 150, "bBaA");
}

/* A real-time thread in an endless loop leaves others a little time, on this kernel one in 20. */
TEST(throttle)
{
	pid_t loop, other;
	int fd = open("/proc/sys/kernel/sched_rt_runtime_us", O_RDWR);
	char text[16] = "";
	long ms[2];

	if (!check_on_lego())
		return;
	CHECK(read(fd, text, sizeof(text) - 1) > 0 && !strcmp(text, "950000\n"));
	CHECK(pwrite(fd, "1000001\n", 8, 0) == -1 && errno == EINVAL);
	CHECK(pwrite(fd, "-2\n", 3, 0) == -1 && errno == EINVAL);
	CHECK(pwrite(fd, "-1\n", 3, 0) == 3 && pwrite(fd, "500000\n", 7, 0) == 7);
	if (fork_child()) {
		CHECK(wait(NULL) > 0);
		CHECK(pwrite(fd, "950000\n", 7, 0) == 7);
		close(fd);
		return;
	}
	begin_order();
	loop = fork_child();
	if (!loop) {
		CHECK(!set(0, FIFO, 50));
		for (;;)
			;
	}
	other = fork_child();
	if (!other) {
		CHECK(!set(0, OTHER, 0));
		for (;;)
			__atomic_fetch_add(&shared->nr, 1, __ATOMIC_RELAXED);
	}
	sleep_ms(2000);
	CHECK(!kill(loop, SIGKILL) && !kill(other, SIGKILL));
	for (int i = 0; i < 2; i++) {
		struct rusage usage;

		CHECK(wait4(-1, NULL, 0, &usage) > 0);
		ms[i] = usage.ru_utime.tv_sec * 1000 + usage.ru_utime.tv_usec / 1000;
	}
	/* Half of the time each, in periods of a second. */
	CHECK(ms[0] + ms[1] > 1000 && ms[0] < 3 * ms[1] && ms[1] < 3 * ms[0]);
	child_exit(0);
}

int main(int argc, char **argv)
{
	return run_tests("realtime", argc, argv);
}
