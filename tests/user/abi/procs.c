// SPDX-License-Identifier: BSD-2-Clause
/*
 * Files of /proc that programs read: settings of the system; locks; the limits, environment,
 * threads, state and memory of a process. Also settings that prctl() reads back, and the core bit
 * of a wait status.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "run.h"

extern char **environ;

static char text[65536];

static const char *read_file(const char *name)
{
	int fd = open(name, O_RDONLY);
	ssize_t n, len = 0;

	while (fd >= 0 && (n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += n;
	text[len] = '\0';
	close(fd);
	return text;
}

static long number_of(const char *name)
{
	char path[128], *end;
	long value;

	snprintf(path, sizeof(path), "/proc/sys/%s", name);
	value = strtol(read_file(path), &end, 10);
	return CHECK(end > text && !strcmp(end, "\n")) ? value : -1;
}

static int is_line(const char *path, const char *line)
{
	size_t len = strlen(line);

	return !strncmp(read_file(path), line, len) && !strcmp(text + len, "\n");
}

TEST(system)
{
	struct utsname name;

	CHECK(!uname(&name));
	CHECK(is_line("/proc/sys/kernel/ostype", name.sysname));
	CHECK(is_line("/proc/sys/kernel/hostname", name.nodename));
	CHECK(is_line("/proc/sys/kernel/osrelease", name.release));
	CHECK(is_line("/proc/sys/kernel/version", name.version));
	CHECK(number_of("kernel/pid_max") > getpid());
	CHECK(number_of("kernel/threads-max") > 20);
	CHECK(number_of("kernel/ngroups_max") >= 32);
	CHECK(prctl(PR_CAPBSET_READ, number_of("kernel/cap_last_cap") + 1) == -1);
	CHECK(number_of("vm/overcommit_memory") >= 0 && number_of("vm/overcommit_memory") <= 2);
	CHECK(number_of("vm/max_map_count") > 1000 && number_of("vm/mmap_min_addr") >= 0);
	CHECK(number_of("fs/file-max") > 100 && number_of("fs/nr_open") >= 1024);
	CHECK(number_of("fs/pipe-max-size") >= 65536);
	CHECK(number_of("kernel/random/entropy_avail") > 0);
}

static int is_uuid(const char *uuid)
{
	for (int i = 0; i < 36; i++) {
		if (i == 8 || i == 13 || i == 18 || i == 23 ? uuid[i] != '-' :
							      !strchr("0123456789abcdef", uuid[i]))
			return 0;
	}
	return uuid[14] == '4' && strchr("89ab", uuid[19]) && !strcmp(uuid + 36, "\n");
}

TEST(uuids)
{
	char first[64];

	CHECK(is_uuid(read_file("/proc/sys/kernel/random/boot_id")));
	strcpy(first, text);
	CHECK(!strcmp(first, read_file("/proc/sys/kernel/random/boot_id")));
	CHECK(is_uuid(read_file("/proc/sys/kernel/random/uuid")));
	strcpy(first, text);
	CHECK(is_uuid(read_file("/proc/sys/kernel/random/uuid")) && strcmp(first, text));
}

TEST(limits)
{
	struct rlimit limit = { 123, 456 }, stack;
	char expected[128];

	CHECK(!setrlimit(RLIMIT_CORE, &limit) && !getrlimit(RLIMIT_STACK, &stack));
	CHECK(!setrlimit(RLIMIT_CPU, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY }));
	read_file("/proc/self/limits");
	snprintf(expected, sizeof(expected), "%-25s %-20s %-20s %-10s\n", "Limit", "Soft Limit",
		 "Hard Limit", "Units");
	CHECK(!strncmp(text, expected, strlen(expected)));
	snprintf(expected, sizeof(expected), "\n%-25s %-20s %-20s %-10s\n", "Max cpu time",
		 "unlimited", "unlimited", "seconds");
	CHECK(strstr(text, expected));
	snprintf(expected, sizeof(expected), "\n%-25s %-20d %-20d %-10s\n", "Max core file size",
		 123, 456, "bytes");
	CHECK(strstr(text, expected) && strstr(text, "\nMax nice priority "));
}

TEST(environment)
{
	struct stat st;
	size_t len;

	CHECK(!stat("/proc/self/environ", &st) && (st.st_mode & 0777) == 0400);
	read_file("/proc/self/environ");
	for (len = 0; *environ && strlen(text + len); environ++) {
		CHECK(!strcmp(text + len, *environ));
		len += strlen(*environ) + 1;
	}
	CHECK(!*environ && !strlen(text + len));
}

static void *outlive(void *arg)
{
	sleep_ms(1000000);
	return arg;
}

static char state_of(pid_t pid)
{
	char name[32], *end;

	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	end = strrchr(read_file(name), ')');
	return end ? end[2] : 0;
}

static int has_directory(const char *format, int nr)
{
	struct stat st;
	char name[64];

	snprintf(name, sizeof(name), format, nr);
	if (!stat(name, &st))
		return S_ISDIR(st.st_mode);
	CHECK(errno == ENOENT);
	return 0;
}

/* Returns how many of the processes /proc lists, each once and in this order. */
static int nr_listed(const pid_t *pids, int nr)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int found = 0;

	CHECK(dir != NULL);
	while ((entry = readdir(dir))) {
		for (int i = 0; i < nr; i++) {
			if (atoi(entry->d_name) == pids[i])
				CHECK(i == found++);
		}
	}
	closedir(dir);
	return found;
}

