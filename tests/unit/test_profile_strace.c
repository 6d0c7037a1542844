// SPDX-License-Identifier: BSD-2-Clause
/* Tests system call tables: counts, growth, threads, execve, resets, and concurrent readers. */

#include "strace_unit.h"

static void expect_row(u64 nr, u64 nr_calls, u64 nr_errors, u64 ns)
{
	const struct strace_entry *entry = entry_of(nr);

	assert_int_equal(entry->nr_calls, nr_calls);
	assert_int_equal(entry->nr_errors, nr_errors);
	assert_int_equal(entry->ns, ns);
}

static u64 nr_calls(void)
{
	strace_snapshot_process(&proc.profile, &snap);
	return all_calls();
}

#define TEST(name) HOST_TEST_WITH(name, setup, teardown)

TEST(counts_calls_and_time)
{
	host_call(0, 100, 5);
	host_call(1, 7, -9);
	host_call(0, 50, 0);
	expect_row(0, 2, 0, 150);
	expect_row(1, 1, 1, 7);
	expect_row(2, 0, 0, 0);
	assert_int_equal(snap.nr_entries, 2);
	assert_string_equal(entry_of(0)->name, "sys_read");
	assert_int_equal(snap.pid, 1);
	assert_int_equal(snap.nr_accumulated_threads, 1);
}

TEST(error_is_minus_1_to_minus_4095)
{
	static const long good[] = { 0,
				     1,
				     -4096,
				     -4097,
				     4095,
				     0x7ffff7a00000,
				     (long)0xffff888000000000,
				     (long)0x8000000000000000 };

	for (u32 i = 0; i < ARRAY_SIZE(good); i++)
		host_call(0, 1, good[i]);
	expect_row(0, ARRAY_SIZE(good), 0, ARRAY_SIZE(good));
	host_call(0, 1, -1);
	host_call(0, 1, -4095);
	expect_row(0, ARRAY_SIZE(good) + 2, 2, ARRAY_SIZE(good) + 2);
}

TEST(call_cut_short_by_death_is_no_error)
{
	host_dying = true;
	host_call(0, 1, -4);
	host_dying = false;
	expect_row(0, 1, 0, 1);
}

TEST(call_in_flight)
{
	host_call(0, 10, 0);
	profile_syscall_enter(0);
	expect_row(0, 2, 0, 10);
	host_now += 33;
	expect_row(0, 2, 0, 43);
	/* A snapshot does not end the call. */
	host_now += 1;
	expect_row(0, 2, 0, 44);
	profile_syscall_exit(-4);
	host_now += 500;
	expect_row(0, 2, 1, 44);
}

/* Returns the thread's row of a call that it has made. */
static struct profile_syscall_row *row_of_call(u64 nr)
{
	struct profile_syscall_table *table = task.profile.strace.calls.table;

	return strace_row_at(table, table->index[nr] * PROFILE_INDEX_UNIT);
}

/* Stops a thread between two stores of the hooks, as an NMI does, and reads its table there. */
TEST(reading_a_stopped_writer)
{
	struct profile_syscall_row *row;
	struct profile_task *pt = &task.profile;

	host_call(0, 10, 0);
	row = row_of_call(0);
	row->nr_calls++; /* call entered, no start time stored yet */
	expect_row(0, 2, 0, 10);
	pt->strace.row = row;
	pt->strace.start = (struct profile_moment){ host_now, host_off };
	row->off_cycles -= host_off;
	expect_row(0, 2, 0, 10);
	row->cycles -= host_now; /* not yet valid: seq is not odd */
	host_now += 5;
	expect_row(0, 2, 0, 15);
	pt->strace.seq |= 1;
	sleep_for(3);
	expect_row(0, 2, 0, 18);
	assert_int_equal(find_entry(0)->cpu_ns, 15);
	row->cycles += host_now; /* ended, but seq is not even yet */
	host_now += 1000;
	expect_row(0, 2, 0, 18);
	assert_int_equal(find_entry(0)->cpu_ns, 15);
	row->off_cycles += host_off;
	profile_strace_end_row(row, 8, PROFILE_BUCKET_BASE_LOG2);
	pt->strace.seq++;
	expect_row(0, 2, 0, 18);
	assert_int_equal(find_entry(0)->cpu_ns, 15);
}

