// SPDX-License-Identifier: BSD-2-Clause
/*
 * Pipes: their ends, capacity, waiting and atomic writes; descriptors by dup and fcntl. poll and
 * select of pipes are in polls.c, splice in splices.c.
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "run.h"

#define CAPACITY 65536
#define PAGE	 4096

static char block[2 * CAPACITY], other[2 * CAPACITY];

static void make_pipe(int *ends, int flags)
{
	ends[0] = ends[1] = -1;
	CHECK(!pipe2(ends, flags) && ends[0] >= 0 && ends[1] > ends[0]);
}

static void close_both(int *ends)
{
	CHECK(!close(ends[0]) && !close(ends[1]));
}

TEST(ends)
{
	struct iovec out[3] = { { "abc", 3 }, { "", 0 }, { "defg", 4 } };
	char a[2], b[16] = "";
	struct iovec in[2] = { { a, 2 }, { b, 16 } };
	struct stat st;
	int ends[2];

	CHECK(!pipe(ends));
	CHECK(!fstat(ends[0], &st) && S_ISFIFO(st.st_mode) && st.st_size == 0);
	CHECK(write(ends[1], "hello", 5) == 5 && read(ends[0], b, 2) == 2 && !memcmp(b, "he", 2));
	CHECK(read(ends[0], b, 16) == 3 && !memcmp(b, "llo", 3));
	CHECK(writev(ends[1], out, 3) == 7 && readv(ends[0], in, 2) == 7);
	CHECK(!memcmp(a, "ab", 2) && !memcmp(b, "cdefg", 5));
	CHECK(write(ends[1], "", 0) == 0 && read(ends[0], b, 0) == 0);
	CHECK(read(ends[1], b, 1) == -1 && errno == EBADF);
	CHECK(write(ends[0], b, 1) == -1 && errno == EBADF);
	CHECK(lseek(ends[0], 0, SEEK_SET) == -1 && errno == ESPIPE);
	CHECK(pread(ends[0], b, 1, 0) == -1 && errno == ESPIPE);
	CHECK(pwrite(ends[1], b, 1, 0) == -1 && errno == ESPIPE);
	CHECK(ftruncate(ends[1], 0) == -1 && errno == EINVAL);
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, ends[0], 0) == MAP_FAILED && errno == ENODEV);
	CHECK(write(ends[1], "x", 1) == 1 && !close(ends[1]));
	CHECK(read(ends[0], b, 16) == 1 && b[0] == 'x'); /* what is left, then the end */
	CHECK(read(ends[0], b, 16) == 0 && read(ends[0], b, 16) == 0);
	CHECK(!close(ends[0]));
	CHECK_ERROR(EFAULT, SYS_pipe, 8);
	CHECK_ERROR(EINVAL, SYS_pipe2, ends, O_APPEND);
	CHECK(!pipe(ends)); /* the failed calls left no descriptor behind */
	CHECK_ERROR(EFAULT, SYS_write, ends[1], 8, 10);
	CHECK(write(ends[1], "ab", 2) == 2);
	CHECK_ERROR(EFAULT, SYS_read, ends[0], 8, 10);
	close_both(ends);
}

TEST(flags)
{
	int ends[2];

	make_pipe(ends, O_CLOEXEC | O_NONBLOCK);
	CHECK(fcntl(ends[0], F_GETFD) == FD_CLOEXEC && fcntl(ends[1], F_GETFD) == FD_CLOEXEC);
	CHECK(fcntl(ends[0], F_GETFL) == (O_RDONLY | O_NONBLOCK));
	CHECK(fcntl(ends[1], F_GETFL) == (O_WRONLY | O_NONBLOCK));
	CHECK(!fcntl(ends[0], F_SETFD, 0) && fcntl(ends[0], F_GETFD) == 0);
	CHECK(!fcntl(ends[0], F_SETFL, 0) && fcntl(ends[0], F_GETFL) == O_RDONLY);
	/* The access mode does not change. */
	CHECK(!fcntl(ends[0], F_SETFL, O_NONBLOCK | O_WRONLY));
	CHECK(fcntl(ends[0], F_GETFL) == (O_RDONLY | O_NONBLOCK));
	CHECK(fcntl(ends[0], 9999) == -1 && errno == EINVAL);
	close_both(ends);
	make_pipe(ends, 0);
	CHECK(fcntl(ends[0], F_GETFD) == 0 && fcntl(ends[1], F_GETFL) == O_WRONLY);
	CHECK(fcntl(ends[0], F_GETPIPE_SZ) == CAPACITY && fcntl(ends[1], F_GETPIPE_SZ) == CAPACITY);
	close_both(ends);
}

static int available(int fd)
{
	int bytes = -1;

	CHECK(!ioctl(fd, FIONREAD, &bytes));
	return bytes;
}

