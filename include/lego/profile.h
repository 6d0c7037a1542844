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

#define PROFILE_NR_INDEXED	 512 /* numbers of system calls found through an index */
#define PROFILE_INDEX_UNIT	 8   /* bytes; index[] leads from a number to index + units */
#define PROFILE_SYSCALL_BUCKETS	 32
#define PROFILE_BUCKET_BASE_LOG2 7

/* One system call of one thread or process. Written by the owner only; see strace.c. */
struct profile_syscall_row {
	u64 nr;
	u64 nr_calls;
	u64 nr_errors;
	u64 cycles; /* wall time */
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	u64 off_cycles; /* of them, not on a CPU */
	u64 max_cycles; /* of the calls that have ended, as is what follows */
	/*
	 * [i]: of 2^(i+7) to 2^(i+8)-1 cycles; the first has all shorter, the last all longer ones.
	 */
	u64 nr_log2[PROFILE_SYSCALL_BUCKETS];
#endif
};

/* Calls that have no row of their own, by reason. */
enum profile_overflow {
	PROFILE_OVERFLOW_NO_MEMORY,
	PROFILE_OVERFLOW_UNKNOWN, /* too many different numbers without a name */
	NR_PROFILE_OVERFLOWS,
};

/* Their row, which a process's threads share: only touched with strace_lock held. */
struct profile_overflow_row {
	u64 nr_calls;
	u64 nr_errors;
	u64 nr_ended;
	u64 cycles;
	u64 off_cycles;
	u64 max_cycles;
};

/* Counters that are nobody's in particular any more, guarded by strace_lock. */
struct profile_syscall_sum {
	struct profile_syscall_table *table; /* NULL until the first call */
	struct profile_overflow_row overflow[NR_PROFILE_OVERFLOWS];
	u64 nr_backwards;  /* calls whose end was read as earlier than their start */
	u64 nr_unfollowed; /* interrupted calls that were given up: see strace_restart.c */
};

/* A call that a signal has interrupted and that will go on. */
struct profile_restart {
	u64 nr;
	u64 ip, sp; /* where: of its SYSCALL instruction */
	u64 cycles; /* it took until then */
	u32 row;    /* its offset in the table; 0: an overflow row */
	u8 overflow;
	u8 state; /* enum restart_state */
};

#define PROFILE_MAX_RESTARTS 3

/* Embedded in struct task as `profile`. */
struct profile_task {
#ifdef CONFIG_PROFILE_HEATMAP
	u64 who; /* see profile_task_changed(); its low byte: about the number of the program */
#endif
#ifdef CONFIG_PROFILE_STRACE
	/*
	 * The hot path's own. index is the table's, or one of no row when the next call has to take
	 * the slow path; event: the end of a call has to.
	 */
	const u16 *index;
	struct profile_syscall_row *row; /* of the call in flight; NULL: an overflow row */
	u64 start_cycles;
	u64 base_cycles;     /* row->cycles when it was entered */
	u64 base_off_cycles; /* row->off_cycles then, less what the task had been off a CPU */
	u64 seq;	     /* +1 at entry and at exit */
	bool event;
	u64 argument; /* for the slow path */

	bool wants_room; /* an error had no slot */
	u8 overflow;	 /* if row is NULL */
	u8 nr_restarts;
	struct profile_syscall_table *table;
	u64 carry_cycles; /* what the call in flight took before it was interrupted */
	struct profile_restart restarts[PROFILE_MAX_RESTARTS];
	u64 nr_backwards, nr_unfollowed;

	/* For the thread to follow up, by who holds strace_lock; 0: nothing. */
	u64 reset_cycles, reset_off_cycles; /* counters start again from there */
	u64 cut_cycles, cut_off_cycles;	    /* counting was switched off in a call */

	struct live_task *live;		    /* live.c */
	bool live_active;		    /* the call in flight will have a line, perhaps */
	struct profile_process *process;    /* NULL: not in a process, nothing is counted */
	struct profile_task *next, **pprev; /* in process->tasks */
#endif
};

