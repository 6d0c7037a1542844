/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_USER_PERMS_H
#define TESTS_USER_PERMS_H

/*
 * For programs that check the permissions of users other than root. The tests begin as root, in an
 * empty directory of their own; a child becomes another user.
 */

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>

#include "run.h"

#define USER  1000
#define GROUP 1001
#define OTHER 2000 /* another user, and a group */

static char base[64];

/* Forks a child with user USER, group GROUP and, unless @extra is 0, that supplementary group. */
static pid_t fork_user(uid_t user, gid_t group, gid_t extra)
{
	pid_t pid = fork_child();

	if (!pid)
		CHECK(!setgroups(extra != 0, &extra) && !setresgid(group, group, group) &&
		      !setresuid(user, user, user));
	return pid;
}

static void make_file(const char *name, mode_t mode, uid_t user, gid_t group)
{
	int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0600);

	CHECK(fd >= 0 && write(fd, "text", 4) == 4 && !close(fd));
	CHECK(!chown(name, user, group) && !chmod(name, mode));
}

/* Makes a copy of this program. */
static inline void make_program(const char *name, mode_t mode, uid_t user, gid_t group)
{
	int from = open("/proc/self/exe", O_RDONLY), to = open(name, O_CREAT | O_WRONLY, 0700);
	static char buf[65536];
	ssize_t n;

	while ((n = read(from, buf, sizeof(buf))) > 0)
		CHECK(write(to, buf, n) == n);
	CHECK(!n && !close(from) && !close(to));
	CHECK(!chown(name, user, group) && !chmod(name, mode));
}

static inline struct stat stat_of(const char *name)
{
	struct stat st = { 0 };

	CHECK(!lstat(name, &st));
	return st;
}

/*
 * Runs the tests in a directory that must be empty again afterwards. Returns the value for main().
 */
static int run_tests_as_root(const char *program, int argc, char **argv)
{
	int status;

	mkdir("/tmp", 0777);
	snprintf(base, sizeof(base), "/tmp/%s.%d", program, getpid());
	if (mkdir(base, 0755) || chdir(base)) {
		printf("FAIL: %s: no %s, errno %d\n", program, base, errno);
		return 1;
	}
	status = run_tests(program, argc, argv);
	if (chdir("/") || rmdir(base)) {
		printf("FAIL: %s: something is left in %s\n", program, base);
		return 1;
	}
	return status;
}

#endif