TEST(capacity)
{
	int ends[2], nr = 0;

	make_pipe(ends, O_NONBLOCK);
	CHECK(read(ends[0], block, 1) == -1 && errno == EAGAIN);
	CHECK(available(ends[0]) == 0);
	CHECK(write(ends[1], block, CAPACITY) == CAPACITY && available(ends[0]) == CAPACITY);
	CHECK(write(ends[1], block, 1) == -1 && errno == EAGAIN);
	CHECK(read(ends[0], other, PAGE) == PAGE);
	CHECK(write(ends[1], block, CAPACITY) == PAGE); /* as much as there is room for */
	CHECK(write(ends[1], block, PAGE) == -1 && errno == EAGAIN);
	CHECK(read(ends[0], other, sizeof(other)) == CAPACITY && available(ends[0]) == 0);

	/* Small writes share pages, so just as many bytes fit. */
	while (write(ends[1], block, 64) == 64)
		nr++;
	CHECK(errno == EAGAIN && nr == CAPACITY / 64);
	CHECK(write(ends[1], block, 2 * PAGE) == -1 && errno == EAGAIN);
	CHECK(read(ends[0], other, 2 * PAGE + 1) == 2 * PAGE + 1);
	/* Writes of up to PIPE_BUF bytes are atomic. */
	CHECK(write(ends[1], block, PAGE) == PAGE && write(ends[1], block, PAGE) == PAGE);
	CHECK(write(ends[1], block, PAGE) == -1 && errno == EAGAIN);
	close_both(ends);
}

static void fill_pattern(char *bytes, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++) {
		seed = seed * 1103515245 + 12345;
		bytes[i] = seed >> 16;
	}
}

/* Whole pages enter a pipe whose next byte is in the middle of a page, empty and not empty. */
TEST(pages)
{
	char *page = aligned_alloc(PAGE, PAGE), *want = malloc(2 * PAGE);
	int ends[2];

	fill_pattern(page, PAGE, 2);
	memcpy(want, page, PAGE);
	memcpy(want + PAGE, page, PAGE);
	make_pipe(ends, O_NONBLOCK);
	CHECK(write(ends[1], block, 100) == 100 && read(ends[0], other, 100) == 100);
	CHECK(write(ends[1], page, PAGE) == PAGE && available(ends[0]) == PAGE);
	CHECK(read(ends[0], other, 1000) == 1000);
	CHECK(write(ends[1], page, PAGE) == PAGE);
	CHECK(read(ends[0], other + 1000, sizeof(other) - 1000) == 2 * PAGE - 1000);
	CHECK(!memcmp(other, want, 2 * PAGE) && available(ends[0]) == 0);

	/* As many bytes fit as before. */
	CHECK(write(ends[1], block, 5) == 5 && read(ends[0], other, 5) == 5);
	for (int i = 0; i < CAPACITY / PAGE; i++)
		CHECK(write(ends[1], page, PAGE) == PAGE);
	CHECK(write(ends[1], page, PAGE) == -1 && errno == EAGAIN);
	CHECK(read(ends[0], other, sizeof(other)) == CAPACITY);
	CHECK(!memcmp(other + CAPACITY - PAGE, page, PAGE));
	close_both(ends);
	free(page);
	free(want);
}

#define MOVED (1 << 20)

/*
 * Sends a megabyte through a pipe, in steps of odd sizes. Reader and writer both block, and all
 * bytes arrive.
 */
TEST(stream)
{
	char *sent = malloc(MOVED), *got = malloc(MOVED);
	size_t at = 0;
	int ends[2];
	pid_t pid;

	fill_pattern(sent, MOVED, 1);
	make_pipe(ends, 0);
	pid = fork_child();
	if (!pid) {
		close(ends[0]);
		for (size_t step = 1; at < MOVED; step = step * 7 % 100003) {
			size_t len = step < MOVED - at ? step : MOVED - at;

			if (!CHECK(write(ends[1], sent + at, len) ==
				   len)) /* all of it, however long */
				break;
			at += len;
		}
		child_exit(0);
	}
	close(ends[1]);
	for (size_t step = 3; at < MOVED; step = step * 11 % 70001) {
		size_t len = step < MOVED - at ? step : MOVED - at;
		ssize_t nr = read(ends[0], got + at, len);

		if (!CHECK(nr > 0 && nr <= len))
			break;
		at += nr;
	}
	CHECK(read(ends[0], other, 1) == 0);
	CHECK(child_status(pid) == 0 && !memcmp(sent, got, MOVED));
	close(ends[0]);
	free(sent);
	free(got);
}

#define NR_WRITERS 4
#define NR_RECORDS 100

