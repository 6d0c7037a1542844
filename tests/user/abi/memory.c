// SPDX-License-Identifier: BSD-2-Clause
/*
 * mmap, munmap, mprotect, mremap, brk, madvise and others: zero pages, fixed and hinted places,
 * splitting, file mappings private and shared, and many threads that map and unmap while others
 * run.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

#define PAGE 4096ul
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
#define RW   (PROT_READ | PROT_WRITE)

/* True if the kernel can read the page for the program: a probe that does not fault. */
static int readable(const void *p)
{
	static int fd = -1;

	if (fd < 0)
		fd = open(check_file_name(), O_CREAT | O_RDWR, 0600);
	return pwrite(fd, p, 1, 0) == 1;
}

static int all_are(const unsigned char *p, size_t len, int value)
{
	for (size_t i = 0; i < len; i++) {
		if (p[i] != value)
			return 0;
	}
	return 1;
}

static void test_anonymous(void)
{
	unsigned char *p = mmap(NULL, 64 * PAGE, RW, ANON, -1, 0);

	CHECK(p != MAP_FAILED && (uintptr_t)p % PAGE == 0);
	CHECK(all_are(p, 64 * PAGE, 0));
	memset(p, 0xa5, 64 * PAGE);
	CHECK(!munmap(p, 64 * PAGE));
	CHECK(!readable(p) && !readable(p + 63 * PAGE));
	CHECK(!munmap(p, 64 * PAGE)); /* nothing is mapped: no error */

	/* Pages come back as zero. */
	CHECK(mmap(p, 64 * PAGE, RW, ANON | MAP_FIXED, -1, 0) == p);
	CHECK(all_are(p, 64 * PAGE, 0));
	munmap(p, 64 * PAGE);

	/* A length that is no multiple of the page size is rounded up. */
	p = mmap(NULL, 100, RW, ANON, -1, 0);
	p[PAGE - 1] = 1;
	CHECK(!munmap(p, 1));
	CHECK(!readable(p));
}

static void test_splitting(void)
{
	unsigned char *p = mmap(NULL, 9 * PAGE, RW, ANON, -1, 0);

	for (int i = 0; i < 9; i++)
		p[i * PAGE] = i + 1;
	CHECK(!munmap(p + 4 * PAGE, PAGE));
	for (int i = 0; i < 9; i++) {
		CHECK(readable(p + i * PAGE) == (i != 4));
		CHECK(i == 4 || p[i * PAGE] == i + 1);
	}
	CHECK(!mprotect(p + PAGE, PAGE, PROT_NONE));
	CHECK(!readable(p + PAGE) && readable(p) && readable(p + 2 * PAGE));
	CHECK(!mprotect(p + PAGE, PAGE, RW));
	CHECK(p[PAGE] == 2);

	/* A fixed mapping over the middle takes the place of what was there. */
	CHECK(mmap(p + 2 * PAGE, 5 * PAGE, RW, ANON | MAP_FIXED, -1, 0) == p + 2 * PAGE);
	CHECK(all_are(p + 2 * PAGE, 5 * PAGE, 0));
	CHECK(p[PAGE] == 2 && p[7 * PAGE] == 8);
	CHECK(mprotect(p, 10 * PAGE, PROT_READ) == 0 || errno == ENOMEM);
	CHECK(!munmap(p, 9 * PAGE));
	for (int i = 0; i < 9; i++)
		CHECK(!readable(p + i * PAGE));
}

static void test_protection(void)
{
	unsigned char *p = mmap(NULL, 2 * PAGE, PROT_READ, ANON, -1, 0);
	int fd = open("/data/small", O_RDONLY);

	CHECK(all_are(p, 2 * PAGE, 0)); /* the zero page */
	CHECK(!mprotect(p, 2 * PAGE, RW));
	p[0] = 1;
	p[PAGE] = 2;
	CHECK(!mprotect(p, PAGE, PROT_READ));
	CHECK(p[0] == 1 && p[PAGE] == 2);
	if (fd >= 0) { /* the kernel must respect the protection, too */
		CHECK(read(fd, p, 1) == -1 && errno == EFAULT);
		CHECK(read(fd, p + PAGE, 1) == 1);
		close(fd);
	}
	munmap(p, 2 * PAGE);

	/* Code in memory that is made executable runs. */
	p = mmap(NULL, PAGE, RW, ANON, -1, 0);
	memcpy(p, "\xb8\x2a\x00\x00\x00\xc3", 6); /* mov $42, %eax; ret */
	CHECK(!mprotect(p, PAGE, PROT_READ | PROT_EXEC));
	CHECK(((int (*)(void))(uintptr_t)p)() == 42);
	munmap(p, PAGE);
}

