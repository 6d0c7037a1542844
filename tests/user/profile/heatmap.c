// SPDX-License-Identifier: BSD-2-Clause
/*
 * heatmap [MS]: changes the source of samples by /proc/profile/source while it works, for MS
 * milliseconds in each state (default 20). Needs that file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "check.h"

#define PATH "/proc/profile/source"

static char state[4096];

static ssize_t control(const char *text)
{
	static int nr;
	/* /proc/profile/heatmap accepts the same words. */
	int fd = open(nr++ % 2 ? "/proc/profile/heatmap" : PATH, O_WRONLY);
	ssize_t ret = write(fd, text, strlen(text));
	int error = errno;

	close(fd);
	errno = error;
	return ret;
}

static const char *read_state(void)
{
	int fd = open(PATH, O_RDONLY);
	ssize_t len = read(fd, state, sizeof(state) - 1);

	CHECK(len > 0);
	state[len > 0 ? len : 0] = '\0';
	close(fd);
	return state;
}

/* Works for so long, in user code and in the kernel. */
static void work(long ms)
{
	long end = now_ms() + ms;

	while (now_ms() < end)
		for (int i = 0; i < 100; i++)
			getppid();
}

static void check_refused(void)
{
	static const char *const bad[] = { "hz",	 "hz 0",   "hz 100001",
					   "source pmu", "seed x", "maybe" };
	char before[sizeof(state)];

	strcpy(before, read_state());
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(control(bad[i]) == -1 && errno == EINVAL);
	CHECK(!strcmp(before, read_state()));
}

int main(int argc, char **argv)
{
	static const char *const steps[][2] = {
		{ "off", "off\nsource timer\nhz 997\nseed 1\n" },
		{ "hz 5000 on\n", "on\nsource timer\nhz 5000\nseed 1\n" },
		{ "source nmi\nhz 2000\n", "on\nsource nmi\nhz 2000\nseed 1\n" },
		{ "off", "off\nsource nmi\nhz 2000\nseed 1\n" },
		{ "on", "on\nsource nmi\nhz 2000\nseed 1\n" },
		{ "reset", "on\nsource nmi\nhz 2000\nseed 1\n" },
		{ "source timer seed none", "on\nsource timer\nhz 2000\nseed none\n" },
		{ "source timer hz 997 seed 1", "on\nsource timer\nhz 997\nseed 1\n" },
	};
	long ms = argc > 1 ? atol(argv[1]) : 20;

	CHECK(!strcmp(read_state(), "on\nsource timer\nhz 997\nseed 1\n"));
	check_refused();
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		CHECK(control(steps[i][0]) == (ssize_t)strlen(steps[i][0]));
		CHECK(!strcmp(read_state(), steps[i][1]));
		work(ms);
	}
	return check_finish("heatmap");
}
