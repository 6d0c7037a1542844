/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_LEAK_H
#define LEGO_LEAK_H

/*
 * Detects leaks. Objects are counted when they are allocated and freed, by one add to this CPU's
 * counter, and the counts before and after some work are compared. Memory that is cached on purpose
 * (empty slabs, stacks of exited threads, page tables over them) is not counted.
 */

#include <lego/percpu.h>
#include <lego/slab.h>

#define LEAK_KINDS(X)             \
	X(TASKS, "tasks")         \
	X(PROCESSES, "processes") \
	X(FILES, "open files")    \
	X(INODES, "inodes")       \
	X(MMS, "address spaces")  \
	X(PROFILE, "profiler's tables")

#define LEAK_ENUM(name, text) LEAK_##name,
enum leak_kind {
	LEAK_KINDS(LEAK_ENUM) NR_LEAK_KINDS
};
#undef LEAK_ENUM

DECLARE_PER_CPU(s64[NR_LEAK_KINDS], leak_counters);

/* Counts one object more, or one less if change is -1. Any context but NMI. */
#define leak_count(kind, change) this_cpu_add(leak_counters[kind], change)

struct leak_counts {
	s64 kinds[NR_LEAK_KINDS];
	s64 pages; /* allocated pages, except those of slabs and stacks */
	s64 stacks;
	s64 slab_bytes;
	s64 objects[SLAB_NR_CLASSES]; /* of kmalloc, by class of size */
	u32 serial;		      /* of the last allocation, with CONFIG_DEBUG_SLAB; else 0 */
};

/*
 * Frees what strace keeps for new threads, and copies the counts. Exact only while no other code
 * allocates or frees. Any context but NMI.
 */
void leak_snapshot(struct leak_counts *counts);

/*
 * Waits until the counts have been stable for a while, at most two seconds or the time that all
 * CPUs need for that. Process context.
 */
void leak_wait_steady(void);

/*
 * Returns true if no object is left over since `before`. Waits in the same way for pending frees,
 * then prints a line for each remaining difference. Process context.
 */
bool leak_check(const struct leak_counts *before);

/*
 * slab_debug.c: return a number that grows with each allocation; print the live objects allocated
 * since such a number, by the code that allocated them. Empty without CONFIG_DEBUG_SLAB.
 */
#ifdef CONFIG_DEBUG_SLAB
u32 slab_debug_serial(void);
void slab_debug_print_since(u32 serial);
#else
static inline u32 slab_debug_serial(void)
{
	return 0;
}

static inline void slab_debug_print_since(u32 serial)
{
}
#endif

#endif
