/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_INCLUDE_PROFILE_H
#define PROFILE_INCLUDE_PROFILE_H

/*
 * The hooks of the profilers. Calls of them, each a statement of its own, are the profilers' only
 * lines outside of kernel/profile/. If a profiler is compiled out, its hooks are empty and its
 * structs have no members, so the callers' machine code is the same as without the hooks.
 * kernel/profile/README.md says what each profiler shows and costs.
 */

#include "../../os_hooks.h"

/* More than points are compiled in, so hooks of several profilers come together: hook_keys.h. */
#if defined(CONFIG_PROFILE_STRACE) || defined(CONFIG_PROFILE_WAITS) || \
	defined(CONFIG_PROFILE_TRACE) || defined(CONFIG_PROFILE_MEMORY_CHAINS)
#define PROFILE_HAS_PLACES 1
#endif

/* At least one profiler is compiled in. */
#if defined(CONFIG_PROFILE_STRACE) || defined(CONFIG_PROFILE_HEATMAP) || \
	defined(CONFIG_PROFILE_POINTS) || defined(CONFIG_PROFILE_TRACE)
#define PROFILE_ANY 1
#endif

/*
 * The CPU time of threads by owner, in cycles, without the kernel's own work, such as printing
 * reports. No cycle is in two of them.
 */
struct profile_cpu_times {
	u64 user;
	u64 calls; /* and all other time of kernel code */
	u64 faults;
	u64 exceptions; /* other ones */
	u64 irqs;	/* and NMIs */
};

/* The owners of the time of all CPUs since boot, in cycles. */
struct profile_machine_times {
	u32 nr_cpus;
	struct profile_cpu_times threads; /* of all processes; irqs: of all CPUs, without NMIs */
	u64 nmis, kernel_threads, reports, ends_of_threads, idle;
};

/* How reports delay a thread: see report_delay.c. */
struct profile_report_delay {
	u64 cycles, first_cycles; /* now, and at its creation */
	u64 sleep_cycles;	  /* of the wait that is about to end, until the wake-up */
	u64 printed_cycles;	  /* time of reports when it left its CPU, or was woken since */
};

/* Sums of threads. Their CPU time by owner is in the kernel's accounts of the process. */
struct profile_thread_sums {
	u64 nr_threads;
	u64 cycles;	/* from their creation to their end */
	u64 off_cycles; /* the part of it off a CPU */
	u64 nr_waits;
	u64 nr_preempted;
	u64 ready_cycles;
	u64 nr_migrations;
};

/* The system call of a thread: see profile_sys_exit(). */
struct profile_sys {
#if defined(CONFIG_PROFILE_STRACE) || defined(CONFIG_PROFILE_TRACE)
	u32 nr, generation; /* of the keys; at the entry */
#endif
	pf_may_be_empty;
};

struct profile_task;

#include <profile/trace.h>
/* Includes hooks.h of each folder; with PROFILE_FOLDER(), has a line with the name of each. */
#include <profile/folders.h>

/* Embedded in struct task as `profile`: what each profiler keeps of a thread. */
#define PROFILE_FOLDER(name) struct profile_##name##_task name;
struct profile_task {
#ifdef PROFILE_ANY
	struct profile_process *process;    /* NULL: a kernel thread, or it has ended */
	struct profile_task *next, **pprev; /* in the tasks of its process */
#endif
#ifdef CONFIG_PROFILE_WAITS
	struct profile_report_delay delay;
#endif
	struct profile_sys sys;
#include <profile/folders.h>
	char not_zeroed[0]; /* a new one is zeroed up to here */
#ifdef CONFIG_PROFILE_STRACE
	struct profile_syscall_row spare_row;
	struct profile_restart restarts[PROFILE_MAX_RESTARTS];
#endif
};
#undef PROFILE_FOLDER

/* Embedded in struct process as `profile`. */
#define PROFILE_FOLDER(name) struct profile_##name##_process name;
struct profile_process {
#ifdef PROFILE_ANY
	struct profile_process *next, **pprev; /* all processes: see process_lists.h */
	struct profile_task *tasks;	       /* live threads */
	u64 serial;			       /* order of creation */
	bool has_ended;
	u64 first_delay_cycles; /* report_delay() when it was created */
#endif
#include <profile/folders.h>
	char not_zeroed[0]; /* see above */
#ifdef CONFIG_PROFILE_STRACE
	struct profile_syscall_row spare_rows[3];
#endif
};
#undef PROFILE_FOLDER

/*
 * Sets a variable to true if an allocation or a free, `place`, has to take a slow path, which has
 * the hooks: kmalloc or page_alloc. Any context but NMI; interrupts are off from here to the count
 * of the usual case.
 */
