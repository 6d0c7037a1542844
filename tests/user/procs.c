// SPDX-License-Identifier: BSD-2-Clause
/*
 * Files of /proc that programs read: settings of the system, and of a process its limits, its
 * environment and its first thread's state; what prctl() reads back; what a crash leaves.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "run.h"

extern char **environ;

static char text[65536];

static const char *read_file(const char *name)
{
	int fd = open(name, O_RDONLY);
	ssize_t n, len = 0;

	while (fd >= 0 && (n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += n;
	text[len] = '\0';
	close(fd);
	return text;
}

static long number_of(const char *name)
{
	char path[128], *end;
	long value;

	snprintf(path, sizeof(path), "/proc/sys/%s", name);
	value = strtol(read_file(path), &end, 10);
	return CHECK(end > text && !strcmp(end, "\n")) ? value : -1;
}

static int is_line(const char *path, const char *line)
{
	size_t len = strlen(line);

	return !strncmp(read_file(path), line, len) && !strcmp(text + len, "\n");
}

static void test_system(void)
{
	struct utsname name;

	CHECK(!uname(&name));
	CHECK(is_line("/proc/sys/kernel/ostype", name.sysname));
	CHECK(is_line("/proc/sys/kernel/hostname", name.nodename));
	CHECK(is_line("/proc/sys/kernel/osrelease", name.release));
	CHECK(is_line("/proc/sys/kernel/version", name.version));
	CHECK(number_of("kernel/pid_max") > getpid());
	CHECK(number_of("kernel/threads-max") > 20);
	CHECK(number_of("kernel/ngroups_max") >= 32);
	CHECK(prctl(PR_CAPBSET_READ, number_of("kernel/cap_last_cap") + 1) == -1);
	CHECK(number_of("vm/overcommit_memory") >= 0 && number_of("vm/overcommit_memory") <= 2);
	CHECK(number_of("vm/max_map_count") > 1000 && number_of("vm/mmap_min_addr") >= 0);
	CHECK(number_of("fs/file-max") > 100 && number_of("fs/nr_open") >= 1024);
	CHECK(number_of("fs/pipe-max-size") >= 65536);
	CHECK(number_of("kernel/random/entropy_avail") > 0);
}

static int is_uuid(const char *uuid)
{
	for (int i = 0; i < 36; i++) {
		if (i == 8 || i == 13 || i == 18 || i == 23 ? uuid[i] != '-' :
							      !strchr("0123456789abcdef", uuid[i]))
			return 0;
	}
	return uuid[14] == '4' && strchr("89ab", uuid[19]) && !strcmp(uuid + 36, "\n");
}

static void test_uuids(void)
{
	char first[64];

	CHECK(is_uuid(read_file("/proc/sys/kernel/random/boot_id")));
	strcpy(first, text);
	CHECK(!strcmp(first, read_file("/proc/sys/kernel/random/boot_id")));
	CHECK(is_uuid(read_file("/proc/sys/kernel/random/uuid")));
	strcpy(first, text);
	CHECK(is_uuid(read_file("/proc/sys/kernel/random/uuid")) && strcmp(first, text));
}

static void test_limits(void)
{
	struct rlimit limit = { 123, 456 }, stack;
	char expected[128];

	CHECK(!setrlimit(RLIMIT_CORE, &limit) && !getrlimit(RLIMIT_STACK, &stack));
	CHECK(!setrlimit(RLIMIT_CPU, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY }));
	read_file("/proc/self/limits");
	snprintf(expected, sizeof(expected), "%-25s %-20s %-20s %-10s\n", "Limit", "Soft Limit",
		 "Hard Limit", "Units");
	CHECK(!strncmp(text, expected, strlen(expected)));
	snprintf(expected, sizeof(expected), "\n%-25s %-20s %-20s %-10s\n", "Max cpu time",
		 "unlimited", "unlimited", "seconds");
	CHECK(strstr(text, expected));
	snprintf(expected, sizeof(expected), "\n%-25s %-20d %-20d %-10s\n", "Max core file size",
		 123, 456, "bytes");
	CHECK(strstr(text, expected) && strstr(text, "\nMax nice priority "));
}

static void test_environment(void)
{
	struct stat st;
	size_t len;

	CHECK(!stat("/proc/self/environ", &st) && (st.st_mode & 0777) == 0400);
	read_file("/proc/self/environ");
	for (len = 0; *environ && strlen(text + len); environ++) {
		CHECK(!strcmp(text + len, *environ));
		len += strlen(*environ) + 1;
	}
	CHECK(!*environ && !strlen(text + len));
}

static void *outlive(void *arg)
{
	sleep_ms(1000000);
	return arg;
}

static char state_of(pid_t pid)
{
	char name[32], *end;

	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	end = strrchr(read_file(name), ')');
	return end ? end[2] : 0;
}

static void *spin(void *arg)
{
	for (;;)
		sched_yield();
	return arg;
}

/* The state of a process is that of its first thread, whatever others do. */
static void test_state(void)
{
	pthread_t thread;
	pid_t pid = fork_child();

	if (!pid) {
		CHECK(!pthread_create(&thread, NULL, outlive, NULL));
		pthread_exit(NULL);
	}
	CHECK(WAIT_UNTIL(state_of(pid) == 'Z') && !waitpid(pid, NULL, WNOHANG));
	CHECK(!kill(pid, SIGKILL) && child_status(pid) == SIGKILL);
	pid = fork_child();
	if (!pid) {
		CHECK(!pthread_create(&thread, NULL, spin, NULL));
		sleep_ms(1000000);
	}
	CHECK(WAIT_UNTIL(state_of(pid) == 'S'));
	for (int i = 0; i < 20; i++)
		CHECK(state_of(pid) == 'S');
	CHECK(!kill(pid, SIGKILL) && child_status(pid) == SIGKILL);
}

