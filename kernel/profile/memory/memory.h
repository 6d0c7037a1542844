/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_MEMORY_MEMORY_H
#define PROFILE_MEMORY_MEMORY_H

/*
 * Which code has allocated the kernel's memory. The hooks in <profile/memory.h> count allocations
 * by site and CPU, sites.c adds up the CPUs, and report.c prints the sums.
 */

#include "../report.h"
#include "os.h"

#include <profile/memory.h>

/* kmalloc takes its memory from pages, so the bytes of its objects are in both sums. */
enum memory_kind {
	MEMORY_PAGES,
	MEMORY_KMALLOC,
	MEMORY_NR_KINDS,
};

/* The sums of all CPUs, of a site or of a size. */
struct memory_sums {
	u64 nr_live, live_bytes;
	u64 nr, bytes; /* allocated since boot */
};

struct memory_row {
	const struct profile_memory_site *site;
	struct memory_sums sums;
};

#define MEMORY_MAX_ROWS 512

struct memory_snapshot {
	u32 nr_rows;
	u32 nr_not_shown;			 /* sites without room */
	struct memory_row rows[MEMORY_MAX_ROWS]; /* sites that have allocated */
	struct memory_sums sizes[PROFILE_MEMORY_SIZES];
	struct memory_sums all;
	u64 allocator_bytes; /* what the allocator counts as live */
};

/*
 * Adds up one kind of memory, sorted by live bytes. Allocates nothing. Any context, also a panic.
 * Exact if no CPU allocates or frees meanwhile.
 */
void memory_snapshot(struct memory_snapshot *snap, enum memory_kind kind);

/*
 * The same of what has become live since the mark, and still is: rows have grown, and their sums
 * are the growth. Sites that have shrunk are in no row. Same contexts; one reader at a time.
 */
void memory_growth(struct memory_snapshot *snap, enum memory_kind kind);
/* Sets the mark. Without one, all is growth. Any context but NMI. */
void memory_mark(void);

/* Returns the bytes of a block of a size. */
u64 memory_size_bytes(u32 size);

/* Prints a snapshot as tables: by site and, if wide, by size. */
void report_print_memory(const struct memory_snapshot *snap, enum memory_kind kind,
			 const struct report *report);
/* Prints a snapshot of memory_growth(). */
void report_print_memory_growth(const struct memory_snapshot *snap, enum memory_kind kind);

#endif
