// SPDX-License-Identifier: BSD-2-Clause
/*
 * Checks the system call tables while a program runs: it reads its own through /proc.
 *
 *   straces sleep        a futex wait of one second; prints the table of processes
 *   straces files        /proc/<pid>/strace: its own, reset, of a zombie
 *   straces storm N MS   N threads make calls while all tables are read, about once a millisecond
 *
 * Where there are no such files, as on Linux, only the calls are made.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include "check.h"

#define NS_PER_SEC 1000000000ull
#define MIN_READS  8 /* of storm, however slow they are */

static char text[1 << 20];

/* Returns false if there is no such file. */
static bool read_file(const char *path)
{
	int fd = open(path, O_RDONLY);
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return false;
	while ((n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += n;
	text[len] = '\0';
	close(fd);
	return n == 0;
}

static bool write_file(const char *path, const char *what)
{
	int fd = open(path, O_WRONLY);
	bool done;

	if (fd < 0)
		return false;
	done = write(fd, what, strlen(what)) == (ssize_t)strlen(what);
	close(fd);
	return done;
}

struct row {
	uint64_t ns, calls, errors, cpu_ns;
};

/*
 * Finds a row of the wide table. Returns false if the text has none. Without detail, cpu_ns is 0.
 */
static bool find_row(const char *name, struct row *row)
{
	unsigned long long s, ns, calls, errors, cpu_s = 0, cpu_ns = 0;
	const char *line;
	char found[64];

	for (line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (sscanf(line, "%*f %llu.%9llu %*s %llu %llu %63s %llu.%9llu", &s, &ns, &calls,
			   &errors, found, &cpu_s, &cpu_ns) < 5 ||
		    strcmp(found, name))
			continue;
		*row = (struct row){ s * NS_PER_SEC + ns, calls, errors,
				     cpu_s * NS_PER_SEC + cpu_ns };
		return true;
	}
	return false;
}

/* Checks that the rows of each table add up to its total. Returns the number of tables. */
static int check_sums(void)
{
	uint64_t sum_calls = 0, sum_ns = 0, sum_errors = 0;
	int nr_tables = 0;
	const char *line;

	for (line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		unsigned long long s, ns, calls, errors;

		if (!strncmp(line, "Kernel strace\n", 14)) {
			sum_calls = sum_ns = sum_errors = 0;
		} else if (sscanf(line, "%*f %llu.%9llu %*u %llu %llu sys_", &s, &ns, &calls,
				  &errors) == 4 ||
			   sscanf(line, "%*f %llu.%9llu - %llu %llu [return to user]", &s, &ns,
				  &calls, &errors) == 4) {
			sum_calls += calls;
			sum_errors += errors;
			sum_ns += s * NS_PER_SEC + ns;
		} else if (sscanf(line, "100.00 %llu.%9llu %llu %llu total", &s, &ns, &calls,
				  &errors) == 4) {
			CHECK(sum_calls == calls && sum_errors == errors);
			CHECK(sum_ns == s * NS_PER_SEC + ns);
			nr_tables++;
		}
	}
	return nr_tables;
}

static void sleep_in_futex(void)
{
	struct timespec second = { .tv_sec = 1 };
	uint32_t word = 0;
	struct row row;

	CHECK_ERROR(ETIMEDOUT, SYS_futex, &word, FUTEX_WAIT, 0, &second, NULL, 0);
	if (!read_file("/proc/self/strace"))
		return;
	CHECK(find_row("sys_futex", &row));
	CHECK(row.calls == 1 && row.errors == 1);
	CHECK(row.ns >= NS_PER_SEC);
	CHECK(row.cpu_ns < NS_PER_SEC / 10);
	CHECK(strstr(text, " ETIMEDOUT 1\n"));
	/* The table counts the read() that reads it. */
	CHECK(find_row("sys_read", &row));
	CHECK(check_sums() == 1);
}

static void call_many(long nr)
{
	for (long i = 0; i < nr; i++)
		syscall(SYS_getppid);
}

static uint64_t nr_getppid(const char *path)
{
	struct row row = { 0 };

	CHECK(read_file(path));
	check_sums();
	find_row("sys_getppid", &row);
	return row.calls;
}

static void look_at_zombie(void)
{
	struct row row;
	char path[64];
	siginfo_t info;
	pid_t pid = fork();

	if (!pid) {
		call_many(7);
		_exit(3);
	}
	snprintf(path, sizeof(path), "/proc/%d/strace", pid);
	CHECK(!waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
	CHECK(nr_getppid(path) == 7);
	CHECK(find_row("sys_exit_group", &row) && row.calls == 1);
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK(!read_file(path));
	CHECK(read_file("/proc/self/strace"));
	CHECK(strstr(text, "including children that were waited for (1): "));
	CHECK(strstr(text, "Calls of: this process, also before execve, "));
}

static void use_files(void)
{
	static const char *const mine = "/proc/self/strace", *const all = "/proc/profile/strace";
	uint64_t before;

	if (access(mine, F_OK))
		return;
	call_many(100);
	CHECK(nr_getppid(mine) == 100);
	CHECK(nr_getppid(all) >= 100);
	CHECK(!write_file(mine, "off\n") && !write_file(mine, "on\n"));
	call_many(10);
	CHECK(nr_getppid(mine) == 110);
	CHECK(write_file(mine, "reset\n"));
	call_many(3);
	CHECK(nr_getppid(mine) == 3);

	before = nr_getppid(all);
	CHECK(write_file(all, "off\n"));
	call_many(100);
	CHECK(nr_getppid(all) == before);
	CHECK(!strncmp(text, "strace: off\n", 12));
	CHECK(write_file(all, "on\n"));
	call_many(5);
	CHECK(nr_getppid(all) == before + 5);
	CHECK(!write_file(all, "of\n") && !write_file(mine, "nothing\n"));
	look_at_zombie();
	CHECK(write_file(all, "reset\n"));
	CHECK(nr_getppid(all) == 0);
}

static volatile bool stop;

static void *make_calls(void *arg)
{
	while (!stop) {
		for (int i = 0; i < 50; i++) {
			syscall(SYS_getppid);
			syscall(SYS_close, -1);
			syscall(SYS_gettid);
		}
		syscall(400 + (uintptr_t)arg % 8);
	}
	return NULL;
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

static void storm(int nr_threads, uint64_t ms)
{
	struct timespec pause = { .tv_nsec = 1000000 };
	uint64_t end = now_ms() + ms, last = 0, nr_reads = 0;
	pthread_t threads[64];

	for (int i = 0; i < nr_threads; i++)
		CHECK(!pthread_create(&threads[i], NULL, make_calls, (void *)(uintptr_t)i));
	while ((now_ms() < end || nr_reads < MIN_READS) && !access("/proc/profile/strace", F_OK)) {
		uint64_t nr =
			nr_getppid(nr_reads & 1 ? "/proc/self/strace" : "/proc/profile/strace");

		CHECK(nr >= last);
		last = nr;
		if (nr_reads++ % 4 == 3) {
			CHECK(read_file("/proc/profile/report"));
			CHECK(check_sums() >= 1);
		}
		nanosleep(&pause, NULL);
	}
	stop = true;
	for (int i = 0; i < nr_threads; i++)
		CHECK(!pthread_join(threads[i], NULL));
	printf("straces: %llu reads\n", (unsigned long long)nr_reads);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "storm") && argc == 4)
		storm(atoi(argv[2]), atoi(argv[3]));
	if (!*what || !strcmp(what, "sleep"))
		sleep_in_futex();
	if (!strcmp(what, "sleep") && read_file("/proc/profile/processes.json"))
		fputs(text, stdout);
	if (!*what || !strcmp(what, "files"))
		use_files();
	return check_finish("straces");
}
