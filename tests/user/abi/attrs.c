// SPDX-License-Identifier: BSD-2-Clause
/*
 * Attributes of files: modes and umask, times, owners, sizes; permissions of root and of other
 * users; the flags of open(); statfs; and mounts, where mounting is allowed.
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/time.h>

#include "run.h"

#define TMPFS_MAGIC 0x01021994
#define PROC_MAGIC  0x9fa0

static char base[64];

static void make_file(const char *name, const char *text, mode_t mode)
{
	int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, mode);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == strlen(text) && !close(fd));
}

static mode_t mode_of(const char *name)
{
	struct stat st;

	return stat(name, &st) ? -1 : st.st_mode;
}

TEST(modes)
{
	mode_t old = umask(027);
	int fd;

	make_file("f", "", 0666);
	CHECK(!mkdir("d", 0777) && mode_of("f") == (S_IFREG | 0640));
	CHECK(mode_of("d") == (S_IFDIR | 0750) && umask(0) == 027);
	CHECK(!mkdir("e", 01777) && mode_of("e") == (S_IFDIR | 01777));
	CHECK(umask(07777) == 0 && umask(old) == 0777);
	CHECK(!chmod("f", 0123) && mode_of("f") == (S_IFREG | 0123));
	CHECK(!chmod("f", 06755) && mode_of("f") == (S_IFREG | 06755));
	fd = open("f", O_RDONLY);
	CHECK(!fchmod(fd, 0400) && mode_of("f") == (S_IFREG | 0400) && !close(fd));
	CHECK(!fchmodat(AT_FDCWD, "d", 0700, 0) && mode_of("d") == (S_IFDIR | 0700));
	CHECK(!symlink("f", "l") && !chmod("l", 0600) && mode_of("f") == (S_IFREG | 0600));
	FAILS(chmod("no", 0600), ENOENT);
	FAILS(fchmod(999, 0600), EBADF);
	CHECK(!unlink("l") && !unlink("f") && !rmdir("d") && !rmdir("e"));
}

static int time_is(const struct timespec *time, long seconds, long ns)
{
	return time->tv_sec == seconds && time->tv_nsec == ns;
}

TEST(times)
{
	struct timespec times[2] = { { 1000000000, 123456789 }, { 1100000000, 7 } };
	struct stat st, before;
	int fd;

	make_file("f", "x", 0600);
	CHECK(!utimensat(AT_FDCWD, "f", times, 0) && !stat("f", &st));
	CHECK(time_is(&st.st_atim, 1000000000, 123456789) && time_is(&st.st_mtim, 1100000000, 7));
	/* The ctime is the present time, not one of the times that were set. */
	CHECK(st.st_ctime > 1100000000 || st.st_ctime < 1000000000);
	times[0].tv_nsec = UTIME_OMIT;
	times[1] = (struct timespec){ 5, 6 };
	CHECK(!utimensat(AT_FDCWD, "f", times, 0) && !stat("f", &st));
	CHECK(time_is(&st.st_atim, 1000000000, 123456789) && time_is(&st.st_mtim, 5, 6));
	times[0].tv_nsec = UTIME_NOW;
	fd = open("f", O_RDWR);
	CHECK(!futimens(fd, times) && !fstat(fd, &st) && st.st_atime != 1000000000);
	times[0].tv_nsec = 1000000000;
	FAILS(utimensat(AT_FDCWD, "f", times, 0), EINVAL);
	FAILS(utimensat(AT_FDCWD, "no", NULL, 0), ENOENT);
	CHECK_ERROR(EFAULT, SYS_utimensat, AT_FDCWD, NULL, NULL, 0);

	/* Writing and truncating change them; so does a new name in a directory. */
	times[0] = times[1] = (struct timespec){ 5, 6 };
	CHECK(!utimensat(AT_FDCWD, "f", times, 0) && write(fd, "y", 1) == 1);
	CHECK(!stat("f", &st) && st.st_mtime != 5);
	CHECK(!utimensat(AT_FDCWD, "f", times, 0) && !ftruncate(fd, 0));
	CHECK(!stat("f", &st) && st.st_mtime != 5 && !close(fd));
	CHECK(!utimensat(AT_FDCWD, ".", times, 0) && !stat(".", &before) && before.st_mtime == 5);
	CHECK(!link("f", "g") && !stat(".", &st) && st.st_mtime != 5);
	CHECK(!utimensat(AT_FDCWD, ".", times, 0) && !unlink("g") && !stat(".", &st));
	CHECK(st.st_mtime != 5 && !unlink("f"));
	/* The times of a link itself. */
	CHECK(!symlink("nowhere", "l") && !utimensat(AT_FDCWD, "l", times, AT_SYMLINK_NOFOLLOW));
	CHECK(!lstat("l", &st) && time_is(&st.st_mtim, 5, 6) && !unlink("l"));
}

