/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_POINTS_UNIT_H
#define TESTS_POINTS_UNIT_H

/*
 * Shared by the tests of profile points: three kinds of points, and checks of their entries in a
 * snapshot.
 */

#include "unit.h"

DEFINE_PROFILE_POINT(lego)
DEFINE_PROFILE_POINT(with_semicolon);
DEFINE_PROFILE_POINT_SLEEPS(sleeps)

static struct point_snapshot snap;
static struct task self;

/* As the scheduler does when the thread comes back to its CPU, or to another one. */
static inline void run_again(s64 off_cycles)
{
	host_off += off_cycles;
	profile_task_runs(&self.profile);
}

static inline int setup(void **state)
{
	host_current = &self;
	host_cpu = 0;
	host_now = 1000;
	host_step = 0;
	host_off = 0;
	points_switch("*", true);
	points_reset();
	run_again(0);
	host_now += 1000;
	return 0;
}

/* Returns the entry of a point, all zero if it has none. */
static inline const struct point_entry *find_point(const char *name)
{
	static const struct point_entry none;

	points_snapshot(&snap);
	for (u32 i = 0; i < snap.nr_entries; i++) {
		if (!strcmp(snap.entries[i].name, name))
			return &snap.entries[i];
	}
	return &none;
}

static inline void expect_point(const char *name, u64 nr, u64 ns)
{
	const struct point_entry *entry = find_point(name);
	u64 sum = 0;

	assert_int_equal(entry->nr, nr);
	assert_int_equal(entry->ns, ns);
	for (u32 i = 0; i < PROFILE_POINT_BUCKETS; i++)
		sum += entry->nr_log2[i];
	assert_int_equal(sum, nr);
}

static inline void expect_anomalies(const char *name, u64 nr_backwards, u64 nr_migrated,
				    u64 nr_unmatched)
{
	const struct point_entry *entry = find_point(name);

	assert_int_equal(entry->nr_backwards, nr_backwards);
	assert_int_equal(entry->nr_migrated, nr_migrated);
	assert_int_equal(entry->nr_unmatched, nr_unmatched);
}

/* As in LegoOS: no semicolon after the two definitions, and declarations after them. */
static inline int lego_style(int cycles)
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

static inline int capital_style(int cycles)
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

static inline void sleep_in_scope(u64 running, u64 sleeping)
{
	PROFILE_SCOPE(sleeps);

	host_now += running + sleeping;
	if (sleeping)
		run_again(sleeping);
}

#endif