/*
 * Directories of processes can be looked up in any order, and are listed in the order of their
 * numbers.
 */
TEST(directories)
{
	pid_t pids[5];
	int dir, pid;

	for (int i = 0; i < 5; i++) {
		pids[i] = fork_child();
		if (!pids[i]) {
			sleep_ms(1000000);
			child_exit(1);
		}
	}
	for (int i = 4; i >= 1; i--)
		CHECK(has_directory("/proc/%d", pids[i]));
	CHECK(nr_listed(pids, 5) == 5 && nr_listed(pids, 5) == 5);
	pid = pids[0];
	CHECK(!has_directory("/proc/0%d", pid) && !has_directory("/proc/%dx", pid));
	CHECK(!has_directory("/proc/+%d", pid) && !has_directory("/proc/%d00000000", pid));
	dir = open("/proc/self/../.", O_RDONLY);
	CHECK(dir >= 0 && !close(dir) && state_of(pid) != 0);
	CHECK(!kill(pid, SIGKILL) && WAIT_UNTIL(state_of(pid) == 'Z'));
	CHECK(has_directory("/proc/%d", pid) && nr_listed(pids, 5) == 5);
	CHECK(child_status(pid) == SIGKILL && !has_directory("/proc/%d", pid));
	CHECK(nr_listed(pids + 1, 4) == 4);
	for (int i = 4; i >= 1; i--) {
		CHECK(!kill(pids[i], SIGKILL) && child_status(pids[i]) == SIGKILL);
		CHECK(!has_directory("/proc/%d/fd", pids[i]) &&
		      nr_listed(pids + 1, i - 1) == i - 1);
	}
}

static void *spin(void *arg)
{
	for (;;)
		sched_yield();
	return arg;
}

/* The state of a process is that of its first thread, whatever its other threads do. */
TEST(state)
{
	pthread_t thread;
	pid_t pid = fork_child();

	if (!pid) {
		CHECK(!pthread_create(&thread, NULL, outlive, NULL));
		pthread_exit(NULL);
	}
	CHECK(WAIT_UNTIL(state_of(pid) == 'Z') && !waitpid(pid, NULL, WNOHANG));
	CHECK(!kill(pid, SIGKILL) && child_status(pid) == SIGKILL);
	pid = fork_child();
	if (!pid) {
		CHECK(!pthread_create(&thread, NULL, spin, NULL));
		sleep_ms(1000000);
	}
	CHECK(WAIT_UNTIL(state_of(pid) == 'S'));
	for (int i = 0; i < 20; i++)
		CHECK(state_of(pid) == 'S');
	CHECK(!kill(pid, SIGKILL) && child_status(pid) == SIGKILL);
}

static pthread_barrier_t barrier;
static pid_t tids[3];

