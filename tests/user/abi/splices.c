// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls that move bytes inside the kernel, between pipes, files, sockets and devices: splice, tee,
 * vmsplice, sendfile and copy_file_range. typed.c has those from and to a terminal.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "run.h"

#define CAPACITY 65536
#define LONG	 10000 /* bytes: more than a page */

/* Aligned, as Linux needs a place in the pipe for each page of vmsplice(). */
static char block[4 * CAPACITY] __attribute__((aligned(4096))), other[4 * CAPACITY];

static void make_pipe(int *ends, int flags)
{
	CHECK(!pipe2(ends, flags));
}

static void make_sockets(int *ends, int type)
{
	CHECK(!socketpair(AF_UNIX, type, 0, ends));
}

static void close_both(int *ends)
{
	CHECK(!close(ends[0]) && !close(ends[1]));
}

/* Returns an empty file, or one with n bytes of the block, at its start. */
static int make_file(size_t n)
{
	int fd = open(check_file_name(), O_CREAT | O_RDWR | O_TRUNC, 0600);

	CHECK(fd >= 0 && !unlink(check_file_name()));
	CHECK(write(fd, block, n) == (ssize_t)n && lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

static int available(int fd)
{
	int bytes = -1;

	CHECK(!ioctl(fd, FIONREAD, &bytes));
	return bytes;
}

static void set_nonblock(int fd, int on)
{
	CHECK(!fcntl(fd, F_SETFL, on ? O_NONBLOCK : 0));
}

/* Writes until there is no room. */
static void fill(int fd)
{
	set_nonblock(fd, 1);
	for (size_t n = CAPACITY; n; n /= 2) {
		while (write(fd, block, n) > 0)
			;
	}
	CHECK(errno == EAGAIN);
	set_nonblock(fd, 0);
}

static volatile sig_atomic_t nr_signals;

static void count_signal(int sig)
{
	nr_signals++;
}

/* Runs a call, which must block until a signal, without SA_RESTART, interrupts it. */
#define BLOCKS(call)                                                                         \
	do {                                                                                 \
		sigaction(SIGALRM, &(struct sigaction){ .sa_handler = count_signal }, NULL); \
		ualarm(20000, 20000);                                                        \
		CHECK((call) == -1 && errno == EINTR);                                       \
		ualarm(0, 0);                                                                \
	} while (0)

/* The call fails, and sends a SIGPIPE. */
#define BREAKS(call)                                   \
	do {                                           \
		signal(SIGPIPE, count_signal);         \
		nr_signals = 0;                        \
		CHECK((call) == -1 && errno == EPIPE); \
		CHECK(nr_signals == 1);                \
	} while (0)

/* Bytes go through a pipe from file to file. Those that a file does not accept stay in the pipe. */
TEST(files)
{
	int in = open(check_file_name(), O_CREAT | O_RDWR | O_TRUNC, 0600), ends[2], second[2];
	int out = open("/tmp/splice", O_CREAT | O_RDWR | O_TRUNC, 0600), appends, null;
	loff_t at = 100;

	CHECK(write(in, block, 20000) == 20000 && lseek(in, 10, SEEK_SET) == 10);
	make_pipe(ends, O_NONBLOCK);
	CHECK(splice(ends[0], NULL, out, NULL, 10, 0) == -1 && errno == EAGAIN);
	CHECK(splice(ends[0], NULL, out, NULL, 0, 0) == 0);
	CHECK(splice(in, NULL, ends[1], NULL, 1000, 0) == 1000 && lseek(in, 0, SEEK_CUR) == 1010);
	CHECK(splice(in, &at, ends[1], NULL, 2000, SPLICE_F_MOVE) == 2000 && at == 2100);
	CHECK(lseek(in, 0, SEEK_CUR) == 1010);
	at = 5;
	CHECK(splice(ends[0], NULL, out, &at, 1500, 0) == 1500 && at == 1505);
	CHECK(splice(ends[0], NULL, out, &at, 9000, 0) == 1500 && at == 3005);
	CHECK(pread(out, other, CAPACITY, 5) == 3000);
	CHECK(!memcmp(other, block + 10, 1000) && !memcmp(other + 1000, block + 100, 2000));
	at = 20000;
	CHECK(splice(in, &at, ends[1], NULL, 1, 0) == 0);

	/* From pipe to pipe, and the same bytes again. */
	make_pipe(second, O_NONBLOCK);
	CHECK(tee(ends[0], second[1], 0, 0) == 0);
	CHECK(write(ends[1], block, 300) == 300);
	CHECK(tee(ends[0], second[1], 200, 0) == 200 && available(ends[0]) == 300);
	CHECK(splice(ends[0], NULL, second[1], NULL, 50, 0) == 50 && available(ends[0]) == 250);
	CHECK(read(second[0], other, CAPACITY) == 250);
	CHECK(!memcmp(other, block, 200) && !memcmp(other + 200, block, 50));
	CHECK(write(second[1], block, CAPACITY) == CAPACITY);
	CHECK(tee(ends[0], second[1], 1, 0) == -1 && errno == EAGAIN);
	CHECK(splice(ends[0], NULL, second[1], NULL, 1, 0) == -1 && errno == EAGAIN);
	CHECK(splice(in, NULL, second[1], NULL, 1, 0) == -1 && errno == EAGAIN);
	CHECK(lseek(in, 0, SEEK_CUR) == 1010 && available(ends[0]) == 250);

	/* To a device without a position. */
	null = open("/dev/null", O_WRONLY);
	at = 5;
	CHECK(splice(ends[0], NULL, null, NULL, 50, 0) == 50);
	CHECK(splice(ends[0], NULL, null, &at, 50, 0) == 50 && at == 5);
	CHECK(write(ends[1], block, 100) == 100 && available(ends[0]) == 250);
	CHECK(!close(null));

	/* Calls that fail. */
	appends = open("/tmp/splice", O_WRONLY | O_APPEND);
	CHECK(splice(in, NULL, out, NULL, 1, 0) == -1 && errno == EINVAL);
	CHECK(splice(ends[0], NULL, appends, NULL, 1, 0) == -1 && errno == EINVAL);
	CHECK(splice(ends[0], &at, out, NULL, 1, 0) == -1 && errno == ESPIPE);
	CHECK(splice(in, NULL, ends[1], &at, 1, 0) == -1 && errno == ESPIPE);
	CHECK(splice(ends[1], NULL, out, NULL, 1, 0) == -1 && errno == EBADF);
	CHECK(splice(in, NULL, ends[0], NULL, 1, 0) == -1 && errno == EBADF);
	CHECK(splice(in, NULL, 99, NULL, 1, 0) == -1 && errno == EBADF);
	CHECK(splice(in, NULL, ends[1], NULL, 1, 16) == -1 && errno == EINVAL);
	CHECK(splice(ends[0], NULL, ends[1], NULL, 1, 0) == -1 && errno == EINVAL);
	CHECK(tee(ends[0], ends[1], 1, 0) == -1 && errno == EINVAL);
	CHECK(tee(in, ends[1], 1, 0) == -1 && errno == EINVAL);
	CHECK(splice(in, (loff_t *)8, ends[1], NULL, 1, 0) == -1 && errno == EFAULT);
	CHECK(splice(ends[0], NULL, out, NULL, 0, 0) == 0);

	/* Without an end. */
	CHECK(!close(ends[1]) && splice(ends[0], NULL, out, NULL, CAPACITY, 0) == 250);
	CHECK(read(second[0], other, CAPACITY) == CAPACITY);
	CHECK(splice(ends[0], NULL, out, NULL, 1, 0) == 0 && tee(ends[0], second[1], 1, 0) == 0);
	CHECK(!close(second[0]));
	signal(SIGPIPE, SIG_IGN);
	CHECK(splice(in, NULL, second[1], NULL, 1, 0) == -1 && errno == EPIPE);
	close(ends[0]);
	close(second[1]);
	close(appends);
	close(out);
	close(in);
}

/* Calls move as much as there is, or as there is room for, and no more. */
TEST(amounts)
{
	int in = make_file(3 * CAPACITY), ends[2], second[2];
	loff_t at = 3 * CAPACITY - 5000;

	make_pipe(ends, 0);
	make_pipe(second, 0);
	CHECK(splice(in, NULL, ends[1], NULL, 3 * CAPACITY, 0) == CAPACITY);
	CHECK(lseek(in, 0, SEEK_CUR) == CAPACITY && available(ends[0]) == CAPACITY);
	FAILS(splice(in, NULL, ends[1], NULL, 1, SPLICE_F_NONBLOCK), EAGAIN);
	BLOCKS(splice(in, NULL, ends[1], NULL, 1, 0));
	BLOCKS(sendfile(ends[1], in, NULL, 1));
	set_nonblock(ends[1], 1);
	FAILS(splice(in, NULL, ends[1], NULL, 1, 0), EAGAIN);
	FAILS(sendfile(ends[1], in, NULL, 1), EAGAIN);
	CHECK(lseek(in, 0, SEEK_CUR) == CAPACITY);
	CHECK(tee(ends[0], second[1], INT_MAX, 0) == CAPACITY);
	CHECK(read(second[0], other, CAPACITY) == CAPACITY && !memcmp(block, other, CAPACITY));
	CHECK(splice(ends[0], NULL, second[1], NULL, SIZE_MAX, 0) == CAPACITY);
	CHECK(read(second[0], other, CAPACITY) == CAPACITY && !memcmp(block, other, CAPACITY));
	BLOCKS(splice(ends[0], NULL, second[1], NULL, 1, 0));
	BLOCKS(tee(ends[0], second[1], 1, 0));

	CHECK(sendfile(ends[1], in, NULL, INT_MAX) == CAPACITY);
	CHECK(lseek(in, 0, SEEK_CUR) == 2 * CAPACITY);
	CHECK(read(ends[0], other, CAPACITY) == CAPACITY);
	CHECK(!memcmp(block + CAPACITY, other, CAPACITY));
	CHECK(sendfile(ends[1], in, &at, INT_MAX) == 5000 && at == 3 * CAPACITY);
	CHECK(read(ends[0], other, CAPACITY) == 5000);
	close_both(ends);
	close_both(second);
	close(in);
}

TEST(sockets)
{
	int ends[2], pair[2], in = make_file(1000), fd;
	loff_t at = 0;

	make_pipe(ends, 0);
	make_sockets(pair, SOCK_STREAM);
	CHECK(write(ends[1], block, 60000) == 60000);
	CHECK(splice(ends[0], NULL, pair[0], NULL, INT_MAX, 0) == 60000 && !available(ends[0]));
	for (ssize_t n, total = 0; total < 60000; total += n) {
		n = splice(pair[1], NULL, ends[1], NULL, 60000, 0);
		if (!CHECK(n > 0 && read(ends[0], other + total, n) == n))
			break;
	}
	CHECK(!memcmp(block, other, 60000));
	FAILS(splice(pair[1], NULL, ends[1], NULL, 1, SPLICE_F_NONBLOCK), EAGAIN);
	BLOCKS(splice(pair[1], NULL, ends[1], NULL, 1, 0));
	BLOCKS(splice(ends[0], NULL, pair[0], NULL, 1, 0));
	set_nonblock(pair[1], 1);
	FAILS(splice(pair[1], NULL, ends[1], NULL, 1, 0), EAGAIN);
	FAILS(splice(pair[1], &at, ends[1], NULL, 1, 0), EINVAL);
	FAILS(splice(ends[0], NULL, pair[0], &at, 1, 0), EINVAL);
	FAILS(sendfile(ends[1], pair[1], &at, 1), ESPIPE);
	CHECK(write(pair[0], "abc", 3) == 3 && sendfile(ends[1], pair[1], NULL, 9) == 3);
	FAILS(sendfile(in, pair[1], NULL, 1), EINVAL);
	FAILS(splice(pair[1], NULL, pair[0], NULL, 1, 0), EINVAL);

	/* Bytes that a socket does not accept stay where they are. */
	fill(pair[0]);
	BLOCKS(splice(ends[0], NULL, pair[0], NULL, 3, SPLICE_F_NONBLOCK));
	BLOCKS(sendfile(pair[0], in, NULL, 1));
	set_nonblock(pair[0], 1);
	FAILS(splice(ends[0], NULL, pair[0], NULL, 3, 0), EAGAIN);
	FAILS(sendfile(pair[0], in, NULL, 1), EAGAIN);
	CHECK(!fcntl(pair[0], F_SETFL, O_APPEND));
	FAILS(splice(ends[0], NULL, pair[0], NULL, 3, 0), EINVAL);
	FAILS(sendfile(pair[0], in, NULL, 1), EINVAL);
	set_nonblock(pair[0], 0);
	CHECK(!close(pair[1]));
	BREAKS(splice(ends[0], NULL, pair[0], NULL, 3, 0));
	BREAKS(sendfile(pair[0], in, NULL, 1));
	CHECK(lseek(in, 0, SEEK_CUR) == 0);
	CHECK(available(ends[0]) == 3 && read(ends[0], other, 9) == 3 && !memcmp(other, "abc", 3));
	CHECK(!close(pair[0]));

	/* The end of a stream. */
	make_sockets(pair, SOCK_STREAM);
	CHECK(write(pair[1], "ab", 2) == 2 && !close(pair[1]));
	CHECK(splice(pair[0], NULL, ends[1], NULL, 9, 0) == 2);
	CHECK(splice(pair[0], NULL, ends[1], NULL, 9, 0) == 0 && !close(pair[0]));
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	FAILS(splice(fd, NULL, ends[1], NULL, 9, 0), EINVAL);
	FAILS(splice(ends[0], NULL, fd, NULL, 9, 0), ENOTCONN);
	CHECK(!close(fd) && !close(ends[0]));
	make_sockets(pair, SOCK_STREAM);
	CHECK(write(pair[1], "ab", 2) == 2);
	BREAKS(splice(pair[0], NULL, ends[1], NULL, 9, 0));
	CHECK(available(pair[0]) == 2);
	close_both(pair);
	close(ends[1]);
	close(in);
}

TEST(messages)
{
	int ends[2], pair[2];

	make_pipe(ends, 0);
	make_sockets(pair, SOCK_DGRAM);
	CHECK(write(ends[1], "abc", 3) == 3);
	CHECK(splice(ends[0], NULL, pair[0], NULL, 100, 0) == 3);
	CHECK(recv(pair[1], other, 100, MSG_DONTWAIT) == 3 && !memcmp(other, "abc", 3));
	CHECK(send(pair[0], block, 9000, 0) == 9000 && send(pair[0], "xyz", 3, 0) == 3);
	CHECK(splice(pair[1], NULL, ends[1], NULL, 60000, 0) == 9000);
	CHECK(splice(pair[1], NULL, ends[1], NULL, 2, 0) == 2); /* the rest is lost */
	CHECK(read(ends[0], other, 20000) == 9002 && !memcmp(other, block, 9000));
	CHECK(send(pair[0], "", 0, 0) == 0 && splice(pair[1], NULL, ends[1], NULL, 9, 0) == 0);
	set_nonblock(pair[1], 1);
	FAILS(splice(pair[1], NULL, ends[1], NULL, 9, 0), EAGAIN);
	CHECK(!close(pair[1]) && write(ends[1], "abc", 3) == 3);
	FAILS(splice(ends[0], NULL, pair[0], NULL, 3, 0), ECONNREFUSED);
	FAILS(splice(ends[0], NULL, pair[0], NULL, 3, 0), ENOTCONN);
	CHECK(available(ends[0]) == 3);
	close(pair[0]);
	close_both(ends);
}

/* Devices have content without end, and no position. Files of a process are refused. */
TEST(devices)
{
	int zero = open("/dev/zero", O_RDWR), full = open("/dev/full", O_RDWR), ends[2];
	int random = open("/dev/urandom", O_RDWR), file = make_file(0);
	int cpus = open("/proc/cpuinfo", O_RDONLY), status = open("/proc/self/status", O_RDONLY);
	loff_t at = 7;

	make_pipe(ends, 0);
	memset(other, 1, sizeof(other));
	CHECK(sendfile(file, zero, NULL, 100000) == 100000 && lseek(file, 0, SEEK_CUR) == 100000);
	CHECK(pread(file, other, sizeof(other), 0) == 100000);
	CHECK(!other[0] && !memcmp(other, other + 1, 99999) && other[100000] == 1);
	CHECK(sendfile(zero, zero, NULL, 10000) == 10000 && sendfile(zero, file, NULL, 1) == 0);
	CHECK(sendfile(ends[1], full, NULL, 1000000) == CAPACITY);
	FAILS(splice(zero, NULL, ends[1], NULL, 1, SPLICE_F_NONBLOCK), EAGAIN);
	CHECK(splice(ends[0], NULL, zero, &at, 1000000, 0) == CAPACITY && at == 7);
	CHECK(splice(random, &at, ends[1], NULL, 10, 0) == 10 && at == 7);
	CHECK(splice(ends[0], &at, random, NULL, 1, 0) == -1 && errno == ESPIPE);
	FAILS(splice(ends[0], NULL, full, NULL, 1, 0), EINVAL);
	CHECK(sendfile(file, cpus, NULL, 9) == 9 && lseek(cpus, 0, SEEK_CUR) == 9);
	FAILS(sendfile(file, status, NULL, 1), EINVAL);
	CHECK(!close(cpus) && !close(status));
	FAILS(sendfile(full, zero, NULL, 1), EINVAL);
	CHECK(splice(ends[0], NULL, random, NULL, 100, 0) == 10);
	CHECK(!close(ends[0]));
	BREAKS(sendfile(ends[1], zero, NULL, 1));
	close(ends[1]);
	close(zero);
	close(full);
	close(random);
	close(file);
}

/* O_NONBLOCK of one pipe is for both files of a call. */
TEST(nonblock)
{
	int ends[2], second[2], pair[2];

	make_pipe(ends, 0);
	make_pipe(second, 0);
	make_sockets(pair, SOCK_STREAM);
	set_nonblock(second[1], 1);
	FAILS(splice(ends[0], NULL, second[1], NULL, 1, 0), EAGAIN);
	FAILS(tee(ends[0], second[1], 1, 0), EAGAIN);
	FAILS(splice(pair[0], NULL, second[1], NULL, 1, 0), EAGAIN);
	FAILS(sendfile(second[1], pair[0], NULL, 1), EAGAIN);
	set_nonblock(ends[0], 1);
	fill(second[1]);
	fill(pair[0]);
	CHECK(write(ends[1], "abc", 3) == 3);
	FAILS(splice(ends[0], NULL, second[1], NULL, 1, 0), EAGAIN);
	FAILS(tee(ends[0], second[1], 1, 0), EAGAIN);
	BLOCKS(splice(ends[0], NULL, pair[0], NULL, 1, 0)); /* but a socket has its own */
	close_both(ends);
	close_both(second);
	close_both(pair);
}

/* Offsets and lengths that are not in any file. */
TEST(ranges)
{
	int in = make_file(200), out = make_file(0), ends[2];
	loff_t at = -1, end = LLONG_MAX;

	make_pipe(ends, 0);
	CHECK(write(ends[1], "abc", 3) == 3);
	CHECK(syscall(SYS_splice, 99, NULL, 98, NULL, 0, -1) == 0);
	FAILS(splice(in, &at, ends[1], NULL, 1, 0), EINVAL);
	FAILS(splice(in, &end, ends[1], NULL, 1, 0), EINVAL);
	FAILS(splice(ends[0], NULL, out, &at, 1, 0), EINVAL);
	FAILS(splice(ends[0], NULL, out, &end, 1, 0), EINVAL);
	FAILS(splice(in, NULL, ends[1], NULL, SIZE_MAX, 0), EINVAL);
	FAILS(splice(ends[0], NULL, out, NULL, SIZE_MAX, 0), EINVAL);
	FAILS(sendfile(ends[1], in, &at, 0), EINVAL);
	FAILS(sendfile(ends[1], in, &end, 1), EINVAL);
	FAILS(sendfile(out, in, NULL, SIZE_MAX), EINVAL);
	CHECK(splice(ends[0], NULL, out, NULL, LLONG_MAX, 0) == 3);
	CHECK(splice(in, NULL, ends[1], NULL, LLONG_MAX, 0) == 200);
	close_both(ends);
	close(in);
	close(out);
}

TEST(copy_file_range)
{
	int in = make_file(200), out = make_file(0);
	struct {
		loff_t in, out;
		size_t n;
		ssize_t result;
	} cases[] = {
		{ -1, 0, 10, -EOVERFLOW },	{ 0, -1, 10, -EOVERFLOW }, { -20, 0, 10, -EINVAL },
		{ 0, -20, 10, -EINVAL },	{ -1, 0, 0, -EINVAL },	   { LLONG_MAX, 0, 10, 0 },
		{ 5, 0, SIZE_MAX, -EOVERFLOW }, { 1000, 0, 10, 0 },	   { 150, 0, INT_MAX, 50 },
		{ 0, 0, SIZE_MAX, 200 },
	};
	loff_t from = 0, to = 200;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		loff_t a = cases[i].in, b = cases[i].out;
		ssize_t done = copy_file_range(in, &a, out, &b, cases[i].n, 0);

		if (!CHECK((done < 0 ? -errno : done) == cases[i].result))
			printf("case %zu: %zd\n", i, done);
		CHECK(a == cases[i].in + (done > 0 ? done : 0));
	}
	/* Only what is in the file can overlap. */
	CHECK(copy_file_range(in, &from, in, &to, 100000, 0) == 200 && to == 400);
	from = 300;
	CHECK(copy_file_range(in, &from, in, &to, 100000, 0) == 100 && to == 500);
	from = 0;
	to = 499;
	FAILS(copy_file_range(in, &from, in, &to, 100000, 0), EINVAL);
	close(in);
	close(out);
}

/* A splice waits for room. A reader of its pipe gets the bytes after the splice was interrupted. */
TEST(claims)
{
	int ends[2], pair[2];
	pid_t splicer, reader;

	make_pipe(ends, 0);
	make_sockets(pair, SOCK_STREAM);
	CHECK(write(ends[1], "a", 1) == 1);
	fill(pair[0]);
	splicer = fork_child();
	if (!splicer)
		child_exit(splice(ends[0], NULL, pair[0], NULL, 1, 0) == 1 ? 0 : 2);
	CHECK(WAIT_UNTIL(is_asleep(splicer, splicer)));
	CHECK(!close(ends[1]));
	reader = fork_child();
	if (!reader)
		child_exit(read(ends[0], other, 1) == 1 ? other[0] : 2);
	sleep_ms(20);
	CHECK(waitpid(reader, NULL, WNOHANG) == 0);
	CHECK(!kill(splicer, SIGKILL) && child_status(splicer) == SIGKILL);
	CHECK(child_status(reader) == EXITED('a') && read(ends[0], other, 1) == 0);
	CHECK(!close(ends[0]));

	/* Once there is room, the splice goes on. */
	make_pipe(ends, 0);
	splicer = fork_child();
	if (!splicer)
		child_exit(splice(ends[0], NULL, pair[0], NULL, 5, 0) == 5 ? 0 : 2);
	CHECK(WAIT_UNTIL(is_asleep(splicer, splicer)));
	CHECK(write(ends[1], "abcde", 5) == 5);
	while (recv(pair[1], other, sizeof(other), MSG_DONTWAIT) > 0)
		;
	CHECK(child_status(splicer) == EXITED(0));
	close_both(ends);
	close_both(pair);
}

/* From and to user memory. O_NONBLOCK does not count. */
TEST(vmsplice)
{
	struct iovec two[] = { { block, 100 }, { block + 200, 50 } }, none = { block, 0 };
	struct iovec large = { block, sizeof(block) }, bad[] = { { other, 100 }, { (void *)8, 9 } };
	struct iovec in = { other, sizeof(other) };
	int ends[2], file = make_file(0);

	make_pipe(ends, 0);
	CHECK(vmsplice(ends[1], two, 2, SPLICE_F_GIFT) == 150 && available(ends[0]) == 150);
	CHECK(vmsplice(ends[0], &in, 1, 0) == 150 && !memcmp(other, block, 100));
	CHECK(!memcmp(other + 100, block + 200, 50));
	CHECK(vmsplice(ends[1], &none, 1, 0) == 0 && vmsplice(ends[0], &none, 1, 0) == 0);
	FAILS(vmsplice(ends[0], &in, 1, SPLICE_F_NONBLOCK), EAGAIN);
	set_nonblock(ends[0], 1);
	BLOCKS(vmsplice(ends[0], &in, 1, 0));
	CHECK(vmsplice(ends[1], &large, 1, 0) == CAPACITY);
	FAILS(vmsplice(ends[1], two, 2, SPLICE_F_NONBLOCK), EAGAIN);
	set_nonblock(ends[1], 1);
	BLOCKS(vmsplice(ends[1], two, 2, 0));
	FAILS(vmsplice(ends[0], bad, 2, 0), EFAULT);
	CHECK(available(ends[0]) == CAPACITY && vmsplice(ends[0], &in, 1, 0) == CAPACITY);
	CHECK(!memcmp(other, block, CAPACITY));
	CHECK(vmsplice(ends[1], bad, 2, 0) == 100 && read(ends[0], other, 200) == 100);
	FAILS(vmsplice(ends[1], bad + 1, 1, 0), EFAULT);
	FAILS(vmsplice(ends[1], two, 2, 16), EINVAL);
	FAILS(vmsplice(99, two, 2, 0), EBADF);
	FAILS(vmsplice(file, two, 2, 0), EBADF);
	CHECK(vmsplice(file, two, 0, 0) == 0);
	CHECK_ERROR(EFAULT, SYS_vmsplice, ends[1], 8, 1, 0);
	CHECK_ERROR(EINVAL, SYS_vmsplice, ends[1], two, 1025, 0);
	CHECK(!close(ends[0]));
	BREAKS(vmsplice(ends[1], two, 2, 0));
	close(ends[1]);
	close(file);
}

#define TOTAL 1000000

/* The bytes that a process has moved out of a pipe, and their sum. */
static struct {
	long nr, sum;
} * moved;

static void count_bytes(const char *bytes, ssize_t n)
{
	__atomic_fetch_add(&moved->nr, n, __ATOMIC_RELAXED);
	for (ssize_t i = 0; i < n; i++)
		__atomic_fetch_add(&moved->sum, (unsigned char)bytes[i], __ATOMIC_RELAXED);
}

/* Reads the bytes, through another pipe or a socket if there is one, interrupted by signals. */
static void take_all(int fd, int *through)
{
	ssize_t n, got;

	sigaction(SIGALRM, &(struct sigaction){ .sa_handler = count_signal }, NULL);
	ualarm(1000, 1000);
	for (size_t i = 0;; i++) {
		size_t size = i * 7919 % 9000 + 1;

		n = through ? splice(fd, NULL, through[1], NULL, size, 0) : read(fd, other, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		for (ssize_t left = n; through && left; left -= got > 0 ? got : 0) {
			got = read(through[0], other + n - left, left);
			if (!CHECK(got > 0 || errno == EINTR))
				break;
		}
		count_bytes(other, n);
	}
	CHECK(n == 0);
	child_exit(0);
}

/* Each byte is moved once, whoever else reads, tees and is interrupted. */
TEST(races)
{
	int ends[2], copies[2], through[2];
	pid_t takers[4], copier;
	long sum = 0;

	moved = mmap(NULL, sizeof(*moved), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	make_pipe(ends, 0);
	for (int i = 0; i < 4; i++) {
		takers[i] = fork_child();
		if (takers[i])
			continue;
		close(ends[1]);
		if (i < 2)
			make_sockets(through, SOCK_STREAM);
		else
			make_pipe(through, 0);
		take_all(ends[0], i < 3 ? through : NULL);
	}
	copier = fork_child();
	if (!copier) {
		close(ends[1]);
		make_pipe(copies, 0);
		while (tee(ends[0], copies[1], 3000, 0) > 0)
			CHECK(read(copies[0], other, CAPACITY) > 0);
		child_exit(0);
	}
	for (ssize_t n, total = 0; total < TOTAL; total += n) {
		n = write(ends[1], block, total % 7000 + 1 < TOTAL - total ? total % 7000 + 1 : 1);
		if (!CHECK(n > 0))
			break;
		for (ssize_t i = 0; i < n; i++)
			sum += (unsigned char)block[i];
	}
	close_both(ends);
	for (int i = 0; i < 4; i++)
		CHECK(child_status(takers[i]) == EXITED(0));
	CHECK(child_status(copier) == EXITED(0));
	CHECK(moved->nr == TOTAL && moved->sum == sum);
	munmap(moved, sizeof(*moved));
}

/* One call sends one message to a socket, also if it is longer than a page. */
TEST(long_messages)
{
	static const int types[] = { SOCK_DGRAM, SOCK_SEQPACKET };
	int in = make_file(LONG), pipes[2], ends[2];

	make_pipe(pipes, 0);
	for (int i = 0; i < 2; i++) {
		make_sockets(ends, types[i]);
		CHECK(pwrite(in, block, LONG, 0) == LONG);
		CHECK(write(pipes[1], block, LONG) == LONG);
		CHECK(splice(pipes[0], NULL, ends[0], NULL, LONG, 0) == LONG);
		CHECK(recv(ends[1], other, sizeof(other), 0) == LONG);
		CHECK(!memcmp(other, block, LONG));
		CHECK(sendfile(ends[0], in, &(off_t){ 0 }, LONG) == LONG);
		CHECK(recv(ends[1], other, sizeof(other), 0) == LONG);
		CHECK(!memcmp(other, block, LONG));
		close_both(ends);
	}
	close_both(pipes);
	close(in);
}

/* A splice that may not wait does not, though another writer takes the room while it reads. */
TEST(second_writer)
{
	int in = make_file(CAPACITY), ends[2];
	pid_t writer;

	make_pipe(ends, O_NONBLOCK);
	writer = fork();
	if (!writer) {
		signal(SIGPIPE, SIG_DFL);
		close(ends[0]);
		for (;;)
			write(ends[1], "x", 1);
	}
	for (int i = 0; i < 2000; i++) {
		ssize_t n = splice(in, &(loff_t){ 0 }, ends[1], NULL, CAPACITY, SPLICE_F_NONBLOCK);

		if (!CHECK(n > 0 || (n == -1 && errno == EAGAIN)))
			break;
		while (read(ends[0], other, sizeof(other)) > 0)
			continue;
	}
	close_both(ends);
	CHECK(child_status(writer) == SIGPIPE);
	close(in);
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = i * 7 + i / 256;
	return run_tests("splices", argc, argv);
}
