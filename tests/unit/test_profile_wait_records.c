// SPDX-License-Identifier: BSD-2-Clause
/* Tests which records waits are counted in, at given times. */
#include "waits_unit.h"

#define TEST(name) HOST_TEST_WITH(name, setup, NULL)

TEST(preempted)
{
	const struct wait_row *row;

	wait_and_run("not this", 2000, 0, 2700);
	row = only_row(NULL);
	assert_string_equal(row->name, "a CPU");
	assert_int_equal(row->asleep_cycles, 0);
	assert_int_equal(row->ready_cycles, 700);
	assert_int_equal(row->waker, 0);
	assert_int_equal(consumer.profile.waits.nr_preempted, 1);
}

/* A wait that began before a reset counts from the reset. Clocks of CPUs may differ a little. */
TEST(times_stay_in_order)
{
	const struct wait_row *row;

	host_now = 3000;
	profile_reset();
	wait_and_run("pipe", 2000, 5000, 5400);
	row = only_row(NULL);
	assert_int_equal(row->asleep_cycles, 2000);
	wait_and_run("pipe", 6000, 5900, 6100);
	wait_and_run("pipe", 7000, 7300, 7200);
	row = only_row(NULL);
	assert_int_equal(row->asleep_cycles, 2000 + 0 + 200);
	assert_int_equal(row->ready_cycles, 400 + 100 + 0);
	for (int i = 0; i < 2; i++)
		wait_and_run("not this", 9000, 0, 8900); /* the second one is like the last */
	assert_int_equal(consumer.profile.waits.nr_preempted, 2);
	assert_int_equal(consumer.profile.waits.ready_cycles, 400 + 100 + 0);
}

/* Sleeps of a thread are added up by what it slept for, whether one is like the last or not. */
TEST(sums_of_a_thread)
{
	static const char pipe[] = "pipe", futex[] = "futex";
	static const char *const names[] = { pipe, pipe, futex, futex, pipe, NULL, NULL, pipe };
	const struct profile_thread_waits *longest = &consumer.profile.waits.longest;

	for (u32 i = 0; i < ARRAY_SIZE(names); i++)
		wait_and_run(names[i], 2000, names[i] ? 2070 : 0, 2100);
	assert_int_equal(consumer.profile.waits.nr_waits, 8);
	assert_int_equal(consumer.profile.waits.nr_preempted, 2);
	assert_int_equal(consumer.profile.waits.ready_cycles, 6 * 30 + 2 * 100);
	assert_int_equal(longest->cycles, 600);
	assert_ptr_equal(longest->top[0].name, pipe);
	assert_int_equal(longest->top[0].nr, 4);
	assert_int_equal(longest->top[0].cycles, 400);
	assert_int_equal(longest->top[0].ready_cycles, 120);
	assert_ptr_equal(longest->top[1].name, futex);
	assert_int_equal(longest->top[1].cycles, 200);
}

TEST(an_interrupt_wakes)
{
	const struct wait_row *row;

	host_wait_name = "sleep";
	profile_switch_out(&consumer.profile, 2000);
	go_to(&producer, 4);
	host_irq_depth = 1;
	host_now = 2500;
	profile_wake(&consumer);
	host_irq_depth = 0;
	go_to(&consumer, 2);
	profile_switch_in(2600);
	row = only_row(NULL);
	assert_int_equal(row->waker, FN(4));
	assert_int_equal(row->waker_comm[0], 0);
}

TEST(waits_on_two_cpus_are_one_row)
{
	wait_and_run("pipe", 2000, 5000, 5400);
	host_cpu = 1;
	wait_and_run("pipe", 6000, 6500, 6600);
	assert_int_equal(only_row(NULL)->nr, 2);
}

static u32 nr_walks;

static void count_walk(void)
{
	nr_walks++;
}

