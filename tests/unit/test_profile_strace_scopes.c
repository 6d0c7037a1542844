// SPDX-License-Identifier: BSD-2-Clause
/*
 * System call tables: time on a CPU, distributions, errors by name, calls that signals interrupt,
 * families of processes, the whole system, on and off, and memory that runs out at every step.
 */

#include "strace_unit.h"

static struct process child;
static struct task child_task;
static struct strace_system_snapshot system_snap;

static void start(struct process *p, int pid, struct task *t)
{
	start_process(p, pid);
	start_task(t, p);
}

static void expect(u64 nr, u64 nr_calls, u64 nr_errors, u64 ns, u64 nr_in_flight)
{
	const struct strace_entry *entry = entry_of(nr);

	assert_int_equal(entry->nr_calls, nr_calls);
	assert_int_equal(entry->nr_errors, nr_errors);
	assert_int_equal(entry->ns, ns);
	assert_int_equal(entry->nr_in_flight, nr_in_flight);
}

static u64 all_calls(void)
{
	u64 sum = 0;

	for (u32 i = 0; i < snap.nr_entries; i++)
		sum += snap.entries[i].nr_calls;
	return sum;
}

static void sleep_for(u64 cycles)
{
	host_now += cycles;
	host_off += cycles;
}

/* A futex that sleeps a second has a second of wall time and almost none on a CPU. */
static void test_sleep_is_not_work(void **state)
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
	sleep_for(77); /* in user mode: preempted */
	expect(202, 1, 0, NS_PER_SEC + 23, 0);
	assert_int_equal(entry_of(202)->cpu_ns, 23);
	assert_int_equal(entry_of(1)->cpu_ns, 300);
	host_call(202, 40, 0);
	assert_int_equal(entry_of(202)->cpu_ns, 63);
	exit_task(&task);
	assert_int_equal(entry_of(202)->cpu_ns, 63);
}

static void test_never_returning_call_has_its_cpu_time(void **state)
{
	profile_syscall_enter(231);
	host_now += 5;
	sleep_for(100);
	exit_task(&task);
	expect(231, 1, 0, 105, 0);
	assert_int_equal(entry_of(231)->cpu_ns, 5);
	assert_int_equal(entry_of(231)->max_ns, 105);
}

