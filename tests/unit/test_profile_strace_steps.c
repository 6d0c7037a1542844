// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests reports, resets and switches, which work in steps and release the lock in between. For each
 * n, an event happens when the lock is taken for the n-th time: a thread exits or starts, or a
 * process calls execve, is reset, is waited for or is released. Each call must count once.
 */
#include "strace_unit.h"

#define NR_THREADS   8
#define NR_NUMBERS   40 /* system calls: more rows than one step reads */
#define NR_PROCESSES 3

static struct process procs[NR_PROCESSES];
static struct task tasks[NR_PROCESSES][NR_THREADS], young_task;
static struct process young;
static struct strace_system_snapshot system_snap;
static int countdown;
static void (*event)(void);
static bool has_exited, has_young_task, has_young, was_waited_for, is_gone;

static void on_lock(os_lock_t *lock)
{
	if (lock == &lists_lock && countdown-- == 0)
		event();
}

/* Each thread makes each call once, and the first one fails. */
static void start_all(void)
{
	for (int i = 0; i < NR_PROCESSES; i++) {
		start_process(&procs[i], 10 + i);
		for (int k = 0; k < NR_THREADS; k++) {
			start_task(&tasks[i][k], &procs[i]);
			host_current = &tasks[i][k];
			for (u64 nr = 0; nr < NR_NUMBERS; nr++)
				host_call(nr, 1, nr ? 0 : -ENOENT);
		}
	}
	host_current = &task;
	has_exited = has_young_task = has_young = was_waited_for = is_gone = false;
}

static void end_all(void)
{
	if (has_young_task)
		exit_task(&young_task);
	if (has_young)
		profile_process_release(&young);
	for (int i = 0; i < NR_PROCESSES; i++) {
		if (i == 1 && is_gone)
			continue;
		for (int k = 0; k < NR_THREADS; k++) {
			if (i != 1 || (!was_waited_for && (k != 1 || !has_exited)))
				exit_task(&tasks[i][k]);
		}
		profile_process_release(&procs[i]);
	}
	strace_reset();
}

static u64 all_errors(void)
{
	u64 nr = 0;

	for (u32 i = 0; i < snap.nr_errors; i++)
		nr += snap.errors[i].nr;
	return nr;
}

static void exit_one(void)
{
	has_exited = true;
	exit_task(&tasks[1][1]);
}

/* Ends all threads of a process, and releases it. */
static void release_one(void)
{
	is_gone = true;
	for (int k = 0; k < NR_THREADS; k++)
		exit_task(&tasks[1][k]);
	profile_process_release(&procs[1]);
}

/* Ends all threads of a process, and lets another one wait for it. It is released later. */
static void wait_for_one(struct task *waiter)
{
	was_waited_for = true;
	for (int k = 0; k < NR_THREADS; k++)
		exit_task(&tasks[1][k]);
	procs[1].profile.has_ended = true;
	host_current = waiter;
	profile_process_waited(&procs[1]);
	host_current = &task;
}

static void wait_older(void)
{
	wait_for_one(&tasks[0][0]);
}

static void wait_younger(void)
{
	wait_for_one(&tasks[2][0]);
}

/* The waiter is reset, which has no calls of its own. */
static void wait_and_reset(void)
{
	wait_for_one(&task);
	strace_reset_process(&proc.profile);
}

static void wait_and_release(void)
{
	wait_younger();
	is_gone = true;
	profile_process_release(&procs[1]);
}

/* A thread calls execve after the others have exited. */
static void exec_one(void)
{
	for (int k = 0; k < NR_THREADS; k++) {
		if (k != 1)
			exit_task(&tasks[1][k]);
	}
	host_current = &tasks[1][1];
	profile_process_exec(&procs[1]);
	host_current = &task;
	for (int k = 0; k < NR_THREADS; k++) {
		if (k != 1)
			start_task(&tasks[1][k], &procs[1]);
	}
}

static void make_thread(void)
{
	has_young_task = true;
	start_task(&young_task, &procs[1]);
}

/* The new thread goes on with the table of the one that has exited. */
static void replace_one(void)
{
	exit_one();
	make_thread();
}

static void replace_and_exit(void)
{
	replace_one();
	exit_task(&young_task);
	has_young_task = false;
}

static void make_process(void)
{
	has_young = true;
	start_process(&young, 99);
	has_young_task = true;
	start_task(&young_task, &young);
}

static void (*const events[])(void) = {
	exit_one,     release_one, exec_one,	 make_thread,	 replace_one,	   replace_and_exit,
	make_process, wait_older,  wait_younger, wait_and_reset, wait_and_release,
};

