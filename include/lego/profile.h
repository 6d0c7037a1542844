/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_PROFILE_H
#define LEGO_PROFILE_H

/*
 * The profiler's hooks: the only profiler lines outside kernel/profile/. Each is a statement on
 * a line of its own. With a facility compiled out its hooks are empty and its structs have no
 * members, so the callers' machine code is what it would be without the lines. What each
 * facility shows and costs: kernel/profile/README.md.
 *
 * A kernel that adopts kernel/profile/ names its own seam with -DPROFILE_OS_HEADER='"file.h"'.
 */

#ifdef PROFILE_OS_HEADER
#include PROFILE_OS_HEADER
#else
#include <asm/tsc.h>
#include <lego/kernel.h>
#include <lego/percpu.h>
#endif

struct task;
struct process;
struct pt_regs;

/* Something is there to report. */
#if defined(CONFIG_PROFILE_STRACE) || defined(CONFIG_PROFILE_HEATMAP) || \
	defined(CONFIG_PROFILE_POINTS)
#define PROFILE_ANY 1
#endif

/* One system call of one thread or process. Written by the owner only; see strace.c. */
struct profile_syscall_row {
	u64 nr;
	u64 nr_calls;
	u64 nr_errors;
	u64 cycles;
};

/* Calls that have no row of their own, by reason. */
enum profile_spill {
	PROFILE_SPILL_NO_MEMORY,
	PROFILE_SPILL_UNKNOWN, /* too many different numbers without a name */
	NR_PROFILE_SPILLS,
};

struct profile_syscall_table {
	struct profile_syscall_map *map; /* NULL until the first call */
	struct profile_syscall_row spill[NR_PROFILE_SPILLS];
	u64 nr_backwards; /* calls whose end was read as earlier than their start */
};

/* Embedded in struct task as `profile`. */
struct profile_task {
#ifdef CONFIG_PROFILE_STRACE
	struct profile_syscall_table table;
	struct profile_syscall_row *row; /* of the call in flight; valid while seq is odd */
	u64 nr;				 /* its number */
	u64 start_cycles;
	u64 base_cycles;		 /* row->cycles when it was entered */
	u64 seq;			 /* +1 at entry and at exit */
	u64 epoch;			 /* of the last profile_reset() this thread has followed */
	struct profile_process *process; /* NULL: not in a process, nothing is counted */
	struct profile_task *next, **pprev; /* in process->tasks */
#endif
};

/* Embedded in struct process as `profile`. */
struct profile_process {
#ifdef CONFIG_PROFILE_STRACE
	struct profile_syscall_table table; /* of threads that have exited */
	struct profile_task *tasks;	    /* live threads */
	u64 serial;			    /* order of creation */
	u32 nr_accumulated_threads;
	struct profile_process *next, **pprev; /* all processes */
#endif
};

#ifdef CONFIG_PROFILE_STRACE
/*
 * A struct process is set up: process context, before its first profile_task_init(). Needs no
 * memory, cannot fail. Undone by profile_process_exit().
 */
void profile_process_init(struct process *proc);

/*
 * execve has succeeded, in the calling thread, the others being gone: the table starts again
 * with this call.
 */
void profile_process_exec(struct process *proc);

/*
 * A struct task is set up, ->proc (NULL for a kernel thread) included. No memory, cannot fail.
 * Undone by profile_task_exit(): in the exiting thread's own context, or by its creator if it
 * never ran.
 */
void profile_task_init(struct task *task);
void profile_task_exit(struct task *task);

/*
 * Around every system call of a user thread: process context, interrupts on. nr as the user
 * gave it.
 */
void profile_syscall_enter(unsigned long nr);
void profile_syscall_exit(long ret);
#else
static inline void profile_process_init(struct process *proc)
{
}
static inline void profile_process_exec(struct process *proc)
{
}
static inline void profile_task_init(struct task *task)
{
}
static inline void profile_task_exit(struct task *task)
{
}
static inline void profile_syscall_enter(unsigned long nr)
{
}
static inline void profile_syscall_exit(long ret)
{
}
#endif

#ifdef CONFIG_PROFILE_HEATMAP
/* From each CPU's timer interrupt, interrupts off; regs are what it interrupted. */
void profile_tick(const struct pt_regs *regs);
#else
static inline void profile_tick(const struct pt_regs *regs)
{
}
#endif

#ifdef PROFILE_ANY
/* Once, after kmalloc, clocks and all CPUs are up. Nothing is counted before. */
void profile_init(void);

/*
 * The last thread is gone: prints the report if profile.on_exit says so. Process context, may
 * sleep.
 */
void profile_process_exit(struct process *proc);

/*
 * Print everything: all live processes, heatmap, points. Any context. If a report is being
 * printed already, that CPU prints another one afterwards. In a panic it is printed whatever
 * locks are held.
 */
void profile_report(const char *why);

/*
 * All counters start again from zero; calls in flight count as one, from now. Any context but
 * NMI.
 */
void profile_reset(void);
#else
static inline void profile_init(void)
{
}
static inline void profile_process_exit(struct process *proc)
{
}
static inline void profile_report(const char *why)
{
}
static inline void profile_reset(void)
{
}
#endif

