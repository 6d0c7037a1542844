/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks for guest test programs. A program calls CHECK() as often as it likes, from any thread,
 * and returns check_finish("name") from main: one FAIL line per failed check and one last line
 * `PASS: name: N checks` or `FAIL: name: M of N checks failed`; exit status 0 or 1. Checks in
 * forked children count, too, however the children end. A program that a child executes counts its
 * own checks.
 *
 * Every program that uses this passes on Linux too: it tests the kernel against Linux's behaviour.
 */
#ifndef TESTS_USER_CHECK_H
#define TESTS_USER_CHECK_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static int check_nr_failed; /* in this process */

/* All processes that this program forked share this page. */
static struct {
	int nr_total, nr_failed;
	char rest[4096 - 2 * sizeof(int)];
} check_all __attribute__((aligned(4096)));

__attribute__((constructor)) static void check_share_counts(void)
{
	/* If this fails, each process counts on its own. */
	mmap(&check_all, sizeof(check_all), PROT_READ | PROT_WRITE,
	     MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static inline void check_count(int ok)
{
	__atomic_add_fetch(&check_all.nr_total, 1, __ATOMIC_RELAXED);
	if (!ok) {
		__atomic_add_fetch(&check_all.nr_failed, 1, __ATOMIC_RELAXED);
		__atomic_add_fetch(&check_nr_failed, 1, __ATOMIC_RELAXED);
	}
}

/*
 * Returns the number of failed checks in all processes. Without the shared page, returns that of
 * this process, which may include failures inherited from the program before execve().
 */
static inline int check_failures(void)
{
	return check_all.nr_failed > check_nr_failed ? check_all.nr_failed : check_nr_failed;
}

#define CHECK(cond) check_one(!!(cond), __FILE__, __LINE__, #cond)

/* Expects a call of the library to fail with @error; CHECK_ERROR() a raw system call. */
#define FAILS(call, error) CHECK((call) == -1 && errno == (error))
#define CHECK_ERROR(error, ...) \
	check_error(syscall(__VA_ARGS__), error, __FILE__, __LINE__, #__VA_ARGS__)

static inline int check_one(int ok, const char *file, int line, const char *what)
{
	int error = errno;

	check_count(ok);
	if (!ok)
		printf("FAIL: %s:%d: %s (errno %d)\n", file, line, what, error);
	return ok;
}

static inline int check_error(long ret, int error, const char *file, int line, const char *what)
{
	int got = errno;
	int ok = ret == -1 && got == error;

	check_count(ok);
	if (!ok)
		printf("FAIL: %s:%d: syscall(%s) = %ld, errno %d, expected -1, errno %d\n", file,
		       line, what, ret, ret == -1 ? got : 0, error);
	return ok;
}

/* Returns true on this kernel: for the few checks that need a machine of their own. */
static inline int check_on_lego(void)
{
	struct utsname name;

	return !uname(&name) && !strcmp(name.nodename, "lego");
}

/*
 * Returns the name of a temporary file, in a directory that exists here. Each process has one name.
 */
static inline const char *check_file_name(void)
{
	static char name[64];

	if (!name[0])
		snprintf(name, sizeof(name), "%s/check.%d", access("/tmp", F_OK) ? "" : "/tmp",
			 getpid());
	return name;
}

static inline int check_finish(const char *name)
{
	int nr_failed = check_failures();

	if (nr_failed)
		printf("FAIL: %s: %d of %d checks failed\n", name, nr_failed, check_all.nr_total);
	else
		printf("PASS: %s: %d checks\n", name, check_all.nr_total);
	fflush(stdout);
	unlink(check_file_name());
	return nr_failed != 0;
}

#endif
