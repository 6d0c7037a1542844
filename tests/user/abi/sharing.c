// SPDX-License-Identifier: BSD-2-Clause
/*
 * Shared memory, and mappings that move: MAP_SHARED with and without a file, futexes between
 * processes, mremap, msync, and mappings that another thread removes while they are in use.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "run.h"

#define PAGE	   4096ul
#define FUTEX_WAIT 0
#define FUTEX_WAKE 1

static char *map(void *where, int nr_pages, int prot, int flags, int fd)
{
	char *mapped = mmap(where, nr_pages * PAGE, prot, flags, fd, 0);

	CHECK(mapped != MAP_FAILED);
	return mapped;
}

static char *map_shared(int nr_pages)
{
	return map(NULL, nr_pages, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
}

static char *map_private(int nr_pages)
{
	return map(NULL, nr_pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

/*
 * All processes of a family see each other's writes, also to pages that were not touched before
 * fork().
 */
static void test_anonymous(void)
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
static void test_futex(void)
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
static void test_pthread_shared(void)
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
static void test_posix_names(void)
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
static void test_file(void)
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

static void test_file_rights(void)
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

static __thread sigjmp_buf after_fault;

static void on_fault(int sig)
{
	siglongjmp(after_fault, sig);
}

static int fault_at(volatile char *address)
{
	int sig = sigsetjmp(after_fault, 1);

	if (!sig)
		return *address, 0;
	return sig;
}

/* Truncating a file removes its pages from mappings. Accesses after the end get SIGBUS. */
static void test_cut(void)
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

static void test_mremap(void)
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

#define NR_SPINNERS 3

static volatile int threads_end, nr_ready;
static char *target;

static void *touch(void *arg)
{
	volatile char *bytes = target;

	__atomic_add_fetch(&nr_ready, 1, __ATOMIC_RELAXED);
	while (!threads_end) {
		for (int i = 0; i < 8; i++)
			bytes[i * PAGE]++;
	}
	return NULL;
}

/* Unmaps pages while other threads write to them. These threads fault, and nothing else happens. */
static void test_under_feet(void)
{
	for (int how = 0; how < 3; how++) {
		pid_t pid = fork_child();
		pthread_t threads[NR_SPINNERS];

		if (!pid) {
			target = map_private(8);
			for (int i = 0; i < NR_SPINNERS; i++)
				CHECK(!pthread_create(&threads[i], NULL, touch, NULL));
			CHECK(WAIT_UNTIL(nr_ready == NR_SPINNERS));
			sleep_ms(10);
			if (how == 0)
				munmap(target, 8 * PAGE);
			else if (how == 1)
				mprotect(target + PAGE, PAGE, PROT_READ);
			else
				mremap(target, 8 * PAGE, 4 * PAGE, 0);
			sleep_ms(10000);
			child_exit(1);
		}
		CHECK((child_status(pid) & 0x7f) == SIGSEGV);
	}
}

/*
 * Drops, replaces and (by fork) shares pages while other threads write to them. No thread faults.
 */
