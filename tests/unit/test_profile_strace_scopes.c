// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests system call tables: families of processes, the whole system, and memory that runs out at
 * any step.
 */

#include "strace_unit.h"

static struct strace_system_snapshot system_snap;

#define TEST(name) HOST_TEST_WITH(name, setup, teardown)

TEST(before_exec_adds_up)
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

TEST(children_waited_for)
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

/* A child's counts include its children. A process that nobody waited for is not included. */
TEST(grandchildren)
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
	assert_int_equal(system_snap.entries[0].nr_threads, 4); /* row [gone]: processes */
	assert_int_equal(system_snap.entries[0].nr_calls, 3);
}

/* A reset of one process takes its children from its own tables only. */
TEST(reset_keeps_gone)
{
	start(&child, 2, &child_task);
	host_current = &child_task;
	host_call(3, 5, -ENOENT);
	wait_for_child();
	strace_reset_process(&proc.profile);
	entry_of(0);
	assert_int_equal(snap.nr_children, 0);
	assert_int_equal(snap.children.nr_calls, 0);
	strace_snapshot_system(&snap, &system_snap);
	assert_int_equal(find_entry(3)->nr_calls, 1);
	assert_int_equal(system_snap.entries[0].nr_threads, 1);
	assert_int_equal(system_snap.entries[0].nr_errors, 1);
	strace_reset();
	strace_snapshot_system(&snap, &system_snap);
	assert_int_equal(system_snap.entries[0].nr_threads, 0);
	assert_int_equal(system_snap.entries[0].nr_calls, 0);
}

/* A zombie keeps its table, and is not in reports of live processes. */
TEST(zombie)
{
	u64 serial = 0;

	start(&child, 2, &child_task);
	host_current = &child_task;
	host_call(1, 10, 0);
	exit_task(&child_task);
	child.profile.has_ended = true;
	host_current = &task;
	strace_snapshot_process(&child.profile, &snap);
	assert_int_equal(find_entry(1)->nr_calls, 1);
	assert_true(strace_snapshot_next(&serial, &snap));
	assert_int_equal(snap.pid, 1);
	assert_false(strace_snapshot_next(&serial, &snap));
	profile_process_waited(&child);
	profile_process_release(&child);
}

/*
 * The sums by call and by process agree: no call is lost or counted twice, before and after a
 * process ends.
 */
TEST(system_sums_add_up)
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

TEST(more_processes_than_rows)
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

/* Does everything that allocates, and returns the number of calls made. */
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

/* A fork belongs to the program that called it. One that shares memory does not count. */
TEST(forks)
{
	static struct process copies[2], sharer;

	copies[0].copied_bytes = copies[1].copied_bytes = 1 << 20;
	start_process(&copies[0], 3);
	start_process(&copies[1], 4);
	start_process(&sharer, 5);
	strace_snapshot_process(&proc.profile, &snap);
	assert_int_equal(snap.nr_forks, 2);
	assert_int_equal(snap.forked_bytes, 2 << 20);
	strace_snapshot_system(&snap, &system_snap);
	assert_int_equal(snap.nr_forks, 2);
	profile_process_exec(&proc);
	strace_snapshot_process(&proc.profile, &snap);
	assert_int_equal(snap.nr_forks, 0);
	strace_reset();
	strace_snapshot_system(&snap, &system_snap);
	assert_int_equal(snap.nr_forks + snap.forked_bytes, 0);
}

/* From the n-th allocation on, all fail. No call is lost or counted twice. */
TEST(every_allocation_fails_once)
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
		/* After a reset, with memory again, no call is in the spare row. */
		strace_reset();
		nr = busy_run();
		strace_snapshot_family(&proc.profile, &snap);
		assert_int_equal(all_calls(), nr);
		assert_int_equal(find_entry(STRACE_SPARE_NR)->nr_calls, 0);
		strace_reset();
	}
}

/* A process can be found before it begins: it has no calls, and no spare row. */
TEST(before_a_process_begins)
{
	static struct process newborn;
	size_t nr_zeroed = offsetof(struct profile_process, not_zeroed);

	memset(&newborn.profile, 0, nr_zeroed);
	memset((char *)&newborn.profile + nr_zeroed, 0xa5, sizeof(newborn.profile) - nr_zeroed);
	strace_reset();
	strace_snapshot_family(&newborn.profile, &snap);
	assert_int_equal(all_calls(), 0);
	strace_reset_process(&newborn.profile);
	strace_snapshot_process(&newborn.profile, &snap);
	assert_int_equal(all_calls() + snap.before.nr_calls + snap.nr_children, 0);
}
