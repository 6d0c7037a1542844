// SPDX-License-Identifier: BSD-2-Clause
/* Tests system call tables: CPU time, histograms, errors by name. */

#include "strace_unit.h"

#define TEST(name) HOST_TEST_WITH(name, setup, teardown)

/* A futex call that sleeps for a second has a second of wall time and almost no CPU time. */
TEST(sleep_is_not_cpu_time)
{
	host_call(1, 300, 0);
	profile_syscall_enter(202);
	host_now += 20;
	sleep_for(NS_PER_SEC);
	expect(202, 1, 0, NS_PER_SEC + 20, 1);
	assert_int_equal(entry_of(202)->cpu_ns, 20);
	assert_int_equal(entry_of(202)->max_ns, NS_PER_SEC + 20);
	host_now += 3;
	assert_int_equal(entry_of(202)->cpu_ns, 23);
	profile_syscall_exit(0);
	sleep_for(77); /* preempted in user mode */
	expect(202, 1, 0, NS_PER_SEC + 23, 0);
	assert_int_equal(entry_of(202)->cpu_ns, 23);
	assert_int_equal(entry_of(1)->cpu_ns, 300);
	host_call(202, 40, 0);
	assert_int_equal(entry_of(202)->cpu_ns, 63);
	exit_task(&task);
	assert_int_equal(entry_of(202)->cpu_ns, 63);
}

TEST(never_returning_call_has_its_cpu_time)
{
	profile_syscall_enter(231);
	host_now += 5;
	sleep_for(100);
	exit_task(&task);
	expect(231, 1, 0, 105, 0);
	assert_int_equal(entry_of(231)->cpu_ns, 5);
	assert_int_equal(entry_of(231)->max_ns, 105);
}

TEST(percentiles_are_bounds)
{
	for (int i = 0; i < 98; i++)
		host_call(0, 1000, 0);
	host_call(0, 100000, 0);
	assert_int_equal(entry_of(0)->p50_ns, 1023);
	assert_int_equal(entry_of(0)->p99_ns, 100000); /* the longest of 99 */
	host_call(0, 200000, 0);
	assert_int_equal(entry_of(0)->p99_ns, 131071);
	assert_int_equal(entry_of(0)->max_ns, 200000);
	/* The first bucket includes all shorter times, the last one all longer times. */
	host_call(1, 0, 0);
	assert_int_equal(entry_of(1)->p50_ns, 0);
	host_call(2, 200, 0);
	host_call(2, 1, 0);
	assert_int_equal(entry_of(2)->p50_ns, 200);
	host_call(3, 1ull << 50, 0);
	host_call(3, 1ull << 45, 0);
	assert_int_equal(entry_of(3)->p50_ns, 1ull << 50);
	/* A call in flight is in no bucket. */
	profile_syscall_enter(4);
	host_now += 50;
	assert_int_equal(entry_of(4)->p99_ns, 0);
	profile_syscall_exit(0);
	assert_int_equal(entry_of(4)->p99_ns, 50);
}

/* A report that interrupts the end of the longest call finds it in its bucket all the same. */
TEST(call_above_the_longest)
{
	host_call(5, 1000, 0);
	host_call(5, 2000, 0);
	host_call(5, 100000, 0);
	task.profile.strace.row->max_cycles = 2000;
	expect(5, 3, 0, 103000, 0);
	exit_task(&task);
	expect(5, 3, 0, 103000, 0);
}

TEST(errors_by_number)
{
	struct task second = { .proc = &proc };

	for (int i = 0; i < 12; i++)
		host_call(2, 1, -ENOENT);
	host_call(2, 1, -EACCES);
	host_call(3, 1, -ENOENT);
	profile_task_init(&second);
	host_current = &second;
	host_call(2, 1, -ENOENT);
	assert_int_equal(nr_errors_of(2, ENOENT), 13);
	exit_task(&second);
	assert_int_equal(nr_errors_of(2, ENOENT), 13);
	assert_int_equal(nr_errors_of(2, EACCES), 1);
	assert_int_equal(nr_errors_of(3, ENOENT), 1);
	assert_int_equal(nr_errors_of(3, EACCES), 0);
	host_current = &task;
}

/* Starts a thread, lets it make calls, and ends it. Returns its table. */
static const struct profile_syscall_table *run_thread(bool has_rows)
{
	const struct profile_syscall_table *table;
	struct task other;

	start_task(&other, &proc);
	host_current = &other;
	assert_int_equal(other.profile.strace.index[2] != 0, has_rows);
	host_call(2, 100, -ENOENT);
	host_call(3, 10, 0);
	table = other.profile.strace.calls.table;
	exit_task(&other);
	host_current = &task;
	return table;
}

