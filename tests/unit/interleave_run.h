/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_INTERLEAVE_RUN_H
#define TESTS_INTERLEAVE_RUN_H

/* Between interleave.c, which runs threads, and interleave_memory.c, which has their stores. */

#include <ucontext.h>

#include "unit.h"

#undef memcpy
#undef memset

#define unseen	    IL_UNSEEN
#define STACK_BYTES (256u << 10)

struct thread {
	ucontext_t context;
	unsigned int cpu;
	bool exists, has_begun, has_ended, waits;
	bool is_torn;		     /* its next cmpxchg or xchg */
	bool has_loaded;	     /* plain loads since the last access that keeps its place */
	unsigned int in_order_since; /* how many stores all CPUs saw then */
	char stack[STACK_BYTES] __aligned(16);
};

extern struct thread *self; /* NULL: no thread runs */

/* How many stores may still stay in a buffer at a switch, and loads be made early, in this run. */
extern unsigned int delays_left;

/* Takes a decision: a number below nr. */
unsigned int choose(unsigned int nr);

bool is_shared(const volatile void *addr);

/* Before each access to shared memory: another thread may go on. */
void step(void);

/* Returns whether a site is not broken. */
bool orders(const struct il_site *site);

/* All stores are visible to all CPUs, and CPU 0 is active. */
void forget_stores(void);

/* Puts the plain store that was reported last into the buffer. */
void settle(void);

/* Makes a CPU's stores visible to itself, and some of all CPUs' stores to the others. */
void switch_cpu(unsigned int cpu);

#endif
