// SPDX-License-Identifier: BSD-2-Clause
/* Tests the tables and first lines of waits at given times. A cycle is a nanosecond. */
#include "waits_unit.h"

#define TEST(name) HOST_TEST_WITH(name, setup, NULL)

TEST(asleep_and_ready)
{
	const struct wait_row *row;

	wait_and_run("pipe", 2000, 5000, 5400);
	wait_and_run("pipe", 6000, 6500, 6600);
	row = only_row(NULL);
	assert_string_equal(row->name, "pipe");
	assert_int_equal(row->nr, 2);
	assert_int_equal(row->asleep_cycles, 3000 + 500);
	assert_int_equal(row->ready_cycles, 400 + 100);
	assert_int_equal(row->max_cycles, 3400);
	assert_int_equal(row->where, FN(2));
	assert_int_equal(row->waker, FN(3));
	assert_memory_equal(row->waker_comm, "producer", 9);
}

/* Wakers with the same name are one row, also those of another process. */
TEST(wakers_of_a_program_are_one_row)
{
	static struct process twin_proc = { .pid = 22, .comm = "producer" };
	struct task first = producer;
	char waker[64];

	wait_and_run("pipe", 2000, 5000, 5400);
	profile_process_init(&twin_proc);
	producer = (struct task){ .proc = &twin_proc };
	profile_task_init(&producer);
	wait_and_run("pipe", 6000, 6500, 6600);
	profile_task_exit(&producer);
	profile_process_exit(&twin_proc);
	profile_process_release(&twin_proc);
	producer = first;
	assert_int_equal(only_row(NULL)->nr, 2);
	report_wait_waker(only_row(NULL), waker, sizeof(waker));
	assert_string_equal(waker, "fn_3 (producer)");
}

static void check_times(const struct wait_row *row, u64 nr, u64 asleep, u64 ready, u64 max)
{
	assert_int_equal(row->nr, nr);
	assert_int_equal(row->asleep_cycles, asleep);
	assert_int_equal(row->ready_cycles, ready);
	assert_int_equal(row->max_cycles, max);
}

static void make_view(wait_key_fn *key_of, u32 nr_rows)
{
	waits_pin();
	waits_make_view(NULL, key_of);
	waits_unpin();
	assert_int_equal(wait_view.nr_rows, nr_rows);
}

/* Waits of several kinds, in two system calls and outside. */
TEST(by_call)
{
	host_syscall = 202;
	wait_and_run("futex", 2000, 5000, 5400);
	wait_and_run("futex", 6000, 0, 6100);
	host_syscall = 0;
	wait_and_run("pipe", 7000, 7200, 7300);
	host_syscall = OS_NO_SYSCALL;
	wait_and_run("pipe", 8000, 0, 8010);
	make_view(wait_by_call, 3);
	assert_int_equal(wait_view.rows[0].call, 202);
	check_times(&wait_view.rows[0], 2, 3000, 400 + 100, 3400);
	assert_int_equal(wait_view.rows[1].call, 0);
	check_times(&wait_view.rows[1], 1, 200, 100, 300);
	assert_string_equal(wait_view.rows[2].name, "[no system call]");
	check_times(&wait_view.rows[2], 1, 0, 10, 10);
	assert_non_null(strstr(host_file_read("profile/waits_calls.json"), "\"sys_202\""));
}

TEST(by_task)
{
	wait_and_run("pipe", 2000, 5000, 5400);
	wait_and_run("futex", 6000, 0, 6100);
	go_to(&producer, 1);
	profile_switch_in(6150);
	make_view(wait_by_task, 2);
	check_times(&wait_view.rows[0], 1, 0, 5150, 5150);
	assert_memory_equal(wait_view.rows[0].comm, "producer", 9);
	check_times(&wait_view.rows[1], 2, 3000, 500, 3400);
	assert_non_null(strstr(host_file_read("profile/waits_tasks.json"),
			       "\"name\":\"consumer\",\"pid\":21}"));
}