static void test_percentiles_are_bounds(void **state)
{
	for (int i = 0; i < 98; i++)
		host_call(0, 1000, 0);
	host_call(0, 100000, 0);
	assert_int_equal(entry_of(0)->p50_ns, 1023);
	assert_int_equal(entry_of(0)->p99_ns, 100000); /* 99 of 99, and the longest is known */
	host_call(0, 200000, 0);
	assert_int_equal(entry_of(0)->p99_ns, 131071);
	assert_int_equal(entry_of(0)->max_ns, 200000);
	/* Clamped at both ends: what is shorter, and what is longer than any bucket says. */
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

static u64 nr_errors_of(u64 nr, u32 error)
{
	const struct strace_entry *entry = entry_of(nr);

	for (u32 i = 0; i < entry->nr_error_kinds; i++) {
		const struct strace_error_entry *slot = &snap.errors[entry->first_error + i];

		if (slot->error == error)
			return slot->nr;
	}
	return 0;
}

static void test_errors_by_number(void **state)
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

/* Every errno there is: the table grows for them, at entry. */
static void test_many_errors(void **state)
{
	for (u32 error = 1; error <= 500; error++)
		host_call(2, 1, -(long)error);
	host_call(2, 1, 0);
	expect(2, 501, 500, 501, 0);
	/* Those that had to wait for room, once for each time it doubled, have no name. */
	assert_in_range(find_entry(2)->nr_error_kinds, 490, 500);
	assert_in_range(task.profile.table->size_bytes, 8192, 16384);
}

static void interrupt_call(u64 nr, u64 cycles)
{
	profile_syscall_enter(nr);
	host_now += cycles;
	host_nr = nr;
	profile_syscall_exit(-512);
}

static void test_eintr_is_an_error(void **state)
{
	interrupt_call(0, 10);
	expect(0, 1, 0, 10, 1);
	profile_syscall_interrupted();
	expect(0, 1, 1, 10, 0);
	assert_int_equal(nr_errors_of(0, EINTR), 1);
	profile_syscall_interrupted(); /* nothing to decide */
	expect(0, 1, 1, 10, 0);
}

static void test_restart_is_one_call(void **state)
{
	host_call(0, 1, 0);
	interrupt_call(0, 10);
	profile_syscall_again(0x400, 0x7000);
	host_now += 1000;
	profile_syscall_enter(0);
	host_now += 5;
	expect(0, 2, 0, 16, 1);
	assert_int_equal(find_entry(0)->max_ns, 15);
	profile_syscall_exit(3);
	expect(0, 2, 0, 16, 0);
	assert_int_equal(find_entry(0)->max_ns, 15);
	/* The fast path is back. */
	assert_ptr_equal(task.profile.index, task.profile.table->index);
	assert_false(task.profile.event);
	host_call(0, 1, 0);
	expect(0, 3, 0, 17, 0);
}

static void test_restart_syscall_goes_on_with_the_call(void **state)
{
	interrupt_call(35, 10);
	profile_syscall_again(0x400, 0x7000);
	host_call(219, 5, 0);
	expect(35, 1, 0, 15, 0);
	assert_int_equal(find_entry(219)->nr_calls, 0);
}

static void test_calls_of_a_handler_are_calls(void **state)
{
	interrupt_call(0, 10);
	profile_syscall_again(0x400, 0x7000);
	profile_syscall_handler();
	host_call(1, 100, 0);
	host_call(0, 100, 0); /* the same number: another call */
	expect(0, 2, 0, 110, 1);
	profile_syscall_enter(15);
	profile_syscall_sigreturn(0x400, 0x7000);
	profile_syscall_exit(0);
	host_call(0, 7, 0);
	expect(0, 2, 0, 117, 0);
	expect(1, 1, 0, 100, 0);
	expect(15, 1, 0, 0, 0);
}

static void test_handlers_in_handlers(void **state)
{
	interrupt_call(0, 1);
	profile_syscall_again(0x400, 0x7000);
	profile_syscall_handler();
	interrupt_call(7, 10);
	profile_syscall_again(0x500, 0x6000);
	profile_syscall_handler();
	host_call(1, 5, 0);
	profile_syscall_sigreturn(0x500, 0x6000);
	/* Another signal, before the call is made again. */
	profile_syscall_handler();
	host_call(7, 100, 0);
	profile_syscall_sigreturn(0x500, 0x6000);
	host_call(7, 20, 0);
	profile_syscall_sigreturn(0x400, 0x7000);
	host_call(0, 2, -9);
	expect(0, 1, 1, 3, 0);
	expect(7, 2, 0, 130, 0);
	expect(1, 1, 0, 5, 0);
	assert_int_equal(snap.nr_unfollowed, 0);
}

/* The handler leaves by longjmp(): the call never returns, and a later one is another one. */
static void test_handler_that_does_not_return(void **state)
{
	interrupt_call(0, 10);
	profile_syscall_again(0x400, 0x7000);
	profile_syscall_handler();
	host_call(0, 1, 0);
	expect(0, 2, 0, 11, 1);
	for (int i = 0; i < 10; i++) {
		interrupt_call(0, 10);
		profile_syscall_again(0x400, 0x7000);
		profile_syscall_handler();
	}
	expect(0, 12, 0, 111, PROFILE_MAX_RESTARTS);
	assert_int_equal(snap.nr_unfollowed, 11 - PROFILE_MAX_RESTARTS);
	/* The last one goes on; those before it cannot any more. */
	profile_syscall_sigreturn(0x400, 0x7000);
	host_call(0, 5, 0);
	expect(0, 12, 0, 116, PROFILE_MAX_RESTARTS - 1);
	exit_task(&task);
	expect(0, 12, 0, 116, 0);
}

static void test_something_else_comes_next(void **state)
{
	interrupt_call(0, 10);
	profile_syscall_again(0x400, 0x7000);
	host_call(1, 5, 0);
	expect(0, 1, 0, 10, 0);
	expect(1, 1, 0, 5, 0);
	/* A return value that looks like it, which nobody decides on. */
	host_nr = 15;
	host_call(15, 1, -512);
	interrupt_call(0, 10);
	profile_syscall_interrupted();
	expect(0, 2, 1, 20, 0);
	expect(15, 1, 0, 1, 0);
}

static void test_killed_in_an_interrupted_call(void **state)
{
	host_dying = true;
	host_call(0, 10, -512);
	host_dying = false;
	expect(0, 1, 0, 10, 0);
	interrupt_call(1, 10);
	exit_task(&task);
	expect(1, 1, 0, 10, 0);
}

static void test_exec_in_a_handler(void **state)
{
	interrupt_call(0, 10);
	profile_syscall_again(0x400, 0x7000);
	profile_syscall_handler();
	profile_syscall_enter(59);
	host_now += 3;
	profile_process_exec(&proc);
	profile_syscall_exit(0);
	profile_syscall_sigreturn(0x400, 0x7000);
	host_call(0, 1, 0);
	expect(0, 1, 0, 1, 0);
	expect(59, 1, 0, 3, 0);
	assert_int_equal(snap.before.nr_calls, 1);
	assert_int_equal(snap.before.ns, 10);
}

static void test_reset_of_an_interrupted_call(void **state)
{
	interrupt_call(0, 10);
	profile_syscall_again(0x400, 0x7000);
	profile_syscall_handler();
	strace_reset();
	expect(0, 1, 0, 0, 1);
	host_call(1, 2, 0);
	expect(0, 1, 0, 0, 1);
	profile_syscall_sigreturn(0x400, 0x7000);
	host_call(0, 4, 0);
	expect(0, 1, 0, 4, 0);
	assert_int_equal(find_entry(0)->max_ns, 4);
}

static void test_before_exec_adds_up(void **state)
{
	host_call(0, 10, -1);
	host_call(1, 5, 0);
	profile_syscall_enter(59);
	sleep_for(100);
	host_now += 7;
	profile_process_exec(&proc);
	expect(59, 1, 0, 107, 1);
	assert_int_equal(find_entry(59)->cpu_ns, 7);
	profile_syscall_exit(0);
	expect(59, 1, 0, 107, 0);
	assert_int_equal(find_entry(59)->cpu_ns, 7);
	assert_int_equal(snap.before.nr_calls, 2);
	assert_int_equal(snap.before.nr_errors, 1);
	assert_int_equal(snap.before.ns, 15);
	profile_syscall_enter(59);
	profile_process_exec(&proc);
	profile_syscall_exit(0);
	expect(59, 1, 0, 0, 0);
	assert_int_equal(snap.before.nr_calls, 3);
	assert_int_equal(snap.before.ns, 122);
}

static void wait_for_child(void)
{
	host_current = &task;
	exit_task(&child_task);
	strace_process_ended(&child.profile);
	profile_process_waited(&child);
	profile_process_release(&child);
}

static void test_children_waited_for(void **state)
{
	host_call(0, 1, 0);
	for (int i = 0; i < 3; i++) {
		start(&child, 2 + i, &child_task);
		host_current = &child_task;
		host_call(1, 10, -ENOENT);
		profile_syscall_enter(59);
		profile_process_exec(&child);
		profile_syscall_exit(0);
		host_call(2, 100, 0);
		wait_for_child();
	}
	expect(0, 1, 0, 1, 0);
	assert_int_equal(snap.nr_entries, 1);
	assert_int_equal(snap.nr_children, 3);
	assert_int_equal(snap.children.nr_calls, 9);
	assert_int_equal(snap.children.nr_errors, 3);
	assert_int_equal(snap.children.ns, 330);
	strace_snapshot_family(&proc.profile, &snap);
	assert_int_equal(all_calls(), 10);
	assert_int_equal(find_entry(1)->nr_calls, 3);
	assert_int_equal(find_entry(59)->nr_calls, 3);
	assert_int_equal(find_entry(2)->ns, 300);
}

/* Grandchildren come with the child; who is not waited for does not. */
static void test_grandchildren(void **state)
{
	struct process grandchild, orphan;
	struct task t;

	start(&child, 2, &child_task);
	for (int i = 0; i < 2; i++) {
		start(&grandchild, 3, &t);
		host_current = &t;
		host_call(3, 5, 0);
		exit_task(&t);
		host_current = &child_task;
		profile_process_waited(&grandchild);
		profile_process_release(&grandchild);
	}
	start(&orphan, 4, &t);
	host_current = &t;
	host_call(3, 5, 0);
	exit_task(&t);
	profile_process_release(&orphan);
	wait_for_child();
	entry_of(0);
	assert_int_equal(snap.nr_children, 3);
	assert_int_equal(snap.children.nr_calls, 2);

	strace_snapshot_system(&snap, &system_snap);
	assert_int_equal(find_entry(3)->nr_calls, 3);
	assert_int_equal(system_snap.entries[0].nr_threads, 4); /* [gone]: processes */
	assert_int_equal(system_snap.entries[0].nr_calls, 3);
}

/* A zombie keeps its table, and is in no report of live processes. */
static void test_zombie(void **state)
{
	u64 serial = 0;

	start(&child, 2, &child_task);
	host_current = &child_task;
	host_call(1, 10, 0);
	exit_task(&child_task);
	strace_process_ended(&child.profile);
	host_current = &task;
	strace_snapshot_process(&child.profile, &snap);
	assert_int_equal(find_entry(1)->nr_calls, 1);
	assert_true(strace_snapshot_next(&serial, &snap));
	assert_int_equal(snap.pid, 1);
	assert_false(strace_snapshot_next(&serial, &snap));
	profile_process_waited(&child);
	profile_process_release(&child);
}

/* By call and by process: nothing is lost and nothing is there twice, whoever ends when. */
static void test_system_sums_close(void **state)
{
	u64 by_process, nr = 0;

	host_call(0, 1, 0);
	nr++;
	for (int i = 0; i < 5; i++) {
		start(&child, 10 + i, &child_task);
		host_current = &child_task;
		for (int j = 0; j < 30; j++, nr++)
			host_call(j, 10, j & 1 ? -ENOENT : 0);
		if (i & 1) {
			profile_syscall_enter(59);
			profile_process_exec(&child);
			profile_syscall_exit(0);
			nr++;
		}
		for (int look = 0; look < 2; look++) {
			by_process = 0;
			strace_snapshot_system(&snap, &system_snap);
			assert_int_equal(all_calls(), nr);
			for (u32 k = 0; k < system_snap.nr_entries; k++)
				by_process += system_snap.entries[k].nr_calls;
			assert_int_equal(by_process, nr);
			if (!look)
				wait_for_child();
		}
	}
	strace_reset();
	strace_snapshot_system(&snap, &system_snap);
	assert_int_equal(all_calls(), 0);
}

static void test_more_processes_than_rows(void **state)
{
	static struct process many[STRACE_MAX_PROCESSES + 10];
	static struct task tasks[ARRAY_SIZE(many)];
	u64 nr = 0, nr_processes = 0;

	for (u32 i = 0; i < ARRAY_SIZE(many); i++) {
		start(&many[i], 100 + i, &tasks[i]);
		host_current = &tasks[i];
		host_call(1, 1, 0);
	}
	host_current = &task;
	strace_snapshot_system(&snap, &system_snap);
	assert_int_equal(system_snap.nr_entries, ARRAY_SIZE(system_snap.entries));
	for (u32 i = 0; i < system_snap.nr_entries; i++)
		nr += system_snap.entries[i].nr_calls;
	for (u32 i = 2; i < system_snap.nr_entries; i++)
		nr_processes += system_snap.entries[i].pid != 0;
	assert_int_equal(nr, ARRAY_SIZE(many));
	assert_int_equal(nr_processes + system_snap.entries[1].nr_threads, ARRAY_SIZE(many) + 1);
	for (u32 i = 0; i < ARRAY_SIZE(many); i++) {
		exit_task(&tasks[i]);
		profile_process_release(&many[i]);
	}
}

static void test_off_and_on(void **state)
{
	host_call(0, 10, 0);
	profile_syscall_enter(1);
	host_now += 3;
	sleep_for(4);
	strace_switch(false);
	host_now += 1000;
	expect(1, 1, 0, 7, 1); /* its time until then */
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
	strace_switch(true); /* it is */
	assert_true(static_key_is_set(&strace_key));
}

/* A call that lasts over off and on: its return is seen, but its end was the switch. */
static void test_return_after_off_and_on(void **state)
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
	/* A return whose entry nobody saw. */
	strace_switch(false);
	profile_syscall_enter(1);
	strace_switch(true);
	profile_syscall_exit(-1);
	expect(1, 2, 0, 4, 0);
}

