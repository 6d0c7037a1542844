/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_MEMORY_CHAINS_H
#define PROFILE_MEMORY_CHAINS_H

/*
 * Which user code has touched memory first, and what of it is still mapped. The page fault handler
 * calls chains.c, which adds each page to a record of the CPU's store. page_chains.c gives numbers
 * to chains, which are kept with the mappings. chains_view.c adds up records and mappings, and
 * chains_report.c prints the sums.
 */

#include "../off_time.h"
#include "../report.h"
#include "../rows.h"
#include "../stack_store.h"

#define MEMORY_MAX_DEPTH 32

/* Pages that differ only in their address. Only its CPU writes to it. It never moves. */
struct memory_record {
	u64 nr;	       /* pages that were touched first */
	u64 nr_at_end; /* pages that were still mapped when the process ended */
	u32 number;    /* of the chain: see memory_page_chain(); 0: it is in the record */
	u32 tag;       /* a hash of the key without the process */
	/* The key, compared whole: from here to the last of pcs. */
	u64 process; /* stack_process_number(); 0: a kernel thread */
	u64 comm[2];
	u64 code_map; /* MEMORY_KIND_NUMBERED: the number of the chain */
	union {
		struct {
			u16 syscall; /* that touched it, or OS_NO_SYSCALL: the program did */
			u8 kind;     /* of OS_MEMORY_KINDS, or one of those below */
			u8 is_copy;
			u8 nr_kernel, nr_user; /* from here on: PROFILE_STACK_COUNTS() */
			u8 truncated;
			u8 replayable;
		};
		u64 context; /* all of these */
	};
	u64 pcs[]; /* nr_user; nr_kernel is 0 */
};

#define MEMORY_RECORD_BYTES  (sizeof(struct memory_record) + MEMORY_MAX_DEPTH * sizeof(u64))
#define MEMORY_KIND_UNKNOWN  OS_NR_MEMORY_KINDS
#define MEMORY_KIND_NUMBERED (OS_NR_MEMORY_KINDS + 1) /* that of the chain with its number */

/* chains.c: the store. Process context; called once, before the key is set. */
void memory_chains_init(void);
void memory_chains_reset(void);
extern struct profile_off_time memory_chains_off_time;

/* Pins the records until memory_chains_unpin(), for one reader at a time. Any context but NMI. */
void memory_chains_pin(void);
void memory_chains_unpin(void);
/* Returns the record of a CPU after rec, or the first one if rec is NULL; NULL at the end. */
const struct memory_record *memory_chains_next(unsigned int cpu, const struct memory_record *rec);
/* Return the pages of a record. */
u64 memory_chains_read(const struct memory_record *rec);
u64 memory_chains_read_at_end(const struct memory_record *rec);
/* Returns the number of touched pages that had no room. Sets that of pages at the end. */
u64 memory_chains_read_lost(u64 *nr_at_end);

/* page_chains.c: call chains by number, forever. Process context; called once. */
void memory_page_chains_init(void);
/* Returns the number of the chain of a record, whose process does not matter; 0: no room. */
u32 memory_page_chain_number(const struct memory_record *rec);
/* Returns the chain of a number. 0: of pages without a number. The process is 0. */
const struct memory_record *memory_page_chain(u32 number);
/* Returns the chain of a record, which may be the record itself. */
static inline const struct memory_record *memory_chain_of(const struct memory_record *rec)
{
	return rec->kind == MEMORY_KIND_NUMBERED ? memory_page_chain(rec->code_map) : rec;
}
/* Counts a chain of mapped memory that has no number. Returns how many there were. */
void memory_page_chain_lost(void);
u64 memory_page_chains_read_lost(void);
/*
 * Calls visit() for the pages that a process has mapped: for each number, once or more often. pass,
 * and the context: as for os_process_pages().
 */
typedef void memory_pages_fn(u64 process, u32 number, u64 nr_pages);
void memory_page_chains_visit(os_process_t *proc, u64 pass, memory_pages_fn *visit);

/* The pages that a process has mapped, of one chain. */
struct memory_mapped {
	u64 process, number; /* the key */
	u64 nr;
};
/*
 * Reads what one process or, if that is NULL, all processes have mapped. Returns the rows, which
 * stay until the next call. One caller at a time; any context but NMI.
 */
const struct memory_mapped *memory_page_chains_read(os_process_t *proc, u32 *nr_rows);

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
	u64 nr, nr_live;
	u64 nr_of_most;
	const struct memory_record *most; /* the record with most pages touched */
};

struct memory_chain_view {
	u64 nr;		/* pages of all records in scope */
	u64 nr_live;	/* pages that are mapped, or were when their process ended */
	u64 nr_dropped; /* in no row, because the table is full */
	u64 nr_live_dropped;
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