static void test_hint(void)
{
	unsigned char *p = mmap(NULL, 16 * PAGE, RW, ANON, -1, 0);
	unsigned char *q;

	munmap(p, 16 * PAGE);
	q = mmap(p, PAGE, RW, ANON, -1, 0);
	CHECK(q == p); /* a free hint is taken */
	*q = 9;
	q = mmap(p, PAGE, RW, ANON, -1, 0);
	CHECK(q != p && q != MAP_FAILED && *p == 9); /* a used one is not overwritten */
	munmap(p, PAGE);
	munmap(q, PAGE);
}

#define LOW (1ul << 30) /* MAP_32BIT's areas are in the second GiB */

/* MAP_32BIT chooses a low place, unless MAP_FIXED names one; a low hint that is free is taken. */
static void test_low(void)
{
	unsigned char *high = mmap(NULL, PAGE, RW, ANON, -1, 0), *p, *q;

	p = mmap(NULL, 3 * PAGE, RW, ANON | MAP_32BIT, -1, 0);
	CHECK((uintptr_t)p >= LOW && (uintptr_t)p + 3 * PAGE <= 2 * LOW);
	memset(p, 7, 3 * PAGE);
	munmap(high, PAGE);
	q = mmap(high, PAGE, RW, ANON | MAP_32BIT, -1, 0); /* not where the hint is */
	CHECK((uintptr_t)q >= LOW && (uintptr_t)q + PAGE <= 2 * LOW && q != p);
	munmap(q, PAGE);
	munmap(p + PAGE, PAGE);
	q = mmap(p + PAGE, PAGE, RW, ANON | MAP_32BIT, -1, 0);
	CHECK(q == p + PAGE && *q == 0 && p[0] == 7 && p[2 * PAGE] == 7);
	q = mmap(high, PAGE, RW, ANON | MAP_32BIT | MAP_FIXED, -1, 0);
	CHECK(q == high);
	munmap(q, PAGE);
	CHECK_ERROR(ENOMEM, SYS_mmap, NULL, LOW + PAGE, PROT_NONE, ANON | MAP_32BIT, -1, 0);
	munmap(p, 3 * PAGE);
}

#define MAP_NOBODYS 0x200000 /* no flag has this bit */

/* Which unknown flags are ignored, and which are not. */
static void test_flags(void)
{
	const int ignored = 0x80 | MAP_DENYWRITE | MAP_EXECUTABLE | MAP_LOCKED | MAP_POPULATE |
			    MAP_NONBLOCK | MAP_STACK | 0x80000 | 0x4000000 | MAP_NOBODYS;
	int fd = open(check_file_name(), O_CREAT | O_RDWR | O_TRUNC, 0600);
	unsigned char *p = mmap(NULL, PAGE, RW | 0x40, ANON | ignored, -1, 0);

	CHECK(!ftruncate(fd, PAGE) && p != MAP_FAILED && !munmap(p, PAGE));
	p = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_NOBODYS, fd, 0);
	CHECK(p != MAP_FAILED && !munmap(p, PAGE));
	p = mmap(NULL, PAGE, RW, MAP_SHARED_VALIDATE | MAP_POPULATE, fd, 0);
	CHECK(p != MAP_FAILED && !munmap(p, PAGE));
	CHECK_ERROR(EOPNOTSUPP, SYS_mmap, 0, PAGE, RW, MAP_SHARED_VALIDATE | MAP_NOBODYS, fd, 0);
	CHECK_ERROR(EINVAL, SYS_mmap, 0, PAGE, RW, MAP_PRIVATE | MAP_HUGETLB, fd, 0);
	CHECK_ERROR(EINVAL, SYS_mmap, 0, PAGE, RW, MAP_NOBODYS, fd, 0);
	close(fd);
}