static void test_off_and_reset(void **state)
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

static void test_off_for_one_process(void **state)
{
	start(&child, 2, &child_task);
	host_call(0, 1, 0);
	profile_syscall_enter(3);
	host_now += 5;
	assert_int_equal(host_process_file_write(&proc, "off\n"), 0);
	host_now += 50;
	profile_syscall_exit(0);
	for (int i = 0; i < 3; i++)
		host_call(0, 1, 0);
	expect(0, 1, 0, 1, 0);
	expect(3, 1, 0, 5, 0);
	host_current = &child_task;
	host_call(0, 1, 0);
	host_current = &task;
	strace_snapshot_process(&child.profile, &snap);
	assert_int_equal(all_calls(), 1);
	assert_int_equal(host_process_file_write(&proc, "on"), 0);
	host_call(0, 1, 0);
	host_call(0, 1, 0);
	expect(0, 3, 0, 3, 0);
	assert_int_equal(host_process_file_write(&proc, "reset"), 0);
	expect(0, 0, 0, 0, 0);
	strace_snapshot_process(&child.profile, &snap);
	assert_int_equal(all_calls(), 1);
	wait_for_child();
	assert_int_equal(host_process_file_write(&proc, "offf"), -EINVAL);
	assert_int_equal(host_process_file_write(&proc, ""), -EINVAL);
	assert_int_equal(host_file_write("profile/strace", "of"), -EINVAL);
	assert_int_equal(host_file_write("profile/strace", "off"), 0);
	assert_false(static_key_is_set(&strace_key));
	assert_int_equal(host_file_write("profile/strace", "on\n"), 0);
	assert_int_equal(host_file_write("profile/strace", "reset\n"), 0);
}

