// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests the profile points of each process: threads that exit, execve, resets, and failed
 * allocations.
 */

#include "unit.h"

DEFINE_PROFILE_POINT(work)
DEFINE_PROFILE_POINT(other)
DEFINE_PROFILE_POINT_SLEEPS(waits)

#define NR_THREADS 3

static struct process one, two;
static struct task threads[NR_THREADS], stranger, idle;
static struct point_snapshot snap;

static void run(struct task *task)
{
	host_current = task;
	profile_task_runs(&task->profile);
}

static void begin_task(struct task *task, struct process *proc)
{
	task->proc = proc;
	profile_task_init(task);
}

static int setup(void **state)
{
	static bool started;

	host_fail_alloc = 0;
	host_cpu = 0;
	host_now = 1000;
	host_current = &idle;
	if (!started)
		points_init(true);
	started = true;
	points_switch("*", true);
	points_reset();
	profile_process_init(&one);
	profile_process_init(&two);
	for (u32 i = 0; i < NR_THREADS; i++)
		begin_task(&threads[i], &one);
	begin_task(&stranger, &two);
	run(&idle);
	return 0;
}

static int teardown(void **state)
{
	for (u32 i = 0; i < NR_THREADS; i++)
		profile_task_exit(&threads[i]);
	profile_task_exit(&stranger);
	profile_process_release(&one);
	profile_process_release(&two);
	return 0;
}

static void work(u64 cycles)
{
	PROFILE_SCOPE(work);
	host_now += cycles;
}

static void expect_in_snapshot(const char *name, u64 nr, u64 ns)
{
	for (u32 i = 0; i < snap.nr_entries; i++) {
		if (strcmp(snap.entries[i].name, name))
			continue;
		assert_int_equal(snap.entries[i].nr, nr);
		assert_int_equal(snap.entries[i].ns, ns);
		return;
	}
	assert_int_equal(nr, 0);
}

static void expect_of(struct process *proc, const char *name, u64 nr, u64 ns)
{
	points_snapshot_process(&snap, &proc->profile);
	assert_true(snap.of_process);
	expect_in_snapshot(name, nr, ns);
}

static void expect_of_all(const char *name, u64 nr, u64 ns)
{
	points_snapshot(&snap);
	assert_false(snap.of_process);
	expect_in_snapshot(name, nr, ns);
}

#define TEST(name) HOST_TEST_WITH(name, setup, teardown)

TEST(each_process_has_its_own)
{
	run(&threads[0]);
	work(10);
	work(5); /* a new minimum; the next time is neither a minimum nor a maximum */
	work(7);
	run(&idle);
	work(100);
	host_cpu = 1;
	run(&stranger);
	work(40);
	host_cpu = 0;
	run(&threads[1]);
	work(1);
	expect_of(&one, "work", 4, 23);
	expect_of(&two, "work", 1, 40);
	expect_of(&two, "other", 0, 0);
	expect_of_all("work", 6, 163);
}

/* A pair counts for the thread that runs its end, on any CPU. */
TEST(pair_over_a_switch)
{
	run(&threads[0]);
	{
		PROFILE_SCOPE(waits);

		host_now += 3;
		run(&stranger);
		work(4);
		host_cpu = 2;
		run(&threads[0]);
	}
	expect_of(&one, "waits", 1, 7);
	expect_of(&two, "waits", 0, 0);
	expect_of(&two, "work", 1, 4);
}

TEST(threads_that_exit)
{
	for (u32 i = 0; i < NR_THREADS; i++) {
		run(&threads[i]);
		work(10 + i);
		profile_task_exit(&threads[i]);
		work(1000); /* after its counts were added to the process */
	}
	expect_of(&one, "work", 3, 33);
	expect_of_all("work", 6, 3033);
	profile_process_release(&one);
	assert_null(one.profile.points.sums);
}

TEST(new_threads_go_on_with_a_table)
{
	int nr_allocated = host_nr_allocated;

	for (u32 i = 0; i < 3; i++) {
		run(&threads[0]);
		work(10);
		profile_task_exit(&threads[0]);
		begin_task(&threads[0], &one);
		assert_int_equal(host_nr_allocated, nr_allocated);
		expect_of(&one, "work", 1 + i, 10 + 10 * i);
	}
	profile_process_exec(&one);
	run(&threads[0]);
	work(7);
	expect_of(&one, "work", 1, 7);
}

/* The first thread's table is in the process. It is added to another one, and then used again. */
TEST(table_in_the_process)
{
	int nr_allocated = host_nr_allocated;

	assert_ptr_equal(one.profile.points.sums, NULL);
	for (u32 i = NR_THREADS; i-- > 0;) {
		run(&threads[i]);
		work(10 + i);
		profile_task_exit(&threads[i]);
	}
	assert_false(one.profile.points.uses_own);
	assert_int_equal(host_nr_allocated, nr_allocated - 1); /* two tables are one now */
	expect_of(&one, "work", 3, 33);
	for (u32 i = 0; i < NR_THREADS; i++)
		begin_task(&threads[i], &one);
	assert_true(one.profile.points.uses_own);
	assert_int_equal(host_nr_allocated, nr_allocated);
	for (u32 i = 0; i < NR_THREADS; i++) {
		run(&threads[i]);
		work(1);
	}
	expect_of(&one, "work", 6, 36);
}

