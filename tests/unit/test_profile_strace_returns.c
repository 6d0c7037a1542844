// SPDX-License-Identifier: BSD-2-Clause
/* Tests the row of time off a CPU between the end of a system call and user mode. */

#include "strace_unit.h"

static void begin_return(void)
{
	profile_return_begin(&task.profile);
}

static void end_return(void)
{
	profile_return_end(&task.profile);
}

static void expect_return(u64 ns, u64 max_ns)
{
	const struct strace_entry *entry = entry_of(STRACE_RETURN_NR);

	assert_int_equal(entry->ns, ns);
	assert_int_equal(entry->max_ns, max_ns);
	assert_int_equal(entry->nr_calls + entry->nr_in_flight + entry->cpu_ns, 0);
}

#define TEST(name) HOST_TEST_WITH(name, setup, teardown)

TEST(only_time_off_a_cpu_counts)
{
	host_call(0, 10, 0);
	begin_return();
	host_now += 5;
	end_return();
	expect_return(0, 0);
	begin_return();
	sleep_for(100);
	host_now += 5;
	sleep_for(20);
	end_return();
	sleep_for(1000); /* in user code */
	begin_return();
	sleep_for(30);
	end_return();
	expect_return(150, 120);
	assert_string_equal(find_entry(STRACE_RETURN_NR)->name, "[return to user]");
	expect(0, 1, 0, 10, 0);
}

TEST(in_flight)
{
	begin_return();
	sleep_for(7);
	expect_return(7, 7);
	sleep_for(8);
	end_return();
	expect_return(15, 15);
	begin_return();
	sleep_for(20);
	expect_return(35, 20);
	end_return();
}

TEST(reset)
{
	begin_return();
	sleep_for(7);
	strace_reset();
	expect_return(0, 0);
	sleep_for(20);
	expect_return(20, 20);
	end_return();
	expect_return(20, 20);
	strace_reset_process(&proc.profile);
	begin_return();
	sleep_for(3);
	expect_return(3, 3);
	end_return();
	expect_return(3, 3);
	host_call(0, 1, 0); /* executes the request */
	expect_return(3, 3);
}

TEST(off)
{
	begin_return();
	sleep_for(7);
	strace_switch(false);
	sleep_for(100);
	expect_return(7, 7);
	end_return();
	expect_return(7, 7);
	begin_return();
	sleep_for(100);
	end_return();
	expect_return(7, 7);
	strace_switch(true);
	begin_return();
	sleep_for(2);
	strace_switch(false);
	sleep_for(100);
	strace_switch(true);
	sleep_for(100);
	end_return();
	expect_return(9, 7);
}

TEST(cut_and_reset)
{
	begin_return();
	sleep_for(7);
	strace_switch(false);
	sleep_for(7);
	strace_reset();
	sleep_for(7);
	expect_return(0, 0);
	end_return();
	expect_return(0, 0);
	strace_switch(true);
	host_call(0, 1, 0);
	expect_return(0, 0);
}

TEST(sums)
{
	begin_return();
	sleep_for(7);
	end_return();
	profile_syscall_enter(59);
	profile_process_exec(&proc);
	profile_syscall_exit(0);
	expect_return(0, 0);
	strace_snapshot_family(&proc.profile, &snap);
	assert_int_equal(find_entry(STRACE_RETURN_NR)->ns, 7);
	start(&child, 2, &child_task);
	host_current = &child_task;
	profile_return_begin(&child_task.profile);
	sleep_for(5); /* then it is killed */
	exit_task(&child_task);
	strace_snapshot_process(&child.profile, &snap);
	assert_int_equal(find_entry(STRACE_RETURN_NR)->ns, 5);
	start_task(&child_task, &child);
	wait_for_child();
	expect_return(0, 0);
	strace_snapshot_family(&proc.profile, &snap);
	assert_int_equal(find_entry(STRACE_RETURN_NR)->ns, 12);
	assert_int_equal(find_entry(STRACE_RETURN_NR)->max_ns, 7);
}
