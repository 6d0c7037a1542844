// SPDX-License-Identifier: BSD-2-Clause
/*
 * The tree of files: mkdir, rmdir, all cases of rename, links, unlink, the working directory,
 * listings, and invalid names. Works in a directory of its own below /tmp. Modes, times and mounts
 * are in attrs.c and mounts.c.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <sys/stat.h>

#include "run.h"

static char base[64];

static void make_file(const char *name, const char *text)
{
	int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == strlen(text) && !close(fd));
}

static int file_is(const char *name, const char *text)
{
	char got[64] = "";
	int fd = open(name, O_RDONLY);

	if (fd < 0 || read(fd, got, sizeof(got) - 1) < 0)
		return 0;
	close(fd);
	return !strcmp(got, text);
}

static int is_gone(const char *name)
{
	struct stat st;

	return lstat(name, &st) == -1 && errno == ENOENT;
}

static int nr_links(const char *name)
{
	struct stat st;

	return stat(name, &st) ? -1 : st.st_nlink;
}

static ino_t inode_of(const char *name)
{
	struct stat st;

	return lstat(name, &st) ? 0 : st.st_ino;
}

TEST(directories)
{
	CHECK(!mkdir("a", 0755) && nr_links("a") == 2 && !mkdir("a/b", 0755) && nr_links("a") == 3);
	CHECK(!mkdir("a/b/c/", 0755) && nr_links("a/b") == 3);
	FAILS(mkdir("a", 0755), EEXIST);
	FAILS(mkdir("no/x", 0755), ENOENT);
	FAILS(mkdir("/", 0755), EEXIST);
	FAILS(mkdir("", 0755), ENOENT);
	FAILS(mkdir("a/.", 0755), EEXIST);
	make_file("a/f", "f");
	FAILS(mkdir("a/f", 0755), EEXIST);
	FAILS(mkdir("a/f/x", 0755), ENOTDIR);
	FAILS(rmdir("a"), ENOTEMPTY);
	FAILS(rmdir("a/f"), ENOTDIR);
	FAILS(rmdir("a/no"), ENOENT);
	FAILS(rmdir("a/b/."), EINVAL);
	FAILS(rmdir("a/b/.."), ENOTEMPTY);
	FAILS(rmdir("/"), EBUSY);
	FAILS(unlink("a/b"), EISDIR);
	CHECK(!unlink("a/f") && !rmdir("a/b/c") && !rmdir("a/b") && nr_links("a") == 2);
	CHECK(!rmdir("a/") && is_gone("a"));
}

TEST(rename_files)
{
	ino_t ino;

	make_file("f", "one");
	make_file("g", "two");
	ino = inode_of("f");
	CHECK(!rename("f", "h") && is_gone("f") && file_is("h", "one") && inode_of("h") == ino);
	CHECK(!rename("h", "g") && is_gone("h") && file_is("g", "one") && inode_of("g") == ino);
	CHECK(!rename("g", "g") && file_is("g", "one"));
	CHECK(!link("g", "l") && nr_links("g") == 2 && inode_of("l") == ino);
	CHECK(!rename("g", "l") && file_is("g", "one") &&
	      file_is("l", "one")); /* two names of one file: nothing happens */
	CHECK(!mkdir("d", 0755) && !rename("l", "d/m") && is_gone("l") && file_is("d/m", "one"));
	FAILS(rename("g", "d"), EISDIR);
	FAILS(rename("d", "g"), ENOTDIR);
	FAILS(rename("no", "x"), ENOENT);
	FAILS(rename("g", "no/x"), ENOENT);
	FAILS(rename("g", "d/m/x"), ENOTDIR);
	FAILS(rename("g/", "x"), ENOTDIR);
	FAILS(rename("g", "x/"), ENOTDIR);
	FAILS(rename("g", ""), ENOENT);
	CHECK(!unlink("d/m") && !rmdir("d") && !unlink("g"));
}

