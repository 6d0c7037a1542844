// SPDX-License-Identifier: BSD-2-Clause
/* /proc/<pid>/io: the calls that read and write, and the bytes that they move. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#include "run.h"

static const long unwritable = 0; /* a position that cannot be set */

/* Returns a new file. Each test begins with it, so it closes what the test before has opened. */
static int create(void)
{
	syscall(SYS_close_range, 3, ~0u, 0);
	return open(check_file_name(), O_CREAT | O_RDWR | O_TRUNC, 0644);
}

struct io {
	pid_t tid; /* 0: of the process */
	long bytes_read, bytes_written, nr_reads, nr_writes;
	/* Reading these counts is a read itself, which the next reading counts. */
	long own_bytes, nr_own;
};

static void read_io(struct io *io)
{
	char text[512] = "", name[64] = "/proc/self/io";
	long n;
	int fd;

	if (io->tid)
		snprintf(name, sizeof(name), "/proc/self/task/%d/io", io->tid);
	fd = open(name, O_RDONLY);
	n = read(fd, text, sizeof(text) - 1);
	io->nr_own = !io->tid || io->tid == syscall(SYS_gettid);
	io->own_bytes = io->nr_own * n;
	CHECK(sscanf(text, "rchar: %ld wchar: %ld syscr: %ld syscw: %ld read_bytes: ",
		     &io->bytes_read, &io->bytes_written, &io->nr_reads, &io->nr_writes) == 4);
	close(fd);
}

/* Checks what was counted since *io was read, and reads it again. */
static void check_io(struct io *io, long read, long written, long reads, long writes)
{
	struct io old = *io;

	read_io(io);
	CHECK(io->bytes_read - old.bytes_read == read + old.own_bytes);
	CHECK(io->bytes_written - old.bytes_written == written);
	CHECK(io->nr_reads - old.nr_reads == reads + old.nr_own);
	CHECK(io->nr_writes - old.nr_writes == writes);
}

TEST(calls)
{
	struct iovec vectors[2] = { { "one", 3 }, { "four", 4 } };
	int fd = create(), full = open("/dev/full", O_WRONLY), ends[2];
	char buf[256] = "";
	struct io io = { 0 };

	read_io(&io);
	check_io(&io, 0, 0, 0, 0);
	CHECK(write(fd, buf, 100) == 100 && pwrite(fd, buf, 50, 100) == 50);
	CHECK(writev(fd, vectors, 2) == 7);
	check_io(&io, 0, 157, 0, 3);
	CHECK(pread(fd, buf, 20, 0) == 20 && lseek(fd, 0, SEEK_SET) == 0);
	CHECK(read(fd, buf, sizeof(buf)) == 150 && read(fd, buf, 1) == 0);
	check_io(&io, 170, 0, 3, 0);

	/* Calls that fail count, unless they never reach the file. */
	CHECK(!pipe2(ends, O_NONBLOCK));
	CHECK(read(ends[0], buf, 1) == -1 && errno == EAGAIN);
	CHECK(read(ends[1], buf, 1) == -1 && errno == EBADF);
	CHECK(write(full, buf, 1) == -1 && errno == ENOSPC);
	check_io(&io, 0, 0, 1, 1);
}

/* sendfile() counts as a read and a write once it has found its files and positions. */
TEST(sendfile)
{
	int fd = create(), ends[2], directory = open("/", O_RDONLY);
	char buf[256] = "";
	off_t at = 10, end = 100, negative = -1;
	struct io io = { 0 };

	CHECK(write(fd, buf, 100) == 100 && !pipe2(ends, O_NONBLOCK));
	read_io(&io);
	CHECK(sendfile(ends[1], fd, &at, 60) == 60);
	check_io(&io, 60, 60, 1, 1);
	CHECK(read(ends[0], buf, sizeof(buf)) == 60);
	check_io(&io, 60, 0, 1, 0);
	CHECK(sendfile(ends[1], fd, &end, 60) == 0 && sendfile(ends[1], fd, &at, 0) == 0);
	check_io(&io, 0, 0, 2, 2);
	CHECK(sendfile(fd, directory, NULL, 1) == -1 && errno == EINVAL);
	check_io(&io, 0, 0, 1, 1);
	CHECK_ERROR(EFAULT, SYS_sendfile, ends[1], fd, &unwritable, 9);
	check_io(&io, 9, 9, 1, 1);

	CHECK(sendfile(ends[0], fd, &at, 1) == -1 && errno == EBADF);
	CHECK(sendfile(fd, ends[1], NULL, 1) == -1 && errno == EBADF);
	CHECK(sendfile(ends[1], fd, &negative, 1) == -1 && errno == EINVAL);
	CHECK_ERROR(EFAULT, SYS_sendfile, ends[1], fd, 8, 1);
	check_io(&io, 0, 0, 0, 0);
}

