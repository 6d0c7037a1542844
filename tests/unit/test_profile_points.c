// SPDX-License-Identifier: BSD-2-Clause
/* Profile points: LegoOS's ways of writing them, counting, anomalies, reset. */

#include "unit.h"

DEFINE_PROFILE_POINT(lego)
DEFINE_PROFILE_POINT(with_semicolon);
DEFINE_PROFILE_POINT(scope)
DEFINE_PROFILE_POINT(never)
DEFINE_PROFILE_POINT(cpu)
PROFILE_POINT_CPU_TIME(cpu)

static struct point_snapshot snap;

static int setup(void **state)
{
	host_cpu = 0;
	host_now = 1000;
	host_step = 0;
	__PROFILE_POINT(lego).enabled = true;
	points_reset();
	return 0;
}

static void expect_point(const char *name, u64 nr, u64 ns, u64 nr_backwards)
{
	points_snapshot(&snap);
	for (u32 i = 0; i < snap.nr_entries; i++) {
		if (strcmp(snap.entries[i].name, name))
			continue;
		assert_int_equal(snap.entries[i].nr, nr);
		assert_int_equal(snap.entries[i].ns, ns);
		assert_int_equal(snap.entries[i].nr_backwards, nr_backwards);
		return;
	}
	assert_int_equal(nr + ns + nr_backwards, 0);
}

/* As LegoOS's code has them: no semicolon after the two definitions, declarations behind them. */
static int lego_style(int cycles)
{
	int result;
	PROFILE_POINT_TIME(lego)
	int copy = cycles;

	profile_point_start(lego);
	host_now += copy;
	result = copy;
	profile_point_leave(lego);
	return result;
}

static int capital_style(int cycles)
{
	PROFILE_POINT_TIME(with_semicolon);
	int copy = cycles;

	if (copy)
		PROFILE_START(with_semicolon);
	else
		return 0;
	host_now += copy;
	PROFILE_LEAVE(with_semicolon);
	return copy;
}

static int scope_style(int cycles)
{
	PROFILE_SCOPE(scope);
	int copy = cycles;

	host_now += copy;
	if (copy == 3)
		return 1;
	for (int i = 0; i < 2; i++) {
		PROFILE_SCOPE(lego);

		host_now += 5;
		if (copy == 4)
			break;
	}
	return 0;
}

/* Runs first: points start with points_init(). */
static void test_off_before_init(void **state)
{
	__PROFILE_POINT(lego).enabled = false;
	lego_style(10);
	expect_point("lego", 0, 0, 0);
	host_step = 3;
	points_init();
	host_step = 0;
	lego_style(10);
	expect_point("lego", 1, 10, 0);
	/* 64 pairs of two reads, and the end's: (2 * 64 + 1) * 3 / 64, rounded. */
	assert_int_equal(snap.empty_pair_ns, 6);
	assert_int_equal(snap.nr_entries, 1);
	assert_true(snap.entries[0].enabled);
}

static void test_lego_style(void **state)
{
	lego_style(10);
	lego_style(0);
	lego_style(32);
	capital_style(7);
	capital_style(0);
	expect_point("lego", 3, 42, 0);
	expect_point("with_semicolon", 1, 7, 0);
	expect_point("never", 0, 0, 0);
}

static void test_scope_ends_on_every_way_out(void **state)
{
	scope_style(3); /* return */
	expect_point("scope", 1, 3, 0);
	expect_point("lego", 0, 0, 0);
	scope_style(4); /* break */
	expect_point("scope", 2, 3 + 9, 0);
	expect_point("lego", 1, 5, 0);
	scope_style(0);
	expect_point("scope", 3, 3 + 9 + 10, 0);
	expect_point("lego", 3, 15, 0);
}

static void test_nested_pairs_have_their_own_start(void **state)
{
	PROFILE_POINT_TIME(lego)

	profile_point_start(lego);
	host_now += 1;
	lego_style(10);
	host_now += 1;
	profile_point_leave(lego);
	expect_point("lego", 2, 22, 0);
}

