// SPDX-License-Identifier: BSD-2-Clause
/*
 * Mappings of files as a dynamic linker makes and uses them: a library's segments over the mapping
 * of the whole, zeros behind its data, relocations in private pages that become read-only, code;
 * and changes of a file, as its mappings show them.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "run.h"

#define PAGE	 4096ul
#define RW	 (PROT_READ | PROT_WRITE)
#define NR_PAGES 6

/* A file whose pages begin with a, b, c, ... and are dots otherwise; its name may be gone. */
static int make_file(size_t bytes)
{
	int fd = open(check_file_name(), O_CREAT | O_RDWR | O_TRUNC, 0700);
	char page[PAGE];

	memset(page, '.', PAGE);
	for (size_t at = 0; at < bytes; at += PAGE) {
		size_t n = bytes - at < PAGE ? bytes - at : PAGE;

		page[0] = 'a' + at / PAGE;
		CHECK(write(fd, page, n) == (ssize_t)n);
	}
	return fd;
}

static char *map(void *where, size_t bytes, int prot, int flags, int fd, size_t offset)
{
	char *mapped = mmap(where, bytes, prot, flags, fd, offset);

	CHECK(mapped != MAP_FAILED && (!where || mapped == where));
	return mapped;
}

static sigjmp_buf after_fault;
static void *volatile fault_addr;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	fault_addr = info->si_addr;
	siglongjmp(after_fault, sig * 256 + info->si_code);
}

/* Reads or writes the address. Returns 0, or the signal and its code. */
static int touch(volatile char *addr, int writes)
{
	struct sigaction old[2], action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	int result;

	sigaction(SIGBUS, &action, &old[0]);
	sigaction(SIGSEGV, &action, &old[1]);
	result = sigsetjmp(after_fault, 1);
	if (!result) {
		char value = *addr;

		if (writes)
			*addr = value;
	} else {
		CHECK(fault_addr == addr);
	}
	sigaction(SIGBUS, &old[0], NULL);
	sigaction(SIGSEGV, &old[1], NULL);
	return result;
}

#define BUS	 (SIGBUS * 256 + BUS_ADRERR)
#define NO_RIGHT (SIGSEGV * 256 + SEGV_ACCERR)
#define NO_AREA	 (SIGSEGV * 256 + SEGV_MAPERR)

/*
 * Maps text in pages 0 and 1, data in pages 2 and 3, except for the last 100 bytes, which are zero,
 * and bss.
 */
static char *map_library(int fd)
{
	char *base = map(NULL, NR_PAGES * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);

	map(base + PAGE, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, PAGE);
	map(base + 2 * PAGE, 2 * PAGE, RW, MAP_PRIVATE | MAP_FIXED, fd, PAGE);
	memset(base + 4 * PAGE - 100, 0, 100);
	map(base + 4 * PAGE, 2 * PAGE, RW, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0);
	return base;
}

TEST(library)
{
	int fd = make_file(NR_PAGES * PAGE);
	char *base = map_library(fd), *other = map_library(fd), byte;
	pid_t pid;

	close(fd);
	CHECK(base[0] == 'a' && base[PAGE] == 'b' && base[2 * PAGE] == 'b' &&
	      base[3 * PAGE] == 'c');
	CHECK(base[4 * PAGE - 101] == '.' && !base[4 * PAGE - 100] && !base[4 * PAGE - 1]);
	CHECK(!base[4 * PAGE] && !base[6 * PAGE - 1]);
	CHECK(touch(base, 1) == NO_RIGHT && touch(base + PAGE, 1) == NO_RIGHT);
	/* Relocate the data, then make it read-only. */
	base[2 * PAGE] = 'R';
	CHECK(!mprotect(base + 2 * PAGE, PAGE, PROT_READ));
	CHECK(touch(base + 2 * PAGE, 1) == NO_RIGHT && touch(base + 3 * PAGE, 1) == 0);
	CHECK(base[2 * PAGE] == 'R' && other[2 * PAGE] == 'b' && base[PAGE] == 'b');
	/* The text can be relocated, too, although the file is not open for writing. */
	CHECK(!mprotect(base, PAGE, RW));
	base[0] = 'T';
	CHECK(!mprotect(base, PAGE, PROT_READ | PROT_EXEC) && base[0] == 'T' && other[0] == 'a');
	fd = open(check_file_name(), O_RDONLY);
	CHECK(pread(fd, &byte, 1, 0) == 1 && byte == 'a');
	/* A child has the same contents, and its own copies of pages that it changes. */
	pid = fork_child();
	if (!pid) {
		CHECK(base[0] == 'T' && base[2 * PAGE] == 'R' && base[3 * PAGE] == 'c');
		base[3 * PAGE] = base[4 * PAGE] = 'C';
		CHECK(!munmap(base, 2 * PAGE) && touch(base, 0) == NO_AREA);
		child_exit(0);
	}
	CHECK(child_status(pid) == 0);
	CHECK(base[3 * PAGE] == 'c' && !base[4 * PAGE] && base[0] == 'T');
	CHECK(!munmap(base, NR_PAGES * PAGE) && touch(base, 0) == NO_AREA);
	CHECK(other[2 * PAGE] == 'b' && !munmap(other, NR_PAGES * PAGE));
	close(fd);
}

