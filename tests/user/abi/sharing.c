// SPDX-License-Identifier: BSD-2-Clause
/*
 * Shared memory, and mappings that move: MAP_SHARED with and without a file, futexes between
 * processes, mremap and msync.
 */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/stat.h>

#include "maps.h"

#define FUTEX_WAIT 0
#define FUTEX_WAKE 1

/*
 * All processes of a family see each other's writes, also to pages that were not touched before
 * fork().
 */
TEST(anonymous)
{
	volatile int *words = (int *)map_shared(64);
	pid_t pids[4];

	words[0] = 1;
	for (int i = 0; i < 4; i++) {
		pids[i] = fork_child();
		if (pids[i])
			continue;
		CHECK(words[0] == 1);
		for (int page = 1; page < 64; page++)
			__atomic_add_fetch(&words[page * 1024 + i % 2], page, __ATOMIC_RELAXED);
		if (i == 3 && !fork_child()) {
			words[1000] = 77; /* by a grandchild */
			child_exit(0);
		}
		if (i == 3)
			CHECK(waitpid(-1, NULL, 0) > 0 && words[1000] == 77);
		child_exit(0);
	}
	for (int i = 0; i < 4; i++)
		CHECK(child_status(pids[i]) == 0);
	for (int page = 1; page < 64; page++)
		CHECK(words[page * 1024] == 2 * page && words[page * 1024 + 1] == 2 * page);
	CHECK(words[1000] == 77);
	munmap((void *)words, 64 * PAGE);
}

static long futex(volatile int *word, int op, int value, const struct timespec *time)
{
	return syscall(SYS_futex, word, op, value, time, NULL, 0);
}

static void turn(volatile int *word, int mine, int next)
{
	for (int now = *word; now != mine; now = *word)
		futex(word, FUTEX_WAIT, now, NULL);
	*word = next;
	futex(word, FUTEX_WAKE, 100, NULL);
}

/* Processes take turns by a shared word, which two of them have at different addresses. */
TEST(futex)
{
	volatile int *word = (int *)map_shared(1);
	pid_t pids[3];

	for (int i = 0; i < 3; i++) {
		pids[i] = fork_child();
		if (pids[i])
			continue;
		if (i) {
			char *moved = map_private(4);

			CHECK(mremap((void *)word, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
				     moved + i * PAGE) == moved + i * PAGE);
			word = (int *)(moved + i * PAGE);
		}
		for (int round = 0; round < 300; round++)
			turn(word, round * 3 + i, round * 3 + i + 1);
		child_exit(0);
	}
	for (int i = 0; i < 3; i++)
		CHECK(child_status(pids[i]) == 0);
	CHECK(*word == 900);

	/* In private memory, the same address is a different word in each process. */
	munmap((void *)word, PAGE);
	word = (int *)map_private(1);
	*word = 5;
	pids[0] = fork_child();
	if (!pids[0]) {
		struct timespec time = { 0, 50000000 };

		CHECK(futex(word, FUTEX_WAIT, 5, &time) == -1 && errno == ETIMEDOUT);
		child_exit(0);
	}
	sleep_ms(20);
	CHECK(futex(word, FUTEX_WAKE, 100, NULL) == 0);
	CHECK(child_status(pids[0]) == 0);
	munmap((void *)word, PAGE);
}

/* Locks and conditions of the C library between processes. */
TEST(pthread_shared)
{
	struct shared {
		pthread_mutex_t mutex;
		pthread_cond_t cond;
		int nr, nr_ready;
	} *shared = (void *)map_shared(1);
	pthread_mutexattr_t mutex_attr;
	pthread_condattr_t cond_attr;
	pid_t pids[4];

	pthread_mutexattr_init(&mutex_attr);
	pthread_condattr_init(&cond_attr);
	CHECK(!pthread_mutexattr_setpshared(&mutex_attr, PTHREAD_PROCESS_SHARED));
	CHECK(!pthread_condattr_setpshared(&cond_attr, PTHREAD_PROCESS_SHARED));
	CHECK(!pthread_mutex_init(&shared->mutex, &mutex_attr));
	CHECK(!pthread_cond_init(&shared->cond, &cond_attr));
	for (int i = 0; i < 4; i++) {
		pids[i] = fork_child();
		if (pids[i])
			continue;
		pthread_mutex_lock(&shared->mutex);
		if (++shared->nr_ready == 4)
			pthread_cond_broadcast(&shared->cond);
		while (shared->nr_ready < 4)
			pthread_cond_wait(&shared->cond, &shared->mutex);
		pthread_mutex_unlock(&shared->mutex);
		for (int j = 0; j < 500; j++) {
			pthread_mutex_lock(&shared->mutex);
			shared->nr++;
			pthread_mutex_unlock(&shared->mutex);
		}
		child_exit(0);
	}
	for (int i = 0; i < 4; i++)
		CHECK(child_status(pids[i]) == 0);
	CHECK(shared->nr == 2000);
	munmap(shared, PAGE);
}

