// SPDX-License-Identifier: BSD-2-Clause
/*
 * The process's own data and the system's, and the calls that set them: IDs, limits, times,
 * priorities.
 */
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "run.h"

static int uids_are(uid_t real, uid_t effective, uid_t saved)
{
	uid_t r = -1, e = -1, s = -1;

	return !getresuid(&r, &e, &s) && r == real && e == effective && s == saved &&
	       getuid() == real && geteuid() == effective;
}

static int gids_are(gid_t real, gid_t effective, gid_t saved)
{
	gid_t r = -1, e = -1, s = -1;

	return !getresgid(&r, &e, &s) && r == real && e == effective && s == saved &&
	       getgid() == real && getegid() == effective;
}

/* Makes raw system calls, because the C library sets the IDs of all threads in its own way. */
static void change_ids(void)
{
	gid_t groups[8] = { 0 };

	CHECK(uids_are(0, 0, 0) && gids_are(0, 0, 0));
	CHECK(!syscall(SYS_setgroups, 3, ((gid_t[]){ 5, 7, 6 })));
	CHECK(getgroups(0, NULL) == 3 && getgroups(8, groups) == 3);
	CHECK(groups[0] + groups[1] + groups[2] == 18);
	FAILS(getgroups(2, groups), EINVAL);
	CHECK(!syscall(SYS_setresgid, 10, 11, 12) && gids_are(10, 11, 12));
	CHECK(!syscall(SYS_setresgid, -1, -1, 13) && gids_are(10, 11, 13));
	CHECK(!syscall(SYS_setregid, -1, 10) && gids_are(10, 10, 13));
	CHECK(!syscall(SYS_setresuid, 20, 0, 21) && uids_are(20, 0, 21));
	CHECK(!syscall(SYS_setresuid, -1, 20, -1) && uids_are(20, 20, 21));
	/* No longer root: it can only switch between its three IDs. */
	CHECK(!syscall(SYS_setuid, 21) && uids_are(20, 21, 21));
	CHECK(!syscall(SYS_setreuid, -1, 20) && uids_are(20, 20, 21));
	FAILS(syscall(SYS_setuid, 0), EPERM);
	FAILS(syscall(SYS_setresuid, 0, -1, -1), EPERM);
	FAILS(syscall(SYS_setgroups, 0, NULL), EPERM);
	FAILS(syscall(SYS_setgid, 99), EPERM);
	CHECK(!syscall(SYS_setgid, 13) && gids_are(10, 13, 13));
	CHECK(kill(getppid(), 0) == -1 && errno == EPERM); /* the parent is root */
	CHECK(uids_are(20, 20, 21));
}

TEST(ids)
{
	pid_t pid = fork_child();

	if (!pid) {
		change_ids();
		child_exit(0);
	}
	CHECK(child_status(pid) == 0);
	CHECK(uids_are(0, 0, 0) && gids_are(0, 0, 0));
	pid = fork_child();
	if (!pid) { /* root gives up all three at once */
		CHECK(!syscall(SYS_setgid, 8) && !syscall(SYS_setuid, 9) && uids_are(9, 9, 9));
		CHECK(gids_are(8, 8, 8));
		FAILS(syscall(SYS_setuid, 0), EPERM);
		child_exit(0);
	}
	CHECK(child_status(pid) == 0);
	pid = fork_child();
	if (!pid) { /* a process may always send signals to itself */
		CHECK(!syscall(SYS_setresuid, 1, 2, 3) && uids_are(1, 2, 3));
		CHECK(!kill(getpid(), 0) && !raise(SIGCONT) && !kill(getpid(), SIGCHLD));
		child_exit(0);
	}
	CHECK(child_status(pid) == 0);
	CHECK_ERROR(EFAULT, SYS_getresuid, 8, 8, 8);
	CHECK_ERROR(EINVAL, SYS_setuid, -1);
}

TEST(priority)
{
	pid_t pid = fork_child();

	if (!pid) {
		CHECK(getpriority(PRIO_PROCESS, 0) == 0);
		CHECK(!setpriority(PRIO_PROCESS, 0, 5) && getpriority(PRIO_PROCESS, 0) == 5);
		/* 20 minus the nice value. */
		CHECK(syscall(SYS_getpriority, PRIO_PROCESS, 0) == 15);
		CHECK(!setpriority(PRIO_PROCESS, getpid(), 100));
		CHECK(getpriority(PRIO_PROCESS, getpid()) == 19);
		CHECK(nice(-4) == 15);
		FAILS(setpriority(PRIO_PROCESS, 1 << 30, 5), ESRCH);
		errno = 0;
		FAILS(getpriority(PRIO_PROCESS, 1 << 30), ESRCH);
		FAILS(getpriority(77, 0), EINVAL);
		pid = fork_child();
		if (!pid)
			child_exit(getpriority(PRIO_PROCESS, 0));
		CHECK(child_status(pid) == EXITED(15));
		child_exit(0);
	}
	CHECK(child_status(pid) == 0 && getpriority(PRIO_PROCESS, 0) == 0);
}

