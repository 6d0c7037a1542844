/* SPDX-License-Identifier: BSD-2-Clause */
/* The generators of fuzz.c's arguments. Every kind has a letter, and a share of invalid values. */
#ifndef TESTS_USER_FUZZ_H
#define TESTS_USER_FUZZ_H

#include <ctype.h>
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE	     4096ul
#define ARENA_PAGES  16
#define ARENA_BYTES  (ARENA_PAGES * PAGE)
#define MARGIN_BYTES (16ul << 20)
#define MAX_THREADS  64
#define MAX_FILES    4096
#define MAX_ERRNO    133 /* the last one that Linux shows to programs */

#define KERNEL	     0xffffffff81000000ul
#define DIRECT_MAP   0xffff888000100000ul
#define NONCANONICAL 0x0000800000000000ul
#define LIMIT	     0x00007ffffffff000ul /* the first address after user space */

#define KICK 12 /* the signal that ends waits: never blocked, always handled */

#define CLONE_ALL_SHARED 0x00010f00ul
#define CLONE_FILES_BIT	 0x00000400ul
#define CLONE_THREAD_BIT 0x00010000ul
#define CLONE_SIGNAL	 0x000000fful

static const char *const paths[] = {
	"/tmp/fuzz0",
	"/tmp/fuzz1",
	"fuzz2",
	"/tmp/dir0",
	"/tmp/dir0/dir1",
	"dir1",
	"..",
	".",
	"/",
	"",
	"/tmp/",
	"/dev/null",
	"/dev/zero",
	"/data/small/",
	"/data/small",
	"/no/such",
	"/tmp/fuzz0/x",
	"//tmp//../tmp/fuzz1",
	"/proc/self/status",
	"/proc/self/maps",
	"/proc/uptime",
	"/proc",
};

/* Short times, and some invalid ones. */
static const struct timespec times[] = {
	{ 0, 0 }, { 0, 1000 }, { 0, 200000 }, { -1, 0 }, { 0, -1 }
};

/* For the policies of threads: with SCHED_RESET_ON_FORK, too, and some invalid ones. */
static const unsigned long policies[] = { 0, 1, 2, 0x40000000, 0x40000001, 0x40000002, 3, 77 };
static const int priorities[] = { 0, 1, 1, 50, 99, 100, -1 };

static const char *const strings[] = { "a", "", "LANG=C", NULL };

static uintptr_t arena, break_start;
static pid_t pid; /* of the round */

struct thread {
	uint64_t state;
	unsigned long args[6];
	int index;
	volatile pid_t tid;
};

static uint64_t random64(struct thread *t)
{
	t->state ^= t->state << 13;
	t->state ^= t->state >> 7;
	t->state ^= t->state << 17;
	return t->state * 0x2545f4914f6cdd1dul;
}

static unsigned long below(struct thread *t, unsigned long n)
{
	return (random64(t) >> 33) % n;
}

#define PICK(t, array) ((array)[below(t, sizeof(array) / sizeof((array)[0]))])

static unsigned long bad_pointer(struct thread *t)
{
	unsigned long bad[] = {
		0,
		8,
		KERNEL,
		DIRECT_MAP,
		NONCANONICAL,
		LIMIT,
		LIMIT - 4,
		arena - PAGE,
		arena + ARENA_BYTES,
		-1ul,
		-4096ul,
		NONCANONICAL - 1,
		~NONCANONICAL + 1,
		1ul << 63,
	};

	return PICK(t, bad);
}

/* Mostly in the arena; often just before the end of a page, or of all pages. */
static unsigned long pointer(struct thread *t)
{
	unsigned long page = arena + below(t, ARENA_PAGES) * PAGE;

	switch (below(t, 8)) {
	case 0:
		return bad_pointer(t);
	case 1:
		return page + PAGE - 1 - below(t, 64);
	case 2:
		return arena + ARENA_BYTES - 1 - below(t, 64);
	case 3:
		return page + below(t, PAGE);
	default:
		return page + below(t, 16) * 8;
	}
}

/* The files that list_files() has found, and how many of them path() uses. */
static char *files[MAX_FILES];
static int nr_files, nr_files_used;

static void add_file(const char *path)
{
	if (nr_files < MAX_FILES)
		files[nr_files++] = strdup(path);
}

/* Returns whether it is an event of a system call; they are alike, and most of all files. */
static int is_like_others(const char *name)
{
	return (!strncmp(name, "sys_enter_", 10) || !strncmp(name, "sys_exit_", 9)) &&
	       !strstr(name, "_read") && !strstr(name, "_mmap");
}

/*
 * Lists the files below a directory. Leaves out the terminals, because reading one waits, and
 * processes but init, because they come and go.
 */
static void list_files(const char *directory)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	char path[512];

	add_file(directory);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || strstr(entry->d_name, "tty") ||
		    !strcmp(entry->d_name, "console") || is_like_others(entry->d_name) ||
		    (isdigit(entry->d_name[0]) && strcmp(entry->d_name, "1")))
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		if (entry->d_type == DT_DIR)
			list_files(path);
		else
			add_file(path);
	}
	if (dir)
		closedir(dir);
}

static unsigned long path(struct thread *t)
{
	if (nr_files_used && below(t, 2))
		return (unsigned long)files[below(t, nr_files_used)];
	return below(t, 10) ? (unsigned long)PICK(t, paths) : pointer(t);
}

static unsigned long time_pointer(struct thread *t)
{
	return below(t, 4) ? (unsigned long)&PICK(t, times) : KERNEL;
}

