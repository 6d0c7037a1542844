/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_POINTS_HOOKS_H
#define PROFILE_POINTS_HOOKS_H

/*
 * Profile points, a part of <profile/profile.h>, measure the time between two places in the code.
 *
 *	DEFINE_PROFILE_POINT(flush)		at file scope; other files may use the name, too
 *
 *	PROFILE_SCOPE(flush);			measures from here to the end of the block
 *
 * PROFILE_SCOPE() works however the block is left. If start and end are in different blocks:
 *
 *	PROFILE_POINT_TIME(flush)		with the declarations: a variable for the start
 *	profile_point_start(flush);
 *	...
 *	profile_point_leave(flush);
 *
 * A point defined by DEFINE_PROFILE_POINT_SLEEPS(name) is for sections that may sleep. It measures
 * CPU time, too. Process context only.
 *
 * For a section that ends on another stack, but on the same CPU and with interrupts off:
 *
 *	PROFILE_POINT_CPU_TIME(flush)		at file scope; the start is kept for each CPU
 *	profile_point_start_cpu(flush);
 *	...
 *	profile_point_leave_cpu(flush);
 *
 * For code in other languages, such as Rust, which cannot use these macros:
 *
 *	PROFILE_POINT_FUNCTIONS(flush)		at file scope, after DEFINE_PROFILE_POINT(flush)
 *	profile_begin_flush(&start);		struct profile_time: two u64
 *	...
 *	profile_end_flush(&start);
 *
 * PROFILE_START and PROFILE_LEAVE are other names of start and leave. As in LegoOS, a semicolon
 * after DEFINE_PROFILE_POINT and PROFILE_POINT_TIME is optional.
 *
 * Points work in any context, NMI included, from profile_init() on. A start without a leave counts
 * nothing. Three unusual kinds are counted separately: leaves without a start (the point may have
 * been switched on in between), which are not included; pairs that end on another CPU, which are
 * included; and pairs whose end is earlier than their start, which are not.
 */
#define PROFILE_POINT_BUCKETS 64

struct profile_points_task {
#ifdef CONFIG_PROFILE_POINTS
	u64 offset;    /* from section profile_points to its sums; 0: it has none */
	u32 nr_resets; /* of all points at its last reset */
	u32 reading;   /* number of the report that read it last */
#endif
	pf_may_be_empty;
};

#define PROFILE_OWN_POINT_WORDS 40 /* 4 for each point */

struct profile_points_process {
#ifdef CONFIG_PROFILE_POINTS
	void *sums;	  /* of threads that have exited; NULL: none */
	u64 since_cycles; /* TSC when the sums began */
	u64 off_base_ns;  /* total time off of points then */
	u8 since;	  /* enum point_since: the event at which they began */
	u32 nr_lost;	  /* threads that had no memory for sums */
	u32 nr_resets;	  /* of all points at its last reset */
	bool uses_own;
	u64 own[PROFILE_OWN_POINT_WORDS]; /* a table, if it is large enough for all points */
#endif
	pf_may_be_empty;
};

#ifdef CONFIG_PROFILE_POINTS

/* Sums of one point: those of a CPU, and a copy of them at the last reset. */
struct profile_point_sums {
	u64 nr_log2[PROFILE_POINT_BUCKETS]; /* first, so indexing needs no offset */
	u64 cycles;			    /* of all pairs */
	u64 off_cycles; /* the part off a CPU, DEFINE_PROFILE_POINT_SLEEPS only */
	u64 nr_backwards;
	u64 nr_migrated;
	u64 nr_unmatched; /* leaves without a start */
};

/* The bucket of a pair: 0 for no cycles, n + 1 for 2^n to 2^(n+1) - 1 of them. */
#define PROFILE_POINT_BUCKET(cycles) pf_floor_log2(2 * (cycles) + 1)

/* One CPU's counters of one point. That CPU changes each of them by a single instruction. */
struct profile_point_cpu {
	struct profile_point_sums sums;
	u64 min_cycles; /* ~0: none yet */
	u64 max_cycles;
	struct profile_point_sums base;
};

struct profile_point {
	const char *name; /* NULL: no report shows it */
	OS_PER_CPU(struct profile_point_cpu) * cpu;
	os_key_t key; /* on: it counts */
	bool sleeps;
	bool wanted;	 /* own use of points_apply() */
	bool was_on;	 /* since boot, or since it was switched on later */
	u32 nr_switches; /* of the key; marks starts kept for a CPU that are older */
	u32 nr_resets;	 /* the generation of its counters */
};

/*
 * One thread's sums for one point. The thread's table is spaced like the points in their section.
 * So one offset, kept for each CPU, leads from any point to its sums.
 */