/* Everything that allocates, in one run; returns the calls made. */
static u64 busy_run(void)
{
	struct task second = { .proc = &proc };
	u64 nr = 0;

	for (int i = 0; i < 25; i++, nr++)
		host_call(i, 10, -(long)(i % 3));
	profile_task_init(&second);
	host_current = &second;
	for (int i = 10; i < 60; i++, nr++)
		host_call(i, 10, -(long)(i % 7));
	interrupt_call(100, 5);
	profile_syscall_again(1, 2);
	host_call(100, 5, 0);
	nr++;
	exit_task(&second);
	host_current = &task;
	start(&child, 2, &child_task);
	host_current = &child_task;
	for (int i = 0; i < 20; i++, nr++)
		host_call(i * 2, 10, 0);
	profile_syscall_enter(59);
	profile_process_exec(&child);
	profile_syscall_exit(0);
	for (int i = 0; i < 20; i++, nr++)
		host_call(500 + i, 10, -38);
	wait_for_child();
	return nr + 1;
}

/* Whichever allocation fails, or all from there on, no call is lost, and none is there twice. */
static void test_every_allocation_fails_once(void **state)
{
	for (int n = 1; n < 40; n++) {
		u64 nr;

		host_fail_alloc = n;
		nr = busy_run();
		host_fail_alloc = 0;
		strace_snapshot_family(&proc.profile, &snap);
		assert_int_equal(all_calls(), nr);
		strace_snapshot_system(&snap, &system_snap);
		assert_int_equal(all_calls(), nr);
		for (u32 i = 0; i < snap.nr_entries; i++)
			assert_int_equal(snap.entries[i].nr_in_flight, 0);
		/* And all is well afterwards. */
		strace_reset();
		nr = busy_run();
		strace_snapshot_family(&proc.profile, &snap);
		assert_int_equal(all_calls(), nr);
		assert_int_equal(find_entry(STRACE_OVERFLOW_NR)->nr_calls, 0);
		strace_reset();
	}
}

