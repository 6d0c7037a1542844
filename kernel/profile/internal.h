/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_INTERNAL_H
#define PROFILE_INTERNAL_H

/*
 * What the files of kernel/profile/ share. Data flows event -> table -> snapshot (here) ->
 * report.c.
 */

#include "os.h"

#include <lego/profile.h>

/*
 * The lock of what a snapshot is taken of. In a panic its holder is stopped and will never let
 * go: look at what is there.
 */
static inline unsigned long snapshot_lock(os_lock_t *lock, bool *locked)
{
	*locked = !os_panicking();
	return *locked ? os_lock(lock) : 0;
}

static inline void snapshot_unlock(os_lock_t *lock, bool locked, unsigned long flags)
{
	if (locked)
		os_unlock(lock, flags);
}

/*
 * strace_table.c: a sparse table from system call number to counters. index[] leads from a
 * number to its row; rows sit in chunks that never move, so that a reader may walk them while
 * the owner adds one. The first chunk is in the map itself: a thread with up to 16 different
 * calls costs one allocation.
 */
#define STRACE_NR_INDEXED  512 /* numbers found through index[] */
#define STRACE_MAX_UNKNOWN 64  /* rows for numbers beyond */
#define STRACE_MAX_ROWS	   (STRACE_NR_INDEXED + STRACE_MAX_UNKNOWN)
#define STRACE_SPILL_NR	   ((u64)-NR_PROFILE_SPILLS) /* and up: stand for spill rows */
#define STRACE_CHUNK_ROWS  16
#define STRACE_MAX_CHUNKS  (STRACE_MAX_ROWS / STRACE_CHUNK_ROWS)

struct profile_syscall_map {
	u16 index[STRACE_NR_INDEXED]; /* row number + 1; 0: none */
	u32 nr_rows;		      /* published last, with release */
	u32 nr_unknown;
	u32 nr_chunks;
	struct profile_syscall_row *chunks[STRACE_MAX_CHUNKS];
	struct profile_syscall_row first[STRACE_CHUNK_ROWS];
};

static inline struct profile_syscall_row *strace_map_row(const struct profile_syscall_map *map,
							 u32 i)
{
	return &map->chunks[i / STRACE_CHUNK_ROWS][i % STRACE_CHUNK_ROWS];
}

/* An all-zero map made usable. */
void strace_map_init(struct profile_syscall_map *map);

/*
 * The row of nr, added (and the table grown) if need be; a spill row when that fails. Never
 * NULL.
 */
struct profile_syscall_row *strace_table_row(struct profile_syscall_table *table, u64 nr);

/* Add src's counters to nr's row of table. */
void strace_table_add(struct profile_syscall_table *table, const struct profile_syscall_row *src);

/* Forget all counters; memory stays. */
void strace_table_clear(struct profile_syscall_table *table);

/* Move all of src's counters to dst; src ends up empty and without memory. */
void strace_table_fold(struct profile_syscall_table *dst, struct profile_syscall_table *src);

/* Give the memory back. */
void strace_table_free(struct profile_syscall_table *table);

/* A copy of one process's counters, calls in flight with their time so far. */
struct strace_entry {
	u64 nr;
	const char *name; /* NULL: sys_<nr> */
	u64 nr_calls;
	u64 nr_errors;
	u64 ns;
};

struct strace_snapshot {
	int pid;
	u32 nr_accumulated_threads;
	u64 nr_backwards;
	u32 nr_entries;
	struct strace_entry entries[STRACE_MAX_ROWS + NR_PROFILE_SPILLS];
};

/* strace.c; the lock is for its own functions, and for tests that hold it. */
extern os_lock_t strace_lock;
void strace_snapshot_process(struct profile_process *pp, struct strace_snapshot *snap);
/* The oldest live process younger than *serial (moved on); false when there is none. */
bool strace_snapshot_next(u64 *serial, struct strace_snapshot *snap);
void strace_process_free(struct profile_process *pp);
void strace_reset(void);