/* A new thread of proc waits for its CPU in a function. Returns how many walks this takes. */
static u32 walks_of_new_thread(struct process *proc, unsigned int function)
{
	struct task thread = { .proc = proc };
	static u32 tid = 100;

	go_to(&thread, function);
	host_tid = tid++;
	profile_task_init(&thread);
	profile_switch_out(&thread.profile, host_now);
	host_now += 100;
	nr_walks = 0;
	host_on_walk = count_walk;
	profile_switch_in(host_now);
	host_on_walk = NULL;
	profile_task_exit(&thread);
	return nr_walks;
}

TEST(new_threads_are_compared_only)
{
	/* The first comparison finds where the user's registers are. */
	walks_of_new_thread(&consumer_proc, 2);
	walks_of_new_thread(&consumer_proc, 2);
	profile_reset();
	assert_int_equal(walks_of_new_thread(&consumer_proc, 2), 1);
	assert_int_equal(walks_of_new_thread(&consumer_proc, 2), 0);
	assert_int_equal(only_row(&consumer_proc)->nr, 2);
	assert_int_equal(walks_of_new_thread(&consumer_proc, 3), 1);

	/* Another program, or another name. */
	host_code_map++;
	assert_int_equal(walks_of_new_thread(&consumer_proc, 3), 1);
	host_code_map--;
	assert_int_equal(walks_of_new_thread(&consumer_proc, 3), 1);
	strcpy(consumer_proc.comm, "renamed");
	assert_int_equal(walks_of_new_thread(&consumer_proc, 3), 1);
	strcpy(consumer_proc.comm, "consumer");
}

/* The last thread of proc ends, and wakes the consumer, as its parent, in a function. */
static void end_process(struct process *proc, unsigned int function)
{
	struct task thread = { .proc = proc };
	static u32 tid = 200;

	profile_process_init(proc);
	go_to(&thread, function);
	host_tid = tid++;
	profile_task_init(&thread);
	profile_task_exit(&thread);
	profile_switch_out(&consumer.profile, host_now);
	host_now += 100;
	nr_walks = 0;
	host_on_walk = count_walk;
	profile_wake(&consumer);
	host_on_walk = NULL;
	go_to(&consumer, 2);
	profile_switch_in(host_now);
	profile_process_release(proc);
}

static u64 waker_of_row(u64 nr)
{
	for (u32 i = 0; i < wait_view.nr_rows; i++) {
		if (wait_view.rows[i].nr == nr)
			return wait_view.rows[i].waker;
	}
	fail();
	return 0;
}

/* A process that ends wakes its parent as the last one did, but not always. */
TEST(ends_of_processes)
{
	static struct process child = { .pid = 30, .comm = "child" };
	static struct process other = { .pid = 31, .comm = "other" };

	host_wait_name = "child";
	end_process(&child, 4);
	end_process(&child, 4);
	assert_int_equal(nr_walks, 0);
	assert_int_equal(only_row(&consumer_proc)->nr, 2);
	assert_int_equal(wait_view.rows[0].waker, FN(4));
	/* From another function. */
	end_process(&child, 5);
	assert_int_equal(nr_walks, 1);
	/* Another program, then a reset. */
	for (u32 i = 0; i < 4; i++)
		end_process(&other, 5);
	waits_pin();
	waits_make_view(&consumer_proc, wait_by_reason);
	waits_unpin();
	assert_int_equal(wait_view.nr_rows, 3);
	assert_int_equal(waker_of_row(2), FN(4));
	assert_int_equal(waker_of_row(1), FN(5));
	assert_int_equal(waker_of_row(4), FN(5));
	profile_reset();
	end_process(&other, 5);
	end_process(&other, 5);
	assert_int_equal(nr_walks, 0);
	assert_int_equal(only_row(&consumer_proc)->nr, 2);
	assert_memory_equal(wait_view.rows[0].waker_comm, "other", 6);
}

/* A thread that waits where it did the last time finds no record of before a reset or an exec. */
TEST(last_records)
{
	wait_and_run("pipe", 2000, 5000, 5400);
	wait_and_run("pipe", 6000, 6500, 6600);
	profile_reset();
	wait_and_run("pipe", 7000, 7500, 7600);
	wait_and_run("pipe", 8000, 8500, 8600);
	assert_int_equal(only_row(&consumer_proc)->nr, 2);

	strcpy(consumer_proc.comm, "renamed");
	wait_and_run("pipe", 9000, 9500, 9600);
	strcpy(consumer_proc.comm, "consumer");
	waits_pin();
	waits_make_view(&consumer_proc, wait_by_task);
	waits_unpin();
	assert_int_equal(wait_view.nr_rows, 2);
	assert_int_equal(wait_view.rows[0].nr + wait_view.rows[1].nr, 3);
}