static void test_off_without_memory(void **state)
{
	host_fail_alloc = 1;
	profile_syscall_enter(1);
	host_now += 3;
	strace_switch(false);
	host_now += 3;
	expect(STRACE_OVERFLOW_NR, 1, 0, 3, 1);
	strace_reset();
	expect(STRACE_OVERFLOW_NR, 0, 0, 0, 0);
	strace_switch(true);
	profile_syscall_enter(1);
	host_now += 3;
	strace_reset();
	host_now += 4;
	expect(STRACE_OVERFLOW_NR, 1, 0, 4, 1);
	profile_syscall_exit(-1);
	expect(STRACE_OVERFLOW_NR, 1, 1, 4, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(test_sleep_is_not_work),
		TEST(test_never_returning_call_has_its_cpu_time),
		TEST(test_percentiles_are_bounds),
		TEST(test_errors_by_number),
		TEST(test_many_errors),
		TEST(test_eintr_is_an_error),
		TEST(test_restart_is_one_call),
		TEST(test_restart_syscall_goes_on_with_the_call),
		TEST(test_calls_of_a_handler_are_calls),
		TEST(test_handlers_in_handlers),
		TEST(test_handler_that_does_not_return),
		TEST(test_something_else_comes_next),
		TEST(test_killed_in_an_interrupted_call),
		TEST(test_exec_in_a_handler),
		TEST(test_reset_of_an_interrupted_call),
		TEST(test_before_exec_adds_up),
		TEST(test_children_waited_for),
		TEST(test_grandchildren),
		TEST(test_zombie),
		TEST(test_system_sums_close),
		TEST(test_more_processes_than_rows),
		TEST(test_off_and_on),
		TEST(test_return_after_off_and_on),
		TEST(test_off_and_reset),
		TEST(test_off_for_one_process),
		TEST(test_every_allocation_fails_once),
		TEST(test_off_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
