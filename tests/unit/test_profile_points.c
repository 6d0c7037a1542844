// SPDX-License-Identifier: BSD-2-Clause
/* Profile points: all ways of writing them, all ways out of them, counting, anomalies, reset. */

#include "unit.h"

DEFINE_PROFILE_POINT(lego)
DEFINE_PROFILE_POINT(with_semicolon);
DEFINE_PROFILE_POINT(scope)
DEFINE_PROFILE_POINT(block)
DEFINE_PROFILE_POINT(never)
DEFINE_PROFILE_POINT_SLEEPS(sleeps)
DEFINE_PROFILE_POINT(cpu)
PROFILE_POINT_CPU_TIME(cpu)

void hit_second_lego(u64 cycles); /* in profile_second.c */

static struct point_snapshot snap;

static int setup(void **state)
{
	host_cpu = 0;
	host_now = 1000;
	host_step = 0;
	host_oncpu = 0;
	points_switch("*", true);
	points_reset();
	return 0;
}

/* All zero when it has no entry. */
static const struct point_entry *find_point(const char *name)
{
	static const struct point_entry none;

	points_snapshot(&snap);
	for (u32 i = 0; i < snap.nr_entries; i++) {
		if (!strcmp(snap.entries[i].name, name))
			return &snap.entries[i];
	}
	return &none;
}

static void expect_point(const char *name, u64 nr, u64 ns)
{
	const struct point_entry *entry = find_point(name);
	u64 sum = 0;

	assert_int_equal(entry->nr, nr);
	assert_int_equal(entry->ns, ns);
	for (u32 i = 0; i < PROFILE_POINT_BUCKETS; i++)
		sum += entry->nr_log2[i];
	assert_int_equal(sum, nr);
}

static void expect_anomalies(const char *name, u64 nr_backwards, u64 nr_migrated, u64 nr_unmatched)
{
	const struct point_entry *entry = find_point(name);

	assert_int_equal(entry->nr_backwards, nr_backwards);
	assert_int_equal(entry->nr_migrated, nr_migrated);
	assert_int_equal(entry->nr_unmatched, nr_unmatched);
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

/* Runs first: points start with points_init(). */
static void test_off_before_init(void **state)
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
	/* 64 pairs of two reads, and the end's: (2 * 64 + 1) * 3 / 64. A pair reads as one step. */
	assert_int_equal(snap.empty_pair_ns, 6);
	assert_int_equal(snap.empty_reading_ns, 3);
	assert_int_equal(snap.nr_entries, 1);
	assert_true(snap.entries[0].enabled);
	assert_int_equal(snap.entries[0].net_ns, 7);
}

static void test_lego_style(void **state)
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
	PROFILE_FUNCTION(scope);

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

static void test_scope_ends_on_every_way_out(void **state)
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
		PROFILE_POINT(block) {
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

static void test_block_ends_on_every_way_out(void **state)
{
	expect_block(0, 3, 3, 630, 30630);
	expect_block(1, 3, 0, 0, 0);	    /* continue before it */
	expect_block(2, 101, 1, 10, 10);    /* return */
	expect_block(3, 201, 1, 10, 10010); /* goto */
	expect_block(4, 3, 3, 633, 30633);  /* break of a loop inside */
	expect_block(5, 3, 3, 30, 30030);   /* continue of one */
	expect_block(6, 1, 1, 210, 210);    /* break behind it */
}

/* One statement, no braces, as the body of an if, with an else; blocks in blocks. */
static int terse_block(int cycles)
{
	if (cycles > 5)
		PROFILE_POINT(block)
			host_now += cycles;
	else
		PROFILE_POINT(block)
			PROFILE_POINT(lego)
				return host_now += cycles;
	return 0;
}

static void test_block_of_one_statement(void **state)
{
	assert_int_equal(terse_block(7), 0);
	expect_point("block", 1, 7);
	assert_int_equal(terse_block(5), 1000 + 7 + 5);
	expect_point("block", 2, 12);
	expect_point("lego", 1, 5);
}

/* A block runs once whether its point is on or off. */
static void test_off_changes_nothing_but_counts(void **state)
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

static void test_nested_pairs_have_their_own_start(void **state)
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

static void test_unbalanced_is_counted_apart(void **state)
{
	PROFILE_POINT_TIME(lego)

	profile_point_leave(lego);
	expect_point("lego", 0, 0);
	expect_anomalies("lego", 0, 0, 1); /* it has an entry for that */
	profile_point_start(lego);
	host_now += 4;
	profile_point_start(lego); /* the pair starts here */
	host_now += 4;
	profile_point_leave(lego);
	host_now += 4;
	profile_point_leave(lego);
	profile_point_start(lego);
	expect_point("lego", 1, 4);
	expect_anomalies("lego", 0, 0, 2);
}

static void test_switched_in_the_middle(void **state)
{
	PROFILE_POINT_TIME(lego)

	points_switch("lego", false);
	profile_point_start(lego);
	host_now += 4;
	points_switch("lego", true);
	profile_point_leave(lego);
	expect_point("lego", 0, 0);
	expect_anomalies("lego", 0, 0, 1);

	/* Off at the end: not counted, and not later either. */
	profile_point_start(lego);
	host_now += 4;
	points_switch("lego", false);
	profile_point_leave(lego);
	profile_point_start(lego);
	points_switch("lego", true);
	profile_point_leave(lego);
	expect_point("lego", 0, 0);
	expect_anomalies("lego", 0, 0, 2);

	/* Off and on between is nothing to it. */
	profile_point_start(lego);
	points_switch("lego", false);
	host_now += 4;
	points_switch("lego", true);
	profile_point_leave(lego);
	expect_point("lego", 1, 4);
	assert_true(find_point("lego")->enabled);
	points_switch("lego", false);
	assert_false(find_point("lego")->enabled);
	expect_point("lego", 1, 4); /* what was counted stays */
}

static void scope_switched_inside(bool on)
{
	PROFILE_SCOPE(scope);

	host_now += 4;
	PROFILE_POINT(block) {
		points_switch("*", on);
		host_now += 4;
	}
}

static void test_scope_switched_in_the_middle(void **state)
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

static void test_clock_that_goes_back(void **state)
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

static void test_all_cpus_count(void **state)
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

	/* ... to a CPU whose clock is behind. */
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
	expect_point("cpu", 2, 12 + 7);
	expect_anomalies("cpu", 0, 0, 1);
}

