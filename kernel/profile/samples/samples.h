/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_SAMPLES_H
#define PROFILE_SAMPLES_H

/*
 * Samples: source.c triggers them, store.c stores them, store_read.c reads them, heatmap.c, view.c
 * and merge.c add them up, and report_*.c prints the results.
 */

#include "../off_time.h"
#include "../report.h"
#include "../rows.h"
#include "../stack_store.h"
#include "../user_symbols.h"
#include "os.h"

#include <profile/stack_walk.h>

/* The kind of code that a sample hit. */
enum heat_class {
	HEAT_USER,
	HEAT_KERNEL,
	HEAT_IRQ,
	HEAT_IDLE,
	NR_HEAT_CLASSES,
};

/* Why a sample is not in the store. */
#define SAMPLE_DROPS(X)                      \
	X(NESTED, "while another was taken") \
	X(NO_MEMORY, "no memory for them")   \
	X(HASH_FULL, "no slot within reach") \
	X(LOG_FULL, "log full")              \
	X(PINNED, "after a reset, while a report was being made")

#define SAMPLE_DROP_ENUM(name, text) DROP_##name,
enum sample_drop {
	SAMPLE_DROPS(SAMPLE_DROP_ENUM) NR_SAMPLE_DROPS
};
#undef SAMPLE_DROP_ENUM

#define SAMPLE_IRQS_ON PF_BIT(0)
#define SAMPLE_ENDED   PF_BIT(1) /* of processes that have ended: see store.c */
#define SAMPLE_NO_ROOM PF_BIT(2) /* its system call and its function had no room */

#define SAMPLE_MAX_DEPTH     PROFILE_STACK_MAX_DEPTH
#define SAMPLE_DEFAULT_DEPTH 32
#define SAMPLE_MIN_LOG	     (16ul << 10)
#define SAMPLE_MAX_LOG	     (2ul << 20)
#define SAMPLE_DEFAULT_LOG   (1ul << 20)

/* Samples that differ only in time: their common properties, and their number. */
struct sample_record {
	u64 nr;	       /* written by the record's CPU only */
	u64 nr_pinned; /* nr when the present report began */
	u64 nr_before; /* nr when the present session began: see session.c */
	/*
	 * These, code_map and comm are those of the first sample. Without a pid the record is of a
	 * kernel thread, of threads that had left their process, or of ended processes.
	 */
	u32 tid, pid;
	u64 code_map; /* os_task_code_map() */
	u64 comm[2];
	/* The key, compared whole: from here to the last of pcs. */
	union {
		u8 program;   /* os_process_program() */
		u64 task_key; /* os_task_key() */
	};
	union {
		struct {
			u16 syscall;
			u8 class;
			u8 flags;	       /* SAMPLE_* */
			u8 nr_kernel, nr_user; /* from here on: PROFILE_STACK_COUNTS() */
			u8 truncated;	       /* enum profile_stack_truncation */
			u8 replayable;	       /* enum profile_stack_replay */
		};
		u64 context; /* all of these */
	};
	u64 pcs[]; /* nr_kernel, then nr_user; innermost first */
};

#define RECORD_BYTES(nr) (sizeof(struct sample_record) + (nr) * sizeof(u64))

static inline u32 nr_pcs(const struct sample_record *rec)
{
	return rec->nr_kernel + rec->nr_user;
}

static inline u32 record_bytes(const void *rec)
{
	return RECORD_BYTES(nr_pcs(rec));
}

/* The kind of code that a late timer interrupt hit. source.c counts late and lost samples by it. */
enum late_kind {
	LATE_USER,
	LATE_KERNEL,
	LATE_IDLE,
	LATE_REPORT, /* the printing of a report: not part of any blind spot */
	NR_LATE_KINDS,
};

/* One CPU's deadlines since the last reset whose sample was late, or was not taken. */
struct source_counts {
	u64 late[NR_LATE_KINDS];      /* taken later than normal */
	u64 lost[NR_LATE_KINDS];      /* passed while an earlier one was late */
	u64 long_late[NR_LATE_KINDS]; /* late or lost by more than any return to user mode takes */
	u64 skip_cycles;	      /* time spent searching for the next deadline */
	u64 self;		      /* passed while the previous sample was taken */
};

/* One CPU's source at the time of a report. */
struct source_pin {
	u64 cycles;	 /* TSC at that time */
	u64 expected;	 /* deadlines that have passed since the reset, by the clock and the rate */
	u64 pending;	 /* expected deadlines that are lost, but not counted yet */
	u64 ahead;	 /* deadlines in counts.self that are in the future, and not expected yet */
	u64 nr_switches; /* how often it was switched on or off since the reset */
	struct source_counts counts;
};