static long us_of(const struct timeval *time)
{
	return time->tv_sec * 1000000 + time->tv_usec;
}

/* Returns the process's page faults, minflt in /proc/self/stat: the tenth number. */
static long stat_faults(void)
{
	char line[1024] = "";
	int fd = open("/proc/self/stat", O_RDONLY);
	const char *end;
	long nr = -1;

	if (fd < 0 || read(fd, line, sizeof(line) - 1) <= 0 || !(end = strrchr(line, ')')) ||
	    sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %ld", &nr) != 1)
		nr = -1;
	close(fd);
	return nr;
}

TEST(usage)
{
	struct rusage before, usage, thread;
	struct tms times_now = { 0 };
	long end_ms = now_ms() + 10000;
	volatile char *pages;

	CHECK(!getrusage(RUSAGE_SELF, &before));
	do {
		for (int i = 0; i < 1000; i++)
			asm volatile("");
		CHECK(!getrusage(RUSAGE_SELF, &usage));
	} while (us_of(&usage.ru_utime) + us_of(&usage.ru_stime) < 50000 && now_ms() < end_ms);
	CHECK(us_of(&usage.ru_utime) + us_of(&usage.ru_stime) >= 50000);
	CHECK(us_of(&usage.ru_utime) >= us_of(&before.ru_utime));
	CHECK(us_of(&usage.ru_stime) >= us_of(&before.ru_stime));
	CHECK(!getrusage(RUSAGE_THREAD, &thread));
	CHECK(us_of(&thread.ru_utime) + us_of(&thread.ru_stime) >= 40000);
	CHECK(times(&times_now) > 0 && times_now.tms_utime + times_now.tms_stime >= 4);
	pages = malloc(100 * 4096);
	for (int i = 0; i < 100; i++)
		pages[i * 4096] = 1;
	CHECK(!getrusage(RUSAGE_SELF, &before));
	CHECK(before.ru_minflt >= usage.ru_minflt + 90);
	CHECK(before.ru_maxrss > 0);
	CHECK(stat_faults() >= before.ru_minflt);
	CHECK(!getrusage(RUSAGE_SELF, &usage) && stat_faults() <= usage.ru_minflt + 20);
	free((void *)pages);
	FAILS(getrusage(77, &usage), EINVAL);
	CHECK_ERROR(EFAULT, SYS_getrusage, RUSAGE_SELF, 8);
	CHECK_ERROR(EFAULT, SYS_times, 8);
	CHECK(times(NULL) != -1);
}

TEST(sysinfo)
{
	struct sysinfo info, later;
	struct utsname name;

	memset(&info, 0x55, sizeof(info));
	CHECK(!sysinfo(&info) && info.mem_unit >= 1 && info.procs >= 2);
	CHECK((uint64_t)info.totalram * info.mem_unit >= 16 << 20 && info.freeram <= info.totalram);
	CHECK(info.freeram > 0 && info.totalhigh == 0 && info.freeswap <= info.totalswap);
	sleep_ms(1100);
	CHECK(!sysinfo(&later) && later.uptime > info.uptime && later.uptime < info.uptime + 60);
	CHECK_ERROR(EFAULT, SYS_sysinfo, 8);
	CHECK(!uname(&name) && !strcmp(name.machine, "x86_64") && !strcmp(name.sysname, "Linux"));
	CHECK(name.release[0] >= '3' && strlen(name.nodename) < 65 && strlen(name.version) < 65);
	CHECK_ERROR(EFAULT, SYS_uname, 8);
}

TEST(random)
{
	static unsigned char first[4096], second[4096];
	int counts[256] = { 0 }, nr_odd = 0;

	CHECK(getrandom(first, sizeof(first), 0) == sizeof(first));
	CHECK(getrandom(second, sizeof(second), GRND_NONBLOCK) == sizeof(second));
	CHECK(memcmp(first, second, sizeof(first)));
	for (int i = 0; i < 4096; i++)
		counts[first[i]]++;
	for (int i = 0; i < 256; i++)
		nr_odd += counts[i] == 0 || counts[i] > 64; /* 16 on average */
	CHECK(nr_odd < 3);
	CHECK(getrandom(first, 0, 0) == 0 && getrandom(first, 10, GRND_RANDOM) == 10);
	CHECK_ERROR(EINVAL, SYS_getrandom, first, 8, 0x100);
	CHECK_ERROR(EINVAL, SYS_getrandom, first, 8, GRND_RANDOM | 4 /* GRND_INSECURE */);
	CHECK_ERROR(EFAULT, SYS_getrandom, 8, 8, 0);
}

TEST(limits)
{
	struct rlimit limit, old;
	int fds[16], nr = 0, fd;

	CHECK(!getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur >= 1 << 20);
	CHECK(limit.rlim_cur <= limit.rlim_max);
	CHECK(!getrlimit(RLIMIT_NOFILE, &old) && old.rlim_cur >= 256);
	for (fd = 3; fd < 64; fd++)
		close(fd);
	fd = dup(1);
	limit = old;
	limit.rlim_cur = fd + 10;
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	while (nr < 16 && (fds[nr] = dup(1)) >= 0)
		nr++;
	CHECK(nr == 9 && errno == EMFILE);
	FAILS(open("/", O_RDONLY), EMFILE);
	FAILS(pipe(fds + 12), EMFILE);
	FAILS(fcntl(1, F_DUPFD, fd + 10), EINVAL);
	FAILS(dup2(1, fd + 10), EBADF);
	close(fds[--nr]);
	FAILS(pipe(fds + 12), EMFILE); /* one free descriptor is not enough, and stays free */
	CHECK((fds[nr++] = open("/", O_RDONLY)) >= 0);
	while (nr)
		close(fds[--nr]);
	close(fd);
	CHECK(!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_max == old.rlim_max);
	CHECK(!syscall(SYS_prlimit64, getpid(), RLIMIT_NOFILE, &old, &limit));
	CHECK(limit.rlim_max == old.rlim_max && limit.rlim_cur != old.rlim_cur);
	limit.rlim_cur = limit.rlim_max + 1;
	if (limit.rlim_cur)
		FAILS(setrlimit(RLIMIT_NOFILE, &limit), EINVAL);
	CHECK_ERROR(EINVAL, SYS_prlimit64, 0, 99, NULL, &limit);
	CHECK_ERROR(ESRCH, SYS_prlimit64, 1 << 30, RLIMIT_STACK, NULL, &limit);
	CHECK_ERROR(EFAULT, SYS_prlimit64, 0, RLIMIT_STACK, NULL, 8);
	CHECK_ERROR(EFAULT, SYS_prlimit64, 0, RLIMIT_STACK, 8, NULL);
}

/* The kernel's log: its size, reading all of it, and its end. */
TEST(syslog)
{
	int size = klogctl(10, NULL, 0), nr;
	char *all, *tail;

	CHECK(size >= 1024);
	all = malloc(size);
	tail = malloc(size);
	nr = klogctl(3, all, size);
	CHECK(nr > 0 && nr <= size);
	if (nr > 200) {
		int some = klogctl(3, tail, 200); /* the last whole lines that fit */

		CHECK(some >= 0 && some <= 200);
	}
	FAILS(klogctl(3, NULL, 10), EINVAL);
	FAILS(klogctl(3, all, -1), EINVAL);
	CHECK(klogctl(3, all, 0) == 0);
	FAILS(klogctl(99, all, 10), EINVAL);
	CHECK(klogctl(9, NULL, 0) >= 0); /* bytes not read yet */
	free(all);
	free(tail);
}

TEST(cpus)
{
	unsigned int cpu = 999, node = 999;
	cpu_set_t set;

	CHECK(sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) >= 1);
	CHECK(!syscall(SYS_getcpu, &cpu, &node, NULL) && CPU_ISSET(cpu, &set));
	CHECK(!sched_yield());
}