static void test_brk(void)
{
	uintptr_t start = syscall(SYS_brk, 0);
	unsigned char *p = (unsigned char *)start;

	CHECK(start);
	CHECK((uintptr_t)syscall(SYS_brk, start + 10 * PAGE) == start + 10 * PAGE);
	CHECK(all_are(p, 10 * PAGE, 0));
	memset(p, 0x5a, 10 * PAGE);
	CHECK((uintptr_t)syscall(SYS_brk, start + 100) == start + 100);
	CHECK(p[99] == 0x5a);
	CHECK(!readable((void *)((start + 2 * PAGE) & ~(PAGE - 1))));
	CHECK((uintptr_t)syscall(SYS_brk, start + 10 * PAGE) == start + 10 * PAGE);
	CHECK(all_are((void *)((start + 2 * PAGE) & ~(PAGE - 1)), PAGE, 0));
	CHECK((uintptr_t)syscall(SYS_brk, start) == start);
}

static void test_madvise(void)
{
	unsigned char *p = mmap(NULL, 8 * PAGE, RW, ANON, -1, 0);

	memset(p, 7, 8 * PAGE);
	CHECK(!madvise(p + PAGE, 2 * PAGE, MADV_DONTNEED));
	CHECK(all_are(p, PAGE, 7));
	CHECK(all_are(p + PAGE, 2 * PAGE, 0));
	CHECK(all_are(p + 3 * PAGE, 5 * PAGE, 7));
	munmap(p, 8 * PAGE);
}

static void test_file_mapping(void)
{
	int fd = open("/data/small", O_RDONLY);
	unsigned char want[64], *p;

	if (fd < 0)
		return; /* not in the tests' initramfs */
	CHECK(pread(fd, want, 64, PAGE) == 64);
	p = mmap(NULL, 3 * PAGE, RW, MAP_PRIVATE, fd, PAGE);
	if (p == MAP_FAILED) {
		CHECK(errno == ENODEV); /* may be refused, but not fail otherwise */
		close(fd);
		return;
	}
	CHECK(!memcmp(p, want, 64));
	p[0] ^= 1; /* private: the file keeps its byte */
	CHECK(pread(fd, want, 1, PAGE) == 1 && want[0] == (p[0] ^ 1));
	munmap(p, 3 * PAGE);
	close(fd);
}

/* Returns the errno of mmap(), or 0. */
static int map_error(int prot, int flags, int fd, off_t offset)
{
	errno = 0;
	return mmap(NULL, 2 * PAGE, prot, flags, fd, offset) == MAP_FAILED ? errno : 0;
}

