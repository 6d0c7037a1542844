// SPDX-License-Identifier: BSD-2-Clause
/*
 * Known answers for the system call table. After the marker line, exactly these calls and errors
 * are made by raw system calls from two threads (the test adds what libc does around them):
 *   getppid 1000, getuid 7, 3 of number 999 (all fail), lseek on a bad descriptor 11 (all fail),
 *   sched_yield 20, nanosleep 5, access 4 (1 fails); half of the getppid calls in a second thread.
 * libc itself uses none of these.
 */
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void *second(void *arg)
{
	for (int i = 0; i < 500; i++)
		syscall(SYS_getppid);
	return arg;
}

int main(void)
{
	static const char done[] = "PASS: syscalls\n";
	struct timespec ts = { 0, 1000000 };
	pthread_t thread;

	if (pthread_create(&thread, NULL, second, NULL))
		return 1;
	for (int i = 0; i < 500; i++)
		syscall(SYS_getppid);
	for (int i = 0; i < 7; i++)
		syscall(SYS_getuid);
	for (int i = 0; i < 3; i++)
		syscall(999, 1, 2, 3);
	for (int i = 0; i < 11; i++)
		syscall(SYS_lseek, -1, 0, SEEK_SET);
	for (int i = 0; i < 20; i++)
		syscall(SYS_sched_yield);
	for (int i = 0; i < 5; i++)
		syscall(SYS_nanosleep, &ts, NULL);
	for (int i = 0; i < 3; i++)
		syscall(SYS_access, "/", F_OK);
	syscall(SYS_access, "/no/such/file", F_OK);
	pthread_join(thread, NULL);
	return write(1, done, sizeof(done) - 1) != sizeof(done) - 1;
}
