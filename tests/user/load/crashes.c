// SPDX-License-Identifier: BSD-2-Clause
/*
 * crashes UID ROUNDS NUMBER: root's process crashes once. Then NUMBER processes of that user crash
 * in each of ROUNDS rounds, with six seconds in between. Prints how many lines the log has about
 * root's and about the user's crashes, and how many it says were left out, before and after another
 * round for which root clears the log. Only for the guest.
 */
#include <grp.h>
#include <stdlib.h>
#include <sys/klog.h>
#include <sys/prctl.h>

#include "run.h"

#define CLEAR_LOG 5
#define READ_LOG  3

static char text[1 << 20];

static int crash(uid_t user, const char *name)
{
	pid_t pid = fork_child();

	if (!pid) {
		CHECK(!setgroups(0, NULL) && !setgid(user) && !setuid(user));
		CHECK(!prctl(PR_SET_NAME, name, 0, 0, 0));
		__builtin_trap();
	}
	return child_status(pid);
}

static void crash_often(uid_t user, int nr)
{
	for (int i = 0; i < nr; i++)
		CHECK(WTERMSIG(crash(user, "crash-user")) == SIGILL);
}

static void print_counts(void)
{
	int n = klogctl(READ_LOG, text, sizeof(text) - 1), roots = 0, users = 0, said = 0;
	long left_out = 0;

	CHECK(n > 0);
	text[n < 0 ? 0 : n] = 0;
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		char *at = strstr(line, "] user ");

		roots += strstr(line, "crash-root[") != NULL;
		users += strstr(line, "crash-user[") != NULL;
		said += at && strstr(at, "only counted");
		if (at && strstr(at, " lines were left out"))
			left_out += atol(strstr(at, ": ") + 2);
	}
	printf("lines: %d of root, %d of the user, %ld left out, %d warnings\n", roots, users,
	       left_out, said);
}

/* A process of the user that lives as long as the test: else nobody counts for the user. */
static pid_t start_resident(uid_t user)
{
	pid_t pid = fork_child();

	if (!pid) {
		CHECK(!setuid(user));
		pause();
		child_exit(0);
	}
	return pid;
}

int main(int argc, char **argv)
{
	uid_t user;
	pid_t resident;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 4)
		return 1;
	user = atoi(argv[1]);
	resident = start_resident(user);
	crash(0, "crash-root");
	for (int i = 0; i < atoi(argv[2]); i++) {
		crash_often(user, atoi(argv[3]));
		sleep_ms(6000);
	}
	print_counts();
	CHECK(!klogctl(CLEAR_LOG, NULL, 0));
	crash_often(user, atoi(argv[3]));
	print_counts();
	CHECK(!kill(resident, SIGKILL) && child_status(resident) == SIGKILL);
	return check_finish("crashes");
}