/* Named semaphores and shared memory of the C library: files in /dev/shm, for every user. */
TEST(posix_names)
{
	sem_t *sem = sem_open("/sharing.sem", O_CREAT | O_EXCL, 0600, 0);
	int fd = shm_open("/sharing.shm", O_CREAT | O_EXCL | O_RDWR, 0600);
	struct stat dir;
	char *shared;
	pid_t pid;

	CHECK(!stat("/dev/shm", &dir) && dir.st_mode == (S_IFDIR | 01777));
	CHECK(sem != SEM_FAILED && fd >= 0 && !ftruncate(fd, 2 * PAGE));
	shared = map(NULL, 2, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	pid = fork_child();
	if (!pid) {
		sem_t *again = sem_open("/sharing.sem", 0);
		int fd_again = shm_open("/sharing.shm", O_RDWR, 0);

		CHECK(again != SEM_FAILED && pwrite(fd_again, "named", 5, PAGE) == 5);
		CHECK(!sem_post(again));
		child_exit(0);
	}
	CHECK(!sem_wait(sem) && !memcmp(shared + PAGE, "named", 5));
	CHECK(child_status(pid) == 0 && !sem_close(sem) && !sem_unlink("/sharing.sem"));
	CHECK(!shm_unlink("/sharing.shm") && shm_open("/sharing.shm", O_RDWR, 0) == -1);
	munmap(shared, 2 * PAGE);
	close(fd);
}

/*
 * The content of a file, of its shared mappings, and of its private mappings that were written to.
 */
TEST(file)
{
	int fd = open(check_file_name(), O_CREAT | O_RDWR | O_TRUNC, 0600);
	char *shared, *again, *private, text[8];
	pid_t pid;

	CHECK(!ftruncate(fd, 3 * PAGE) && pwrite(fd, "file", 4, PAGE) == 4);
	shared = map(NULL, 3, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	again = map(NULL, 3, PROT_READ, MAP_SHARED, fd);
	private = map(NULL, 3, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);
	CHECK(!memcmp(shared + PAGE, "file", 5) && !memcmp(private + PAGE, "file", 5));
	memcpy(shared + PAGE, "FILE", 4);
	CHECK(pread(fd, text, 4, PAGE) == 4 && !memcmp(text, "FILE", 4));
	CHECK(!memcmp(again + PAGE, "FILE", 4));
	CHECK(pwrite(fd, "disk", 4, 2 * PAGE - 2) == 4); /* across pages */
	CHECK(!memcmp(shared + 2 * PAGE - 2, "disk", 4) && !memcmp(again + 2 * PAGE, "sk", 2));
	private[PAGE] = 'p';
	private[0] = 'q';
	CHECK(shared[PAGE] == 'F' && shared[0] == 0 && pread(fd, text, 1, 0) == 1 && text[0] == 0);
	memcpy(shared + PAGE, "more", 4);
	/* A private copy since it was written to. */
	CHECK(private[PAGE] == 'p' && private[PAGE + 1] == 'I');
	pid = fork_child();
	if (!pid) {
		memcpy(shared, "child", 5);
		private[PAGE] = 'c';
		child_exit(0);
	}
	CHECK(child_status(pid) == 0 && !memcmp(again, "child", 5) && private[PAGE] == 'p');
	CHECK(pread(fd, text, 5, 0) == 5 && !memcmp(text, "child", 5));
	CHECK(!msync(shared, 3 * PAGE, MS_SYNC) && !msync(shared, PAGE, MS_ASYNC));
	CHECK(msync(shared + 1, PAGE, MS_SYNC) == -1 && errno == EINVAL);
	CHECK(msync(shared, PAGE, MS_SYNC | MS_ASYNC) == -1 && errno == EINVAL);
	/* The mapping outlives the descriptor and the name. */
	close(fd);
	unlink(check_file_name());
	shared[10] = 'x';
	CHECK(again[10] == 'x');
	munmap(shared, 3 * PAGE);
	CHECK(msync(shared, PAGE, MS_SYNC) == -1 && errno == ENOMEM);
	CHECK(again[10] == 'x' && !munmap(again, 3 * PAGE) && !munmap(private, 3 * PAGE));
}

TEST(file_rights)
{
	int fd = open(check_file_name(), O_CREAT | O_RDWR | O_TRUNC, 0600), reader, writer;
	char *mapped;

	CHECK(!ftruncate(fd, PAGE));
	reader = open(check_file_name(), O_RDONLY);
	writer = open(check_file_name(), O_WRONLY);
	CHECK(mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, reader, 0) == MAP_FAILED && errno == EACCES);
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, writer, 0) == MAP_FAILED && errno == EACCES);
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, writer, 0) == MAP_FAILED && errno == EACCES);
	mapped = map(NULL, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE, reader);
	mapped[0] = 'x';
	CHECK(!munmap(mapped, PAGE));
	mapped = map(NULL, 1, PROT_READ, MAP_SHARED, reader);
	CHECK(mprotect(mapped, PAGE, PROT_READ | PROT_WRITE) == -1 && errno == EACCES);
	CHECK(!munmap(mapped, PAGE));
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, 999, 0) == MAP_FAILED && errno == EBADF);
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 1) == MAP_FAILED && errno == EINVAL);
	CHECK(mmap(NULL, 0, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EINVAL);
	close(fd);
	close(reader);
	close(writer);
}

