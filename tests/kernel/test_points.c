// SPDX-License-Identifier: BSD-2-Clause
/*
 * Profile points on a real machine, concurrent with NMIs, switches, resets and migrations.
 * tests/unit/ tests the counts of each case.
 */

#include "../../kernel/profile/points/points.h"

#include <asm/apic.h>
#include <asm/irqflags.h>
#include <lego/selftest.h>

#include "busy.h"

#ifdef CONFIG_PROFILE_POINTS

#define NR_SWITCHES 16
#define NR_RESETS   100
#define NR_NMIS	    100
#define NR_PAIRS    100
#define NR_YIELDS   24
#define NR_NOPS	    20000
#define MAX_BUSY    4 /* CPUs; with more, an emulator on a small host runs them in turn */
#define SLEEP_NS    (20 * NSEC_PER_MSEC)

DEFINE_PROFILE_POINT(selftest_short)
DEFINE_PROFILE_POINT(selftest_long)
DEFINE_PROFILE_POINT(selftest_lego)
DEFINE_PROFILE_POINT(selftest_scope)
DEFINE_PROFILE_POINT(selftest_block)
DEFINE_PROFILE_POINT_SLEEPS(selftest_sleeps)
DEFINE_PROFILE_POINT(selftest_cpu)
PROFILE_POINT_CPU_TIME(selftest_cpu)

static struct point_snapshot points;

static struct point_entry find_point(const char *name)
{
	points_snapshot(&points);
	for (u32 i = 0; i < points.nr_entries; i++) {
		if (!strcmp(points.entries[i].name, name))
			return points.entries[i];
	}
	return (struct point_entry){ .name = name };
}

static void start_counting(void)
{
	points_switch("selftest_*", true);
	points_reset();
}

static noinline void run_short(void)
{
	PROFILE_SCOPE(selftest_short);
	asm volatile("nop" ::: "memory");
}

static noinline void run_long(void)
{
	PROFILE_SCOPE(selftest_long);
	asm volatile(".rept 1 + %c0; nop; .endr" ::"i"(NR_NOPS) : "memory");
}

/* tests/boot/test_points.py compares the printed line with QEMU's count of instructions. */
SELFTEST(points, known_delays)
{
	unsigned long flags;
	u64 short_cycles, long_cycles;
	unsigned int cpu;

	start_counting();
	flags = local_irq_save();
	cpu = smp_processor_id();
	for (u32 i = 0; i < NR_PAIRS; i++) {
		run_short();
		run_long();
	}
	local_irq_restore(flags);
	short_cycles = per_cpu(__PROFILE_POINT_CPU(selftest_short), cpu).sums.cycles;
	short_cycles -= per_cpu(__PROFILE_POINT_CPU(selftest_short), cpu).base.cycles;
	long_cycles = per_cpu(__PROFILE_POINT_CPU(selftest_long), cpu).sums.cycles;
	long_cycles -= per_cpu(__PROFILE_POINT_CPU(selftest_long), cpu).base.cycles;
	printk("    # %d pairs: %lu cycles, with %d nops more %lu cycles\n", NR_PAIRS, short_cycles,
	       NR_NOPS, long_cycles);
	EXPECT_EQ(find_point("selftest_short").nr, NR_PAIRS);
	EXPECT_EQ(find_point("selftest_long").nr, NR_PAIRS);
	EXPECT(find_point("selftest_long").min_ns >= find_point("selftest_short").min_ns);
	EXPECT(short_cycles > 0);
}

SELFTEST(points, off_counts_nothing)
{
	start_counting();
	points_switch("selftest_*", false);
	run_short();
	EXPECT_EQ(find_point("selftest_short").nr, 0);
	points_switch("selftest_s*", true);
	run_short();
	run_long();
	EXPECT_EQ(find_point("selftest_short").nr, 1);
	EXPECT_EQ(find_point("selftest_long").nr, 0);
	EXPECT_EQ(find_point("selftest_long").nr_unmatched, 0);
	start_counting();
}

static void switch_inside_scope(bool on)
{
	PROFILE_SCOPE(selftest_scope);
	points_switch("selftest_scope", on);
}