static void *named(void *arg)
{
	long i = (long)arg;
	char name[16];

	tids[i] = syscall(SYS_gettid);
	snprintf(name, sizeof(name), "thread %ld", i);
	prctl(PR_SET_NAME, name);
	if (i == 1)
		for (volatile long k = 0; k < 100000000; k++)
			;
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

/*
 * Returns the number of threads listed in a process's directory. Sets *has if this one is among
 * them.
 */
static int count_tasks(const char *path, pid_t tid, int *has)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int nr = 0;

	*has = 0;
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		nr++;
		*has |= atoi(entry->d_name) == tid;
	}
	if (dir)
		closedir(dir);
	return nr;
}

/* Lists the directory of a new process, in order, after a look at these of its files. */
static void list_new(const char *const *first, char *names, size_t size)
{
	pid_t child = fork();
	char path[64];
	struct dirent *entry;
	DIR *dir;

	if (!child) {
		pause();
		_exit(0);
	}
	for (; *first; first++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", child, *first);
		CHECK(!access(path, F_OK));
	}
	snprintf(path, sizeof(path), "/proc/%d", child);
	dir = opendir(path);
	names[0] = '\0';
	while (CHECK(dir != NULL) && (entry = readdir(dir))) {
		CHECK(strlen(names) + strlen(entry->d_name) + 2 < size);
		strcat(strcat(names, entry->d_name), " ");
	}
	closedir(dir);
	kill(child, SIGKILL);
	CHECK(waitpid(child, NULL, 0) == child);
}

TEST(order)
{
	static const char *const none[] = { NULL };
	static const char *const some[] = { "status", "task", "exe", "comm", NULL };
	char names[2048], after[2048];

	list_new(none, names, sizeof(names));
	CHECK(strstr(names, " comm ") && strstr(names, " task "));
	list_new(some, after, sizeof(after));
	CHECK(!strcmp(names, after));
}

static long status_number(const char *path, const char *name)
{
	const char *line = strstr(read_file(path), name);

	return line ? strtol(line + strlen(name), NULL, 10) : -1;
}

static long user_ticks(pid_t tid)
{
	char path[64], *end;
	long ticks = -1;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	end = strrchr(read_file(path), ')');
	if (end && atoi(text) == tid)
		sscanf(end, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld", &ticks);
	return ticks;
}

TEST(threads)
{
	char path[64], line[32], other[64];
	pthread_t threads[3];
	struct stat st;
	int has, fd;

	CHECK(count_tasks("/proc/self/task", getpid(), &has) == 1 && has);
	pthread_barrier_init(&barrier, NULL, 4);
	for (long i = 0; i < 3; i++)
		CHECK(!pthread_create(&threads[i], NULL, named, (void *)i));
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 3; i++) {
		CHECK(count_tasks("/proc/self/task", tids[i], &has) == 4 && has);
		snprintf(path, sizeof(path), "/proc/self/task/%d/comm", tids[i]);
		snprintf(line, sizeof(line), "thread %d", i);
		CHECK(is_line(path, line));
		snprintf(path, sizeof(path), "/proc/%d/task/%d/status", getpid(), tids[i]);
		CHECK(strstr(read_file(path), line) == text + strlen("Name:\t"));
		CHECK(status_number(path, "\nPid:") == tids[i]);
		CHECK(status_number(path, "\nTgid:") == getpid());
		CHECK(status_number(path, "\nThreads:") == 4);
	}
	CHECK(is_line("/proc/self/comm", "procs") || is_line("/proc/self/comm", "procs.musl"));
	/* Only the thread that worked has used CPU time. */
	CHECK(user_ticks(tids[1]) > 0 && user_ticks(tids[1]) > user_ticks(tids[0]));
	/* Files that are not a thread's own show its process. */
	snprintf(path, sizeof(path), "/proc/self/task/%d/cmdline", tids[2]);
	strcpy(other, read_file("/proc/self/cmdline"));
	CHECK(!strcmp(read_file(path), other));
	snprintf(path, sizeof(path), "/proc/self/task/%d/fd/0", tids[2]);
	CHECK(readlink(path, line, sizeof(line)) > 0);
	snprintf(path, sizeof(path), "/proc/self/task/%d/task", tids[2]);
	CHECK(stat(path, &st) == -1 && errno == ENOENT);
	CHECK(stat("/proc/self/task/1x", &st) == -1 && errno == ENOENT);
	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", tids[2]);
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 3; i++)
		CHECK(!pthread_join(threads[i], NULL));
	/* A thread that was joined may still be on its way out. */
	CHECK(WAIT_UNTIL(count_tasks("/proc/self/task", tids[2], &has) == 1));
	CHECK(!has && pread(fd, line, 8, 0) == -1 && errno == ESRCH && !close(fd));
}

