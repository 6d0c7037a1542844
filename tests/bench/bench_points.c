// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a profile point costs: loops of empty pairs with interrupts off, beside the least any
 * begin/end pair can do (two TSC reads, two adds). Prints "bench: <name> <cycles for all rounds>
 * <rounds>"; under -icount shift=0 one TSC cycle is one instruction. tests/bench/bench.py subtracts
 * the empty loop.
 */
#include <lego/selftest.h>

#include <asm/irqflags.h>
#include <asm/tsc.h>
#include <lego/percpu.h>
#include <lego/printk.h>
#include <lego/profile.h>

#define NR_ROUNDS 10000

DEFINE_PROFILE_POINT(bench)

static DEFINE_PER_CPU(u64, minimum_nr);
static DEFINE_PER_CPU(u64, minimum_cycles);

static noinline void empty_pair(void)
{
	barrier();
}

static noinline void minimum_pair(void)
{
	u64 start = rdtsc();

	barrier();
	this_cpu_add(minimum_cycles, rdtsc() - start);
	this_cpu_inc(minimum_nr);
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
	time_rounds("empty_pair", empty_pair);
	time_rounds("minimum_pair", minimum_pair);
	time_rounds("point_pair", point_pair);
	EXPECT_EQ(this_cpu_read(minimum_nr) % NR_ROUNDS, 0);
}