/* One CPU's counters. Stored samples are counted in their records. */
struct sample_counts {
	u64 nr_attempts;
	u64 nr_dropped[NR_SAMPLE_DROPS][NR_HEAT_CLASSES];
	u64 self_cycles; /* spent on taking samples */
};

/* One CPU's samples in a report; attempts = stored + sum of drops. */
struct sample_stats {
	u64 nr_attempts;
	u64 nr_class[NR_HEAT_CLASSES];
	u64 nr_dropped[NR_SAMPLE_DROPS];
	u64 self_cycles; /* spent on taking samples */
	u64 nr_stored;
	s64 nr_unread; /* neither stored nor dropped: 0, or 1 if a panic interrupted it */
	u64 nr_later;  /* taken after the records were counted, so not in the report */
	u64 nr_irqs_off;
	u64 nr_report; /* taken while a report was printed */
	u32 nr_records;
	u32 log_bytes;
	u64 elapsed_cycles; /* since the last reset */
	struct source_pin source;
};

/*
 * Takes a sample of the code that regs are from, on the running CPU. Called with interrupts off, or
 * in an NMI. start_cycles is the TSC when the handler began; in_nmi is 0 or 1. Takes no lock,
 * allocates nothing, and accesses no memory that could fault.
 */
void sample_take(const os_regs_t *regs, u64 start_cycles, u32 in_nmi);

/* Allocates the stores. No sample is counted before. Called once, in process context. */
void sample_init(void);
/* Returns the number of this CPU's samples since the reset, and their cost in cycles. */
void sample_self_cost(u64 *nr, u64 *cycles);

void sample_reset(void);

/* Returns a number that grows with each reset of the samples. Any context. */
u64 sample_generation(void);
/* The TSC at the last reset. Set before the number grows, so it may be earlier than the reset. */
extern u64 sample_start_cycles;

/* Returns how many samples of a process had no room since the last reset. Any context. */
u64 sample_process_drops(os_process_t *proc);

/* Initializes a new process, which is zeroed. Called by profile_process_init(). */
void sample_process_init(struct profile_process *pp);

/* Selects the samples of a table: those of one process, of a run, or of the whole machine. */
struct sample_scope {
	u32 pid;       /* 0: not those of one process */
	bool is_run;   /* all, but not those of idle CPUs and of reports */
	u64 key_floor; /* excludes older processes with the same pid, whose keys are not above it */
};

static inline bool sample_is_in(const struct sample_record *rec, const struct sample_scope *scope)
{
	if (scope->is_run)
		return rec->class != HEAT_IDLE && rec->truncated != PROFILE_STACK_TRUNCATED_REPORT;
	return !scope->pid || (rec->pid == scope->pid && rec->task_key > scope->key_floor);
}

/* Returns the scope of a process or, if proc is NULL, of the machine. */
struct sample_scope sample_scope(os_process_t *proc);

/*
 * Pins the samples: until samples_unpin(), the reader sees them as they are now. One reader at a
 * time, any context but NMI. If it is nested, the inner reader sees the same samples as the outer.
 */
void samples_pin(void);
void samples_unpin(void);

const struct sample_stats *samples_stats(unsigned int cpu);
/* Returns the sample_generation() of the pinned samples. */
u64 samples_generation(void);
/* Returns a number that differs each time the samples are pinned. */
u64 samples_nr_reads(void);
/* Returns the store of a CPU's records, for stack_store_for_each(). */
const struct stack_store *samples_store(unsigned int cpu);
/* Returns the record of a CPU after rec, or the first one if rec is NULL; NULL at the end. */
const struct sample_record *samples_next(unsigned int cpu, const struct sample_record *rec);

/* view.c: calls visit() with each record that has a user's call chain. */
void samples_visit_chains(report_chain_fn *visit);

/* Copies the name of a record's task. The copy is printable, and padded with zeros. */
#define SAMPLE_COMM_BYTES 24
void sample_comm(const struct sample_record *rec, char comm[SAMPLE_COMM_BYTES]);

/* Copies a user frame of folded stacks. Frame 0 is the innermost; its address is exact. */
static inline const char *sample_user_frame(char text[USER_FRAME_BYTES],
					    const struct sample_record *rec, u32 frame)
{
	u64 pc = rec->pcs[rec->nr_kernel + frame];

	return user_symbol_frame(text, rec->code_map, pc - (frame != 0));
}

