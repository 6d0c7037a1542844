// SPDX-License-Identifier: BSD-2-Clause
/* Files: create, read, write, seek, positions, vectors, holes, truncation, stat, errors. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "check.h"

static const char *name;

static int create(void)
{
	return open(name, O_CREAT | O_RDWR | O_TRUNC, 0644);
}

static void test_write_and_read(void)
{
	char buf[64] = "";
	struct stat st;
	int fd = create(), again;

	CHECK(fd >= 0);
	CHECK(write(fd, "hello, file", 11) == 11);
	CHECK(lseek(fd, 0, SEEK_CUR) == 11);
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	CHECK(read(fd, buf, sizeof(buf)) == 11 && !memcmp(buf, "hello, file", 11));
	CHECK(read(fd, buf, sizeof(buf)) == 0);
	CHECK(pread(fd, buf, 4, 7) == 4 && !memcmp(buf, "file", 4));
	CHECK(pwrite(fd, "HELLO", 5, 0) == 5);
	CHECK(lseek(fd, 0, SEEK_CUR) == 11);
	CHECK(lseek(fd, -4, SEEK_END) == 7);
	CHECK(lseek(fd, -1, SEEK_CUR) == 6);
	CHECK(!fstat(fd, &st) && st.st_size == 11 && S_ISREG(st.st_mode));
	CHECK(!stat(name, &st) && st.st_size == 11);
	CHECK(!lstat(name, &st) && st.st_size == 11);

	again = open(name, O_RDONLY);
	CHECK(again >= 0 && again != fd);
	CHECK(read(again, buf, 5) == 5 && !memcmp(buf, "HELLO", 5));
	CHECK(lseek(fd, 0, SEEK_CUR) == 6); /* each open has its own position */
	CHECK(write(again, "x", 1) == -1 && errno == EBADF);
	CHECK(!close(again) && close(again) == -1 && errno == EBADF);
	CHECK(!close(fd));
}

static void test_vectors(void)
{
	char a[4], b[8], c[64];
	struct iovec out[3] = { { "one", 3 }, { "", 0 }, { "twenty", 6 } };
	struct iovec in[3] = { { a, 3 }, { b, 4 }, { c, 64 } };
	int fd = create();

	CHECK(writev(fd, out, 3) == 9);
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	CHECK(readv(fd, in, 3) == 9);
	CHECK(!memcmp(a, "one", 3) && !memcmp(b, "twen", 4) && !memcmp(c, "ty", 2));
	close(fd);
}

/* Writing past the end leaves a hole of zeros. */
static void test_hole(void)
{
	static char buf[10000];
	struct stat st;
	int fd = create();

	memset(buf, 1, sizeof(buf));
	CHECK(write(fd, "abc", 3) == 3);
	CHECK(lseek(fd, 9000, SEEK_SET) == 9000);
	CHECK(write(fd, "z", 1) == 1);
	CHECK(!fstat(fd, &st) && st.st_size == 9001);
	CHECK(pread(fd, buf, sizeof(buf), 0) == 9001);
	CHECK(!memcmp(buf, "abc", 3) && buf[9000] == 'z');
	for (int i = 3; i < 9000; i++) {
		if (buf[i]) {
			CHECK(!"a hole reads as zero");
			break;
		}
	}
	close(fd);
	fd = open(name, O_RDWR | O_TRUNC);
	CHECK(fd >= 0 && !fstat(fd, &st) && st.st_size == 0);
	close(fd);
	fd = open(name, O_WRONLY | O_APPEND);
	CHECK(write(fd, "one", 3) == 3 && !lseek(fd, 0, SEEK_SET) && write(fd, "two", 3) == 3);
	CHECK(!fstat(fd, &st) && st.st_size == 6);
	CHECK(read(fd, buf, 1) == -1 && errno == EBADF);
	close(fd);
}

