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
#include <asm/point_clock.h>
#include <lego/kernel.h>
#include <lego/percpu.h>
#include <lego/static_key.h>
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
 *	DEFINE_PROFILE_POINT(flush)		file scope; static: other files may use the name too
 *
 *	PROFILE_SCOPE(flush);			from here to the end of the block
 *	PROFILE_FUNCTION(flush);		the same; says that the block is a function's
 *	PROFILE_POINT(flush) { ... }		a block
 *
 * These three are right however the block is left. Where the start and the end are apart:
 *
 *	PROFILE_POINT_TIME(flush)		with the declarations: where the start is kept
 *	profile_point_start(flush);
 *	...
 *	profile_point_leave(flush);
 *
 * A point defined by DEFINE_PROFILE_POINT_SLEEPS(name) is for sections that may sleep: it has the
 * time its task was on a CPU, too. Process context only.
 *
 * For a section that ends on another stack than it began, but on the same CPU, interrupts off:
 *
 *	PROFILE_POINT_CPU_TIME(flush)		file scope; the start is kept per CPU
 *	profile_point_start_cpu(flush);
 *	...
 *	profile_point_leave_cpu(flush);
 *
 * PROFILE_START and PROFILE_LEAVE are other names of start and leave. DEFINE_PROFILE_POINT and
 * PROFILE_POINT_TIME may be followed by a semicolon or not, as in LegoOS. PROFILE_POINT hides a
 * loop: `break` and `continue` directly in its block would only leave the block; the build
 * rejects them.
 *
 * Any context, NMI included. A point counts from profile_init() on. A start without a leave counts
 * nothing; a leave without a start, also because the point was switched on in between, is counted
 * apart. So are pairs that end on another CPU (they count) and pairs whose end is read as earlier
 * than their start (they do not).
 */
#define PROFILE_POINT_BUCKETS 64

#ifdef CONFIG_PROFILE_POINTS

/* What a CPU adds up, and what it had when profile_reset() looked. */
struct profile_point_sums {
	/* [i]: pairs of 2^i to 2^(i+1)-1 cycles; 0 is in [0]. First: indexing adds nothing. */
	u64 nr_log2[PROFILE_POINT_BUCKETS];
	u64 cycles;	  /* of all pairs */
	u64 oncpu_cycles; /* of all pairs, DEFINE_PROFILE_POINT_SLEEPS only */
	u64 nr_backwards;
	u64 nr_migrated;
	u64 nr_unmatched; /* leaves without a start */
};

/* One CPU's counters of one point, changed by single instructions of that CPU. */
struct profile_point_cpu {
	struct profile_point_sums sums;
	u64 min_cycles; /* ~0: none yet */
	u64 max_cycles;
	struct profile_point_sums base;
};

struct profile_point {
	const char *name;
	struct profile_point_cpu *cpu; /* for per_cpu() */
	struct static_key key;	       /* on: it counts */
	bool sleeps;
	u32 nr_switches; /* of key, to tell a start kept per CPU from an old one */
};

/* Where a pair's start is kept. */
struct profile_time {
	u64 cycles; /* 0: none */
	u64 oncpu_cycles;
	unsigned int cpu;
};

/* Only the point table, LegoOS's name. Same contract as profile_report(). */
void print_profile_points(void);

/* The CPU time of the current task, in cycles. */
u64 profile_oncpu_cycles(void);

#define __PROFILE_POINT(name)	  __profile_point_##name
#define __PROFILE_POINT_CPU(name) __profile_point_cpu_##name
#define __PROFILE_TIME(name)	  __profile_time_##name
#define __PROFILE_BEGIN(name)	  __profile_begin_##name
#define __PROFILE_END(name)	  __profile_end_##name

/*
 * The code of a point: its counters, and a begin and an end that are inlined at each use. Off,
 * each is a NOP, and a pair zeroes one register. The end with the point on is the hot path: one
 * read of the clock, one add, one increment and two compares with memory of this CPU's own.
 */
#define __PROFILE_POINT_CODE(name, sleeps_)                                                     \
	static DEFINE_PER_CPU(struct profile_point_cpu, __PROFILE_POINT_CPU(name)) = {          \
		.min_cycles = ~0ull,                                                            \
	};                                                                                      \
	static struct profile_point __PROFILE_POINT(name);                                      \
	static __always_inline __maybe_unused struct profile_time __PROFILE_BEGIN(name)(void)   \
	{                                                                                       \
		struct profile_time t;                                                          \
                                                                                                \
		t.cycles = 0;                                                                   \
		if (unlikely(static_key_on(&__PROFILE_POINT(name).key))) {                      \
			if (sleeps_)                                                            \
				t.oncpu_cycles = profile_oncpu_cycles();                        \
			t.cpu = smp_processor_id();                                             \
			t.cycles = point_clock_begin();                                         \
		}                                                                               \
		return t;                                                                       \
	}                                                                                       \
	static __always_inline __maybe_unused void __PROFILE_END(name)(struct profile_time * t) \
	{                                                                                       \
		bool backwards;                                                                 \
		u64 cycles, log2;                                                               \
                                                                                                \
		if (likely(!static_key_on(&__PROFILE_POINT(name).key)))                         \
			return;                                                                 \
		if (unlikely(!t->cycles)) {                                                     \
			this_cpu_inc(__PROFILE_POINT_CPU(name).sums.nr_unmatched);              \
			return;                                                                 \
		}                                                                               \
		backwards = __builtin_sub_overflow(point_clock_end(), t->cycles, &cycles);      \
		t->cycles = 0;                                                                  \
		if (unlikely(backwards)) {                                                      \
			this_cpu_inc(__PROFILE_POINT_CPU(name).sums.nr_backwards);              \
			return;                                                                 \
		}                                                                               \
		if (unlikely(smp_left_cpu(t->cpu)))                                             \
			this_cpu_inc(__PROFILE_POINT_CPU(name).sums.nr_migrated);               \
		this_cpu_add(__PROFILE_POINT_CPU(name).sums.cycles, cycles);                    \
		log2 = 63u - (unsigned int)__builtin_clzll(cycles | 1);                         \
		this_cpu_inc(__PROFILE_POINT_CPU(name).sums.nr_log2[log2]);                     \
		if (unlikely(this_cpu_above(__PROFILE_POINT_CPU(name).min_cycles, cycles)))     \
			this_cpu_lower(__PROFILE_POINT_CPU(name).min_cycles, cycles);           \
		if (unlikely(this_cpu_below(__PROFILE_POINT_CPU(name).max_cycles, cycles)))     \
			this_cpu_raise(__PROFILE_POINT_CPU(name).max_cycles, cycles);           \
		if (sleeps_)                                                                    \
			this_cpu_add(__PROFILE_POINT_CPU(name).sums.oncpu_cycles,               \
				     profile_oncpu_cycles() - t->oncpu_cycles);                 \
	}

