// SPDX-License-Identifier: BSD-2-Clause
/*
 * File locks: record locks of processes and of open files, and those of flock(2). The locked ranges
 * are compared with a table of bytes. Also tests waiting, the ends of waits, and releases.
 */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "run.h"

static int open_file(void)
{
	int fd = open(check_file_name(), O_CREAT | O_RDWR, 0600);

	CHECK(fd >= 0);
	return fd;
}

static struct flock range(int type, off_t start, off_t len)
{
	return (struct flock){
		.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len
	};
}

static int lock(int fd, int command, int type, off_t start, off_t len)
{
	struct flock lock = range(type, start, len);

	return fcntl(fd, command, &lock);
}

/* Returns the first lock that would block a write lock of another process. */
static struct flock seen(int fd, off_t start, off_t len)
{
	struct flock lock = range(F_WRLCK, start, len), *shared;
	pid_t pid;

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid = fork_child();
	if (!pid) {
		CHECK(!fcntl(fd, F_GETLK, &lock));
		*shared = lock;
		child_exit(0);
	}
	CHECK(child_status(pid) == 0);
	lock = *shared;
	munmap(shared, 4096);
	return lock;
}

static int is_locked(int fd)
{
	return seen(fd, 0, 0).l_type != F_UNLCK;
}

TEST(arguments)
{
	int fd = open_file(), reader = open(check_file_name(), O_RDONLY), ends[2];
	int path = open(check_file_name(), O_PATH);
	struct flock bad = range(F_RDLCK, -1, 1);

	CHECK_ERROR(EBADF, SYS_fcntl, 999, F_SETLK, &bad);
	CHECK_ERROR(EBADF, SYS_fcntl, path, F_SETLK, &bad);
	CHECK_ERROR(EFAULT, SYS_fcntl, fd, F_SETLK, 8);
	CHECK_ERROR(EFAULT, SYS_fcntl, fd, F_GETLK, 8);
	CHECK_ERROR(EINVAL, SYS_fcntl, fd, F_SETLK, &bad);
	bad = range(3, 0, 1);
	CHECK_ERROR(EINVAL, SYS_fcntl, fd, F_SETLK, &bad);
	bad = range(F_RDLCK, 0, 1);
	bad.l_whence = 3;
	CHECK_ERROR(EINVAL, SYS_fcntl, fd, F_SETLK, &bad);
	bad = range(F_RDLCK, 10, -11);
	CHECK_ERROR(EINVAL, SYS_fcntl, fd, F_SETLK, &bad);
	bad = range(F_RDLCK, 2, LONG_MAX);
	CHECK_ERROR(EOVERFLOW, SYS_fcntl, fd, F_SETLK, &bad);
	CHECK(!ftruncate(fd, 100));
	bad = range(F_RDLCK, LONG_MAX, 0);
	bad.l_whence = SEEK_END;
	CHECK_ERROR(EOVERFLOW, SYS_fcntl, fd, F_SETLK, &bad);
	bad = range(F_UNLCK, 0, 1);
	CHECK_ERROR(EINVAL, SYS_fcntl, fd, F_GETLK, &bad);
	bad = range(F_WRLCK, 0, 1);
	bad.l_pid = 1;
	CHECK_ERROR(EINVAL, SYS_fcntl, fd, F_OFD_SETLK, &bad);
	CHECK_ERROR(EINVAL, SYS_fcntl, fd, F_OFD_GETLK, &bad);
	bad.l_pid = 0;
	CHECK_ERROR(EBADF, SYS_fcntl, reader, F_SETLK, &bad);
	CHECK_ERROR(EBADF, SYS_fcntl, reader, F_OFD_SETLK, &bad);
	CHECK(!fcntl(reader, F_GETLK, &bad) && bad.l_type == F_UNLCK && bad.l_len == 1);
	CHECK_ERROR(EBADF, SYS_flock, 999, LOCK_SH);
	CHECK_ERROR(EBADF, SYS_flock, path, LOCK_SH);
	CHECK_ERROR(EINVAL, SYS_flock, fd, 0);
	CHECK_ERROR(EINVAL, SYS_flock, fd, LOCK_SH | LOCK_EX);
	CHECK(!flock(reader, LOCK_EX)); /* needs no access */
	CHECK(!pipe(ends) && !lock(ends[1], F_SETLK, F_WRLCK, 0, 1) && !flock(ends[0], LOCK_SH));
	close(ends[0]);
	close(ends[1]);
	close(path);
	close(reader);
	close(fd);
}

