// SPDX-License-Identifier: BSD-2-Clause
/* Tests profile points: every form, every exit from a section, switching, CPUs, and anomalies. */

#include "points_unit.h"

DEFINE_PROFILE_POINT(scope)
DEFINE_PROFILE_POINT(block)
DEFINE_PROFILE_POINT(never)
DEFINE_PROFILE_POINT(cpu)
PROFILE_POINT_CPU_TIME(cpu)

#define TEST(name) HOST_TEST_WITH(name, setup, NULL)

/* Runs first: nothing counts before points_init(). */
TEST(off_before_init)
{
	points_switch("*", false);
	lego_style(10);
	expect_point("lego", 0, 0);
	host_step = 3;
	points_init(true);
	host_step = 0;
	lego_style(10);
	expect_point("lego", 0, 0);
	assert_int_equal(host_nr_fences_dropped, 0);

	points_switch("lego", true);
	lego_style(10);
	expect_point("lego", 1, 10);
	/*
	 * points_init() measures 64 pairs of two reads, and one more read: (2 * 64 + 1) * 3 / 64.
	 * Inside a pair, 3 ns pass.
	 */
	assert_int_equal(snap.empty_pair_ns, 6);
	assert_int_equal(snap.empty_reading_ns, 3);
	assert_int_equal(snap.nr_entries, 1);
	assert_true(snap.entries[0].enabled);
	assert_int_equal(snap.entries[0].net_ns, 7);
}

TEST(lego_style)
{
	lego_style(10);
	lego_style(0);
	lego_style(32);
	capital_style(7);
	capital_style(0);
	expect_point("lego", 3, 42);
	expect_point("with_semicolon", 1, 7);
	expect_point("never", 0, 0);
	expect_anomalies("lego", 0, 0, 0);
}

static int scope_style(int way)
{
	PROFILE_SCOPE(scope);

	host_now += 1;
	if (way == 1)
		return 1;
	for (int i = 0; i < 3; i++) {
		PROFILE_SCOPE(lego);

		host_now += 10;
		if (way == 2)
			break;
		if (way == 3)
			continue;
		if (way == 4)
			goto out;
		if (way == 5)
			return 5;
		host_now += 100;
	}
	host_now += 1000;
	return 6;
out:
	host_now += 10000;
	return 7;
}

static void expect_scope(int way, int result, u64 ns, u64 nr_inner, u64 inner_ns)
{
	points_reset();
	assert_int_equal(scope_style(way), result);
	expect_point("scope", 1, ns);
	expect_point("lego", nr_inner, inner_ns);
}

TEST(scope_ends_on_every_way_out)
{
	expect_scope(0, 6, 1331, 3, 330);
	expect_scope(1, 1, 1, 0, 0);	  /* return */
	expect_scope(2, 6, 1011, 1, 10);  /* break */
	expect_scope(3, 6, 1031, 3, 30);  /* continue */
	expect_scope(4, 7, 10011, 1, 10); /* goto */
	expect_scope(5, 5, 11, 1, 10);	  /* return out of two */
}

static int block_style(int way)
{
	int nr_rounds = 0;

	for (int i = 0; i < 3; i++) {
		nr_rounds++;
		if (way == 1)
			continue;
		{
			PROFILE_SCOPE(block);

			host_now += 10;
			if (way == 2)
				return 100 + nr_rounds;
			if (way == 3)
				goto out;
			while (way == 4) {
				host_now += 1;
				break;
			}
			for (int j = 0; j < 2; j++) {
				if (way == 5)
					continue;
				host_now += 100;
			}
		}
		if (way == 6)
			break;
		host_now += 10000;
	}
	return nr_rounds;
out:
	host_now += 10000;
	return 200 + nr_rounds;
}

static void expect_block(int way, int result, u64 nr, u64 ns, u64 all_ns)
{
	u64 start = host_now;

	points_reset();
	assert_int_equal(block_style(way), result);
	assert_int_equal(host_now - start, all_ns);
	expect_point("block", nr, ns);
}

TEST(block_ends_on_every_way_out)
{
	expect_block(0, 3, 3, 630, 30630);
	expect_block(1, 3, 0, 0, 0);	    /* continue before it */
	expect_block(2, 101, 1, 10, 10);    /* return */
	expect_block(3, 201, 1, 10, 10010); /* goto */
	expect_block(4, 3, 3, 633, 30633);  /* break of a loop inside */
	expect_block(5, 3, 3, 30, 30030);   /* continue of one */
	expect_block(6, 1, 1, 210, 210);    /* break behind it */
}

