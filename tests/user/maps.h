/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_USER_MAPS_H
#define TESTS_USER_MAPS_H

/* For programs that map memory by pages, and survive faults. */

#include <setjmp.h>
#include <sys/mman.h>

#include "run.h"

#define PAGE 4096ul

static inline char *map(void *where, int nr_pages, int prot, int flags, int fd)
{
	char *mapped = mmap(where, nr_pages * PAGE, prot, flags, fd, 0);

	CHECK(mapped != MAP_FAILED);
	return mapped;
}

static inline char *map_shared(int nr_pages)
{
	return map(NULL, nr_pages, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
}

static inline char *map_private(int nr_pages)
{
	return map(NULL, nr_pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static __thread sigjmp_buf after_fault;

/* A handler of signals. sigsetjmp(after_fault, 1) returns the signal. */
static inline void on_fault(int sig)
{
	siglongjmp(after_fault, sig);
}

#endif