/* Records of PIPE_BUF bytes and less are not mixed with those of others. */
TEST(atomic)
{
	int counts[NR_WRITERS] = { 0 }, ends[2], nr_wrong = 0;
	pid_t pids[NR_WRITERS];
	ssize_t len;

	make_pipe(ends, 0);
	for (int w = 0; w < NR_WRITERS; w++) {
		pids[w] = fork_child();
		if (pids[w])
			continue;
		for (int i = 0; i < NR_RECORDS; i++) {
			memset(block, 'a' + w, PAGE);
			CHECK(write(ends[1], block, PAGE) == PAGE);
		}
		child_exit(0);
	}
	close(ends[1]);
	for (;;) {
		for (len = 0; len < PAGE;) {
			ssize_t nr = read(ends[0], block + len, PAGE - len);

			if (nr <= 0)
				break;
			len += nr;
		}
		if (len < PAGE)
			break;
		for (int i = 1; i < PAGE; i++)
			nr_wrong += block[i] != block[0];
		if (block[0] >= 'a' && block[0] < 'a' + NR_WRITERS)
			counts[block[0] - 'a']++;
	}
	CHECK(len == 0 && nr_wrong == 0);
	for (int w = 0; w < NR_WRITERS; w++)
		CHECK(child_status(pids[w]) == 0 && counts[w] == NR_RECORDS);
	close(ends[0]);
}

static volatile int nr_handled;

static void on_signal(int sig)
{
	nr_handled++;
}

/* Without a reader, a write fails with SIGPIPE and EPIPE, even if it waits already. */
TEST(broken)
{
	struct sigaction action = { .sa_handler = on_signal };
	int ends[2], status;
	pid_t pid;

	make_pipe(ends, 0);
	CHECK(!sigaction(SIGPIPE, &action, NULL) && !close(ends[0]));
	nr_handled = 0;
	CHECK(write(ends[1], "x", 1) == -1 && errno == EPIPE && nr_handled == 1);
	action.sa_handler = SIG_IGN;
	CHECK(!sigaction(SIGPIPE, &action, NULL));
	CHECK(write(ends[1], "x", 1) == -1 && errno == EPIPE && nr_handled == 1);
	action.sa_handler = SIG_DFL;
	CHECK(!sigaction(SIGPIPE, &action, NULL) && !close(ends[1]));

	make_pipe(ends, 0);
	for (int i = 0; i < 2; i++) {
		pid = fork_child();
		if (!pid) {
			close(ends[0]);
			if (i)
				signal(SIGPIPE, SIG_IGN);
			/* The first call returns the bytes that fit, the second one fails. */
			CHECK(write(ends[1], block, sizeof(block)) == CAPACITY);
			CHECK(write(ends[1], block, 1) == -1 && errno == EPIPE);
			child_exit(3);
		}
		CHECK(WAIT_UNTIL(available(ends[0]) == CAPACITY));
		sleep_ms(20);
		CHECK(waitpid(pid, &status, WNOHANG) == 0);
		close_both(ends);
		CHECK(child_status(pid) == (i ? EXITED(3) : SIGPIPE));
		make_pipe(ends, 0);
	}
	close_both(ends);
}

static void *read_one(void *arg)
{
	char c = 0;

	return (void *)(read(*(int *)arg, &c, 1) == 1 ? (long)c : -1l);
}

/* Several waiting readers get one byte each; the end of the pipe wakes the rest. */
TEST(waiters)
{
	pthread_t threads[4];
	int ends[2], nr_bytes = 0, nr_ends = 0;
	void *got;

	make_pipe(ends, 0);
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, read_one, ends));
	sleep_ms(20);
	CHECK(write(ends[1], "AA", 2) == 2);
	CHECK(WAIT_UNTIL(available(ends[0]) == 0));
	sleep_ms(20);
	CHECK(!close(ends[1]));
	for (int i = 0; i < 4; i++) {
		CHECK(!pthread_join(threads[i], &got));
		nr_bytes += (long)got == 'A';
		nr_ends += (long)got == -1;
	}
	CHECK(nr_bytes == 2 && nr_ends == 2);
	close(ends[0]);
}

static volatile int reader_tid;

static void *read_one_slow(void *arg)
{
	reader_tid = syscall(SYS_gettid);
	return read_one(arg);
}

/* A thread that reads keeps the pipe's end, even if another thread closes its descriptor. */
TEST(close_while_reading)
{
	pthread_t thread;
	int ends[2];
	void *got;

	make_pipe(ends, 0);
	CHECK(!pthread_create(&thread, NULL, read_one_slow, ends));
	CHECK(WAIT_UNTIL(reader_tid && is_asleep(getpid(), reader_tid)));
	CHECK(!close(ends[0]));
	signal(SIGPIPE, SIG_IGN);
	CHECK(write(ends[1], "A", 1) == 1);
	CHECK(!pthread_join(thread, &got) && (long)got == 'A');
	CHECK(write(ends[1], "A", 1) == -1 && errno == EPIPE);
	signal(SIGPIPE, SIG_DFL);
	close(ends[1]);
}

