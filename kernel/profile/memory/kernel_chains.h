/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_MEMORY_KERNEL_CHAINS_H
#define PROFILE_MEMORY_KERNEL_CHAINS_H

/*
 * Which call chains have allocated the kernel's memory. While it is on, an allocation is counted in
 * a counter of its chain, not in that of its site. kernel_chains.c finds the counter,
 * kernel_chains_view.c adds up and sorts, and kernel_chains_report.c prints.
 */

#include "../off_time.h"
#include "memory.h"

#define KERNEL_CHAIN_DEPTH 24

/*
 * Allocations of one size, at one site, by one program and one chain of the kernel's functions.
 * Written once, before it is published.
 */
struct kernel_chain {
	/* The key, compared whole. */
	const OS_PER_CPU(u64) * site_count;
	u64 comm[2]; /* the task's name, or "[interrupt]", or "[others]" */
	u64 process; /* stack_process_number(); 0: any, if not of kernel_chains_by_process */
	u64 nr_pcs;
	u64 pcs[KERNEL_CHAIN_DEPTH]; /* return addresses, innermost first; then zeros */
	/* These follow from the key. */
	OS_PER_CPU(u64) * count; /* allocations; the frees follow as behind a site's counter */
	const struct profile_memory_site *site;
	u32 size;
	u32 next_of_site;	   /* the next chain of this site, as a number from 1 on; 0: none */
	struct memory_sums marked; /* at the mark */
};

/* kernel_chains.c: the store. Process context; called once, before the key is set. */
void kernel_chains_init(void);
extern struct profile_off_time kernel_chains_off_time;
/*
 * Globs for the names of processes that have chains of their own, so that it is known what a
 * process has left behind. Set before the first allocation is recorded.
 */
extern char kernel_chains_by_process[64];
bool kernel_chains_are_by_process(os_process_t *proc);
/* Some allocations of such processes were counted for all programs together, or at their site. */
extern bool kernel_chains_lost_process;
/* Returns the number of allocations that had no room, and were counted at their site. */
u64 kernel_chains_read_lost(void);

/* Copies the name of the current task; if its key is 0, "[interrupt]"; if scarce, "[others]". */
void kernel_chains_set_comm(u64 comm[2], u64 task_key, bool are_scarce);

/* The place, and the call chain if it has one, whose allocations a counter counts. */
struct kernel_count {
	const struct profile_memory_site *site;
	const struct kernel_chain *chain; /* NULL: to the site itself */
	u32 size;
};
/* Finds these of a counter. Any context. */
struct kernel_count kernel_chains_find_count(const OS_PER_CPU(u64) * count);

/* kernel_chains_view.c */
struct kernel_chain_row {
	const struct kernel_chain *chain; /* NULL: what was allocated before it was on */
	struct memory_sums sums;
	u64 peak_bytes;
};

struct kernel_chain_view {
	u32 nr_rows;
	struct kernel_chain_row *rows; /* NULL: it was never on */
	struct memory_sums all;
	u64 allocator_bytes; /* as in struct memory_snapshot */
};
extern struct kernel_chain_view kernel_chain_view; /* of the one reader */

/* Allocates the rows of so many chains. Process context. */
void kernel_chain_view_init(u32 max_chains);
/*
 * Makes the view of one kind of memory, most live bytes first. With since_mark, of what has become
 * live since the mark and still is; then allocations without a chain are left out. Any context but
 * NMI.
 */
void kernel_chains_make_view(enum memory_kind kind, bool since_mark);
/* Makes the view of what the chains of a process have allocated that is live, of MEMORY_KERNEL. */
void kernel_chains_make_view_of(u64 process);

/* kernel_chains_profiler.c: the switch. Process context. */
void kernel_chains_switch(bool on);

/* kernel_chains_report.c */
/* Columns of the tables by call chain and of who frees: of an object, its program, its place. */
#define KERNEL_CHAIN_COLUMNS                                                                 \
	[COMM] = { "program", "comm", COLUMN_TEXT, 15, .total = TOTAL_LABEL, .left = true }, \
	[SIZE] = { "size", "size_bytes", COLUMN_COUNT, 8 },                                  \
	[PLACE] = { "allocated in", "place", COLUMN_TEXT, 16, .left = true }
#define KERNEL_PLACE_BYTES 240
extern const char *const kernel_chain_kinds[MEMORY_NR_KINDS];
/* Copy the name of a program, of the function of a return address, and of a place. */
void kernel_chain_comm(char text[17], const u64 comm[2]);
void kernel_chain_frame(char *text, size_t size, u64 pc);
size_t kernel_chain_site(char text[KERNEL_PLACE_BYTES], const struct profile_memory_site *site);
/* Copies a place with its callers. */
void kernel_chain_place(char text[KERNEL_PLACE_BYTES], const struct kernel_chain *chain);
void report_print_kernel_chains(const struct report *report);
/* Prints what is live of the memory that the report's process has allocated. */
void report_print_kernel_leaks_of_process(const struct report *report);
/* Prints what has become live since the mark. */
void report_print_kernel_leaks(const struct report *report);
/* Prints each chain, folded, and its live bytes. */
void report_print_kernel_stacks(void);
/* Prints all chains, for JSON only. */
void report_print_kernel_chain_records(void);

#endif
