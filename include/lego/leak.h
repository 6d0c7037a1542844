/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_LEAK_H
#define LEGO_LEAK_H

/*
 * What the kernel holds: counted when made and when freed, one add to this CPU's counter each, and
 * compared before and after a piece of work. Memory that is kept on purpose (empty slabs, stacks of
 * threads that are gone, page tables over them) is known by its keeper and is not counted.
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

/* One more, or with change -1 one less. Any context but NMI. */
#define leak_count(kind, change) this_cpu_add(leak_counters[kind], change)

struct leak_counts {
	s64 kinds[NR_LEAK_KINDS];
	s64 pages; /* all but those of slabs and stacks */
	s64 stacks;
	s64 slab_bytes;
	s64 objects[SLAB_NR_CLASSES]; /* of kmalloc, by class of size */
	u32 serial;		      /* of the last allocation, where that is kept */
};

/* Any context. Exact while nobody else allocates or frees. */
void leak_snapshot(struct leak_counts *counts);

/*
 * Wait until nothing has changed for a while, at most two seconds, or as long as it takes all CPUs
 * to get as far. Process context.
 */
void leak_wait_steady(void);

/*
 * True when nothing is left over since then. Waits as long for what is being freed, then
 * prints a line for each difference that stays. Process context.
 */
bool leak_check(const struct leak_counts *before);

/*
 * slab_debug.c: a number that grows with each allocation, and a list of what has been allocated
 * since and is still live, by place. Nothing without CONFIG_DEBUG_SLAB.
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