TEST(stat)
{
	struct stat st, dir, other;
	int fd = open("f", O_CREAT | O_RDWR | O_TRUNC, 0600);

	CHECK(!fstat(fd, &st) && st.st_size == 0 && st.st_blocks == 0 && st.st_nlink == 1);
	CHECK(st.st_uid == getuid() && st.st_gid == getgid() && st.st_rdev == 0);
	CHECK(st.st_ino && st.st_blksize == 4096);
	CHECK(!stat(".", &dir) && dir.st_dev == st.st_dev && dir.st_ino != st.st_ino);
	CHECK(pwrite(fd, "x", 1, 100000) == 1 && !fstat(fd, &st) && st.st_size == 100001);
	CHECK(st.st_blocks > 0 && st.st_blocks * 512 < 100000); /* a hole takes no space */
	CHECK(!stat("/dev/null", &other) && S_ISCHR(other.st_mode));
	CHECK(other.st_rdev == makedev(1, 3));
	CHECK(!stat("/dev/zero", &other) && other.st_rdev == makedev(1, 5));
	FAILS(fstat(999, &st), EBADF);
	CHECK_ERROR(EFAULT, SYS_newfstatat, AT_FDCWD, "f", 8, 0);
	CHECK_ERROR(EFAULT, SYS_stat, 8, &st);
	close(fd);
	CHECK(!unlink("f"));
}

TEST(sizes)
{
	int fd = open("f", O_CREAT | O_RDWR | O_TRUNC, 0600), append, reader;
	char text[32] = "";
	struct stat st;

	CHECK(write(fd, "0123456789", 10) == 10 && !ftruncate(fd, 4));
	CHECK(pread(fd, text, 32, 0) == 4 && !ftruncate(fd, 8) && pread(fd, text, 32, 0) == 8);
	CHECK(!memcmp(text, "0123\0\0\0\0", 8) && lseek(fd, 0, SEEK_CUR) == 10);
	CHECK(!truncate("f", 5000) && !fstat(fd, &st) && st.st_size == 5000);
	CHECK(!truncate("f", 0) && !fstat(fd, &st) && st.st_size == 0);
	FAILS(ftruncate(fd, -1), EINVAL);
	FAILS(truncate(".", 0), EISDIR);
	FAILS(truncate("no", 0), ENOENT);
	append = open("f", O_WRONLY | O_APPEND);
	CHECK(write(fd, "ab", 2) == 2); /* at 10 */
	CHECK(write(append, "cd", 2) == 2 && lseek(append, 0, SEEK_CUR) == 14);
	CHECK(lseek(append, 0, SEEK_SET) == 0 && write(append, "ef", 2) == 2);
	CHECK(pread(fd, text, 32, 10) == 6 && !memcmp(text, "abcdef", 6));
	reader = open("f", O_RDONLY);
	FAILS(ftruncate(reader, 0), EINVAL);
	FAILS(lseek(fd, -1, SEEK_SET), EINVAL);
	FAILS(lseek(fd, 0, 77), EINVAL);
	CHECK(!fsync(fd) && !fdatasync(fd));
	close(append);
	close(fd);
	close(reader);
	CHECK(!unlink("f"));
}

/*
 * Root may do everything, but not execute a file without any x bit. Other users may do what the
 * mode allows.
 */
TEST(access)
{
	pid_t pid;

	make_file("f", "x", 0600);
	CHECK(!mkdir("d", 0700) && !access("f", R_OK | W_OK) && !access("d", X_OK));
	FAILS(access("f", X_OK), EACCES);
	FAILS(access("f", 8), EINVAL);
	FAILS(access("no", F_OK), ENOENT);
	CHECK(!chmod("f", 0) && !access("f", R_OK | W_OK) && !close(open("f", O_RDWR)));
	CHECK(!chmod("f", 01) && !access("f", X_OK));
	CHECK(!chmod("f", 0604) && !faccessat(AT_FDCWD, "f", R_OK, AT_EACCESS));
	CHECK(!chown("f", 12, 34) && !chown("f", -1, 35));
	pid = fork_child();
	if (!pid) {
		struct stat st;

		CHECK(!stat("f", &st) && st.st_uid == 12 && st.st_gid == 35);
		child_exit(0);
	}
	CHECK(child_status(pid) == 0);
	CHECK(!lchown("f", 0, 0) && !unlink("f") && !rmdir("d"));
}