static void test_unbalanced_counts_nothing(void **state)
{
	PROFILE_POINT_TIME(lego)

	profile_point_leave(lego);
	profile_point_start(lego);
	host_now += 4;
	profile_point_leave(lego);
	host_now += 4;
	profile_point_leave(lego);
	profile_point_start(lego);
	expect_point("lego", 1, 4, 0);
}

static void test_switched_in_the_middle(void **state)
{
	PROFILE_POINT_TIME(lego)

	__PROFILE_POINT(lego).enabled = false;
	profile_point_start(lego);
	host_now += 4;
	__PROFILE_POINT(lego).enabled = true;
	profile_point_leave(lego);
	expect_point("lego", 0, 0, 0);

	/* A pair that was begun is finished. */
	profile_point_start(lego);
	host_now += 4;
	__PROFILE_POINT(lego).enabled = false;
	profile_point_leave(lego);
	expect_point("lego", 1, 4, 0);
	assert_false(snap.entries[0].enabled);
}

static void test_clock_that_goes_back(void **state)
{
	PROFILE_POINT_TIME(lego)

	profile_point_start(lego);
	host_now -= 1;
	profile_point_leave(lego);
	expect_point("lego", 0, 0, 1);
	lego_style(5);
	expect_point("lego", 1, 5, 1);
	points_reset();
	expect_point("lego", 0, 0, 0);
}

static void test_all_cpus_count(void **state)
{
	PROFILE_POINT_TIME(lego)

	for (host_cpu = 0; host_cpu < HOST_NR_CPUS; host_cpu++)
		lego_style(10);
	host_cpu = 1;
	profile_point_start(lego);
	host_now += 2;
	host_cpu = 2; /* the task migrated */
	profile_point_leave(lego);
	expect_point("lego", HOST_NR_CPUS + 1, HOST_NR_CPUS * 10 + 2, 0);
}

static void begin_on_cpu(void)
{
	profile_point_start_cpu(cpu);
}

static void end_on_cpu(void)
{
	profile_point_leave_cpu(cpu);
}

/* Two CPUs in the section at once, each begun and ended in different functions. */
static void test_start_kept_by_the_cpu(void **state)
{
	begin_on_cpu();
	host_now += 5;
	host_cpu = 1;
	begin_on_cpu();
	host_now += 7;
	end_on_cpu();
	end_on_cpu(); /* one too many */
	host_cpu = 0;
	end_on_cpu();
	expect_point("cpu", 2, 12 + 7, 0);
}

static void test_reset(void **state)
{
	lego_style(10);
	points_reset();
	expect_point("lego", 0, 0, 0);
	lego_style(3);
	expect_point("lego", 1, 3, 0);
	expect_point("lego", 1, 3, 0); /* looking changes nothing */
}

static void *hit_points(void *arg)
{
	host_cpu = 1;
	for (int i = 0; i < 300000; i++)
		lego_style(1);
	return NULL;
}

/* Beside a CPU that hits the point, numbers only grow and resets do not lose or tear any. */
static void test_reading_beside_hits(void **state)
{
	u64 nr = 0, last = 0;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, hit_points, NULL), 0);
	while (nr < 300000) {
		points_snapshot(&snap);
		nr = snap.nr_entries ? snap.entries[0].nr : 0;
		assert_true(nr >= last);
		last = nr;
	}
	pthread_join(thread, NULL);
	expect_point("lego", 300000, 300000, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(test_off_before_init),
		TEST(test_lego_style),
		TEST(test_scope_ends_on_every_way_out),
		TEST(test_nested_pairs_have_their_own_start),
		TEST(test_unbalanced_counts_nothing),
		TEST(test_switched_in_the_middle),
		TEST(test_clock_that_goes_back),
		TEST(test_all_cpus_count),
		TEST(test_start_kept_by_the_cpu),
		TEST(test_reset),
		TEST(test_reading_beside_hits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
