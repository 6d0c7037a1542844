/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_WAITS_H
#define PROFILE_WAITS_H

/*
 * Where threads wait, for what, and who wakes them. Hooks in schedule() and task_wake() take the
 * times and call record.c, which adds each wait to a record of the CPU's store (store.c). view.c
 * adds records up; report.c prints them.
 */

#include "../off_time.h"
#include "../report.h"

#include <lego/stack_walk.h>

#define WAIT_MAX_DEPTH	48
#define WAIT_PID_BITS	24
#define WAIT_NAME_BYTES 128

enum wait_kind {
	WAIT_SLEPT,	/* asleep, then ready */
	WAIT_PREEMPTED, /* ready all the time */
	WAIT_SPUN,	/* on its CPU, for a spinlock */
	WAKER_THREAD,
	WAKER_INTERRUPT,
};

/*
 * Waits that are alike in all but time, or wake-ups by one waker: how many there are, and what they
 * have in common. Only its CPU writes to it; a record never moves.
 */
struct wait_record {
	u64 nr;
	u64 asleep_cycles; /* from leaving the CPU to the wake-up; the rest of a waker's are 0 */
	u64 ready_cycles;  /* from there to running again */
	u64 max_cycles;	   /* the longest of both together */
	/* The key, compared whole: from here to the last of pcs. */
	u64 process; /* wait_process_number(); 0: a kernel thread, or an interrupt */
	u64 comm[2];
	u64 code_map;			 /* os_task_code_map() */
	const struct wait_record *waker; /* NULL: preempted, or not known */
	const char *name;		 /* what was waited for; NULL: not said */
	u64 addr;			 /* in the user's memory, or 0 */
	union {
		struct {
			u16 syscall;
			u8 kind;
			u8 unused;
			u8 nr_kernel, nr_user; /* from here on: STACK_COUNTS() */
			u8 truncated;	       /* enum stack_truncation */
			u8 replayable;	       /* enum stack_replay */
		};
		u64 context; /* all of these */
	};
	u64 pcs[]; /* nr_kernel, then nr_user; innermost first */
};

/* store.c: memory, and readers. */
void waits_init(void);
void waits_reset(void);
/* Waits that have begun are counted from now on. */
void waits_restart_since(void);

extern struct profile_off_time waits_off_time;

/*
 * Keeps the records from being dropped until waits_unpin(), for one reader at a time. Any context
 * but NMI.
 */
void waits_pin(void);
void waits_unpin(void);
/* A CPU's records: start with NULL; NULL behind the last one. */
const struct wait_record *waits_next(unsigned int cpu, const struct wait_record *rec);

struct wait_counts {
	u64 nr, asleep_cycles, ready_cycles, max_cycles;
};
/*
 * Copies a record's counters as they were at one time. A record of waits_visit_in_flight() is read
 * without this.
 */
struct wait_counts waits_read(unsigned int cpu, const struct wait_record *rec);

/* in_flight.c: processes, and threads with a waits_process, are known to it. */
extern os_lock_t waits_lock; /* guards their lists */
void waits_add_process(struct profile_process *pp);
void waits_remove_process(struct profile_process *pp);
void waits_add_task(struct profile_task *pt);
/* Adds the thread's context switches to those of its process, too. */
void waits_remove_task(struct profile_task *pt);
/* record.c: see struct profiler. */
bool waits_add_fault_cycles(const struct profile_task *pt, u64 exec_cycles, u64 *cycles);
typedef void wait_visit_fn(unsigned int cpu, const struct wait_record *rec);
/*
 * Calls visit() with a record of each wait that has not ended, of one process or, with NULL, of
 * all, and the CPU that the thread was on or is to run on. The record is gone when visit() returns.
 * Its waker, if it has one, is pinned by the caller.
 */
void waits_visit_in_flight(os_process_t *proc, wait_visit_fn *visit);

struct wait_lost {
	u64 nr, cycles;
};
struct wait_lost waits_read_lost(void);

