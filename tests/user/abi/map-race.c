// SPDX-License-Identifier: BSD-2-Clause
/*
 * Mappings that one thread changes while others use them: pages that are unmapped, moved, dropped,
 * protected, or shared by fork. Each thread sees what it wrote, what another one wrote, or a fault.
 */
#include <pthread.h>
#include <stdbool.h>

#include "maps.h"

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
TEST(under_feet)
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
TEST(changing)
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
TEST(discarding)
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

TEST(unmapping)
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

TEST(first_writes)
{
	signal(SIGSEGV, on_fault);
	nr_arrived = 0;
	run_spinners(fault_and_change);
	signal(SIGSEGV, SIG_DFL);
}

int main(int argc, char **argv)
{
	return run_tests("map-race", argc, argv);
}