/* Ranges relative to the position and to the end, backwards, and to the end of all files. */
TEST(ranges)
{
	static const struct {
		short whence;
		off_t start, len, first, nr;
	} cases[] = {
		{ SEEK_SET, 5, 10, 5, 10 },
		{ SEEK_CUR, 5, 10, 45, 10 },
		{ SEEK_CUR, -5, 1, 35, 1 },
		{ SEEK_END, 0, 10, 100, 10 },
		{ SEEK_END, -100, 1, 0, 1 },
		{ SEEK_SET, 20, -5, 15, 5 },
		{ SEEK_CUR, 0, -40, 0, 40 },
		{ SEEK_SET, 7, 0, 7, 0 },
		{ SEEK_SET, LONG_MAX, 1, LONG_MAX, 0 },
		{ SEEK_SET, LONG_MAX - 1, 1, LONG_MAX - 1, 1 },
		{ SEEK_SET, 1, LONG_MAX, 1, 0 },
	};
	int fd = open_file();

	CHECK(!ftruncate(fd, 100) && lseek(fd, 40, SEEK_SET) == 40);
	for (int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct flock lock = range(F_WRLCK, cases[i].start, cases[i].len), got;

		lock.l_whence = cases[i].whence;
		CHECK(!fcntl(fd, F_SETLK, &lock));
		got = seen(fd, 0, 0);
		CHECK(got.l_type == F_WRLCK && got.l_whence == SEEK_SET && got.l_pid == getpid());
		if (!CHECK(got.l_start == cases[i].first && got.l_len == cases[i].nr))
			printf("case %d: %ld %ld\n", i, (long)got.l_start, (long)got.l_len);
		lock.l_type = F_UNLCK;
		CHECK(!fcntl(fd, F_SETLK, &lock) && !is_locked(fd));
	}
	close(fd);
}

#define NR_BYTES  24
#define NR_OWNERS 3
#define NR_STEPS  3000

/* Random requests by three open files. A table of bytes predicts their results and effects. */
TEST(model)
{
	static const short types[] = { F_RDLCK, F_WRLCK, F_UNLCK };
	char held[NR_OWNERS][NR_BYTES];
	int fds[NR_OWNERS + 1], nr_granted = 0;
	unsigned int seed = 7;

	memset(held, F_UNLCK, sizeof(held));
	for (int i = 0; i <= NR_OWNERS; i++)
		fds[i] = open_file();
	for (int step = 0; step < NR_STEPS; step++) {
		int owner, type, start, len, conflict = 0, at;

		seed = seed * 1103515245 + 12345;
		owner = (seed >> 8) % NR_OWNERS;
		type = types[(seed >> 11) % 3];
		start = (seed >> 14) % NR_BYTES;
		len = 1 + (seed >> 20) % (NR_BYTES - start);
		for (int o = 0; o < NR_OWNERS; o++) {
			for (int b = start; b < start + len && o != owner; b++)
				conflict |= type != F_UNLCK && held[o][b] != F_UNLCK &&
					    (type == F_WRLCK || held[o][b] == F_WRLCK);
		}
		if (!conflict)
			memset(held[owner] + start, type, len);
		nr_granted += !conflict;
		if (!CHECK(lock(fds[owner], F_OFD_SETLK, type, start, len) == (conflict ? -1 : 0)))
			break;
		/* Find the first locked byte from start on. */
		for (at = start; at < NR_BYTES; at++) {
			int o = 0;

			while (o < NR_OWNERS && held[o][at] == F_UNLCK)
				o++;
			if (o < NR_OWNERS)
				break;
		}
		{
			struct flock got = range(F_WRLCK, start, NR_BYTES - start);

			CHECK(!fcntl(fds[NR_OWNERS], F_OFD_GETLK, &got));
			if (at == NR_BYTES) {
				CHECK(got.l_type == F_UNLCK);
			} else {
				CHECK(got.l_type != F_UNLCK && got.l_pid == -1);
				CHECK(got.l_start + got.l_len > at || got.l_start > at);
			}
		}
	}
	CHECK(nr_granted > NR_STEPS / 4 && nr_granted < NR_STEPS * 9 / 10);
	for (int o = 0; o < NR_OWNERS; o++) {
		for (int b = 0; b < NR_BYTES; b++) {
			/* Check the bytes of each owner one by one. */
			int others = 0;
			struct flock got = range(F_WRLCK, b, 1);

			for (int i = 0; i < NR_OWNERS; i++)
				others |= i != o && held[i][b] != F_UNLCK;
			CHECK(!fcntl(fds[o], F_OFD_GETLK, &got));
			CHECK((got.l_type != F_UNLCK) == others);
		}
	}
	for (int i = 0; i <= NR_OWNERS; i++)
		close(fds[i]);
	fds[0] = open_file();
	CHECK(!is_locked(fds[0]));
	close(fds[0]);
}

