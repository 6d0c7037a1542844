/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_PROFILER_H
#define PROFILE_PROFILER_H

/*
 * The interface of a profiler. A profiler describes itself once, with PROFILER() at file scope.
 * That makes it part of the report, of reset, and of /proc/profile. All functions here are for rare
 * events. The hooks in hot paths are inline functions in <profile/profile.h>.
 */

#include "report.h"

/* A file in /proc/profile. */
struct profiler_file {
	const char *path;    /* "profile/<name>" */
	const char *accepts; /* words that can be written, for error messages; NULL: none */
	/* Returns 0 or a negative errno; NULL: the file is read only. Process context. */
	int (*write)(const char *text);
	/* Prints the file by report_printf() and tables, while no other report is printed. */
	void (*print)(const void *arg);
	const void *arg;
	bool is_json; /* its tables are printed as JSON */
	/* Replaces print for a file that can be printed at any time. */
	void (*show)(os_text_t *text);
	/*
	 * Called when the file is closed, also when its process dies. A file with this function can
	 * be open only once at a time. Process context.
	 */
	void (*close)(void);
};

/* A file in /proc/<pid>. */
struct profiler_process_file {
	const char *name;
	const char *accepts;
	int (*show)(os_text_t *text, os_process_t *proc);
	int (*write)(const char *text, os_process_t *proc);
};

/* Functions and files that a profiler does not need are NULL. */
struct profiler {
	const char *name;
	u32 place; /* in the report, and at start: lower numbers come first */

	/* Starts the profiler. Called once, in process context, when all CPUs run. */
	void (*init)(void);
	/* Called after init() of all profilers, so that it can measure their cost. */
	void (*start)(void);
	/* The first process begins. Process context, like profile_process_init(). */
	void (*run_begin)(void);
	/* Restarts its counters at zero. Any context but NMI. */
	void (*reset)(void);
	/* Prints a line below a report's heading if its numbers mislead. Like print. */
	void (*warn)(void);
	/*
	 * Prints its tables (table.h). No other report is printed meanwhile. Any context. In a
	 * panic it must not take locks.
	 */
	void (*print)(const struct report *report);
	/*
	 * Adds its part of a process that ends to a summary, and says in it what holds for all
	 * processes: has_calls. If proc is NULL, only the latter. Interrupts may be off, with the
	 * lock of programs.c held, which is taken before lists_lock.
	 */
	void (*summarize)(os_process_t *proc, struct report_summary *summary);
	/* Offers its findings (findings.h), before print(). Process context. */
	void (*find)(const struct finding_scope *scope);
	/* Calls add() with its part of the summary of each process that has not ended. */
	void (*visit_running)(report_add_fn *add);
	/* Calls visit() with each user's call chain that it has stored. Like print. */
	void (*visit_chains)(report_chain_fn *visit);
	/*
	 * Keep its tables at one moment: between pin() and unpin() they do not change. Called
	 * around all tables of a report, and around the files of an export. Same contexts as
	 * print; in a panic unpin() may not be called.
	 */
	void (*pin)(void);
	void (*unpin)(void);
	/* Called after the last report, before the machine stops, with the reason. Like print. */
	void (*end)(const char *why);
	/*
	 * Frees what it allocated while it printed. Called at the end of each reader's turn, but
	 * not in a panic. Same contexts as print.
	 */
	void (*end_reading)(void);
	/* Prints buffered output, before a report. Same contexts as print. */
	void (*flush)(void);

	/*
	 * See the functions of the same names in <profile/profile.h>. lists_lock is held. The
	 * process or thread is zeroed at first, and in the lists (process_lists.h) during all these
	 * calls.
	 */
	void (*process_init)(struct profile_process *pp);
	void (*process_exec)(struct profile_process *pp);
	void (*process_release)(struct profile_process *pp);
	void (*task_init)(os_task_t *task);
	void (*task_exit)(struct profile_task *pt);
	/*
	 * Before task_exit of all profilers, without lists_lock. The thread stays in the lists
	 * until after task_exit, so walks still find it.
	 */
	void (*task_exit_begin)(struct profile_task *pt);
	/* After task_exit of all profilers. Process context. */
	void (*task_ended)(struct profile_task *pt);
	/* The report of the process has been printed. Process context. */
	void (*process_exit)(struct profile_process *pp);
	/* Like process_exit, but after all of those. Does not wait for a report. */
	void (*process_ended)(struct profile_process *pp);
	/* See report_shorten_wait(). */
	void (*shorten_wait)(struct profile_task *pt, u64 cycles);

	const struct profiler_file *files; /* the last one has a path of NULL */
	const struct profiler_process_file *process_files;
};

/* Leaves out the files, and their functions, in a kernel without files and exports. */
#if OS_HAS_FILES || defined(CONFIG_PROFILE_EXPORT)
#define PROFILER_FILES(files) (files)
#else
#define PROFILER_FILES(files) (1 ? NULL : (files))
#endif

#ifdef OS_HAS_PROFILE_SET
extern bool profile_has_begun; /* profile_init() has returned: for profile_set() */
#endif

#define PROFILER(ident) \
	static const struct profiler profiler_##ident pf_used pf_section("profilers") pf_aligned(8)

#endif
