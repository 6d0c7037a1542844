// SPDX-License-Identifier: BSD-2-Clause
/*
 * Copy-on-write in both directions: parent and child do not see each other's writes after fork().
 * Where a child must not see a later write of its parent, it sleeps before it checks. The result
 * must not depend on which of them runs first.
 */
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "maps.h"

#define NR_PAGES 256

static void fill(char *pages, int nr, int value)
{
	for (int i = 0; i < nr; i++)
		*(int *)(pages + i * PAGE) = *(int *)(pages + i * PAGE + PAGE - 4) = value + i;
}

static int is_filled(const char *pages, int nr, int value)
{
	for (int i = 0; i < nr; i++) {
		if (*(int *)(pages + i * PAGE) != value + i ||
		    *(int *)(pages + i * PAGE + PAGE - 4) != value + i)
			return 0;
	}
	return 1;
}

static int static_data[2048] = { 1 };

TEST(both)
{
	char *pages = map_private(NR_PAGES);
	char *untouched = map_private(NR_PAGES);
	int on_stack = 5;
	pid_t pid;

	fill(pages, NR_PAGES, 1000);
	pid = fork_child();
	if (!pid) { /* the child writes */
		CHECK(is_filled(pages, NR_PAGES, 1000) && on_stack == 5);
		fill(pages, NR_PAGES, 2000);
		fill(untouched, NR_PAGES, 2000);
		static_data[0] = static_data[2047] = *(volatile int *)&on_stack = 6;
		CHECK(is_filled(pages, NR_PAGES, 2000) && is_filled(untouched, NR_PAGES, 2000));
		child_exit(0);
	}
	CHECK(child_status(pid) == 0);
	CHECK(is_filled(pages, NR_PAGES, 1000));
	CHECK(static_data[0] == 1 && !static_data[2047] && *(volatile int *)&on_stack == 5);
	for (int i = 0; i < NR_PAGES; i += 17)
		CHECK(!untouched[i * PAGE]);

	pid = fork_child();
	if (!pid) { /* the parent writes */
		sleep_ms(100);
		CHECK(is_filled(pages, NR_PAGES, 1000));
		CHECK(static_data[0] == 1 && *(volatile int *)&on_stack == 5);
		child_exit(0);
	}
	fill(pages, NR_PAGES, 3000);
	static_data[0] = *(volatile int *)&on_stack = 7;
	CHECK(child_status(pid) == 0);
	CHECK(is_filled(pages, NR_PAGES, 3000) && static_data[0] == 7);
	static_data[0] = 1;
	munmap(pages, NR_PAGES * PAGE);
	munmap(untouched, NR_PAGES * PAGE);
}

/*
 * Siblings and generations share the same pages at the same time, and each writes its own values.
 */
TEST(family)
{
	char *pages = map_private(32);
	pid_t pids[8], child = 0;

	fill(pages, 32, 1);
	for (int i = 0; i < 8; i++) {
		pids[i] = fork_child();
		if (pids[i])
			continue;
		for (int depth = 1; depth <= 4; depth++) {
			int mine = i * 1000 + depth * 100;

			fill(pages, 32, mine);
			child = depth < 4 ? fork_child() : -1;
			if (!child)
				continue;
			for (int round = 0; round < 20; round++) {
				CHECK(is_filled(pages, 32, mine + round));
				fill(pages, 32, mine + round + 1);
				sched_yield();
			}
			CHECK(child < 0 || child_status(child) == 0);
			child_exit(0);
		}
	}
	for (int i = 0; i < 8; i++)
		CHECK(child_status(pids[i]) == 0);
	CHECK(is_filled(pages, 32, 1));
	munmap(pages, 32 * PAGE);
}

