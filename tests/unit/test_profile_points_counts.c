// SPDX-License-Identifier: BSD-2-Clause
/* Tests profile points: distributions, two points of one name, resets, and reports during hits. */

#include "points_unit.h"

void hit_second_lego(u64 cycles); /* in profile_second.c */

/* An empty pair measures 3 ns. */
int unit_tests_begin(void **state)
{
	host_step = 3;
	points_init(true);
	host_step = 0;
	return 0;
}

#define TEST(name) HOST_TEST_WITH(name, setup, NULL)

TEST(distribution)
{
	const struct point_entry *entry;

	for (int i = 0; i < 98; i++)
		lego_style(10);
	lego_style(100);
	lego_style(1000);
	entry = find_point("lego");
	assert_int_equal(entry->nr_log2[3], 98);
	assert_int_equal(entry->nr_log2[6], 1);
	assert_int_equal(entry->nr_log2[9], 1);
	assert_int_equal(entry->min_ns, 10);
	assert_int_equal(entry->p50_ns, 15);
	assert_int_equal(entry->p99_ns, 127);
	assert_int_equal(entry->max_ns, 1000);
	assert_int_equal(entry->net_ns, 98 * 10 + 1100 - 100 * 3);
	/*
	 * With one pair more, the 99th percentile is the 100th of 101 pairs, which takes 1000 ns.
	 */
	lego_style(1000);
	assert_int_equal(find_point("lego")->p99_ns, 1000);
	points_reset();
	lego_style(1);
	entry = find_point("lego");
	assert_int_equal(entry->min_ns, 1);
	assert_int_equal(entry->p50_ns, 1);
	assert_int_equal(entry->p99_ns, 1);
	assert_int_equal(entry->max_ns, 1);
	assert_int_equal(entry->net_ns, 0); /* never negative */
}

TEST(buckets)
{
	static const struct {
		u64 cycles;
		u32 bucket;
	} cases[] = {
		{ 0, 0 },	    { 1, 0 },		{ 2, 1 },	    { 3, 1 },
		{ 4, 2 },	    { 7, 2 },		{ 1023, 9 },	    { 1024, 10 },
		{ 1ull << 32, 32 }, { 1ull << 54, 54 }, { ~0ull >> 9, 54 },
	};

	for (u32 i = 0; i < ARRAY_SIZE(cases); i++) {
		PROFILE_POINT_TIME(lego)

		host_now = 1;
		points_reset();
		profile_point_start(lego);
		host_now += cases[i].cycles;
		profile_point_leave(lego);
		expect_point("lego", 1, cases[i].cycles);
		assert_int_equal(find_point("lego")->nr_log2[cases[i].bucket], 1);
		assert_int_equal(find_point("lego")->min_ns, cases[i].cycles);
		assert_int_equal(find_point("lego")->max_ns, cases[i].cycles);
	}
}

/* Counters wrap around. The difference from their values at the reset is still right. */
TEST(counters_overflow)
{
	struct profile_point_sums *sums =
		&os_this_cpu_ptr(&os_local(__PROFILE_POINT_CPU(lego)))->sums;

	sums->cycles = ~0ull - 5;
	sums->nr_log2[3] = ~0ull;
	sums->nr_unmatched = ~0ull;
	points_reset();
	lego_style(10);
	lego_style(11);
	expect_point("lego", 2, 21);
}

TEST(two_files_one_name)
{
	u32 nr_found = 0;

	lego_style(10);
	hit_second_lego(20);
	hit_second_lego(20);
	points_snapshot(&snap);
	assert_int_equal(snap.nr_entries, 2);
	for (u32 i = 0; i < snap.nr_entries; i++) {
		assert_string_equal(snap.entries[i].name, "lego");
		nr_found += snap.entries[i].nr == 1 && snap.entries[i].ns == 10;
		nr_found += snap.entries[i].nr == 2 && snap.entries[i].ns == 40;
	}
	assert_int_equal(nr_found, 2);
	assert_true(snap.entries[0].serial != snap.entries[1].serial);
	points_switch("lego", false); /* switches both */
	lego_style(10);
	hit_second_lego(20);
	points_snapshot(&snap);
	assert_int_equal(snap.entries[0].nr + snap.entries[1].nr, 3);
}

