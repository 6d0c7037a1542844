// SPDX-License-Identifier: BSD-2-Clause
/* Permissions of users other than root on files and directories. */
#include <limits.h>
#include <sys/fsuid.h>

#include "perms.h"

/*
 * Returns the sum of 4, 2 and 1 for the access that open() and execve() allow. access() must agree,
 * except for root.
 */
static int rights(const char *name)
{
	int result = 0, fd;
	pid_t pid;

	if ((fd = open(name, O_RDONLY)) >= 0)
		result |= !close(fd) * R_OK;
	if ((fd = open(name, O_WRONLY)) >= 0)
		result |= !close(fd) * W_OK;
	CHECK(!access(name, R_OK) == !!(result & R_OK) && !access(name, W_OK) == !!(result & W_OK));
	fd = open(name, O_RDWR);
	CHECK((fd >= 0) == (result >= (R_OK | W_OK)) && (fd < 0 || !close(fd)));
	pid = fork_child();
	if (!pid) {
		execl(name, name, NULL);
		/* An allowed execve() finds that the file is no program. */
		child_exit(errno == ENOEXEC ? 1 : errno == EACCES ? 0 : 77);
	}
	result |= WEXITSTATUS(child_status(pid));
	CHECK(access(name, X_OK) == (result & X_OK) - 1);
	return result;
}

static void check_rights(uid_t user, gid_t group, gid_t extra, const char *name, int expected)
{
	pid_t pid = fork_user(user, group, extra);
	int got;

	if (!pid) {
		got = rights(name);
		if (!CHECK(got == expected))
			printf("user %d has rights %d to %s\n", user, got, name);
		child_exit(0);
	}
	CHECK(child_status(pid) == 0);
}

/* The first matching class decides: the owner may have fewer rights than others. */
TEST(files)
{
	make_file("f", 0421, USER, GROUP);
	check_rights(USER, OTHER, GROUP, "f", 4);
	check_rights(OTHER, GROUP, 0, "f", 2);
	check_rights(OTHER, OTHER, GROUP, "f", 2); /* a supplementary group */
	check_rights(OTHER, OTHER, 0, "f", 1);
	CHECK(rights("f") == 7); /* for root */
	CHECK(!chmod("f", 0077));
	check_rights(USER, GROUP, 0, "f", 0);
	check_rights(OTHER, GROUP, 0, "f", 7);
	check_rights(OTHER, OTHER, 0, "f", 7);
	/* Root can execute only a file with some x bit. */
	CHECK(!chmod("f", 0666) && rights("f") == 6);
	CHECK(!unlink("f"));
}

static void user_opens(void)
{
	struct stat st;
	int fd;

	FAILS(open("r", O_RDONLY | O_TRUNC), EACCES);
	FAILS(truncate("r", 0), EACCES);
	FAILS(open("r", O_WRONLY | O_CREAT, 0666), EACCES);
	FAILS(open("r", O_RDWR | O_APPEND), EACCES);
	CHECK((fd = open("none", O_PATH)) >= 0 && !fstat(fd, &st) && !close(fd));
	CHECK(stat_of("r").st_size == 4);
	FAILS(open("d", O_RDONLY), EACCES); /* may be searched, but not listed */
	CHECK(!chdir("d") && !chdir(".."));
	FAILS(open("no", O_RDWR | O_CREAT, 0666), EACCES);
	FAILS(open("no", O_RDWR), ENOENT);
	/* A process can open the file that it creates, whatever its mode. */
	CHECK((fd = open("all/new", O_RDWR | O_CREAT | O_EXCL, 0)) >= 0);
	CHECK(write(fd, "x", 1) == 1 && !close(fd));
	FAILS(open("all/new", O_RDONLY), EACCES);
	CHECK(!unlink("all/new"));
}

TEST(opens)
{
	pid_t pid;

	make_file("r", 0644, 0, 0);
	make_file("none", 0, 0, 0);
	CHECK(!mkdir("d", 0711) && !mkdir("all", 0777) && !chmod("all", 0777));
	pid = fork_user(USER, GROUP, 0);
	if (!pid) {
		user_opens();
		child_exit(0);
	}
	CHECK(child_status(pid) == 0 && stat_of("r").st_size == 4);
	CHECK(!unlink("r") && !unlink("none") && !rmdir("d") && !rmdir("all"));
}