TEST(rename_directories)
{
	CHECK(!mkdir("a", 0755) && !mkdir("a/sub", 0755) && !mkdir("b", 0755));
	make_file("a/sub/f", "deep");
	FAILS(rename("a", "a/sub/x"), EINVAL); /* into itself */
	FAILS(rename("a", "a/x"), EINVAL);
	FAILS(rename("a/sub", "a"), ENOTEMPTY);
	CHECK(!rename("a", "a") && !rename("a", "b")); /* over an empty directory */
	CHECK(is_gone("a") && file_is("b/sub/f", "deep"));
	CHECK(!mkdir("a", 0755) && nr_links("b") == 3);
	make_file("a/x", "");
	FAILS(rename("b", "a"), ENOTEMPTY);
	CHECK(!rename("b/sub", "a/sub") && nr_links("b") == 2 && nr_links("a") == 3);
	CHECK(file_is("a/sub/f", "deep") && file_is("a/sub/../sub/f", "deep"));
	CHECK(!rename("b", "c/") && is_gone("b"));
	FAILS(rename("c/.", "d"), EBUSY);
	FAILS(rename("c/..", "d"), EBUSY);
	FAILS(rename("a", "c/.."), EBUSY);
	FAILS(rename("/", "d"), EBUSY);
	CHECK(!syscall(SYS_renameat2, AT_FDCWD, "c", AT_FDCWD, "b", 1)); /* RENAME_NOREPLACE */
	CHECK_ERROR(EEXIST, SYS_renameat2, AT_FDCWD, "b", AT_FDCWD, "a", 1);
	CHECK_ERROR(EINVAL, SYS_renameat2, AT_FDCWD, "b", AT_FDCWD, "a", 0x100);
	CHECK_ERROR(EINVAL, SYS_renameat2, AT_FDCWD, "b", AT_FDCWD, "a", 3);
	CHECK(!unlink("a/sub/f") && !rmdir("a/sub") && !unlink("a/x") && !rmdir("a") &&
	      !rmdir("b"));
}

static int exchange(const char *a, const char *b)
{
	return syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 2); /* RENAME_EXCHANGE */
}

/* Two names swap what they stand for: files, a file and a directory, directories with content. */
TEST(exchange)
{
	ino_t f, g, d;

	make_file("f", "one");
	make_file("g", "two");
	CHECK(!mkdir("d", 0755) && !mkdir("d/sub", 0755) && !mkdir("e", 0755));
	f = inode_of("f");
	g = inode_of("g");
	d = inode_of("d");
	CHECK(!exchange("f", "g") && inode_of("g") == f && inode_of("f") == g);
	CHECK(file_is("f", "two") && file_is("g", "one") && !exchange("f", "f"));
	CHECK(!exchange("f", "d/sub") && inode_of("d/sub") == g && nr_links("d") == 2);
	CHECK(file_is("d/sub", "two") && !chdir("f") && !chdir("..") && !exchange("d/sub", "f"));
	CHECK(nr_links("d") == 3 && file_is("f", "two"));
	CHECK(!exchange("d", "e/") && inode_of("e") == d && nr_links("e") == 3);
	CHECK(inode_of("e/sub/..") == d && nr_links("d") == 2);
	CHECK(!exchange("e/sub", "d") && nr_links("e") == 3 && inode_of("d/..") == inode_of("."));
	FAILS(exchange("e", "e/sub"), EINVAL); /* neither may be below the other */
	FAILS(exchange("e/sub", "e"), EINVAL);
	FAILS(exchange("f", "no"), ENOENT);
	FAILS(exchange("no", "f"), ENOENT);
	FAILS(exchange("f/", "e"), ENOTDIR);
	FAILS(exchange("e", "f/"), ENOTDIR);
	FAILS(exchange("e/.", "f"), EBUSY);
	CHECK(!link("f", "l") && !exchange("f", "l") && !exchange("l", "g"));
	CHECK(file_is("l", "one") && file_is("f", "two") && file_is("g", "two"));
	CHECK(nr_links("g") == 2 && !unlink("f") && !unlink("g") && !unlink("l"));
	CHECK(!rmdir("e/sub") && !rmdir("e") && !rmdir("d"));
}