/* Embedded in struct process as `profile`. */
struct profile_process {
#ifdef CONFIG_PROFILE_STRACE
	struct profile_syscall_sum own;	     /* of threads that have exited */
	struct profile_syscall_sum before;   /* of what it ran before its last execve */
	struct profile_syscall_sum children; /* of children waited for, and of theirs */
	u32 nr_children;
	u32 nr_accumulated_threads;
	struct profile_task *tasks; /* live threads */
	bool off;		    /* is not to be counted */
	bool ended;
	u64 serial;			       /* order of creation */
	struct profile_process *next, **pprev; /* all processes */
#endif
};

#if defined(CONFIG_PROFILE_STRACE) || defined(CONFIG_PROFILE_HEATMAP)
/*
 * A struct task is set up, ->proc (NULL for a kernel thread) included. No memory, cannot fail.
 * Undone by profile_task_exit().
 */
void profile_task_init(struct task *task);
#else
static inline void profile_task_init(struct task *task)
{
}
#endif

#ifdef CONFIG_PROFILE_STRACE
/*
 * A struct process is set up: process context, before its first profile_task_init(). Needs no
 * memory, cannot fail. Undone by profile_process_release().
 */
void profile_process_init(struct process *proc);

/*
 * execve has succeeded, in the calling thread, the others being gone: the table starts again
 * with this call.
 */
void profile_process_exec(struct process *proc);

/*
 * The current thread's process has waited for a child, which is out of the family and not released
 * yet: its calls are added to those of the children. Process context.
 */
void profile_process_waited(struct process *child);

/* An ended process that nobody can find any more. Process context. */
void profile_process_release(struct process *proc);

/* A struct task ends: in its own context, or in that of its creator if it never ran. */
void profile_task_exit(struct task *task);

/*
 * What becomes of a system call of the current thread that has returned -ERESTART<something>:
 * EINTR, or it is made again, when user mode gets to ip with stack pointer sp. handler: a signal
 * handler runs first; sigreturn: one has returned to there. Process context.
 */
void profile_syscall_interrupted(void);
void profile_syscall_again(u64 ip, u64 sp);
void profile_syscall_handler(void);
void profile_syscall_sigreturn(u64 ip, u64 sp);
#else
static inline void profile_process_init(struct process *proc)
{
}
static inline void profile_process_exec(struct process *proc)
{
}
static inline void profile_process_waited(struct process *child)
{
}
static inline void profile_process_release(struct process *proc)
{
}
static inline void profile_task_exit(struct task *task)
{
}
static inline void profile_syscall_interrupted(void)
{
}
static inline void profile_syscall_again(u64 ip, u64 sp)
{
}
static inline void profile_syscall_handler(void)
{
}
static inline void profile_syscall_sigreturn(u64 ip, u64 sp)
{
}
#endif

#ifdef CONFIG_PROFILE_HEATMAP
/* For the hooks below: which source of samples is on, and when this CPU's next sample is due. */
extern struct static_key profile_timer_key, profile_nmi_key;
DECLARE_PER_CPU(u64, profile_deadline); /* TSC; ~0: never */
void profile_timer_came(const struct pt_regs *regs);
void profile_nmi_came(const struct pt_regs *regs);

/*
 * The current task has another name, another program or no process any more: its samples are not
 * those of before. Process context.
 */
void profile_task_changed(struct task *task);

/* From each CPU's timer interrupt, interrupts off, first of all; regs are what it interrupted. */
static inline void profile_tick(const struct pt_regs *regs)
{
	if (static_key_on(&profile_timer_key))
		profile_timer_came(regs);
}

/* Before this CPU's timer is set for a deadline: to an earlier one if a sample is due before. */
static inline void profile_next_deadline(u64 *deadline)
{
	if (static_key_on(&profile_timer_key) && this_cpu_read(profile_deadline) < *deadline)
		*deadline = this_cpu_read(profile_deadline);
}

/* From the NMI handler; says so if the NMI may have been the profiler's. */
static inline void profile_nmi(const struct pt_regs *regs, bool *handled)
{
	if (static_key_on(&profile_nmi_key)) {
		*handled = true;
		profile_nmi_came(regs);
	}
}
#else
static inline void profile_task_changed(struct task *task)
{
}
static inline void profile_tick(const struct pt_regs *regs)
{
}
static inline void profile_next_deadline(u64 *deadline)
{
}
static inline void profile_nmi(const struct pt_regs *regs, bool *handled)
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
