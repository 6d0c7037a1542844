// SPDX-License-Identifier: BSD-2-Clause
/*
 * Files that are opened again through /proc/self/fd and /dev/fd, whether they have a name or not;
 * and O_TMPFILE, whose files get their names that way.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "run.h"

static char *link_of(int fd)
{
	static char name[64];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return name;
}

static int target_is(int fd, const char *expected)
{
	char target[PATH_MAX];
	ssize_t len = readlink(link_of(fd), target, sizeof(target) - 1);

	target[len > 0 ? len : 0] = '\0';
	if (!strcmp(target, expected))
		return 1;
	printf("%s leads to %s, not to %s\n", link_of(fd), target, expected);
	return 0;
}

static int is_same(int fd, int other)
{
	struct stat a, b;

	return !fstat(fd, &a) && !fstat(other, &b) && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

static int names_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? -1 : st.st_nlink;
}

TEST(pipe)
{
	int ends[2], writer, reader;
	struct stat a, b;
	char text[8];

	CHECK(!pipe(ends));
	writer = open(link_of(ends[1]), O_WRONLY);
	CHECK(writer >= 0 && is_same(writer, ends[1]));
	CHECK(write(writer, "abc", 3) == 3 && read(ends[0], text, 8) == 3);
	CHECK(!stat(link_of(ends[0]), &a) && !fstat(ends[0], &b) && a.st_ino == b.st_ino);
	/* Opening the link makes a new open file, of either end. */
	reader = open(link_of(ends[1]), O_RDONLY | O_NONBLOCK);
	CHECK(read(reader, text, 8) == -1 && errno == EAGAIN);
	CHECK(!(fcntl(ends[0], F_GETFL) & O_NONBLOCK));
	CHECK(!close(ends[1]) && read(reader, text, 8) == -1 && errno == EAGAIN);
	CHECK(!close(writer) && read(reader, text, 8) == 0);
	CHECK(open(link_of(writer), O_RDONLY) == -1 && errno == ENOENT);
	/* Unlike a FIFO it waits for no other end. */
	CHECK((writer = open(link_of(reader), O_RDONLY)) >= 0 && !close(writer));
	CHECK(!close(reader) && !close(ends[0]) && !pipe(ends) && !close(ends[0]));
	CHECK((writer = open(link_of(ends[1]), O_WRONLY | O_NONBLOCK)) >= 0);
	signal(SIGPIPE, SIG_IGN);
	CHECK(write(writer, "x", 1) == -1 && errno == EPIPE && !close(ends[1]) && !close(writer));
	signal(SIGPIPE, SIG_DFL);
	CHECK(!pipe(ends) && (reader = open(link_of(ends[0]), O_RDONLY)) >= 0 && !close(ends[1]));
	CHECK(open(link_of(reader), O_RDONLY | O_NOFOLLOW) == -1 && errno == ELOOP);
	close(reader);
	close(ends[0]);
}

/* Opens a pipe by path, as bash's `cat <(echo hello)` does. */
TEST(substitution)
{
	char name[32], text[16] = "";
	int ends[2], fd;
	pid_t pid;

	CHECK(!pipe(ends) && dup2(ends[0], 63) == 63 && !close(ends[0]));
	pid = fork_child();
	if (!pid) {
		close(63);
		CHECK(write(ends[1], "hello", 5) == 5);
		child_exit(0);
	}
	close(ends[1]);
	snprintf(name, sizeof(name), "/dev/fd/%d", 63);
	fd = open(name, O_RDONLY);
	CHECK(fd >= 0 && !close(63) && read(fd, text, 16) == 5 && !strcmp(text, "hello"));
	CHECK(read(fd, text, 16) == 0 && child_status(pid) == 0);
	close(fd);
}