/*
 * A thread is preempted while a report is printed, in a call, or in the hook at its end, which has
 * already read the clock. The wait is part of the first call only, which is shortened by it.
 */
TEST(wait_for_a_report)
{
	struct profile_task *pt = &task.profile;
	u64 end, cycles;

	host_call(0, 10, 0);
	profile_syscall_enter(0);
	host_now += 3;
	sleep_for(600);
	strace_shorten_wait(pt, 600);
	sleep_for(400);
	strace_shorten_wait(pt, 400);
	expect_row(0, 2, 0, 13);
	assert_int_equal(find_entry(0)->cpu_ns, 13);
	profile_syscall_exit(-1);
	expect_row(0, 2, 1, 13);
	assert_int_equal(find_entry(0)->cpu_ns, 13);

	profile_syscall_enter(0);
	host_now += 5;
	end = host_now;
	cycles = end - pt->strace.start.cycles;
	sleep_for(1000);
	strace_shorten_wait(pt, 1000);
	profile_strace_end_time(pt, pt->strace.row, end, cycles, profile_strace_log2(cycles));
	pt->strace.seq++;
	expect_row(0, 3, 1, 18);
	host_call(0, 7, 0);
	expect_row(0, 4, 1, 25);
	assert_false(pt->strace.event);
}

TEST(call_that_never_returns)
{
	profile_syscall_enter(231);
	host_now += 12;
	exit_task(&task);
	host_now += 1000;
	expect_row(231, 1, 0, 12);
	assert_string_equal(entry_of(231)->name, "sys_exit_group");
	/* Later calls of the thread are not counted. */
	host_call(0, 5, 0);
	assert_int_equal(nr_calls(), 1);
}

TEST(lost_return)
{
	profile_syscall_enter(0);
	host_now += 3;
	host_call(1, 4, 0);
	profile_syscall_exit(-1); /* a return without an entry */
	expect_row(0, 1, 0, 3);
	expect_row(1, 1, 0, 4);
}

TEST(clock_that_goes_back)
{
	host_call(0, 10, 0);
	host_call(0, -300, -2);
	expect_row(0, 2, 1, 10);
	assert_int_equal(snap.nr_backwards, 1);
	exit_task(&task);
	expect_row(0, 2, 1, 10);
	assert_int_equal(snap.nr_backwards, 1);
}

TEST(all_numbers_have_rows)
{
	for (u64 nr = 0; nr < PROFILE_NR_INDEXED; nr++) {
		for (u64 i = 0; i <= nr % 3; i++)
			host_call(nr, nr + 1, -(long)(nr % 2));
	}
	for (u64 nr = 0; nr < PROFILE_NR_INDEXED; nr++)
		expect_row(nr, nr % 3 + 1, nr % 2 ? nr % 3 + 1 : 0, (nr % 3 + 1) * (nr + 1));
}

/* A sixteenth of the table is for errors. */
#define FIRST_ROWS                                                                               \
	((STRACE_FIRST_BYTES - STRACE_FIRST_BYTES / 16 - sizeof(struct profile_syscall_table)) / \
	 sizeof(struct profile_syscall_row))

/* A table of 8 KiB has room for 20 different calls, some of which fail, with histograms. */
TEST(table_is_sparse)
{
	assert_int_equal(host_nr_allocated, 0);
	for (u64 nr = 0; nr < 9; nr++)
		host_call(nr * 25, 1, -(long)(nr & 1));
	assert_int_equal(host_nr_allocated, 1);
	assert_int_equal(task.profile.strace.calls.table->size_bytes, 4096);
	for (u64 nr = 9; nr < 20; nr++)
		host_call(nr * 25, 1, -(long)(nr & 1));
	assert_int_equal(host_nr_allocated, 1);
	assert_int_equal(task.profile.strace.calls.table->size_bytes, 8192);
	for (u64 nr = 0; nr < 20; nr++)
		expect_row(nr * 25, 1, nr & 1, 1);
	host_call(511, 1, 0);
	assert_int_equal(host_nr_allocated, 1);
	expect_row(511, 1, 0, 1);
}