/* The two sources of samples: see source.c. */
enum source_kind {
	SOURCE_TIMER,
	SOURCE_NMI,
};

#define SOURCE_MAX_HZ	100000
#define SOURCE_MAX_CPUS 64

struct source_settings {
	enum source_kind source;
	u32 hz;
	u64 seed;
	bool jitter; /* false: deadlines are exactly one period apart */
	bool on;
};

/* A stretch with interrupts off, known by how late the timer interrupt came. */
#define NR_STRETCHES 8
struct source_stretch {
	u64 cycles;
	u64 end_cycles;
	u64 pc;
	u32 tid;
	bool user;
	u64 comm[2]; /* os_task_comm() */
};

/* One CPU's samples since the last reset: expected = taken + lost + self + leftover. */
struct source_sums {
	u64 expected; /* computed from the clock and the rate */
	u64 taken;
	u64 lost;     /* late by a whole period; NMIs: merged with another one */
	u64 self;     /* due while the previous sample was taken */
	s64 leftover; /* normally 0 */
};

/* The sources of all CPUs since the last reset, for a report. */
struct source_snapshot {
	struct source_settings settings;
	const char *nmi_timer; /* the timer that sends NMIs; NULL: none, or the source is no NMI */
	bool at_random;	       /* samples are at random moments; if off: they were, when last on */
	u64 limit_ns;	       /* normal lateness: interrupts that are later count as late */
	struct off_snapshot off, borrowed;
	bool is_imprecise; /* the timer's normal lateness varies too much */
	u64 nr_switches;   /* switches on or off, of all CPUs */
	u32 nr_cpus;
	bool cpus_take_turns; /* the clock counts the instructions of all CPUs together */
	struct source_sums all;
	struct source_sums cpus[SOURCE_MAX_CPUS];
	struct source_counts counts; /* of all CPUs */
	u64 nr_taken[NR_LATE_KINDS]; /* samples by what they hit */
	u64 nr_irqs_off;
	u32 nr_stretches;
	struct source_stretch longest[NR_STRETCHES]; /* longest first */
	u32 stretch_cpu[NR_STRETCHES];
};

/*
 * Changes the settings. Resets the samples, unless only `on` changes. Process context, one caller
 * at a time.
 */
void source_apply(const struct source_settings *settings);
/* Does the same, but never resets samples. */
void source_apply_without_reset(const struct source_settings *settings);
/* Copies the present settings. */
void source_settings(struct source_settings *settings);
/* Restarts the counts of samples and of deadlines at 0. Any context but NMI. */
void source_reset(void);
/* Called by the store at a CPU's first sample after a reset, with interrupts off or in NMI. */
void source_first_sample(void);
/* Copies one CPU's counters for a report. Any context but NMI. */
void source_pin_cpu(unsigned int cpu, struct source_pin *pin);
/* Sums up the source's counters that were copied when the samples were pinned. */
void source_snapshot(struct source_snapshot *snap);
/* Returns what a CPU's samples and their interrupts cost, in cycles. */
u64 source_sampling_cycles(const struct sample_stats *stats);

/* Returns the first state of a CPU's random generator. It depends on seed and CPU. */
u64 source_first_random(u64 seed, unsigned int cpu);

/* source_control.c reads profile.source=, .hz= and .seed=, and serves /proc/profile/source. */
void source_init(void);
void source_show(os_text_t *text);
/* Executes the words written to a file. Returns 0, -OS_EINVAL or -OS_EBUSY. Process context. */
#define SOURCE_WORDS "on|off|reset|source timer|source nmi|hz <1 to 100000>|seed <number>|seed none"
int source_control(const char *words);
extern struct profile_off_time source_off_time, source_borrowed_time;

/*
 * source_borrow() samples at this rate until source_give_back() restores the settings. Meanwhile
 * source_control() refuses changes. Counters are not reset. Returns 0, -OS_EINVAL, or -OS_EBUSY if
 * the source is borrowed already. Process context.
 */
int source_borrow(u32 hz);
void source_give_back(void);

/*
 * report_source.c: report_print_source() prints the line `sampling:` above the heatmap's columns.
 * report_print_source_notes() prints the notes below its total, about losses and the blind spot,
 * with more of them if wide.
 */
void report_print_source(const struct source_snapshot *snap);
void report_print_source_notes(const struct source_snapshot *snap, bool wide);
/*
 * session.c: the file /proc/profile/session, through which a program borrows the source and reads
 * the samples of that time.
 */
#define SESSION_WORDS "hz <1 to 100000>"
int session_write(const char *text);
void session_print(const void *unused);
void session_close(void);

