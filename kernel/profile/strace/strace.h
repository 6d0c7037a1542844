/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_STRACE_H
#define PROFILE_STRACE_H

/*
 * strace: statistics of the system calls of each process. Each thread counts its calls in a table
 * of its own (strace.c, table.c). When it ends, the table becomes that of its process, and a new
 * thread may go on with it; or its counts are added to the process. A report merges the tables into
 * a copy (reader.c, snapshot.c), makes rows of it (entries.c) and prints them (report.c). live/
 * prints calls as they happen. All these files share this header.
 */

#include "../off_time.h"
#include "../report.h"
#include "../process_lists.h"
#include "os.h"

#include <profile/syscall.h>

#ifdef CONFIG_PROFILE_STRACE_DETAIL
#define STRACE_HAS_DETAIL 1
#else
#define STRACE_HAS_DETAIL 0
#endif
#define STRACE_HAS_CPU_TIME (STRACE_HAS_DETAIL && OS_HAS_EXEC_CYCLES)

/*
 * table.c: a table of counters by system call number, in one block of memory: a header, a row for
 * each number that was called, and a hash of errors at the end. When the rows reach the hash, or
 * when both buckets of an error are full, a table of twice the size replaces it.
 */
#define STRACE_MAX_UNKNOWN   64 /* rows for numbers beyond the index, and one for all others */
#define STRACE_MAX_ROWS	     (PROFILE_NR_INDEXED + STRACE_MAX_UNKNOWN + 1)
#define STRACE_FIRST_BYTES   (STRACE_HAS_DETAIL ? 4096u : 2048u)
#define STRACE_MAX_BYTES     (256u << 10)
#define STRACE_SPARE_BYTES   (2 * STRACE_FIRST_BYTES) /* the maximum size of a spare table */
#define STRACE_NR_SPARES     16
#define STRACE_MAX_ERRORS    1024 /* slots of the hash, at most */
#define STRACE_ERROR_BUCKET  4
#define STRACE_UNKNOWN_CACHE 16

struct strace_snapshot;

struct profile_syscall_table {
	/*
	 * Offsets of rows, in units of PROFILE_INDEX_UNIT; 0: no row. The hook expects index[] at
	 * the start of the table. unknown[] is a cache for numbers beyond index[], by their low
	 * bits.
	 */
	u16 index[PROFILE_NR_INDEXED];
	u16 unknown[STRACE_UNKNOWN_CACHE];
	u32 size_bytes;
	u32 rows_end;	/* an offset */
	u32 errors_at;	/* the offset of the hash */
	u32 error_mask; /* reduces a hash value to the offset of a bucket */
	u16 nr_errors;	/* slots in use */
	u16 nr_unknown;
	u16 others;	      /* the row of further numbers beyond index[], as in it; 0: none */
	bool fixed : 1;	      /* the table cannot grow */
	bool errors_full : 1; /* growing for an error has failed: do not try again */
	bool of_many : 1;     /* the times of several tables: maybe more than the time since boot */
};

/* A slot of the hash: how often the call of a row failed with one error. */
struct strace_error {
	u64 key; /* error << 32 | offset of the row; 0: a free slot. Stored last, with release. */
	u64 nr;
};

PF_BUILD_BUG_ON(sizeof(struct profile_syscall_table) % PROFILE_INDEX_UNIT);
PF_BUILD_BUG_ON(sizeof(struct profile_syscall_row) % PROFILE_INDEX_UNIT);
PF_BUILD_BUG_ON(STRACE_MAX_BYTES / PROFILE_INDEX_UNIT > 1 << 16);

static inline struct profile_syscall_row *strace_row_at(const struct profile_syscall_table *table,
							u32 offset)
{
	return (struct profile_syscall_row *)((char *)table + offset);
}

/* Returns the offset of the row of further numbers beyond index[]; 0: there is none. */
static inline u32 strace_others_at(const struct profile_syscall_table *table)
{
	return table->others * PROFILE_INDEX_UNIT;
}

#define for_each_strace_error(error, table)                                         \
	for (struct strace_error *error =                                           \
		     (struct strace_error *)((char *)(table) + (table)->errors_at); \
	     error < (struct strace_error *)((char *)(table) + (table)->size_bytes); error++)

static inline u32 strace_error_row(u64 key)
{
	return (u32)key;
}

static inline u32 strace_error_number(u64 key)
{
	return key >> 32;
}

static pf_always_inline bool strace_slot_is_for(const struct strace_error *slot, u64 key)
{
	return slot->key == key || !slot->key;
}