/* A process that a thread forks gets the name of the thread. */
static void *fork_named(void *arg)
{
	char name[16] = "";
	pid_t pid;

	CHECK(!prctl(PR_SET_NAME, "threads name"));
	pid = fork_child();
	if (!pid) {
		int fd = open("/proc/self/comm", O_RDONLY);

		CHECK(read(fd, name, sizeof(name)) == 13 && !memcmp(name, "threads name\n", 13));
		child_exit(0);
	}
	CHECK(child_status(pid) == 0);
	return arg;
}

TEST(names)
{
	pthread_t thread;
	char name[16] = "";
	pid_t pid;

	CHECK(!prctl(PR_SET_NAME, "a name of more than 15") && !prctl(PR_GET_NAME, name));
	CHECK(!strcmp(name, "a name of more "));
	pid = fork_child();
	if (!pid) {
		CHECK(!prctl(PR_GET_NAME, name) && !strcmp(name, "a name of more "));
		child_exit(0);
	}
	CHECK(child_status(pid) == 0 && !prctl(PR_SET_NAME, "ids"));
	CHECK(!pthread_create(&thread, NULL, fork_named, NULL) && !pthread_join(thread, NULL));
	CHECK(!prctl(PR_GET_NAME, name) && !strcmp(name, "ids"));
	FAILS(prctl(12345, 0, 0, 0, 0), EINVAL);
}

int main(int argc, char **argv)
{
	return run_tests("ids", argc, argv);
}