/* The start is still there from before it was off, and was not replaced while it was off. */
static void test_start_kept_by_the_cpu_is_from_before_a_switch(void **state)
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

static void sleep_in_scope(u64 running, u64 sleeping)
{
	PROFILE_SCOPE(sleeps);

	host_now += running + sleeping;
	host_oncpu += running;
}

static void test_points_that_sleep(void **state)
{
	host_oncpu = 77;
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
}

static void test_distribution(void **state)
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
	/* One pair more is the 100th of 101: it counts as within 99 %. */
	lego_style(1000);
	assert_int_equal(find_point("lego")->p99_ns, 1000);
	points_reset();
	lego_style(1);
	entry = find_point("lego");
	assert_int_equal(entry->min_ns, 1);
	assert_int_equal(entry->p50_ns, 1);
	assert_int_equal(entry->p99_ns, 1);
	assert_int_equal(entry->max_ns, 1);
	assert_int_equal(entry->net_ns, 0); /* not less than nothing */
}

static void test_buckets(void **state)
{
	static const struct {
		u64 cycles;
		u32 bucket;
	} cases[] = {
		{ 0, 0 },	    { 1, 0 },		{ 2, 1 },	    { 3, 1 },
		{ 4, 2 },	    { 7, 2 },		{ 1023, 9 },	    { 1024, 10 },
		{ 1ull << 62, 62 }, { ~0ull >> 1, 62 }, { 1ull << 63, 63 },
	};

	for (u32 i = 0; i < ARRAY_SIZE(cases); i++) {
		PROFILE_POINT_TIME(lego)

		points_reset();
		host_now = 1;
		profile_point_start(lego);
		host_now += cases[i].cycles;
		profile_point_leave(lego);
		expect_point("lego", 1, cases[i].cycles);
		assert_int_equal(find_point("lego")->nr_log2[cases[i].bucket], 1);
		assert_int_equal(find_point("lego")->min_ns, cases[i].cycles);
		assert_int_equal(find_point("lego")->max_ns, cases[i].cycles);
	}
}

/* Counters that start again at 0: what a reset remembers makes the difference right. */
static void test_counters_overflow(void **state)
{
	struct profile_point_sums *sums = &this_cpu_ptr(&__PROFILE_POINT_CPU(lego))->sums;

	sums->cycles = ~0ull - 5;
	sums->nr_log2[3] = ~0ull;
	sums->nr_unmatched = ~0ull;
	points_reset();
	lego_style(10);
	lego_style(11);
	expect_point("lego", 2, 21);
}

static void test_two_files_one_name(void **state)
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
	points_switch("lego", false); /* both */
	lego_style(10);
	hit_second_lego(20);
	points_snapshot(&snap);
	assert_int_equal(snap.entries[0].nr + snap.entries[1].nr, 3);
}

static void test_reset(void **state)
{
	lego_style(10);
	points_reset();
	expect_point("lego", 0, 0);
	lego_style(3);
	expect_point("lego", 1, 3);
	expect_point("lego", 1, 3); /* looking changes nothing */
	assert_int_equal(find_point("lego")->max_ns, 3);
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

/* Beside a CPU that hits the point, numbers only grow. */
static void test_reading_beside_hits(void **state)
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

/* Resets and switches lose or tear none. */
static void test_reset_and_switches_beside_hits(void **state)
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

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(test_off_before_init),
		TEST(test_lego_style),
		TEST(test_scope_ends_on_every_way_out),
		TEST(test_block_ends_on_every_way_out),
		TEST(test_block_of_one_statement),
		TEST(test_off_changes_nothing_but_counts),
		TEST(test_nested_pairs_have_their_own_start),
		TEST(test_unbalanced_is_counted_apart),
		TEST(test_switched_in_the_middle),
		TEST(test_scope_switched_in_the_middle),
		TEST(test_clock_that_goes_back),
		TEST(test_all_cpus_count),
		TEST(test_start_kept_by_the_cpu),
		TEST(test_start_kept_by_the_cpu_is_from_before_a_switch),
		TEST(test_points_that_sleep),
		TEST(test_distribution),
		TEST(test_buckets),
		TEST(test_counters_overflow),
		TEST(test_two_files_one_name),
		TEST(test_reset),
		TEST(test_reading_beside_hits),
		TEST(test_reset_and_switches_beside_hits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
