/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_REPORT_H
#define PROFILE_REPORT_H

/*
 * Printing of reports: one at a time (report_lock.c), at which exits (on_exit.c), where the text
 * goes, and the formats that all tables share (report.c).
 */

#include "util.h"

/* Tells a profiler's print() which report it prints in. */
struct report {
	os_process_t *proc; /* the process that ends; NULL: the report is of the machine or a run */
	bool is_run;	    /* of all processes since boot or the last reset */
	u64 wall_ns;	    /* the life of the process, or the time of the run */
	u64 delay_cycles;   /* by the reports of other processes; not in wall_ns */
	u32 top;	    /* rows of a table, or REPORT_TOP_ALL: profile.top= */
	bool wide, histogram; /* profile.report= */
};

#define REPORT_TOP_ALL 0xffffffffu

/* Prints one line of a report to the console, or to the text of report_to_text(). */
void report_printf(const char *fmt, ...) pf_printf(1, 2);

/*
 * first_lines.c: keeps what report_printf() prints on the console, from the begin of a report to
 * its first empty line.
 */
#if defined(CONFIG_PROFILE_EXPORT) || defined(UNIT_TEST)
void report_first_lines_begin(void);
void report_first_lines_add(const char *fmt, va_list args);
void report_first_lines_end(void);
#else
#define report_first_lines_begin()	  ((void)0)
#define report_first_lines_add(fmt, args) ((void)(args))
#define report_first_lines_end()	  ((void)0)
#endif

/*
 * The thread that prints a report, or NULL. Its samples all count for one function,
 * report_printf(), so that reports do not fill the store of samples.
 */
extern os_task_t *report_printer;

/* Returns true if this thread prints a report. Any context. */
static inline bool report_is_made_here(void)
{
	const os_task_t *printer = pf_read_once(report_printer);

	return printer && printer == os_current_task();
}

struct table_sink;
/*
 * Waits for this thread's turn, then calls print(arg), whose output goes to the text, tables by the
 * sink. Process context.
 */
void report_to_text(os_text_t *text, const struct table_sink *sink, void (*print)(const void *arg),
		    const void *arg);

/* Says so and returns true with profile=off. Any context. */
bool report_is_off(void);

/*
 * Calls print(), whose output goes to the console, with the options of a report of the machine.
 * Returns false if another report is being printed. With profile=off, says only that. Any context.
 */
bool report_try_print(void (*print)(const struct report *report));

/*
 * report_lock.c: prints the report of a process that ends, if on_exit.c selects it. Process
 * context.
 */
void report_process_exit(os_process_t *proc);

#ifdef CONFIG_PROFILE_WAITS
/* report_delay.c: returns by how much reports have delayed the current thread and its creators. */
u64 report_delay(void);
/* A new task has the delay of the current one. */
void report_delay_begin_task(struct profile_task *pt);
/*
 * Enclose that the report of an ended process waits for its turn and is printed, which delays the
 * current thread. Process context.
 */
u64 report_delay_begin(void);
void report_delay_end(u64 begin_cycles);
/* Enclose the printing. */
void report_delay_start_printing(void);
void report_delay_stop_printing(void);
/*
 * Called before the profiler of waits, when a thread is woken, and when the current thread is back
 * on a CPU. Interrupts are off.
 */
void report_delay_wake(struct profile_task *pt);
void report_delay_switch_in(struct profile_task *pt, u64 now);
/* Returns by how much reports have delayed a thread since it was created. */
static inline u64 report_delay_of(const struct profile_task *pt)
{
	return pt->delay.cycles - pt->delay.first_cycles;
}
#else
static inline u64 report_delay(void)
{
	return 0;
}
static inline u64 report_delay_begin(void)
{
	return 0;
}
static inline void report_delay_end(u64 begin_cycles)
{
}
static inline void report_delay_start_printing(void)
{
}
static inline void report_delay_stop_printing(void)
{
}
#endif

/* run.c: counts the processes of a run. */
bool run_add_process(void); /* returns true for the first one */
void run_end_process(void);
void run_forget_process(void); /* that was added, but never ran */
void run_reset(void);
/* Returns the number of processes since boot or the last reset, and how many of them run. */
u32 run_nr_processes(u32 *nr_running);
/*
 * Returns whether no other process runs than the one that ends. The notes on the whole machine are
 * in the report of the last process, not in that of each.
 */
