// SPDX-License-Identifier: BSD-2-Clause
/*
 * bench-events each N: TSC cycles for N of each kind of event: a call that fails, the same after 39
 * others have failed, a call without a name, a context switch, a page fault. Lines
 * `bench: <name> <cycles> <events>`.
 *
 * bench-events linux N: the same lines for N of each operation that is compared with Linux.
 *
 * bench-events memory N: has 64 MiB, and uses 12 MiB of it N times: `bench: memory <cycles> <N>`,
 * and `bench: samples <nr> 1`, the samples of pages in that time.
 *
 * bench-events run PROGRAM ARGUMENTS: `bench: run <cycles> 1`, from fork() until it is reaped.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define NO_SUCH_CALL 999
#define PAGE_BYTES   4096

static void die(const char *what)
{
	printf("bench-events: %s\n", what);
	exit(1);
}

static long call(long nr)
{
	long ret;

	asm volatile("syscall" : "=a"(ret) : "0"(nr), "D"(-1l) : "rcx", "r11", "memory");
	return ret;
}

static void time_calls(const char *name, long nr, long error, long nr_events)
{
	uint64_t start;
	long wrong = 0;

	wrong += call(nr) != -error; /* the first call of a kind takes longer */
	start = rdtsc();
	for (long i = 0; i < nr_events; i++)
		wrong += call(nr) != -error;
	bench_print(name, rdtsc() - start, nr_events);
	if (wrong)
		die("a call did not fail as it must");
}

/* Makes 39 failing calls, with different errors: a bad descriptor, a bad address, no such child. */
static void fail_others(void)
{
	static const int calls[] = {
		SYS_read,	SYS_write,    SYS_fstat,     SYS_lseek,	 SYS_ioctl,	SYS_pread64,
		SYS_pwrite64,	SYS_readv,    SYS_writev,    SYS_dup,	 SYS_dup2,	SYS_dup3,
		SYS_fcntl,	SYS_fsync,    SYS_ftruncate, SYS_fchdir, SYS_fchmod,	SYS_fchown,
		SYS_getdents64, SYS_open,     SYS_stat,	     SYS_lstat,	 SYS_access,	SYS_chdir,
		SYS_rename,	SYS_mkdir,    SYS_rmdir,     SYS_link,	 SYS_unlink,	SYS_symlink,
		SYS_readlink,	SYS_chmod,    SYS_chown,     SYS_pipe,	 SYS_nanosleep, SYS_uname,
		SYS_wait4,	SYS_truncate, SYS_sysinfo,
	};
	size_t nr = sizeof(calls) / sizeof(calls[0]);

	for (size_t i = 0; i < nr; i++) {
		if (syscall(calls[i], -1l, -1l, -1l, -1l) != -1)
			die("one of the 39 calls did not fail");
	}
	bench_print("nr_others", nr, 1);
}

/* Two threads on one CPU that give way to each other. Each yield is a switch. */
static volatile int stop;
static volatile long nr_yields;

static void *yield_too(void *unused)
{
	while (!stop) {
		nr_yields++;
		sched_yield();
	}
	return unused;
}

static void time_switches(long nr)
{
	uint64_t start;
	pthread_t thread;
	long before;

	if (pthread_create(&thread, NULL, yield_too, NULL))
		die("no second thread");
	for (int i = 0; i < 100; i++)
		sched_yield();
	before = nr_yields;
	start = rdtsc();
	for (long i = 0; i < nr / 2; i++)
		sched_yield();
	start = rdtsc() - start;
	bench_print("switch", start, nr / 2 + nr_yields - before);
	stop = 1;
	pthread_join(thread, NULL);
}

/*
 * Times first touches of pages. The same memory is touched in each round, so that the kernel has
 * free pages for it.
 */