/* Prints, for each CPU, how many samples were expected, taken and lost. For JSON only. */
void report_print_sources(const struct source_snapshot *snap);
/* Prints the table of the longest stretches with interrupts off. */
void report_print_stretches(const struct source_snapshot *snap);

/*
 * view.c: adds up samples by function, call, task and so on. A view is a table whose rows have up
 * to three keys, made while samples are pinned. Samples without room for a row are counted.
 */
#define VIEW_MAX_ROWS 4096
#define VIEW_NR_KEYS  3

/* The name in a row of a function. Its symbol is looked up only when the row is printed. */
#define VIEW_FUNCTION_NAME ""

struct view_row {
	u64 keys[VIEW_NR_KEYS];
	const char *name; /* VIEW_FUNCTION_NAME: look it up by the address */
	u64 nr;
	u64 nr_inclusive;
	u64 nr_class[NR_HEAT_CLASSES];
	u64 nr_irqs_off;
	u32 visit; /* number of the last sample that was added to nr_inclusive (view->nr_visits) */
};

struct view {
	u64 nr_samples;		       /* in scope and in the store */
	u64 nr_class[NR_HEAT_CLASSES]; /* the same by class */
	u64 nr_dropped;
	u64 nr_truncated[PROFILE_NR_STACK_TRUNCATIONS];
	u32 nr_visits;
	u32 nr_rows;
	u16 slots[ROWS_SLOTS(VIEW_MAX_ROWS)];
	/* Unsorted until view_sort(). The last row is for heatmap_snapshot(). */
	struct view_row rows[VIEW_MAX_ROWS + 1];
};

/* The view that is being printed: one report is printed at a time. */
extern struct view report_view;

/* Sorts the rows: most samples first, equal numbers by key. */
void view_sort(struct view *view);

/* Returns the name of a row. Looks it up into text if it is that of the function at addr. */
const char *view_row_name(const struct view_row *row, u64 addr, char text[OS_SYMBOL_BYTES]);

/*
 * Returns a view of user code by function: keys[0] is its address in the ELF file, keys[1] the
 * number of the file, keys[2] its place in the file. The names are valid until the reader's turn
 * ends. Findings and table of a report share one view, which is made once for each pin.
 */
const struct view *view_user_functions(const struct sample_scope *scope);

/* Makes a view by function: keys[0] is its address. User code has no row. */
void view_heatmap(struct view *view, const struct sample_scope *scope);

/*
 * Makes the same view with callers: nr counts the samples in a function, nr_inclusive also those in
 * the functions that it called. User code is one row.
 */
void view_functions(struct view *view, const struct sample_scope *scope);

/* Values of keys[0] of view_calls() for samples outside of calls. */
enum {
	CALL_NONE = OS_NO_SYSCALL, /* kernel: faults, kernel threads */
	CALL_IRQ,
	CALL_IDLE,
	CALL_USER,
	CALL_UNKNOWN,
};
/* Makes a view by system call, keys[0], and function, keys[1]; 0 stands for the sum of the call. */
void view_calls(struct view *view, const struct sample_scope *scope);

/* Makes a view by task: keys[0] is pid << 32 | tid, keys[1] and [2] are the name. */
void view_tasks(struct view *view, const struct sample_scope *scope);

/* Makes a view of the functions of this name: keys[0] is an address, keys[1] the function's. */
void view_function(struct view *view, const char *function);

/* Makes a view of the user code of one program of the process in scope: keys[0] is the address. */
void view_user(struct view *view, const struct sample_scope *scope, u8 program);

/* heatmap.c: samples by function, and the counts that are printed around the table. */
struct heat_snapshot {
	struct sample_scope scope;	     /* of the rows */
	u64 nr_class[NR_HEAT_CLASSES];	     /* all samples of the machine */
	u64 nr_scope_class[NR_HEAT_CLASSES]; /* samples in scope; their sum is the table's total */
	u64 nr_dropped; /* samples in scope, except user ones, that are in no row */
	bool was_reset; /* the samples were reset since boot */
	u64 elapsed_ns; /* since the reset, or since boot */
	struct source_snapshot source;
	u64 nr_attempts;
	u64 nr_dropped_by[NR_SAMPLE_DROPS];
	u64 nr_process_drops;	    /* of the report's process, if it has one */
	bool without_machine_notes; /* no notes on losses and costs of all CPUs */
	u64 nr_unread;
	u64 self_ns; /* spent on taking samples, out of cpu_ns of all CPUs */
	u64 cpu_ns;
	struct view *view; /* by function; user code is one row */
};

