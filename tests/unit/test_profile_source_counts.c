// SPDX-License-Identifier: BSD-2-Clause
/* Tests the counts of late and lost samples. Each counts once, also across resets. */

#include "source_unit.h"

/* A late interrupt takes one sample. The deadlines it missed count as lost. */
TEST(late)
{
	u64 nr_due;

	timer_comes(900 * PERIOD);
	assert_int_equal(nr_samples, 1);
	source_snapshot(&snap);
	assert_in_range(snap.cpus[0].lost, 899, 901);
	assert_int_equal(snap.counts.late[LATE_KERNEL], 1);
	assert_int_equal(snap.nr_stretches, 1);
	assert_int_equal(snap.longest[0].cycles, 900 * PERIOD);
	assert_int_equal(snap.longest[0].pc, TEXT + 0x10);
	nr_due = snap.cpus[0].taken + snap.cpus[0].lost;
	/* The next deadline is in the future, in the next slot. */
	assert_in_range(os_per_cpu(profile_deadline, 0) - host_now, 1, 2 * PERIOD);
	for (int i = 0; i < 99; i++)
		timer_comes(0);
	expect_sums(100, nr_due - 1, 0);
	assert_int_equal(snap.counts.late[LATE_KERNEL], 1);
	report_print_source_notes(&snap, true);
	assert_non_null(strstr(host_log, "     900000000    0       1  test             "
					 "ffffffff81000010  fn_0+0x10\n"));
}

/* Latency up to the limit is normal; anything above counts as late. */
TEST(limit)
{
	source_snapshot(&snap);
	timer_comes(snap.limit_ns);
	source_snapshot(&snap);
	assert_int_equal(snap.counts.late[LATE_KERNEL], 0);
	timer_comes(snap.limit_ns + 1);
	source_snapshot(&snap);
	assert_int_equal(snap.counts.late[LATE_KERNEL], 1);
	assert_int_equal(snap.limit_ns, 100); /* the latency in os_wait_for_interrupt() */
}

TEST(longest_are_kept)
{
	for (u64 i = 1; i <= 20; i++)
		timer_comes((i * 7 % 20 + 1) * 1000);
	source_snapshot(&snap);
	assert_int_equal(snap.nr_stretches, NR_STRETCHES);
	for (u64 i = 0; i < NR_STRETCHES; i++)
		assert_int_equal(snap.longest[i].cycles, (20 - i) * 1000);
	host_now++;
	source_reset();
	source_snapshot(&snap);
	assert_int_equal(snap.nr_stretches, 0);
	timer_comes(500);
	source_snapshot(&snap);
	assert_int_equal(snap.nr_stretches, 1);
	assert_int_equal(snap.longest[0].cycles, 500);
}

/* At a rate that is too high, the sampler takes at most half of the time. */
TEST(self_time_is_limited)
{
	u64 nr_due, start;

	apply("hz 100000");
	sample_costs = 30000;
	start = host_now;
	for (int i = 0; i < 1000; i++) {
		u64 before = last_sample;

		timer_comes(0);
		assert_true(i == 0 || last_sample - before > 60000);
	}
	source_snapshot(&snap);
	nr_due = snap.cpus[0].taken + snap.cpus[0].self;
	expect_sums(1000, 0, snap.cpus[0].self);
	assert_in_range(nr_due, (host_now - start) / 10000 - 2, (host_now - start) / 10000 + 8);
}

/* More NMIs than expected: the report shows them as a negative rest. */
TEST(nmis_too_many)
{
	apply("source nmi");
	for (int i = 0; i < 100; i++) {
		host_now += PERIOD;
		nmi_comes(false);
		nmi_comes(false);
	}
	source_snapshot(&snap);
	assert_int_equal(snap.cpus[0].expected, 100);
	assert_int_equal(snap.cpus[0].taken, 200);
	assert_int_equal(snap.cpus[0].leftover, -100);
	report_print_source_notes(&snap, false);
	assert_non_null(strstr(host_log,
			       "expected: 300 samples by the clock and the rate = 200 "
			       "taken + 200 lost + 0 in the profiler + -100 left over\n"));
}

/*
 * Samples that were never due, or went missing, are left over in the sums, and the report says so.
 */
TEST(wrong_sums_are_reported)
{
	struct pt_regs regs = { .pc = TEXT };

	for (int i = 0; i < 50; i++)
		timer_comes(0);
	expect_sums(50, 0, 0);
	for (int i = 0; i < 10; i++)
		sample_take(&regs, host_now, 0);
	source_snapshot(&snap);
	assert_int_equal(snap.cpus[0].leftover, -10);
	nr_taken[0] -= 20;
	source_snapshot(&snap);
	assert_int_equal(snap.cpus[0].leftover, 10);
	report_print_source_notes(&snap, false);
	assert_non_null(strstr(host_log, " + 10 left over\n"));
}

