/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_PAIRS_H
#define BENCH_PAIRS_H

/*
 * What a profile point is compared with. The minimum: two reads of the clock and two adds to
 * memory of this CPU's own, never off. LegoOS's design, re-created: a flag that is tested at both
 * ends, a clock that scales the TSC to nanoseconds like Linux's sched_clock(), and two locked adds
 * on the flag's cache line. Both with interrupts off, or the thread tied to its CPU.
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

/* The same, with rdtsc_begin(), ordered as points are by default. */
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

/* Nanoseconds are cycles here: what is compared is the work, not the unit. */
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

/* name##_pairs(nr): that many pairs with nothing in between. */
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
