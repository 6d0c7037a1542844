// SPDX-License-Identifier: BSD-2-Clause
/*
 * execve: failures leave the caller as it was; success replaces the program, keeps the pid and
 * hands over arguments and environment. The program runs itself in stages; the stage is argv[1]. In
 * the last but one stage, one of several running threads calls execve.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "check.h"

extern char **environ;

static const char *self;

/* Passes the number of failures on in the environment, so that those of early stages count. */
static void next_stage(const char *stage, const char *more)
{
	char failed[32], pid[32];
	char *argv[] = { (char *)self, (char *)stage, (char *)more, "", "two words", NULL };
	char *envp[] = { failed, pid, "EMPTY=", NULL };

	snprintf(failed, sizeof(failed), "FAILED=%d", check_nr_failed);
	snprintf(pid, sizeof(pid), "PID=%d", getpid());
	fflush(stdout);
	execve(self, argv, envp);
	CHECK(!"execve came back");
}

static int write_file(const char *name, const void *data, size_t len)
{
	int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0755);
	int ok = fd >= 0 && write(fd, data, len) == (ssize_t)len;

	close(fd);
	return ok;
}

static void test_refused(const char *name, const void *data, size_t len)
{
	char *argv[] = { "x", NULL };

	if (CHECK(write_file(name, data, len)))
		CHECK(execve(name, argv, environ) == -1 && errno == ENOEXEC);
}

static void test_errors(void)
{
	const char *name = check_file_name();
	char *argv[] = { "x", NULL };
	static char header[4096];
	char **many;
	char *big;
	int fd;

	CHECK(execve("/no/such/program", argv, environ) == -1 && errno == ENOENT);
	CHECK(execve("/", argv, environ) == -1 && errno == EACCES);
	test_refused(name, "", 0);
	test_refused(name, "garbage", 7);
	test_refused(name, "\177ELF", 4);

	/* This program's own header, damaged: wrong machine, wrong type. */
	fd = open(self, O_RDONLY);
	CHECK(fd >= 0 && read(fd, header, sizeof(header)) == sizeof(header));
	close(fd);
	header[18] = 40;
	test_refused(name, header, sizeof(header));
	header[18] = 62;
	header[16] = 1;
	test_refused(name, header, sizeof(header));
	header[16] = 2;
	header[54] = 1; /* size of a program header */
	test_refused(name, header, sizeof(header));

	/* One string that is too long, and too many strings. */
	big = malloc(1 << 20);
	memset(big, 'a', 1 << 20);
	big[(1 << 20) - 1] = 0;
	argv[0] = big;
	CHECK(execve(self, argv, environ) == -1 && errno == E2BIG);
	big[4000] = 0;
	many = calloc(4001, sizeof(*many));
	for (int i = 0; i < 4000; i++)
		many[i] = big;
	CHECK(execve(self, many, environ) == -1 && errno == E2BIG);
	free(many);
	free(big);
	CHECK_ERROR(EFAULT, SYS_execve, self, 8, environ);
	CHECK_ERROR(EFAULT, SYS_execve, self, (char *[]){ (char *)8, NULL }, environ);
}

static int env_number(const char *name)
{
	const char *value = getenv(name);

	return value ? atoi(value) : -1;
}

/* Checks the arguments and the environment from the stage before. */
static void test_handover(int argc, char **argv)
{
	struct stat st;

	check_nr_failed += env_number("FAILED");
	CHECK(argc == 5);
	CHECK(!strcmp(argv[0], self) && !strcmp(argv[3], "") && !strcmp(argv[4], "two words"));
	CHECK(!argv[5]);
	CHECK(env_number("PID") == getpid());
	CHECK(syscall(SYS_gettid) == getpid());
	CHECK(getenv("EMPTY") && !*getenv("EMPTY") && environ[2] && !environ[3]);
	CHECK(!fstat(1, &st)); /* descriptors stay open, but for close-on-exec ones */
}

static volatile int nr_running;

static void *spin_on(void *arg)
{
	__atomic_add_fetch(&nr_running, 1, __ATOMIC_RELEASE);
	for (;;)
		asm volatile("pause");
	return arg;
}

static void *sleep_on(void *arg)
{
	__atomic_add_fetch(&nr_running, 1, __ATOMIC_RELEASE);
	for (;;)
		sleep(100);
	return arg;
}

static void *exec_from_thread(void *arg)
{
	while (nr_running < 4)
		usleep(1000);
	next_stage("last", "from a thread");
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int fd;

	self = argv[0][0] == '/' ? argv[0] : "/bin/execchain";
	if (argc == 1) {
		test_errors();
		fd = open(self, O_RDONLY | O_CLOEXEC);
		CHECK(fd == 3);
		next_stage("second", "");
	} else if (!strcmp(argv[1], "second")) {
		test_handover(argc, argv);
		fd = open(self, O_RDONLY);
		CHECK(fd == 3); /* the close-on-exec one is gone */
		for (int i = 0; i < 4; i++)
			CHECK(!pthread_create(&thread, NULL, i % 2 ? spin_on : sleep_on, NULL));
		CHECK(!pthread_create(&thread, NULL, exec_from_thread, NULL));
		pthread_join(thread, NULL);
	} else {
		test_handover(argc, argv);
		CHECK(open(self, O_RDONLY) == 4); /* 3 was kept */
		CHECK(!strcmp(argv[2], "from a thread"));
	}
	return check_finish("execchain");
}