#define KB     1024
#define MAPPED (256 * KB)

/* Returns a value in kB of the area that begins at start. */
static long smaps_kb(void *start, const char *name)
{
	char head[32];
	const char *area;

	snprintf(head, sizeof(head), "%08lx-", (unsigned long)start);
	area = strstr(read_file("/proc/self/smaps"), head);
	area = area ? strstr(area, name) : NULL;
	return area ? strtol(area + strlen(name), NULL, 10) : -1;
}

TEST(smaps)
{
	char *private =
		mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open(check_file_name(), O_RDWR | O_CREAT, 0600), pipes[2];
	char *file = mmap(NULL, MAPPED, PROT_READ, MAP_PRIVATE, fd, 0), c;
	long rss = 0, all;
	pid_t pid;

	madvise(private, MAPPED, MADV_NOHUGEPAGE);
	CHECK(fd >= 0 && !ftruncate(fd, MAPPED) && private != MAP_FAILED && file != MAP_FAILED);
	CHECK(!pipe(pipes) && smaps_kb(private, "\nSize:") == MAPPED / KB);
	CHECK(smaps_kb(private, "\nRss:") == 0 && smaps_kb(private, "\nPss:") == 0);
	memset(private, 1, MAPPED / 4);
	CHECK(smaps_kb(private, "\nRss:") == MAPPED / 4 / KB);
	CHECK(smaps_kb(private, "\nPss:") == MAPPED / 4 / KB);
	CHECK(smaps_kb(private, "\nPrivate_Dirty:") == MAPPED / 4 / KB);
	CHECK(smaps_kb(private, "\nAnonymous:") == MAPPED / 4 / KB);
	CHECK(smaps_kb(private, "\nShared_Dirty:") == 0);
	CHECK(smaps_kb(private, "\nKernelPageSize:") == 4 && smaps_kb(private, "\nSwap:") == 0);
	/* A child has the same pages, until one of the two writes to them. */
	pid = fork_child();
	if (!pid) {
		close(pipes[1]);
		child_exit(read(pipes[0], &c, 1));
	}
	CHECK(smaps_kb(private, "\nShared_Dirty:") == MAPPED / 4 / KB);
	CHECK(smaps_kb(private, "\nPrivate_Dirty:") == 0);
	CHECK(smaps_kb(private, "\nPss:") == MAPPED / 8 / KB);
	memset(private, 2, MAPPED / 16);
	CHECK(smaps_kb(private, "\nShared_Dirty:") == MAPPED * 3 / 16 / KB);
	CHECK(smaps_kb(private, "\nPrivate_Dirty:") == MAPPED / 16 / KB);
	CHECK(!close(pipes[1]) && child_status(pid) == 0);
	/* Pages of a file. Linux may also map the pages around one that is touched. */
	for (int i = 0; i < MAPPED; i += 4096)
		c = ((volatile char *)file)[i];
	CHECK(smaps_kb(file, "\nRss:") == MAPPED / KB && smaps_kb(file, "\nAnonymous:") == 0);
	CHECK(smaps_kb(file, "\nPrivate_Clean:") + smaps_kb(file, "\nPrivate_Dirty:") ==
	      MAPPED / KB);
	CHECK(!munmap(private, MAPPED) && smaps_kb(private, "\nSize:") == -1);
	/* smaps_rollup has the sums over all areas. */
	read_file("/proc/self/smaps");
	for (const char *at = text; (at = strstr(at, "\nRss:")); at++)
		rss += strtol(at + 5, NULL, 10);
	all = status_number("/proc/self/smaps_rollup", "\nRss:");
	CHECK(rss > 0 && all >= rss - 64 && all <= rss + 64);
	CHECK(!munmap(file, MAPPED) && !close(fd) && !unlink(check_file_name()));
	close(pipes[0]);
}