static unsigned long number(struct thread *t)
{
	static const unsigned long numbers[] = {
		0,	    1,		2,	   3,	      4,	 8,	     16,
		24,	    64,		100,	   128,	      255,	 256,	     1000,
		4095,	    4096,	4097,	   8192,      65536,	 0x7ffff000, 0x7fffffff,
		0x80000000, 0xffffffff, 1ul << 32, 1ul << 47, 1ul << 62, -1ul,	     -2ul,
		-100ul,	    -4096ul,	1ul << 63, -4095ul,
	};

	switch (below(t, 6)) {
	case 0:
		return random64(t);
	case 1:
		return below(t, 4096);
	case 2:
		return 1ul << below(t, 64);
	default:
		return PICK(t, numbers);
	}
}

/*
 * Returns a descriptor, but never one of the console: reading it waits, and closing it would
 * silence the test.
 */
static unsigned long descriptor(struct thread *t)
{
	static const unsigned long odd[] = { -1ul, 1022, 1023, 1024, 1ul << 31, -100ul };

	return below(t, 8) ? 3 + below(t, 16) : PICK(t, odd);
}

/* A length that cannot leave the arena: what lies there belongs to the fuzzer. */
static unsigned long arena_range(struct thread *t, unsigned long addr)
{
	static const unsigned long odd[] = { 0, -1ul, -4096ul, 1ul << 47, 1ul << 63 };

	if (addr < arena || addr >= arena + ARENA_BYTES || !below(t, 8))
		return PICK(t, odd);
	return 1 + below(t, arena + ARENA_BYTES - addr);
}

static unsigned long arena_address(struct thread *t)
{
	static const unsigned long odd[] = { KERNEL, NONCANONICAL, LIMIT, -4096ul };

	switch (below(t, 8)) {
	case 0:
		return PICK(t, odd);
	case 1:
		return arena + below(t, ARENA_BYTES);
	default:
		return arena + below(t, ARENA_PAGES) * PAGE;
	}
}

static unsigned long kernel_address(struct thread *t)
{
	return LIMIT + below(t, 2) * (KERNEL - LIMIT);
}

/* Returns an ignored or invalid signal. Others would end or stop the process. */
static unsigned long harmless_signal(struct thread *t)
{
	static const unsigned long signals[] = { 0, 17, 18, 23, 28, 65, -1ul, 1ul << 31 };

	return PICK(t, signals);
}

/*
 * The kinds of arguments, by letter: p pointer, P path, T time, n number, f descriptor, r range for
 * the address before it, a address in the arena, k kernel address, s harmless signal, x signal
 * whose action may change, F flags of clone, M set of signals, m milliseconds, c count of bytes, o
 * this process or none, l limit that does not kill the process, y command of syslog(2).
 */
/* Sets of signals without KICK. */
static const uint64_t masks[] = {
	0,	    ~(1ull << (KICK - 1)), 1ull << 13, 0x5555555555555555 & ~(1ull << (KICK - 1)),
	1ull << 63,
};

static unsigned long mask_pointer(struct thread *t)
{
	return below(t, 4) ? (unsigned long)&PICK(t, masks) : bad_pointer(t);
}

static unsigned long process(struct thread *t)
{
	unsigned long processes[] = { 0, pid, 1ul << 30, -1ul };

	return PICK(t, processes);
}

/* Returns flags of clone(). The exit signal is one that does not end this process. */
static unsigned long clone_flags(struct thread *t)
{
	static const unsigned long signals[] = { 0, 17, 18, 23, 65 };

	return (number(t) & ~(CLONE_FILES_BIT | CLONE_SIGNAL)) | PICK(t, signals);
}

static unsigned long argument(struct thread *t, char kind, unsigned long before)
{
	static const unsigned long signals[] = { 0, 9, 10, 11, 19, 30, 64, 65, -1ul };
	static const unsigned long logs[] = { 0, 1, 3, 3, 9, 10, 99, -1ul };
	static const unsigned long locks[] = { 6, 7, 8, 13 };
	static const unsigned long wakes[] = { 1, 3, 4, 5, 10, 2, 6, 7, 8, 11, 12, 13 };

	switch (kind) {
	case 'p':
		return pointer(t);
	case 'P':
		return path(t);
	case 'T':
		return time_pointer(t);
	case 'f':
		return descriptor(t);
	case 'a':
		return arena_address(t);
	case 'r':
		return arena_range(t, before);
	case 'k':
		return kernel_address(t);
	case 's':
		return harmless_signal(t);
	case 'x':
		return PICK(t, signals);
	case 'F':
		return clone_flags(t);
	case 'M':
		return mask_pointer(t);
	case 'm':
		return PICK(t, wakes);
	case 'c':
		return below(t, 2 * PAGE);
	case 'o':
		return process(t);
	case 'l':
		return 1 + below(t, 20);
	case 'y':
		return PICK(t, logs);
	case 'g':
		return 0x1003 + below(t, 2);
	case 'h':
		return arena + ARENA_BYTES - below(t, 64);
	case 'v':
		return (unsigned long)strings;
	case 'L': /* FUTEX_LOCK_PI and its like, which have a time */
		return PICK(t, locks) | below(t, 4) << 7;
	case 'w': /* waits, which have a time */
		return below(t, 2) * 9 | below(t, 4) << 7;
	case 'W':
		return PICK(t, wakes) | below(t, 4) << 7;
	case 'q':
		return PICK(t, policies);
	case 'Q':
		return (unsigned long)&priorities[below(t, sizeof(priorities) / sizeof(int))];
	case 'z':
		return 0;
	default:
		return number(t);
	}
}

#endif