/* Writes code to a file: mov $value, %eax; ret. */
static void write_code(int fd, unsigned char value)
{
	const unsigned char code[] = { 0xb8, value, 0, 0, 0, 0xc3 };

	CHECK(pwrite(fd, code, sizeof(code), PAGE) == sizeof(code));
}

TEST(code)
{
	int fd = make_file(2 * PAGE), later;
	int (*call)(void);
	char *code;

	write_code(fd, 42);
	code = map(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, PAGE);
	call = (int (*)(void))code;
	CHECK(call() == 42);
	CHECK(!unlink(check_file_name()));
	later = make_file(2 * PAGE);
	write_code(later, 1);
	CHECK(call() == 42);
	/* A private mapping shows the file's own pages until they are written to. */
	write_code(fd, 43);
	CHECK(call() == 43);
	CHECK(!mprotect(code, PAGE, RW) && touch(code, 1) == 0);
	write_code(fd, 44);
	CHECK(!mprotect(code, PAGE, PROT_READ | PROT_EXEC) && call() == 43);
	CHECK(!mprotect(code, PAGE, PROT_NONE) && touch(code, 0) == NO_RIGHT);
	/* After its copy is dropped, the page shows the file again. */
	CHECK(!madvise(code, PAGE, MADV_DONTNEED));
	CHECK(!mprotect(code, PAGE, PROT_READ | PROT_EXEC) && call() == 44);
	munmap(code, PAGE);
	close(fd);
	close(later);
}

/*
 * After the end of a file, a mapping shows zeros up to the end of the page, then accesses fail with
 * SIGBUS. The file grows, and is truncated.
 */
TEST(end)
{
	int fd = make_file(2 * PAGE + 10);
	char *private = map(NULL, 4 * PAGE, RW, MAP_PRIVATE, fd, 0);
	char *shared = map(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 0), byte = 'x';

	CHECK(private[2 * PAGE + 9] == '.' && !private[2 * PAGE + 10] && !shared[3 * PAGE - 1]);
	CHECK(touch(private + 3 * PAGE, 0) == BUS && touch(private + 3 * PAGE, 1) == BUS);
	CHECK(touch(shared + 3 * PAGE, 0) == BUS && touch(shared + 3 * PAGE, 1) == BUS);
	CHECK_ERROR(EFAULT, SYS_write, fd, private + 3 * PAGE, 1);
	CHECK_ERROR(EFAULT, SYS_pread64, fd, private + 3 * PAGE, 1, 0);
	/* Bytes that are written after the end never become part of the file. */
	shared[2 * PAGE + 10] = 's';
	CHECK(pread(fd, &byte, 1, 2 * PAGE + 10) == 0);
	CHECK(!ftruncate(fd, 4 * PAGE) && pread(fd, &byte, 1, 2 * PAGE + 10) == 1 && !byte);
	CHECK(touch(private + 3 * PAGE, 0) == 0 && touch(shared + 3 * PAGE, 1) == 0);
	CHECK(pwrite(fd, "end", 3, 4 * PAGE - 3) == 3 && private[4 * PAGE - 1] == 'd');
	/* Truncating a file removes private copies of its pages, too. */
	private[PAGE] = private[3 * PAGE] = 'P';
	CHECK(!ftruncate(fd, 2 * PAGE));
	CHECK(private[PAGE] == 'P' && touch(private + 3 * PAGE, 0) == BUS);
	CHECK(!ftruncate(fd, 4 * PAGE) && !private[3 * PAGE]);
	/* A mapping can be completely after the end. */
	munmap(shared, 4 * PAGE);
	shared = map(NULL, PAGE, RW, MAP_SHARED, fd, 64 * PAGE);
	CHECK(touch(shared, 0) == BUS);
	CHECK(pwrite(fd, "far", 3, 64 * PAGE) == 3 && !memcmp(shared, "far", 4));
	munmap(shared, PAGE);
	munmap(private, 4 * PAGE);
	close(fd);
}

