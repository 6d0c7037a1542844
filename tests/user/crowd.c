// SPDX-License-Identifier: BSD-2-Clause
/*
 * crowd threads|processes <n> [keys]: starts n threads or processes that make some calls and then
 * sleep, and reads, resets and switches the profilers. With `keys` it waits for a line instead,
 * while sysrq keys do that. Before that it switches the profile points, and after that sampling, so
 * that a QEMU plugin knows in which time to look for the longest stretch with interrupts off
 * (tests/boot/test_nostop.py).
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "proc_profile.h"
#include "run.h"

#define DIR	    "/proc/profile/"
#define STACK_BYTES (64 << 10)

static int *nr_ready;

/*
 * Makes 12 kinds of calls, 4 of which fail, and sleeps: as many table rows as a small program has.
 */
static void *work_and_sleep(void *unused)
{
	static const long calls[] = { SYS_getpid, SYS_gettid,  SYS_getppid, SYS_getuid,
				      SYS_getgid, SYS_geteuid, SYS_getegid, SYS_sched_yield };
	static const long failing[] = { SYS_close, SYS_dup, SYS_fsync, SYS_lseek };

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		syscall(calls[i]);
	for (size_t i = 0; i < sizeof(failing) / sizeof(*failing); i++)
		syscall(failing[i], -1);
	__atomic_add_fetch(nr_ready, 1, __ATOMIC_RELAXED);
	for (;;)
		pause();
	return NULL;
}

static void start(int is_process)
{
	pthread_attr_t attr;
	pthread_t thread;
	pid_t pid;

	if (is_process) {
		pid = fork_child();
		if (!pid)
			work_and_sleep(NULL);
		return;
	}
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	CHECK(!pthread_create(&thread, &attr, work_and_sleep, NULL));
}

/* Reads a file as print_file() does, but prints nothing. Returns the number of bytes. */
static size_t read_all(const char *path)
{
	static char buf[1 << 16];
	int fd = open(path, O_RDONLY);
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		len += n;
	CHECK(n == 0);
	close(fd);
	return len;
}

static void read_and_switch(void)
{
	CHECK(read_all(DIR "strace") > 1000);
	CHECK(read_all("/proc/self/strace") > 500);
	CHECK(read_all(DIR "report") > 1000);
	CHECK(read_all(DIR "heatmap") > 500);
	control(DIR "strace", "off");
	control(DIR "strace", "on");
	control("/proc/self/strace", "reset");
	control(DIR "strace", "reset");
	CHECK(read_all(DIR "strace") > 500);
	control(DIR "report", "reset");
}

static void wait_for_line(void)
{
	char line[16];

	puts("crowd: waits");
	fflush(stdout);
	CHECK(read(0, line, sizeof(line)) > 0);
}

int main(int argc, char **argv)
{
	int nr = argc > 2 ? atoi(argv[2]) : 1000;
	int is_process = argc > 1 && !strcmp(argv[1], "processes");

	nr_ready = mmap(NULL, sizeof(*nr_ready), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (!CHECK(nr_ready != MAP_FAILED))
		return 1;
	for (int i = 0; i < nr; i++)
		start(is_process);
	CHECK(WAIT_UNTIL(__atomic_load_n(nr_ready, __ATOMIC_RELAXED) == nr));
	control(DIR "points", "*");
	if (argc > 3)
		wait_for_line();
	else
		read_and_switch();
	control(DIR "heatmap", "off");
	return check_finish("crowd");
}