SELFTEST(points, switched_inside_a_pair)
{
	start_counting();
	switch_inside_scope(false);
	EXPECT_EQ(find_point("selftest_scope").nr, 0);
	EXPECT_EQ(find_point("selftest_scope").nr_unmatched, 0);
	switch_inside_scope(true);
	EXPECT_EQ(find_point("selftest_scope").nr, 0);
	EXPECT_EQ(find_point("selftest_scope").nr_unmatched, 1);
	switch_inside_scope(true);
	EXPECT_EQ(find_point("selftest_scope").nr, 1);
	EXPECT_EQ(find_point("selftest_scope").nr_unmatched, 1);
}

/*
 * Returns false if the host delayed the CPU on its way to sleep, or between the reads of two
 * clocks.
 */
static bool sleep_is_not_on_cpu_time(void)
{
	struct point_entry entry;
	PROFILE_POINT_TIME(selftest_sleeps)

	start_counting();
	profile_point_start(selftest_sleeps);
	udelay(1000);
	sleep_ns(SLEEP_NS);
	profile_point_leave(selftest_sleeps);
	entry = find_point("selftest_sleeps");
	EXPECT_EQ(entry.nr, 1);
	EXPECT(entry.ns >= SLEEP_NS + NSEC_PER_MSEC);
	EXPECT(entry.oncpu_ns >= NSEC_PER_MSEC);
	return entry.oncpu_ns <= entry.ns - SLEEP_NS / 2;
}

SELFTEST(points, sleeping_is_not_on_cpu_time)
{
	EXPECT(becomes(sleep_is_not_on_cpu_time()));
}

static noinline void time_yields(u32 nr)
{
	PROFILE_SCOPE(selftest_sleeps);

	while (nr--)
		sched_yield();
}

/*
 * Checks that the CPU time of every pair is at most its wall time, with and without a context
 * switch in the pair, while other threads compete for the CPU.
 */
SELFTEST(points, on_cpu_time_is_at_most_the_time)
{
	cpumask_t allowed = current->cpus_allowed;
	struct point_entry entry;

	sched_set_affinity(current, BIT(smp_processor_id()));
	busy_start(current->cpus_allowed, run_short);
	for (u32 i = 0; i < NR_YIELDS; i++) {
		start_counting();
		time_yields(i % 3);
		entry = find_point("selftest_sleeps");
		EXPECT_EQ(entry.nr, 1);
		EXPECT(entry.oncpu_ns > 0);
		EXPECT(entry.oncpu_ns <= entry.ns);
	}
	busy_stop();
	sched_set_affinity(current, allowed);
}

/* A pair in flight at a reset counts only its time since the reset. */
SELFTEST(points, pair_in_flight_at_a_reset)
{
	struct point_entry entry;
	PROFILE_POINT_TIME(selftest_lego)
	PROFILE_POINT_TIME(selftest_sleeps)
	u64 start_ns;

	start_counting();
	profile_point_start(selftest_lego);
	profile_point_start(selftest_sleeps);
	sleep_ns(SLEEP_NS);
	start_ns = clock_monotonic_ns();
	points_reset();
	run_short();
	udelay(100);
	profile_point_leave(selftest_sleeps);
	profile_point_leave(selftest_lego);
	entry = find_point("selftest_lego");
	EXPECT_EQ(entry.nr, 1);
	EXPECT(entry.ns >= 100 * NSEC_PER_USEC);
	EXPECT(entry.ns <= clock_monotonic_ns() - start_ns);
	EXPECT_EQ(entry.max_ns, entry.ns);
	entry = find_point("selftest_sleeps");
	EXPECT_EQ(entry.nr, 1);
	EXPECT(entry.ns <= clock_monotonic_ns() - start_ns);
	EXPECT(entry.oncpu_ns <= entry.ns);
}

