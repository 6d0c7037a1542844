// SPDX-License-Identifier: BSD-2-Clause
/* Tests the keys of places with several hooks, and what the hooks of system calls do by them. */

#include "unit.h"

#include <profile/syscall.h>

#include "../../kernel/profile/hook_keys.h"

#define NO_CALL (~0u)

os_key_t profile_strace_key, profile_live_key;
u64 profile_live_chosen[PROFILE_NR_INDEXED / 64];
bool profile_strace_counts;

static u32 nr_counted;		/* entries that strace has counted */
static u64 entered_nr, left_nr; /* of the last events */
static u32 nr_entered, nr_left;

/* The thread's table has no rows, so that strace takes its slow paths. */
void profile_strace_enter_slow(void)
{
	nr_counted++;
}

void profile_strace_exit_slow(void)
{
}

void profile_strace_enter_live(void)
{
}

void profile_strace_exit_live(void)
{
}

void profile_trace_sys_enter(u64 nr)
{
	entered_nr = nr;
	nr_entered++;
}

void profile_trace_sys_exit(u64 nr, s64 ret)
{
	left_nr = nr;
	nr_left++;
}

static void call(u32 nr, u32 exit_nr)
{
	profile_sys_enter(nr);
	profile_sys_exit(exit_nr, 0);
}

static void set_events(bool on)
{
	hook_keys_begin(NULL);
	os_keys_begin();
	hook_keys_add(&profile_trace_key_sys_enter, on);
	hook_keys_add(&profile_trace_key_sys_exit, on);
	hook_keys_commit();
	hook_keys_end(NULL);
}

/* Expects this many hooks of a call to be on: of strace, and of events. */
static void expect(u32 counted, u32 events)
{
	u32 was_counted = nr_counted, was_entered = nr_entered, was_left = nr_left;

	call(3, 3);
	assert_int_equal(nr_counted - was_counted, counted);
	assert_int_equal(nr_entered - was_entered, events);
	assert_int_equal(nr_left - was_left, events);
}

HOST_TEST(states)
{
	expect(0, 0);
	assert_false(os_key_is_set(&profile_syscall_key));
	hook_key_set(&profile_strace_key, true);
	expect(1, 0);
	assert_true(os_key_is_set(&profile_syscall_key));
	assert_false(os_key_is_set(&profile_syscall_slow_key)); /* the usual state */
	set_events(true);
	expect(1, 1);
	assert_true(os_key_is_set(&profile_syscall_slow_key));
	hook_key_set(&profile_strace_key, false);
	expect(0, 1);
	set_events(false);
	expect(0, 0);
	assert_false(os_key_is_set(&profile_syscall_key));
	hook_key_set(&profile_strace_key, true);
	assert_false(os_key_is_set(&profile_syscall_slow_key));
	hook_key_set(&profile_strace_key, false);
	expect(0, 0);
}

/* At each step of a change, a hook runs if its own key says so. */
static void check_step(void)
{
	bool counts = os_key_is_set(&profile_strace_key);
	bool enters = os_key_is_set(&profile_trace_key_sys_enter);
	u32 was_counted = nr_counted, was_entered = nr_entered;

	profile_sys_enter(5);
	assert_true(nr_counted - was_counted <= counts);
	assert_true(nr_entered - was_entered <= enters);
}

HOST_TEST(no_hook_runs_that_is_off)
{
	host_on_key = check_step;
	for (u32 i = 0; i < 16; i++) {
		hook_key_set(&profile_strace_key, i & 1);
		set_events(i & 2);
		hook_key_set(&profile_trace_key_sys_enter, i & 4);
		hook_key_set(&profile_strace_key, i & 8);
	}
	hook_key_set(&profile_strace_key, false);
	set_events(false);
	host_on_key = NULL;
}

/* rt_sigreturn(2) leaves other registers. */
HOST_TEST(exit_has_the_number_of_the_entry)
{
	set_events(true);
	call(15, NO_CALL);
	assert_int_equal(entered_nr, 15);
	assert_int_equal(left_nr, 15);
	set_events(false);
}

HOST_TEST(calls_in_flight)
{
	u32 was_left = nr_left;

	set_events(true);
	profile_sys_enter(7); /* ends while events are off */
	set_events(false);
	profile_sys_exit(7, 0);
	profile_sys_enter(1);
	set_events(true);
	profile_sys_exit(1, 0);
	assert_int_equal(nr_left, was_left + 1);
	assert_int_equal(left_nr, 1);
	set_events(false);

	profile_sys_enter(15);
	set_events(true);
	profile_sys_exit(NO_CALL, 0); /* nobody knows what it was */
	assert_int_equal(nr_left, was_left + 1);
	call(NO_CALL, NO_CALL); /* of a program that has asked for this number */
	assert_int_equal(nr_left, was_left + 2);
	assert_int_equal(left_nr, NO_CALL);
	set_events(false);
}

int unit_tests_begin(void **state)
{
	static const u16 no_rows[PROFILE_NR_INDEXED];
	static struct task task = { .profile.strace.index = no_rows };
	host_current = &task;
	hook_keys_register(HOOK_CALL, &profile_strace_key, true);
	hook_keys_register(HOOK_CALL, &profile_live_key, false);
	hook_keys_register(HOOK_CALL, &profile_trace_key_sys_enter, false);
	hook_keys_register(HOOK_CALL, &profile_trace_key_sys_exit, false);
	return 0;
}
