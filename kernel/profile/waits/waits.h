/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_WAITS_H
#define PROFILE_WAITS_H

/*
 * Where threads wait, for what, and who wakes them. Hooks in schedule() and task_wake() note the
 * times and call record.c, which adds each wait to a record of the CPU's store (store.c). view.c
 * adds up the records, and report.c prints the sums.
 */

#include "../off_time.h"
#include "../report.h"
#include "../rows.h"
#include "../stack_store.h"
#include "os.h"

#include <profile/stack_walk.h>

#define WAIT_MAX_DEPTH	  48
#define WAIT_NAME_BYTES	  128
#define WAIT_CALL_UNKNOWN 0xff

enum wait_kind {
	WAIT_SLEPT,	/* the thread slept, then was ready */
	WAIT_PREEMPTED, /* it was ready all the time */
	WAIT_SPUN,	/* a CPU spun for a spinlock */
	TIMER_SET,	/* no wait: the thread has set a timer */
	WAKER_THREAD,
	WAKER_INTERRUPT,
	NR_WAIT_KINDS
};

/*
 * A record of waits that differ only in time, or of wake-ups by the same waker: their common
 * properties, and their number. Only its CPU writes to it. It never moves.
 */
struct wait_record {
	u64 nr;
	u64 asleep_cycles; /* from leaving the CPU to the wake-up; 0 for a waker, as are the next */
	u64 ready_cycles;  /* from the wake-up until the thread ran again */
	u64 max_cycles;	   /* the longest wait, asleep and ready */
	/* The key, compared whole: from here to the last of pcs. */
	const char *name; /* what was waited for; NULL: unknown */
	u64 process;	  /* stack_process_number(); 0: a kernel thread, or of a waker */
	u64 comm[2];
	u64 code_map;			 /* os_task_code_map() */
	const struct wait_record *waker; /* NULL: preempted, or unknown */
	u64 addr;			 /* a user address, or 0 */
	union {
		struct {
			u16 syscall;
			u8 kind;
			u8 phase;	       /* enum profile_call_phase, or WAIT_CALL_UNKNOWN */
			u8 nr_kernel, nr_user; /* from here on: PROFILE_STACK_COUNTS() */
			u8 truncated;	       /* enum profile_stack_truncation */
			u8 replayable;	       /* enum profile_stack_replay */
		};
		u64 context; /* all of these */
	};
	u64 pcs[]; /* nr_kernel, then nr_user; innermost first */
};

/* store.c: memory, and readers. */
void waits_init(void);
void waits_reset(void);
/* Lets waits that have begun count from now on. */
void waits_restart_since(void);

extern struct profile_off_time waits_off_time;

/* Pins the records until waits_unpin(), for one reader at a time. Any context but NMI. */
void waits_pin(void);
void waits_unpin(void);
/* Returns the record of a CPU after rec, or the first one if rec is NULL; NULL at the end. */
const struct wait_record *waits_next(unsigned int cpu, const struct wait_record *rec);

struct wait_counts {
	u64 nr, asleep_cycles, ready_cycles, max_cycles;
};
/*
 * Returns a copy of a record's counters, all of the same moment. Records of waits_visit_in_flight()
 * are read directly.
 */
struct wait_counts waits_read(unsigned int cpu, const struct wait_record *rec);

/* in_flight.c: adds a thread's life to those of its process. lists_lock is held. */
void waits_end_thread(struct profile_task *pt);
typedef void wait_visit_fn(unsigned int cpu, const struct wait_record *rec);
/*
 * Calls visit() for each wait that has not ended, of one process or, if proc is NULL, of all, with
 * a record and the CPU of the thread. The record is valid during visit() only. The caller pins the
 * records, so that its waker stays valid.
 */
void waits_visit_in_flight(os_process_t *proc, wait_visit_fn *visit);

/*
 * findings.c: what the thread that lived longest has waited for. A thread and a process are noted
 * when they end; the first is called with lists_lock held.
 */
struct finding_scope;
void waits_find(const struct finding_scope *scope);
/* The thread's life, and the part of it off a CPU. */
void waits_note_thread(struct profile_longest *longest, const struct profile_task *pt,
		       u64 life_cycles, u64 off_cycles);
void waits_note_longest(struct profile_longest *longest, const struct profile_longest *other);
void waits_note_process(struct profile_process *pp);
void waits_forget_longest(void);
/* in_flight.c: notes the threads that have not ended. */
void waits_visit_longest(struct profile_longest *longest);

/* Calls add() for each process that has not ended: the sums of its threads so far. */
void waits_visit_running(report_add_fn *add);

/* view.c: calls visit() with each call chain. Those of sleeps in system calls have weight. */
void waits_visit_chains(report_chain_fn *visit);

struct wait_lost {
	u64 nr, cycles; /* waits that had no room */
	u64 nr_wakers;	/* wake-ups whose waker had no room */
};
struct wait_lost waits_read_lost(void);