/* Runs fn, with an event when it takes the lock after `at` times. False: it took it less often. */
static bool at_lock(void (*what)(void), int at, void (*fn)(void), void (*check)(void))
{
	bool happened;

	start_all();
	event = what;
	countdown = at;
	host_on_lock = on_lock;
	fn();
	host_on_lock = NULL;
	happened = countdown < 0;
	check();
	end_all();
	return happened;
}

/* Does so with each event at each time. */
static void at_each_lock(void (*fn)(void), void (*check)(void))
{
	for (u32 i = 0; i < ARRAY_SIZE(events); i++) {
		int at = 0;

		while (at_lock(events[i], at, fn, check))
			at++;
		assert_true(at > 2); /* fn must take the lock several times */
	}
}

static void look_at_system(void)
{
	strace_snapshot_system(&snap, &system_snap);
}

static void expect_all_once(void)
{
	u64 nr = 0;

	assert_int_equal(all_calls(), NR_PROCESSES * NR_THREADS * NR_NUMBERS);
	assert_int_equal(all_errors(), NR_PROCESSES * NR_THREADS);
	for (u32 i = 0; i < system_snap.nr_entries; i++)
		nr += system_snap.entries[i].nr_calls;
	assert_int_equal(nr, all_calls());
	/* The next reading, without an event, is the same. */
	look_at_system();
	assert_int_equal(all_calls(), NR_PROCESSES * NR_THREADS * NR_NUMBERS);
}

#define TEST(name) HOST_TEST_WITH(name, setup, teardown)

TEST(system)
{
	at_each_lock(look_at_system, expect_all_once);
}

static bool ends_process(void (*fn)(void))
{
	return fn == release_one || fn == wait_older || fn == wait_younger ||
	       fn == wait_and_reset || fn == wait_and_release;
}

static void look_at_process(void)
{
	strace_snapshot_process(&procs[1].profile, &snap);
}

/* The report is from its beginning or from after the event. */
static void expect_process(void)
{
	bool is_after = event == exec_one && !all_calls();

	assert_int_equal(all_calls(), is_after ? 0 : NR_THREADS * NR_NUMBERS);
	assert_int_equal(all_errors(), is_after ? 0 : NR_THREADS);
}

TEST(process)
{
	/* Callers keep the process from being waited for and released. */
	for (u32 i = 0; i < ARRAY_SIZE(events); i++) {
		for (int at = 0; at < 12 && !ends_process(events[i]); at++)
			at_lock(events[i], at, look_at_process, expect_process);
	}
}

static u64 nr_seen;

static void look_at_each(void)
{
	u64 serial = 0;

	nr_seen = 0;
	while (strace_snapshot_next(&serial, &snap)) {
		nr_seen++;
		if (snap.pid == 10 || snap.pid == 12)
			assert_int_equal(all_calls(), NR_THREADS * NR_NUMBERS);
		if (snap.pid == 11 && event != exec_one)
			assert_int_equal(all_calls(), NR_THREADS * NR_NUMBERS);
	}
}

static void expect_each(void)
{
	assert_true(nr_seen == 1 + NR_PROCESSES ||
		    ((is_gone || was_waited_for) && nr_seen == NR_PROCESSES) ||
		    (has_young && nr_seen == 2 + NR_PROCESSES));
}

TEST(each)
{
	at_each_lock(look_at_each, expect_each);
}

static void reset(void)
{
	strace_reset();
}

static void expect_nothing(void)
{
	look_at_system();
	assert_int_equal(all_calls(), 0);
	for (u32 i = 2; i < system_snap.nr_entries; i++)
		assert_int_equal(system_snap.entries[i].nr_calls, 0);
}

/* Old calls of threads and processes that end before the reset reaches them do not count. */
TEST(reset)
{
	at_each_lock(reset, expect_nothing);
}

/* Switches counting off, and lets 1000 ns pass before anything else happens. */
static void switch_off(void)
{
	strace_switch(false);
	host_now += 1000;
}

static void expect_ended_at_switch(void)
{
	look_at_system();
	for (u32 i = 0; i < snap.nr_entries; i++)
		assert_true(snap.entries[i].ns <= 1000);
	strace_switch(true);
}

TEST(switch)
{
	at_each_lock(switch_off, expect_ended_at_switch);
}

static void reset_all(void)
{
	strace_reset();
}

static void reset_one(void)
{
	strace_reset_process(&procs[1].profile);
}

/* A reset during a reading: the report has all calls from before the reset, or none. */
TEST(reset_while_reading)
{
	for (int at = 0; at < 40; at++) {
		start_all();
		event = reset_all;
		countdown = at;
		host_on_lock = on_lock;
		look_at_system();
		host_on_lock = NULL;
		assert_true(!all_calls() || countdown >= 0);
		event = reset_one;
		countdown = at;
		host_on_lock = on_lock;
		look_at_process();
		host_on_lock = NULL;
		assert_true(!all_calls() || countdown >= 0);
		end_all();
	}
}