static void test_large(void)
{
	unsigned int *block = malloc(1 << 20), nr_wrong = 0;
	int fd = create();

	for (unsigned int i = 0; i < 1 << 18; i++)
		block[i] = i * 2654435761u;
	for (int i = 0; i < 4; i++)
		CHECK(write(fd, block, 1 << 20) == 1 << 20);
	CHECK(lseek(fd, 0, SEEK_END) == 4 << 20);
	for (unsigned int i = 0; i < 3000; i++) {
		unsigned int value, at = i * 7919 % (1 << 20) * 4;

		if (pread(fd, &value, 4, at) != 4 || value != at / 4 % (1 << 18) * 2654435761u)
			nr_wrong++;
	}
	CHECK(nr_wrong == 0);
	CHECK(lseek(fd, 3, SEEK_SET) == 3);
	CHECK(read(fd, block, 1 << 20) == 1 << 20);
	close(fd);
	open(name, O_RDWR | O_TRUNC);
	free(block);
}

static void test_descriptors(void)
{
	int fd = create(), copy, lowest;
	char c;

	lowest = dup(fd);
	CHECK(lowest > fd);
	CHECK(!close(lowest));
	copy = dup(fd);
	CHECK(copy == lowest); /* the lowest free number */
	CHECK(write(fd, "ab", 2) == 2);
	CHECK(lseek(copy, 0, SEEK_CUR) == 2); /* a copy shares the position */
	CHECK(lseek(copy, 0, SEEK_SET) == 0);
	CHECK(!close(fd));
	CHECK(read(copy, &c, 1) == 1 && c == 'a');
	CHECK((fcntl(copy, F_GETFL) & O_ACCMODE) == O_RDWR);
	CHECK(fcntl(copy, F_GETFD) == 0);
	close(copy);
}

/* Devices without an end stay at their start, however they are read, written and sought. */
static void test_endless(void)
{
	static const char *const names[] = { "/dev/null", "/dev/zero", "/dev/full" };
	char text[8] = "";

	for (int i = 0; i < 3; i++) {
		int fd = open(names[i], O_RDWR);

		CHECK(read(fd, text, 8) == (i ? 8 : 0));
		CHECK(lseek(fd, 5, SEEK_SET) == 0 && lseek(fd, -3, SEEK_END) == 0);
		CHECK(lseek(fd, 9, SEEK_CUR) == 0 && lseek(fd, -1, SEEK_SET) == 0);
		CHECK(lseek(fd, 0, 3 /* SEEK_DATA */) == 0 && lseek(fd, 0, 77) == -1 &&
		      errno == EINVAL);
		if (i == 2)
			CHECK(write(fd, "x", 1) == -1 && errno == ENOSPC);
		close(fd);
	}
}

static void test_errors(void)
{
	struct stat st;
	char buf[64];
	int fd;

	CHECK(open("/no/such", O_RDONLY) == -1 && errno == ENOENT);
	CHECK(stat("/nosuch", &st) == -1 && errno == ENOENT);
	CHECK(access("/nosuch", F_OK) == -1 && errno == ENOENT);
	CHECK(!access("/", F_OK));
	CHECK(!stat("/", &st) && S_ISDIR(st.st_mode));
	CHECK(open("/", O_WRONLY) == -1 && errno == EISDIR);
	close(create());
	CHECK(open(name, O_CREAT | O_EXCL | O_RDWR, 0600) == -1 && errno == EEXIST);
	snprintf(buf, sizeof(buf), "%s/x", name);
	CHECK(open(buf, O_RDONLY) == -1 && errno == ENOTDIR);
	fd = open("/", O_RDONLY | O_DIRECTORY);
	if (fd >= 0) {
		CHECK(read(fd, buf, 1) == -1 && errno == EISDIR);
		close(fd);
	}
	CHECK(open(name, O_RDONLY | O_DIRECTORY) == -1 && errno == ENOTDIR);
}

int main(void)
{
	name = check_file_name();
	test_write_and_read();
	test_vectors();
	test_hole();
	test_large();
	test_descriptors();
	test_endless();
	test_errors();
	return check_finish("files");
}