static void user_walks(void)
{
	char buf[PATH_MAX];

	CHECK(!access("open/f", R_OK) && !access("open/../open/./f", R_OK));
	CHECK(!access("closed", F_OK) && stat_of("closed").st_size >= 0);
	FAILS(access("closed/f", F_OK), EACCES);
	FAILS(access("closed/no", F_OK), EACCES);
	FAILS(access("closed/.", F_OK), EACCES);
	FAILS(access("closed/../open/f", F_OK), EACCES);
	FAILS(open("closed/f", O_PATH), EACCES);
	FAILS(open("closed/new", O_CREAT | O_WRONLY, 0666), EACCES);
	FAILS(chdir("closed"), EACCES);
	FAILS(readlink("closed/l", buf, sizeof(buf)), EACCES);
	FAILS(access("link", F_OK), EACCES); /* to closed/f */
	CHECK(!readlink("link", buf, sizeof(buf)) == 0);
	FAILS(link("closed/f", "open/f2"), EACCES);
	FAILS(rename("open/f", "closed/f"), EACCES);
	FAILS(execl("closed/p", "p", NULL), EACCES);
	/* A right to list it is no right to search it. */
	FAILS(access("readable/f", F_OK), EACCES);
	CHECK(!close(open("readable", O_RDONLY | O_DIRECTORY)));
}

TEST(walks)
{
	pid_t pid;

	CHECK(!mkdir("open", 0755) && !mkdir("closed", 0700) && !mkdir("readable", 0744));
	make_file("open/f", 0644, 0, 0);
	make_file("closed/f", 0666, 0, 0);
	CHECK(!symlink("closed/f", "link") && !symlink("f", "closed/l") && !access("link", R_OK));
	pid = fork_user(USER, GROUP, 0);
	if (!pid) {
		user_walks();
		child_exit(0);
	}
	CHECK(child_status(pid) == 0);
	CHECK(!unlink("open/f") && !unlink("closed/f") && !unlink("closed/l") && !unlink("link"));
	CHECK(!rmdir("open") && !rmdir("closed") && !rmdir("readable"));
}

static void user_names(void)
{
	FAILS(mkdir("d/new", 0777), EACCES);
	FAILS(mkdir("d/f", 0777), EEXIST);
	FAILS(mknod("d/new", S_IFIFO | 0666, 0), EACCES);
	FAILS(symlink("x", "d/new"), EACCES);
	FAILS(link("d/f", "d/new"), EACCES);
	FAILS(unlink("d/f"), EACCES);
	FAILS(unlink("d/no"), ENOENT);
	FAILS(unlink("d/sub"), EACCES);
	FAILS(rmdir("d/sub"), EACCES);
	FAILS(rename("d/f", "d/g"), EACCES);
	FAILS(rename("d/f", "all/g"), EACCES);
	FAILS(rename("all/f", "d/g"), EACCES);
	FAILS(mknod("all/null", S_IFCHR | 0666, 1 << 8 | 3), EPERM);
	CHECK(!mknod("all/fifo", S_IFIFO | 0666, 0) && !unlink("all/fifo"));
	/*
	 * To move a directory to another parent requires write permission for it; to move a file
	 * does not.
	 */
	FAILS(rename("all/roots", "all/mine/roots"), EACCES);
	CHECK(!rename("all/roots", "all/roots2") && !rename("all/roots2", "all/roots"));
	CHECK(!rename("all/f", "all/mine/f"));
	FAILS(syscall(SYS_renameat2, AT_FDCWD, "all/mine/f", AT_FDCWD, "all/roots", 2), EACCES);
	CHECK(!rename("all/mine/f", "all/f"));
	CHECK(!unlink("all/f"));

	/* In a sticky directory, a user can remove only files of his own. */
	FAILS(unlink("sticky/roots"), EPERM);
	FAILS(rmdir("sticky/dir"), EPERM);
	FAILS(rename("sticky/roots", "sticky/x"), EPERM);
	FAILS(rename("sticky/users", "sticky/roots"), EPERM);
	FAILS(unlink("sticky/dir"), EPERM);
	CHECK(!rename("sticky/users", "sticky/x") && !unlink("sticky/x"));
	CHECK(!unlink("own/roots")); /* the directory belongs to the user */
}