/* The first table that is left becomes that of the process. The next thread goes on with it. */
TEST(table_of_an_ended_thread)
{
	const struct profile_syscall_table *table = run_thread(false);

	assert_ptr_equal(run_thread(true), table);
	expect(2, 2, 2, 200, 0);
	assert_int_equal(nr_errors_of(2, ENOENT), 2);
	assert_int_equal(entry_of(2)->max_ns, 100);
	/* While counting is off, a thread begins without rows. */
	strace_switch(false);
	run_thread(false);
	strace_switch(true);
	assert_ptr_equal(run_thread(true), table);
	expect(2, 3, 3, 300, 0);
	/* A reset leaves the table without rows. */
	strace_reset();
	assert_ptr_equal(run_thread(false), table);
	assert_ptr_equal(run_thread(true), table);
	expect(2, 2, 2, 200, 0);
}

/*
 * When threads run at once, only one of them can have the table of the process. Another one gets a
 * table that an ended thread has left, with its rows, but without its counts.
 */
TEST(table_of_an_ended_thread_beside_others)
{
	const struct profile_syscall_table *table;
	struct task first;

	run_thread(false);
	start_task(&first, &proc);
	run_thread(false);
	table = first.profile.strace.calls.table;
	exit_task(&first);
	/* The table of the process has the times of both now. */
	assert_ptr_equal(run_thread(true), table);
	expect(2, 3, 3, 300, 0);
	assert_int_equal(nr_errors_of(2, ENOENT), 3);
	/* A reset frees such tables. */
	strace_reset();
	start_task(&first, &proc);
	run_thread(false);
	exit_task(&first);
	expect(2, 1, 1, 100, 0);
}

/* The calls of threads that ran at once may have taken more than the time since boot. */
TEST(call_in_flight_after_others)
{
	struct task threads[3];

	for (u32 i = 0; i < 2; i++) {
		start_task(&threads[i], &proc);
		host_current = &threads[i];
		profile_syscall_enter(2);
	}
	host_now *= 4;
	for (u32 i = 0; i < 2; i++) {
		host_current = &threads[i];
		profile_syscall_exit(0);
		exit_task(&threads[i]);
	}
	expect(2, 2, 0, host_now / 4 * 6, 0);
	assert_true(entry_of(2)->ns > host_now);
	start_task(&threads[2], &proc);
	host_current = &threads[2];
	profile_syscall_enter(2);
	expect(2, 3, 0, host_now / 4 * 6, 1);
	profile_syscall_exit(0);
	exit_task(&threads[2]);
	host_current = &task;
}

/* A new program gets the table of a process that is gone, and the execve is its first call. */
TEST(table_of_a_gone_process)
{
	const struct profile_syscall_table *table;
	struct process other, third;
	struct task thread, last;

	host_call(3, 1, 0);
	start(&other, 2, &thread);
	host_current = &thread;
	host_call(5, 1, 0);
	start(&third, 3, &last);
	host_current = &last;
	host_call(4, 1, -ENOENT);
	table = last.profile.strace.calls.table;
	exit_task(&thread);
	profile_process_release(&other);
	exit_task(&last);
	profile_process_release(&third);
	host_current = &task;
	profile_syscall_enter(59);
	profile_process_exec(&proc);
	assert_ptr_equal(task.profile.strace.calls.table, table);
	assert_ptr_equal(task.profile.strace.index, table->index);
	profile_syscall_exit(0);
	host_call(4, 7, 0);
	expect(59, 1, 0, 0, 0);
	expect(4, 1, 0, 7, 0);
	assert_int_equal(snap.nr_entries, 2);
	assert_int_equal(snap.nr_errors, 0);
}

/* Numbers that have no call have few rows, so none of them are left to another program. */
TEST(table_with_unknown_calls)
{
	run_thread(false);
	for (int i = 0; i < 2; i++) {
		struct task first, other;

		start_task(&first, &proc);
		start_task(&other, &proc);
		assert_ptr_equal(other.profile.strace.index, strace_no_rows);
		host_current = &other;
		host_call(700, 1, 0);
		exit_task(&first);
		exit_task(&other);
		host_current = &task;
	}
	expect(700, 2, 0, 2, 0);
}

