/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_STRACE_H
#define PROFILE_STRACE_H

/* What strace_*.c share; internal.h includes it. */

#include <lego/profile_syscall.h>

#ifdef CONFIG_PROFILE_STRACE_DETAIL
#define STRACE_HAS_DETAIL 1
#else
#define STRACE_HAS_DETAIL 0
#endif

/*
 * strace_table.c: a sparse table from system call number to counters, in one piece of memory. Rows
 * grow up behind the head, errors by number down from the end; when they meet, a table of twice the
 * size takes over.
 */
#define STRACE_MAX_UNKNOWN 64 /* rows for numbers beyond the index */
#define STRACE_MAX_ROWS	   (PROFILE_NR_INDEXED + STRACE_MAX_UNKNOWN)
#define STRACE_FIRST_BYTES (STRACE_HAS_DETAIL ? 4096u : 2048u)
#define STRACE_MAX_BYTES   (256u << 10)

struct profile_syscall_table {
	u16 index[PROFILE_NR_INDEXED]; /* where a row is, in units; 0: none; first of all */
	u32 size_bytes;
	u32 rows_end;	  /* offset */
	u32 errors_begin; /* offset; lowered with release: a thread's own table has no lock */
	u16 nr_unknown;
	bool fixed; /* cannot grow */
};

/* How often a row's call failed in one way. */
struct strace_error {
	u64 nr;
	u32 row; /* its offset */
	u32 error;
};

BUILD_BUG_ON(sizeof(struct profile_syscall_table) % PROFILE_INDEX_UNIT);
BUILD_BUG_ON(sizeof(struct profile_syscall_row) % PROFILE_INDEX_UNIT);
BUILD_BUG_ON(STRACE_MAX_BYTES / PROFILE_INDEX_UNIT > 1 << 16);

static inline struct profile_syscall_row *strace_row_at(const struct profile_syscall_table *table,
							u32 offset)
{
	return (struct profile_syscall_row *)((char *)table + offset);
}

static inline struct strace_error *strace_error_at(const struct profile_syscall_table *table,
						   u32 offset)
{
	return (struct strace_error *)((char *)table + offset);
}

#define for_each_strace_row(at, table)                                              \
	for (u32 at = sizeof(struct profile_syscall_table); at < (table)->rows_end; \
	     at += sizeof(struct profile_syscall_row))

static inline u64 strace_row_off_cycles(const struct profile_syscall_row *row)
{
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	return row->off_cycles;
#else
	(void)row;
	return 0;
#endif
}

static inline u64 strace_row_max_cycles(const struct profile_syscall_row *row)
{
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	return row->max_cycles;
#else
	(void)row;
	return 0;
#endif
}

/* Calls in the histogram. */
u64 strace_row_nr_ended(const struct profile_syscall_row *row);

/* An empty table of so many bytes at least sizeof(*table), zeroed. */
void strace_table_init(struct profile_syscall_table *table, u32 size_bytes);

/*
 * The row of nr, added if need be; the table is made, or another one takes over, if need be. NULL:
 * *why says why not. strace_lock is held.
 */
struct profile_syscall_row *strace_table_row(struct profile_syscall_table **table, u64 nr,
					     enum profile_overflow *why);

/* Twice the size; nothing happens when there is no memory. strace_lock is held. */
void strace_table_grow(struct profile_syscall_table **table);

/* Count a row's error. False: there is no room. By the owner. */
bool strace_table_add_error(struct profile_syscall_table *table,
			    const struct profile_syscall_row *row, u32 error, u64 nr);

/* Forget all counters; memory stays. */
void strace_table_clear(struct profile_syscall_table *table);

/*
 * Add counters of a row, and of a table's errors, that a reader has copied or that nobody changes.
 */
void strace_sum_add_row(struct profile_syscall_sum *sum, const struct profile_syscall_row *row);
void strace_sum_add_errors(struct profile_syscall_sum *sum,
			   const struct profile_syscall_table *table);
void strace_add_overflow(struct profile_overflow_row *dst, const struct profile_overflow_row *src);
/* All of a sum that nobody else changes. */
void strace_sum_add(struct profile_syscall_sum *sum, const struct profile_syscall_sum *src);

/* Move all counters of a table, or of a sum, to sum; what they were is empty and has no memory. */
void strace_sum_fold_table(struct profile_syscall_sum *sum, struct profile_syscall_table **table);
void strace_sum_fold(struct profile_syscall_sum *sum, struct profile_syscall_sum *src);
void strace_sum_clear(struct profile_syscall_sum *sum);
void strace_sum_free(struct profile_syscall_sum *sum);

/* strace.c. The lock is for strace_*.c, and for tests that hold it. */
extern os_lock_t strace_lock;
extern struct profile_process *strace_processes; /* youngest first */
extern struct profile_syscall_sum strace_gone;	 /* of processes that are gone */
extern u64 strace_nr_gone;