TEST(names)
{
	pid_t pid;

	CHECK(!mkdir("d", 0755) && !mkdir("d/sub", 0777) && !mkdir("all", 0777));
	CHECK(!mkdir("sticky", 0777) && !mkdir("sticky/dir", 0777) && !mkdir("own", 0777));
	CHECK(!mkdir("all/mine", 0777) && !mkdir("all/roots", 0755));
	CHECK(!chown("all/mine", USER, GROUP) && !chown("own", USER, GROUP));
	CHECK(!chmod("all", 0777) && !chmod("sticky", 01777) && !chmod("own", 01777));
	make_file("d/f", 0666, 0, 0);
	make_file("all/f", 0644, 0, 0);
	make_file("sticky/roots", 0666, 0, 0);
	make_file("sticky/users", 0644, USER, 0);
	make_file("own/roots", 0644, 0, 0);
	pid = fork_user(USER, GROUP, 0);
	if (!pid) {
		user_names();
		child_exit(0);
	}
	CHECK(child_status(pid) == 0);
	CHECK(!unlink("d/f") && !rmdir("d/sub") && !rmdir("d") && !rmdir("all/mine"));
	CHECK(!rmdir("all/roots") && !rmdir("all") && !unlink("sticky/roots"));
	CHECK(!rmdir("sticky/dir") && !rmdir("sticky") && !rmdir("own"));
}

/* A file made in a set-group-ID directory gets the group of the directory. */
TEST(set_gid_directory)
{
	pid_t pid;

	CHECK(!mkdir("g", 0777) && !chown("g", 0, OTHER) && !chmod("g", 02777));
	pid = fork_user(USER, GROUP, 0);
	if (!pid) {
		umask(0);
		CHECK(!mkdir("g/d", 0755) && stat_of("g/d").st_mode == (S_IFDIR | 02755));
		CHECK(stat_of("g/d").st_gid == OTHER && stat_of("g/d").st_uid == USER);
		CHECK(!close(open("g/f", O_CREAT | O_WRONLY, 02777)));
		CHECK(stat_of("g/f").st_gid == OTHER && stat_of("g/f").st_mode == (S_IFREG | 0777));
		CHECK(!chmod("g/f", 06777) && stat_of("g/f").st_mode == (S_IFREG | 04777));
		CHECK(!symlink("f", "g/l") && stat_of("g/l").st_gid == OTHER);
		CHECK(!unlink("g/f") && !unlink("g/l") && !rmdir("g/d"));
		child_exit(0);
	}
	CHECK(child_status(pid) == 0 && !rmdir("g"));
}

static void user_changes(void)
{
	struct timespec times[2] = { { 5, 6 }, { 7, 8 } };

	FAILS(chmod("roots", 0777), EPERM);
	FAILS(chown("roots", USER, -1), EPERM);
	FAILS(chown("roots", -1, GROUP), EPERM);
	FAILS(utimensat(AT_FDCWD, "roots", times, 0), EPERM);
	/* Write permission is enough to set the present time. */
	CHECK(!utimensat(AT_FDCWD, "roots", NULL, 0));
	times[0].tv_nsec = times[1].tv_nsec = UTIME_NOW;
	CHECK(!utimensat(AT_FDCWD, "roots", times, 0));
	times[1].tv_nsec = UTIME_OMIT;
	FAILS(utimensat(AT_FDCWD, "roots", times, 0), EPERM);
	FAILS(utimensat(AT_FDCWD, "closed", NULL, 0), EACCES);

	CHECK(!chmod("mine", 06755) && stat_of("mine").st_mode == (S_IFREG | 06755));
	FAILS(chown("mine", OTHER, -1), EPERM);
	FAILS(chown("mine", -1, OTHER + 1), EPERM);
	CHECK(!chown("mine", USER, -1)); /* a chown() that changes nothing is allowed */
	CHECK(stat_of("mine").st_mode == (S_IFREG | 0755) && !chmod("mine", 06755));
	CHECK(!chown("mine", -1, OTHER)); /* the user is in this group */
	CHECK(stat_of("mine").st_mode == (S_IFREG | 0755) && stat_of("mine").st_gid == OTHER);
	CHECK(!chmod("mine", 0) && !utimensat(AT_FDCWD, "mine", NULL, 0));
}