/* The sums add up with late interrupts, resets, switches off and on, and a slow sampler. */
TEST(sums_add_up)
{
	u64 seed = 1;

	reports_in_sample = true;
	for (int i = 0; i < 20000; i++) {
		seed = seed * 6364136223846793005ull + 1;
		sample_costs = seed >> 63 ? seed >> 43 & 0x3fffff : 100;
		if (seed >> 56 == 7)
			apply("off");
		else if (seed >> 56 == 8)
			apply("on");
		else if (seed >> 56 == 9)
			source_reset();
		else if (seed >> 60 == 2)
			host_now += (seed >> 30 & 0xf) * PERIOD / 3; /* as with interrupts off */
		else if (snap.settings.on)
			timer_comes(seed >> 60 == 3 ? (seed >> 40 & 0xff) * PERIOD / 16 : 0);
		source_snapshot(&snap);
		expect_sums(snap.cpus[0].taken, snap.cpus[0].lost, snap.cpus[0].self);
	}
	assert_true(nr_samples > 5000);
}

/* A deadline that passed before a reset does not count as lost after it. */
TEST(reset_in_a_stretch)
{
	struct pt_regs regs = { .pc = TEXT };

	timer_comes(0);
	host_now += 100 * PERIOD;
	source_snapshot(&snap);
	assert_in_range(snap.cpus[0].lost, 98, 100);
	expect_sums(1, snap.cpus[0].lost, 0);
	source_reset();
	expect_sums(0, 0, 0);
	host_now += 50 * PERIOD;
	source_snapshot(&snap);
	assert_in_range(snap.cpus[0].lost, 48, 50);
	expect_sums(0, snap.cpus[0].lost, 0);
	reports_in_sample = true; /* another CPU reports when the sample is stored */
	profile_tick(&regs, os_cycles());
	host_timer_rearm();
	source_snapshot(&snap);
	assert_in_range(snap.cpus[0].lost, 48, 50);
	expect_sums(1, snap.cpus[0].lost, 0);
	assert_in_range(snap.counts.lost[LATE_KERNEL], 48, 50);
}

static void samples_go_on(void)
{
	static const u64 late[] = { 0, 20 * PERIOD, 0 };

	for (u32 i = 0; i < ARRAY_SIZE(late); i++)
		timer_comes(late[i]);
}

/* The host stops the CPU that resets, while this CPU goes on taking samples, some of them late. */
TEST(long_reset)
{
	for (int i = 0; i < 5; i++)
		timer_comes(0);
	stalled_in_reset = samples_go_on;
	source_reset();
	stalled_in_reset = NULL;
	source_snapshot(&snap);
	expect_sums(0, 0, snap.cpus[0].self);
	for (int i = 0; i < 10; i++)
		timer_comes(0);
	source_snapshot(&snap);
	expect_sums(10, 0, snap.cpus[0].self);
	assert_in_range(snap.cpus[0].expected, 9 + snap.cpus[0].self, 10 + snap.cpus[0].self);
}

/* A reset in the middle of a sample that takes many slots, as when the host stops its CPU. */
TEST(reset_in_a_sample)
{
	apply("hz 100000"); /* the next deadline is near */
	sample_costs = PERIOD;
	resets_in_sample = true;
	timer_comes(0);
	resets_in_sample = false;
	sample_costs = 0;
	host_now += 2 * PERIOD;
	source_snapshot(&snap);
	expect_sums(0, snap.cpus[0].lost, snap.cpus[0].self);
	assert_in_range(snap.cpus[0].expected, 299, 301);
}

/* A long sample skips deadlines. A reset comes before their time has passed. */
TEST(reset_behind_a_long_sample)
{
	apply("hz 100000");
	sample_costs = PERIOD; /* 100 slots of this rate; as many deadlines are skipped after it */
	timer_comes(0);
	sample_costs = 0;
	source_reset();
	source_snapshot(&snap);
	expect_sums(0, 0, 0);
	host_now += PERIOD / 2;
	source_snapshot(&snap);
	expect_sums(0, 0, snap.cpus[0].self);
	assert_in_range(snap.cpus[0].self, 49, 51);
	timer_comes(0);
	source_snapshot(&snap);
	expect_sums(1, 0, snap.cpus[0].self);
	assert_in_range(snap.cpus[0].self, 98, 101);
}

/* An idle CPU sleeps with interrupts on, so its latency is no blind spot. */
TEST(idle_is_left_out)
{
	host_idle = true;
	for (int i = 0; i < 20; i++)
		timer_comes(5000);
	host_idle = false;
	source_snapshot(&snap);
	assert_int_equal(snap.counts.late[LATE_IDLE], 20);
	assert_int_equal(snap.counts.late[LATE_KERNEL], 0);
	assert_int_equal(snap.nr_stretches, 0);
}