TEST(statfs)
{
	struct statfs fs, of_file;
	int fd;

	make_file("f", "x", 0600);
	fd = open("f", O_RDONLY);
	CHECK(!statfs(".", &fs) && !fstatfs(fd, &of_file) && fs.f_type == of_file.f_type);
	CHECK(fs.f_bsize >= 512 && fs.f_namelen == 255 && fs.f_bfree <= fs.f_blocks);
	CHECK(!statfs("/proc", &fs) && fs.f_type == PROC_MAGIC);
	FAILS(statfs("no", &fs), ENOENT);
	FAILS(fstatfs(999, &fs), EBADF);
	CHECK_ERROR(EFAULT, SYS_statfs, ".", 8);
	close(fd);
	CHECK(!unlink("f"));
}

#define ENOUGH_BYTES (256L << 20) /* the test does not fill a larger file system */

/*
 * In a full file system, accesses to a mapped hole fail as accesses after the end of the file do.
 */
TEST(full)
{
	struct statfs fs;
	int full, fd;
	pid_t pid;

	CHECK(!statfs(".", &fs));
	if (fs.f_bavail * fs.f_bsize > ENOUGH_BYTES)
		return;
	full = open("full", O_CREAT | O_RDWR, 0600);
	fd = open("f", O_CREAT | O_RDWR, 0600);
	CHECK(full >= 0 && fd >= 0 && !ftruncate(fd, 1 << 20));
	for (long n = fs.f_bavail; n > 0 && fallocate(full, 0, 0, n * fs.f_bsize); n -= 16)
		CHECK(errno == ENOSPC);
	pid = fork_child();
	if (!pid) {
		char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		CHECK(p != MAP_FAILED);
		for (int i = 0; i < 1 << 20; i += 4096)
			p[i] = 1;
		child_exit(1);
	}
	CHECK(child_status(pid) == SIGBUS);
	CHECK(!close(fd) && !close(full) && !unlink("f") && !unlink("full"));
}

TEST(mounts)
{
	struct stat st, inner;
	struct statfs fs;
	char path[PATH_MAX];
	int fd;

	CHECK(!mkdir("m", 0755) && !stat("m", &st));
	make_file("m/under", "x", 0600);
	if (mount("tests", "m", "tmpfs", 0, NULL)) {
		CHECK(errno == EPERM); /* in a container, say */
		CHECK(!unlink("m/under") && !rmdir("m"));
		return;
	}
	CHECK(!stat("m", &inner) && inner.st_dev != st.st_dev && S_ISDIR(inner.st_mode));
	CHECK(!statfs("m", &fs) && fs.f_type == TMPFS_MAGIC);
	FAILS(stat("m/under", &inner), ENOENT); /* covered */
	make_file("m/f", "mounted", 0600);
	CHECK(!mkdir("m/d", 0755) && !stat("m/f", &inner) && !stat("m", &st));
	CHECK(inner.st_dev == st.st_dev);
	FAILS(rename("m/f", "f"), EXDEV);
	FAILS(link("m/f", "f"), EXDEV);
	FAILS(rmdir("m"), EBUSY);
	FAILS(rename("m", "n"), EBUSY);
	CHECK(!chdir("m/d") && getcwd(path, sizeof(path)) && strstr(path, "/m/d"));
	CHECK(!chdir("../..") && !stat(".", &st) && st.st_dev != inner.st_dev);
	fd = open("m/f", O_RDONLY);
	FAILS(umount("m"), EBUSY);
	close(fd);
	FAILS(umount("m/d"), EINVAL);
	FAILS(umount("no"), ENOENT);
	FAILS(mount("x", "m/d", "nosuchfs", 0, NULL), ENODEV);
	FAILS(mount("x", "m/no", "tmpfs", 0, NULL), ENOENT);
	FAILS(mount("x", "m/f", "tmpfs", 0, NULL), ENOTDIR);
	CHECK(!mount("proc", "m/d", "proc", 0, NULL) && !access("m/d/self/stat", R_OK));
	FAILS(umount("m"), EBUSY); /* another mount is in it */
	CHECK(!umount("m/d") && !umount2("m", 0));
	CHECK(!stat("m/under", &st) && access("m/f", F_OK) == -1);
	/*
	 * Nothing can be mounted inside a detached mount, even by a process whose working directory
	 * it is.
	 */
	CHECK(!mount("tests", "m", "tmpfs", 0, NULL) && !chdir("m") && !mkdir("d", 0755));
	CHECK(!umount2(".", MNT_DETACH));
	CHECK(mount("x", "d", "tmpfs", 0, NULL) == -1 && (errno == EINVAL || errno == ENOENT));
	CHECK(!rmdir("d") && !chdir(base));
	CHECK(!unlink("m/under") && !rmdir("m"));
}