TEST(removed_file)
{
	const char *name = check_file_name();
	int fd = open(name, O_CREAT | O_RDWR, 0600), again;
	char expected[PATH_MAX], text[8];
	struct stat st;

	CHECK(write(fd, "abcdef", 6) == 6 && target_is(fd, name));
	CHECK(!unlink(name));
	snprintf(expected, sizeof(expected), "%s (deleted)", name);
	CHECK(target_is(fd, expected));
	again = open(link_of(fd), O_RDONLY);
	CHECK(is_same(fd, again) && read(again, text, 8) == 6 && !memcmp(text, "abcdef", 6));
	CHECK(lseek(fd, 0, SEEK_CUR) == 6); /* a position of its own */
	CHECK(!close(again) && (again = open(link_of(fd), O_RDWR | O_TRUNC)) >= 0);
	CHECK(!fstat(fd, &st) && st.st_size == 0 && st.st_nlink == 0);
	CHECK(!truncate(link_of(fd), 10) && !fstat(fd, &st) && st.st_size == 10);
	CHECK(!chmod(link_of(fd), 0400) && !fstat(fd, &st) && (st.st_mode & 0777) == 0400);
	/* Without AT_SYMLINK_FOLLOW, the link in /proc itself is meant: another file system. */
	CHECK(link(link_of(fd), name) == -1 && errno == EXDEV);
	CHECK(linkat(AT_FDCWD, link_of(fd), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == -1);
	CHECK(errno == ENOENT);
	CHECK(open(link_of(fd), O_CREAT | O_EXCL | O_RDWR, 0600) == -1 && errno == EEXIST);
	close(again);
	/* The link leads to the removed file, not to a new one with its name. */
	again = open(name, O_CREAT | O_RDWR, 0600);
	CHECK(write(again, "other", 5) == 5 && !close(again));
	again = open(link_of(fd), O_RDONLY);
	CHECK(is_same(fd, again));
	close(again);
	close(fd);
	unlink(name);
}

TEST(directory)
{
	const char *name = check_file_name();
	char path[PATH_MAX];
	int dir, fd, old = open(".", O_RDONLY);

	CHECK(!mkdir(name, 0700));
	dir = open(name, O_PATH);
	snprintf(path, sizeof(path), "%s/file", link_of(dir));
	fd = open(path, O_CREAT | O_RDWR, 0600);
	CHECK(fd >= 0 && write(fd, "x", 1) == 1 && !close(fd));
	fd = open(link_of(dir), O_RDONLY | O_DIRECTORY);
	CHECK(fd >= 0 && faccessat(fd, "file", F_OK, 0) == 0);
	close(fd);
	snprintf(path, sizeof(path), "%s/../.", link_of(dir));
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0 && !close(fd));
	snprintf(path, sizeof(path), "%s/file", link_of(dir));
	CHECK(!unlink(path) && !chdir(link_of(dir)) && !rmdir(name));
	CHECK(open(path, O_CREAT | O_RDWR, 0600) == -1 && errno == ENOENT);
	fd = open("/proc/self/cwd", O_RDONLY | O_DIRECTORY);
	CHECK(fd >= 0 && is_same(fd, dir));
	close(fd);
	CHECK(!fchdir(old));
	close(old);
	close(dir);
}

static int exists(const char *name)
{
	struct stat st;

	return !fstatat(AT_FDCWD, name, &st, AT_SYMLINK_NOFOLLOW);
}

/* Links that were looked for one by one are listed in order, and only while they are open. */
TEST(order)
{
	static const int fds[] = { 900, 200, 300 };
	int last = -1, nr = 0;
	struct dirent *entry;
	DIR *dir;

	for (int i = 0; i < 3; i++)
		CHECK(dup2(1, fds[i]) == fds[i] && exists(link_of(fds[i])));
	CHECK(!exists("/proc/self/fd/0200") && !exists("/proc/self/fd/200x"));
	CHECK(!exists("/proc/self/fd/-1") && !exists("/proc/self/fd/123456789012"));
	CHECK(!close(300) && !exists(link_of(300)) && exists(link_of(200)));
	dir = opendir("/proc/self/fd");
	CHECK(dir != NULL);
	while ((entry = readdir(dir))) {
		if (*entry->d_name == '.')
			continue;
		CHECK(atoi(entry->d_name) > last);
		last = atoi(entry->d_name);
		nr += last == 200 || last == 900;
	}
	CHECK(nr == 2 && !closedir(dir) && !close(200) && !close(900));
}

