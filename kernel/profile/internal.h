/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_INTERNAL_H
#define PROFILE_INTERNAL_H

/*
 * What the files of kernel/profile/ share. Data flows event -> table -> snapshot (here) ->
 * report.c.
 */

#include "os.h"

#include <lego/profile.h>

#include "strace.h"

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

/* sample.c: what was hit, counted on the CPU that was hit; see there. */
enum heat_class {
	HEAT_USER,
	HEAT_KERNEL,
	HEAT_IRQ,
	HEAT_IDLE,
	NR_HEAT_CLASSES,
};

/* Why a sample is not in the store. */
#define SAMPLE_DROPS(X)                      \
	X(OFF, "switched off")               \
	X(NESTED, "while another was taken") \
	X(NO_MEMORY, "no memory for them")   \
	X(HASH_FULL, "no slot within reach") \
	X(LOG_FULL, "log full")              \
	X(HELD, "after a reset, while a report was being made")

#define SAMPLE_DROP_ENUM(name, text) DROP_##name,
enum sample_drop {
	SAMPLE_DROPS(SAMPLE_DROP_ENUM) NR_SAMPLE_DROPS
};
#undef SAMPLE_DROP_ENUM

#define SAMPLE_IN_NMI  BIT(0)
#define SAMPLE_IRQS_ON BIT(1)

#define SAMPLE_MAX_DEPTH     STACK_MAX_DEPTH
#define SAMPLE_DEFAULT_DEPTH 32
#define SAMPLE_MAX_PROBES    64
#define SAMPLE_MIN_LOG	     (16ul << 10)
#define SAMPLE_MAX_LOG	     (2ul << 20)
#define SAMPLE_DEFAULT_LOG   (1ul << 20)
#define SAMPLE_BYTES_A_SLOT  128 /* of log: the hash has a slot, 8 bytes, for each */

/* Samples that are alike in all but time: what they have in common, and how many there are. */
struct sample_record {
	u64 nr;		 /* written by its CPU, which also adds new records behind the others */
	u64 late_cycles; /* they came after their time, together */
	u64 nr_held;	 /* nr when the present report began */
	u32 tid, pid;	 /* these and comm: as the first of them found them */
	u64 comm[2];
	/* The key, compared whole: from here to the last of pcs. */
	union {
		u8 program; /* os_process_program() */
		u64 who;    /* os_task_who() */
	};
	union {
		struct {
			u16 syscall;
			u8 class;
			u8 flags;	       /* SAMPLE_* */
			u8 nr_kernel, nr_user; /* from here on: STACK_COUNTS() */
			u8 cut;		       /* enum stack_cut */
			u8 plain;	       /* enum stack_plain */
		};
		u64 what; /* all of these */
	};
	u64 pcs[]; /* nr_kernel, then nr_user; innermost first */
};

/* One CPU's counters; attempts = stored + sum of drops, ticks = sum of classes. */
struct sample_books {
	u64 nr_attempts;
	u64 nr_class[NR_HEAT_CLASSES];
	u64 nr_dropped[NR_SAMPLE_DROPS];
	u64 self_cycles; /* spent on taking samples */
	/* Of a report: */
	u64 nr_stored;
	u64 nr_unread; /* came while it was read: attempted, and neither stored nor dropped yet */
	u32 nr_records;
	u32 log_bytes;
	u64 elapsed_cycles; /* since the last reset */
};

/*
 * Take a sample of what regs are of, on the running CPU: interrupts off or NMI. start_cycles: when
 * its handler began; late_cycles: since it was due; in_nmi: 0 or 1. Takes no lock, allocates
 * nothing, touches nothing that could fault.
 */
void sample_take(const struct pt_regs *regs, u64 start_cycles, u64 late_cycles, u32 in_nmi);

/* Process context, once: memory. Nothing is counted before. */
void sample_init(void);
void sample_switch(bool on);
void sample_reset(void);

/*
 * The samples as they are now, until samples_release(): for one reader at a time, any context but
 * NMI. May be nested: the inner one sees what the outer one does.
 */
void samples_hold(void);
void samples_release(void);

/* While held. */
const struct sample_books *samples_books(unsigned int cpu);
/* A CPU's records: start with NULL; NULL behind the last one. */
const struct sample_record *samples_next(unsigned int cpu, const struct sample_record *rec);