/* Tells a process from all others, older ones with its pid included. Its pid is in the low bits. */
static inline u64 wait_process_number(os_process_t *proc)
{
	return os_process_profile(proc)->key_floor >> 8 << WAIT_PID_BITS |
	       (u32)os_process_pid(proc);
}

static inline u32 wait_pid(u64 process_number)
{
	return process_number & (PF_BIT(WAIT_PID_BITS) - 1);
}

/* view.c: waits added up, one row for each value of a view's key. */
#define WAIT_MAX_ROWS 512

struct wait_row {
	/* The key, compared whole: from here to comm. What a view does not tell apart is 0. */
	const char *name; /* NULL: free */
	u64 addr;
	u64 where; /* start of the kernel's function that waited; 0: not known */
	u64 waker; /* start of the function that woke it; 0: none */
	u64 waker_process;
	u64 waker_comm[2];
	u64 call;
	u64 process;
	u64 comm[2];
	/* What has been added up. */
	u64 nr;
	u64 nr_in_flight; /* of them, not ended */
	u64 asleep_cycles, ready_cycles;
	u64 max_cycles;
	u64 most_cycles;		/* of one record */
	const struct wait_record *most; /* that record; NULL: none has ended */
};

struct wait_view {
	u64 nr, asleep_cycles, ready_cycles; /* of all records in scope */
	u64 nr_in_flight;		     /* waits of them that have not ended */
	u64 nr_dropped;			     /* in no row: the table is full */
	u32 nr_rows;
	struct wait_row rows[WAIT_MAX_ROWS];
};
extern struct wait_view wait_view; /* of the one reader */

/* Sets the key of a record's row, which is all 0. Returns false if the view leaves it out. */
typedef bool wait_key_fn(const struct wait_record *rec, struct wait_row *key);
wait_key_fn wait_by_reason;   /* what was waited for, where, and who woke */
wait_key_fn wait_by_call;     /* the system call; the name stands for it outside of all calls */
wait_key_fn wait_by_task;     /* process and thread's name */
wait_key_fn wait_by_lock;     /* locks of the kernel by name, users' by process and address */
wait_key_fn wait_by_spinlock; /* and by where: of the time that CPUs have spun */

/*
 * Makes the view of the waits that are pinned, and of those in flight, of one process or, with
 * NULL, of all threads: the longest sums first.
 */
void waits_make_view(os_process_t *proc, wait_key_fn *key_of);

/* report.c */
void report_print_waits(const struct report *report);
/* Prints the table of a process that lives; wide: and those by system call, by task and by lock. */
void report_print_process_waits(os_process_t *proc, bool wide);
struct table;
void report_begin_waits(const struct table *table, const struct report *report, const char *title);
void report_end_waits(u32 times_column);
/* Copies what a row's threads waited for; proc: whose memory its address is in, or NULL. */
void report_wait_name(const struct wait_row *row, os_process_t *proc, char *text, size_t size);
/* Returns the name of a function, which text has room for, or "-". */
const char *report_wait_function(u64 addr, char *text, size_t size);
/* Copies who woke a row's threads: the function, and the thread. */
void report_wait_waker(const struct wait_row *row, char *text, size_t size);
/* Copies a name of a thread, as it is printed. */
void report_wait_comm(char text[17], const u64 comm[2]);
/*
 * Prints each record's call chain, folded, and its nanoseconds; with_wakers: and its waker's. Waits
 * that have not ended have the kernel's part of the chain.
 */
void report_print_wait_stacks(bool with_wakers);

/* report_records.c: prints all records, for JSON only. */
void report_print_wait_records(void);

/* report_views.c: by system call, by task, and by lock. */
typedef void wait_view_print_fn(const struct report *report);
wait_view_print_fn report_print_wait_calls, report_print_wait_tasks, report_print_wait_locks,
	report_print_spinlocks;
/* Prints one of them with all waits. */
void report_print_wait_view(wait_view_print_fn *print);

#endif