static void preempt_producer(void)
{
	go_to(&producer, 5);
	profile_switch_out(&producer.profile, host_now);
	host_now += 100;
	profile_switch_in(host_now);
}

/* Another thread fills the log, which the worker empties. The first one's last record was there. */
TEST(last_record_in_a_full_log)
{
	preempt_producer();
	for (u32 i = 1; i < 3000; i++) {
		u64 now = host_now;

		host_wait_addr = i * 8;
		wait_and_run("futex", now, now + 10, now + 20);
	}
	stack_collect();
	preempt_producer();
	assert_int_equal(only_row(&producer_proc)->nr, 2);
}

/* A process has the name and code of one that has ended, and its place in memory. */
TEST(processes_have_records_of_their_own)
{
	static struct process proc = { .pid = 30, .comm = "shell" };

	profile_process_init(&proc);
	walks_of_new_thread(&proc, 2);
	walks_of_new_thread(&proc, 2);
	profile_reset();
	assert_int_equal(walks_of_new_thread(&proc, 2), 1);
	profile_process_exit(&proc);
	profile_process_release(&proc);
	proc.pid++;
	profile_process_init(&proc);
	assert_int_equal(walks_of_new_thread(&proc, 2), 0);
	assert_int_equal(only_row(&proc)->nr, 1);
	assert_int_equal(walks_of_new_thread(&proc, 2), 0);
	assert_int_equal(only_row(&proc)->nr, 2);
	profile_process_exit(&proc);
	profile_process_release(&proc);
}

TEST(reset_drops_waits_and_wakers)
{
	const struct wait_row *row;

	host_wait_name = "pipe";
	profile_switch_out(&consumer.profile, 2000);
	go_to(&producer, 3);
	host_now = 2500;
	profile_wake(&consumer);
	/* The waker was recorded before the reset, so it is dropped. */
	host_now = 2550;
	profile_reset();
	go_to(&consumer, 2);
	profile_switch_in(2600);
	row = only_row(NULL);
	assert_int_equal(row->waker, 0);
	assert_int_equal(row->asleep_cycles + row->ready_cycles, 50);
}

TEST(idle_does_not_wait)
{
	host_idle = true;
	wait_and_run("pipe", 2000, 0, 5400);
	host_idle = false;
	waits_pin();
	waits_make_view(NULL, wait_by_reason);
	waits_unpin();
	assert_int_equal(wait_view.nr, 0);
}

TEST(switched_off)
{
	assert_int_equal(host_file_write("profile/waits", "off"), 0);
	wait_and_run("pipe", 2000, 5000, 5400);
	assert_int_equal(consumer.profile.waits.nr_waits, 0);
	host_now = 9000;
	assert_int_equal(host_file_write("profile/waits", "on"), 0);
	/*
	 * The wait began while recording was off, so it counts from when recording was switched on.
	 */
	profile_switch_in(9500);
	assert_int_equal(only_row(NULL)->ready_cycles, 500);
	assert_int_equal(host_file_write("profile/waits", "maybe"), -OS_EINVAL);
	assert_non_null(strstr(host_file_read("profile/waits.json"),
			       "recording of waits was off for 0.000008 s"));
}

TEST(migrations)
{
	static const unsigned int cpus[] = { 1, 1, 0, 2, 2 };

	for (u32 i = 0; i < ARRAY_SIZE(cpus); i++) {
		host_cpu = cpus[i];
		wait_and_run("pipe", 2000, 5000, 5400);
	}
	/* The first run of a thread is not a migration. */
	assert_int_equal(consumer.profile.waits.nr_migrations, 2);
	assert_int_equal(consumer.profile.waits.nr_waits, 5);
}