/* heatmap.c: samples by function, the rest by what the CPU was doing. */
#define HEATMAP_MAX_ENTRIES 4096

enum heat_class {
	HEAT_USER,
	HEAT_KERNEL,
	HEAT_IRQ,
	HEAT_IDLE,
	NR_HEAT_CLASSES,
};

struct heat_entry {
	u64 addr; /* the function's, or the sample's own without one */
	const char *name;
	u64 nr;
};

struct heat_snapshot {
	u64 nr_class[NR_HEAT_CLASSES]; /* their sum is all ticks */
	u64 nr_dropped;		       /* not user, and in no entry */
	u64 nr_due;	/* ticks that a timer which is never held up would have given */
	u64 nr_missed;	/* of them, summed up over CPUs */
	u32 nr_entries; /* user samples are an entry, too */
	struct heat_entry entries[HEATMAP_MAX_ENTRIES + 1];
};

void heatmap_snapshot(struct heat_snapshot *snap);

/* sample.c: per-CPU store of exact program counters. */
#define SAMPLE_SLOTS_LOG2 12
#define SAMPLE_SLOTS	  (1u << SAMPLE_SLOTS_LOG2)
#define SAMPLE_MAX_PROBES 64

struct sample_slot {
	u64 pc;
	u64 nr; /* 0: free */
};

struct sample_snapshot {
	u64 nr_class[NR_HEAT_CLASSES];
	struct sample_slot slots[SAMPLE_SLOTS];
};

/* Count one tick of the running CPU, and its pc unless it was in user mode. Interrupts are off. */
void sample_add(enum heat_class class, u64 pc);
void sample_init(void);
void sample_reset(void);
/* Ticks each CPU should have had since the last reset. */
u64 sample_nr_due(void);
/* Moves on with each reset. */
u64 sample_current_epoch(void);
/* One CPU's samples; false when it has none since the last reset. */
bool sample_snapshot_cpu(unsigned int cpu, struct sample_snapshot *snap);

/* point.c */
#define POINTS_MAX_ENTRIES 256

struct point_entry {
	const char *name;
	u32 serial; /* in link order */
	bool enabled;
	bool sleeps; /* oncpu_ns is known */
	u64 nr;
	u64 nr_backwards;
	u64 nr_migrated;
	u64 nr_unmatched;
	u64 ns;
	u64 net_ns; /* less what nr empty pairs read as */
	u64 oncpu_ns;
	u64 min_ns;
	u64 max_ns;
	u64 p50_ns; /* bounds: that many pairs took no longer */
	u64 p99_ns;
	u64 nr_log2[PROFILE_POINT_BUCKETS];
};

struct point_snapshot {
	u64 empty_pair_ns;    /* what an empty pair costs */
	u64 empty_reading_ns; /* and what it reads as */
	u32 nr_not_shown;
	u32 nr_entries;
	struct point_entry entries[POINTS_MAX_ENTRIES];
};

/* Process context: they patch code. Points are off after points_init(). */
void points_init(bool ordered);
void points_switch(const char *pattern, bool on);
void points_toggle(void); /* all off if any is on, else all on */

void points_reset(void);
void points_snapshot(struct point_snapshot *snap);

/* "on <name>" and "off <name>", a line for each; the length, cut at size. */
size_t points_list(char *buf, size_t size);

/* control.c: profile.points=, /proc/profile/points, sysrq o. */
void control_init(void);

/* report.c: sort the copy and print it. */
#define REPORT_TOP_ALL 0xffffffffu

void report_print_strace(struct strace_snapshot *snap);
void report_print_heatmap(struct heat_snapshot *snap, u32 top);
/* wide: more columns; histogram: a line for each bucket in use, too. */
void report_print_points(struct point_snapshot *snap, bool wide, bool histogram);

/* part / total in hundredths of a percent, rounded half up; part <= total. 0 when total is 0. */
u32 report_percent(u64 part, u64 total);

/* Rounded up; 0 when n is 0. */
u64 report_usecs_per_call(u64 ns, u64 n);
u64 report_avg_ns(u64 ns, u64 n);

#endif
