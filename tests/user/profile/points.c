// SPDX-License-Identifier: BSD-2-Clause
/* Switches profile points by /proc/profile/points. Needs that file. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

#define PATH "/proc/profile/points"

static char list[4096];

static ssize_t control(const char *text)
{
	int fd = open(PATH, O_WRONLY);
	ssize_t ret = write(fd, text, strlen(text));
	int error = errno;

	close(fd);
	errno = error;
	return ret;
}

static const char *read_list(void)
{
	int fd = open(PATH, O_RDONLY);
	ssize_t len = read(fd, list, sizeof(list) - 1);

	CHECK(len > 0);
	list[len > 0 ? len : 0] = '\0';
	CHECK(pread(fd, list + sizeof(list) / 2, 100, len) == 0);
	close(fd);
	return list;
}

static void check_bad_lists(void)
{
	char text[400];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	CHECK(control(text) == -1 && errno == EINVAL);
	CHECK(control("exec,-") == -1 && errno == EINVAL);
	CHECK(control("-exec,no_such_point") == -1 && errno == EINVAL);
	CHECK(strstr(read_list(), "on exec\n"));
}

int main(void)
{
	CHECK(access(PATH, F_OK) == 0);
	CHECK(strstr(read_list(), "on exec\n") && !strstr(list, "off "));
	check_bad_lists();

	CHECK(control("-*,page_*\n") == 10);
	CHECK(strstr(read_list(), "off exec\n") && strstr(list, "on page_fault\n"));
	CHECK(control("futex_wait reset") == 16);
	CHECK(strstr(read_list(), "on futex_wait\n") && strstr(list, "off exec\n"));
	return check_finish("points");
}
