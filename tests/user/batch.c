// SPDX-License-Identifier: BSD-2-Clause
/*
 * Init of a boot that several tests share (tests/boot/shared_boot.py). Runs programs one after the
 * other, each as a child: `init=/bin/batch -- fpu stress:pipe:1:4`. A colon separates arguments.
 * Prints a line before and after each program; the second one has its wait status. What a program
 * leaves running is killed, so that the next one is alone.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_ARGS 16

/* Init reaps orphans, too: some programs wait until theirs are gone. */
static int wait_for(pid_t pid)
{
	int status;
	pid_t got;

	do {
		got = wait(&status);
		if (got < 0) {
			perror("batch: wait");
			_exit(1);
		}
	} while (got != pid);
	return status;
}

static void run_program(char *word)
{
	char *args[MAX_ARGS + 1] = {}, path[256], *rest = word;

	for (int i = 0; i < MAX_ARGS && rest; i++)
		args[i] = strsep(&rest, ":");
	snprintf(path, sizeof(path), "/bin/%s", args[0]);
	args[0] = path;
	execv(path, args);
	perror(path);
	_exit(127);
}

int main(int argc, char **argv)
{
	int status;
	pid_t pid;

	setvbuf(stdout, NULL, _IONBF, 0);
	for (int i = 1; i < argc; i++) {
		printf("batch: start %s\n", argv[i]);
		pid = fork();
		if (!pid)
			run_program(argv[i]);
		status = wait_for(pid);
		kill(-1, SIGKILL);
		while (wait(NULL) > 0)
			;
		printf("\nbatch: end %s, status %#x\n", argv[i], status);
	}
	return 0;
}