TEST(symlinks)
{
	char text[PATH_MAX], name[32];
	struct stat st;

	make_file("f", "target");
	CHECK(!mkdir("d", 0755) && !symlink("../f", "d/l") && !symlink("d", "ld"));
	CHECK(file_is("d/l", "target") && file_is("ld/l", "target"));
	CHECK(readlink("d/l", text, sizeof(text)) == 4 && !memcmp(text, "../f", 4));
	CHECK(readlink("d/l", text, 2) == 2 && !memcmp(text, "..", 2));
	CHECK(!lstat("d/l", &st) && S_ISLNK(st.st_mode) && st.st_size == 4);
	CHECK((st.st_mode & 07777) == 0777);
	CHECK(!stat("d/l", &st) && S_ISREG(st.st_mode));
	CHECK(!lstat("ld/", &st) && S_ISDIR(st.st_mode));
	FAILS(readlink("f", text, sizeof(text)), EINVAL);
	FAILS(readlink("", text, sizeof(text)), ENOENT);
	FAILS(readlink("no", text, sizeof(text)), ENOENT);
	CHECK_ERROR(EINVAL, SYS_readlink, "d/l", text, 0);
	FAILS(symlink("x", "f"), EEXIST);
	FAILS(symlink("", "x"), ENOENT);
	FAILS(rmdir("ld"), ENOTDIR);
	FAILS(open("d/l", O_RDONLY | O_NOFOLLOW), ELOOP);
	CHECK(!rename("ld", "le") &&
	      inode_of("le") != inode_of("d")); /* the link, not the directory */
	CHECK(!unlink("le") && inode_of("d"));

	/* O_CREAT creates the file that a dangling link names, but not with O_EXCL. */
	CHECK(!symlink("new", "dangling"));
	FAILS(open("dangling", O_RDONLY), ENOENT);
	FAILS(open("dangling", O_RDWR | O_CREAT | O_EXCL, 0644), EEXIST);
	FAILS(mkdir("dangling", 0755), EEXIST);
	make_file("dangling", "by link");
	CHECK(file_is("new", "by link") && !unlink("dangling") && !unlink("new"));

	CHECK(!symlink("loop", "loop"));
	FAILS(open("loop", O_RDONLY), ELOOP);
	FAILS(stat("loop/x", &st), ELOOP);
	CHECK(!lstat("loop", &st) && !unlink("loop"));
	/* A chain of 40 is followed, one of 41 is not. */
	for (int i = 0; i <= 40; i++) {
		snprintf(name, sizeof(name), "c%d", i);
		snprintf(text, sizeof(text), "c%d", i - 1);
		CHECK(!symlink(i ? text : "f", name));
	}
	CHECK(!stat("c39", &st));
	FAILS(stat("c40", &st), ELOOP);
	for (int i = 0; i <= 40; i++) {
		snprintf(name, sizeof(name), "c%d", i);
		CHECK(!unlink(name));
	}
	CHECK(!unlink("d/l") && !rmdir("d") && !unlink("f"));
}

/* A file lives as long as it has a name or is open. */
TEST(unlink)
{
	struct stat st;
	char text[16] = "";
	int fd, dir;

	make_file("f", "alive");
	CHECK(!link("f", "g") && nr_links("f") == 2 && !unlink("f") && nr_links("g") == 1);
	FAILS(link("g", "g"), EEXIST);
	FAILS(link("no", "x"), ENOENT);
	FAILS(link(".", "x"), EPERM);
	fd = open("g", O_RDWR);
	CHECK(!unlink("g") && is_gone("g") && !fstat(fd, &st) && st.st_nlink == 0);
	CHECK(pread(fd, text, sizeof(text), 0) == 5 && !strcmp(text, "alive"));
	CHECK(pwrite(fd, "more than alive", 15, 0) == 15 && !fstat(fd, &st) && st.st_size == 15);
	make_file("g", "another");
	CHECK(pread(fd, text, 4, 0) == 4 && !memcmp(text, "more", 4));
	CHECK(!close(fd) && file_is("g", "another") && !unlink("g"));
	FAILS(unlink("g"), ENOENT);
	FAILS(unlink(""), ENOENT);

	/* An open directory stays, too, but nothing can be created in a removed one. */
	CHECK(!mkdir("d", 0755));
	dir = open("d", O_RDONLY | O_DIRECTORY);
	CHECK(!rmdir("d") && !fstat(dir, &st) && st.st_nlink == 0);
	FAILS(openat(dir, "x", O_CREAT | O_RDWR, 0600), ENOENT);
	FAILS(mkdirat(dir, "x", 0755), ENOENT);
	CHECK(!close(dir));
}

static int cwd_is(const char *format)
{
	char expected[PATH_MAX], now[PATH_MAX];

	snprintf(expected, sizeof(expected), format, base);
	return getcwd(now, sizeof(now)) && !strcmp(now, expected);
}