/* The counter of a row's last error moves when the table grows, and is gone after a reset. */
TEST(same_error)
{
	const struct profile_syscall_table *table;

	for (int i = 0; i < 3; i++)
		host_call(2, 1, -ENOENT);
	assert_int_equal(nr_errors_of(2, ENOENT), 3);
	table = task.profile.strace.calls.table;
	for (u32 error = 1; error <= 100; error++)
		host_call(3, 1, -(long)error);
	assert_ptr_not_equal(task.profile.strace.calls.table, table);
	for (int i = 0; i < 3; i++)
		host_call(2, 1, -ENOENT);
	assert_int_equal(nr_errors_of(2, ENOENT), 6);
	host_dying = true;
	host_call(2, 1, -ENOENT);
	host_dying = false;
	expect(2, 7, 6, 7, 0);
	strace_reset();
	for (int i = 0; i < 3; i++)
		host_call(2, 1, -ENOENT);
	assert_int_equal(nr_errors_of(2, ENOENT), 3);
	expect(2, 3, 3, 3, 0);
}

/* 500 different errors. The table grows for them at the next call. */
TEST(many_errors)
{
	for (u32 error = 1; error <= 500; error++)
		host_call(2, 1, -(long)error);
	host_call(2, 1, 0);
	expect(2, 501, 500, 501, 0);
	/* Before each growth, one error found no slot and is counted without its name. */
	assert_in_range(find_entry(2)->nr_error_kinds, 490, 500);
	assert_in_range(task.profile.strace.calls.table->size_bytes, 32768, 65536);
}

/* More different errors than slots. Each is counted, by name or as "other". */
TEST(more_errors_than_slots)
{
	const struct strace_entry *entry;
	u64 nr_named = 0;

	for (u32 i = 0; i < 3 * 3000; i++)
		host_call(2 + i % 3, 1, -1000 - (long)(i / 3));
	assert_in_range(task.profile.strace.calls.table->nr_errors, STRACE_MAX_ERRORS - 8,
			STRACE_MAX_ERRORS);
	entry = entry_of(3);
	assert_int_equal(entry->nr_calls, 3000);
	assert_int_equal(entry->nr_errors, 3000);
	for (u32 nr = 2; nr < 5; nr++) {
		entry = find_entry(nr);
		for (u32 i = 0; i < entry->nr_error_kinds; i++)
			nr_named += snap.errors[entry->first_error + i].nr;
	}
	assert_in_range(nr_named, STRACE_MAX_ERRORS / 2, STRACE_MAX_ERRORS);
	assert_in_range(snap.nr_errors, STRACE_MAX_ERRORS / 2, STRACE_MAX_ERRORS);
	/* The table does not try to grow again: the next call takes the fast path. */
	assert_ptr_equal(task.profile.strace.index, task.profile.strace.calls.table->index);
	strace_reset();
	host_call(2, 1, -ENOENT);
	assert_int_equal(nr_errors_of(2, ENOENT), 1);
	assert_int_equal(find_entry(2)->nr_error_kinds, 1);
}

/* 40 calls with 5 different errors: each pair of call and error keeps its slot. */
TEST(errors_of_many_calls)
{
	static const u32 errors[] = { EBADF, EFAULT, EINVAL, ENOENT, EAGAIN };

	for (u32 round = 1; round <= 3; round++) {
		for (u32 i = 0; i < 40; i++)
			host_call(i, 1, -(long)errors[i % 5]);
		for (u32 i = 0; i < 40; i++) {
			assert_int_equal(nr_errors_of(i, errors[i % 5]), round);
			assert_int_equal(find_entry(i)->nr_error_kinds, 1);
		}
	}
}

TEST(no_memory_for_errors)
{
	u64 nr_kinds;

	host_call(2, 1, 0);
	host_fail_alloc = 1;
	for (u32 error = 1; error <= 100; error++)
		host_call(2, 1, -(long)error);
	assert_int_equal(task.profile.strace.calls.table->size_bytes, STRACE_FIRST_BYTES);
	assert_true(task.profile.strace.calls.table->errors_full);
	assert_ptr_equal(task.profile.strace.index, task.profile.strace.calls.table->index);
	expect(2, 101, 100, 101, 0);
	nr_kinds = find_entry(2)->nr_error_kinds;
	assert_in_range(nr_kinds, 8, 16);
	/* A table that grows for a row also has more room for errors. */
	host_fail_alloc = 0;
	for (u32 nr = 10; nr < 20; nr++)
		host_call(nr, 1, 0);
	host_call(2, 1, -101);
	assert_int_equal(nr_errors_of(2, 101), 1);
	assert_int_equal(find_entry(2)->nr_error_kinds, nr_kinds + 1);
}