/* Without room for a core there is none, and the status does not speak of one. */
static void test_core_bit(void)
{
	pid_t pid = fork_child();
	int status;

	if (!pid) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
		abort();
	}
	status = child_status(pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	CHECK(!WCOREDUMP(status) || read_file("/proc/sys/kernel/core_pattern")[0] == '|');
}

static void test_prctl(void)
{
	int value = -1;
	pid_t pid;

	CHECK(!prctl(PR_GET_CHILD_SUBREAPER, &value) && value == 0);
	CHECK(!prctl(PR_SET_CHILD_SUBREAPER, 1));
	CHECK(!prctl(PR_GET_CHILD_SUBREAPER, &value) && value == 1);
	pid = fork_child();
	if (!pid) {
		CHECK(!prctl(PR_GET_CHILD_SUBREAPER, &value) && value == 0); /* not inherited */
		if (!fork_child()) {
			pid_t parent = getpid();

			if (!fork_child()) {
				CHECK(WAIT_UNTIL(getppid() != parent));
				child_exit(5);
			}
			child_exit(4);
		}
		child_exit(3);
	}
	/* Children of children come here when their parents end, in any order. */
	value = 0;
	for (int i = 0, status; i < 3; i++) {
		CHECK(wait(&status) > 0 && WIFEXITED(status));
		value |= 1 << WEXITSTATUS(status);
	}
	CHECK(value == (1 << 3 | 1 << 4 | 1 << 5));
	CHECK(!prctl(PR_SET_CHILD_SUBREAPER, 0));
	CHECK(prctl(PR_CAPBSET_READ, 1000) == -1 && errno == EINVAL);
	CHECK(!prctl(PR_GET_TSC, &value) && value == PR_TSC_ENABLE);
	CHECK(!prctl(PR_GET_SECUREBITS));
	CHECK_ERROR(EFAULT, SYS_prctl, PR_GET_CHILD_SUBREAPER, 8);
}

static const struct test tests[] = {
	TEST(system), TEST(uuids),    TEST(limits), TEST(environment),
	TEST(state),  TEST(core_bit), TEST(prctl),  { 0 },
};

int main(int argc, char **argv)
{
	return run_tests("procs", tests, argc, argv);
}