TEST(where)
{
	char text[PATH_MAX];
	int dir;

	CHECK(cwd_is("%s") && !mkdir("d", 0755) && !mkdir("d/e", 0755) && !chdir("d/e"));
	CHECK(cwd_is("%s/d/e") && !chdir("..") && cwd_is("%s/d"));
	make_file("f", "x");
	FAILS(chdir("f"), ENOTDIR);
	FAILS(chdir("no"), ENOENT);
	FAILS(chdir(""), ENOENT);
	dir = open("e", O_RDONLY);
	CHECK(!rename("../d", "../r") && cwd_is("%s/r") && !fchdir(dir) && cwd_is("%s/r/e"));
	FAILS(fchdir(999), EBADF);
	CHECK(!chdir("/") && getcwd(text, 2) && !strcmp(text, "/") && !chdir("..") && cwd_is("/"));
	CHECK(!fchdir(dir) && !close(dir));
	CHECK_ERROR(ERANGE, SYS_getcwd, text, 3);
	CHECK_ERROR(EFAULT, SYS_getcwd, 8, 4096);
	CHECK(syscall(SYS_getcwd, text, sizeof(text)) == strlen(text) + 1);
	dir = open("../f", O_RDONLY);
	FAILS(fchdir(dir), ENOTDIR);
	close(dir);
	CHECK(!rmdir("../e")); /* the working directory can be removed */
	CHECK_ERROR(ENOENT, SYS_getcwd, text, sizeof(text));
	FAILS(open("x", O_CREAT | O_RDWR, 0600), ENOENT);
	CHECK(!chdir(base) && !unlink("r/f") && !rmdir("r"));
}

static int has_entry(const char *path, const char *name, int type)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int nr = 0;

	if (!dir)
		return -1;
	while ((entry = readdir(dir)))
		nr += !strcmp(entry->d_name, name) && entry->d_type == type && entry->d_ino;
	closedir(dir);
	return nr;
}

TEST(listing)
{
	char name[32], seen[300] = "", buf[512] __attribute__((aligned(8)));
	struct dirent *entry;
	int nr = 0, fd;
	long at, middle = 0;
	DIR *dir;

	CHECK(!mkdir("d", 0755) && !mkdir("d/sub", 0755) && !symlink("x", "d/link"));
	CHECK(has_entry("d", "sub", DT_DIR) == 1 && has_entry("d", "link", DT_LNK) == 1);
	CHECK(has_entry("d", ".", DT_DIR) == 1 && has_entry("d", "..", DT_DIR) == 1);
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "d/entry%d", i);
		make_file(name, "");
	}
	dir = opendir("d");
	while ((entry = readdir(dir))) {
		int i;

		if (sscanf(entry->d_name, "entry%d", &i) == 1) {
			CHECK(entry->d_type == DT_REG && i < 300 && !seen[i]);
			seen[i] = 1;
		}
		if (++nr == 150) {
			middle = telldir(dir);
			entry = readdir(dir);
			strcpy(name, entry->d_name);
			seekdir(dir, middle);
			entry = readdir(dir);
			CHECK(entry && !strcmp(entry->d_name, name));
			seekdir(dir, middle);
		}
	}
	CHECK(nr == 304 && !memchr(seen, 0, 300));
	rewinddir(dir);
	/* Entries can be removed during the listing. */
	for (nr = 0; (entry = readdir(dir)); nr++) {
		if (entry->d_name[0] == 'e') {
			snprintf(name, sizeof(name), "d/%.20s", entry->d_name);
			CHECK(!unlink(name));
		}
	}
	CHECK(nr == 304);
	closedir(dir);

	fd = open("d", O_RDONLY | O_DIRECTORY);
	CHECK_ERROR(EINVAL, SYS_getdents64, fd, buf, 8); /* no room for one entry */
	for (nr = 0; (at = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0;) {
		for (long pos = 0; pos < at; pos += *(uint16_t *)(buf + pos + 16)) {
			CHECK(*(uint16_t *)(buf + pos + 16) % 8 == 0 && *(uint64_t *)(buf + pos));
			nr++;
		}
	}
	CHECK(nr == 4 && at == 0 && syscall(SYS_getdents64, fd, buf, sizeof(buf)) == 0);
	CHECK(lseek(fd, 0, SEEK_SET) == 0 && syscall(SYS_getdents64, fd, buf, sizeof(buf)) > 0);
	CHECK_ERROR(ENOTDIR, SYS_getdents64, 1, buf, sizeof(buf));
	close(fd);
	CHECK(!unlink("d/link") && !rmdir("d/sub") && !rmdir("d"));
}

