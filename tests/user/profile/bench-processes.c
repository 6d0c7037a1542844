// SPDX-License-Identifier: BSD-2-Clause
/*
 * bench-processes processes|timers CROWD N: operations on processes that sleep, or on POSIX timers
 * that run. crowds.h says what is printed.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "crowds.h"

static pid_t *pids;

static pid_t make_sleeper(void)
{
	pid_t pid = fork();

	if (!pid) {
		for (;;)
			pause();
	}
	check(pid > 0, "fork");
	return pid;
}

static void fork_and_wait_for_any(long i)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	check(pid > 0 && wait(NULL) == pid, "wait");
}

static void replace_process(long i)
{
	check(!kill(pids[i], SIGKILL), "kill");
	check(waitpid(pids[i], NULL, 0) == pids[i], "waitpid");
	pids[i] = make_sleeper();
}

static void find_process(long i)
{
	check(!kill(pids[i], 0), "kill 0");
}

/* Calls that find another process or thread by its number. */
static void use_process(long i)
{
	pid_t pid = pids[i];
	long buf[32] = { 0 };

	check(getpgid(pid) >= 0 && getsid(pid) >= 0, "getpgid");
	check(!syscall(SYS_sched_getscheduler, pid) && !syscall(SYS_sched_getparam, pid, buf),
	      "sched_getparam");
	check(!syscall(SYS_sched_rr_get_interval, pid, buf), "sched_rr_get_interval");
	check(!syscall(SYS_sched_getattr, pid, buf, 48, 0), "sched_getattr");
	check(syscall(SYS_sched_getaffinity, pid, sizeof(buf), buf) > 0, "sched_getaffinity");
	check(!syscall(SYS_sched_setaffinity, pid, sizeof(buf), buf), "sched_setaffinity");
	check(!syscall(SYS_sched_setscheduler, pid, 0, (int[1]){ 0 }), "sched_setscheduler");
	check(!setpriority(PRIO_PROCESS, pid, 0), "setpriority");
	check(!getpriority(PRIO_PROCESS, pid), "getpriority");
	check(!syscall(SYS_prlimit64, pid, RLIMIT_CORE, NULL, buf), "prlimit64");
	check(!syscall(SYS_tkill, pid, 0) && !syscall(SYS_tgkill, pid, pid, 0), "tkill");
	check(!syscall(SYS_get_robust_list, pid, buf, buf + 1), "get_robust_list");
	check(!syscall(SYS_clock_gettime, ~pid << 3 | 2, buf), "clock_gettime");
}

static void look_at_child(long i)
{
	check(waitpid(pids[i], NULL, WNOHANG) == 0, "WNOHANG");
}

static void open_stat(long i)
{
	char path[40], text[1000];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pids[i]);
	fd = open(path, O_RDONLY);
	check(fd >= 0 && read(fd, text, sizeof(text)) > 0 && !close(fd), path);
}

/* Moves a process into a group of its own, signals that group, and moves the process back. */
static void signal_group(long i)
{
	check(!setpgid(pids[i], pids[i]) && !kill(-pids[i], SIGCONT), "kill of a group");
	check(!setpgid(pids[i], getpgrp()), "setpgid");
}

/* Ends the youngest first. All of them are zombies before the first wait. */
static void end_processes(void)
{
	uint64_t start = rdtsc();
	siginfo_t info;

	for (long i = crowd; i--;)
		check(!kill(pids[i], SIGKILL), "kill");
	for (long i = crowd; i--;)
		check(!waitid(P_PID, pids[i], &info, WEXITED | WNOWAIT), "waitid");
	for (long i = 0; i < crowd; i++)
		check(wait(NULL) > 0, "wait");
	bench_print("end", rdtsc() - start, crowd);
}

/* Times forks of a user with a limit (RLIMIT_NPROC), in a process without other children. */
static void time_forks_of_user(void)
{
	pid_t pid = fork();

	check(pid >= 0, "fork");
	if (!pid) {
		check(!setuid(4711), "setuid");
		time_each("fork_user", fork_and_wait);
		_exit(0);
	}
	check(waitpid(pid, NULL, 0) == pid, "waitpid");
}

static void time_processes(void)
{
	pids = calloc(crowd, sizeof(*pids));
	check(pids != NULL, "memory");
	for (long i = 0; i < crowd; i++)
		pids[i] = make_sleeper();
	time_forks_of_user();
	time_each("fork", fork_and_wait);
	time_each("fork_any", fork_and_wait_for_any);
	time_each("replace", replace_process);
	time_each("find", find_process);
	time_each("child", look_at_child);
	time_each("uses", use_process);
	time_each("stat", open_stat);
	time_each("group", signal_group);
	list("/proc"); /* makes the directories that were not looked up yet */
	time_list("/proc");
	end_processes();
}

/* IDs of timers: the first is 0, and each is the first one that is free. */
static void create_timer(long i)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	int id = -1;

	check(!syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id) && id == i, "timer_create");
}

static void set_timer(long i)
{
	struct itimerspec later = { .it_value.tv_sec = 1000 + i };

	check(!syscall(SYS_timer_settime, (int)i, 0, &later, NULL), "timer_settime");
}

static void get_timer(long i)
{
	struct itimerspec left;

	check(!syscall(SYS_timer_gettime, (int)i, &left), "timer_gettime");
	check(left.it_value.tv_sec >= 500 + i, "timer_gettime: the time left");
}

static void replace_timer(long i)
{
	check(!syscall(SYS_timer_delete, (int)i), "timer_delete");
	create_timer(i);
	set_timer(i);
}

static void time_timers(void)
{
	for (long i = 0; i < crowd; i++) {
		create_timer(i);
		set_timer(i);
	}
	time_each("get", get_timer);
	time_each("set", set_timer);
	time_each("replace", replace_timer);
}

int main(int argc, char **argv)
{
	static const struct kind kinds[] = { { "processes", time_processes },
					     { "timers", time_timers },
					     { 0 } };

	return time_crowd(kinds, argc, argv);
}