/* The code of a block runs exactly once, even when its point is off. */
TEST(off_changes_nothing_but_counts)
{
	points_switch("*", false);
	assert_int_equal(block_style(0), 3);
	assert_int_equal(block_style(2), 101);
	assert_int_equal(scope_style(4), 7);
	assert_int_equal(lego_style(8), 8);
	points_snapshot(&snap);
	assert_int_equal(snap.nr_entries, 0);
}

static u64 recurse(int depth)
{
	PROFILE_SCOPE(scope);

	host_now += 10;
	return depth ? 1 + recurse(depth - 1) : 0;
}

TEST(nested_pairs_have_their_own_start)
{
	PROFILE_POINT_TIME(lego)

	profile_point_start(lego);
	host_now += 1;
	lego_style(10);
	host_now += 1;
	profile_point_leave(lego);
	expect_point("lego", 2, 22);

	assert_int_equal(recurse(2), 2);
	expect_point("scope", 3, 10 + 20 + 30);
}

TEST(unbalanced_is_counted_apart)
{
	PROFILE_POINT_TIME(lego)

	profile_point_leave(lego);
	expect_point("lego", 0, 0);
	expect_anomalies("lego", 0, 0, 1); /* an unmatched end is enough for an entry */
	profile_point_start(lego);
	host_now += 4;
	profile_point_start(lego); /* restarts the pair */
	host_now += 4;
	profile_point_leave(lego);
	host_now += 4;
	profile_point_leave(lego);
	profile_point_start(lego);
	expect_point("lego", 1, 4);
	expect_anomalies("lego", 0, 0, 2);
}

TEST(switched_in_the_middle)
{
	PROFILE_POINT_TIME(lego)

	points_switch("lego", false);
	profile_point_start(lego);
	host_now += 4;
	points_switch("lego", true);
	profile_point_leave(lego);
	expect_point("lego", 0, 0);
	expect_anomalies("lego", 0, 0, 1);

	/* Off at the end: the pair never counts. */
	profile_point_start(lego);
	host_now += 4;
	points_switch("lego", false);
	profile_point_leave(lego);
	profile_point_start(lego);
	points_switch("lego", true);
	profile_point_leave(lego);
	expect_point("lego", 0, 0);
	expect_anomalies("lego", 0, 0, 2);

	/* Off and on again between start and end has no effect. */
	profile_point_start(lego);
	points_switch("lego", false);
	host_now += 4;
	points_switch("lego", true);
	profile_point_leave(lego);
	expect_point("lego", 1, 4);
	assert_true(find_point("lego")->enabled);
	points_switch("lego", false);
	assert_false(find_point("lego")->enabled);
	expect_point("lego", 1, 4); /* earlier counts stay */
}

static void scope_switched_inside(bool on)
{
	PROFILE_SCOPE(scope);

	host_now += 4;
	{
		PROFILE_SCOPE(block);

		points_switch("*", on);
		host_now += 4;
	}
}

TEST(scope_switched_in_the_middle)
{
	scope_switched_inside(false);
	points_snapshot(&snap);
	assert_int_equal(snap.nr_entries, 0);
	scope_switched_inside(true);
	expect_point("scope", 0, 0);
	expect_anomalies("scope", 0, 0, 1);
	expect_anomalies("block", 0, 0, 1);
	scope_switched_inside(true);
	expect_point("scope", 1, 8);
	expect_point("block", 1, 4);
}

TEST(clock_that_goes_back)
{
	PROFILE_POINT_TIME(lego)

	profile_point_start(lego);
	host_now -= 1;
	profile_point_leave(lego);
	expect_point("lego", 0, 0);
	expect_anomalies("lego", 1, 0, 0);
	lego_style(5);
	expect_point("lego", 1, 5);
	expect_anomalies("lego", 1, 0, 0);
	assert_int_equal(find_point("lego")->min_ns, 5);
	assert_int_equal(find_point("lego")->max_ns, 5);
	points_reset();
	expect_anomalies("lego", 0, 0, 0);
	assert_int_equal(snap.nr_entries, 0);
}

TEST(all_cpus_count)
{
	PROFILE_POINT_TIME(lego)

	for (host_cpu = 0; host_cpu < HOST_NR_CPUS; host_cpu++)
		lego_style(10 + host_cpu);
	expect_anomalies("lego", 0, 0, 0);
	assert_int_equal(find_point("lego")->min_ns, 10);
	assert_int_equal(find_point("lego")->max_ns, 10 + HOST_NR_CPUS - 1);
	points_reset();

	host_cpu = 1;
	profile_point_start(lego);
	host_now += 2;
	host_cpu = 2; /* the task migrated */
	profile_point_leave(lego);
	expect_point("lego", 1, 2);
	expect_anomalies("lego", 0, 1, 0);

	/* The task migrated to a CPU whose clock is behind. */
	profile_point_start(lego);
	host_now -= 2;
	host_cpu = 3;
	profile_point_leave(lego);
	expect_point("lego", 1, 2);
	expect_anomalies("lego", 1, 1, 0);
}