/*
 * Returns the slot of a key in a bucket, or else a free slot, or else NULL. Unrolled, because every
 * failing call runs it.
 */
static pf_always_inline struct strace_error *strace_error_slot(char *bucket, u64 key)
{
	struct strace_error *slot = (struct strace_error *)bucket;

	PF_BUILD_BUG_ON(STRACE_ERROR_BUCKET != 4);
	if (strace_slot_is_for(slot, key) || strace_slot_is_for(++slot, key) ||
	    strace_slot_is_for(++slot, key) || strace_slot_is_for(++slot, key))
		return slot;
	return NULL;
}

/*
 * Counts errors of a row. Called by the owner of the table. Returns the slot; NULL: both buckets
 * are full. Readers do not stop the owner, so it stores the key of a new slot last.
 */
static pf_always_inline struct strace_error *
strace_table_add_error(struct profile_syscall_table *table, const struct profile_syscall_row *row,
		       u32 error, u64 nr)
{
	u64 key = (u64)error << 32 | (u32)((char *)row - (char *)table);
	u64 hash = key * PF_HASH_FACTOR;
	char *buckets = (char *)table + table->errors_at;
	struct strace_error *slot;

	slot = strace_error_slot(buckets + (hash >> 40 & table->error_mask), key);
	if (pf_unlikely(!slot))
		slot = strace_error_slot(buckets + (hash >> 48 & table->error_mask), key);
	if (pf_unlikely(!slot))
		return NULL;
	pf_write_once(slot->nr, slot->nr + nr);
	if (pf_unlikely(!slot->key)) {
		table->nr_errors++;
		/* Pairs with the acquire in strace_sum_add_errors(): a key comes with its count. */
		pf_store_release(&slot->key, key);
	}
	return slot;
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

/* Returns the number of calls in the histogram of a row: those that have ended. */
u64 strace_row_nr_ended(const struct profile_syscall_row *row);

/* Sets the spare row of a sum that is zeroed but for that row. */
static inline void strace_sum_set_spare(struct profile_syscall_sum *sum,
					struct profile_syscall_row *spare)
{
	spare->nr_calls = 0;
	pf_store_release(&sum->spare, spare);
}

/* Returns the spare row if it has calls, else NULL. A process that just begins has none. */
static inline struct profile_syscall_row *strace_sum_spare(const struct profile_syscall_sum *sum)
{
	struct profile_syscall_row *spare = pf_load_acquire(&sum->spare);

	return spare && pf_read_once(spare->nr_calls) ? spare : NULL;
}

/* Makes an empty table of zeroed memory. nr_error_slots is a power of two. */
void strace_table_init(struct profile_syscall_table *table, u32 size_bytes, u32 nr_error_slots);

/*
 * Returns the row of a system call number. Adds the row, and allocates or enlarges the table, if
 * necessary. Without memory this is the spare row. It is the row of others if there are too many
 * numbers beyond the index. Both rows have the last such number in nr.
 */
struct profile_syscall_row *strace_row(struct profile_syscall_sum *sum, u64 nr);

/*
 * Doubles the size of the table. With for_errors, most of the new memory goes to the hash. Does
 * nothing if there is no memory, or the table has its maximum size.
 */
void strace_table_grow(struct profile_syscall_table **table, bool for_errors);

/* Removes all counters. The memory stays. */
void strace_table_clear(struct profile_syscall_table *table);

/*
 * Returns a table that was used before, or NULL. It has rows of the calls that were made then: a
 * thread often makes the same ones, and even its first call of each then takes the fast path.
 */
struct profile_syscall_table *strace_table_take_spare(void);
void strace_free_spares(void);

/* Moves counters, which are those of a row of src or a copy of them, to the same row of sum. */
void strace_sum_add_row(struct profile_syscall_sum *sum, const struct profile_syscall_sum *src,
			const struct profile_syscall_row *row,
			struct profile_syscall_row *counters);
/* Adds the errors of src, by name, to sum. */
void strace_sum_add_errors(struct profile_syscall_sum *sum, const struct profile_syscall_sum *src);
/* Adds a whole sum to another one. */
void strace_sum_add(struct profile_syscall_sum *sum, const struct profile_syscall_sum *src);

/* Returns whether there is nothing beside the rows of the table, which is the usual case. */
static inline bool strace_sum_has_no_rest(const struct profile_syscall_sum *sum)
{
	return !strace_sum_spare(sum) &&
	       !(sum->returns.cycles | sum->nr_backwards | sum->nr_unfollowed | sum->nr_forks);
}

/* Moves all counters of src to sum. src is empty afterwards. */
void strace_sum_fold_any(struct profile_syscall_sum *sum, struct profile_syscall_sum *src);
static inline void strace_sum_fold(struct profile_syscall_sum *sum, struct profile_syscall_sum *src)
{
	if (src->table || !strace_sum_has_no_rest(src))
		strace_sum_fold_any(sum, src);
}
void strace_sum_clear(struct profile_syscall_sum *sum);
void strace_sum_free(struct profile_syscall_sum *sum);

/* Adds time between the end of a call and user mode. */
void strace_add_returns(struct profile_return_time *sum, const struct profile_return_time *add);

/* task.c: the state of a thread, as other threads see and change it. */
/* The calls of processes that are gone. Other processes have those of children waited for. */
extern struct profile_syscall_sum strace_gone;
extern u64 strace_nr_gone;			/* the number of these processes */
extern u64 strace_off_since_cycles;		/* 0: counting is on */
extern u32 strace_nr_resets;			/* the generation of all processes */
extern struct profile_off_time strace_off_time; /* how long counting was off */

/* An index without rows: every call of the thread takes the slow path. */
extern const u16 strace_no_rows[PROFILE_NR_INDEXED];

#ifdef CONFIG_PROFILE_STRACE
static inline bool strace_in_flight(const struct profile_task *pt)
{
	return pf_read_once(pt->strace.seq) & 1;
}

/* Returns whether the thread is between the end of a call and user mode. */
static inline bool strace_is_returning(const struct profile_task *pt)
{
	return (s64)pf_read_once(pt->strace.calls.returns.cycles) < 0;
}

/* Copies the start of what any thread is in. It may begin something else meanwhile. */
static inline struct profile_moment strace_start(const struct profile_task *pt)
{
	return (struct profile_moment){ pf_read_once(pt->strace.start.cycles),
					pf_read_once(pt->strace.start.off_cycles) };
}

/* Returns whether the call in flight ended, by a switch to off, before the last reset. */
static inline bool strace_is_over(const struct profile_task *pt)
{
	return pt->strace.to.cycles && (s64)(pt->strace.from.cycles - pt->strace.to.cycles) >= 0;
}

/*
 * Makes the next entry enlarge the table, because an error found no slot, unless that failed
 * before.
 */
static pf_always_inline void strace_ask_for_room(struct profile_task *pt)
{
	if (pt->strace.calls.table->errors_full)
		return;
	pt->strace.wants_room = true;
	pf_write_once(pt->strace.index, strace_no_rows);
}
#endif

/* Returns the time between two moments; 0 if the clocks of two CPUs differ, and it is negative. */
static inline struct profile_moment strace_span(struct profile_moment from,
						struct profile_moment to)
{
	s64 cycles = pf_max((s64)(to.cycles - from.cycles), (s64)0);
	s64 off_cycles = pf_max((s64)(to.off_cycles - from.off_cycles), (s64)0);

	return (struct profile_moment){ cycles, pf_min(off_cycles, cycles) };
}

/*
 * Return from and to which moment that counts which a thread is in, and which began at start: a
 * call, or its way back to user mode. lists_lock is held.
 */
struct profile_moment strace_from(const struct profile_task *pt, struct profile_moment start);
struct profile_moment strace_to(const struct profile_task *pt);

/* Makes the thread's next hooks take the slow path. lists_lock is held. */
void strace_notify(struct profile_task *pt);
/* The second parts of the next two functions. */
void strace_reset_process_late(struct profile_process *pp);
void strace_follow(struct profile_task *pt);
/*
 * Bring a process or task up to date with the last reset or switch, which may not have reached it
 * yet. Called before anything else is done with its counters, with lists_lock held.
 */
#ifdef CONFIG_PROFILE_STRACE
static inline void strace_catch_up_process(struct profile_process *pp)
{
	os_assert_held(&lists_lock);
	if (pf_unlikely(pp->strace.nr_system_resets != strace_nr_resets))
		strace_reset_process_late(pp);
}

static inline void strace_catch_up(struct profile_task *pt)
{
	strace_catch_up_process(pt->process);
	if (pf_unlikely(strace_off_since_cycles ||
			pt->strace.nr_resets != pt->process->strace.nr_resets))
		strace_follow(pt);
}

/* Lets the thread's calls take the fast path, if they are counted. lists_lock is held. */
static inline void strace_use_table(struct profile_task *pt)
{
	const struct profile_syscall_table *table = pt->strace.calls.table;

	os_assert_held(&lists_lock);
	pf_write_once(pt->strace.index,
		      table && !strace_off_since_cycles ? table->index : strace_no_rows);
}
#endif
/* Clears the sums of a process, and starts a new generation. lists_lock is held. */
void strace_reset_sums(struct profile_process *pp);
/* Starts a process's time off at zero, because its table begins now. */
void strace_begin_off_time(struct profile_process *pp);
/* Copies how long counting was off since the table of a process, or with NULL of all, began. */
void strace_off_snapshot(const struct profile_process *pp, struct strace_snapshot *snap);

/*
 * Counts the end of a call. cycles is its total time; error is a positive errno, or 0. Called by
 * the thread, with lists_lock held.
 */
void strace_end_call(struct profile_task *pt, struct profile_syscall_row *row, u64 cycles,
		     u32 error);

/*
 * strace.c: the second stage of the slow hooks, which may take lists_lock. See
 * profile_strace_enter_slow().
 */
void strace_enter_locked(void) os_saves_registers;
void strace_exit_slower(void) os_saves_registers;

/*
 * Called by the current thread with lists_lock held: end what it is in, because it exits; and move
 * all counters to process->before, except the execve in flight, the new program's first call.
 */
void strace_end_thread(struct profile_task *pt);
void strace_begin_program(struct profile_task *pt);

/*
 * Counts a call that has ended for the path in pt->path. Called by the thread, if has_path was set;
 * files/ sets both.
 */
struct strace_path_call {
	struct profile_moment time; /* wall time, and the part of it off a CPU */
	u32 error;		    /* a positive errno, or 0 */
};
extern void (*strace_count_path)(struct profile_task *pt, struct strace_path_call call);

/* The functions of the profiler: see struct profiler. */
void strace_process_init(struct profile_process *pp);
void strace_task_init(os_task_t *task);
void strace_task_exit(struct profile_task *pt);
void strace_shorten_wait(struct profile_task *pt, u64 cycles);
void strace_process_exec(struct profile_process *pp);
void strace_process_release(struct profile_process *pp);

/* restart.c: interrupted calls of the current thread. */
enum restart_state {
	RESTART_UNDECIDED, /* the call has returned an -ERESTART* code */
	RESTART_WAITS,	   /* a signal handler runs first */
	RESTART_NEXT,	   /* the thread's next call resumes it */
};

#define STRACE_FIRST_RESTART	   512
#define STRACE_LAST_RESTART	   516
#define STRACE_EINTR		   4
#define STRACE_NO_RESTART_OF_LINUX 515 /* ENOIOCTLCMD */

static inline bool strace_is_restart(long ret)
{
	return -ret >= STRACE_FIRST_RESTART && -ret <= STRACE_LAST_RESTART &&
	       -ret != STRACE_NO_RESTART_OF_LINUX;
}

#ifdef CONFIG_PROFILE_STRACE
/* Returns the row in which an interrupted call is counted. */
static inline struct profile_syscall_row *strace_restart_row(const struct profile_task *pt,
							     const struct profile_restart *restart)
{
	return restart->row ? strace_row_at(pt->strace.calls.table, restart->row) :
			      pt->strace.calls.spare;
}

/* Stores that row. */
static inline void strace_set_restart_row(const struct profile_task *pt,
					  struct profile_restart *restart,
					  const struct profile_syscall_row *row)
{
	restart->row = row == pt->strace.calls.spare ? 0 :
						       (char *)row - (char *)pt->strace.calls.table;
}
#endif

/* Remembers the call in flight, which took `cycles` so far, as interrupted. lists_lock is held. */
void strace_push_restart(struct profile_task *pt, u64 cycles);
/*
 * Removes the interrupted call that call nr resumes, and copies it to *restart. Returns false if
 * call nr is a new one. lists_lock is held.
 */
bool strace_pop_restart(struct profile_task *pt, u64 nr, struct profile_restart *restart);
/* Counts all interrupted calls as ended: none of them will be resumed. lists_lock is held. */
void strace_end_restarts(struct profile_task *pt);

/*
 * reader.c: let a report in progress read a task, a process, or the children of one, before their
 * counters move elsewhere. lists_lock is held.
 */
void strace_read_task(struct profile_task *pt);
/* Lets a report that has read the sums of the process leave out a new thread. */
void strace_skip_task(struct profile_task *pt);
void strace_read_process(struct profile_process *pp);
void strace_read_children(struct profile_process *pp);

/* control.c */
void strace_reset(void);
void strace_reset_process(struct profile_process *pp);
void strace_switch(bool on); /* process context */
void strace_control_init(void);

/*
 * Switches trace output: calls switch_key(on) at a moment when no hook can count a call that is
 * only to be printed. Process context.
 */
void strace_switch_shown(bool on, void (*switch_key)(bool on));

/* A row of a report. Calls in flight have their time so far. */
struct strace_entry {
	u64 nr;
	const char *name; /* NULL: the number has no name */
	u64 nr_calls;
	u64 nr_errors;
	u64 ns;
	u64 cpu_ns;
	u64 max_ns;
	u64 p50_ns; /* upper bounds; 0: no call has ended, or there is no histogram */
	u64 p99_ns;
	u64 nr_in_flight;
	u32 first_error; /* an index in errors[] */
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
	u64 cpu_ns; /* 0 without STRACE_HAS_CPU_TIME */
};

struct strace_snapshot {
	int pid;
	char name[32];
	u32 nr_accumulated_threads;
	u64 nr_backwards;
	u64 nr_unfollowed;
	u64 nr_forks, forked_bytes;
	struct off_snapshot off;
	struct strace_totals before;   /* calls before the last execve */
	struct strace_totals children; /* calls of children waited for and their children */
	u32 nr_children;
	u32 nr_entries;
	u32 nr_errors;
	struct strace_entry entries[STRACE_MAX_ROWS + 2];
	struct strace_error_entry errors[STRACE_MAX_ERRORS];
};

/* The numbers of rows that are not of one call. The last one has no calls: see strace.c. */
#define STRACE_OTHERS_NR ((u64)-1)
#define STRACE_SPARE_NR	 ((u64)-2)
#define STRACE_RETURN_NR ((u64)-3)

/* The table of processes. */
#define STRACE_MAX_PROCESSES 512

struct strace_process_entry {
	int pid; /* 0: the entry stands for several processes */
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

/*
 * reader.c: make snapshots for reports, one report at a time. Any context; in a panic they take no
 * lock. This one has the calls of a process since its last execve.
 */
void strace_snapshot_process(struct profile_process *pp, struct strace_snapshot *snap);

/* The same, including calls before execve and calls of children that were waited for. */
void strace_snapshot_family(struct profile_process *pp, struct strace_snapshot *snap);

/* Copies the calls of all processes, including those that are gone, by call and by process. */
void strace_snapshot_system(struct strace_snapshot *snap, struct strace_system_snapshot *system);

/*
 * Copies the calls of the next process that has not ended, oldest first. *serial is 0 at the first
 * call; the function updates it. Returns false if there are no more.
 */
bool strace_snapshot_next(u64 *serial, struct strace_snapshot *snap);

/*
 * snapshot.c: merges the tables of a report into one, with lists_lock held. strace_take_merged()
 * comes last, and needs no lock.
 */
void strace_clear_merge(void);
/*
 * Merges some rows of a thread, from offset *row on; 0 is the first row. Returns true at the end.
 * If there are more rows, sets *row to the next one and returns false.
 */
bool strace_merge_task(const struct profile_task *pt, u32 *row);
void strace_merge_sum(const struct profile_syscall_sum *sum);
/* Returns the totals, in ns, of what was merged since the last call of this function. */
struct strace_totals strace_take_totals(void);
void strace_take_merged(struct strace_snapshot *snap);
/* Returns the totals of one sum, in ns; the number of its calls alone. */
struct strace_totals strace_totals_of(const struct profile_syscall_sum *sum);
u64 strace_nr_calls(const struct profile_syscall_sum *sum);

/* entries.c: return the time on a CPU, in ns; make the rows of a report from a merged table. */
u64 strace_cpu_ns(u64 cycles, u64 off_cycles);
void strace_take_entries(struct strace_snapshot *snap, const struct profile_syscall_sum *merge);

/* findings.c: offers findings. Sorts the rows of the snapshot by CPU time. */
struct finding_scope;
void strace_find(const struct finding_scope *scope, struct strace_snapshot *snap);

/*
 * report.c: print the tables of calls and of processes. title says whose calls the table has; NULL:
 * those of the one process in snap. A wide table has all rows. Another one has the first `top`,
 * and a row that sums up the others.
 */
void report_print_strace(struct strace_snapshot *snap, u32 top, bool wide, const char *title);
void report_print_strace_processes(struct strace_system_snapshot *system);

/* errno_name.c: returns the name of an error, such as ENOENT for 2; NULL: it has none. */
const char *errno_name(u32 error);

#endif
