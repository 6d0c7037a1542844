// SPDX-License-Identifier: BSD-2-Clause
/* Tests the counts of functions: snapshots while functions are called and counts are reset. */

#include "unit.h"

#include "../../kernel/profile/functions/functions.h"

#define FUNCTION 0x81000100
#define CALLER	 0x81000205

bool functions_used; /* normally in profiler.c, which is not linked here */

static struct profile_function_thread thread;

static void call_functions(u32 nr)
{
	struct profile_function_call call, parent = { 0 };

	for (u32 i = 0; i < nr; i++) {
		assert_true(profile_function_enter(FUNCTION, CALLER, &call, &thread));
		profile_function_exit(&call, &parent, &thread);
	}
}

static struct function_snapshot read_counts(void)
{
	struct function_snapshot snap;

	functions_snapshot(&snap);
	return snap;
}

static int set_up(void **state)
{
	host_step = 10;
	assert_int_equal(functions_count(true), 0);
	functions_reset();
	return 0;
}

static int tear_down(void **state)
{
	host_on_symbol = NULL;
	return functions_count(false);
}

#define TEST(name) HOST_TEST_WITH(name, set_up, tear_down)

TEST(counts)
{
	struct function_snapshot snap;

	call_functions(3);
	snap = read_counts();
	assert_int_equal(snap.nr_pairs, 1);
	assert_int_equal(snap.nr, 3);
	assert_int_equal(snap.pairs[0].cycles, 30);
	assert_int_equal((u32)snap.pairs[0].function, FUNCTION);
	functions_reset();
	assert_int_equal(read_counts().nr_pairs, 0);
}

/* The counts of one CPU, by function: what its callers have called is one row. */
TEST(counts_of_a_cpu)
{
	struct profile_function_call call, parent = { 0 };
	struct function_snapshot snap;

	call_functions(2);
	assert_true(profile_function_enter(FUNCTION, CALLER + 0x100, &call, &thread));
	profile_function_exit(&call, &parent, &thread);
	assert_true(profile_function_enter(FUNCTION + 0x100, CALLER, &call, &thread));
	host_now += 1000;
	profile_function_exit(&call, &parent, &thread);
	host_cpu = 1;
	call_functions(5);
	host_cpu = 0;
	functions_snapshot_cpu(&snap, 0);
	assert_int_equal(snap.nr_pairs, 2);
	assert_int_equal((u32)snap.pairs[0].function, FUNCTION + 0x100); /* most time first */
	assert_int_equal(snap.pairs[1].nr, 3);
	assert_int_equal(snap.pairs[1].cycles, 30);
	assert_int_equal(snap.pairs[1].caller, 0);
	functions_snapshot_cpu(&snap, 1);
	assert_int_equal(snap.nr_pairs, 1);
	assert_int_equal(snap.nr, 5);
}

/* The call that switches counting off does not contain the time of the patching. */
TEST(switching_off_takes_no_time)
{
	struct profile_function_call call, parent = { 0 };

	host_function_thread = &thread;
	host_patching = 1000000;
	assert_true(profile_function_enter(FUNCTION, CALLER, &call, &thread));
	assert_int_equal(functions_count(false), 0);
	host_function_thread = NULL;
	host_patching = 0;
	profile_function_exit(&call, &parent, &thread);
	assert_int_equal(read_counts().nr, 1);
	assert_in_range(read_counts().self_cycles, 10, 100);
}

/*
 * While counting is off, a tracer may still let functions call the hooks. Those calls do not count
 * as lost.
 */
TEST(calls_in_nmis)
{
	profile_function_in_nmi();
	assert_int_equal(read_counts().lost.nr_in_nmi, 1);
	assert_int_equal(functions_count(false), 0);
	profile_function_in_nmi();
	assert_int_equal(read_counts().lost.nr_in_nmi, 1);
	functions_reset();
	assert_int_equal(read_counts().lost.nr_in_nmi, 0);
}

static void reset_once(void)
{
	host_on_symbol = NULL;
	call_functions(5);
	functions_reset();
}

/* A snapshot has the counts from before a reset or from after it, never a negative difference. */
TEST(reset_during_snapshot)
{
	struct function_snapshot snap;

	call_functions(100);
	host_on_symbol = reset_once;
	snap = read_counts();
	assert_null(host_on_symbol);
	assert_int_equal(snap.nr, 100);
	assert_int_equal(snap.pairs[0].cycles, 1000);
	assert_int_equal(read_counts().nr_pairs, 0);
}