bool run_is_last_process(void);
/* Returns for how long the run has taken: since the first process, or since the last reset. */
u64 run_age_ns(void);
/*
 * Prints a whole report of the machine. Called by report_to_text(). why is a string for the
 * heading.
 */
void report_print_whole(const void *why);

/* Sums of one process or several, for the first lines of a report. Profilers fill them in. */
struct report_summary {
	bool has_calls; /* system calls are counted */
	u64 nr_processes;
	u64 nr_calls;
	u64 nr_faults[OS_NR_FAULT_KINDS];
	u64 peak_bytes[OS_NR_MEMORY_KINDS]; /* of the process that had most memory */
	struct profile_thread_sums threads;
	struct profile_cpu_times cpu; /* zeros if the kernel does not know */
};

static inline void report_add_faults(struct report_summary *to, const u64 nr[OS_NR_FAULT_KINDS])
{
#pragma GCC unroll 8
	for (u32 i = 0; i < OS_NR_FAULT_KINDS; i++)
		to->nr_faults[i] += pf_read_once(nr[i]);
}

static inline u64 report_memory(const u64 bytes[OS_NR_MEMORY_KINDS])
{
	u64 sum = 0;

#pragma GCC unroll 8
	for (u32 i = 0; i < OS_NR_MEMORY_KINDS; i++)
		sum += bytes[i];
	return sum;
}

/* Keeps the memory of the process that had most. */
static inline void report_keep_peak(struct report_summary *to, const u64 bytes[OS_NR_MEMORY_KINDS])
{
	if (report_memory(bytes) > report_memory(to->peak_bytes))
		memcpy(to->peak_bytes, bytes, sizeof(to->peak_bytes));
}

static inline u64 report_nr_faults(const struct report_summary *summary)
{
	u64 sum = 0;

	for (u32 i = 0; i < OS_NR_FAULT_KINDS; i++)
		sum += summary->nr_faults[i];
	return sum;
}

/* Returns the CPU time of the processes, without the kernel's own work. */
u64 report_cpu_cycles(const struct report_summary *sums);
typedef void report_add_fn(const char *program, const struct report_summary *part);

/* A call chain that a profiler has stored, and what it weighs in its system call or code. */
struct report_chain {
	const u64 *comm; /* of the thread: two words */
	u32 pid;	 /* 0: unknown, as of a process that has ended */
	u32 call;	 /* the system call that it is in, or OS_NO_SYSCALL */
	bool asleep;
	bool is_sample; /* the first address of kernel is exact, not one behind a call */
	u32 code_map;
	u32 nr_kernel, nr_user;
	const u64 *kernel, *user; /* innermost first */
	u64 weight; /* samples or, asleep, cycles; 0: of another wait, or of who ended one */
};
typedef void report_chain_fn(const struct report_chain *chain);

/* profile.c: these call the functions of all profilers. */
void report_print_warnings(void);
void report_print_tables(const struct report *report);
/*
 * Prints each JSON file after a line {"file":"<name>"}. Called by report_to_text(), or in a panic
 * when output does not go to the console.
 */
void report_print_json_files(void);
void report_end(const char *why);
void report_summarize(os_process_t *proc, struct report_summary *summary);
void report_visit_running(report_add_fn *add);
void report_visit_chains(report_chain_fn *visit);
/*
 * Returns a number that is another one when a thread or a process has ended. Waits until none is
 * ending. Process context.
 */
u32 report_nr_exits(void);
void report_flush(void);
void report_end_reading(void);
/* Called by the current thread, whose latest wait counts as so much shorter. Interrupts are off. */
void report_shorten_wait(struct profile_task *pt, u64 cycles);
struct finding_scope;
void report_find(const struct finding_scope *scope);

/*
 * report.c: under icount, CPUs take turns, and the kernel cannot know when one waits for its turn.
 * A report says so in its heading, a file below the title of its first table. report_restart()
 * begins a file, or the JSON files of an export.
 */
bool report_cpus_take_turns(void);
void report_restart(void);
void report_say_turns(void); /* table_begin() calls it */

/* Prints the heading, with the reason unless the report is of a process. */
void report_print_heading(u64 nr, const struct report *report, const char *why);

/* on_exit.c: the processes that have a report, or an export, when they exit. */
#define ON_EXIT_BYTES 256
enum on_exit_kind {
	ON_EXIT_ALL,
	ON_EXIT_NONE,
	ON_EXIT_OF_RUN,
	ON_EXIT_GLOBS,
};