/* Its task's name: a copy, zero behind its end, printable. */
#define SAMPLE_COMM_BYTES 24
void sample_comm(const struct sample_record *rec, char comm[SAMPLE_COMM_BYTES]);

/* source.c: when samples are taken; see there. */
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
	bool jitter; /* false: deadlines are a period apart */
	bool on;
};

/* One CPU's; due = taken + missed + own. */
struct source_counts {
	u64 taken;
	u64 late;     /* of those taken: interrupts were off */
	u64 missed;   /* passed while another one was late; NMIs that did not come */
	u64 own;      /* fell into the taking of the one before */
	u64 sent;     /* NMIs, to every other CPU */
	u64 echoes;   /* NMIs that came a second time, or unasked for */
	u64 irqs_off; /* NMIs taken that found interrupts off */
};

/* The timer came so much late, because interrupts were off until then. */
#define NR_STRETCHES 8
struct source_stretch {
	u64 cycles;
	u64 end_cycles;
	u64 pc;
	u32 tid;
	bool user;
	u64 comm[2]; /* os_task_comm() */
};

struct source_cpu {
	u64 slot; /* where the slot of the next deadline begins, TSC */
	u64 random;
	u64 last_nmi;
	bool moves_nmis;	   /* the boot CPU: each of its own puts the next one somewhere */
	struct source_counts nr;   /* since boot */
	struct source_counts base; /* at the last reset; guarded by a lock */
	u64 seq;		   /* odd while longest[] changes */
	struct source_stretch longest[NR_STRETCHES];
};

/* Since the last reset. */
struct source_snapshot {
	struct source_settings settings;
	const char *nmi_timer; /* NULL: none, or it is not the source */
	bool nmi_jitter;
	u64 limit_ns; /* what is later is late */
	struct source_counts all;
	struct source_counts cpus[SOURCE_MAX_CPUS];
	u32 nr_stretches;
	struct source_stretch longest[NR_STRETCHES]; /* longest first */
	u32 stretch_cpu[NR_STRETCHES];
};

/*
 * Change to these; a change of more than `on` resets samples, too. Process context, one caller at a
 * time.
 */
void source_apply(const struct source_settings *settings);
/* As they are. */
void source_settings(struct source_settings *settings);
/* Count from 0 again; any context but NMI. */
void source_reset(void);
void source_snapshot(struct source_snapshot *snap);

/* source_control.c: profile.source=, .hz=, .seed=, /proc/profile/source. */
void source_init(void);
/* What is written to files: words. 0 or -EINVAL. Process context. */
int source_control(const char *words);

/* report_source.c: above the heatmap, and below it. */
void report_print_source(const struct source_snapshot *snap);
void report_print_unseen(const struct source_snapshot *snap);

/* heatmap.c: samples by function, the rest by what the CPU was doing. */
#define HEATMAP_MAX_ENTRIES 4096

struct heat_entry {
	u64 addr; /* the function's, or the sample's own without one */
	const char *name;
	u64 nr;
};

struct heat_snapshot {
	u64 nr_class[NR_HEAT_CLASSES]; /* their sum is all ticks */
	u64 nr_dropped;		       /* not user, and in no entry */
	struct source_snapshot source;
	u64 nr_attempts;
	u64 nr_dropped_by[NR_SAMPLE_DROPS];
	u64 nr_unread;
	u64 self_ns; /* spent on taking samples, of cpu_ns of all CPUs */
	u64 cpu_ns;
	u32 nr_entries; /* user samples are an entry, too */
	struct heat_entry entries[HEATMAP_MAX_ENTRIES + 1];
};

void heatmap_snapshot(struct heat_snapshot *snap);

/*
 * view.c: the same samples, looked at in other ways. A view is a table of rows with up to three
 * keys, for one reader at a time, while samples are held. What has no room is counted.
 */
#define VIEW_MAX_ROWS 4096
#define VIEW_NR_KEYS  3

struct view_row {
	u64 keys[VIEW_NR_KEYS];
	const char *name; /* NULL: free */
	u64 nr;
	u64 nr_inclusive;
	u64 nr_class[NR_HEAT_CLASSES];
	u64 nr_irqs_off;
	u64 late_cycles;
};

struct view {
	u64 nr_ticks; /* of all samples in the store */
	u64 nr_dropped;
	u64 nr_cut[NR_STACK_CUTS];
	u32 nr_rows;
	struct view_row rows[VIEW_MAX_ROWS]; /* a hash until view_finish() */
};