static void begin_on_cpu(void)
{
	profile_point_start_cpu(cpu);
}

static void end_on_cpu(void)
{
	profile_point_leave_cpu(cpu);
}

/* Two CPUs are in the section at once. It begins and ends in different functions. */
TEST(start_kept_by_the_cpu)
{
	begin_on_cpu();
	host_now += 5;
	host_cpu = 1;
	begin_on_cpu();
	host_now += 7;
	end_on_cpu();
	end_on_cpu(); /* has no start */
	host_cpu = 0;
	end_on_cpu();
	expect_point("cpu", 2, 12 + 7);
	expect_anomalies("cpu", 0, 0, 1);
}

/* A start from before the point was switched off is ignored after it is on again. */
TEST(start_kept_by_the_cpu_is_from_before_a_switch)
{
	begin_on_cpu();
	points_switch("cpu", false);
	end_on_cpu();
	host_now += 100;
	begin_on_cpu();
	points_switch("cpu", true);
	host_now += 5;
	end_on_cpu();
	expect_point("cpu", 0, 0);
	expect_anomalies("cpu", 0, 0, 1);
	begin_on_cpu();
	host_now += 5;
	end_on_cpu();
	expect_point("cpu", 1, 5);
	expect_anomalies("cpu", 0, 0, 1);
}

TEST(points_that_sleep)
{
	run_again(77);
	sleep_in_scope(3, 1000);
	sleep_in_scope(4, 0);
	expect_point("sleeps", 2, 1007);
	assert_true(find_point("sleeps")->sleeps);
	assert_int_equal(find_point("sleeps")->oncpu_ns, 7);
	points_reset();
	sleep_in_scope(5, 5);
	assert_int_equal(find_point("sleeps")->oncpu_ns, 5);
	lego_style(9);
	assert_false(find_point("lego")->sleeps);
	/* Pairs that are neither the shortest nor the longest count, too. */
	sleep_in_scope(1, 0);
	sleep_in_scope(2, 100);
	for (int i = 0; i < 10; i++)
		sleep_in_scope(3, 10);
	assert_int_equal(find_point("sleeps")->oncpu_ns, 5 + 1 + 2 + 10 * 3);
}

/* A pair that slept and ended on another CPU counts as such, with its time off a CPU. */
TEST(sleepers_that_migrate)
{
	PROFILE_POINT_TIME(sleeps)

	sleep_in_scope(3, 100);
	host_cpu = 1;
	run_again(0);
	profile_point_start(sleeps);
	host_now += 60;
	host_cpu = 3;
	run_again(50);
	profile_point_leave(sleeps);
	expect_point("sleeps", 2, 163);
	assert_int_equal(find_point("sleeps")->oncpu_ns, 13);
	expect_anomalies("sleeps", 0, 1, 0);

	/* To a lower number. */
	profile_point_start(sleeps);
	host_now += 9;
	host_cpu = 2;
	run_again(5);
	profile_point_leave(sleeps);
	expect_point("sleeps", 3, 172);
	assert_int_equal(find_point("sleeps")->oncpu_ns, 17);
	expect_anomalies("sleeps", 0, 2, 0);

	/* To a CPU whose clock is behind; and an end without a start. */
	profile_point_start(sleeps);
	host_now -= 2;
	host_cpu = 0;
	run_again(1);
	profile_point_leave(sleeps);
	profile_point_leave(sleeps);
	expect_point("sleeps", 3, 172);
	expect_anomalies("sleeps", 1, 2, 1);
}

/*
 * The measured time off the CPU can be negative or too long: clocks of CPUs differ, and a context
 * switch may fall between two reads.
 */
TEST(on_cpu_time_is_at_most_the_time)
{
	sleep_in_scope(5, 0);
	{
		PROFILE_SCOPE(sleeps);

		host_now += 10;
		run_again(-3);
	}
	expect_point("sleeps", 2, 15);
	assert_int_equal(find_point("sleeps")->oncpu_ns, 15);
	{
		PROFILE_SCOPE(sleeps);

		host_now += 4;
		run_again(7);
	}
	expect_point("sleeps", 3, 19);
	assert_int_equal(find_point("sleeps")->oncpu_ns, 15);
}