TEST(unknown_numbers)
{
	host_call(~0ull, 3, -38);
	host_call(1ull << 40, 4, -38);
	host_call(512, 5, -38);
	host_call(~0ull, 3, -38);
	expect_row(~0ull, 2, 2, 6);
	expect_row(1ull << 40, 1, 1, 4);
	expect_row(512, 1, 1, 5);
	assert_null(entry_of(512)->name);
}

static u32 nr_locks;

static void count_lock(os_lock_t *lock)
{
	nr_locks += lock == &lists_lock;
}

TEST(too_many_unknown_numbers)
{
	for (u64 nr = 0; nr < 1000; nr++)
		host_call(10000 + nr, 2, -38);
	host_call(0, 1, 0);
	expect_row(0, 1, 0, 1);
	expect_row(10000 + STRACE_MAX_UNKNOWN - 1, 1, 1, 2);
	expect_row(10000 + STRACE_MAX_UNKNOWN, 0, 0, 0);
	expect_row(STRACE_OTHERS_NR, 1000 - STRACE_MAX_UNKNOWN, 1000 - STRACE_MAX_UNKNOWN,
		   2 * (1000 - STRACE_MAX_UNKNOWN));
	assert_string_equal(entry_of(STRACE_OTHERS_NR)->name, "[unknown]");
	assert_int_equal(entry_of(STRACE_OTHERS_NR)->nr_error_kinds, 1);
	assert_int_equal(nr_calls(), 1001);
	/* The same number again is as cheap as any other. */
	host_on_lock = count_lock;
	host_call(10999, 2, -38);
	host_on_lock = NULL;
	assert_int_equal(nr_locks, 0);
	assert_int_equal(nr_calls(), 1002);
	exit_task(&task);
	assert_int_equal(nr_calls(), 1002);
	assert_int_equal(find_entry(STRACE_OTHERS_NR)->nr_calls, 1001 - STRACE_MAX_UNKNOWN);
}

TEST(out_of_memory_at_first_call)
{
	host_fail_alloc = 1;
	host_call(0, 6, -1);
	host_call(1, 2, 0);
	expect_row(STRACE_SPARE_NR, 2, 1, 8);
	assert_string_equal(entry_of(STRACE_SPARE_NR)->name, "[no memory]");
	/* A call in flight in the spare row. */
	profile_syscall_enter(7);
	host_now += 5;
	expect_row(STRACE_SPARE_NR, 3, 1, 13);
	profile_syscall_exit(0);
	host_fail_alloc = 0;
	host_call(0, 1, 0);
	expect_row(0, 1, 0, 1);
	assert_int_equal(nr_calls(), 4);
}

TEST(out_of_memory_while_growing)
{
	host_fail_alloc = 2;
	for (u64 nr = 0; nr < 40; nr++)
		host_call(nr, 1, 0);
	assert_int_equal(entry_of(FIRST_ROWS - 1)->nr_calls, 1);
	expect_row(FIRST_ROWS, 0, 0, 0);
	expect_row(STRACE_SPARE_NR, 40 - FIRST_ROWS, 0, 40 - FIRST_ROWS);
	assert_int_equal(nr_calls(), 40);
}

TEST(out_of_memory_at_fold)
{
	struct task second;

	start_task(&second, &proc);
	for (u64 nr = 0; nr < FIRST_ROWS; nr++)
		host_call(nr, 1, 0);
	host_current = &second;
	for (u64 nr = 5; nr < FIRST_ROWS + 6; nr++)
		host_call(nr, 1, -1);
	host_fail_alloc = 1;
	exit_task(&second);
	exit_task(&task);
	assert_int_equal(nr_calls(), 2 * FIRST_ROWS + 1);
	expect_row(7, 2, 1, 2);
	expect_row(STRACE_SPARE_NR, 0, 0, 0);

	/* The second table to be added needs room in the first. */
	start_task(&task, &proc);
	start_task(&second, &proc);
	host_fail_alloc = 0;
	host_current = &second;
	for (u64 nr = 0; nr < 4 * FIRST_ROWS; nr++)
		host_call(100 + nr, 1, 0);
	host_fail_alloc = 1;
	exit_task(&task);
	exit_task(&second);
	assert_int_equal(nr_calls(), 6 * FIRST_ROWS + 1);
	assert_true(entry_of(STRACE_SPARE_NR)->nr_calls > 0);
}