/* An O_PATH descriptor can be opened again for reading. */
TEST(path_only)
{
	const char *name = check_file_name();
	int fd = open(name, O_CREAT | O_WRONLY, 0600), path;
	char c;

	CHECK(write(fd, "x", 1) == 1 && !close(fd));
	path = open(name, O_PATH);
	CHECK(read(path, &c, 1) == -1 && errno == EBADF);
	fd = open(link_of(path), O_RDONLY);
	CHECK(read(fd, &c, 1) == 1 && c == 'x' && !close(fd) && !close(path));
	CHECK(!unlink(name) && !symlink("nowhere", name));
	path = open(name, O_PATH | O_NOFOLLOW);
	CHECK(path >= 0 && open(link_of(path), O_RDONLY) == -1 && errno == ELOOP);
	close(path);
	unlink(name);
}

TEST(standard)
{
	int fd = open(check_file_name(), O_CREAT | O_RDWR, 0600), again;
	int saved = dup(0), saved_err = dup(2);
	char text[8] = "";

	CHECK(write(fd, "abc", 3) == 3 && dup2(fd, 0) == 0 && dup2(fd, 2) == 2);
	again = open("/dev/stdin", O_RDONLY);
	CHECK(read(again, text, 8) == 3 && !strcmp(text, "abc") && !close(again));
	again = open("/dev/stderr", O_WRONLY);
	CHECK(is_same(fd, again) && !close(again));
	again = open("/dev/stdout", O_PATH);
	CHECK(is_same(1, again) && !close(again));
	CHECK(dup2(saved, 0) == 0 && dup2(saved_err, 2) == 2);
	close(saved);
	close(saved_err);
	unlink(check_file_name());
	close(fd);
}

static const char *directory(void)
{
	return access("/tmp", F_OK) ? "/" : "/tmp";
}

TEST(tmpfile)
{
	char name[PATH_MAX], text[8];
	struct stat st;
	int fd, again;

	snprintf(name, sizeof(name), "%s.link", check_file_name());
	fd = open(directory(), O_TMPFILE | O_RDWR, 0640);
	if (!CHECK(fd >= 0))
		return;
	CHECK(!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_nlink == 0 && st.st_size == 0);
	CHECK((st.st_mode & 0777) == 0640 && !(fcntl(fd, F_GETFL) & O_EXCL));
	CHECK(write(fd, "abc", 3) == 3 && pread(fd, text, 8, 0) == 3);
	CHECK(!linkat(AT_FDCWD, link_of(fd), AT_FDCWD, name, AT_SYMLINK_FOLLOW));
	CHECK(names_of(fd) == 1);
	again = open(name, O_RDONLY);
	CHECK(is_same(fd, again) && read(again, text, 8) == 3 && !memcmp(text, "abc", 3));
	CHECK(linkat(AT_FDCWD, link_of(fd), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == -1);
	CHECK(errno == EEXIST && !link(name, check_file_name()) && names_of(fd) == 2);
	CHECK(!unlink(name) && names_of(fd) == 1);
	CHECK(!unlink(check_file_name()) && names_of(fd) == 0);
	CHECK(linkat(AT_FDCWD, link_of(fd), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == -1);
	CHECK(errno == ENOENT); /* a file whose names were all removed gets no new one */
	close(again);
	close(fd);

	fd = open(directory(), O_TMPFILE | O_WRONLY, 0600);
	if (geteuid() == 0)
		CHECK(!linkat(fd, "", AT_FDCWD, name, AT_EMPTY_PATH) && names_of(fd) == 1 &&
		      !unlink(name));
	close(fd);
	fd = open(directory(), O_TMPFILE | O_EXCL | O_WRONLY, 0600);
	CHECK(linkat(AT_FDCWD, link_of(fd), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == -1);
	CHECK(errno == ENOENT && !close(fd));

	CHECK(open(directory(), O_TMPFILE | O_RDONLY, 0600) == -1 && errno == EINVAL);
	CHECK(open(directory(), O_TMPFILE | O_CREAT | O_RDWR, 0600) == -1 && errno == EINVAL);
	CHECK(open(directory(), (O_TMPFILE & ~O_DIRECTORY) | O_RDWR, 0600) == -1 &&
	      errno == EINVAL);
	CHECK(open("/nowhere", O_TMPFILE | O_RDWR, 0600) == -1 && errno == ENOENT);
	CHECK(open("/dev/null", O_TMPFILE | O_RDWR, 0600) == -1 && errno == ENOTDIR);
	CHECK(open("/proc", O_TMPFILE | O_RDWR, 0600) == -1 && errno == EOPNOTSUPP);
}

int main(int argc, char **argv)
{
	return run_tests("fdlinks", argc, argv);
}