#ifdef CONFIG_PROFILE_STRACE
static inline bool strace_in_flight(const struct profile_task *pt)
{
	return READ_ONCE(pt->seq) & 1;
}

/* os_off_cycles() of the thread when its call in flight began; 0 without one. */
static inline u64 strace_start_off_cycles(const struct profile_task *pt)
{
	if (!STRACE_HAS_DETAIL || !strace_in_flight(pt))
		return 0;
	return (pt->row ? strace_row_off_cycles(pt->row) : 0) - pt->base_off_cycles;
}
#endif

/* Wall time, and time off a CPU, of the call in flight until now. strace_lock, or panic. */
void strace_flight_cycles(const struct profile_task *pt, u64 now_cycles, u64 *cycles,
			  u64 *off_cycles);

/* The thread's next hooks take the slow path. strace_lock is held. */
void strace_notify(struct profile_task *pt);

/* The owner's end of a call of so many cycles; error: a positive errno, 0: none. */
void strace_end_call(struct profile_task *pt, struct profile_syscall_row *row, u64 cycles,
		     u32 error);
void strace_end_overflow(struct profile_task *pt, enum profile_overflow why, u64 cycles, u32 error);

/* A new task, zeroed: a part of profile_task_init(). */
void strace_task_init(struct task *task);

/* The last thread is gone and its exit is reported: the table stays until it is released. */
void strace_process_ended(struct profile_process *pp);

/* strace_restart.c: interrupted calls of the current thread. strace_lock is held. */
enum restart_state {
	RESTART_UNDECIDED, /* has returned -ERESTART<something> */
	RESTART_WAITS,	   /* a handler runs */
	RESTART_NEXT,	   /* is the thread's next call */
};

bool strace_is_restart(long ret);
void strace_push_restart(struct profile_task *pt, u64 nr, u64 cycles);
/* Take the one that goes on with call nr. False: there is none. */
bool strace_pop_restart(struct profile_task *pt, u64 nr, struct profile_restart *restart);
/* They will not go on. */
void strace_end_restarts(struct profile_task *pt);

/* strace_control.c */
extern u64 strace_off_since_cycles; /* 0: counting is switched on */
void strace_reset(void);
void strace_reset_process(struct profile_process *pp);
void strace_switch(bool on); /* process context */
void strace_switch_process(struct profile_process *pp, bool on);
void strace_control_init(void);

/* A copy of the counters, calls in flight with their time so far: strace_snapshot.c. */
#define STRACE_MAX_ERRORS 1024

struct strace_entry {
	u64 nr;
	const char *name; /* NULL: sys_<nr> */
	u64 nr_calls;
	u64 nr_errors;
	u64 ns;
	u64 cpu_ns;
	u64 max_ns;
	u64 p50_ns; /* bounds: that many calls took no longer; 0: none has ended, or not known */
	u64 p99_ns;
	u64 nr_in_flight;
	u32 first_error; /* in errors[] */
	u32 nr_error_kinds;
};

struct strace_error_entry {
	u64 nr;
	u32 error;
};

struct strace_totals {
	u64 nr_calls;
	u64 nr_errors;
	u64 ns;
};

struct strace_snapshot {
	int pid;
	u32 nr_accumulated_threads;
	u64 nr_backwards;
	u64 nr_unfollowed;
	struct strace_totals before;   /* the last execve */
	struct strace_totals children; /* waited for, and theirs */
	u32 nr_children;
	u32 nr_entries;
	u32 nr_errors;
	struct strace_entry entries[STRACE_MAX_ROWS + NR_PROFILE_OVERFLOWS];
	struct strace_error_entry errors[STRACE_MAX_ERRORS];
};

#define STRACE_OVERFLOW_NR ((u64)-NR_PROFILE_OVERFLOWS) /* and up: stand for overflow rows */

/* Processes, for the table of the whole system. */
#define STRACE_MAX_PROCESSES 512

struct strace_process_entry {
	int pid; /* 0: no single process */
	char name[32];
	u32 nr_threads;
	u64 nr_calls;
	u64 nr_errors;
	u64 ns;
	u64 cpu_ns;
};

struct strace_system_snapshot {
	u32 nr_entries;
	struct strace_process_entry entries[STRACE_MAX_PROCESSES + 2];
};

void strace_snapshot_process(struct profile_process *pp, struct strace_snapshot *snap);

/* What the process ran before its execve, and its children, are in the rows, too. */
void strace_snapshot_family(struct profile_process *pp, struct strace_snapshot *snap);

/* All processes there are and were. The rows are the same calls, by call and by process. */
void strace_snapshot_system(struct strace_snapshot *snap, struct strace_system_snapshot *system);

/* The oldest live process younger than *serial (moved on); false when there is none. */
bool strace_snapshot_next(u64 *serial, struct strace_snapshot *snap);

/* errno_name.c: ENOENT for 2; NULL: that number has none. */
const char *errno_name(u32 error);

#endif