/* A write to a read-only page kills the child. After mprotect() the child writes to a copy. */
TEST(protection)
{
	char *pages = map_private(4);
	pid_t pid;

	fill(pages, 4, 1);
	CHECK(!mprotect(pages, 2 * PAGE, PROT_READ));
	pid = fork_child();
	if (!pid) {
		CHECK(!mprotect(pages, PAGE, PROT_READ | PROT_WRITE));
		*(int *)pages = 100;
		CHECK(!mprotect(pages + 3 * PAGE, PAGE, PROT_READ));
		CHECK(!mprotect(pages + 3 * PAGE, PAGE, PROT_READ | PROT_WRITE));
		*(int *)(pages + 3 * PAGE) = 100;
		CHECK(!mprotect(pages + 2 * PAGE, PAGE, PROT_NONE));
		CHECK(!mprotect(pages + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE));
		CHECK(*(int *)(pages + 2 * PAGE) == 3);
		*(int *)(pages + 2 * PAGE) = 100;
		child_exit(0);
	}
	CHECK(child_status(pid) == 0);
	CHECK(is_filled(pages, 4, 1));
	pid = fork_child();
	if (!pid) {
		*(volatile int *)(pages + PAGE) = 100;
		child_exit(0);
	}
	CHECK((child_status(pid) & 0x7f) == SIGSEGV);
	CHECK(!mprotect(pages, 2 * PAGE, PROT_READ | PROT_WRITE));
	fill(pages, 4, 5); /* also after the others are gone */
	CHECK(is_filled(pages, 4, 5));
	munmap(pages, 4 * PAGE);
}

/*
 * A private mapping of a file, read-only pages of the program, and what the kernel itself writes.
 */
TEST(files)
{
	int fd = open(check_file_name(), O_CREAT | O_RDWR | O_TRUNC, 0600);
	char block[2 * PAGE], *pages, *buffer = map_private(2);
	pid_t pid;

	memset(block, 'f', sizeof(block));
	CHECK(write(fd, block, sizeof(block)) == sizeof(block));
	pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	CHECK(pages != MAP_FAILED && pages[0] == 'f');
	pages[PAGE] = 'p';
	memset(buffer, 'b', 2 * PAGE);
	pid = fork_child();
	if (!pid) {
		CHECK(pages[0] == 'f' && pages[PAGE] == 'p');
		pages[0] = pages[PAGE] = 'c';
		CHECK(pread(fd, buffer + PAGE - 8, 16, 0) == 16);
		CHECK(buffer[PAGE - 8] == 'f' && buffer[PAGE + 7] == 'f' && buffer[0] == 'b');
		child_exit(0);
	}
	CHECK(child_status(pid) == 0);
	CHECK(pages[0] == 'f' && pages[PAGE] == 'p');
	CHECK(buffer[PAGE - 8] == 'b' && buffer[PAGE + 7] == 'b');
	CHECK(pread(fd, block, sizeof(block), 0) == sizeof(block));
	CHECK(block[0] == 'f' && block[PAGE] == 'f');
	munmap(pages, 2 * PAGE);
	munmap(buffer, 2 * PAGE);
	close(fd);
}

static int use_stack(int depth)
{
	volatile char frame[1024];

	frame[0] = depth;
	frame[1023] = 1;
	return depth ? use_stack(depth - 1) + frame[1023] : 0;
}

/* A child's mmap(), munmap() and brk() do not affect its parent. */
TEST(own_space)
{
	char *shared = map_private(2), *more;
	long old_break = syscall(SYS_brk, 0);
	pid_t pid;

	more = map_private(1);
	munmap(more, PAGE);
	strcpy(shared, "still here");
	pid = fork_child();
	if (!pid) {
		CHECK(mmap(more, PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == more);
		strcpy(more, "/tmp");
		CHECK(!munmap(shared, PAGE));
		CHECK(syscall(SYS_brk, old_break + 64 * PAGE) == old_break + 64 * PAGE);
		CHECK(use_stack(500) == 500);
		child_exit(0);
	}
	CHECK(child_status(pid) == 0);
	CHECK(!strcmp(shared, "still here"));
	CHECK_ERROR(EFAULT, SYS_access, more, 0);
	CHECK(syscall(SYS_brk, 0) == old_break);
	CHECK(use_stack(500) == 500);
	munmap(shared, 2 * PAGE);
}

int main(int argc, char **argv)
{
	return run_tests("cow", argc, argv);
}