TEST(changes)
{
	pid_t pid;

	make_file("roots", 0666, 0, 0);
	make_file("closed", 0644, 0, 0);
	make_file("mine", 0644, USER, GROUP);
	pid = fork_user(USER, GROUP, OTHER);
	if (!pid) {
		user_changes();
		child_exit(0);
	}
	CHECK(child_status(pid) == 0 && stat_of("roots").st_mode == (S_IFREG | 0666));
	CHECK(!unlink("roots") && !unlink("closed") && !unlink("mine"));
}

/* A change by any user but root clears a program's set-user-ID bit. */
TEST(writes_to_program)
{
	pid_t pid;
	int fd;

	make_file("p", 06777, OTHER, OTHER);
	CHECK(!truncate("p", 3) && stat_of("p").st_mode == (S_IFREG | 06777));
	pid = fork_user(USER, GROUP, 0);
	if (!pid) {
		CHECK((fd = open("p", O_WRONLY)) >= 0);
		CHECK(stat_of("p").st_mode == (S_IFREG | 06777));
		CHECK(write(fd, "x", 1) == 1 && !close(fd));
		CHECK(stat_of("p").st_mode == (S_IFREG | 0777));
		child_exit(0);
	}
	CHECK(child_status(pid) == 0 && !chmod("p", 06777));
	pid = fork_user(USER, GROUP, 0);
	if (!pid) {
		CHECK(!truncate("p", 2) && stat_of("p").st_mode == (S_IFREG | 0777));
		child_exit(0);
	}
	CHECK(child_status(pid) == 0 && !unlink("p"));
}

/* access() checks the real user, open() the fs user, and faccessat() either of them. */
TEST(real_user)
{
	pid_t pid;

	make_file("f", 0600, 0, 0);
	CHECK(!mkdir("d", 0700));
	make_file("d/f", 0666, 0, 0);
	pid = fork_child();
	if (!pid) {
		CHECK(!setgroups(0, NULL) && !setresuid(USER, 0, 0));
		FAILS(access("f", R_OK), EACCES);
		FAILS(access("d/f", R_OK), EACCES);
		CHECK(!access("f", F_OK));
		CHECK(!faccessat(AT_FDCWD, "d/f", R_OK, AT_EACCESS));
		CHECK(!close(open("f", O_RDONLY)));
		CHECK(setfsuid(USER) == 0);
		FAILS(open("f", O_RDONLY), EACCES);
		CHECK(setfsuid(0) == USER && !close(open("f", O_RDONLY)));
		CHECK(!setresuid(0, USER, -1) && !access("d/f", R_OK));
		FAILS(open("d/f", O_RDONLY), EACCES);
		child_exit(0);
	}
	CHECK(child_status(pid) == 0);
	CHECK(!unlink("f") && !unlink("d/f") && !rmdir("d"));
}

/* Reads or, unless value is negative, writes /proc/sys/fs/protected_<name>. */
static int protection(const char *name, int value)
{
	char path[64], byte = '0' + value;
	int fd, ok;

	snprintf(path, sizeof(path), "/proc/sys/fs/protected_%s", name);
	fd = open(path, value < 0 ? O_RDONLY : O_WRONLY);
	ok = fd >= 0 && (value < 0 ? read(fd, &byte, 1) == 1 : write(fd, &byte, 1) == 1);
	close(fd);
	return ok ? byte - '0' : -1;
}

/* Expects the call to fail with the error if it is to be refused, or to succeed. */
#define REFUSED(call, refused, error)                                           \
	do {                                                                    \
		int refused_ = (refused);                                       \
		CHECK((call) == -1 ? refused_ && errno == (error) : !refused_); \
	} while (0)

static int links(const char *name)
{
	return link(name, "links/new") ?: unlink("links/new");
}

static int opens(const char *name, int flags)
{
	int fd = open(name, flags | O_NONBLOCK, 0666);

	return fd < 0 ? fd : close(fd);
}

