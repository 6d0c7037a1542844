// SPDX-License-Identifier: BSD-2-Clause
/* Tests system call tables: switching counting off and on. */

#include "strace_unit.h"

static struct strace_system_snapshot system_snap;

/* Expects this line below the table of the process; "" expects none. */
static void expect_off(const char *line)
{
	const char *end;

	host_log_clear();
	strace_snapshot_process(&proc.profile, &snap);
	report_print_strace(&snap, REPORT_TOP_ALL, false, NULL);
	end = strstr(host_log, " total\n");
	assert_non_null(end);
	assert_string_equal(end + 7, line);
}

#define TEST(name) HOST_TEST_WITH(name, setup, teardown)

TEST(off_and_on)
{
	host_call(0, 10, 0);
	profile_syscall_enter(1);
	host_now += 3;
	sleep_for(4);
	strace_switch(false);
	host_now += 1000;
	expect(1, 1, 0, 7, 1); /* its time until the switch */
	assert_int_equal(find_entry(1)->cpu_ns, 3);
	profile_syscall_exit(-1);
	host_call(0, 100, 0);
	host_call(5, 100, 0);
	expect(0, 1, 0, 10, 0);
	strace_switch(true);
	expect(1, 1, 0, 7, 1);
	host_call(0, 5, 0);
	expect(0, 2, 0, 15, 0);
	expect(1, 1, 0, 7, 0);
	assert_int_equal(find_entry(1)->cpu_ns, 3);
	assert_int_equal(all_calls(), 3);
	strace_switch(true); /* already on */
	assert_true(os_key_is_set(&profile_strace_key));
}

/* Reports say when counting was off, and which task switched it off. */
TEST(off_leaves_a_trace)
{
	strace_reset();
	host_call(0, 1, 0);
	host_now = 1000000000;
	strcpy(host_comm, "a\nb");
	host_pid = 33;
	strace_switch(false);
	host_now += 250000000;
	expect_off(
		"strace is off since 1.000000 s, by a?b (pid 33): for 0.250000 s of this time\n");
	strace_switch(false); /* already off: the first task's name stays */
	host_pid = 34;
	strace_switch(true);
	host_now += 500000;
	expect_off("strace was off for 0.250000 s of this time, last from 1.000000 s to "
		   "1.250000 s, by a?b (pid 33)\n");
	/* A second time off is added. A process that starts now has only the second one. */
	start(&child, 2, &child_task);
	strace_switch(false);
	host_now += 1000;
	strace_switch(true);
	expect_off("strace was off for 0.250001 s of this time, last from 1.250500 s to "
		   "1.250501 s, by a?b (pid 34)\n");
	strace_snapshot_process(&child.profile, &snap);
	assert_int_equal(snap.off.ns, 1000);
	wait_for_child();
	/*
	 * After a reset while counting is off, only the rest of the time off counts. After an
	 * execve, none does.
	 */
	strace_switch(false);
	host_now += 7000000;
	strace_reset();
	host_now += 2000000;
	expect_off(
		"strace is off since 1.250501 s, by a?b (pid 34): for 0.002000 s of this time\n");
	strace_switch(true);
	profile_process_exec(&proc);
	expect_off("");
	strace_snapshot_system(&snap, &system_snap);
	assert_int_equal(snap.off.ns, 2000000);
	strace_reset();
	strace_snapshot_system(&snap, &system_snap);
	assert_int_equal(snap.off.ns, 0);
	strcpy(host_comm, "test");
	host_pid = 1;
}

/*
 * A call is in flight when counting is switched off and on. It ends at the switch, and its return
 * is ignored.
 */
TEST(return_after_off_and_on)
{
	profile_syscall_enter(1);
	host_now += 3;
	strace_switch(false);
	host_now += 1000;
	strace_switch(true);
	host_now += 1000;
	profile_syscall_exit(-1);
	expect(1, 1, 0, 3, 0);
	host_call(1, 1, 0);
	expect(1, 2, 0, 4, 0);
	/* The return of a call whose entry was not counted. */
	strace_switch(false);
	profile_syscall_enter(1);
	strace_switch(true);
	profile_syscall_exit(-1);
	expect(1, 2, 0, 4, 0);
}