/*
 * By function: keys[0] its address, nr samples in it, nr_inclusive also in what it called. User
 * code is one row.
 */
void view_functions(struct view *view);

/* What calls[] of view_calls() are if they are none. */
enum {
	CALL_NONE = OS_NO_SYSCALL, /* kernel: faults, kernel threads */
	CALL_IRQ,
	CALL_IDLE,
	CALL_USER,
};
/* By system call, keys[0], and function, keys[1], which is 0 for the sum of the call. */
void view_calls(struct view *view);

/* By task: keys[0] is pid << 32 | tid, keys[1] and [2] the name. */
void view_tasks(struct view *view);

/* By address in the functions of this name: keys[0] is the address, keys[1] the function's. */
void view_function(struct view *view, const char *function);

/* User code of the program that a process runs, by address: keys[0]. */
void view_user(struct view *view, u32 pid, u8 program);

/* All CPUs' records without those that differ only in task or CPU: see merge.c. */
struct merged_stack {
	const struct sample_record *rec; /* the first of its kind; NULL: free */
	u64 nr;
};

struct merged_stacks {
	struct merged_stack *stacks; /* a hash until it is sorted; then most samples first */
	u32 nr_stacks;
	u32 nr_slots;
	u32 nr_records;
	u64 ns; /* that it took */
};

/* While samples are held. Needs memory: 0 or -ENOMEM. */
int stacks_merge(struct merged_stacks *merged);
void stacks_free(struct merged_stacks *merged);

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
bool points_match(const char *pattern); /* any of them; any context */
void points_switch(const char *pattern, bool on);
void points_toggle(void); /* all off if any is on, else all on */

void points_reset(void);
void points_snapshot(struct point_snapshot *snap);

/* "on <name>" and "off <name>", a line for each. */
void points_list(os_text_t *text);

/* control.c: profile.points=, /proc/profile/points, sysrq o. */
void control_init(void);

/*
 * profile.c, for /proc/profile: the report as a text; which exits are reported, in the form of
 * profile.on_exit. 0 or -EINVAL. Process context.
 */
void profile_report_text(os_text_t *text);
void profile_strace_text(os_text_t *text, struct process *proc); /* NULL: of the whole system */
/* The text is what print() prints by report_printf(), which it does when its turn comes. */
void profile_print_text(os_text_t *text, void (*print)(void));
int profile_set_on_exit(const char *patterns);
void profile_print_on_exit(os_text_t *text);

/* files.c: /proc/profile/report and on_exit. */
void files_init(void);

/* report.c, and report_*.c for each table: sort the copy and print it. */
#define REPORT_TOP_ALL 0xffffffffu

/*
 * Where what follows goes: a text, or, NULL, the console. For who prints the report: there is one
 * at a time.
 */
void report_to(os_text_t *text);
void report_printf(const char *fmt, ...) __printf(1, 2);

/* wide: more columns. title: what is counted, or NULL: the process. */
void report_print_strace(struct strace_snapshot *snap, bool wide, const char *title);
void report_print_strace_processes(struct strace_system_snapshot *system);
void report_print_heatmap(struct heat_snapshot *snap, u32 top);
/* Views, by name (a glob list), of the samples that are held. */
void report_print_views(const char *names, u32 top);
/* User code of a process that still has its memory, by the file it is from. Process context. */
void report_print_user(struct process *proc, u32 top);
/* The instructions of the functions of one name; the merged stacks, folded. */
void report_print_function(const char *function);
void report_print_stacks(void);
/* wide: more columns; histogram: a line for each bucket in use, too. */
void report_print_points(struct point_snapshot *snap, bool wide, bool histogram);

/* part / total in hundredths of a percent, rounded half up; part <= total. 0 when total is 0. */
u32 report_percent(u64 part, u64 total);

#define NS_PER_SEC 1000000000ul

/* What a program called itself may hold anything; reports are plain text. */
void report_copy_printable(char *dst, const char *src, size_t size);

/* Sums stop at the largest number instead of starting again at zero. */
static inline u64 add_saturating(u64 a, u64 b)
{
	return a + b < a ? ~0ull : a + b;
}

/* For sort(). */
static inline int compare_u64(u64 a, u64 b)
{
	return (a > b) - (a < b);
}

/* Rounded up; 0 when n is 0. */
u64 report_usecs_per_call(u64 ns, u64 n);
u64 report_avg_ns(u64 ns, u64 n);

#endif
