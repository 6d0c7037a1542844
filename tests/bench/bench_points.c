// SPDX-License-Identifier: BSD-2-Clause
/*
 * Measures the instructions of a pair of a profile point, off and on, and compares it with the
 * minimum of any begin/end pair and with LegoOS's design. Loops of empty pairs with interrupts off
 * print "bench: <name> <cycles for all pairs> <pairs>". With -icount shift=0, one TSC cycle is one
 * instruction. tests/bench/run subtracts the empty loop.
 */
#include <lego/selftest.h>

#include "pairs.h"
#include <asm/irqflags.h>
#include <lego/percpu.h>
#include <lego/printk.h>

#define NR_PAIRS 10000

DEFINE_PROFILE_POINT(bench)

DEFINE_PAIRS(empty, , )
DEFINE_PAIRS(minimum, u64 start = minimum_start(), minimum_leave(start))
DEFINE_PAIRS(legoos, u64 start_ns = legoos_start(), legoos_leave(start_ns))
DEFINE_PAIRS(point, PROFILE_POINT_TIME(bench) profile_point_start(bench),
	     profile_point_leave(bench))

static void time_pairs(const char *name, void (*pairs)(int nr))
{
	unsigned long flags = local_irq_save();
	u64 start = rdtsc();
	u64 cycles;

	pairs(NR_PAIRS);
	cycles = rdtsc() - start;
	local_irq_restore(flags);
	printk("bench: %s %llu %d\n", name, (unsigned long long)cycles, NR_PAIRS);
}

SELFTEST(bench, points)
{
	struct static_key *key = &__PROFILE_POINT(bench).key;
	bool was_on = static_key_is_set(key);

	time_pairs("empty", empty_pairs);
	time_pairs("minimum", minimum_pairs);
	EXPECT_EQ(this_cpu_read(minimum_point.nr) % NR_PAIRS, 0);

	static_key_set(key, false);
	time_pairs("point_off", point_pairs);
	static_key_set(key, true);
	time_pairs("point_on", point_pairs);
	static_key_set(key, was_on);

	legoos_point.enabled = false;
	time_pairs("legoos_off", legoos_pairs);
	legoos_point.enabled = true;
	time_pairs("legoos_on", legoos_pairs);
	EXPECT_EQ(legoos_point.nr % NR_PAIRS, 0);
}
