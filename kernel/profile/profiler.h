/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_PROFILER_H
#define PROFILE_PROFILER_H

/*
 * A profiler describes itself once, by PROFILER() at file scope, and is then part of the report, of
 * reset, and of /proc/profile. All of its functions are for rare events. The hooks in hot paths are
 * inline functions of its own, in <lego/profile.h>.
 */

#include "report.h"

/* A file in /proc/profile. */
struct profiler_file {
	const char *path;    /* "profile/<name>" */
	const char *accepts; /* tells people what they can write; NULL: nothing */
	/* Returns 0 or a negative errno; NULL: the file is read only. Process context. */
	int (*write)(const char *text);
	/* Prints the file as a report is printed: when its turn comes. */
	void (*print)(const void *arg);
	const void *arg;
	bool is_json; /* its tables are printed as JSON */
	/* Prints a file that needs no turn, instead of print. */
	void (*show)(os_text_t *text);
	/*
	 * Called when the file is closed, also by the death of its process. Such a file can be open
	 * once at a time. Process context.
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

	/* Starts the profiler. Once, in process context, when all CPUs run. */
	void (*init)(void);
	/* Continues when all profilers are initialized: what they cost can be measured now. */
	void (*start)(void);
	/* Restarts its counters at zero. Any context but NMI. */
	void (*reset)(void);
	/*
	 * Prints its tables (table.h), one report at a time. Any context. In a panic it must not
	 * take locks.
	 */
	void (*print)(const struct report *report);
	/* Adds what it knows of a process that ends. Process context. */
	void (*summarize)(os_process_t *proc, struct report_summary *summary);
	/*
	 * Between hold() and release() its tables show one moment. Same contexts as print; in a
	 * panic release() may be missing.
	 */
	void (*hold)(void);
	void (*release)(void);
	/* Called after the last report, for reason why: before the machine stops. Like print. */
	void (*end)(const char *why);
	/* Brings out what is still to be printed, before a report. Same contexts as print. */
	void (*flush)(void);

	/* Process context. See the functions of the same names in <lego/profile.h>. */
	void (*process_init)(struct profile_process *pp);
	void (*process_exec)(struct profile_process *pp);
	void (*process_exit)(struct profile_process *pp); /* its report has been printed */
	void (*process_release)(struct profile_process *pp);
	void (*task_init)(os_task_t *task);
	void (*task_exit)(struct profile_task *pt);

	/*
	 * Adds the CPU time so far of a thread in page faults and interrupts that hit its user
	 * code; exec_cycles is its CPU time so far. Returns false if not all were counted. Any
	 * context but NMI.
	 */
	bool (*add_fault_cycles)(const struct profile_task *pt, u64 exec_cycles, u64 *cycles);

	const struct profiler_file *files; /* end with a path of NULL */
	const struct profiler_process_file *process_files;
};

/* Asks the profiler that knows; false: none does. */
bool profiler_add_fault_cycles(const struct profile_task *pt, u64 exec_cycles, u64 *cycles);

#define PROFILER(ident) \
	static const struct profiler profiler_##ident pf_used pf_section("profilers") pf_aligned(8)

#endif
