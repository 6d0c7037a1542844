// SPDX-License-Identifier: BSD-2-Clause
/*
 * failing WHAT FIRST LAST RUNS PROGRAM...: runs the programs a few times first, because first runs
 * may leave caches behind. Then, for each N from FIRST to LAST, it runs them again while the Nth
 * use of each call path fails. WHAT is `alloc` for allocations, or `usercopy` for copies to and
 * from user memory (/proc/fail_*). Each program is run until it passes, but at most RUNS times. Its
 * output is dropped: the programs may fail, but the kernel may not. Only for the guest, with a
 * debug kernel.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>

#include "run.h"

#define TIMEOUT_MS 4000
#define NR_WARM_UP 3
#define NEVER	   9999

static int nowhere;
static char control[32]; /* /proc/fail_WHAT */

static void write_number(int number)
{
	char text[16];
	int fd = open(control, O_WRONLY);

	snprintf(text, sizeof(text), "%d", number);
	CHECK(write(fd, text, strlen(text)) > 0);
	close(fd);
}

/* Runs a program. Returns its wait status. */
static int run_program(const char *name)
{
	int status;
	char path[64], *argv[] = { path, NULL };
	long end_ms = now_ms() + TIMEOUT_MS;
	pid_t pid = fork();

	snprintf(path, sizeof(path), "/bin/%s", name);
	if (!pid) {
		dup2(nowhere, 1);
		dup2(nowhere, 2);
		execv(path, argv);
		_exit(127);
	}
	CHECK(pid > 0);
	while (waitpid(pid, &status, WNOHANG) != pid) {
		if (now_ms() > end_ms)
			kill(pid, SIGKILL);
		sleep_ms(1);
	}
	return status;
}

/* Removes files of programs that used the root directory, because looking for /tmp failed. */
static void clean_root(void)
{
	DIR *dir = opendir("/");
	struct dirent *entry;

	/*
	 * The profiler allocates the row of a call at the first call. That must not happen between
	 * two leak counts.
	 */
	CHECK(!chdir("/") && unlink("none") == -1 && errno == ENOENT);
	while (dir && (entry = readdir(dir))) {
		if (!strncmp(entry->d_name, "check.", 6))
			CHECK(!unlink(entry->d_name));
	}
	closedir(dir);
}

/* Runs a program, and removes everything that it may have left behind if it failed halfway. */
static int run_alone(const char *name)
{
	int status;

	CHECK(!mount("none", "/tmp", "tmpfs", 0, NULL));
	CHECK(!mount("none", "/dev/shm", "tmpfs", 0, NULL));
	status = run_program(name);
	kill(-1, SIGKILL);
	while (wait(NULL) > 0)
		;
	CHECK(!umount2("/dev/shm", MNT_DETACH));
	CHECK(!umount2("/tmp", MNT_DETACH)); /* with what the program has mounted in it */
	clean_root();
	return status;
}

static void run_failing(int number, int max_runs, char **names)
{
	write_number(number);
	for (; *names; names++) {
		int runs = 1;

		while (run_alone(*names) && runs < max_runs)
			runs++;
		printf("failing: %s: %d runs\n", *names, runs);
	}
	write_number(0);
}

int main(int argc, char **argv)
{
	int first, last, max_runs;

	setvbuf(stdout, NULL, _IOLBF, 0);
	nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (argc < 6)
		return 1;
	snprintf(control, sizeof(control), "/proc/fail_%s", argv[1]);
	first = atoi(argv[2]);
	last = atoi(argv[3]);
	max_runs = atoi(argv[4]);
	for (int i = 0; i < NR_WARM_UP; i++)
		run_failing(NEVER, 1, argv + 5);
	for (int number = first; number <= last; number++)
		run_failing(number, max_runs, argv + 5);
	return check_finish("failing");
}
