// SPDX-License-Identifier: BSD-2-Clause
/* /proc/<pid>/io: the calls that read and write, and the bytes that they move. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#include "run.h"

static int create(void)
{
	return open(check_file_name(), O_CREAT | O_RDWR | O_TRUNC, 0644);
}

struct io {
	long bytes_read, bytes_written, nr_reads, nr_writes;
	long own_bytes; /* that the call has read which has read these counts: not yet in them */
};

static void read_io(struct io *io)
{
	char text[512] = "";
	int fd = open("/proc/self/io", O_RDONLY);

	io->own_bytes = read(fd, text, sizeof(text) - 1);
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
	CHECK(io->nr_reads - old.nr_reads == reads + 1);
	CHECK(io->nr_writes - old.nr_writes == writes);
}

static void test_calls(void)
{
	struct iovec vectors[2] = { { "one", 3 }, { "four", 4 } };
	int fd = create(), full = open("/dev/full", O_WRONLY), ends[2];
	char buf[256] = "";
	struct io io;

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
	close(ends[0]);
	close(ends[1]);
	close(full);
	close(fd);
}

static void test_copies(void)
{
	int fd = create(), ends[2];
	char buf[256] = "";
	off_t at = 10;
	struct io io;

	CHECK(write(fd, buf, 100) == 100 && !pipe(ends));
	read_io(&io);
	CHECK(sendfile(ends[1], fd, &at, 60) == 60);
	check_io(&io, 60, 60, 1, 1);
	CHECK(read(ends[0], buf, sizeof(buf)) == 60);
	check_io(&io, 60, 0, 1, 0);
	close(ends[0]);
	close(ends[1]);
	close(fd);
}

static void *write_seven(void *fd)
{
	CHECK(write(*(int *)fd, "1234567", 7) == 7);
	return NULL;
}

/* Those of a thread that is gone count. */
static void test_threads(void)
{
	int fd = create();
	struct io io;
	pthread_t thread;

	read_io(&io);
	CHECK(!pthread_create(&thread, NULL, write_seven, &fd) && !pthread_join(thread, NULL));
	check_io(&io, 0, 7, 0, 1);
	close(fd);
}

/* Those of a child count as soon as it was waited for. */
static void test_children(void)
{
	int fd = create();
	struct io io;
	pid_t child;

	read_io(&io);
	child = fork();
	if (!child)
		_exit(write(fd, "12345", 5) != 5);
	check_io(&io, 0, 0, 0, 0);
	CHECK(child_status(child) == 0);
	check_io(&io, 0, 5, 0, 1);
	close(fd);
}

static const struct test tests[] = {
	TEST(calls), TEST(copies), TEST(threads), TEST(children), { 0 },
};

int main(int argc, char **argv)
{
	return run_tests("iocounts", tests, argc, argv);
}
