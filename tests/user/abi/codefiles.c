// SPDX-License-Identifier: BSD-2-Clause
/*
 * codefiles <rounds>: runs code from three files, as a program with plugins does. Each run is a
 * loop of so many rounds. Two threads run /tmp/first and then /tmp/second, at the same address; a
 * child also runs /tmp/second; and one thread runs /tmp/third, whose mapping becomes executable
 * later. So the shares of CPU time are 2 to 3 to 1.
 */

#include "check.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>

#define PLUGIN ((void *)0x500000000000)
#define BYTES  4096

static unsigned int rounds;
static pthread_barrier_t barrier;

static int create(const char *path)
{
	/* mov %edi, %ecx; 1: dec %ecx; jnz 1b; ret */
	static const unsigned char code[] = { 0x89, 0xf9, 0xff, 0xc9, 0x75, 0xfc, 0xc3 };
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0755);

	CHECK(fd >= 0 && write(fd, code, sizeof(code)) == sizeof(code));
	CHECK(ftruncate(fd, BYTES) == 0);
	return fd;
}

static void map(const char *path, void *addr, int prot)
{
	int fd = create(path);

	CHECK(mmap(addr, BYTES, prot, MAP_PRIVATE | MAP_FIXED, fd, 0) == addr);
	close(fd);
}

static void run(void *code)
{
	((void (*)(unsigned int))code)(rounds);
}

static void *thread(void *unused)
{
	for (int i = 0; i < 2; i++) {
		pthread_barrier_wait(&barrier);
		run(PLUGIN);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void run_in_two_threads(const char *path)
{
	map(path, PLUGIN, PROT_READ | PROT_EXEC);
	pthread_barrier_wait(&barrier);
	run(PLUGIN);
	pthread_barrier_wait(&barrier);
}

int main(int argc, char **argv)
{
	char *third = (char *)PLUGIN + (16 << 20);
	int status = -1;
	pthread_t other;

	rounds = argc > 1 ? atoi(argv[1]) : 1000;
	pthread_barrier_init(&barrier, NULL, 2);
	CHECK(pthread_create(&other, NULL, thread, NULL) == 0);
	run_in_two_threads("/tmp/first");
	run_in_two_threads("/tmp/second");
	pthread_join(other, NULL);
	if (fork() == 0) {
		run(PLUGIN);
		_exit(0);
	}
	CHECK(wait(&status) > 0 && status == 0);
	map("/tmp/third", third, PROT_READ);
	CHECK(mprotect(third, BYTES, PROT_READ | PROT_EXEC) == 0);
	run(third);
	return check_finish("codefiles");
}