TEST(reset)
{
	lego_style(10);
	points_reset();
	expect_point("lego", 0, 0);
	lego_style(3);
	expect_point("lego", 1, 3);
	expect_point("lego", 1, 3); /* a snapshot changes nothing */
	assert_int_equal(find_point("lego")->max_ns, 3);
}

/* A pair in flight counts only its time since the reset, on any CPU. */
TEST(in_flight_at_a_reset)
{
	PROFILE_POINT_TIME(lego)

	profile_point_start(lego);
	host_now += 1100;
	points_reset();
	host_now += 10;
	lego_style(30);
	host_now += 60;
	profile_point_leave(lego);
	expect_point("lego", 2, 30 + 100);
	expect_anomalies("lego", 0, 0, 0);
	assert_int_equal(find_point("lego")->max_ns, 100);
	assert_int_equal(find_point("lego")->nr_log2[6], 1);

	profile_point_start(lego);
	host_now += 1000;
	points_reset();
	host_cpu = 2;
	host_now += 7;
	profile_point_leave(lego);
	expect_point("lego", 1, 7);
	expect_anomalies("lego", 0, 1, 0);
	assert_int_equal(find_point("lego")->max_ns, 7);

	/* The clock of this CPU is behind that of the CPU that did the reset. */
	host_cpu = 0;
	profile_point_start(lego);
	host_now += 1000;
	points_reset();
	host_now -= 5;
	profile_point_leave(lego);
	expect_point("lego", 1, 0);
}

/* Nested pairs are in flight at a reset. The first to begin is the last to end. */
TEST(many_in_flight_at_a_reset)
{
	PROFILE_SCOPE(lego);
	host_now += 100;
	{
		PROFILE_SCOPE(lego);
		host_now += 100;
		points_reset();
		host_now += 3;
		lego_style(2);
	}
	expect_point("lego", 2, 2 + 5);
	host_now += 10;
	capital_style(9);
	assert_int_equal(find_point("lego")->max_ns, 5);
}

TEST(sleeper_in_flight_at_a_reset)
{
	{
		PROFILE_SCOPE(sleeps);

		host_now += 500;
		points_reset();
		host_now += 40;
	}
	expect_point("sleeps", 1, 40);
	assert_int_equal(find_point("sleeps")->oncpu_ns, 40);
	sleep_in_scope(3, 50);
	expect_point("sleeps", 2, 40 + 53);
	assert_int_equal(find_point("sleeps")->oncpu_ns, 43);
}

#define NR_HITS 300000

static void *hit_points(void *arg)
{
	host_cpu = 1;
	for (int i = 0; i < NR_HITS; i++)
		lego_style(1);
	__atomic_store_n((bool *)arg, true, __ATOMIC_RELEASE);
	return NULL;
}

/* While another CPU hits the point, its count only grows. */
TEST(reading_during_hits)
{
	u64 nr = 0, last = 0;
	bool done = false;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, hit_points, &done), 0);
	while (nr < NR_HITS) {
		nr = find_point("lego")->nr;
		assert_true(nr >= last);
		last = nr;
	}
	pthread_join(thread, NULL);
	expect_point("lego", NR_HITS, NR_HITS);
}

/* Resets and switches while another CPU hits the point must not corrupt its counts. */
TEST(reset_and_switches_during_hits)
{
	const struct point_entry *entry;
	bool done = false, on = true;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, hit_points, &done), 0);
	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
		points_reset();
		entry = find_point("lego");
		assert_true(entry->nr <= NR_HITS && entry->nr_unmatched <= NR_HITS);
		points_switch("lego", on = !on);
	}
	pthread_join(thread, NULL);
	points_switch("lego", true);
	points_reset();
	lego_style(1);
	expect_point("lego", 1, 1);
	expect_anomalies("lego", 0, 0, 0);
}
