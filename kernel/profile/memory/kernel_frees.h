/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_MEMORY_KERNEL_FREES_H
#define PROFILE_MEMORY_KERNEL_FREES_H

/*
 * Which code has freed the kernel's memory, and where it was allocated. kernel_frees.c counts,
 * kernel_frees_view.c adds up and sorts, and kernel_frees_report.c prints.
 */

#include "kernel_chains.h"

#define KERNEL_FREE_DEPTH 5 /* the allocator's two functions and three callers */

/* Frees of one counter's memory by one program and place. Written once, before it is published. */
struct kernel_free {
	const OS_PER_CPU(u64) * count; /* to which the memory led: of a chain, or of a site */
	u64 comm[2];		       /* the task's name, or "[interrupt]", or "[others]" */
	u64 nr_pcs;
	u64 pcs[KERNEL_FREE_DEPTH]; /* return addresses, innermost first; then zeros */
};

/* kernel_frees.c: the store. Process context; called once, before the key is set. */
void kernel_frees_init(u32 max_frees);
/* Returns a row, and how many objects or blocks of pages it has freed; NULL at the end. */
const struct kernel_free *kernel_frees_read(u32 i, u64 *nr);
/* Adds to the sums the frees that had no room. */
void kernel_frees_read_lost(enum memory_kind kind, u64 *nr, u64 *bytes);

/* kernel_frees_view.c */
struct kernel_free_row {
	const struct kernel_free *by;
	u64 nr, bytes;
};

struct kernel_frees_view {
	u32 nr_rows;
	struct kernel_free_row *rows; /* NULL: it was never on, or there is no memory */
	u64 bytes;		      /* of all rows, and of the next two */
	/* `by` is NULL: without room; then, freed before it was on, or while it was off. */
	struct kernel_free_row lost, off;
};
extern struct kernel_frees_view kernel_frees_view; /* of the one reader */

/* Allocates the rows of so many. Returns false if there is no memory. Process context. */
bool kernel_frees_view_init(u32 max_frees);
/* Makes the view of one kind of memory, most bytes first. Any context but NMI. */
void kernel_frees_make_view(enum memory_kind kind);

/* kernel_frees_report.c */
void report_print_kernel_frees(enum memory_kind kind, const struct report *report);
/* Prints each place that frees, folded, and the bytes that it has freed. */
void report_print_freed_stacks(void);
/* Prints all rows with their addresses, for JSON only. */
void report_print_free_records(void);

#endif
