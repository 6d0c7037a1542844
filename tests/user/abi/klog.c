// SPDX-License-Identifier: BSD-2-Clause
/*
 * syslog(2), the kernel's log for dmesg. Where reading is not allowed, checks only the error.
 * Checks the content only where no other process writes to the log.
 */
#include <stdlib.h>
#include <sys/klog.h>

#include "check.h"

enum {
	READ_ALL = 3,
	CONSOLE_OFF = 6,
	CONSOLE_ON = 7,
	CONSOLE_LEVEL = 8,
	SIZE_UNREAD = 9,
	SIZE_BUFFER = 10,
};

#define BUF_BYTES (1 << 24)

/* Checks that every line is `<level>[seconds.micros] text`. Returns the number of lines. */
static int check_lines(const char *text, int n)
{
	int nr_lines = 0, ok = 1, level, end;
	double seconds, last = 0;

	while (n > 0) {
		const char *newline = memchr(text, '\n', n);

		end = 0;
		ok &= newline && sscanf(text, "<%d>[%lf]%n", &level, &seconds, &end) == 2 && end;
		ok &= level >= 0 && level < 256 && seconds >= last;
		if (!ok)
			break;
		last = seconds;
		n -= newline + 1 - text;
		text = newline + 1;
		nr_lines++;
	}
	CHECK(ok);
	return nr_lines;
}

/*
 * @all bytes are in the log, and in buf. A smaller buffer gets the last lines, whole. The kernel
 * copies by kilobytes, so the sizes here put the first of these lines at every place in one.
 */
static void check_content(const char *buf, int all, char *part)
{
	int n;

	for (int size = all / 2; size < all && size < all / 2 + 2048; size += 16) {
		const char *start = buf + all - klogctl(READ_ALL, part, size);

		CHECK(start > buf && start[-1] == '\n' && !memcmp(part, start, buf + all - start));
	}
	n = klogctl(READ_ALL, part, all / 2);
	CHECK(check_lines(buf, all) > 5);
	CHECK(n > all / 4 && n <= all / 2);
	CHECK(check_lines(part, n) > 1);
	CHECK(!memcmp(part, buf + all - n, n));
}

int main(void)
{
	char *buf = malloc(BUF_BYTES), *part = malloc(BUF_BYTES);
	int size, all;

	CHECK_ERROR(EINVAL, SYS_syslog, 11, buf, 1);
	CHECK_ERROR(EINVAL, SYS_syslog, -1, buf, 1);
	size = klogctl(SIZE_BUFFER, NULL, 0);
	if (size < 0 && errno == EPERM)
		return check_finish("klog");
	CHECK(size >= 1 << 14);
	CHECK(klogctl(SIZE_UNREAD, NULL, 0) >= 0);
	CHECK_ERROR(EINVAL, SYS_syslog, READ_ALL, NULL, 1);
	CHECK_ERROR(EINVAL, SYS_syslog, READ_ALL, buf, -1);
	CHECK_ERROR(EFAULT, SYS_syslog, READ_ALL, -4096l, 100);
	CHECK(klogctl(READ_ALL, buf, 0) == 0);

	all = klogctl(READ_ALL, buf, BUF_BYTES);
	CHECK(all > 0);
	if (check_on_lego())
		check_content(buf, all, part);

	CHECK_ERROR(EINVAL, SYS_syslog, CONSOLE_LEVEL, NULL, 0);
	CHECK_ERROR(EINVAL, SYS_syslog, CONSOLE_LEVEL, NULL, 9);
	if (klogctl(CONSOLE_OFF, NULL, 0) == 0) {
		CHECK_ERROR(ENOSYS, 999); /* the kernel may log this, but not on the console */
		CHECK(klogctl(CONSOLE_ON, NULL, 0) == 0);
	}
	return check_finish("klog");
}
