/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_FILES_H
#define PROFILE_FILES_H

/*
 * Which paths system calls ask for. A call that gets a path notes it in the thread; when the call
 * ends, files.c adds the call to a record of the CPU's store. view.c adds up the records by
 * path, report.c prints the sums, and profiler.c registers the profiler.
 */

#include "../../off_time.h"
#include "../../report.h"
#include "../../stack_store.h"
#include "../strace.h"

#define FILE_OTHER_ERROR 0xffff /* errors that have lost their numbers */

/* The path of a thread's call: its first bytes, with zeros up to the end of the last word. */
#define FILE_PATH_WORDS 16
struct profile_call_path {
	u64 hash;
	u64 words[FILE_PATH_WORDS];
	u8 nr_words;
	bool is_truncated; /* there was no room for all of it */
};

/* Calls of a process with the same path and result. Only its CPU writes to it. It never moves. */
struct file_record {
	u64 nr;
	u64 cycles;	/* wall time */
	u64 off_cycles; /* the part of it off a CPU */
	/* The key, compared whole: from here to the last of path. */
	u64 process; /* stack_process_number(), STACK_PROCESS_ENDED, or 0: unknown, but it runs */
	union {
		struct {
			u32 error; /* a positive errno, or FILE_OTHER_ERROR; 0: none */
			u8 nr_words;
			bool is_truncated;
			bool has_no_path; /* there was no room for it */
			u8 unused;
		};
		u64 context; /* all of these */
	};
	u64 path[]; /* as in struct profile_call_path */
};

/* files.c: the store, and its readers. */
extern struct profile_off_time files_off_time;
void files_init(void);
void files_task_exit(struct profile_task *pt);
void files_reset(void);
/* Pin the records for one reader at a time. Any context but NMI. */
void files_pin(void);
void files_unpin(void);
/* Returns the record of a CPU after rec, or the first one if rec is NULL; NULL at the end. */
const struct file_record *files_next(unsigned int cpu, const struct file_record *rec);

struct file_counts {
	u64 nr, cycles, off_cycles;
};
/* Returns a copy of a record's counts, all of the same moment. */
struct file_counts files_read(unsigned int cpu, const struct file_record *rec);
/* Returns the calls of all processes that had no room in the store. */
struct file_counts files_read_lost(void);

/* view.c: adds up calls, one row for each path. */
#define FILE_MAX_ROWS	1024
#define FILE_MAX_ERRORS 4

struct file_error {
	u64 nr;
	u32 error;
};

struct file_row {
	/* The key: a hash of the path, changed until no other path has it. */
	u64 hash;
	const struct file_record *rec; /* one of its records; NULL: calls without a path */
	u64 nr, cycles, off_cycles;
	u64 nr_errors, error_cycles, error_off_cycles; /* the failed calls */
	struct file_error errors[FILE_MAX_ERRORS];     /* nr 0: free */
};

struct file_view {
	struct file_row all;	/* sums of all calls in scope */
	struct file_row others; /* calls that have no row: their path had no room */
	u64 nr_unowned;		/* calls of running processes that are in no process's table */
	u32 nr_rows;
	u16 slots[2 * FILE_MAX_ROWS];
	struct file_row rows[FILE_MAX_ROWS];
};
extern struct file_view file_view; /* of the one reader */

/*
 * Makes the view of the pinned records, of one process or, if proc is NULL, of all. Sorts it by
 * time, longest first.
 */
void files_make_view(os_process_t *proc);

/* Copies the path of a row, as the program gave it. Returns text. */
#define FILE_PATH_BYTES (FILE_PATH_WORDS * 8 + sizeof("..."))
const char *file_path_of(const struct file_row *row, char text[FILE_PATH_BYTES]);

/* report.c: prints the table of a view, which it makes, and offers a finding. */
void report_print_files(const struct report *report);
void files_find(const struct finding_scope *scope);

#endif
