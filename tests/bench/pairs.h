/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_PAIRS_H
#define BENCH_PAIRS_H

/*
 * Two designs to compare profile points with. The minimum: two reads of the clock and two additions
 * to this CPU's memory, always on. LegoOS's design, re-created: a flag that is tested at both ends,
 * a clock that scales the TSC to nanoseconds like Linux's sched_clock(), and two locked additions
 * to the flag's cache line. Both run with interrupts off, or in a thread that is tied to its CPU.
 */

#include <asm/tsc.h>
#include <lego/kernel.h>
#include <lego/profile.h>

struct minimum_point {
	u64 nr;
	u64 cycles;
};

static DEFINE_PER_CPU(struct minimum_point, minimum_point);

static __always_inline u64 minimum_start(void)
{
	return rdtsc();
}

static __always_inline void minimum_leave(u64 start)
{
	this_cpu_add(minimum_point.cycles, rdtsc() - start);
	this_cpu_inc(minimum_point.nr);
}

/* With rdtsc_begin() at the start: the minimum with fences, which points have by default. */
static __always_inline __maybe_unused void fenced_leave(u64 start)
{
	this_cpu_add(minimum_point.cycles, rdtsc_end() - start);
	this_cpu_inc(minimum_point.nr);
}

struct legoos_point {
	bool enabled;
	u64 nr;
	u64 ns;
} __aligned(64);

static struct legoos_point legoos_point;

/* A nanosecond is a cycle here. The comparison is of the work, not of the unit. */
#define LEGOOS_CLOCK_SHIFT 10
static DEFINE_PER_CPU(u32, legoos_clock_mult) = 1 << LEGOOS_CLOCK_SHIFT;
static DEFINE_PER_CPU(u64, legoos_clock_offset_ns);

static noinline u64 legoos_clock(void)
{
	unsigned __int128 scaled = (unsigned __int128)rdtsc() * this_cpu_read(legoos_clock_mult);

	return (u64)(scaled >> LEGOOS_CLOCK_SHIFT) + this_cpu_read(legoos_clock_offset_ns);
}

static __always_inline u64 legoos_start(void)
{
	u64 start_ns = 0;

	if (unlikely(legoos_point.enabled))
		start_ns = legoos_clock();
	return start_ns;
}

static __always_inline void legoos_leave(u64 start_ns)
{
	if (unlikely(legoos_point.enabled)) {
		u64 ns = legoos_clock() - start_ns;

		__atomic_fetch_add(&legoos_point.nr, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&legoos_point.ns, ns, __ATOMIC_RELAXED);
	}
}

/* Defines name##_pairs(nr), which runs nr empty pairs. */
#define DEFINE_PAIRS(name, start, leave)          \
	static noinline void name##_pairs(int nr) \
	{                                         \
		for (int i = 0; i < nr; i++) {    \
			start;                    \
			barrier();                \
			leave;                    \
		}                                 \
	}

#endif