SELFTEST(points, pairs_that_migrate_count)
{
	cpumask_t allowed = current->cpus_allowed;
	struct point_entry entry;
	PROFILE_POINT_TIME(selftest_lego)
	unsigned int cpu;
	u64 nr = 0;

	start_counting();
	sched_set_affinity(current, BIT(0));
	for_each_online_cpu(cpu) {
		if (!cpu)
			continue;
		profile_point_start(selftest_lego);
		sched_set_affinity(current, BIT(cpu));
		profile_point_leave(selftest_lego);
		EXPECT_EQ(smp_processor_id(), cpu);
		nr++;
	}
	sched_set_affinity(current, allowed);
	entry = find_point("selftest_lego");
	EXPECT_EQ(entry.nr + entry.nr_backwards, nr);
	EXPECT_EQ(entry.nr_migrated, entry.nr);
	EXPECT_EQ(entry.nr_unmatched, 0);
}

/* Threads, one on each CPU, run every form of a point. These are their counts. */
static DEFINE_PER_CPU(u64, nr_rounds);
static DEFINE_PER_CPU(u64, nr_in_nmi);

static noinline void begin_on_cpu(void)
{
	profile_point_start_cpu(selftest_cpu);
}

static noinline void end_on_cpu(void)
{
	profile_point_leave_cpu(selftest_cpu);
}

static noinline int run_block(void)
{
	{
		PROFILE_SCOPE(selftest_block);
		return 1;
	}
}

static noinline void run_scope(void)
{
	PROFILE_SCOPE(selftest_scope);
	barrier();
}

static noinline void run_round(void)
{
	PROFILE_POINT_TIME(selftest_lego)
	unsigned long flags;

	profile_point_start(selftest_lego);
	run_scope();
	profile_point_leave(selftest_lego);
	flags = local_irq_save();
	run_block();
	begin_on_cpu();
	this_cpu_inc(nr_rounds);
	end_on_cpu();
	local_irq_restore(flags);
}

static cpumask_t busy_cpus(void)
{
	return READ_ONCE(cpu_online_mask) & (BIT(MAX_BUSY) - 1);
}

static void start_runners(void)
{
	unsigned int cpu;

	for_each_cpu_in(cpu, busy_cpus()) {
		per_cpu(nr_rounds, cpu) = 0;
		per_cpu(nr_in_nmi, cpu) = 0;
	}
	busy_start(busy_cpus(), run_round);
}

static u64 sum_rounds(void)
{
	unsigned int cpu;
	u64 sum = 0;

	for_each_cpu_in(cpu, busy_cpus())
		sum += READ_ONCE(per_cpu(nr_rounds, cpu));
	return sum;
}

static u64 sum_in_nmi(void)
{
	unsigned int cpu;
	u64 sum = 0;

	for_each_cpu_in(cpu, busy_cpus())
		sum += READ_ONCE(per_cpu(nr_in_nmi, cpu));
	return sum;
}

/* Checks that a point's counts are plausible: at most nr pairs, none longer than elapsed_ns. */
static void expect_sane(const char *name, u64 nr, u64 elapsed_ns)
{
	struct point_entry entry = find_point(name);
	u64 nr_busy = 0;
	unsigned int cpu;

	for_each_cpu_in(cpu, busy_cpus())
		nr_busy++;
	EXPECT(entry.nr > 0);
	EXPECT(entry.nr + entry.nr_unmatched <= nr);
	EXPECT_EQ(entry.nr_backwards, 0);
	EXPECT_EQ(entry.nr_migrated, 0);
	EXPECT(entry.min_ns <= entry.max_ns);
	EXPECT(entry.max_ns <= elapsed_ns);
	/* The time in an NMI that hits a pair counts for both of their pairs. */
	EXPECT(entry.ns <= 2 * nr_busy * elapsed_ns);
	EXPECT(entry.net_ns <= entry.ns);
	EXPECT(entry.ns >= entry.nr * entry.min_ns / 2);
}

static void expect_all_sane(u64 elapsed_ns)
{
	u64 nr = sum_rounds(), nr_nmi = sum_in_nmi();

	expect_sane("selftest_lego", nr + nr_nmi, elapsed_ns);
	expect_sane("selftest_scope", nr + nr_nmi, elapsed_ns);
	expect_sane("selftest_block", nr + nr_nmi, elapsed_ns);
	expect_sane("selftest_cpu", nr, elapsed_ns);
}

