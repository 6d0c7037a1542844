// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes invalid values to the files in /proc that control the profilers: "each" file once, texts
 * that try to "forge" lines, or a "flood". The test that runs this checks the log.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#define DIR	    "/proc/profile/"
#define FLOOD	    100
#define PERIOD_S    5 /* the log's rate limit allows a number of lines in this time */
#define LONGER_THAN 4096

static ssize_t write_bytes(const char *path, const char *bytes, size_t n)
{
	int fd = open(path, O_WRONLY);
	ssize_t ret = write(fd, bytes, n);
	int error = errno;

	close(fd);
	errno = error;
	return ret;
}

static void expect_refused(const char *path, const char *bytes, size_t n)
{
	CHECK(write_bytes(path, bytes, n) == -1 && errno == EINVAL);
}

static void refuse(const char *path, const char *text)
{
	expect_refused(path, text, strlen(text));
}

static void sleep_s(int seconds)
{
	struct timespec time = { .tv_sec = seconds };

	while (nanosleep(&time, &time))
		;
}

static void each(void)
{
	static const char *const files[] = {
		DIR "report",	     DIR "on_exit",	  DIR "heatmap",     DIR "source",
		DIR "strace",	     DIR "strace_live",	  "/proc/1/strace",  DIR "points",
		DIR "function",	     DIR "waits",	  DIR "files",	     DIR "memory_chains",
		DIR "memory_growth", DIR "kernel_chains", DIR "working_set",
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		/* on_exit takes any glob, and function any name. */
		bool takes_words = strstr(files[i], "/on_exit") || strstr(files[i], "/function");

		refuse(files[i], takes_words ? "\n" : "fooo\n");
		sleep_s(1);
	}
	CHECK(write_bytes(DIR "points", "-exec\n", 6) == 6);
	CHECK(write_bytes("/proc/sysrq-trigger", "?", 1) == -1);
}

static void forge(void)
{
	static char text[LONGER_THAN];

	refuse(DIR "report", "x\n[    9.000000] a lie\n");
	refuse(DIR "report", "\" is not \\ valid\x1b[2J\r\x80\n\n");
	expect_refused(DIR "report", "reset\0\n", 7);
	memset(text, 'y', sizeof(text));
	expect_refused(DIR "report", text, 81);
	expect_refused(DIR "report", text, sizeof(text));
}

static void flood(void)
{
	for (int i = 0; i < FLOOD; i++)
		refuse(DIR "strace", "on and on");
	sleep_s(PERIOD_S);
	refuse(DIR "strace", "after");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "each"))
		each();
	else if (!strcmp(what, "forge"))
		forge();
	else if (!strcmp(what, "flood"))
		flood();
	else
		CHECK(!"each, forge or flood");
	return check_finish("controls");
}