/* Notes the generation of the samples at boot. Called once, when the first source is on. */
void heatmap_init(void);

/* Returns whether the samples have been reset since heatmap_init(). */
bool heatmap_was_reset(void);

void heatmap_snapshot(struct heat_snapshot *snap, struct view *view,
		      const struct sample_scope *scope);

/* The records of all CPUs, with those that differ only in task or CPU merged: see merge.c. */
struct merged_stack {
	const struct sample_record *rec; /* the first of the merged records; NULL: free */
	u64 nr;
};

struct merged_stacks {
	struct merged_stack *stacks; /* a hash table; when complete, sorted by samples */
	u32 nr_stacks;
	u32 nr_slots;
	u32 nr_records;
	u64 ns; /* time of the merge */
};

/* Merges the pinned samples. Returns 0 or -ENOMEM. */
int stacks_merge(struct merged_stacks *merged);
void stacks_free(struct merged_stacks *merged);

/*
 * A copy of the merged stacks, in the same order, so that samples need not stay pinned for a slow
 * reader. The copy is no larger than the records, which take at most a sixteenth of the machine's
 * memory. Stacks that have been read are freed.
 */
struct stacks_copy {
	struct stacks_chunk *first, *last;
	u32 at;			     /* offset of the next record in the first chunk */
	struct user_symbols symbols; /* of its user addresses, between the reader's turns */
};

/* Makes a copy, while samples are pinned. Returns NULL if there is no memory. */
struct stacks_copy *stacks_copy(const struct merged_stacks *merged);
/* Returns the next stack, with nr_pinned samples, or NULL at the end. */
const struct sample_record *stacks_copy_next(struct stacks_copy *copy);
void stacks_copy_free(void *copy);

/* report_heatmap.c */
void report_print_heatmap(const struct heat_snapshot *snap, u32 top, bool wide);
/*
 * report_source.c: returns the share of lost samples, in hundredths of a percent, above which the
 * shares of the others mislead; prints a line if it is exceeded.
 */
u32 source_many_lost(const struct source_snapshot *snap);
void report_warn_of_losses(const struct source_snapshot *snap);
/* findings.c: offers findings. Overwrites the snapshot and report_view. */
struct finding_scope;
void samples_find(const struct finding_scope *scope, struct heat_snapshot *snap,
		  const struct sample_scope *samples);
/*
 * Prints the notes below the first heatmap of a report: losses, blind spot, cost of all sampling.
 */
void report_print_heatmap_notes(const struct heat_snapshot *snap, bool wide);

/*
 * report_view.c: prints the views whose names match a list of globs, of the pinned samples. The
 * views by task and by CPU always cover the whole machine.
 */
bool report_is_view(const char *glob); /* whether it matches a name of a view */
void report_print_views(const char *names, u32 top, const struct sample_scope *scope);
void report_print_functions(u32 top, const struct sample_scope *scope);

/* Print which samples a table covers; the lines above its rows; the lines below them. */
struct table;
void report_print_scope(const struct sample_scope *scope, u64 nr);
void report_begin_view(const struct table *table, const char *title, u32 top,
		       const struct sample_scope *scope);
void report_end_view(u32 nr_others, u64 nr_samples, u64 nr_dropped);
extern const char *const report_truncation_reasons[PROFILE_NR_STACK_TRUNCATIONS];
extern const char *const report_drop_reasons[NR_SAMPLE_DROPS];

/* report_place.c: prints user code by function, the nr_all samples in scope; nothing if none. */
#define USER_FUNCTIONS "Kernel Heatmap of user functions"
void report_print_user_functions(u32 top, const struct sample_scope *scope, u64 nr_all);
/* Prints the user code of a process, by file. The process still has its memory. Process context. */
void report_print_user(os_process_t *proc, u32 top);
/* Prints the samples of each instruction of all functions with this name. */
void report_print_function(const char *function);
/* report_records.c: prints all records of the pinned samples. For JSON only. */
void report_print_records(void);
/*
 * Sets *copy, a struct stacks_copy *, to a copy of the merged stacks. Without memory, prints that
 * and sets it to NULL.
 */
void report_copy_stacks(const void *copy);
/*
 * Prints the next stacks of a copy, folded, and counts them: none at the end. They are few, so that
 * other readers have their turn soon.
 */
struct stacks_step {
	struct stacks_copy *copy;
	u32 nr; /* 0 at first */
};
void report_print_next_stacks(const void *step);
/*
 * Prints the number of stacks in the last report_copy_stacks(), and the cost of their merge. Prints
 * nothing if there was none.
 */
void report_print_last_merge(void);

#endif