struct on_exit {
	const char *param; /* its boot parameter */
	os_lock_t lock;
	enum on_exit_kind kind; /* what the globs mean */
	/* Guarded by lock: the globs, and whether an exit has matched each of them. */
	char globs[ON_EXIT_BYTES];
	bool matched[ON_EXIT_BYTES];
};
#define ON_EXIT(name, value, kind_)                                                \
	{                                                                          \
		.param = name, .lock = OS_LOCK_INIT, .globs = value, .kind = kind_ \
	}

extern struct on_exit on_exit_reports, on_exit_exports;

/* Returns true if one report of the run replaces those of its processes. */
bool on_exit_is_run(void);

/* Looks at the globs, or at the number of processes. */
bool on_exit_wants_some(struct on_exit *list, os_process_t *proc);
static inline bool on_exit_wants(struct on_exit *list, os_process_t *proc)
{
	enum on_exit_kind kind = pf_read_once(list->kind);

	return kind == ON_EXIT_ALL || (kind != ON_EXIT_NONE && on_exit_wants_some(list, proc));
}
bool on_exit_wants_any(os_process_t *proc); /* a report or an export */
/* Logs each glob that no exit has matched: the user may have expected a report. */
void on_exit_print_unmatched(const struct on_exit *list);
/* Set the globs; the text of a file may end in a newline. Return 0 or -OS_EINVAL. */
int on_exit_set(struct on_exit *list, const char *value);
int on_exit_write_to(struct on_exit *list, const char *text);
/* Show and write the file /proc/profile/on_exit. */
void on_exit_show(os_text_t *text);
int on_exit_write(const char *text);
#define ON_EXIT_WORDS "all|none|<glob>[,<glob>...]"
/* The words of on_exit_reports. */
#define ON_EXIT_RUN	     "run"
#define REPORT_ON_EXIT_WORDS "all|none|run|<glob>[,<glob>...]"

/*
 * Redirects report_printf() to a text; NULL selects the console. Called by the one thread that
 * prints a report.
 */
void report_to(os_text_t *text);

/* Returns true if report_printf() prints on the console. */
bool report_is_on_console(void);

/*
 * Redirects report_printf() to a function, which takes precedence over a text; NULL ends that.
 * Called like report_to(), and in a panic.
 */
void report_to_output(void (*print)(const char *fmt, va_list args));

/* Returns part / total in hundredths of a percent, rounded half up; part <= total. 0 of 0 is 0. */
u32 report_percent(u64 part, u64 total);

/* Returns the average, rounded up; 0 when n is 0. */
u64 report_usecs_per_call(u64 ns, u64 n);
u64 report_avg_ns(u64 ns, u64 n);

/* Prints "since boot (1.12 s)" or "since the last reset (1.12 s)" into text. */
#define REPORT_SINCE_BYTES 64
void report_since(char text[REPORT_SINCE_BYTES], u64 elapsed_ns, bool was_reset);

/* Returns name if it fits into width, else a copy in text that is shortened and ends in `~`. */
#define REPORT_COLUMN_BYTES 32
const char *report_column(char text[REPORT_COLUMN_BYTES], const char *name, u32 width);

/* Returns the name of a system call or, if it is NULL or empty, "sys_" and the number in text. */
#define REPORT_CALL_BYTES 32
const char *report_call(char text[REPORT_CALL_BYTES], u64 nr, const char *name);

/*
 * Copies the name of the function of a frame, or the address if it is in no function. is_return
 * means that pc is a return address, which is after the call. Returns text.
 */
const char *report_frame(char text[OS_SYMBOL_BYTES], u64 pc, bool is_return);

/*
 * Replace each byte that is not printable ASCII by `?`, in place or in a copy. Programs can give
 * themselves any name, and must not forge lines of a report.
 */
void report_make_printable(char *text);
void report_copy_printable(char *dst, const char *src, size_t size);
/* Replaces blanks and semicolons, too, in place: they would break a line of folded stacks. */
void report_make_foldable(char *text);

/*
 * Prints kinds into text, without those of which there are none: " (9 anonymous, 2 file)" or, with
 * as_sum, " = user 3 + kernel 8".
 */
void report_kinds(char *text, size_t size, bool as_sum, const char *const *names, const u64 *nr,
		  u32 nr_kinds);

/* Returns the name of a signal from 1 to 31, or NULL. */
const char *report_signal(u32 nr);

/* Returns the part of a path after its last slash. */
const char *report_basename(const char *path);

#endif