/* Returns whether /proc/locks has a line with this kind, process, file and range. */
static int lock_is_told(const char *how, pid_t pid, const struct stat *st, const char *range)
{
	char start[64], end[64];

	snprintf(start, sizeof(start), ": %s %d ", how, pid);
	snprintf(end, sizeof(end), ":%lu %s\n", (unsigned long)st->st_ino, range);
	for (char *line = (char *)read_file("/proc/locks"), *next; *line; line = next) {
		char *at = strstr(line, start), *tail = strstr(line, end);

		next = strchr(line, '\n') + 1;
		if (at && tail && at < tail && tail < next)
			return 1;
	}
	return 0;
}

TEST(locks)
{
	struct flock lock = { .l_type = F_WRLCK, .l_start = 10, .l_len = 5 };
	int fd = open(check_file_name(), O_RDWR | O_CREAT, 0600);
	struct stat st;
	pid_t pid;

	CHECK(!fstat(fd, &st) && !fcntl(fd, F_SETLK, &lock));
	CHECK(lock_is_told("POSIX  ADVISORY  WRITE", getpid(), &st, "10 14"));
	pid = fork_child();
	if (!pid) {
		lock.l_len = 0;
		CHECK(!fcntl(fd, F_SETLKW, &lock));
		child_exit(0);
	}
	CHECK(WAIT_UNTIL(lock_is_told("-> POSIX  ADVISORY  WRITE", pid, &st, "10 EOF")));
	lock.l_type = F_UNLCK;
	CHECK(!fcntl(fd, F_SETLK, &lock) && child_status(pid) == 0);
	CHECK(!lock_is_told("POSIX  ADVISORY  WRITE", getpid(), &st, "10 14"));
	CHECK(!flock(fd, LOCK_SH));
	CHECK(lock_is_told("FLOCK  ADVISORY  READ", getpid(), &st, "0 EOF"));
	lock.l_type = F_RDLCK;
	CHECK(!flock(fd, LOCK_UN) && !fcntl(fd, F_OFD_SETLK, &lock));
	CHECK(lock_is_told("OFDLCK ADVISORY  READ", -1, &st, "10 14"));
	CHECK(!close(fd) && !lock_is_told("OFDLCK ADVISORY  READ", -1, &st, "10 14"));
	CHECK(!unlink(check_file_name()));
}

/* With RLIMIT_CORE 0 no core is dumped, and the wait status does not have the core bit. */
TEST(core_bit)
{
	pid_t pid = fork_child();
	int status;

	if (!pid) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
		abort();
	}
	status = child_status(pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	CHECK(!WCOREDUMP(status) || read_file("/proc/sys/kernel/core_pattern")[0] == '|');
}

/* A separate test, which test_settings() also executes. */
TEST(execed)
{
	CHECK(prctl(PR_GET_KEEPCAPS) == 0);
	CHECK(getenv("PERSONALITY") == NULL || personality(0xffffffff) == ADDR_NO_RANDOMIZE);
}

static void *see_personality(void *arg)
{
	CHECK(personality(0) == ADDR_NO_RANDOMIZE && personality(0xffffffff) == 0);
	return arg;
}

/* Children, threads and programs inherit the request not to randomize addresses. */
TEST(personality)
{
	pthread_t thread;
	int status = -1;

	CHECK(personality(0xffffffff) == 0 && personality(ADDR_NO_RANDOMIZE) == 0);
	CHECK(personality(0xffffffff) == ADDR_NO_RANDOMIZE);
	CHECK(!pthread_create(&thread, NULL, see_personality, NULL));
	CHECK(!pthread_join(thread, NULL) && personality(0xffffffff) == ADDR_NO_RANDOMIZE);
	if (!fork_child()) {
		CHECK(personality(0xffffffff) == ADDR_NO_RANDOMIZE);
		fflush(stdout);
		setenv("PERSONALITY", "1", 1);
		execl("/proc/self/exe", "procs", "execed", NULL);
		child_exit(1);
	}
	CHECK(wait(&status) > 0 && status == 0 && personality(0) == ADDR_NO_RANDOMIZE);
	if (check_on_lego())
		CHECK(personality(8) == -1 && errno == EINVAL); /* PER_LINUX32 */
}