/*
 * Profile points: the time between two places in the code.
 *
 *	DEFINE_PROFILE_POINT(flush)		file scope; static, so other files may use the name
 *too
 *
 *	PROFILE_POINT_TIME(flush)		with the declarations: where the start time is kept
 *	profile_point_start(flush);
 *	...
 *	profile_point_leave(flush);
 *
 *	PROFILE_SCOPE(flush);			from here to the end of the block, however it is
 *left
 *
 * For a section that ends on another stack than it began, but on the same CPU, interrupts off:
 *
 *	PROFILE_POINT_CPU_TIME(flush)		file scope; the start time is kept per CPU
 *	profile_point_start_cpu(flush);
 *	...
 *	profile_point_leave_cpu(flush);
 *
 * PROFILE_START and PROFILE_LEAVE are other names of start and leave. DEFINE_PROFILE_POINT and
 * PROFILE_POINT_TIME may be followed by a semicolon or not, as in LegoOS. Any context, NMI
 * included. A start without a leave, a leave without a start and a second leave count nothing.
 * A point that was off at the start counts nothing at the end.
 */
#ifdef CONFIG_PROFILE_POINTS

/* One CPU's counters of one point. The CPU itself only adds; base_* is what profile_reset() saw. */
struct profile_point_cpu {
	u64 nr;
	u64 cycles;
	u64 nr_backwards; /* pairs whose end was read as earlier than their start: not in nr, cycles
			   */
	u64 base_nr;
	u64 base_cycles;
	u64 base_nr_backwards;
};

struct profile_point {
	const char *name;
	struct profile_point_cpu *cpu; /* for per_cpu() */
	bool enabled;
};

/* Only the point table, LegoOS's name. Same contract as profile_report(). */
void print_profile_points(void);

#define __PROFILE_POINT(name)	  __profile_point_##name
#define __PROFILE_POINT_CPU(name) __profile_point_cpu_##name
#define __PROFILE_TIME(name)	  __profile_time_##name
#define __PROFILE_BEGIN(name)	  __profile_begin_##name
#define __PROFILE_END(name)	  __profile_end_##name

/*
 * The code of a point: its per-CPU counters, and a begin and an end that are inlined at each
 * use.
 */
#define __PROFILE_POINT_CODE(name)                                                   \
	static DEFINE_PER_CPU(struct profile_point_cpu, __PROFILE_POINT_CPU(name));  \
	static struct profile_point __PROFILE_POINT(name);                           \
	static __always_inline __maybe_unused u64 __PROFILE_BEGIN(name)(void)        \
	{                                                                            \
		return READ_ONCE(__PROFILE_POINT(name).enabled) ? rdtsc_begin() : 0; \
	}                                                                            \
	static __always_inline __maybe_unused void __PROFILE_END(name)(u64 * start)  \
	{                                                                            \
		u64 cycles;                                                          \
                                                                                     \
		if (!*start)                                                         \
			return;                                                      \
		cycles = rdtsc_end() - *start;                                       \
		*start = 0;                                                          \
		if (unlikely((s64)cycles < 0)) {                                     \
			this_cpu_add(__PROFILE_POINT_CPU(name).nr_backwards, 1);     \
			return;                                                      \
		}                                                                    \
		this_cpu_add(__PROFILE_POINT_CPU(name).cycles, cycles);              \
		this_cpu_add(__PROFILE_POINT_CPU(name).nr, 1);                       \
	}

#define DEFINE_PROFILE_POINT(name_)                                                           \
	__PROFILE_POINT_CODE(name_)                                                           \
	static struct profile_point __PROFILE_POINT(name_) __used __section("profile_points") \
		__aligned(8) = {                                                              \
			/* or the compiler may leave gaps in the array */                     \
			.name = #name_,                                                       \
			.cpu = &__PROFILE_POINT_CPU(name_),                                   \
		};

#define PROFILE_POINT_TIME(name)     u64 __PROFILE_TIME(name) __maybe_unused = 0;
#define profile_point_start(name)    (__PROFILE_TIME(name) = __PROFILE_BEGIN(name)())
#define profile_point_leave(name)    __PROFILE_END(name)(&__PROFILE_TIME(name))
#define PROFILE_POINT_CPU_TIME(name) static DEFINE_PER_CPU(u64, __profile_cpu_time_##name);
#define profile_point_start_cpu(name) \
	this_cpu_write(__profile_cpu_time_##name, __PROFILE_BEGIN(name)())
#define profile_point_leave_cpu(name)                                  \
	do {                                                           \
		u64 _start = this_cpu_read(__profile_cpu_time_##name); \
		this_cpu_write(__profile_cpu_time_##name, (u64)0);     \
		__PROFILE_END(name)(&_start);                          \
	} while (0)
#define PROFILE_START(name) profile_point_start(name)
#define PROFILE_LEAVE(name) profile_point_leave(name)
#define PROFILE_SCOPE(name)                       \
	u64 __profile_scope_##name __maybe_unused \
		__attribute__((cleanup(__PROFILE_END(name)))) = __PROFILE_BEGIN(name)()

#else

static inline void print_profile_points(void)
{
}

#define DEFINE_PROFILE_POINT(name)
#define PROFILE_POINT_TIME(name)
#define profile_point_start(name) ((void)0)
#define profile_point_leave(name) ((void)0)
#define PROFILE_POINT_CPU_TIME(name)
#define profile_point_start_cpu(name) ((void)0)
#define profile_point_leave_cpu(name) ((void)0)
#define PROFILE_START(name)	      ((void)0)
#define PROFILE_LEAVE(name)	      ((void)0)
#define PROFILE_SCOPE(name)	      ((void)0)

#endif

#endif