/* /dev/zero is memory, private or shared with children; other files that have no pages are not. */
static void test_zero_device(void)
{
	int zero = open("/dev/zero", O_RDWR), reader = open("/dev/zero", O_RDONLY);
	int null = open("/dev/null", O_RDWR), proc = open("/proc/self/stat", O_RDONLY), status;
	unsigned char *p = mmap(NULL, 2 * PAGE, RW, MAP_PRIVATE, reader, PAGE);
	unsigned char *q = mmap(NULL, 2 * PAGE, RW, MAP_SHARED, zero, 0);
	pid_t pid;

	if (!CHECK(p != MAP_FAILED && q != MAP_FAILED))
		return;
	CHECK(all_are(p, 2 * PAGE, 0) && all_are(q, 2 * PAGE, 0));
	pid = fork();
	if (!pid) {
		p[PAGE] = q[PAGE] = 5;
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(p[PAGE] == 0 && q[PAGE] == 5);
	CHECK(map_error(RW, MAP_SHARED, reader, 0) == EACCES);
	CHECK(map_error(RW, MAP_PRIVATE, null, 0) == ENODEV);
	if (proc >= 0)
		CHECK(map_error(PROT_READ, MAP_PRIVATE, proc, 0) == ENODEV);
	munmap(p, 2 * PAGE);
	munmap(q, 2 * PAGE);
	close(zero);
	close(reader);
	close(null);
	close(proc);
}

static void test_bad_mappings(void)
{
	int fd = open(check_file_name(), O_CREAT | O_RDWR, 0600);

	/* Without a file there is nothing to validate flags. */
	CHECK(map_error(RW, MAP_SHARED_VALIDATE | MAP_ANONYMOUS, -1, 0) == EINVAL);
	CHECK(map_error(RW, MAP_ANONYMOUS, -1, 0) == EINVAL);
	CHECK(map_error(PROT_READ, MAP_PRIVATE, fd, INT64_MAX / PAGE * PAGE) == EOVERFLOW);
	CHECK(map_error(PROT_READ, MAP_PRIVATE, fd, 1) == EINVAL);
	close(fd);
}

static void test_shared_file(void)
{
	int fd = open(check_file_name(), O_CREAT | O_RDWR | O_TRUNC, 0600), reader;
	unsigned char *p, *q, c = 0;

	CHECK(!ftruncate(fd, 2 * PAGE + 10));
	p = mmap(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 0);
	if (!CHECK(p != MAP_FAILED))
		return;
	p[PAGE + 1] = 5;
	CHECK(pread(fd, &c, 1, PAGE + 1) == 1 && c == 5);
	CHECK(pwrite(fd, "x", 1, PAGE + 2) == 1 && p[PAGE + 2] == 'x');
	q = mmap(NULL, PAGE, RW, MAP_SHARED, fd, PAGE); /* a second view */
	CHECK(q != MAP_FAILED && q[1] == 5);
	q[3] = 7;
	CHECK(p[PAGE + 3] == 7);
	CHECK(!msync(p, 3 * PAGE, MS_SYNC));
	/* The last page has some bytes of the file. */
	CHECK(readable(p + 2 * PAGE) && !readable(p + 3 * PAGE));
	CHECK(!munmap(p, 4 * PAGE) && q[3] == 7);
	CHECK(!munmap(q, PAGE));
	CHECK(pread(fd, &c, 1, PAGE + 3) == 1 && c == 7);

	reader = open(check_file_name(), O_RDONLY);
	CHECK_ERROR(EACCES, SYS_mmap, NULL, PAGE, RW, MAP_SHARED, reader, 0);
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, reader, 0);
	CHECK(p != MAP_FAILED);
	CHECK_ERROR(EACCES, SYS_mprotect, p, PAGE, RW);
	munmap(p, PAGE);
	close(reader);
	close(fd);
	unlink(check_file_name());
}

static void test_mremap(void)
{
	unsigned char *p = mmap(NULL, 16 * PAGE, RW, ANON, -1, 0), *q;

	for (int i = 0; i < 16; i++)
		p[i * PAGE] = i + 1;
	CHECK(mremap(p, 16 * PAGE, 4 * PAGE, 0) == p && !readable(p + 4 * PAGE));
	CHECK(mremap(p, 4 * PAGE, 8 * PAGE, 0) == p && p[3 * PAGE] == 4 && !p[4 * PAGE]);
	/* Another area is in the way: the mapping can only be moved. */
	CHECK(mmap(p + 8 * PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0) == p + 8 * PAGE);
	CHECK(!mprotect(p + 8 * PAGE, PAGE, PROT_READ));
	CHECK_ERROR(ENOMEM, SYS_mremap, p, 8 * PAGE, 12 * PAGE, 0, 0);
	q = mremap(p, 8 * PAGE, 12 * PAGE, MREMAP_MAYMOVE);
	CHECK(q != MAP_FAILED && q != p && !readable(p) && readable(p + 8 * PAGE));
	for (int i = 0; i < 12; i++)
		CHECK(q[i * PAGE] == (i < 4 ? i + 1 : 0));
	/* Move part of an area to a given address, and replace the area there. */
	p = mmap(NULL, 8 * PAGE, RW, ANON, -1, 0);
	memset(p, 0x77, 8 * PAGE);
	CHECK(mremap(q + PAGE, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p + PAGE) ==
	      p + PAGE);
	CHECK(p[0] == 0x77 && p[PAGE] == 2 && p[2 * PAGE] == 3 && p[3 * PAGE] == 0x77);
	CHECK(readable(q) && !readable(q + PAGE) && !readable(q + 2 * PAGE) && q[3 * PAGE] == 4);
	CHECK_ERROR(EFAULT, SYS_mremap, q, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE, 0);
	CHECK_ERROR(EFAULT, SYS_mremap, q + PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE, 0);
	CHECK_ERROR(EINVAL, SYS_mremap, q, PAGE, 0, MREMAP_MAYMOVE, 0);
	CHECK_ERROR(EINVAL, SYS_mremap, q + 1, PAGE, PAGE, MREMAP_MAYMOVE, 0);
	CHECK_ERROR(EINVAL, SYS_mremap, q, PAGE, PAGE, MREMAP_FIXED, p);
	CHECK_ERROR(EINVAL, SYS_mremap, q, PAGE, PAGE, 0x100, 0);
	CHECK_ERROR(EINVAL, SYS_mremap, p, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		    p + 2 * PAGE);
	CHECK(!munmap(q, 12 * PAGE) && !munmap(p, 8 * PAGE));
}

