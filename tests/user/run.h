/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs of many small tests. run_tests() forks a process that runs them one after the other,
 * because other rules apply to process 1. The first process only reaps, and gives up after a while.
 * Arguments name the tests to run (`init=/bin/forks -- cow`); without any all run. The name of each
 * test is printed when it starts, so after a hang the last name tells which test hangs.
 */
#ifndef TESTS_USER_RUN_H
#define TESTS_USER_RUN_H

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "check.h"
#include "clock.h"

#define RUN_TIMEOUT_S 100

struct test {
	const char *name;
	void (*run)(void);
};

#if __has_attribute(no_reorder)
#define IN_ORDER no_reorder /* gcc may write variables in another order, clang does not */
#else
#define IN_ORDER
#endif

/* A test. Those of a program run in the order of its file. */
#define TEST(name_)                                                                    \
	static void test_##name_(void);                                                \
	static const struct test test_entry_##name_                                    \
		__attribute__((used, aligned(8), section("user_tests"), IN_ORDER)) = { \
			#name_,                                                        \
			test_##name_,                                                  \
		};                                                                     \
	static void test_##name_(void)

extern const struct test __start_user_tests[], __stop_user_tests[];

/* Sleeps in the calling thread, even if signals arrive. */
static inline void sleep_ms(long ms)
{
	struct timespec left = { ms / 1000, ms % 1000 * 1000000 };

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

/* Forks a child, which must end with child_exit(): prepares the counters and the output. */
static inline pid_t fork_child(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		check_nr_failed = 0;
	else
		CHECK(pid > 0);
	return pid;
}

/* Exits a child; with 99 if a check failed in it. */
static inline void child_exit(int code)
{
	fflush(stdout);
	_exit(check_nr_failed ? 99 : code);
}

/* Reaps @pid. Returns its wait status, or -1. */
static inline int child_status(pid_t pid)
{
	int status = -1;
	pid_t got;

	do {
		got = waitpid(pid, &status, 0);
	} while (got == -1 && errno == EINTR);
	return got == pid ? status : -1;
}

/* Forks a child that sleeps until a signal ends it. */
static inline pid_t fork_sleeper(void)
{
	pid_t pid = fork_child();

	if (!pid) {
		sleep_ms(30000);
		child_exit(98);
	}
	return pid;
}

#define EXITED(code) ((code) << 8)

/*
 * Returns whether alarm() may have returned @left if the alarm was set to @seconds not before
 * @start_ms. alarm() rounds to whole seconds.
 */
static inline int is_alarm_left(long left, long seconds, long start_ms)
{
	long passed_ms = now_ms() - start_ms;

	return left <= seconds && left * 1000 >= seconds * 1000 - passed_ms - 501;
}

/* Waits until @cond holds, for five seconds at most. */
#define WAIT_UNTIL(cond)                                                 \
	({                                                               \
		for (int tries_ = 0; !(cond) && tries_ < 5000; tries_++) \
			sleep_ms(1);                                     \
		(cond);                                                  \
	})

/* Returns whether a thread, or the first thread of a process, waits for what it called for. */
static inline int is_asleep(pid_t pid, pid_t tid)
{
	char path[64], text[128] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0'; /* it has ended */
	close(fd);
	return strstr(text, ") S ") != NULL;
}

static inline int run_is_wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], name))
			return 1;
	}
	return argc < 2;
}

static inline int run_all(const char *program, int argc, char **argv)
{
	for (const struct test *test = __start_user_tests; test < __stop_user_tests; test++) {
		if (!run_is_wanted(test->name, argc, argv))
			continue;
		printf("%s: %s\n", program, test->name);
		test->run();
		/* No child was forgotten. */
		CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	}
	return check_finish(program);
}

/* Runs the tests. Returns the value for main(). */
static inline int run_tests(const char *program, int argc, char **argv)
{
	long end_ms = now_ms() + RUN_TIMEOUT_S * 1000;
	int status;
	pid_t pid, got;

	setvbuf(stdout, NULL, _IOLBF, 0);
	pid = fork();
	if (pid < 0) {
		printf("FAIL: %s: fork: errno %d\n", program, errno);
		return 1;
	}
	if (!pid) {
		setpgid(0, 0); /* signals to the group of the tests leave their parent alone */
		exit(run_all(program, argc, argv));
	}
	while ((got = waitpid(-1, &status, WNOHANG)) != pid) {
		if (got == -1 || now_ms() > end_ms) {
			printf("FAIL: %s: %s\n", program,
			       got ? "lost its tests" : "takes too long");
			kill(-pid, SIGKILL);
			return 1;
		}
		if (!got)
			sleep_ms(5);
	}
	if (!WIFEXITED(status))
		printf("FAIL: %s: ended with status %#x\n", program, status);
	return status != 0;
}

#endif