/* copy_file_range() counts only if it finds something to copy. */
TEST(copies)
{
	int fd = create(), ends[2];
	int appends = open(check_file_name(), O_WRONLY | O_APPEND), directory = open("/", O_RDONLY);
	char buf[256] = "";
	long at = 50, end = 100;
	struct io io = { 0 };

	CHECK(write(fd, buf, 100) == 100 && !pipe(ends));
	read_io(&io);
	CHECK(syscall(SYS_copy_file_range, fd, &at, fd, &end, 20, 0) == 20);
	check_io(&io, 20, 20, 1, 1);
	CHECK_ERROR(EFAULT, SYS_copy_file_range, fd, &unwritable, fd, &end, 9, 0);
	check_io(&io, 9, 9, 1, 1);

	CHECK(syscall(SYS_copy_file_range, fd, &at, fd, &end, 0, 0) == 0);
	at = 1000;
	CHECK(syscall(SYS_copy_file_range, fd, &at, fd, &end, 20, 0) == 0);
	at = 0;
	CHECK_ERROR(EBADF, SYS_copy_file_range, fd, &at, -1, NULL, 1, 0);
	CHECK_ERROR(EBADF, SYS_copy_file_range, fd, &at, appends, NULL, 1, 0);
	CHECK_ERROR(EISDIR, SYS_copy_file_range, directory, &at, fd, NULL, 1, 0);
	CHECK_ERROR(EINVAL, SYS_copy_file_range, fd, &at, ends[1], NULL, 1, 0);
	CHECK_ERROR(EINVAL, SYS_copy_file_range, fd, &at, fd, &end, 1, 1 /* flags */);
	CHECK_ERROR(EINVAL, SYS_copy_file_range, fd, &at, fd, &at, 1, 0);
	CHECK_ERROR(EFAULT, SYS_copy_file_range, fd, 8, fd, &end, 1, 0);
	check_io(&io, 0, 0, 0, 0);
}

static void *write_seven(void *fd)
{
	CHECK(write(*(int *)fd, "1234567", 7) == 7);
	return NULL;
}

/* Those of a thread that is gone count, but not for the first thread alone. */
TEST(threads)
{
	int fd = create();
	struct io io = { 0 }, first = { .tid = getpid() };
	pthread_t thread;

	read_io(&io);
	CHECK(!pthread_create(&thread, NULL, write_seven, &fd) && !pthread_join(thread, NULL));
	check_io(&io, 0, 7, 0, 1);
	read_io(&first);
	CHECK(!pthread_create(&thread, NULL, write_seven, &fd) && !pthread_join(thread, NULL));
	check_io(&first, 0, 0, 0, 0);
}

/* A thread has counts of its own, also while it runs. */
static void *check_own(void *fd)
{
	struct io own = { .tid = syscall(SYS_gettid) }, first = { .tid = getpid() };

	read_io(&first);
	read_io(&own);
	CHECK(own.bytes_written == 0 && own.nr_writes == 0);
	write_seven(fd);
	check_io(&own, 0, 7, 0, 1);
	check_io(&first, 0, 0, 0, 0);
	return NULL;
}

TEST(own)
{
	int fd = create();
	pthread_t thread;

	CHECK(write(fd, "12345", 5) == 5);
	CHECK(!pthread_create(&thread, NULL, check_own, &fd) && !pthread_join(thread, NULL));
}

static pid_t write_in_child(int fd)
{
	pid_t child = fork();

	if (!child)
		_exit(write(fd, "12345", 5) != 5);
	return child;
}

/* Those of a child count as soon as it was waited for, but not for a thread. */
TEST(children)
{
	int fd = create();
	struct io io = { 0 }, first = { .tid = getpid() };
	pid_t child;

	read_io(&io);
	child = write_in_child(fd);
	check_io(&io, 0, 0, 0, 0);
	CHECK(child_status(child) == 0);
	check_io(&io, 0, 5, 0, 1);
	read_io(&first);
	CHECK(child_status(write_in_child(fd)) == 0);
	check_io(&first, 0, 0, 0, 0);
}

int main(int argc, char **argv)
{
	return run_tests("iocounts", argc, argv);
}