static void test_residence(void)
{
	unsigned char *p = mmap(NULL, 8 * PAGE, RW, ANON, -1, 0), vec[8];

	p[PAGE] = p[6 * PAGE] = 1;
	CHECK(!mincore(p, 8 * PAGE, vec));
	for (int i = 0; i < 8; i++)
		CHECK((vec[i] & 1) == (i == 1 || i == 6));
	CHECK_ERROR(EINVAL, SYS_mincore, p + 1, PAGE, vec);
	CHECK_ERROR(EFAULT, SYS_mincore, p, PAGE, 8);
	CHECK(!mlock(p, PAGE) && !mlock(p + 5, 2 * PAGE) && !munlock(p, 8 * PAGE));
	CHECK(!mlockall(MCL_CURRENT) && !munlockall());
	CHECK_ERROR(EINVAL, SYS_mlockall, 0);
	CHECK_ERROR(EINVAL, SYS_mlockall, MCL_ONFAULT);
	CHECK_ERROR(EINVAL, SYS_mlock2, p, PAGE, 2);
	CHECK_ERROR(EINVAL, SYS_msync, p, PAGE, MS_SYNC | MS_ASYNC);
	CHECK_ERROR(EINVAL, SYS_msync, p, PAGE, 8);
	CHECK_ERROR(EINVAL, SYS_msync, p + 1, PAGE, MS_SYNC);
	munmap(p + 4 * PAGE, PAGE);
	CHECK_ERROR(ENOMEM, SYS_mincore, p, 8 * PAGE, vec);
	CHECK_ERROR(ENOMEM, SYS_msync, p, 8 * PAGE, MS_SYNC);
	CHECK_ERROR(ENOMEM, SYS_mlock, p, 8 * PAGE);
	munmap(p, 8 * PAGE);
}