static void run_in_nmi(void)
{
	PROFILE_POINT_TIME(selftest_lego)

	profile_point_start(selftest_lego);
	run_scope();
	run_block();
	profile_point_leave(selftest_lego);
	this_cpu_inc(nr_in_nmi);
}

static void send_nmis(void)
{
	unsigned int cpu;

	for_each_cpu_in(cpu, busy_cpus())
		apic_send_nmi(cpu);
}

static void expect_exactly(const char *name, u64 nr)
{
	struct point_entry entry = find_point(name);

	EXPECT_EQ(entry.nr, nr);
	EXPECT_EQ(entry.nr_unmatched, 0);
}

/* Counts every pair, even when an NMI runs the same points in the middle of one. */
SELFTEST(points, hit_in_nmis_during_themselves)
{
	u64 start_ns, nr, nr_nmi;

	start_counting();
	start_ns = clock_monotonic_ns();
	WRITE_ONCE(selftest_nmi_hook, run_in_nmi);
	start_runners();
	for (u32 i = 0; i < NR_NMIS; i++) {
		send_nmis();
		udelay(100);
		cond_resched();
	}
	busy_stop();
	WRITE_ONCE(selftest_nmi_hook, NULL);
	expect_all_sane(clock_monotonic_ns() - start_ns);
	nr = sum_rounds();
	nr_nmi = sum_in_nmi();
	EXPECT(nr_nmi > 0);
	expect_exactly("selftest_lego", nr + nr_nmi);
	expect_exactly("selftest_scope", nr + nr_nmi);
	expect_exactly("selftest_block", nr + nr_nmi);
	expect_exactly("selftest_cpu", nr);
}

/* Points that storm() switches off and on in turn; each ends up on. */
static const char *const runners_points[] = {
	"selftest_lego",
	"selftest_cpu",
	"selftest_scope",
	"selftest_block",
};

static void storm(bool with_nmis)
{
	const u32 nr_points = ARRAY_SIZE(runners_points);
	u64 start_ns;

	start_counting();
	start_ns = clock_monotonic_ns();
	WRITE_ONCE(selftest_nmi_hook, with_nmis ? run_in_nmi : NULL);
	start_runners();
	for (u32 i = 0; i < NR_SWITCHES; i++) {
		/* All points are on after half of the switches, too. */
		if (i == NR_SWITCHES / 2 && clock_monotonic_ns() - start_ns >= ENOUGH_NS)
			break;
		if (with_nmis)
			send_nmis();
		points_switch(runners_points[i % nr_points], i / nr_points % 2);
		sleep_ns(100 * NSEC_PER_USEC);
	}
	busy_stop();
	WRITE_ONCE(selftest_nmi_hook, NULL);
	expect_all_sane(clock_monotonic_ns() - start_ns);

	/* All points are on again: each counts from here. */
	points_reset();
	run_round();
	expect_exactly("selftest_lego", 1);
	expect_exactly("selftest_scope", 1);
	expect_exactly("selftest_block", 1);
	expect_exactly("selftest_cpu", 1);
}

SELFTEST(points, switched_while_all_cpus_run_them)
{
	storm(false);
}

SELFTEST(points, switched_while_all_cpus_run_them_in_nmis)
{
	storm(true);
}

/* The base values that a reset stores are never ahead of the counters. */
SELFTEST(points, reset_while_all_cpus_run_them)
{
	u64 start_ns = clock_monotonic_ns();

	start_counting();
	start_runners();
	for (u32 i = 0; i < NR_RESETS; i++) {
		struct point_entry entry;

		points_reset();
		entry = find_point("selftest_lego");
		EXPECT(entry.nr <= sum_rounds() + MAX_BUSY);
		EXPECT(entry.ns <= 2 * MAX_BUSY * (clock_monotonic_ns() - start_ns));
		cond_resched();
	}
	busy_stop();
	points_reset();
	run_round();
	expect_exactly("selftest_lego", 1);
}

#endif