/* A lock that is cut in two and joined again, as another process sees it. */
TEST(split)
{
	int fd = open_file();
	struct flock got;

	CHECK(!lock(fd, F_SETLK, F_WRLCK, 10, 30) && !lock(fd, F_SETLK, F_UNLCK, 20, 10));
	got = seen(fd, 0, 0);
	CHECK(got.l_start == 10 && got.l_len == 10);
	got = seen(fd, 20, 0);
	CHECK(got.l_start == 30 && got.l_len == 10);
	CHECK(seen(fd, 20, 10).l_type == F_UNLCK);
	CHECK(!lock(fd, F_SETLK, F_WRLCK, 20, 10));
	got = seen(fd, 39, 1);
	CHECK(got.l_start == 10 && got.l_len == 30);
	CHECK(!lock(fd, F_SETLK, F_RDLCK, 15, 5));
	got = seen(fd, 15, 0);
	CHECK(got.l_type == F_RDLCK && got.l_start == 15 && got.l_len == 5);
	got = seen(fd, 20, 0);
	CHECK(got.l_type == F_WRLCK && got.l_start == 20 && got.l_len == 20);
	close(fd);
}

/* The locks of a process do not belong to its children or an open file. Any close drops them. */
TEST(owners)
{
	int fd = open_file(), other = open_file(), copy;
	pid_t pid;

	CHECK(!lock(fd, F_SETLK, F_WRLCK, 0, 10) && !lock(other, F_SETLK, F_WRLCK, 0, 10));
	pid = fork_child();
	if (!pid) {
		CHECK(lock(fd, F_SETLK, F_RDLCK, 0, 1) == -1 && errno == EAGAIN);
		CHECK(!lock(fd, F_SETLK, F_UNLCK, 0, 0)); /* the child has no locks of its own */
		close(fd);
		close(other);
		child_exit(0);
	}
	CHECK(child_status(pid) == 0 && is_locked(fd));
	CHECK(lock(other, F_OFD_SETLK, F_WRLCK, 5, 1) == -1 && errno == EAGAIN);
	copy = dup(fd);
	/* Closing any descriptor of the file drops the locks. */
	CHECK(!close(copy) && !is_locked(fd));
	CHECK(!lock(fd, F_SETLK, F_WRLCK, 0, 10) && !close(other) && !is_locked(fd));
	CHECK(!lock(fd, F_SETLK, F_WRLCK, 0, 10));
	other = open("/dev/null", O_RDWR);
	copy = dup(fd);
	CHECK(dup2(other, copy) == copy && !is_locked(fd));
	close(copy);
	close(other);

	/* The locks of an open file stay until its last descriptor is closed, in any process. */
	CHECK(!lock(fd, F_OFD_SETLK, F_WRLCK, 0, 10));
	CHECK(seen(fd, 0, 0).l_pid == -1);
	other = open_file();
	close(other);
	copy = dup(fd);
	CHECK(!close(fd) && is_locked(copy));
	pid = fork_child();
	if (!pid) {
		CHECK(!lock(copy, F_OFD_SETLK, F_UNLCK, 0, 5));
		child_exit(0);
	}
	CHECK(child_status(pid) == 0 && seen(copy, 0, 5).l_type == F_UNLCK && is_locked(copy));
	other = open_file();
	CHECK(!close(copy) && !is_locked(other));

	/* The end of a process. */
	pid = fork_child();
	if (!pid) {
		CHECK(!lock(other, F_SETLK, F_WRLCK, 0, 0));
		child_exit(0);
	}
	CHECK(child_status(pid) == 0 && !is_locked(other));
	close(other);
}

static volatile int nr_handled;

static void on_signal(int sig)
{
	nr_handled++;
}

static char *proc_text(pid_t pid, const char *file)
{
	static char text[4096];
	char name[64];
	int fd, len;

	snprintf(name, sizeof(name), "/proc/%d/%s", pid, file);
	fd = open(name, O_RDONLY);
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[len > 0 ? len : 0] = '\0';
	return text;
}

static int state_of(pid_t pid)
{
	char *end = strrchr(proc_text(pid, "stat"), ')');

	return end ? end[2] : 0;
}

static int waits_for(pid_t pid, const char *what)
{
	return !check_on_lego() || strstr(proc_text(pid, "waits"), what);
}

/* A child that takes a lock and waits for it, and then exits with 3. */
static pid_t waiting_child(int fd, int command)
{
	pid_t pid = fork_child();

	if (!pid) {
		CHECK(!lock(fd, command, F_WRLCK, 0, 1));
		child_exit(3);
	}
	CHECK(WAIT_UNTIL(state_of(pid) == 'S'));
	return pid;
}