/* Waits on a wait queue, and preemptions, are not waits for a lock. */
TEST(by_lock)
{
	wait_and_run("pipe", 2000, 5000, 5400);
	make_view(wait_by_lock, 0);
	in_lock = true;
	wait_and_run("mm->lock", 6000, 6500, 6600);
	wait_and_run("mm->lock", 7000, 0, 7100);
	in_lock = false;
	host_wait_addr = 0x4c71e0;
	wait_and_run("futex", 8000, 8050, 8060);
	make_view(wait_by_lock, 2);
	assert_string_equal(wait_view.rows[0].name, "mm->lock");
	check_times(&wait_view.rows[0], 1, 500, 100, 600);
	assert_int_equal(wait_view.rows[0].process, 0);
	assert_string_equal(wait_view.rows[1].name, "futex");
	assert_int_equal(wait_view.rows[1].process, stack_process_number(&consumer_proc));
	check_times(&wait_view.rows[1], 1, 50, 10, 60);
	assert_non_null(strstr(host_file_read("profile/waits_locks.json"),
			       "\"lock\":\"futex 0x4c71e0 (pid 21)\",\"releaser\":\""));
}

/* Spinning is CPU time. It has its own view, by lock and function, and is in no other view. */
TEST(spinlocks)
{
	wait_and_run("pipe", 2000, 5000, 5400);
	go_to(&consumer, 2);
	for (host_now = 6000; host_now <= 8000; host_now += 1000)
		profile_spun("&mm->lock", host_now - 40);
	host_irq_depth = 1;
	go_to(&producer, 3);
	profile_spun("&mm->lock", host_now - 7);
	host_irq_depth = 0;
	make_view(wait_by_spinlock, 2);
	check_times(&wait_view.rows[0], 3, 120, 0, 40);
	assert_int_equal(wait_view.rows[0].where, FN(2));
	check_times(&wait_view.rows[1], 1, 7, 0, 7);
	assert_int_equal(wait_view.rows[1].where, FN(3));
	make_view(wait_by_reason, 1);
	make_view(wait_by_lock, 0);
	assert_non_null(strstr(host_file_read("profile/spinlocks.json"),
			       "{\"spun_ns\":120,\"times\":3,\"longest_ns\":40,"
			       "\"spinlock\":\"mm->lock\",\"function\":\"fn_2\"}\n"));
}

/* A thread sleeps, or waits for a CPU, while the table is made. */
TEST(in_flight)
{
	const struct wait_row *row;

	wait_and_run("pipe", 2000, 5000, 5400);
	host_wait_name = "mm->lock";
	profile_switch_out(&consumer.profile, 6000);
	host_sleeper = &consumer;
	host_sleeper_asleep = true;
	host_sleeper_pc = FN(2) + 8;
	host_now = 16000;
	make_view(wait_by_reason, 2);
	assert_int_equal(wait_view.nr, 2);
	assert_int_equal(wait_view.nr_in_flight, 1);
	row = &wait_view.rows[0];
	assert_string_equal(row->name, "mm->lock");
	assert_int_equal(row->where, FN(2));
	assert_int_equal(row->nr_in_flight, 1);
	check_times(row, 1, 10000, 0, 10000);
	check_times(&wait_view.rows[1], 1, 3000, 400, 3400);
	assert_non_null(strstr(host_file_read("profile/waits.json"),
			       "ready without a CPU 0.000 s; 1 of them has not ended\"}"));
	assert_non_null(strstr(host_file_read("profile/waits.json"),
			       "\"in_flight\":1,\"what\":\"mm->lock\""));
	assert_non_null(strstr(host_file_read("profile/waits.json"), "\"waker\":\"(not yet)\""));

	/* Woken, but not yet on a CPU; then a reset. */
	go_to(&producer, 3);
	profile_wake(&consumer);
	host_sleeper_asleep = false;
	host_now = 16100;
	make_view(wait_by_reason, 2);
	check_times(&wait_view.rows[0], 1, 10000, 100, 10100);
	assert_int_equal(wait_view.rows[0].waker, FN(3));
	host_now = 16300;
	profile_reset();
	host_now = 16500;
	check_times(only_row(&consumer_proc), 1, 0, 200, 200);
	waits_pin();
	waits_make_view(&producer_proc, wait_by_reason);
	waits_unpin();
	assert_int_equal(wait_view.nr, 0);

	/* The wait ends and counts once, with all of its time since the reset. */
	host_sleeper = NULL;
	go_to(&consumer, 2);
	profile_switch_in(16600);
	row = only_row(NULL);
	check_times(row, 1, 0, 300, 300);
	assert_int_equal(row->nr_in_flight, 0);
	/* Preempted. */
	profile_switch_out(&consumer.profile, 17000);
	host_sleeper = &consumer;
	host_now = 17600;
	make_view(wait_by_reason, 2);
	assert_string_equal(wait_view.rows[0].name, "a CPU");
	check_times(&wait_view.rows[0], 1, 0, 600, 600);
	assert_int_equal(host_file_write("profile/waits", "off"), 0);
	make_view(wait_by_reason, 1);
	assert_int_equal(host_file_write("profile/waits", "on"), 0);
}

