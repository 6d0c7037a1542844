// SPDX-License-Identifier: BSD-2-Clause
/*
 * hoard UID KIND...: as that user, processes take as much as they can of something that uses kernel
 * memory: pipes, texts of /proc, shared memory that is not mapped, areas, threads, processes.
 * Meanwhile root starts processes that use some memory, all of which must succeed. Then root kills
 * all processes of that user. Prints `hoard KIND: ` and the number of root's processes. Only for
 * the guest, which should have little memory.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

#include "run.h"

#define PAGE	   4096ul
#define MAX_FDS	   1024
#define NR_ROUNDS  20 /* root starts at least so many processes */
#define TIMEOUT_MS 60000

static struct shared {
	int nr_refused; /* threads or processes */
	int error;	/* an errno that no hoarder expects */
} * shared;

/* Memory of root's process: it must use more than a hoarder, and still be spared. */
static char ballast[3 << 20] __attribute__((aligned(4096)));

/* Ends a hoarder after an unexpected error, and reports the error to root's process. */
static void unexpected(int error)
{
	shared->error = error;
	child_exit(1);
}

static void go_on_in_child(void)
{
	pid_t pid;

	while ((pid = fork()) < 0) {
		if (errno != EAGAIN && errno != ENOMEM)
			unexpected(errno);
		sleep_ms(10);
	}
	if (pid) {
		for (;;)
			pause();
	}
	for (int fd = 3; fd < MAX_FDS; fd++)
		close(fd);
}

static void hoard_pipes(void)
{
	static char bytes[1 << 16];
	int fds[2];

	for (;;) {
		while (!pipe2(fds, O_NONBLOCK)) {
			if (write(fds[1], bytes, sizeof(bytes)) != sizeof(bytes))
				unexpected(errno);
		}
		if (errno != EMFILE && errno != ENOMEM)
			unexpected(errno);
		go_on_in_child();
	}
}

/* Areas of a file with a long path, so that /proc/self/maps is a text of megabytes. */
static void make_long_maps(void)
{
	char name[201];
	int fd;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	if (chdir("/tmp"))
		unexpected(errno);
	for (int i = 0; i < 18; i++) {
		if ((mkdir(name, 0777) && errno != EEXIST) || chdir(name))
			unexpected(errno);
	}
	fd = open("file", O_RDWR | O_CREAT, 0666);
	if (fd < 0 || ftruncate(fd, PAGE))
		unexpected(errno);
	for (int i = 0; i < 300; i++) {
		if (mmap(NULL, PAGE, i & 1 ? PROT_READ : PROT_NONE, MAP_PRIVATE, fd, 0) ==
		    MAP_FAILED)
			unexpected(errno);
	}
}

static void hoard_texts(void)
{
	char byte;
	int fd;

	make_long_maps();
	for (;;) {
		while ((fd = open("/proc/self/maps", O_RDONLY)) >= 0) {
			if (read(fd, &byte, 1) != 1 && errno != ENOMEM)
				unexpected(errno);
		}
		if (errno != EMFILE && errno != ENOMEM)
			unexpected(errno);
		go_on_in_child();
	}
}

/* Writes shared memory and unmaps all but one page, which keeps the rest allocated. */
static void hoard_shared(void)
{
	for (;;) {
		char *memory = mmap(NULL, 256 * PAGE, PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED)
			unexpected(errno);
		memset(memory, 1, 256 * PAGE);
		munmap(memory + PAGE, 255 * PAGE);
	}
}

static void hoard_areas(void)
{
	char *memory = mmap(NULL, 32000 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int i = 0; memory != MAP_FAILED && i < 32000; i += 2) {
		if (mprotect(memory + i * PAGE, PAGE, PROT_READ))
			unexpected(errno);
	}
	for (;;)
		go_on_in_child();
}

static void count_refused(int error)
{
	if (error != EAGAIN && error != ENOMEM)
		unexpected(error);
	__atomic_add_fetch(&shared->nr_refused, 1, __ATOMIC_RELAXED);
	sleep_ms(20);
}