static int fault_at(volatile char *address)
{
	int sig = sigsetjmp(after_fault, 1);

	if (!sig)
		return *address, 0;
	return sig;
}

/* Truncating a file removes its pages from mappings. Accesses after the end get SIGBUS. */
TEST(cut)
{
	int fd = open(check_file_name(), O_CREAT | O_RDWR | O_TRUNC, 0600);
	char *shared;

	signal(SIGBUS, on_fault);
	CHECK(!ftruncate(fd, 3 * PAGE));
	shared = map(NULL, 3, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	memset(shared, 'x', 3 * PAGE);
	CHECK(!ftruncate(fd, PAGE + 10));
	CHECK(fault_at(shared + PAGE) == 0 && fault_at(shared + 2 * PAGE) == SIGBUS);
	CHECK(shared[PAGE + 9] == 'x' && shared[PAGE + 10] == 0 && shared[2 * PAGE - 1] == 0);
	CHECK_ERROR(EFAULT, SYS_write, fd, shared + 2 * PAGE, 1);
	CHECK(!ftruncate(fd, 3 * PAGE) && fault_at(shared + 2 * PAGE) == 0 &&
	      shared[2 * PAGE] == 0);
	munmap(shared, 3 * PAGE);
	close(fd);
	signal(SIGBUS, SIG_DFL);
}

TEST(mremap)
{
	char *all = map_private(16), *moved, *other;

	munmap(all + 8 * PAGE, 8 * PAGE);
	for (int i = 0; i < 8; i++)
		all[i * PAGE] = i + 1;
	/* An area grows in place, shrinks, and moves if it must and may. */
	CHECK(mremap(all, 8 * PAGE, 12 * PAGE, 0) == all && all[7 * PAGE] == 8 && !all[11 * PAGE]);
	CHECK(mremap(all, 12 * PAGE, 4 * PAGE, 0) == all && all[3 * PAGE] == 4);
	CHECK_ERROR(EFAULT, SYS_access, all + 4 * PAGE, 0);
	other = map(all + 4 * PAGE, 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1);
	CHECK(mremap(all, 4 * PAGE, 5 * PAGE, 0) == MAP_FAILED && errno == ENOMEM);
	moved = mremap(all, 4 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
	CHECK(moved != MAP_FAILED && moved != all);
	for (int i = 0; i < 4; i++)
		CHECK(moved[i * PAGE] == i + 1);
	CHECK(!moved[63 * PAGE]);
	moved[63 * PAGE] = 9;
	CHECK_ERROR(EFAULT, SYS_access, all, 0);
	CHECK(mremap(all, PAGE, 2 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT);
	CHECK(mremap(moved + 1, PAGE, PAGE, 0) == MAP_FAILED && errno == EINVAL);
	CHECK(mremap(moved, PAGE, 0, 0) == MAP_FAILED && errno == EINVAL);
	CHECK(mremap(moved, PAGE, PAGE, 0x100) == MAP_FAILED && errno == EINVAL);
	CHECK(mremap(moved, PAGE, PAGE, MREMAP_FIXED, all) == MAP_FAILED && errno == EINVAL);
	/* To a given address: replaces the area there, but must not overlap itself. */
	CHECK(mremap(moved, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, moved + PAGE) ==
		      MAP_FAILED &&
	      errno == EINVAL);
	CHECK(mremap(moved, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, all + PAGE) ==
	      all + PAGE);
	CHECK(all[PAGE] == 1 && all[4 * PAGE] == 4 && other == all + 4 * PAGE);
	CHECK_ERROR(EFAULT, SYS_access, moved, 0);
	CHECK(moved[63 * PAGE] == 9 && !munmap(moved, 64 * PAGE) && !munmap(all, 8 * PAGE));
}

int main(int argc, char **argv)
{
	return run_tests("sharing", argc, argv);
}