TEST(at)
{
	char text[16], path[PATH_MAX];
	struct stat st;
	int dir, fd;

	CHECK(!mkdir("d", 0755));
	dir = open("d", O_PATH | O_DIRECTORY);
	fd = openat(dir, "f", O_CREAT | O_RDWR | O_EXCL, 0600);
	CHECK(fd >= 0 && write(fd, "at", 2) == 2 && file_is("d/f", "at"));
	CHECK(!mkdirat(dir, "sub", 0700) && !symlinkat("f", dir, "l") &&
	      !linkat(dir, "f", dir, "g", 0));
	CHECK(readlinkat(dir, "l", text, sizeof(text)) == 1 && text[0] == 'f');
	CHECK(!fstatat(dir, "l", &st, 0) && S_ISREG(st.st_mode) && st.st_nlink == 2);
	CHECK(!fstatat(dir, "l", &st, AT_SYMLINK_NOFOLLOW) && S_ISLNK(st.st_mode));
	CHECK(!fstatat(fd, "", &st, AT_EMPTY_PATH) && st.st_size == 2);
	CHECK(!fstatat(dir, "", &st, AT_EMPTY_PATH) && S_ISDIR(st.st_mode));
	FAILS(fstatat(dir, "", &st, 0), ENOENT);
	FAILS(fstatat(dir, "f", &st, 0x40000000), EINVAL);
	CHECK(!renameat(dir, "g", AT_FDCWD, "g") && file_is("g", "at") && !unlink("g"));
	CHECK(!faccessat(dir, "f", R_OK, 0));
	FAILS(openat(fd, "x", O_RDONLY), ENOTDIR);
	FAILS(openat(999, "x", O_RDONLY), EBADF);
	snprintf(path, sizeof(path), "%s/d/f", base);
	/* An absolute path does not need a valid descriptor. */
	CHECK(!fstatat(999, path, &st, 0));
	FAILS(unlinkat(dir, "sub", 0), EISDIR);
	FAILS(unlinkat(dir, "f", AT_REMOVEDIR), ENOTDIR);
	FAILS(unlinkat(dir, "f", 0x40000000), EINVAL);
	CHECK(!unlinkat(dir, "sub", AT_REMOVEDIR) && !unlinkat(dir, "f", 0) &&
	      !unlinkat(dir, "l", 0));
	close(fd);
	close(dir);
	CHECK(!rmdir("d"));
}

TEST(names)
{
	char name[PATH_MAX + 8], path[PATH_MAX + 8];
	struct stat st;

	memset(name, 'n', sizeof(name));
	name[255] = 0;
	CHECK(!mkdir(name, 0755) && !rmdir(name)); /* the longest possible name */
	name[255] = 'n';
	name[256] = 0;
	FAILS(mkdir(name, 0755), ENAMETOOLONG);
	FAILS(stat(name, &st), ENAMETOOLONG);
	memset(path, '/', sizeof(path));
	path[PATH_MAX - 1] = 0;
	CHECK(!stat(path, &st));
	path[PATH_MAX - 1] = '/';
	path[PATH_MAX] = 0;
	FAILS(stat(path, &st), ENAMETOOLONG);
	make_file("f", "");
	FAILS(stat("f/", &st), ENOTDIR);
	FAILS(stat("f/.", &st), ENOTDIR);
	FAILS(stat("f/..", &st), ENOTDIR);
	FAILS(open("f/", O_RDONLY), ENOTDIR);
	FAILS(open("new/", O_CREAT | O_RDWR, 0600), EISDIR);
	FAILS(open(".", O_RDWR), EISDIR);
	FAILS(open(".", O_CREAT | O_RDONLY, 0600), EISDIR);
	FAILS(open("f", O_CREAT | O_EXCL, 0600), EEXIST);
	FAILS(open("f", O_RDONLY | O_DIRECTORY), ENOTDIR);
	CHECK(!stat("./././f", &st) && !stat(".//f", &st) && !stat("/../../..", &st));
	make_file("\xff\x01 strange \n", "x");
	CHECK(file_is("\xff\x01 strange \n", "x") && !unlink("\xff\x01 strange \n"));
	CHECK(!unlink("f"));
}

int main(int argc, char **argv)
{
	int status;

	mkdir("/tmp", 0777);
	snprintf(base, sizeof(base), "/tmp/tree.%d", getpid());
	if (mkdir(base, 0755) || chdir(base)) {
		printf("FAIL: tree: no %s, errno %d\n", base, errno);
		return 1;
	}
	status = run_tests("tree", argc, argv);
	if (chdir("/") || rmdir(base)) {
		printf("FAIL: tree: something is left in %s\n", base);
		return 1;
	}
	return status;
}