TEST(waiting)
{
	struct sigaction action = { .sa_handler = on_signal };
	int fd = open_file(), other, status;
	pid_t pid;

	/*
	 * The waiter gets the lock when the owner releases or shrinks its lock, or makes it a read
	 * lock and the waiter wants one, too.
	 */
	CHECK(!lock(fd, F_SETLK, F_WRLCK, 0, 10));
	pid = waiting_child(fd, F_SETLKW);
	CHECK(WAIT_UNTIL(waits_for(pid, "record lock")));
	CHECK(!lock(fd, F_SETLK, F_UNLCK, 5, 5) && !waitpid(pid, &status, WNOHANG));
	CHECK(!lock(fd, F_SETLK, F_UNLCK, 0, 1) && child_status(pid) == EXITED(3));
	CHECK(!lock(fd, F_SETLK, F_WRLCK, 0, 10));
	pid = fork_child();
	if (!pid) {
		CHECK(!lock(fd, F_SETLKW, F_RDLCK, 0, 1));
		child_exit(3);
	}
	CHECK(WAIT_UNTIL(state_of(pid) == 'S'));
	CHECK(!lock(fd, F_SETLK, F_RDLCK, 0, 10) && child_status(pid) == EXITED(3));
	other = open_file();
	pid = waiting_child(other, F_OFD_SETLKW);
	CHECK(!close(fd) && child_status(pid) == EXITED(3));
	close(other);

	/* A signal ends the wait; SA_RESTART starts it again. */
	fd = open_file();
	CHECK(!lock(fd, F_SETLK, F_WRLCK, 0, 10));
	for (int i = 0; i < 2; i++) {
		action.sa_flags = i ? SA_RESTART : 0;
		CHECK(!sigaction(SIGUSR1, &action, NULL));
		pid = fork_child();
		if (!pid) {
			errno = 0;
			CHECK(lock(fd, F_SETLKW, F_WRLCK, 0, 1) == (i ? 0 : -1));
			CHECK(nr_handled == 1 && (i || errno == EINTR));
			child_exit(3);
		}
		CHECK(WAIT_UNTIL(state_of(pid) == 'S') && !kill(pid, SIGUSR1));
		if (i) {
			sleep_ms(5);
			CHECK(WAIT_UNTIL(state_of(pid) == 'S'));
			CHECK(!lock(fd, F_SETLK, F_UNLCK, 0, 0));
		}
		CHECK(child_status(pid) == EXITED(3));
	}
	CHECK(!lock(fd, F_SETLK, F_WRLCK, 0, 10));
	pid = waiting_child(fd, F_SETLKW);
	CHECK(!kill(pid, SIGKILL) && child_status(pid) == SIGKILL);
	signal(SIGUSR1, SIG_DFL);
	close(fd);
}

/* Three processes in a cycle: the last one to wait gets EDEADLK. */
TEST(deadlock)
{
	int fd = open_file();
	pid_t pids[2];

	CHECK(!lock(fd, F_SETLK, F_WRLCK, 0, 1));
	for (int i = 0; i < 2; i++) {
		pids[i] = fork_child();
		if (pids[i])
			continue;
		if (i)
			CHECK(WAIT_UNTIL(state_of(pids[0]) == 'S'));
		CHECK(!lock(fd, F_SETLK, F_WRLCK, i + 1, 1));
		CHECK(!lock(fd, F_SETLKW, F_WRLCK, i, 1));
		child_exit(3);
	}
	/* The second child waits for the first, and that for us. */
	CHECK(WAIT_UNTIL(seen(fd, 2, 1).l_pid == pids[1] && state_of(pids[1]) == 'S'));
	CHECK(lock(fd, F_SETLK, F_WRLCK, 2, 1) == -1 && errno == EAGAIN);
	CHECK(lock(fd, F_SETLKW, F_WRLCK, 2, 1) == -1 && errno == EDEADLK);
	CHECK(!lock(fd, F_SETLK, F_UNLCK, 0, 1));
	CHECK(child_status(pids[0]) == EXITED(3) && child_status(pids[1]) == EXITED(3));
	CHECK(!lock(fd, F_SETLKW, F_WRLCK, 2, 1));
	close(fd);
}

