// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a pair of a profile point costs in instructions, off and on, beside the least that any
 * begin/end pair can do and LegoOS's design. Loops of empty pairs with interrupts off print
 * "bench: <name> <cycles for all rounds> <rounds>"; under -icount shift=0 one TSC cycle is one
 * instruction, and tests/bench/run subtracts the loop of empty_pair.
 */
#include <lego/selftest.h>

#include "pairs.h"
#include <asm/irqflags.h>
#include <lego/percpu.h>
#include <lego/printk.h>

#define NR_ROUNDS 10000

DEFINE_PROFILE_POINT(bench)

static noinline void empty_pair(void)
{
	barrier();
}

static noinline void minimum_pair(void)
{
	u64 start = minimum_start();

	barrier();
	minimum_leave(start);
}

static noinline void legoos_pair(void)
{
	u64 start_ns = legoos_start();

	barrier();
	legoos_leave(start_ns);
}

static noinline void point_pair(void)
{
	PROFILE_POINT_TIME(bench)

	profile_point_start(bench);
	barrier();
	profile_point_leave(bench);
}

static void time_rounds(const char *name, void (*pair)(void))
{
	unsigned long flags = local_irq_save();
	u64 start = rdtsc();
	u64 cycles;

	for (int i = 0; i < NR_ROUNDS; i++)
		pair();
	cycles = rdtsc() - start;
	local_irq_restore(flags);
	printk("bench: %s %llu %d\n", name, (unsigned long long)cycles, NR_ROUNDS);
}

SELFTEST(bench, points)
{
	struct static_key *key = &__PROFILE_POINT(bench).key;
	bool was_on = static_key_is_set(key);

	time_rounds("empty_pair", empty_pair);
	time_rounds("minimum_pair", minimum_pair);
	EXPECT_EQ(this_cpu_read(minimum_point.nr) % NR_ROUNDS, 0);

	static_key_set(key, false);
	time_rounds("point_off", point_pair);
	static_key_set(key, true);
	time_rounds("point_on", point_pair);
	static_key_set(key, was_on);

	legoos_point.enabled = false;
	time_rounds("legoos_off", legoos_pair);
	legoos_point.enabled = true;
	time_rounds("legoos_on", legoos_pair);
	EXPECT_EQ(legoos_point.nr % NR_ROUNDS, 0);
}
