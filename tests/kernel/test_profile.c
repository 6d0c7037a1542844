// SPDX-License-Identifier: BSD-2-Clause
/* Tests of the profilers that need a real machine; tests/unit/ has the others. */

#include <lego/selftest.h>

#include <lego/sched.h>

#include <profile/syscall.h> /* needs the task structure */

#include "samples.h"

#ifdef CONFIG_PROFILE_POINTS
DEFINE_PROFILE_POINT(selftest)

static struct point_snapshot points;

static struct point_entry selftest_point(void)
{
	points_snapshot(&points);
	for (u32 i = 0; i < points.nr_entries; i++) {
		if (!strcmp(points.entries[i].name, "selftest"))
			return points.entries[i];
	}
	return (struct point_entry){ .name = "selftest" };
}

static void hit_point(void *nr)
{
	for (u64 i = 0; i < (u64)nr; i++) {
		PROFILE_SCOPE(selftest);
	}
}

SELFTEST(profile, points_count_with_interrupts_on_and_off)
{
	unsigned long flags;

	points_reset();
	hit_point((void *)100);
	flags = local_irq_save();
	hit_point((void *)100);
	local_irq_restore(flags);
	EXPECT_EQ(selftest_point().nr, 200);
	EXPECT_EQ(selftest_point().nr_backwards, 0);
}

SELFTEST(profile, points_count_on_all_cpus)
{
	unsigned int cpu;
	u64 nr = 0;

	points_reset();
	smp_call_mask(cpu_online_mask, hit_point, (void *)1000);
	for_each_online_cpu(cpu)
		nr += 1000;
	EXPECT_EQ(selftest_point().nr, nr);
	EXPECT_EQ(selftest_point().nr_backwards, 0);
}

SELFTEST(profile, points_measure_time)
{
	PROFILE_POINT_TIME(selftest)
	u64 start_ns, elapsed_ns;

	points_reset();
	start_ns = clock_monotonic_ns();
	profile_point_start(selftest);
	udelay(1000);
	profile_point_leave(selftest);
	elapsed_ns = clock_monotonic_ns() - start_ns;
	EXPECT(selftest_point().ns >= NSEC_PER_MSEC);
	EXPECT(selftest_point().ns <= elapsed_ns + 1); /* both are rounded */
}

/* Moves the start ahead, as if the section had begun on a CPU whose clock is ahead. */
SELFTEST(profile, points_going_back_are_counted_apart)
{
	PROFILE_POINT_TIME(selftest)

	points_reset();
	profile_point_start(selftest);
	__PROFILE_TIME(selftest).cycles += 1ull << 40;
	profile_point_leave(selftest);
	EXPECT_EQ(selftest_point().nr, 0);
	EXPECT_EQ(selftest_point().ns, 0);
	EXPECT_EQ(selftest_point().nr_backwards, 1);
	points_reset();
}
#endif

#ifdef CONFIG_PROFILE_HEATMAP
SELFTEST(profile, ticks_are_all_in_rows)
{
	u64 ticks, rows;

	reset_samples();
	EXPECT(becomes(all_have_taken(2)));
	ticks = nr_ticks();
	rows = heat.nr_dropped;
	for (u32 i = 0; i < heat_view.nr_rows; i++)
		rows += heat_view.rows[i].nr;
	EXPECT(ticks > 0);
	EXPECT_EQ(rows, ticks);
	for (u32 i = 0; i < NR_SAMPLE_DROPS; i++)
		EXPECT_EQ(heat.nr_dropped_by[i], 0);
}

#define NR_RESETS 200

/* Reading before a CPU's first sample must not make the CPU drop that sample. */
SELFTEST(profile, reading_drops_no_first_sample)
{
	struct source_settings saved, fast;
	u64 nr_dropped = 0;

	source_settings(&saved);
	fast = saved;
	fast.hz = 20000;
	source_apply(&fast);
	for (u32 i = 0; i < NR_RESETS; i++) {
		reset_samples();
		EXPECT(soon_becomes(all_have_taken(1)));
		nr_ticks();
		nr_dropped += heat.nr_dropped_by[DROP_PINNED];
	}
	EXPECT_EQ(nr_dropped, 0);
	source_apply(&saved);
}

static bool is_seen_idle(void)
{
	nr_ticks();
	return heat.nr_class[HEAT_IDLE] > 0;
}

static bool is_seen_working(void)
{
	udelay(20000);
	nr_ticks();
	return heat.nr_class[HEAT_KERNEL] > 0 && nr_at(udelay) > 0;
}

SELFTEST(profile, sleeping_is_idle)
{
	sample_reset();
	EXPECT(becomes(is_seen_idle()));
}

SELFTEST(profile, samples_name_the_function)
{
	sample_reset();
	EXPECT(becomes(is_seen_working()));
	EXPECT(heat.nr_class[HEAT_KERNEL] >= nr_at(udelay));
	EXPECT_EQ(heat.nr_class[HEAT_USER], 0);
}
#endif

#ifdef CONFIG_PROFILE_STRACE
/* A kernel thread makes no system calls. If it runs the hooks by mistake, nothing is counted. */
SELFTEST(profile, kernel_threads_have_no_table)
{
	u64 live = slab_bytes_live();

	EXPECT(!current->profile.process);
	cputime_begin_call();
	profile_syscall_enter(0);
	profile_syscall_exit(-1);
	EXPECT_EQ(current->profile.strace.seq, 0);
	EXPECT_EQ(slab_bytes_live(), live);
}
#endif

#ifdef CONFIG_PROFILE_TOY
SELFTEST(profile, a_profiler_keeps_numbers_of_each_thread)
{
	u64 before = current->profile.toy.nr_steps;

	for (int i = 0; i < 3; i++)
		profile_toy_step(&current->profile);
	EXPECT_EQ(current->profile.toy.nr_steps, before + 3);
}
#endif