static void *wait_in_thread(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void hoard_threads(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (;;) {
		int error = pthread_create(&thread, &attr, wait_in_thread, NULL);

		if (error)
			count_refused(error);
	}
}

static void hoard_processes(void)
{
	for (;;) {
		if (fork() < 0)
			count_refused(errno);
	}
}

#define KIND(name)                  \
	{                           \
#name, hoard_##name \
	}

static const struct kind {
	const char *name;
	void (*run)(void);
} kinds[] = {
	KIND(pipes), KIND(texts), KIND(shared), KIND(areas), KIND(threads), KIND(processes),
};

/* Returns how many processes were killed for lack of memory, by the log. */
static int nr_kills(void)
{
	static char log[1 << 18];
	int n = klogctl(3, log, sizeof(log) - 1), nr = 0;

	log[n < 0 ? 0 : n] = 0;
	for (const char *line = log; (line = strstr(line, "out of memory: killed")); line++)
		nr++;
	return nr;
}

static unsigned long free_bytes(void)
{
	struct sysinfo info = { 0 };

	CHECK(!sysinfo(&info));
	return info.freeram * info.mem_unit;
}

static void become(uid_t user)
{
	CHECK(!setgroups(0, NULL) && !setgid(user) && !setuid(user));
	/* Frees memory, or this process would be the one that the kernel kills. */
	munmap(ballast, sizeof(ballast));
}

/* Runs a process of root's that needs 256 KiB. Returns false if it did not succeed. */
static int work(void)
{
	static char memory[64 * PAGE];
	pid_t pid = fork();

	if (!pid) {
		memset(memory, 1, sizeof(memory));
		_exit(3);
	}
	return CHECK(pid > 0 && child_status(pid) == EXITED(3));
}

/* Kills all processes of the user, as `su` with `kill -9 -1` does. Once must be enough. */
static void kill_all(uid_t user, pid_t first)
{
	pid_t pid = fork_child();

	if (!pid) {
		become(user);
		CHECK(!kill(-1, SIGKILL) || errno == ESRCH);
		child_exit(3);
	}
	CHECK(child_status(pid) == EXITED(3));
	CHECK(child_status(first) == SIGKILL);
	/* No process is left. */
	CHECK(WAIT_UNTIL(getpriority(PRIO_USER, user) == -1 && errno == ESRCH));
}

static void test(const struct kind *kind, uid_t user)
{
	unsigned long free_before = free_bytes();
	int kills_before = nr_kills(), nr = 0;
	long end_ms = now_ms() + TIMEOUT_MS;
	pid_t pid = fork_child();

	shared->nr_refused = 0;
	if (!pid) {
		become(user);
		kind->run();
	}
	while (nr < NR_ROUNDS || (nr_kills() == kills_before && shared->nr_refused < 20)) {
		if (!CHECK(now_ms() < end_ms) || !work())
			break;
		nr++;
	}
	kill_all(user, pid);
	CHECK(!shared->error);
	CHECK(WAIT_UNTIL(free_bytes() + (8 << 20) > free_before));
	printf("hoard %s: root started %d processes, %d were killed\n", kind->name, nr,
	       nr_kills() - kills_before);
}

static int run(uid_t user, char **names)
{
	memset(ballast, 1, sizeof(ballast));
	for (; *names; names++) {
		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
			if (!strcmp(kinds[i].name, *names))
				test(&kinds[i], user);
		}
	}
	return check_finish("hoard");
}

/* Process 1 only reaps, because the kernel never kills it. */
int main(int argc, char **argv)
{
	int status = -1, other;
	pid_t pid, got;

	setvbuf(stdout, NULL, _IOLBF, 0);
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (argc < 3 || shared == MAP_FAILED)
		return 1;
	pid = fork_child();
	if (!pid)
		exit(run(atoi(argv[1]), argv + 2));
	while ((got = wait(&other)) > 0) {
		if (got == pid)
			status = other;
	}
	return status != 0;
}