static void time_faults(long nr)
{
	uint64_t start = 0;

	for (int round = 0; round < 2; round++) {
		char *pages = mmap(NULL, nr * PAGE_BYTES, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (pages == MAP_FAILED)
			die("no memory");
		start = rdtsc();
		for (long i = 0; i < nr; i++)
			((volatile char *)pages)[i * PAGE_BYTES] = 1;
		start = rdtsc() - start;
		munmap(pages, nr * PAGE_BYTES);
	}
	bench_print("fault", start, nr);
}

static void fork_and_wait(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	if (waitpid(pid, NULL, 0) != pid)
		die("no child");
}

static void exec_and_wait(void)
{
	pid_t pid = fork();

	if (!pid) {
		execl("/bin/bench-events", "bench-events", "nothing", NULL);
		_exit(1);
	}
	if (waitpid(pid, NULL, 0) != pid)
		die("no child");
}

static int zero, pipe_fds[2];
static char page[PAGE_BYTES];

static void read_page(void)
{
	if (read(zero, page, sizeof(page)) != sizeof(page))
		die("/dev/zero");
}

static void read_byte(void)
{
	if (read(zero, page, 1) != 1)
		die("/dev/zero");
}

static void pass_page(void)
{
	if (write(pipe_fds[1], page, sizeof(page)) != sizeof(page) ||
	    read(pipe_fds[0], page, sizeof(page)) != sizeof(page))
		die("pipe");
}

static void ignore(int signal)
{
}

static void send_signal(void)
{
	kill(getpid(), SIGUSR1);
}

static int compare_with_linux(long nr)
{
	zero = open("/dev/zero", O_RDONLY);
	if (zero < 0 || pipe(pipe_fds))
		die("no files");
	signal(SIGUSR1, ignore);
	time_operation("fork", fork_and_wait, nr);
	time_operation("exec", exec_and_wait, nr);
	time_operation("read_page", read_page, nr);
	time_operation("read_byte", read_byte, nr);
	time_operation("pipe_page", pass_page, nr);
	time_operation("signal", send_signal, nr);
	return 0;
}

static long nr_samples(void)
{
	FILE *file = fopen("/proc/profile/working_set", "r");
	char line[200], *found;
	long nr = 0;

	while (file && fgets(line, sizeof(line), file)) {
		found = strstr(line, " of a CPU; ");
		if (found)
			nr = atol(strchr(found, ';') + 1);
	}
	if (file)
		fclose(file);
	return nr;
}

#define MEMORY_BYTES (64l << 20)
#define USED_BYTES   (12l << 20)

/* All is touched first, and the regions get some time to find what is used. */
static int use_memory(long nr)
{
	volatile char *pages = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t start = 0;
	long before = 0;

	if (pages == MAP_FAILED)
		die("no memory");
	for (long i = 0; i < MEMORY_BYTES; i += PAGE_BYTES)
		pages[i] = 1;
	for (long round = -nr / 2; round < nr; round++) {
		if (!round) {
			before = nr_samples();
			start = rdtsc();
		}
		for (long i = 0; i < USED_BYTES; i += PAGE_BYTES)
			pages[i]++;
	}
	bench_print("memory", rdtsc() - start, nr);
	bench_print("samples", nr_samples() - before, 1);
	return 0;
}

static int run(char **argv)
{
	uint64_t start = rdtsc();
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		execv(argv[0], argv);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	bench_print("run", rdtsc() - start, 1);
	return status != 0;
}

int main(int argc, char **argv)
{
	long nr = argc > 2 ? atol(argv[2]) : 0;

	if (argc > 2 && !strcmp(argv[1], "run"))
		return run(argv + 2);
	if (argc == 2 && !strcmp(argv[1], "nothing"))
		return 0;
	if (argc == 3 && !strcmp(argv[1], "linux") && nr > 0)
		return compare_with_linux(nr);
	if (argc == 3 && !strcmp(argv[1], "memory") && nr > 0)
		return use_memory(nr);
	if (argc != 3 || strcmp(argv[1], "each") || nr < 2) {
		puts("usage: bench-events each N | linux N | memory N | run PROGRAM ARGUMENTS");
		return 2;
	}
	time_calls("fail", SYS_close, EBADF, nr);
	fail_others();
	time_calls("fail_after_others", SYS_close, EBADF, nr);
	time_calls("unnamed", NO_SUCH_CALL, ENOSYS, nr);
	time_switches(nr);
	time_faults(nr);
	return 0;
}