TEST(dup)
{
	int ends[2], copy;
	char c;

	make_pipe(ends, 0);
	copy = dup(ends[1]);
	CHECK(copy > ends[1] && !close(ends[1]) && write(copy, "x", 1) == 1);
	CHECK(read(ends[0], &c, 1) == 1 && c == 'x');
	CHECK(dup2(copy, 100) == 100 && dup2(copy, copy) == copy && !close(copy));
	CHECK(write(100, "y", 1) == 1 && read(ends[0], &c, 1) == 1 && c == 'y');
	CHECK(dup3(100, 101, O_CLOEXEC) == 101 && fcntl(101, F_GETFD) == FD_CLOEXEC);
	CHECK(dup2(101, 102) == 102 && fcntl(102, F_GETFD) == 0);
	CHECK(fcntl(100, F_DUPFD, 150) == 150 && fcntl(100, F_DUPFD, 150) == 151);
	CHECK(fcntl(100, F_DUPFD_CLOEXEC, 150) == 152 && fcntl(152, F_GETFD) == FD_CLOEXEC);
	CHECK_ERROR(EINVAL, SYS_dup3, 100, 100, 0);
	CHECK_ERROR(EINVAL, SYS_dup3, 100, 101, O_NONBLOCK);
	CHECK(dup2(99, 100) == -1 && errno == EBADF && fcntl(100, F_GETFD) == 0);
	CHECK(dup2(99, 99) == -1 && errno == EBADF);
	CHECK(dup2(100, -1) == -1 && errno == EBADF && dup2(100, 1 << 30) == -1 && errno == EBADF);
	CHECK(dup(99) == -1 && errno == EBADF && fcntl(99, F_GETFD) == -1 && errno == EBADF);
	CHECK(fcntl(100, F_DUPFD, -1) == -1 && errno == EINVAL);
	CHECK(!fcntl(100, F_SETFL, O_NONBLOCK) && fcntl(151, F_GETFL) == (O_WRONLY | O_NONBLOCK));
	for (int fd = 100; fd <= 152; fd++) {
		if (fd <= 102 || fd >= 150)
			CHECK(!close(fd));
	}
	CHECK(read(ends[0], &c, 1) == 0); /* the last descriptor of the writing end is closed */
	close(ends[0]);
}

TEST(sendfile)
{
	int fd = open(check_file_name(), O_CREAT | O_RDWR | O_TRUNC, 0600), ends[2];
	off_t at = 100;

	fill_pattern(block, CAPACITY, 5);
	CHECK(write(fd, block, 20000) == 20000 && lseek(fd, 10, SEEK_SET) == 10);
	make_pipe(ends, O_NONBLOCK);
	CHECK(sendfile(ends[1], fd, NULL, 1000) == 1000 && lseek(fd, 0, SEEK_CUR) == 1010);
	CHECK(read(ends[0], other, 2000) == 1000 && !memcmp(other, block + 10, 1000));
	CHECK(sendfile(ends[1], fd, &at, 50000) == 19900 && at == 20000);
	CHECK(lseek(fd, 0, SEEK_CUR) == 1010);
	CHECK(read(ends[0], other, CAPACITY) == 19900 && !memcmp(other, block + 100, 19900));
	CHECK(sendfile(ends[1], fd, &at, 1) == 0);
	CHECK(sendfile(ends[1], 99, NULL, 1) == -1 && errno == EBADF);
	CHECK(sendfile(ends[0], fd, NULL, 1) == -1 && errno == EBADF);
	close_both(ends);
	close(fd);
}

/*
 * Each of several readers gets one byte, whether one write or several have brought them. Before
 * that, the first reader in the queue is killed.
 */
TEST(many_readers)
{
	pid_t readers[9];
	int fds[2];
	char byte;

	CHECK(!pipe(fds));
	for (int nr_a_write = 1; nr_a_write <= 8; nr_a_write *= 2) {
		for (int i = 0; i < 9; i++) {
			readers[i] = fork_child();
			if (!readers[i])
				child_exit(read(fds[0], &byte, 1) == 1 ? 0 : 2);
			sleep_ms(i ? 0 : 5);
		}
		sleep_ms(20);
		CHECK(!kill(readers[0], SIGKILL) && child_status(readers[0]) == SIGKILL);
		for (int i = 0; i < 8; i += nr_a_write)
			CHECK(write(fds[1], "12345678", nr_a_write) == nr_a_write);
		for (int i = 1; i < 9; i++)
			CHECK(child_status(readers[i]) == EXITED(0));
	}
	close(fds[0]);
	close(fds[1]);
}

int main(int argc, char **argv)
{
	return run_tests("pipes", argc, argv);
}