/* view.c: adds up waits, one row for each value of a view's key. */
#define WAIT_MAX_ROWS 512

struct wait_row {
	/* The key, compared whole: from here to comm. Members that a view does not use are 0. */
	const char *name;
	u64 addr;
	u64 where;	   /* start of the kernel function that waited; 0: unknown */
	u64 waker;	   /* start of the function that woke it; 0: none */
	u64 waker_comm[2]; /* its name; the threads of a program that have it are one row */
	u64 call;
	u64 process;
	u64 comm[2];
	/* The sums. */
	u64 nr;
	u64 nr_in_flight; /* of them, not ended */
	u64 asleep_cycles, ready_cycles;
	u64 max_cycles;
	u64 most_cycles;		/* of one record */
	const struct wait_record *most; /* that record; NULL: none has ended */
};

struct wait_view {
	u64 nr, asleep_cycles, ready_cycles; /* of all records in scope */
	u64 nr_in_flight;		     /* how many of them have not ended */
	u64 nr_dropped;			     /* in no row, because the table is full */
	u32 nr_rows;
	u16 slots[ROWS_SLOTS(WAIT_MAX_ROWS)];
	struct wait_row rows[WAIT_MAX_ROWS];
};
extern struct wait_view wait_view; /* of the one reader */

/*
 * Fills in the key of a record's row, which is zeroed. Returns false if the view omits the record.
 */
typedef bool wait_key_fn(const struct wait_record *rec, struct wait_row *key);
wait_key_fn wait_by_reason;		 /* what was waited for, where, and who woke */
wait_key_fn wait_by_reason_of_processes; /* the same, without kernel threads */
wait_key_fn wait_by_call;		 /* the system call, or a name outside of all calls */
wait_key_fn wait_by_task;		 /* process and name of the thread */
wait_key_fn wait_by_lock;		 /* kernel locks by name, users' by process and address */
wait_key_fn wait_by_spinlock;		 /* spinlocks by name, and the function that spun */

/*
 * Makes a view of the pinned waits and those that have not ended, of one process or, if proc is
 * NULL, of all threads. Sorts it by time, longest first.
 */
void waits_make_view(os_process_t *proc, wait_key_fn *key_of);
/*
 * Makes several views in one pass, so that their totals are those of one moment. wait_view is the
 * first one; each waits_next_view() replaces it by the next one.
 */
#define WAIT_MAX_VIEWS 4
void waits_make_views(os_process_t *proc, wait_key_fn *const *keys, u32 nr);
void waits_next_view(void);

/* report.c */
void report_print_waits(const struct report *report);
/* Prints the table of a live process; if wide, also those by system call, by task and by lock. */
void report_print_process_waits(os_process_t *proc, bool wide);
struct table;
void report_begin_waits(const struct table *table, const struct report *report, const char *title);
void report_end_waits(u32 times_column);
/* Copies what a row's threads waited for. proc is the process of the row's address, or NULL. */
void report_wait_name(const struct wait_row *row, os_process_t *proc, char *text, size_t size);
/* Copies the variable at a user's address, and its file. Returns false if none is known. */
bool report_wait_object(u32 code_map, u64 addr, char *text, size_t size);
/* Returns the name of the function at addr, in text, or "-". */
const char *report_wait_function(u64 addr, char *text, size_t size);
/*
 * Copies the innermost user function of a record's call chain, and its caller: "a < b"; or "".
 * Leaves out inner functions of the C library, but not what the program has called.
 */
void report_wait_user_functions(const struct wait_record *rec, char *text, size_t size);
/* Copies the innermost function of the program itself in a record's call chain; or "". */
void report_wait_own_function(const struct wait_record *rec, char *text, size_t size);
/* Copies the function and the thread that woke a row's threads. */
void report_wait_waker(const struct wait_row *row, char *text, size_t size);
/* Copies the name of a thread in printable form. */
void report_wait_comm(char text[17], const u64 comm[2]);
/*
 * Appends a call chain to a line, innermost function first, without the scheduler's functions.
 * Returns the line's new length.
 */
size_t report_add_wait_chain(char *line, size_t size, size_t len, const struct wait_record *rec,
			     bool with_kernel);
/*
 * Prints each record's call chain, folded, and its nanoseconds; with_wakers adds the waker's chain.
 * Waits that have not ended have only the kernel's part of the chain.
 */
void report_print_wait_stacks(bool with_wakers);

/* report_records.c: prints all records, for JSON only. */
void report_print_wait_records(void);

/* report_views.c: print wait_view, which is by system call, by task, by lock, or by spinlock. */
typedef void wait_view_print_fn(const struct report *report);
wait_view_print_fn report_print_wait_calls, report_print_wait_tasks, report_print_wait_locks,
	report_print_spinlocks;
/* Makes a view of all waits, and prints its table. */
void report_print_wait_view(wait_view_print_fn *print, wait_key_fn *key_of);

#endif
