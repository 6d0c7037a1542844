// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program with secrets starts or ends while another process of the user looks at /proc/<pid>.
 * "hush" is that program. It is set-user-ID and starts from an open process, or root runs it and it
 * executes an open program of the user. Each file of /proc/<pid> has a mark that only "hush" has. A
 * reader with the user's rights looks for the mark until the process is gone.
 */
#include <sched.h>
#include <sys/personality.h>
#include <sys/prctl.h>

#include "perms.h"

#define NR_EXECS  8 /* for each file and direction */
#define SECRET_FD 9

extern char **environ;

static char *const secret_environ[] = { "SECRET=1", NULL };
static char *const no_environ[] = { NULL };

#define LINK   1
#define THREAD 2 /* in /proc/<pid>/task/<tid> */
#define BEFORE 4 /* counts calls from before execve, too, on purpose */

struct kind {
	const char *file;
	const char *mark; /* in the file's text or the link's target */
	int how;
};

static const struct kind kinds[] = {
	{ "environ", "SECRET", 0 },
	{ "maps", "/hush", 0 },
	{ "smaps", "/hush", 0 },
	{ "strace", "sys_personality", BEFORE },
	{ "exe", "/hush", LINK },
	{ "cwd", "/hidden", LINK },
	{ "fd/9", "/secret", LINK },
	{ "fd/9", "/secret", LINK | THREAD },
	{ "environ", "SECRET", THREAD },
	{ "stat", "(hush)", 0 },
	{ NULL, NULL, 0 },
};

/* Returns the value of the field of /proc/<pid>/stat where the program's code starts. */
static unsigned long start_code(const char *stat)
{
	const char *at = strrchr(stat, ')');

	for (int field = 2; at && field < 26; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoul(at, NULL, 10) : 0;
}

/* Returns 1 if the file shows something that only the program with secrets has. */
static int shows_secret(const struct kind *kind, const char *path)
{
	static char text[1 << 16];
	ssize_t n, len = 0;
	int fd;

	if (kind->how & LINK) {
		len = readlink(path, text, sizeof(text) - 1);
	} else {
		fd = open(path, O_RDONLY);
		while (fd >= 0 && (n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
			len += n;
		close(fd);
	}
	text[len < 0 ? 0 : len] = 0;
	for (char *at = text; at < text + len; at++)
		*at = *at ? *at : '\n';
	/* Everybody may read the name in `stat`, but not the addresses. */
	return strstr(text, kind->mark) && (strcmp(kind->file, "stat") || start_code(text) > 1);
}

/*
 * The reader: gets process numbers from `from`. Answers each one with a byte before it looks, and
 * with another one, the number of times it saw a secret, when the process is gone.
 */
static void read_files(const struct kind *kind, int from, int to)
{
	char path[64], dir[32], task[32];
	unsigned char nr;
	pid_t pid;

	while (read(from, &pid, sizeof(pid)) == sizeof(pid)) {
		snprintf(dir, sizeof(dir), "/proc/%d", pid);
		snprintf(task, sizeof(task), "/proc/%d/task/%d", pid, pid);
		snprintf(path, sizeof(path), "%s/%s", kind->how & THREAD ? task : dir, kind->file);
		nr = 0;
		CHECK(write(to, &nr, 1) == 1);
		while (!access(dir, F_OK))
			nr += nr < 255 && shows_secret(kind, path);
		CHECK(write(to, &nr, 1) == 1);
	}
}

/* "hush" that has gained rights: has secrets in all places where the reader looks. */
static void role_secret(void)
{
	CHECK(!chdir("hidden") && personality(0xffffffff) == 0);
	CHECK(dup2(open("secret", O_RDONLY), SECRET_FD) == SECRET_FD);
	sched_yield();
}

/* "hush" that root runs: has secrets, too, becomes the user, and executes the open program. */
static void role_drop(void)
{
	CHECK(personality(0xffffffff) == 0);
	CHECK(dup3(open("hidden/secret", O_RDONLY), SECRET_FD, O_CLOEXEC) == SECRET_FD);
	CHECK(!setgroups(0, NULL) && !setresgid(GROUP, GROUP, GROUP));
	CHECK(!setresuid(USER, USER, USER));
	execle("./open", "./open", "--open", NULL, no_environ);
}

static void start(int opens, int ready)
{
	char byte;

	if (!opens) {
		CHECK(!setgroups(0, NULL) && !setresgid(GROUP, GROUP, GROUP));
		CHECK(!setresuid(USER, USER, USER) && !prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
		environ = (char **)no_environ;
	}
	CHECK(read(ready, &byte, 1) == 1);
	execle("./hush", "./hush", opens ? "--drop" : "--secret", NULL, secret_environ);
	child_exit(77);
}

static int count_leaks(const struct kind *kind, int opens)
{
	int to_reader[2], from_reader[2], ready[2], nr = 0;
	unsigned char byte;
	pid_t reader, pid;

	CHECK(!pipe2(to_reader, O_CLOEXEC) && !pipe2(from_reader, O_CLOEXEC) &&
	      !pipe2(ready, O_CLOEXEC));
	reader = fork_user(USER, GROUP, 0);
	if (!reader) {
		close(to_reader[1]);
		read_files(kind, to_reader[0], from_reader[1]);
		child_exit(0);
	}
	for (int i = 0; i < NR_EXECS; i++) {
		pid = fork_child();
		if (!pid)
			start(opens, ready[0]);
		CHECK(write(to_reader[1], &pid, sizeof(pid)) == sizeof(pid));
		CHECK(read(from_reader[0], &byte, 1) == 1 && write(ready[1], "", 1) == 1);
		CHECK(child_status(pid) == 0);
		CHECK(read(from_reader[0], &byte, 1) == 1);
		nr += byte;
	}
	for (int i = 0; i < 2; i++)
		close(to_reader[i]), close(from_reader[i]), close(ready[i]);
	CHECK(child_status(reader) == 0);
	return nr;
}

static void make_programs(void)
{
	make_program("hush", 04755, 0, 0);
	make_program("open", 0755, 0, 0);
	CHECK(!mkdir("hidden", 0700));
	make_file("hidden/secret", 0600, 0, 0);
}

static void remove_programs(void)
{
	CHECK(!unlink("hidden/secret") && !rmdir("hidden") && !unlink("hush") && !unlink("open"));
}

static void count_all(int opens)
{
	make_programs();
	for (const struct kind *kind = kinds; kind->file; kind++) {
		int nr = opens && kind->how & BEFORE ? 0 : count_leaks(kind, opens);

		if (!CHECK(!nr))
			printf("%s was read %d times\n", kind->file, nr);
	}
	remove_programs();
}

/* A process of the user becomes a set-user-ID program. */
TEST(closing)
{
	count_all(0);
}

/* A process with root's secrets, that has become the user's, executes a program of the user. */
TEST(opening)
{
	count_all(1);
}

/* The memory of a program that the user may execute, but not read, is no more readable. */
TEST(unreadable)
{
	pid_t pid;

	make_programs();
	CHECK(!chmod("open", 0711));
	pid = fork_user(USER, GROUP, 0);
	if (!pid) {
		execle("./open", "./open", "--closed", NULL, no_environ);
		child_exit(77);
	}
	CHECK(child_status(pid) == 0);
	remove_programs();
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strncmp(argv[1], "--", 2)) {
		if (!strcmp(argv[1], "--secret"))
			role_secret();
		else if (!strcmp(argv[1], "--drop"))
			role_drop();
		else
			CHECK(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == !strcmp(argv[1], "--open"));
		child_exit(0);
	}
	return run_tests_as_root("perms-race", argc, argv);
}