struct profile_point_task {
	u64 cycles;
	u64 nr;
};

/*
 * The offset from a point to the sums of the current thread, and the offset to a table that is
 * never read. The latter is used while the CPU runs a task without sums: idle or a kernel thread.
 */
OS_DECLARE_PER_CPU(u64, profile_points_offset);
OS_DECLARE_PER_CPU(u64, profile_idle_offset);

#define __PROFILE_POINT_TASK(point, offset) \
	((struct profile_point_task *)((unsigned long)(point) + (offset)))

/* On while any point is on. */
extern os_key_t profile_points_key;

/*
 * The start of a pair. Both ends of a pair add the number of their CPU to the topmost byte of the
 * clock. On the same CPU the numbers cancel out; otherwise the difference is huge. It is also huge
 * if the start is missing, and so 0.
 *
 * If the point may sleep, both ends add that number to the thread's time off a CPU instead. The
 * sum differs only if the thread has been switched out in between.
 */
#define PROFILE_CPU_SHIFT 56

struct profile_time {
	u64 cycles;   /* 0: none */
	u64 off_bits; /* profile_off_bits; points that sleep only */
};

/* os_cpu() << PROFILE_CPU_SHIFT; the same + os_off_cycles() of the current thread. */
OS_DECLARE_PER_CPU(u64, profile_cpu_bits);
OS_DECLARE_PER_CPU(u64, profile_off_bits);

/* Prints the table of points alone; the name is LegoOS's. Same contexts as profile_report(). */
void print_profile_points(void);

/*
 * Slow path of a pair's end: its length is a new minimum or maximum, or is not valid (see
 * points/point.c). cycles is the difference of end and start; off is the time off a CPU within the
 * pair, 0 if the point does not sleep. start and cycles include the numbers of CPUs or, if the
 * point sleeps, off does.
 */
void profile_point_end_slow(struct profile_point *point, u64 start, u64 cycles,
			    u64 off) os_saves_registers;

/* Records the event of a pair's begin. */
void profile_point_record_begin(const struct profile_point *point) os_saves_registers;

/* Set in the start of a recorded pair: the end takes the slow path, which records the end, too. */
#define PROFILE_POINT_RECORDED (1ull << 63)

/* Returns the start of a pair. bits is profile_cpu_bits, or 0 if the point sleeps. */
static pf_always_inline u64 profile_point_begin(const struct profile_point *point, u64 bits)
{
#ifdef CONFIG_PROFILE_TRACE
	if (pf_unlikely(os_key_on(&profile_trace_key_point_begin))) {
		os_call_1(profile_point_record_begin, point);
		return bits + PROFILE_POINT_RECORDED + os_clock_begin();
	}
#endif
	return bits + os_clock_begin();
}

#define __PROFILE_POINT(name)	  __profile_point_##name
#define __PROFILE_POINT_CPU(name) __profile_point_cpu_##name
#define __PROFILE_TIME(name)	  __profile_time_##name
#define __PROFILE_BEGIN(name)	  __profile_begin_##name
#define __PROFILE_END(name)	  __profile_end_##name

#define __PROFILE_POINT_IS_RARE(name, cycles)                                                      \
	(pf_unlikely(os_this_cpu_below(os_local(__PROFILE_POINT_CPU(name)).max_cycles, cycles)) || \
	 pf_unlikely(os_this_cpu_above(os_local(__PROFILE_POINT_CPU(name)).min_cycles, cycles)))

/*
 * The code of a point: its counters, and a begin and an end that are inlined at each use. While the
 * point is off, each is a NOP, and a pair zeroes one register or, if it may sleep, a word on the
 * stack. While it is on, the end is the hot path: one read of the clock, two compares, an add and
 * an increment in this CPU's memory, and an add and an increment in the thread's memory. Any
 * unusual pair (no start, another CPU, a clock that went back, a reset since its start) reads as
 * longer than the longest one so far, so one compare finds it; of a point that may sleep, another
 * CPU reads as a longer time off one than the pair took. The trace events of a pair are recorded
 * outside of the measured time.
 */