/* Frees a thread that was never started, while another thread runs. */
TEST(thread_that_never_ran)
{
	run(&threads[0]);
	profile_task_exit(&threads[1]);
	work(10);
	expect_of(&one, "work", 1, 10);
}

TEST(execve)
{
	run(&threads[0]);
	work(10);
	profile_task_exit(&threads[1]);
	run(&threads[2]);
	work(20);
	profile_task_exit(&threads[2]);
	run(&threads[0]);
	host_now = 5000;
	profile_process_exec(&one);
	expect_of(&one, "work", 0, 0);
	work(3);
	expect_of(&one, "work", 1, 3);
	assert_int_equal(snap.since, POINTS_SINCE_EXEC);
	assert_int_equal(snap.since_ns, 3);
	expect_of_all("work", 3, 33);
}

TEST(reset)
{
	run(&threads[0]);
	work(10);
	profile_task_exit(&threads[0]);
	run(&threads[1]);
	{
		PROFILE_SCOPE(work);

		host_now += 500;
		points_reset();
		host_now += 8;
	}
	expect_of(&one, "work", 1, 8);
	assert_int_equal(snap.since, POINTS_SINCE_RESET);
	assert_int_equal(snap.since_ns, 8);
	expect_of(&two, "work", 0, 0);
}

static int countdown;
static void (*event)(void);

static os_lock_t *off_lock;

static void learn_off_lock(os_lock_t *lock)
{
	off_lock = lock;
}

static void on_lock(os_lock_t *lock)
{
	/* It is taken with another lock held, so nothing happens there. */
	if (lock == off_lock)
		return;
	if (countdown-- == 0)
		event();
}

static void exit_last(void)
{
	profile_task_exit(&threads[0]);
}

static void exit_first(void)
{
	profile_task_exit(&threads[NR_THREADS - 1]);
}

static void replace_last(void)
{
	exit_last();
	begin_task(&threads[0], &one);
}

static void replace_first(void)
{
	exit_first();
	begin_task(&threads[NR_THREADS - 1], &one);
}

/*
 * Reports and resets release the lock between steps. A thread exits at each of these points, or
 * exits and a new one goes on with its table.
 */
TEST(exit_during_snapshot_or_reset)
{
	static void (*const events[])(void) = { exit_first, exit_last, replace_first,
						replace_last };

	host_on_lock = learn_off_lock;
	off_time_total_ns(&points_off_time);
	host_on_lock = NULL;
	for (u32 i = 0; i < ARRAY_SIZE(events); i++) {
		for (int at = 0; at < 20; at++) {
			for (u32 k = 0; k < NR_THREADS; k++) {
				run(&threads[k]);
				work(10);
			}
			run(&idle);
			event = events[i];
			countdown = at;
			host_on_lock = on_lock;
			expect_of(&one, "work", NR_THREADS, NR_THREADS * 10ull);
			host_on_lock = NULL;
			expect_of(&one, "work", NR_THREADS, NR_THREADS * 10ull);
			teardown(state);
			setup(state);
			for (u32 k = 0; k < NR_THREADS; k++) {
				run(&threads[k]);
				work(10);
			}
			run(&idle);
			countdown = at;
			host_on_lock = on_lock;
			points_reset();
			host_on_lock = NULL;
			expect_of(&one, "work", 0, 0);
			expect_of(&two, "work", 0, 0);
			teardown(state);
			setup(state);
		}
	}
}

TEST(no_memory)
{
	struct task lost = { .proc = &two };

	host_fail_alloc = 1;
	profile_task_init(&lost);
	host_fail_alloc = 0;
	run(&lost);
	work(10);
	expect_of(&two, "work", 0, 0);
	assert_int_equal(snap.nr_threads_lost, 1);
	expect_of_all("work", 1, 10);
	profile_task_exit(&lost);
	expect_of(&one, "work", 0, 0);
	assert_int_equal(snap.nr_threads_lost, 0);
}

/*
 * While all points are off, CPUs do not track their threads; they start again when a point is
 * switched on.
 */
TEST(switched_off_and_on)
{
	points_switch("*", false);
	assert_false(os_key_is_set(&profile_points_key));
	run(&threads[0]);
	work(5);
	points_switch("work", true);
	assert_true(os_key_is_set(&profile_points_key));
	work(6);
	expect_of(&one, "work", 1, 6);
	points_switch("other", true);
	points_switch("work", false);
	assert_true(os_key_is_set(&profile_points_key));
}

static void expect_incomplete(const struct process *proc, const char *names)
{
	char found[64] = "";

	if (proc)
		points_snapshot_process(&snap, &proc->profile);
	else
		points_snapshot(&snap);
	for (u32 i = 0; i < snap.nr_incomplete; i++) {
		strcat(found, snap.incomplete[i]);
		strcat(found, " ");
	}
	assert_true(snap.nr_incomplete <= 3);
	assert_string_equal(found, names);
}

/*
 * Lists the points that are on and have no complete pair on any CPU. A point that another process
 * has run is complete.
 */
TEST(incomplete)
{
	PROFILE_POINT_TIME(other)

	expect_incomplete(NULL, "work other waits "); /* in the order of GCC's -O0 */
	run(&stranger);
	work(1);
	profile_point_start(other);
	points_switch("waits", false);
	expect_incomplete(NULL, "other ");
	expect_incomplete(&one, "other ");
	profile_point_leave(other);
	expect_incomplete(NULL, "");
	points_reset();
	expect_incomplete(&two, "work other ");
}