TEST(threads_fold_into_their_process)
{
	struct task threads[5];

	for (u32 i = 0; i < 5; i++) {
		start_task(&threads[i], &proc);
		host_current = &threads[i];
		host_call(i, 10 + i, 0);
		host_call(0, 1, -1);
	}
	expect_row(0, 6, 5, 15);
	for (u32 i = 0; i < 5; i += 2)
		exit_task(&threads[i]);
	expect_row(0, 6, 5, 15);
	expect_row(3, 1, 0, 13);
	assert_int_equal(snap.nr_accumulated_threads, 6);
	for (u32 i = 1; i < 5; i += 2)
		exit_task(&threads[i]);
	expect_row(0, 6, 5, 15);
	expect_row(4, 1, 0, 14);
	assert_int_equal(snap.nr_accumulated_threads, 6);
	assert_int_equal(nr_calls(), 10);
}

TEST(thread_that_never_ran)
{
	struct task failed;

	start_task(&failed, &proc);
	profile_task_exit(&failed); /* called by its creator */
	assert_int_equal(nr_calls(), 0);
	assert_int_equal(snap.nr_accumulated_threads, 1);
}

TEST(exec_starts_again)
{
	struct task second;

	start_task(&second, &proc);
	host_current = &second;
	host_call(0, 100, 0);
	exit_task(&second);
	host_current = &task;
	host_call(1, 100, -5);
	host_call(59, 100, -2); /* a failed execve belongs to the old program */
	profile_syscall_enter(59);
	host_now += 40;
	profile_process_exec(&proc);
	expect_row(59, 1, 0, 40);
	host_now += 2;
	profile_syscall_exit(0);
	expect_row(59, 1, 0, 42);
	assert_int_equal(snap.nr_entries, 1);
	assert_int_equal(snap.nr_accumulated_threads, 1);
	host_call(1, 9, 0);
	expect_row(1, 1, 0, 9);
	assert_int_equal(nr_calls(), 2);
}

TEST(exec_without_a_call)
{
	profile_process_exec(&proc); /* as when the kernel starts init */
	assert_int_equal(nr_calls(), 0);
	host_call(0, 1, 0);
	assert_int_equal(nr_calls(), 1);
}

TEST(reset)
{
	struct task gone;

	start_task(&gone, &proc);
	host_current = &gone;
	host_call(0, 100, -1);
	exit_task(&gone);
	host_current = &task;
	host_call(0, 100, -1);
	strace_reset();
	assert_int_equal(nr_calls(), 0);
	host_call(0, 7, 0);
	expect_row(0, 1, 0, 7);
	assert_int_equal(nr_calls(), 1);
	assert_int_equal(snap.nr_accumulated_threads, 2);
}

TEST(reset_with_a_call_in_flight)
{
	host_call(0, 100, 0);
	profile_syscall_enter(0);
	host_now += 50;
	strace_reset();
	host_now += 6;
	expect_row(0, 1, 0, 6); /* one call, with its time since the reset */
	profile_syscall_exit(-1);
	expect_row(0, 1, 1, 6);
	assert_int_equal(nr_calls(), 1);

	strace_reset();
	exit_task(&task);
	assert_int_equal(nr_calls(), 0);
}

TEST(reset_then_exit_in_flight)
{
	profile_syscall_enter(231);
	host_now += 50;
	strace_reset();
	host_now += 6;
	exit_task(&task);
	expect_row(231, 1, 0, 6);
}

TEST(snapshots_change_nothing)
{
	static struct strace_snapshot first;

	for (u64 nr = 0; nr < 30; nr++)
		host_call(nr * 17 % 40, nr, -(long)(nr & 1));
	profile_syscall_enter(3);
	memset(&first, 0, sizeof(first));
	memset(&snap, 0, sizeof(snap));
	strace_snapshot_process(&proc.profile, &first);
	for (int i = 0; i < 10; i++)
		strace_snapshot_process(&proc.profile, &snap);
	assert_memory_equal(&first, &snap, sizeof(snap));
}

TEST(kernel_threads_are_not_counted)
{
	struct task kthread;

	start_task(&kthread, NULL);
	host_current = &kthread;
	host_call(0, 1, 0);
	exit_task(&kthread);
	assert_int_equal(nr_calls(), 0);
}

