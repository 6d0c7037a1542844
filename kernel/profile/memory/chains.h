/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_MEMORY_CHAINS_H
#define PROFILE_MEMORY_CHAINS_H

/*
 * Which user code has touched memory first. The page fault handler calls chains.c, which adds each
 * page to a record of the CPU's store. chains_view.c adds up the records, and chains_report.c
 * prints the sums.
 */

#include "../off_time.h"
#include "../report.h"
#include "../rows.h"
#include "../stack_store.h"

#define MEMORY_MAX_DEPTH 32

/* Pages that differ only in their address. Only its CPU writes to it. It never moves. */
struct memory_record {
	u64 nr; /* pages */
	/* The key, compared whole: from here to the last of pcs. */
	u64 process; /* stack_process_number(); 0: a kernel thread */
	u64 comm[2];
	u64 code_map;
	union {
		struct {
			u16 syscall; /* that touched it, or OS_NO_SYSCALL: the program did */
			u8 kind;     /* of OS_MEMORY_KINDS */
			u8 is_copy;
			u8 nr_kernel, nr_user; /* from here on: PROFILE_STACK_COUNTS() */
			u8 truncated;
			u8 replayable;
		};
		u64 context; /* all of these */
	};
	u64 pcs[]; /* nr_user; nr_kernel is 0 */
};

/* chains.c: the store. Process context; called once, before the key is set. */
void memory_chains_init(void);
void memory_chains_reset(void);
extern struct profile_off_time memory_chains_off_time;

/* Pins the records until memory_chains_unpin(), for one reader at a time. Any context but NMI. */
void memory_chains_pin(void);
void memory_chains_unpin(void);
/* Returns the record of a CPU after rec, or the first one if rec is NULL; NULL at the end. */
const struct memory_record *memory_chains_next(unsigned int cpu, const struct memory_record *rec);
/* Returns the pages of a record. */
u64 memory_chains_read(const struct memory_record *rec);
/* Returns the number of pages that had no room. */
u64 memory_chains_read_lost(void);

/* chains_view.c: adds up pages, one row for each kind, thread name, function and caller. */
#define MEMORY_MAX_CHAIN_ROWS 512
#define MEMORY_ROW_FUNCTIONS  2

struct memory_chain_row {
	/* The key, compared whole: from here to functions. */
	u64 kind; /* with is_copy in bit 8 */
	u64 comm[2];
	struct {
		u64 image, start;
	} functions[MEMORY_ROW_FUNCTIONS]; /* the program's, innermost first; 0: none */
	/* The sum. */
	u64 nr;
	u64 nr_of_most;
	const struct memory_record *most; /* the record with most pages */
};

struct memory_chain_view {
	u64 nr;		/* pages of all records in scope */
	u64 nr_dropped; /* in no row, because the table is full */
	u32 nr_rows;
	u16 slots[ROWS_SLOTS(MEMORY_MAX_CHAIN_ROWS)];
	struct memory_chain_row rows[MEMORY_MAX_CHAIN_ROWS];
};
extern struct memory_chain_view memory_chain_view; /* of the one reader */

/*
 * Makes the view of the pinned records in the report's scope, and sorts it, most pages first.
 */
void memory_chains_make_view(const struct report *report);

/*
 * Finds the frames of a record that are functions of the program, not of its libraries, innermost
 * first. If there are none, finds the innermost frame. Returns their number, at most
 * MEMORY_ROW_FUNCTIONS.
 */
u32 memory_chain_frames(const struct memory_record *rec, u32 frames[MEMORY_ROW_FUNCTIONS]);
/* Returns the address of a frame's call, or of its instruction if it is the innermost one. */
u64 memory_chain_pc(const struct memory_record *rec, u32 frame);

/* chains_report.c */
void report_print_memory_chains(const struct report *report);
/* Prints each record's call chain, folded, and its bytes. */
void report_print_memory_stacks(void);
/* Prints all records, for JSON only. */
void report_print_memory_records(void);

#endif