/* Looks for data and holes in a file of two pieces. A file system may not know of holes. */
TEST(holes)
{
	static const off_t at = 1 << 20, bytes = 3 << 20;
	int fd = open(check_file_name(), O_CREAT | O_RDWR | O_TRUNC, 0644);
	off_t data, hole;

	CHECK(lseek(fd, 0, SEEK_DATA) == -1 && errno == ENXIO);
	CHECK(!ftruncate(fd, bytes) && pwrite(fd, "here", 4, at + 10) == 4);
	data = lseek(fd, 0, SEEK_DATA);
	hole = lseek(fd, at, SEEK_HOLE);
	CHECK((data == at && hole == at + 4096) || (!check_on_lego() && !data && hole == bytes));
	CHECK(lseek(fd, 0, SEEK_CUR) == hole);
	CHECK(lseek(fd, at + 12, SEEK_DATA) == at + 12);
	CHECK(lseek(fd, bytes - 1, SEEK_HOLE) == (data ? bytes - 1 : bytes));
	CHECK(!data || (lseek(fd, bytes - 1, SEEK_DATA) == -1 && errno == ENXIO));
	CHECK(lseek(fd, bytes, SEEK_HOLE) == -1 && errno == ENXIO);
	CHECK(lseek(fd, -1, SEEK_DATA) == -1 && errno == ENXIO);
	CHECK(lseek(fd, 0, SEEK_HOLE + 1) == -1 && errno == EINVAL);
	/* One piece from end to end. */
	CHECK(!ftruncate(fd, 5000) && pwrite(fd, "x", 1, 0) == 1 && pwrite(fd, "x", 1, 4999) == 1);
	CHECK(lseek(fd, 1, SEEK_HOLE) == 5000 && lseek(fd, 4998, SEEK_DATA) == 4998);
	close(fd);
}

/* Linux looks at an attribute's name and value before it looks for the file from 6.13 on. */
static int arguments_come_first(void)
{
	struct utsname name;
	int major = 0, minor = 0;

	uname(&name);
	sscanf(name.release, "%d.%d", &major, &minor);
	return check_on_lego() || major > 6 || (major == 6 && minor >= 13);
}

/* Extended attributes of a file that cannot have any. */
TEST(extended)
{
	static const char path[] = "/proc/version", attr[] = "user.x";
	int fd = open(path, O_RDONLY);
	char text[300];

	CHECK_ERROR(EOPNOTSUPP, SYS_getxattr, path, attr, text, sizeof(text));
	CHECK_ERROR(EOPNOTSUPP, SYS_fgetxattr, fd, "security.selinux", text, sizeof(text));
	CHECK_ERROR(ENOENT, SYS_getxattr, "/no/such", attr, text, sizeof(text));
	CHECK_ERROR(EBADF, SYS_fgetxattr, -1, attr, text, sizeof(text));
	CHECK_ERROR(ERANGE, SYS_lgetxattr, path, "", text, sizeof(text));
	CHECK_ERROR(EFAULT, SYS_lgetxattr, path, (char *)-1l, text, sizeof(text));
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	CHECK_ERROR(ERANGE, SYS_fgetxattr, fd, text, NULL, 0);
	CHECK_ERROR(EINVAL, SYS_fsetxattr, fd, attr, text, 1, 8);
	CHECK_ERROR(E2BIG, SYS_fsetxattr, fd, attr, text, 65537, 0);
	CHECK_ERROR(EFAULT, SYS_fsetxattr, fd, attr, 8, 1, 0);
	CHECK_ERROR(EFAULT, SYS_fsetxattr, fd, 8, text, 65537, 0);
	CHECK_ERROR(EBADF, SYS_fremovexattr, -1, attr);
	if (arguments_come_first()) {
		CHECK_ERROR(EFAULT, SYS_setxattr, "/no/such", attr, 8, 1, 0);
		CHECK_ERROR(EINVAL, SYS_setxattr, 8, attr, text, 1, 8);
		CHECK_ERROR(EFAULT, SYS_fsetxattr, -1, 8, text, 1, 0);
		CHECK_ERROR(ERANGE, SYS_getxattr, 8, "", text, 1);
		CHECK_ERROR(EFAULT, SYS_fgetxattr, -1, 8, text, 1);
		CHECK_ERROR(EFAULT, SYS_removexattr, "/no/such", 8);
	}
	CHECK(syscall(SYS_listxattr, path, text, sizeof(text)) == 0);
	CHECK(syscall(SYS_flistxattr, fd, NULL, 0) == 0);
	CHECK_ERROR(ENOENT, SYS_llistxattr, "/no/such", NULL, 0);
	close(fd);
}

int main(int argc, char **argv)
{
	int status;

	mkdir("/tmp", 0777);
	snprintf(base, sizeof(base), "/tmp/attrs.%d", getpid());
	if (mkdir(base, 0755) || chdir(base)) {
		printf("FAIL: attrs: no %s, errno %d\n", base, errno);
		return 1;
	}
	status = run_tests("attrs", argc, argv);
	if (chdir("/") || rmdir(base)) {
		printf("FAIL: attrs: something is left in %s\n", base);
		return 1;
	}
	return status;
}
