// SPDX-License-Identifier: BSD-2-Clause
/*
 * exit STATUS: ends with the status. exit kill SIGNAL: sends itself the signal; as process 1 it
 * lives on and ends with 2. exit thread STATUS: main has gone and another thread calls exit_group.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *leave(void *arg)
{
	usleep(20000);
	syscall(SYS_exit_group, atoi(arg));
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc == 2)
		return atoi(argv[1]);
	if (argc == 3 && !strcmp(argv[1], "kill"))
		return syscall(SYS_kill, getpid(), atoi(argv[2])) ? 1 : 2;
	if (argc == 3 && !strcmp(argv[1], "thread")) {
		pthread_create(&thread, NULL, leave, argv[2]);
		syscall(SYS_exit, 1);
	}
	puts("usage: exit STATUS | exit kill SIGNAL | exit thread STATUS");
	return 2;
}