#define __PROFILE_POINT_CODE(name, sleeps_)                                                        \
	enum {                                                                                     \
		__profile_sleeps_##name = sleeps_                                                  \
	};                                                                                         \
	static OS_DEFINE_PER_CPU(struct profile_point_cpu, __PROFILE_POINT_CPU(name)) =            \
		OS_EACH_CPU({ .min_cycles = ~0ull });                                              \
	static struct profile_point __PROFILE_POINT(name);                                         \
	static pf_always_inline pf_unused struct profile_time __PROFILE_BEGIN(name)(void)          \
	{                                                                                          \
		struct profile_time t;                                                             \
                                                                                                   \
		if (pf_unlikely(os_key_on(&__PROFILE_POINT(name).key))) {                          \
			u64 bits = 0;                                                              \
                                                                                                   \
			if (sleeps_)                                                               \
				t.off_bits = os_this_cpu_read(os_local(profile_off_bits));         \
			else                                                                       \
				bits = os_this_cpu_read(os_local(profile_cpu_bits));               \
			t.cycles = profile_point_begin(&__PROFILE_POINT(name), bits);              \
			/* Keeps the start of a long section in memory, not in registers. */       \
			if (sleeps_)                                                               \
				asm("" : "+m"(t));                                                 \
		} else {                                                                           \
			t.cycles = 0;                                                              \
			if (sleeps_)                                                               \
				asm("" : "+m"(t.cycles));                                          \
		}                                                                                  \
		return t;                                                                          \
	}                                                                                          \
	static pf_always_inline pf_unused void __PROFILE_END(name)(struct profile_time * t)        \
	{                                                                                          \
		u64 cycles, off = 0, task;                                                         \
                                                                                                   \
		if (pf_likely(!os_key_on(&__PROFILE_POINT(name).key)))                             \
			return;                                                                    \
		cycles = os_clock_end();                                                           \
		if (!sleeps_)                                                                      \
			cycles = os_this_cpu_plus(os_local(profile_cpu_bits), cycles);             \
		cycles -= t->cycles;                                                               \
		if (sleeps_)                                                                       \
			off = os_this_cpu_read(os_local(profile_off_bits)) - t->off_bits;          \
		if (sleeps_ && pf_unlikely(off)) {                                                 \
			if (pf_unlikely(off > cycles) || __PROFILE_POINT_IS_RARE(name, cycles))    \
				goto slow;                                                         \
			os_this_cpu_add(os_local(__PROFILE_POINT_CPU(name)).sums.off_cycles, off); \
		} else if (__PROFILE_POINT_IS_RARE(name, cycles)) {                                \
			goto slow;                                                                 \
		}                                                                                  \
		/* First, as it takes longest, and the fence of the next pair waits for it. */     \
		os_this_cpu_inc(os_local(__PROFILE_POINT_CPU(name))                                \
					.sums.nr_log2[PROFILE_POINT_BUCKET(cycles)]);              \
		os_this_cpu_add(os_local(__PROFILE_POINT_CPU(name)).sums.cycles, cycles);          \
		task = os_this_cpu_read(os_local(profile_points_offset));                          \
		os_add(__PROFILE_POINT_TASK(&__PROFILE_POINT(name), task)->cycles, cycles);        \
		/* Keeps GCC from computing the address of both in another instruction. */         \
		asm("" : "+r"(task));                                                              \
		os_add(__PROFILE_POINT_TASK(&__PROFILE_POINT(name), task)->nr, 1);                 \
		t->cycles = 0;                                                                     \
		return;                                                                            \
slow:                                                                                              \
		if (sleeps_)                                                                       \
			asm("" : "+m"(*t)); /* not in a register until here */                     \
		os_call_with(profile_point_end_slow, &__PROFILE_POINT(name), t->cycles, cycles,    \
			     off);                                                                 \
		t->cycles = 0;                                                                     \
	}

#define __DEFINE_PROFILE_POINT(name_, sleeps_)                                                  \
	__PROFILE_POINT_CODE(name_, sleeps_)                                                    \
	static struct profile_point __PROFILE_POINT(name_) pf_used pf_section("profile_points") \
		pf_aligned(8) = {                                                               \
			/* aligned, or the compiler may leave gaps in the array */              \
			.name = #name_,                                                         \
			.cpu = &__PROFILE_POINT_CPU(name_),                                     \
			.sleeps = sleeps_,                                                      \
		};

#define DEFINE_PROFILE_POINT(name)	  __DEFINE_PROFILE_POINT(name, false)
#define DEFINE_PROFILE_POINT_SLEEPS(name) __DEFINE_PROFILE_POINT(name, true)

#define PROFILE_POINT_TIME(name) \
	struct profile_time __PROFILE_TIME(name) pf_unused = { .cycles = 0 };
#define profile_point_start(name) ((void)(__PROFILE_TIME(name) = __PROFILE_BEGIN(name)()))
#define profile_point_leave(name) __PROFILE_END(name)(&__PROFILE_TIME(name))
#define PROFILE_START(name)	  profile_point_start(name)
#define PROFILE_LEAVE(name)	  profile_point_leave(name)