static void *see_slack(void *arg)
{
	CHECK(prctl(PR_GET_TIMERSLACK) == 70000 && !prctl(PR_SET_TIMERSLACK, 80000));
	CHECK(prctl(PR_GET_TIMERSLACK) == 80000 && !prctl(PR_SET_TIMERSLACK, 0));
	CHECK(prctl(PR_GET_TIMERSLACK) == 70000);
	return arg;
}

/* Settings of prctl() that can be read back, and which of them threads and children inherit. */
TEST(settings)
{
	long slack = prctl(PR_GET_TIMERSLACK);
	pthread_t thread;
	int value = -1;

	CHECK(slack == 50000 && !prctl(PR_SET_TIMERSLACK, 70000));
	CHECK(!pthread_create(&thread, NULL, see_slack, NULL) && !pthread_join(thread, NULL));
	CHECK(prctl(PR_GET_TIMERSLACK) == 70000 && !prctl(PR_SET_TIMERSLACK, 0));
	CHECK(prctl(PR_GET_TIMERSLACK) == 50000);
	CHECK(prctl(PR_GET_KEEPCAPS) == 0 && !prctl(PR_SET_KEEPCAPS, 1));
	CHECK(prctl(PR_GET_KEEPCAPS) == 1 && prctl(PR_GET_SECUREBITS) == 1 << 4);
	CHECK(prctl(PR_SET_KEEPCAPS, 2) == -1 && errno == EINVAL);
	CHECK(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 0);
	CHECK(!prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
	CHECK(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1);
	CHECK(prctl(PR_SET_THP_DISABLE, 1, 1, 0, 0) == -1 && errno == EINVAL);
	CHECK(prctl(PR_GET_THP_DISABLE, 1, 0, 0, 0) == -1 && errno == EINVAL);
	if (!fork_child()) {
		CHECK(prctl(PR_GET_KEEPCAPS) == 1 && prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1);
		fflush(stdout);
		execl("/proc/self/exe", "procs", "execed", NULL);
		child_exit(1);
	}
	CHECK(wait(&value) > 0 && value == 0);
	CHECK(!prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0) && !prctl(PR_SET_KEEPCAPS, 0));
	CHECK(prctl(PR_GET_TIMING) == PR_TIMING_STATISTICAL && !prctl(PR_GET_SECUREBITS));
	CHECK(!prctl(PR_SET_TIMING, PR_TIMING_STATISTICAL));
	CHECK(prctl(PR_SET_TIMING, PR_TIMING_TIMESTAMP) == -1 && errno == EINVAL);
	CHECK(!prctl(PR_SET_TSC, PR_TSC_ENABLE) && prctl(PR_SET_TSC, 3) == -1 && errno == EINVAL);
}

TEST(prctl)
{
	int value = -1;
	pid_t pid;

	CHECK(!prctl(PR_GET_CHILD_SUBREAPER, &value) && value == 0);
	CHECK(!prctl(PR_SET_CHILD_SUBREAPER, 1));
	CHECK(!prctl(PR_GET_CHILD_SUBREAPER, &value) && value == 1);
	pid = fork_child();
	if (!pid) {
		CHECK(!prctl(PR_GET_CHILD_SUBREAPER, &value) && value == 0); /* not inherited */
		if (!fork_child()) {
			pid_t parent = getpid();

			if (!fork_child()) {
				CHECK(WAIT_UNTIL(getppid() != parent));
				child_exit(5);
			}
			child_exit(4);
		}
		child_exit(3);
	}
	/* A subreaper gets the children of its children when these end, in any order. */
	value = 0;
	for (int i = 0, status; i < 3; i++) {
		CHECK(wait(&status) > 0 && WIFEXITED(status));
		value |= 1 << WEXITSTATUS(status);
	}
	CHECK(value == (1 << 3 | 1 << 4 | 1 << 5));
	CHECK(!prctl(PR_SET_CHILD_SUBREAPER, 0));
	CHECK(prctl(PR_CAPBSET_READ, 1000) == -1 && errno == EINVAL);
	CHECK(!prctl(PR_GET_TSC, &value) && value == PR_TSC_ENABLE);
	CHECK(!prctl(PR_GET_SECUREBITS));
	CHECK_ERROR(EFAULT, SYS_prctl, PR_GET_CHILD_SUBREAPER, 8);
}

int main(int argc, char **argv)
{
	return run_tests("procs", argc, argv);
}