#if defined(CONFIG_PROFILE_TRACE) || defined(CONFIG_PROFILE_MEMORY_CHAINS)
extern os_key_t profile_kmalloc_key, profile_page_alloc_key;
#define profile_asks(place, is_slow)                   \
	do {                                           \
		if (os_key_on(&profile_##place##_key)) \
			(is_slow) = true;              \
	} while (0)
#else
#define profile_asks(place, is_slow) ((void)0)
#endif

#ifdef PROFILE_ANY
/*
 * On: profile=off. Then no hook does anything but those of <profile/memory.h>, and the profilers'
 * structures are not used.
 */
extern os_key_t profile_off_key;

/*
 * Sets a variable to how much of a new structure has to be zeroed: struct task or struct process,
 * with the profilers' part as its last member, `profile`. Any context.
 */
#define profile_set_zeroed(nr_bytes, type)                                              \
	((nr_bytes) = os_key_on(&profile_off_key) ? __builtin_offsetof(type, profile) : \
						    __builtin_offsetof(type, profile.not_zeroed))

/* Sets what os_off_cycles() returns, unless nobody needs it. Called by schedule(). */
#define profile_keep_off_cycles(off_cycles, cycles) \
	do {                                        \
		if (!os_key_on(&profile_off_key))   \
			(off_cycles) = (cycles);    \
	} while (0)

/*
 * The hooks of a context switch together, for a kernel whose struct task has the profilers' part as
 * member `profile`: profile_task_runs(), profile_switch_out() and the event sched_switch. While all
 * of them are off, one NOP. Context as of profile_switch_out().
 */
#ifdef PROFILE_HAS_PLACES
extern os_key_t profile_switch_key, profile_switch_slow_key;
#define profile_switch(prev, next, cycles)                                  \
	do {                                                                \
		if (!os_key_on(&profile_switch_key))                        \
			break;                                              \
		if (!os_key_on(&profile_switch_slow_key)) {                 \
			profile_task_runs_now(&(next)->profile);            \
			profile_switch_out_now(&(prev)->profile, (cycles)); \
			break;                                              \
		}                                                           \
		profile_task_runs(&(next)->profile);                        \
		profile_switch_out(&(prev)->profile, (cycles));             \
		profile_trace(sched_switch, (prev), (next));                \
	} while (0)
#else
#define profile_switch(prev, next, cycles) profile_task_runs(&(next)->profile)
#endif

/*
 * Sets up the profiler's part of a new process. Process context, before its first
 * profile_task_init(). Allocates nothing, cannot fail. Undone by profile_process_release().
 */
void profile_process_init(os_process_t *proc);

/*
 * Sets up the profiler's part of a new task. Its ->proc is set (NULL for a kernel thread). Cannot
 * fail. Undone by profile_task_exit().
 */
void profile_task_init(os_task_t *task);

/*
 * Restarts the tables of a process, with the execve as the first call. Called by the thread that
 * called execve, when it has succeeded and the other threads are gone.
 */
void profile_process_exec(os_process_t *proc);

/* Frees the counters of an ended process that no code can find any more. Process context. */
void profile_process_release(os_process_t *proc);

/* Ends the profiling of a task. Called by the task itself, or by its creator if it never ran. */
void profile_task_exit(os_task_t *task);
#else
#define profile_set_zeroed(nr_bytes, type)	    ((void)0)
#define profile_keep_off_cycles(off_cycles, cycles) ((void)0)
#define profile_switch(prev, next, cycles)	    ((void)0)
static inline void profile_process_init(os_process_t *proc)
{
}
static inline void profile_task_init(os_task_t *task)
{
}
static inline void profile_process_exec(os_process_t *proc)
{
}
static inline void profile_process_release(os_process_t *proc)
{
}
static inline void profile_task_exit(os_task_t *task)
{
}
#endif

/*
 * Enclose what a thread does between the end of a system call and user mode: it may be preempted or
 * stopped there, and that is no part of the call. Interrupts may be on or off. pt is the current
 * thread's.
 */
static inline void profile_return_begin(struct profile_task *pt)
{
#ifdef PROFILE_ANY
	if (os_key_on(&profile_off_key))
		return;
#endif
#ifdef CONFIG_PROFILE_WAITS
	pt->waits.call_phase = PROFILE_RETURNS << PROFILE_PHASE_SHIFT;
#endif
	profile_return_began(pt);
}

static inline void profile_return_end(struct profile_task *pt)
{
#ifdef PROFILE_ANY
	if (os_key_on(&profile_off_key))
		return;
#endif
	profile_return_ended(pt);
#ifdef CONFIG_PROFILE_WAITS
	pt->waits.call_phase = PROFILE_IN_CALL;
#endif
}

#ifdef PROFILE_ANY
/*
 * Sets parameters: words such as profile.hz=997, separated by blanks, as on a command line. Ignores
 * other words. Prints a line for each value that is not valid or has more than 255 bytes, and then
 * returns -OS_EINVAL; else 0. For kernels without OS_BOOT_PARAM. Before profile_init(), or, for
 * parameters that have a control file, at any later time, in process context; others are refused.
 */
int profile_set(const char *words);

/* Starts counting. Called once, when memory, clocks and all CPUs are up. Process context. */
void profile_init(void);

/*
 * Prints the report of a process whose last thread has ended, if profile.on_exit selects it.
 * Process context; may sleep.
 */
void profile_process_exit(os_process_t *proc);

/*
 * Prints a report of the machine: all profilers, with all live processes. Any context. If another
 * report is being printed, the thread that prints it prints this one afterwards. In a panic it is
 * printed at once, without locks.
 */
void profile_report(const char *why);

/*
 * Waits until all reports that have begun or wait for their turn are printed, and lets no new one
 * begin. Logs each glob of profile.on_exit that no process matched. Called before power off.
 * Process context.
 */
void profile_end_reports(void);

/* Adds the number of reports on the console that have begun but not ended. Any context. */
void profile_count_cut_reports(unsigned int *nr);

/*
 * Restarts all counters at zero. A call in flight counts as one call that begins now. Any context
 * but NMI.
 */
void profile_reset(void);
#else
static inline int profile_set(const char *words)
{
	return 0;
}
static inline void profile_init(void)
{
}
static inline void profile_process_exit(os_process_t *proc)
{
}
static inline void profile_report(const char *why)
{
}
static inline void profile_end_reports(void)
{
}
static inline void profile_count_cut_reports(unsigned int *nr)
{
}
static inline void profile_reset(void)
{
}
#endif

#endif