TEST(off_and_reset)
{
	profile_syscall_enter(1);
	host_now += 3;
	strace_switch(false);
	strace_reset();
	expect(1, 0, 0, 0, 0);
	strace_switch(true);
	host_call(2, 1, 0);
	expect(1, 0, 0, 0, 0);

	profile_syscall_enter(1);
	host_now += 3;
	strace_reset();
	host_now += 5;
	strace_switch(false);
	host_now += 9;
	expect(1, 1, 0, 5, 1);
	strace_switch(true);
	host_call(2, 1, 0);
	expect(1, 1, 0, 5, 0);
}

/* One process can be reset, but not switched off. */
TEST(files)
{
	start(&child, 2, &child_task);
	host_call(0, 1, 0);
	host_current = &child_task;
	host_call(0, 1, 0);
	host_current = &task;
	assert_int_equal(host_process_file_write(&proc, "reset\n"), 0);
	expect(0, 0, 0, 0, 0);
	strace_snapshot_process(&child.profile, &snap);
	assert_int_equal(all_calls(), 1);
	wait_for_child();
	assert_int_equal(host_process_file_write(&proc, "off"), -EINVAL);
	assert_int_equal(host_process_file_write(&proc, "on"), -EINVAL);
	assert_int_equal(host_process_file_write(&proc, ""), -EINVAL);
	host_call(0, 1, 0);
	expect(0, 1, 0, 1, 0);
	assert_int_equal(host_file_write("profile/strace", "of"), -EINVAL);
	assert_int_equal(host_file_write("profile/strace", "off"), 0);
	assert_false(os_key_is_set(&profile_strace_key));
	assert_int_equal(host_file_write("profile/strace", "on\n"), 0);
	assert_int_equal(host_file_write("profile/strace", "reset\n"), 0);
}

TEST(off_without_memory)
{
	host_fail_alloc = 1;
	profile_syscall_enter(1);
	host_now += 3;
	strace_switch(false);
	host_now += 3;
	expect(STRACE_SPARE_NR, 1, 0, 3, 1);
	strace_reset();
	expect(STRACE_SPARE_NR, 0, 0, 0, 0);
	strace_switch(true);
	profile_syscall_enter(1);
	host_now += 3;
	strace_reset();
	host_now += 4;
	expect(STRACE_SPARE_NR, 1, 0, 4, 1);
	profile_syscall_exit(-1);
	expect(STRACE_SPARE_NR, 1, 1, 4, 0);
}

/* A call that waited for the lock while counting was switched: its hook at entry, then at exit. */
static void make_late_call(os_lock_t *lock)
{
	if (lock != &lists_lock)
		return;
	host_now += 10;
	task.profile.strace.argument = 1;
	profile_strace_enter_slow();
	host_now += 10;
	profile_syscall_exit(0);
}

static void switch_beside_late_calls(bool on)
{
	host_on_lock = make_late_call;
	strace_switch(on);
	host_on_lock = NULL;
}

TEST(late_calls)
{
	host_call(0, 10, 0);
	host_call(1, 10, 0);
	switch_beside_late_calls(false);
	switch_beside_late_calls(true);
	host_call(0, 10, 0);
	host_call(1, 10, 0);
	expect(0, 2, 0, 20, 0);
	assert_false(find_entry(1)->nr_in_flight);
	assert_true(find_entry(1)->ns < host_now);
}

/*
 * A hook at entry is on the fast path when counting is switched off, and goes on when it is on
 * again. Its call ends at the switch, too.
 */
TEST(late_hook)
{
	struct profile_syscall_table *table;
	struct profile_syscall_row *row;
	u64 entry_cycles;

	host_call(1, 10, 0);
	table = task.profile.strace.calls.table;
	row = strace_row_at(table, table->index[1] * PROFILE_INDEX_UNIT);
	entry_cycles = host_now;
	host_now += 3;
	strace_switch(false);
	host_now += 1000;
	strace_switch(true);
	row->nr_calls++;
	profile_strace_begin(&task.profile, row, entry_cycles);
	host_now += 1000;
	expect(1, 2, 0, 13, 1);
	profile_syscall_exit(-1);
	expect(1, 2, 0, 13, 0);
	host_call(1, 10, 0);
	expect(1, 3, 0, 23, 0);
}