#define __PROFILE_UNTIL_END(name) __attribute__((cleanup(__PROFILE_END(name))))
#define PROFILE_SCOPE(name)                                                              \
	struct profile_time __profile_scope_##name pf_unused __PROFILE_UNTIL_END(name) = \
		__PROFILE_BEGIN(name)()

#define __PROFILE_TIME_START(name, start) (*(start) = __PROFILE_BEGIN(name)())
#define __PROFILE_TIME_LEAVE(name, start) __PROFILE_END(name)(start)

/*
 * Keeps a start for each CPU, and nr_switches then: a start from before a switch is not valid. The
 * point must be one that does not sleep.
 */
#define PROFILE_POINT_CPU_TIME(name)                                                   \
	_Static_assert(!__profile_sleeps_##name, "a section of a CPU does not sleep"); \
	static OS_DEFINE_PER_CPU(struct profile_time, __profile_cpu_time_##name);      \
	static OS_DEFINE_PER_CPU(u32, __profile_cpu_switches_##name);
#define profile_point_start_cpu(name)                                                          \
	do {                                                                                   \
		if (pf_unlikely(os_key_on(&__PROFILE_POINT(name).key))) {                      \
			u64 _bits = os_this_cpu_read(os_local(profile_cpu_bits));              \
                                                                                               \
			os_this_cpu_write(os_local(__profile_cpu_switches_##name),             \
					  pf_read_once(__PROFILE_POINT(name).nr_switches));    \
			os_this_cpu_write(os_local(__profile_cpu_time_##name).cycles,          \
					  profile_point_begin(&__PROFILE_POINT(name), _bits)); \
		}                                                                              \
	} while (0)
#define profile_point_leave_cpu(name)                                                          \
	do {                                                                                   \
		if (pf_unlikely(os_key_on(&__PROFILE_POINT(name).key))) {                      \
			struct profile_time _t = { .cycles = 0 };                              \
                                                                                               \
			if (os_this_cpu_read(os_local(__profile_cpu_switches_##name)) ==       \
			    pf_read_once(__PROFILE_POINT(name).nr_switches))                   \
				_t.cycles = os_this_cpu_read(                                  \
					os_local(__profile_cpu_time_##name).cycles);           \
			os_this_cpu_write(os_local(__profile_cpu_time_##name).cycles, (u64)0); \
			__PROFILE_END(name)(&_t);                                              \
		}                                                                              \
	} while (0)

/*
 * Points this CPU's offset to the sums of its next thread, and keeps its time off a CPU. Called by
 * the scheduler before the switch, interrupts off, when os_off_cycles() is that of its new run.
 */
#define profile_task_runs_now(pt) profile_points_run(&(pt)->points, os_off_cycles(pt))
#define profile_task_runs(pt)                                    \
	do {                                                     \
		if (pf_unlikely(os_key_on(&profile_points_key))) \
			profile_task_runs_now(pt);               \
	} while (0)
static inline void profile_points_run(const struct profile_points_task *points, u64 off_cycles)
{
	os_this_cpu_write(os_local(profile_points_offset),
			  points->offset ?: os_this_cpu_read(os_local(profile_idle_offset)));
	os_this_cpu_write(os_local(profile_off_bits),
			  os_this_cpu_plus(os_local(profile_cpu_bits), off_cycles));
}

#else

static inline void print_profile_points(void)
{
}
#define profile_task_runs_now(pt) ((void)0)
#define profile_task_runs(pt)	  ((void)0)

#define DEFINE_PROFILE_POINT(name)
#define DEFINE_PROFILE_POINT_SLEEPS(name)
#define PROFILE_POINT_TIME(name)
#define profile_point_start(name)	  ((void)0)
#define profile_point_leave(name)	  ((void)0)
#define PROFILE_START(name)		  ((void)0)
#define PROFILE_LEAVE(name)		  ((void)0)
#define PROFILE_SCOPE(name)		  ((void)0)
struct profile_time;
#define __PROFILE_TIME_START(name, start) ((void)0)
#define __PROFILE_TIME_LEAVE(name, start) ((void)0)
#define PROFILE_POINT_CPU_TIME(name)
#define profile_point_start_cpu(name) ((void)0)
#define profile_point_leave_cpu(name) ((void)0)

#endif

#define PROFILE_POINT_FUNCTIONS(name)                          \
	void profile_begin_##name(struct profile_time *start); \
	void profile_begin_##name(struct profile_time *start)  \
	{                                                      \
		__PROFILE_TIME_START(name, start);             \
	}                                                      \
	void profile_end_##name(struct profile_time *start);   \
	void profile_end_##name(struct profile_time *start)    \
	{                                                      \
		__PROFILE_TIME_LEAVE(name, start);             \
	}

#endif