static void test_changing(void)
{
	pthread_t threads[NR_SPINNERS];

	threads_end = nr_ready = 0;
	target = map_private(8);
	for (int i = 0; i < NR_SPINNERS; i++)
		CHECK(!pthread_create(&threads[i], NULL, touch, NULL));
	for (int i = 0; i < 100; i++) {
		pid_t pid;

		switch (i % 3) {
		case 0:
			CHECK(!madvise(target, 8 * PAGE, MADV_DONTNEED));
			break;
		case 1:
			CHECK(mmap(target, 8 * PAGE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == target);
			break;
		case 2:
			pid = fork();
			if (!pid)
				_exit(0);
			CHECK(child_status(pid) == 0);
			break;
		}
	}
	threads_end = 1;
	for (int i = 0; i < NR_SPINNERS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	munmap(target, 8 * PAGE);
}

#define NR_ROUNDS 2000

/* Reads, writes and drops pages of a file by turns. A page has the file's byte or a thread's. */
static void *discard(void *number)
{
	long own = (long)number;
	int nr_wrong = 0;

	for (int i = 0; i < NR_ROUNDS; i++) {
		volatile char *page = target + (i * 7 + own) % 8 * PAGE;
		char seen = page[own];

		nr_wrong += seen != 'f' && seen != 'a' + own;
		page[own] = 'a' + own;
		if (i % 3 == 0)
			nr_wrong += madvise((void *)page, PAGE, MADV_DONTNEED) != 0;
		if (i % 64 == 0)
			nr_wrong += madvise(target, 8 * PAGE, MADV_DONTNEED) != 0;
	}
	CHECK(nr_wrong == 0);
	return NULL;
}

static int nr_arrived;
static volatile int nr_written; /* rounds */

/* Waits until all threads have come here. They go on at about the same time. */
static void meet(int *nr_met)
{
	int all = ++*nr_met * NR_SPINNERS;

	__atomic_add_fetch(&nr_arrived, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; __atomic_load_n(&nr_arrived, __ATOMIC_SEQ_CST) < all; i++) {
		if (i > 100)
			usleep(10);
	}
}

/*
 * One thread writes to a page, at other times in each round, while the second one drops it and the
 * third one reads it. Then all must see the same byte, and what each of them writes must stay, as
 * nothing is dropped any more.
 */
static void *discard_and_agree(void *number)
{
	static volatile char seen[NR_SPINNERS];
	int nr_met = 0, nr_wrong = 0;
	long own = (long)number;

	for (int i = 0; i < NR_ROUNDS; i++) {
		volatile char *page = target + i % 8 * PAGE;

		meet(&nr_met);
		for (int j = 0; own == 0 && j < 4; j++) {
			for (volatile int wait = 0; wait < (i * 4 + j) % 500; wait++)
				;
			page[0] = 'w';
		}
		if (own == 0)
			nr_written = i + 1;
		for (int j = 0; own == 1 && nr_written == i && j < 200; j++)
			nr_wrong += madvise((void *)page, PAGE, MADV_DONTNEED) != 0;
		for (int j = 0; own == 2 && nr_written == i && j < 5000; j++) {
			char byte = page[0];

			nr_wrong += byte != 'f' && byte != 'w';
		}
		meet(&nr_met);
		seen[own] = page[0];
		meet(&nr_met);
		nr_wrong += seen[own] != seen[0];
		page[1 + own] = 'a' + own;
		meet(&nr_met);
		nr_wrong += page[0] != seen[0];
		for (int j = 0; j < NR_SPINNERS; j++)
			nr_wrong += page[1 + j] != 'a' + j;
		meet(&nr_met);
		if (own == 0)
			nr_wrong += madvise((void *)page, PAGE, MADV_DONTNEED) != 0;
	}
	CHECK(nr_wrong == 0);
	return NULL;
}

static void run_spinners(void *(*run)(void *number))
{
	pthread_t threads[NR_SPINNERS];

	for (long i = 0; i < NR_SPINNERS; i++)
		CHECK(!pthread_create(&threads[i], NULL, run, (void *)i));
	for (int i = 0; i < NR_SPINNERS; i++)
		CHECK(!pthread_join(threads[i], NULL));
}

/* Several threads drop pages of a private mapping at once, while others copy them. */
static void test_discarding(void)
{
	int fd = memfd_create("bytes", 0);
	char bytes[PAGE];

	memset(bytes, 'f', sizeof(bytes));
	for (int i = 0; i < 8; i++)
		CHECK(write(fd, bytes, sizeof(bytes)) == PAGE);
	target = map(NULL, 8, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);
	nr_arrived = nr_written = 0;
	run_spinners(discard);
	CHECK(!madvise(target, 8 * PAGE, MADV_DONTNEED));
	run_spinners(discard_and_agree);
	CHECK(!madvise(target, 8 * PAGE, MADV_DONTNEED));
	for (int i = 0; i < 8; i++)
		CHECK(!memcmp(target + i * PAGE, bytes, PAGE));
	munmap(target, 8 * PAGE);
	close(fd);
}

/*
 * Maps pages where others have just unmapped theirs, and unmaps them in up to three parts, the last
 * by mremap() every other time.
 */
static void *map_and_unmap(void *number)
{
	char own = (char)('a' + (long)number);
	int nr_wrong = 0;

	for (int i = 0; i < NR_ROUNDS; i++) {
		int nr = 1 + i % 5, first = i % nr, end = first + 1 + i % 3 % (nr - first);
		volatile char *at = map_private(nr);

		for (int page = 0; page < nr; page++) {
			nr_wrong += at[page * PAGE] != 0;
			at[page * PAGE] = own;
		}
		for (int page = 0; page < nr; page++)
			nr_wrong += at[page * PAGE] != own;
		munmap((void *)(at + first * PAGE), (end - first) * PAGE);
		nr_wrong += first && at[0] != own;
		nr_wrong += end < nr && at[end * PAGE] != own;
		if (first)
			munmap((void *)at, first * PAGE);
		if (end + 1 < nr && i % 2) {
			void *rest = (void *)(at + end * PAGE);

			nr_wrong += mremap(rest, (nr - end) * PAGE, PAGE, 0) != rest;
			munmap(rest, PAGE);
		} else if (end < nr) {
			munmap((void *)(at + end * PAGE), (nr - end) * PAGE);
		}
	}
	CHECK(nr_wrong == 0);
	return NULL;
}

enum way {
	BY_MUNMAP,
	BY_MREMAP,
	BY_BRK,
	NR_WAYS
};

static bool set_brk(const char *end)
{
	return syscall(SYS_brk, end) == (long)end;
}

static char *map_page(enum way way)
{
	char *page;

	switch (way) {
	case BY_MREMAP:
		return map_private(2) + PAGE;
	case BY_BRK:
		page = (char *)((syscall(SYS_brk, 0) + PAGE - 1) & -PAGE);
		CHECK(set_brk(page + PAGE));
		return page;
	default:
		return map_private(1);
	}
}

static bool unmap_page(enum way way, char *page)
{
	switch (way) {
	case BY_MREMAP:
		return mremap(page - PAGE, 2 * PAGE, PAGE, 0) == page - PAGE &&
		       !munmap(page - PAGE, PAGE);
	case BY_BRK:
		return set_brk(page);
	default:
		return !munmap(page, PAGE);
	}
}

/* One thread maps a page, mostly where the last one was. All read it, and another one unmaps it. */
static void *unmap_and_agree(void *number)
{
	int nr_met = 0, nr_wrong = 0;
	long own = (long)number;

	for (int i = 0; i < NR_WAYS * NR_ROUNDS; i++) {
		enum way way = i / NR_ROUNDS;
		char byte = (char)(1 + i % 100);

		if (own == i % NR_SPINNERS) {
			target = map_page(way);
			nr_wrong += *target;
			*target = byte;
		}
		meet(&nr_met);
		nr_wrong += *(volatile char *)target != byte;
		meet(&nr_met);
		if (own == i / 2 % NR_SPINNERS)
			nr_wrong += !unmap_page(way, target);
		meet(&nr_met);
	}
	CHECK(nr_wrong == 0);
	return NULL;
}

static void test_unmapping(void)
{
	run_spinners(map_and_unmap);
	nr_arrived = 0;
	run_spinners(unmap_and_agree);
}

static bool write_at(volatile char *at, char byte)
{
	if (sigsetjmp(after_fault, 1))
		return false;
	*at = byte;
	return true;
}

enum change {
	UNMAP,
	PROTECT,
	MOVE,
	REPLACE,
	DISCARD,
	FORK,
	NR_CHANGES
};

/* Changes a page. Returns where it is now. */
static volatile char *change_page(enum change change, volatile char *page, char *other)
{
	pid_t pid;

	switch (change) {
	case UNMAP:
		CHECK(!munmap((void *)page, PAGE));
		break;
	case PROTECT:
		CHECK(!mprotect((void *)page, PAGE, PROT_READ));
		break;
	case MOVE:
		return mremap((void *)page, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, other);
	case REPLACE:
		map((char *)page, 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1);
		break;
	case DISCARD:
		CHECK(!madvise((void *)page, PAGE, MADV_DONTNEED));
		break;
	default:
		pid = fork();
		if (!pid) {
			page[0] = 'c';
			_exit(page[0] != 'c');
		}
		CHECK(child_status(pid) == 0);
	}
	return page;
}

/* Returns true if the page is as the change and the writes leave it, in any order. */
static bool page_is_right(enum change change, volatile char *page, volatile char *target,
			  const volatile bool *written)
{
	bool writable = change == DISCARD || change == FORK;

	for (int i = 0; i < NR_SPINNERS && change != UNMAP; i++) {
		char byte = i && written[i] && change != REPLACE ? 'a' + i : 0;

		if (page[i] != byte && (page[i] || change != DISCARD))
			return false;
		if (i && writable && !written[i])
			return false;
	}
	return write_at(target, 0) == writable;
}

/* One thread changes a page while the others write to it, for the first time. */
static void *fault_and_change(void *number)
{
	static volatile bool written[NR_SPINNERS];
	int nr_met = 0, nr_wrong = 0;
	long own = (long)number;

	for (int i = 0; i < NR_ROUNDS; i++) {
		enum change change = i % NR_CHANGES;
		char *three = NULL, *other = NULL;

		if (own == 0) {
			three = map_private(3);
			other = map_private(1);
			target = three + PAGE;
		}
		meet(&nr_met);
		if (own == 0) {
			volatile char *page = change_page(change, target, other);

			meet(&nr_met);
			nr_wrong += !page_is_right(change, page, target, written);
			munmap(three, 3 * PAGE);
			munmap(other, PAGE);
		} else {
			written[own] = write_at(target + own, 'a' + own);
			meet(&nr_met);
		}
	}
	CHECK(nr_wrong == 0);
	return NULL;
}

static void test_first_writes(void)
{
	signal(SIGSEGV, on_fault);
	nr_arrived = 0;
	run_spinners(fault_and_change);
	signal(SIGSEGV, SIG_DFL);
}

static const struct test tests[] = {
	TEST(anonymous),
	TEST(futex),
	TEST(pthread_shared),
	TEST(posix_names),
	TEST(file),
	TEST(file_rights),
	TEST(cut),
	TEST(mremap),
	TEST(under_feet),
	TEST(changing),
	TEST(discarding),
	TEST(unmapping),
	TEST(first_writes),
	{ 0 },
};

int main(int argc, char **argv)
{
	return run_tests("sharing", tests, argc, argv);
}