/* What holds for every user but the owner. */
static void other_opens(void)
{
	REFUSED(opens("sticky/link", O_RDONLY), protection("symlinks", -1), EACCES);
	REFUSED(opens("sticky/link", O_RDONLY | O_CREAT), protection("symlinks", -1), EACCES);
	CHECK(S_ISLNK(stat_of("sticky/link").st_mode) && !opens("sticky/dir-link/f", O_RDONLY));
	REFUSED(opens("sticky/f", O_RDWR | O_CREAT), protection("regular", -1), EACCES);
	CHECK(!opens("sticky/f", O_RDWR));
	FAILS(opens("sticky/f", O_RDWR | O_CREAT | O_EXCL), EEXIST);
	FAILS(opens("sticky/dir", O_RDWR | O_CREAT), EISDIR);
	REFUSED(opens("sticky/fifo", O_RDWR | O_CREAT), protection("fifos", -1), EACCES);
	CHECK(!opens("sticky/fifo", O_RDWR) && !opens("sticky/roots", O_RDONLY | O_CREAT));
	REFUSED(opens("group/f", O_RDWR | O_CREAT), protection("regular", -1) >= 2, EACCES);
	REFUSED(opens("group/fifo", O_RDWR | O_CREAT), protection("fifos", -1) >= 2, EACCES);
}

static void check_protection(void)
{
	pid_t pid = fork_user(USER, GROUP, 0);

	if (!pid) {
		int links_are_refused = protection("hardlinks", -1);

		other_opens();
		REFUSED(links("roots"), links_are_refused, EPERM);
		REFUSED(links("sticky/link"), links_are_refused, EPERM);
		REFUSED(links("set-id"), links_are_refused, EPERM);
		CHECK(!links("all"));
		CHECK(!links("sticky/mine"));
		CHECK(!opens("sticky/mine", O_RDWR | O_CREAT));
		CHECK(!opens("sticky/my-link", O_RDWR | O_CREAT));
		child_exit(0);
	}
	CHECK(child_status(pid) == 0);
	other_opens(); /* as root */
	CHECK(!links("set-id"));
}

/* fs.protected_*: users cannot trap each other in sticky directories. */
TEST(protected)
{
	static const char *const names[] = { "hardlinks", "symlinks", "fifos", "regular" };
	static const int debian[] = { 1, 1, 1, 2 };

	umask(0);
	CHECK(!mkdir("sticky", 01777) && !mkdir("sticky/dir", 0777) && !mkdir("group", 01775) &&
	      !mkdir("links", 0777));
	CHECK(!chown("sticky/dir", OTHER, OTHER) && !chown("group", 0, GROUP));
	make_file("roots", 0644, 0, 0);
	make_file("all", 0666, 0, 0);
	make_file("set-id", 04777, 0, 0);
	make_file("sticky/roots", 0644, 0, 0);
	make_file("sticky/mine", 0600, USER, GROUP);
	make_file("sticky/f", 0666, OTHER, OTHER);
	make_file("sticky/dir/f", 0666, OTHER, OTHER);
	make_file("group/f", 0666, OTHER, OTHER);
	CHECK(!mkfifo("sticky/fifo", 0666) && !chown("sticky/fifo", OTHER, OTHER));
	CHECK(!mkfifo("group/fifo", 0666) && !chown("group/fifo", OTHER, OTHER));
	CHECK(!symlink("../all", "sticky/link") && !lchown("sticky/link", OTHER, OTHER));
	CHECK(!symlink("dir", "sticky/dir-link") && !lchown("sticky/dir-link", OTHER, OTHER));
	CHECK(!symlink("../all", "sticky/my-link") && !lchown("sticky/my-link", USER, GROUP));
	check_protection();
	for (int i = 0; i < 4 && check_on_lego(); i++) {
		CHECK(protection(names[i], -1) == debian[i]);
		CHECK(protection(names[i], 3) == -1 && errno == EINVAL);
		CHECK(protection(names[i], 0) == 0);
		check_protection();
		CHECK(protection(names[i], debian[i] == 2 ? 1 : debian[i]) > 0);
		check_protection();
		CHECK(protection(names[i], debian[i]) == debian[i]);
	}
	CHECK(!unlink("sticky/my-link") && !unlink("sticky/link") && !unlink("sticky/dir-link"));
	CHECK(!unlink("sticky/fifo") && !unlink("sticky/f") && !unlink("sticky/mine"));
	CHECK(!unlink("sticky/dir/f") && !rmdir("sticky/dir") && !unlink("sticky/roots"));
	CHECK(!unlink("group/f") && !unlink("group/fifo") && !rmdir("group") && !rmdir("sticky"));
	CHECK(!unlink("roots") && !unlink("all") && !unlink("set-id") && !rmdir("links"));
	umask(022);
}

int main(int argc, char **argv)
{
	return run_tests_as_root("perms", argc, argv);
}