/* Returns the total row of a table. */
static const char *total_of(const char *title)
{
	const char *line = strstr(host_log, title);

	for (int i = 0; i < 2; i++) {
		assert_non_null(line);
		line = strstr(line, "\n-----") + 1;
	}
	return strchr(line, '\n') + 1;
}

/* Time passes while the tables of a process are printed, but their totals are of one moment. */
TEST(tables_have_one_total)
{
	const char *total;
	size_t len;

	wait_and_run("pipe", 2000, 5000, 5400);
	host_wait_name = "mm->lock";
	profile_switch_out(&consumer.profile, 6000);
	host_sleeper = &consumer;
	host_sleeper_asleep = true;
	host_sleeper_pc = FN(2) + 8;
	host_now = 16000;
	host_step = 1000;
	report_print_process_waits(&consumer_proc, true);
	host_step = 0;
	host_sleeper = NULL;
	total = total_of("Kernel Waits (all)");
	len = strcspn(total, "\n") + 1;
	assert_true(len > 30);
	assert_memory_equal(total, total_of("Kernel Waits by system call"), len);
	assert_memory_equal(total, total_of("Kernel Waits by task"), len);
}

TEST(scope_is_the_process)
{
	wait_and_run("pipe", 2000, 5000, 5400);
	only_row(&consumer_proc);
	waits_pin();
	waits_make_view(&producer_proc, wait_by_reason);
	waits_unpin();
	assert_int_equal(wait_view.nr_rows, 0);
}

static u32 nr_looks;

static void reset_at_last_look(void)
{
	if (--nr_looks)
		host_meanwhile = reset_at_last_look;
	else
		profile_reset();
}

/* Another CPU resets while a wait that began before is about to be counted. */
TEST(a_reset_meanwhile)
{
	nr_looks = os_key_is_set(&profile_delays_key) ? 2 : 1; /* delay_wait() looks first */
	host_meanwhile = reset_at_last_look;
	wait_and_run("pipe", 2000, 5000, 5400);
	assert_int_equal(nr_looks, 0);
	assert_int_equal(only_row(NULL)->asleep_cycles, 0);
	assert_int_equal(only_row(NULL)->ready_cycles, 0);
}

/* The summary has times from the scheduler, from the kernel's accounts, and from the records. */
TEST(summary)
{
	consumer.profile.waits.created_cycles = 1000;
	wait_and_run("pipe", 1002000, 5002000, 5402000);
	host_cpu_times = (struct profile_cpu_times){ 3000000, 2000000, 400000, 50000, 30000 };
	/* Off its CPU for 4.4 of 10 ms. */
	host_off = 4400000 + 1000;
	host_now = 10001000;
	profile_task_exit(&consumer);
	host_log_clear();
	profile_process_exit(&consumer_proc);
	assert_non_null(strstr(host_log, "CPU time: 0.005480 s, 1 thread = user code 0.003000 + "
					 "system calls 0.002000 + page faults 0.000400 + other "
					 "exceptions 0.000050 + interrupts 0.000030\n"));
	assert_non_null(
		strstr(host_log, "waited: 0.004400 s = pipe 0.004000 + for a CPU 0.000400\n"));
	assert_non_null(strstr(host_log, "events: 7 page faults (5 anonymous, 2 file), 0 "
					 "context switches\nmemory: peak 3072 KiB = stacks "
					 "1536 + heap 1024 + files 512\n"));
	/* Parts that are zero are left out. A process that has not waited has no such line. */
	setup(NULL);
	host_now = 2000000;
	consumer.profile.waits.created_cycles = 1000;
	host_off = 1000 + 1;
	host_cpu_times = (struct profile_cpu_times){ .user = 1998000 };
	host_peak_bytes[0] = 0;
	host_peak_bytes[1] = 209715200 - 4096;
	profile_task_exit(&consumer);
	host_log_clear();
	profile_process_exit(&consumer_proc);
	assert_non_null(strstr(host_log, "CPU time: 0.001998 s, 1 thread = user code 0.001998\n"
					 "events: 7 page faults (5 anonymous, 2 file), 0 "
					 "context switches\n"
					 "memory: peak 200.5 MiB = stacks 200.0 + files 0.5\n"));
}