/* Processes that open the same file share its mapped pages, also with write() and read(). */
TEST(shared)
{
	int fd = make_file(3 * PAGE), status;
	char *here = map(NULL, 2 * PAGE, RW, MAP_SHARED, fd, PAGE), text[8];
	pid_t pid = fork_child();

	if (!pid) {
		int own = open(check_file_name(), O_RDWR);
		char *there;

		munmap(here, 2 * PAGE);
		close(fd);
		there = map(NULL, 3 * PAGE, RW, MAP_SHARED, own, 0);
		close(own);
		CHECK(there[PAGE] == 'b');
		strcpy(there + PAGE, "mapped");
		CHECK(!msync(there, 3 * PAGE, MS_SYNC | MS_INVALIDATE));
		CHECK(WAIT_UNTIL(!strcmp(there + 2 * PAGE, "written")));
		child_exit(0);
	}
	CHECK(WAIT_UNTIL(!strcmp(here, "mapped")));
	CHECK(pread(fd, text, 7, PAGE) == 7 && !strcmp(text, "mapped"));
	CHECK(pwrite(fd, "written", 8, 2 * PAGE) == 8);
	status = child_status(pid);
	CHECK(status == 0 && !strcmp(here + PAGE, "written"));
	munmap(here, 2 * PAGE);
	close(fd);
}

/*
 * Returns whether /proc/self/maps shows these rights, this offset and a name for the area at addr.
 */
static int shown_as(const char *addr, const char *rights, size_t offset, int has_name)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512], shown[8];
	size_t start, end, at;
	int found = 0;

	while (!found && fgets(line, sizeof(line), maps)) {
		CHECK(sscanf(line, "%zx-%zx %7s %zx", &start, &end, shown, &at) == 4);
		if (start > (size_t)addr || (size_t)addr >= end)
			continue;
		found = !strcmp(shown, rights) && !!strstr(line, check_file_name()) == has_name &&
			(!has_name || at + ((size_t)addr - start) == offset);
		if (!found)
			printf("FAIL: %s", line);
	}
	fclose(maps);
	return found;
}

TEST(areas)
{
	int fd = make_file(NR_PAGES * PAGE);
	char *base = map_library(fd), *shared = map(NULL, PAGE, RW, MAP_SHARED, fd, 2 * PAGE);

	CHECK(!mprotect(base + 2 * PAGE, PAGE, PROT_READ));
	CHECK(shown_as(base, "r--p", 0, 1) && shown_as(base + PAGE, "r-xp", PAGE, 1));
	CHECK(shown_as(base + 2 * PAGE, "r--p", PAGE, 1));
	CHECK(shown_as(base + 3 * PAGE, "rw-p", 2 * PAGE, 1));
	CHECK(shown_as(base + 5 * PAGE, "rw-p", 0, 0) && shown_as(shared, "rw-s", 2 * PAGE, 1));
	munmap(base, NR_PAGES * PAGE);
	munmap(shared, PAGE);
	close(fd);
}

static size_t read_file(const char *name, char *text, size_t max_bytes)
{
	int fd = open(name, O_RDONLY);
	size_t bytes = 0;
	ssize_t n;

	while ((n = read(fd, text + bytes, max_bytes - 1 - bytes)) > 0)
		bytes += n;
	CHECK(fd >= 0 && !close(fd) && n == 0);
	text[bytes] = 0;
	return bytes;
}

/* Returns the number of areas. Linux also lists a page of the kernel, which does not count. */
static long count_areas(void)
{
	static char text[65536];
	size_t bytes = read_file("/proc/self/maps", text, sizeof(text));
	long nr = 0;

	for (size_t i = 0; i < bytes; i++)
		nr += text[i] == '\n';
	return nr - !!strstr(text, "[vsyscall]");
}

/* Makes as many areas as are allowed. Then no change may make one more. */
TEST(many_areas)
{
	char text[32], *base, *end, *at;
	long max, nr;

	read_file("/proc/sys/vm/max_map_count", text, sizeof(text));
	max = atol(text);
	base = map(NULL, (2 * max + 8) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	end = base + (2 * max + 8) * PAGE;
	nr = count_areas();
	for (at = base + PAGE; nr + 2 <= max; at += 2 * PAGE, nr += 2) {
		if (mprotect(at, PAGE, PROT_READ))
			break;
	}
	if (nr < max && !mprotect(end - PAGE, PAGE, PROT_READ))
		nr++;
	CHECK(nr == max);
	CHECK_ERROR(ENOMEM, SYS_mprotect, at, PAGE, PROT_READ);
	CHECK_ERROR(ENOMEM, SYS_munmap, at, PAGE);
	CHECK_ERROR(ENOMEM, SYS_mremap, base + PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
	/* These failures have changed nothing. A whole area can still be changed or removed. */
	CHECK(touch(base + PAGE, 0) == 0 && touch(at, 0) == NO_RIGHT);
	CHECK(!mprotect(base + PAGE, PAGE, RW) && touch(base + PAGE, 1) == 0);
	CHECK(!munmap(base + PAGE, PAGE) && touch(base + PAGE, 0) == NO_AREA);
	/* mmap() may exceed the limit by one. */
	map(base + PAGE, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	map(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED &&
	      errno == ENOMEM);
	CHECK(!munmap(base, end - base));
	CHECK(count_areas() < 1000);
}

int main(int argc, char **argv)
{
	mkdir("/tmp", 0777);
	return run_tests("mappings", argc, argv);
}