TEST(all_processes_once_by_age)
{
	struct process others[3];
	u64 serial = 0;
	int pid = 1;

	for (int i = 0; i < 3; i++)
		start_process(&others[i], i + 2);
	while (strace_snapshot_next(&serial, &snap))
		assert_int_equal(snap.pid, pid++);
	assert_int_equal(pid, 5);
	profile_process_release(&others[1]);
	serial = 0;
	assert_true(strace_snapshot_next(&serial, &snap));
	assert_true(strace_snapshot_next(&serial, &snap));
	/* Releases the process that was returned last: the walk continues. */
	profile_process_release(&others[0]);
	assert_true(strace_snapshot_next(&serial, &snap));
	assert_int_equal(snap.pid, 4);
	assert_false(strace_snapshot_next(&serial, &snap));
	profile_process_release(&others[2]);
}

TEST(panic_reads_without_the_lock)
{
	u64 serial = 0;

	host_call(0, 1, 0);
	host_panicking = true;
	assert_true(strace_snapshot_next(&serial, &snap));
	host_panicking = false;
	assert_int_equal(snap.nr_entries, 1);
}

#define WRITER_CALLS 200000

static void *write_calls(void *arg)
{
	host_current = arg;
	for (u64 i = 0; i < WRITER_CALLS; i++) {
		profile_syscall_enter(i % 20);
		profile_syscall_exit(i % 5 ? 0 : -1);
	}
	return NULL;
}

/*
 * Two threads make calls as fast as they can. The counts that a reader sees never decrease, and fit
 * together.
 */
TEST(reading_during_calls)
{
	static u64 last_calls[20], last_errors[20];
	struct task writers[2];
	pthread_t threads[2];
	u64 calls = 0;

	memset(last_calls, 0, sizeof(last_calls));
	memset(last_errors, 0, sizeof(last_errors));
	host_step = 1;
	for (int i = 0; i < 2; i++) {
		start_task(&writers[i], &proc);
		assert_int_equal(pthread_create(&threads[i], NULL, write_calls, &writers[i]), 0);
	}
	while (calls < 2 * WRITER_CALLS) {
		calls = nr_calls();
		for (u32 i = 0; i < snap.nr_entries; i++) {
			const struct strace_entry *entry = &snap.entries[i];

			assert_true(entry->nr < 20);
			assert_true(entry->nr_calls >= last_calls[entry->nr]);
			assert_true(entry->nr_errors >= last_errors[entry->nr]);
			assert_true(entry->nr_errors <= entry->nr_calls);
			/* The time of two writers is at most twice the time since boot. */
			assert_true(entry->ns <= 2 * READ_ONCE(host_now));
			/* This call always fails, but each writer may have one in flight. */
			assert_true(entry->nr % 5 ? entry->nr_errors == 0 :
						    entry->nr_errors + 2 >= entry->nr_calls);
			last_calls[entry->nr] = entry->nr_calls;
			last_errors[entry->nr] = entry->nr_errors;
		}
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		exit_task(&writers[i]);
	}
	for (u64 nr = 0; nr < 20; nr++) {
		const struct strace_entry *entry = entry_of(nr);

		assert_int_equal(entry->nr_calls, 2 * WRITER_CALLS / 20);
		assert_int_equal(entry->nr_errors, nr % 5 ? 0 : 2 * WRITER_CALLS / 20);
	}
}

static void *write_and_exit(void *arg)
{
	struct task tasks[1];

	for (u64 i = 0; i < 2000; i++) {
		start_task(tasks, arg);
		host_current = tasks;
		for (u64 nr = 0; nr < 40; nr++) {
			profile_syscall_enter((i + nr) % 100);
			profile_syscall_exit(0);
		}
		exit_task(tasks);
	}
	return NULL;
}

/* Threads start and exit during reads. No call is missing or counted twice. */
TEST(reading_during_exits)
{
	u64 calls = 0, last_calls = 0;
	pthread_t thread;

	host_step = 1;
	assert_int_equal(pthread_create(&thread, NULL, write_and_exit, &proc), 0);
	while (calls < 2000 * 40) {
		calls = nr_calls();
		assert_true(calls >= last_calls);
		last_calls = calls;
	}
	pthread_join(thread, NULL);
	assert_int_equal(nr_calls(), 2000 * 40);
	assert_int_equal(snap.nr_accumulated_threads, 2001);
}