/* Four kinds of signals have names, and the parts of both lists add up to the sum. */
TEST(signals)
{
	host_signals.kinds[10 - 1] = 30;
	host_signals.kinds[17 - 1] = 5;
	host_signals.kinds[1 - 1] = 2;
	host_signals.kinds[2 - 1] = 1;
	host_signals.kinds[32 - 1] = 3;
	host_signals.fates[0] = 40;
	host_signals.fates[1] = 1;
	profile_task_exit(&consumer);
	host_log_clear();
	profile_process_exit(&consumer_proc);
	host_signals = (struct os_signal_counts){ 0 };
	assert_non_null(strstr(host_log, ", 41 signals (30 SIGUSR1, 5 SIGCHLD, 3 real-time, "
					 "2 SIGHUP, 1 others) = handled 40 + ignored 1\n"));
}

/* The report and the table have the same owners. Only the table has those without time. */
TEST(accounts_of_the_machine)
{
	const char *rows;

	host_machine_times = (struct profile_machine_times){
		.nr_cpus = 2,
		.threads = { .user = 3000000, .calls = 2000000, .irqs = 7000 },
		.idle = 1000400,
	};
	host_log_clear();
	profile_report("test");
	assert_non_null(strstr(host_log, "time of 2 CPUs: 0.006007 s = user code 0.003000 + "
					 "system calls 0.002000 + interrupts 0.000007 + "
					 "idle 0.001000\n"));
	rows = host_file_read("profile/accounts.json");
	assert_non_null(strstr(rows, "{\"table\":\"Time of 2 CPUs\"}\n"
				     "{\"owner\":\"user code\",\"cycles\":3000000}\n"));
	assert_non_null(strstr(rows, "{\"owner\":\"NMIs\",\"cycles\":0}\n"));
	assert_non_null(strstr(rows, "{\"owner\":\"idle\",\"cycles\":1000400}\n"));
}

/* Makes the report of a process that slept from 1 ms after its start until `woken`. */
static void end_after_sleep(const char *name, u64 woken, u64 end)
{
	consumer.profile.waits.created_cycles = 1000;
	wait_and_run(name, 1001000, woken, woken);
	host_off = woken - 1001000 + 1000;
	host_now = end;
	host_cpu_times = (struct profile_cpu_times){ .user = end - host_off };
	profile_task_exit(&consumer);
	host_log_clear();
	profile_process_exit(&consumer_proc);
}

/* A process that spent most of its life waiting for children has a summary of one line. */
TEST(a_parent_has_one_line)
{
	end_after_sleep("child", 11001000, 12001000);
	assert_non_null(strstr(host_log, "CPU time: 0.002000 s, 1 thread; waited for children: "
					 "0.010000 of 0.012000 s\n\n"));
	assert_null(strstr(host_log, "events:"));
	setup(NULL);
	end_after_sleep("child", 11001000, 22001000);
	assert_non_null(strstr(host_log, "waited: 0.010000 s = child 0.010000\n"));
	setup(NULL);
	end_after_sleep("other", 11001000, 12001000);
	assert_non_null(strstr(host_log, "waited: 0.010000 s = other 0.010000"));
}

/* One futex address is in a mapped file, the other is not. */
TEST(addresses_have_a_file)
{
	host_wait_addr = 0x4c71e0;
	wait_and_run("futex", 2000, 5000, 5400);
	host_wait_addr = 0x7f0000001000;
	wait_and_run("futex", 6000, 7000, 7100);
	profile_task_exit(&consumer);
	host_log_clear();
	profile_process_exit(&consumer_proc);
	assert_non_null(strstr(host_log, "  futex 0x4c71e0 (program+0xc71e0)  "));
	assert_non_null(strstr(host_log, "  futex 0x7f0000001000 (anonymous area)  "));
	/* In the table of all processes the address space is unknown, so no file is shown. */
	assert_non_null(strstr(host_file_read("profile/waits.json"), "\"futex 0x4c71e0\""));
}