/* Advice on fork() is refused where it makes no sense; a child checks the rest. */
static void test_fork_advice(void)
{
	unsigned char *p = mmap(NULL, 2 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	p[0] = 3;
	CHECK_ERROR(EINVAL, SYS_madvise, p, PAGE, MADV_WIPEONFORK);
	CHECK(!madvise(p, PAGE, MADV_DONTFORK) && !madvise(p, PAGE, MADV_DOFORK));
	CHECK(!madvise(p, 2 * PAGE, MADV_DONTNEED) && p[0] == 3); /* shared: it stays */
	CHECK_ERROR(EINVAL, SYS_madvise, p, PAGE, MADV_FREE);
	CHECK_ERROR(EINVAL, SYS_madvise, p, PAGE, 77);
	munmap(p, 2 * PAGE);
	p = mmap(NULL, 2 * PAGE, RW, ANON, -1, 0);
	CHECK(!madvise(p, PAGE, MADV_WIPEONFORK) && !madvise(p, PAGE, MADV_KEEPONFORK));
	munmap(p, 2 * PAGE);
	CHECK_ERROR(ENOMEM, SYS_madvise, p, PAGE, MADV_DONTFORK);
}

static void test_large(void)
{
	size_t len = 32 << 20;
	unsigned char *p = mmap(NULL, len, RW, ANON, -1, 0);

	CHECK(p != MAP_FAILED);
	for (size_t i = 0; i < len; i += PAGE)
		p[i] = i / PAGE;
	for (size_t i = 0; i < len; i += PAGE)
		CHECK(p[i] == (unsigned char)(i / PAGE));
	CHECK(!munmap(p, len));
	p = mmap(NULL, 1ul << 36, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
	CHECK(p != MAP_FAILED); /* address space costs nothing */
	CHECK(!munmap(p, 1ul << 36));
}

#define NR_MAPPERS   8
#define SHARED_PAGES 16

static unsigned char *shared;
static volatile int stop;

/*
 * Fills pages of its own, checks and drops them. A page that was freed too early would have
 * changed.
 */
static void *map_and_check(void *arg)
{
	int value = 1 + (long)arg;

	for (int i = 0; i < 150; i++) {
		size_t len = (1 + i % 7) * PAGE;
		unsigned char *p = mmap(NULL, len, RW, ANON, -1, 0);

		if (!CHECK(p != MAP_FAILED))
			break;
		if (!CHECK(all_are(p, len, 0)))
			break;
		memset(p, value, len);
		if (i % 3 == 0)
			CHECK(!mprotect(p, PAGE, PROT_READ));
		if (i % 5 == 0)
			CHECK(!madvise(shared + (i % SHARED_PAGES) * PAGE, PAGE, MADV_DONTNEED));
		CHECK(all_are(p, len, value));
		CHECK(!munmap(p, len));
	}
	return NULL;
}

/*
 * Reads shared pages that other threads drop: finds an old value or zero, never that of another
 * page.
 */
static void *read_shared(void *arg)
{
	unsigned long nr = 0;

	while (!stop) {
		for (int i = 0; i < SHARED_PAGES; i++, nr++) {
			unsigned char c = *(volatile unsigned char *)(shared + i * PAGE);

			if (c && c != 0xee) {
				CHECK(!"a shared page has another's data");
				return arg;
			}
		}
		*(volatile unsigned char *)(shared + nr % SHARED_PAGES * PAGE) = 0xee;
	}
	return NULL;
}

static void test_threads(void)
{
	pthread_t mappers[NR_MAPPERS], reader;

	shared = mmap(NULL, SHARED_PAGES * PAGE, RW, ANON, -1, 0);
	CHECK(!pthread_create(&reader, NULL, read_shared, NULL));
	for (long i = 0; i < NR_MAPPERS; i++)
		CHECK(!pthread_create(&mappers[i], NULL, map_and_check, (void *)i));
	for (int i = 0; i < NR_MAPPERS; i++)
		CHECK(!pthread_join(mappers[i], NULL));
	stop = 1;
	CHECK(!pthread_join(reader, NULL));
}

/* Two threads fault on the same fresh pages at once: both must see both writes. */
static unsigned char *fresh;
static pthread_barrier_t start_line;

static void *touch_fresh(void *arg)
{
	long me = (long)arg;

	for (int i = 0; i < 256; i++) {
		pthread_barrier_wait(&start_line);
		fresh[i * PAGE + me] = 1;
	}
	return NULL;
}

static void test_same_fault(void)
{
	pthread_t threads[4];

	fresh = mmap(NULL, 256 * PAGE, RW, ANON, -1, 0);
	pthread_barrier_init(&start_line, NULL, 4);
	for (long i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, touch_fresh, (void *)i));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(threads[i], NULL));
	for (int i = 0; i < 256; i++)
		CHECK(all_are(fresh + i * PAGE, 4, 1));
	munmap(fresh, 256 * PAGE);
}

int main(void)
{
	test_anonymous();
	test_splitting();
	test_protection();
	test_hint();
	test_low();
	test_flags();
	test_brk();
	test_madvise();
	test_file_mapping();
	test_zero_device();
	test_bad_mappings();
	test_shared_file();
	test_mremap();
	test_residence();
	test_fork_advice();
	test_large();
	test_threads();
	test_same_fault();
	return check_finish("memory");
}
