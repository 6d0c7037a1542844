// SPDX-License-Identifier: BSD-2-Clause
/*
 * Makes known numbers of system calls that get a path, and sends itself known signals. For each
 * path, prints what it has counted itself: `path <calls> <errors> <name of the error> <path>`.
 * Bytes that are not printable are printed as ?.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_PATHS 16

static struct count {
	const char *path;
	int nr, nr_errors, error;
} counts[MAX_PATHS];

/* Counts a call of a path. ret is what it returned. */
static int count(const char *path, int ret)
{
	struct count *c = counts;

	while (c->path && strcmp(c->path, path))
		c++;
	c->path = path;
	c->nr++;
	c->nr_errors += ret < 0;
	if (ret < 0)
		c->error = errno;
	return ret;
}

static void print(const struct count *c)
{
	printf("path %d %d %s ", c->nr, c->nr_errors, c->error ? strerrorname_np(c->error) : "-");
	for (const char *p = c->path; *p; p++)
		putchar(*p < ' ' || *p > '~' ? '?' : *p);
	putchar('\n');
}

static void open_and_close(const char *path, int flags)
{
	int fd = count(path, open(path, flags, 0600));

	if (fd >= 0)
		close(fd);
}

static void on_signal(int number)
{
}

static void get_signals(void)
{
	sigset_t set;
	int taken;

	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, SIG_IGN);
	for (int i = 0; i < 30; i++)
		raise(SIGUSR1);
	for (int i = 0; i < 20; i++)
		raise(SIGUSR2);
	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGHUP);
	sigwait(&set, &taken);
	for (int i = 0; i < 3; i++) {
		raise(SIGRTMIN);
		sigwait(&set, &taken);
	}
	/* The child is killed; SIGCHLD is ignored by default. */
	if (!fork()) {
		raise(SIGTERM);
		_exit(0);
	}
	wait(NULL);
}

int main(void)
{
	static char longest[4096];
	char *const args[] = { "x", NULL };
	struct stat stat_buf;

	for (int i = 0; i + 1 < (int)sizeof(longest) - 1; i += 2)
		memcpy(longest + i, "/y", 2);
	longest[4094] = '/';
	for (int i = 0; i < 300; i++)
		open_and_close("/etc/no-such.conf", O_RDONLY);
	for (int i = 0; i < 20; i++)
		open_and_close("/tmp/paths", O_RDWR | O_CREAT);
	for (int i = 0; i < 10; i++)
		count("/tmp/paths/x", stat("/tmp/paths/x", &stat_buf));
	for (int i = 0; i < 7; i++)
		count("/tmp", access("/tmp", R_OK));
	for (int i = 0; i < 5; i++)
		count("/tmp/paths", execv("/tmp/paths", args));
	for (int i = 0; i < 4; i++)
		count("\nprofile: end of report 1\n", unlink("\nprofile: end of report 1\n"));
	for (int i = 0; i < 3; i++)
		count("\001\033[2J\377", chdir("\001\033[2J\377"));
	for (int i = 0; i < 2; i++)
		count(longest, open(longest, O_RDONLY));
	/* Relative to a directory, and the first of two paths. */
	chdir("/tmp");
	count("/tmp", 0);
	count("paths", rename("paths", "/tmp/renamed"));
	count("paths", rename("paths", "/tmp/renamed"));
	/* No path: of a descriptor, too long to be copied, or at no address. */
	fstatat(0, "", &stat_buf, AT_EMPTY_PATH);
	access((const char *)8, F_OK);

	get_signals();
	for (int i = 0; counts[i].path; i++)
		print(&counts[i]);
	return 0;
}