/* Two processes wait for the same lock. The one that gets it would wait for the other. */
TEST(deadlock_later)
{
	int fd = open_file();
	pid_t pids[2];

	CHECK(!lock(fd, F_SETLK, F_WRLCK, 0, 1));
	for (int i = 0; i < 2; i++) {
		pids[i] = fork_child();
		if (!pids[i]) {
			CHECK(!i || !lock(fd, F_SETLK, F_WRLCK, 1, 1));
			CHECK(!lock(fd, F_SETLKW, F_WRLCK, 0, 1));
			if (!i)
				CHECK(lock(fd, F_SETLKW, F_WRLCK, 1, 1) == -1 && errno == EDEADLK);
			child_exit(3);
		}
		CHECK(WAIT_UNTIL(state_of(pids[i]) == 'S' && waits_for(pids[i], "record lock")));
	}
	CHECK(seen(fd, 1, 1).l_pid == pids[1] && !lock(fd, F_SETLK, F_UNLCK, 0, 1));
	for (int i = 0; i < 2; i++)
		CHECK(child_status(pids[i]) == EXITED(3));
	close(fd);
}

TEST(flock)
{
	int fd = open_file(), other = open_file(), third = open_file(), copy;
	pid_t pid;

	CHECK(!flock(fd, LOCK_SH) && !flock(other, LOCK_SH | LOCK_NB));
	CHECK(flock(third, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK);
	CHECK(!lock(third, F_SETLK, F_WRLCK, 0, 0)); /* another kind of lock */
	/* A conversion that fails has given up the old lock. */
	CHECK(flock(fd, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK);
	CHECK(!flock(other, LOCK_EX | LOCK_NB) && !flock(other, LOCK_EX | LOCK_NB));
	CHECK(flock(fd, LOCK_SH | LOCK_NB) == -1 && errno == EWOULDBLOCK);
	CHECK(!flock(other, LOCK_SH | LOCK_NB) && !flock(fd, LOCK_SH | LOCK_NB));
	CHECK(!flock(other, LOCK_UN) && !flock(other, LOCK_UN) && !flock(fd, LOCK_EX));

	/* The lock belongs to the open file, through whichever descriptor it was set. */
	copy = dup(fd);
	CHECK(!close(fd) && flock(other, LOCK_SH | LOCK_NB) == -1);
	pid = fork_child();
	if (!pid) {
		CHECK(!flock(copy, LOCK_SH));
		child_exit(0);
	}
	CHECK(child_status(pid) == 0 && !flock(other, LOCK_SH | LOCK_NB) && !flock(other, LOCK_UN));
	CHECK(!flock(copy, LOCK_EX));
	close(third);
	pid = fork_child();
	if (!pid) {
		close(copy);
		close(other);
		CHECK(!flock(open_file(), LOCK_EX));
		child_exit(3);
	}
	CHECK(WAIT_UNTIL(state_of(pid) == 'S') && WAIT_UNTIL(waits_for(pid, "flock")));
	CHECK(!close(copy) && child_status(pid) == EXITED(3));
	CHECK(!flock(other, LOCK_EX | LOCK_NB));
	close(other);
	fd = open("/", O_RDONLY | O_DIRECTORY);
	CHECK(!flock(fd, LOCK_SH) && !flock(fd, LOCK_UN));
	close(fd);
}

static int shared_fd;

static void *lock_and_unlock(void *arg)
{
	for (int i = 0; i < 200; i++) {
		CHECK(!lock(shared_fd, F_OFD_SETLKW, i % 3 ? F_WRLCK : F_RDLCK, i % 7, 1 + i % 5));
		CHECK(!lock(shared_fd, F_OFD_SETLK, F_UNLCK, i % 11, 3));
	}
	/* The last request drops all of them. */
	CHECK(!lock(shared_fd, F_OFD_SETLK, F_UNLCK, 0, 0));
	return NULL;
}

static void *close_and_open(void *arg)
{
	for (int i = 0; i < 300; i++) {
		int fd = open_file(), error;

		/* EDEADLK: the owner of the lock waits for another thread of this process. */
		do {
			error = lock(fd, F_SETLKW, F_RDLCK, i % 9, 2);
		} while (error && errno == EDEADLK);
		CHECK(!error && !close(fd));
	}
	return NULL;
}

/* Threads that lock, wait, open and close at once: nothing is left behind. */
TEST(storm)
{
	pthread_t threads[6];
	int fd;

	shared_fd = open_file();
	for (int i = 0; i < 6; i++)
		CHECK(!pthread_create(&threads[i], NULL, i % 2 ? lock_and_unlock : close_and_open,
				      NULL));
	for (int i = 0; i < 6; i++)
		CHECK(!pthread_join(threads[i], NULL));
	close(shared_fd);
	fd = open_file();
	CHECK(!is_locked(fd));
	close(fd);
}

int main(int argc, char **argv)
{
	return run_tests("locks", argc, argv);
}