#define __DEFINE_PROFILE_POINT(name_, sleeps_)                                                \
	__PROFILE_POINT_CODE(name_, sleeps_)                                                  \
	static struct profile_point __PROFILE_POINT(name_) __used __section("profile_points") \
		__aligned(8) = {                                                              \
			/* or the compiler may leave gaps in the array */                     \
			.name = #name_,                                                       \
			.cpu = &__PROFILE_POINT_CPU(name_),                                   \
			.sleeps = sleeps_,                                                    \
		};

#define DEFINE_PROFILE_POINT(name)	  __DEFINE_PROFILE_POINT(name, false)
#define DEFINE_PROFILE_POINT_SLEEPS(name) __DEFINE_PROFILE_POINT(name, true)

#define PROFILE_POINT_TIME(name) \
	struct profile_time __PROFILE_TIME(name) __maybe_unused = { .cycles = 0 };
#define profile_point_start(name) ((void)(__PROFILE_TIME(name) = __PROFILE_BEGIN(name)()))
#define profile_point_leave(name) __PROFILE_END(name)(&__PROFILE_TIME(name))
#define PROFILE_START(name)	  profile_point_start(name)
#define PROFILE_LEAVE(name)	  profile_point_leave(name)

#define __PROFILE_UNTIL_END(name) __attribute__((cleanup(__PROFILE_END(name))))
#define PROFILE_SCOPE(name)                                                                   \
	struct profile_time __profile_scope_##name __maybe_unused __PROFILE_UNTIL_END(name) = \
		__PROFILE_BEGIN(name)()
#define PROFILE_FUNCTION(name) PROFILE_SCOPE(name)
#define PROFILE_POINT(name)                                               \
	for (struct profile_time __profile_block_##name                   \
		     __PROFILE_UNTIL_END(name) = __PROFILE_BEGIN(name)(), \
		     *__profile_once_##name = &__profile_block_##name;    \
	     __profile_once_##name; __profile_once_##name = NULL)

/* The start kept per CPU, and nr_switches then: what a switch left behind is not a start. */
#define PROFILE_POINT_CPU_TIME(name)                                           \
	static DEFINE_PER_CPU(struct profile_time, __profile_cpu_time_##name); \
	static DEFINE_PER_CPU(u32, __profile_cpu_switches_##name);
#define profile_point_start_cpu(name)                                                          \
	do {                                                                                   \
		if (unlikely(static_key_on(&__PROFILE_POINT(name).key))) {                     \
			this_cpu_write(__profile_cpu_switches_##name,                          \
				       READ_ONCE(__PROFILE_POINT(name).nr_switches));          \
			this_cpu_write(__profile_cpu_time_##name.cycles, point_clock_begin()); \
		}                                                                              \
	} while (0)
#define profile_point_leave_cpu(name)                                                        \
	do {                                                                                 \
		if (unlikely(static_key_on(&__PROFILE_POINT(name).key))) {                   \
			struct profile_time _t = { .cpu = smp_processor_id() };              \
                                                                                             \
			if (this_cpu_read(__profile_cpu_switches_##name) ==                  \
			    READ_ONCE(__PROFILE_POINT(name).nr_switches))                    \
				_t.cycles = this_cpu_read(__profile_cpu_time_##name.cycles); \
			this_cpu_write(__profile_cpu_time_##name.cycles, (u64)0);            \
			__PROFILE_END(name)(&_t);                                            \
		}                                                                            \
	} while (0)

#else

static inline void print_profile_points(void)
{
}

#define DEFINE_PROFILE_POINT(name)
#define DEFINE_PROFILE_POINT_SLEEPS(name)
#define PROFILE_POINT_TIME(name)
#define profile_point_start(name) ((void)0)
#define profile_point_leave(name) ((void)0)
#define PROFILE_START(name)	  ((void)0)
#define PROFILE_LEAVE(name)	  ((void)0)
#define PROFILE_SCOPE(name)	  ((void)0)
#define PROFILE_FUNCTION(name)	  ((void)0)
#define PROFILE_POINT(name)
#define PROFILE_POINT_CPU_TIME(name)
#define profile_point_start_cpu(name) ((void)0)
#define profile_point_leave_cpu(name) ((void)0)

#endif

#endif
