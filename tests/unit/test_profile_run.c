// SPDX-License-Identifier: BSD-2-Clause
/* Tests the report of a run: when it replaces those of the processes, and its table by program. */
#include "unit.h"

#include "../../kernel/profile/strace/strace.h"

#define NR_NAMES 256

static struct process procs[NR_NAMES + 8];
static struct task tasks[NR_NAMES + 8];
static unsigned int nr_procs;

/* Starts a process with one thread, as the current one. Returns its number. */
static unsigned int begin(const char *name)
{
	unsigned int i = nr_procs++;

	procs[i] = (struct process){ .pid = i + 1 };
	snprintf(procs[i].comm, sizeof(procs[i].comm), "%s", name);
	tasks[i] = (struct task){ .proc = &procs[i] };
	profile_process_init(&procs[i]);
	profile_task_init(&tasks[i]);
	host_current = &tasks[i];
	profile_task_runs(&tasks[i].profile);
	return i;
}

/* Ends it. Its thread was on a CPU for 3 of 5 us. */
static void end(unsigned int i)
{
	struct profile_task *pt = &tasks[i].profile;

	host_current = &tasks[i];
	pt->waits.created_cycles = host_now - 5000;
	host_off = pt->waits.created_cycles + 2000;
	host_cpu_times = (struct profile_cpu_times){ .user = 3000 };
	profile_task_exit(&tasks[i]);
	profile_process_exit(&procs[i]);
}

static int setup(void **state)
{
	nr_procs = 0;
	host_now = 1000000;
	host_irq_depth = 0;
	assert_int_equal(host_set_param("profile.on_exit", "run"), 0);
	profile_reset();
	host_log_clear();
	return 0;
}

static void release_all(void)
{
	for (unsigned int i = 0; i < nr_procs; i++)
		profile_process_release(&procs[i]);
}

#define TEST(name) HOST_TEST_WITH(name, setup, NULL)

TEST(one_process_has_its_own_report)
{
	unsigned int i = begin("alone");

	host_age_ns = 7000000;
	end(i);
	assert_non_null(strstr(host_log, ": alone (pid 1) exited with status 0 after 0.007 s\n"));
	assert_non_null(strstr(host_log, "CPU time: 0.000003 s, 1 thread = "));
	assert_null(strstr(host_log, "Programs"));
	release_all();
}

/* An export has the first lines of the last report, without the tables. */
TEST(first_lines_are_kept)
{
	unsigned int i = begin("alone");
	const char *file, *heading;

	host_age_ns = 7000000;
	end(i);
	file = host_file_read("profile/first_lines.json");
	heading = strstr(file, ": alone (pid 1) exited with status 0 after 0.007 s\"}\n");
	assert_non_null(heading);
	assert_non_null(strstr(heading, "{\"line\":\"CPU time: 0.000003 s, 1 thread = "));
	assert_null(strstr(file, "Kernel"));
	assert_null(strstr(file, "end of report"));
	release_all();
}

/* A process whose creation fails is not one of the run. */
TEST(a_failed_fork_does_not_count)
{
	unsigned int i = begin("alone");
	unsigned int failed = begin("failed");

	profile_task_exit(&tasks[failed]);
	profile_process_release(&procs[failed]);
	end(i);
	assert_non_null(strstr(host_log, ": alone (pid 1) exited with status 0"));
	profile_process_release(&procs[i]);
}

/* A process that runs at a reset is one of the run, one that has ended is not. */
TEST(reset)
{
	u32 nr_running;
	unsigned int first = begin("first"), second = begin("second");

	assert_int_equal(run_nr_processes(&nr_running), 2);
	end(first);
	assert_string_equal(host_log, "");
	profile_reset();
	assert_int_equal(run_nr_processes(&nr_running), 1);
	assert_int_equal(nr_running, 1);
	end(second);
	assert_non_null(strstr(host_log, ": second (pid 2) exited"));
	release_all();
}

/* The word belongs to reports: elsewhere, it is the name of a program. */
TEST(the_word_is_for_reports_only)
{
	struct on_exit list = ON_EXIT("test", "none", ON_EXIT_NONE);
	unsigned int a = begin("run"), b = begin("other");

	assert_int_equal(on_exit_set(&list, "run"), 0);
	assert_true(on_exit_wants(&list, &procs[a]));
	assert_false(on_exit_wants(&list, &procs[b]));
	assert_true(on_exit_is_run());
	assert_int_equal(host_set_param("profile.on_exit", "all"), 0);
	assert_false(on_exit_is_run());
	assert_int_equal(host_set_param("profile.on_exit", "run"), 0);
	end(a);
	end(b);
	release_all();
}

/* The parent is in a system call, in which it sleeps while the child's report is printed. */
static void wait_for_child(unsigned int parent, unsigned int child)
{
	host_current = &tasks[parent];
	host_now += 10000;
	profile_syscall_enter(61);
	host_now += 100;
	profile_switch_out(&tasks[parent].profile, host_now);
	host_now += 500;
	host_step = 1000;
	end(child);
	host_step = 0;
	profile_wake(&tasks[parent]);
	host_current = &tasks[parent];
	host_now += 20;
	profile_switch_in(host_now);
	host_now += 3;
	profile_syscall_exit(0);
}

TEST(a_parent_does_not_wait_for_a_report)
{
	static struct strace_snapshot snap;
	struct profile_task *pt;
	unsigned int parent, child;
	u64 begin_cycles, wait_cycles;

	assert_int_equal(host_set_param("profile.on_exit", "all"), 0);
	parent = begin("parent");
	child = begin("child");
	pt = &tasks[parent].profile;
	begin_cycles = host_now + 10000;
	wait_for_child(parent, child);
	assert_null(strstr(host_log, "delayed by reports"));
	assert_true(pt->delay.cycles >= 2000);
	wait_cycles = host_now - begin_cycles - pt->delay.cycles - 103;
	assert_int_equal(pt->waits.longest.cycles, wait_cycles);
	/* The clock moves a few times between the ends of the printing and those of the wait. */
	assert_in_range(wait_cycles, 520, 6520);
	strace_snapshot_process(&procs[parent].profile, &snap);
	assert_int_equal(snap.nr_entries, 1);
	assert_int_equal(snap.entries[0].ns, wait_cycles + 103);
	assert_int_equal(snap.entries[0].max_ns, wait_cycles + 103);
	host_log_clear();
	end(parent);
	assert_non_null(strstr(host_log, "delayed by reports of other processes: 0.000"));
	release_all();
}

/* Not delayed: a thread that an interrupt wakes, and one that slept after the printing. */
TEST(only_wakers_delay)
{
	unsigned int sleeper, other;
	struct profile_task *pt;

	assert_int_equal(host_set_param("profile.on_exit", "all"), 0);
	sleeper = begin("sleeper");
	other = begin("other");
	pt = &tasks[sleeper].profile;
	profile_switch_out(pt, host_now);
	host_step = 1000;
	end(other);
	host_step = 0;
	host_irq_depth = 1;
	profile_wake(&tasks[sleeper]);
	host_irq_depth = 0;
	host_current = &tasks[sleeper];
	profile_switch_in(host_now);
	assert_int_equal(pt->delay.cycles, 0);
	/* The report was printed before this sleep. */
	profile_switch_out(pt, host_now);
	host_current = &tasks[other];
	host_now += 500;
	profile_wake(&tasks[sleeper]);
	host_current = &tasks[sleeper];
	profile_switch_in(host_now);
	assert_int_equal(pt->delay.cycles, 0);
	end(sleeper);
	release_all();
}

/*
 * Processes with the same name are one row; names without room are in [others]; a process that runs
 * is added. After the report, nothing more can be printed, so this is the last test.
 */
TEST(programs)
{
	char name[16];

	begin("cat");
	end(begin("cat"));
	end(0);
	for (unsigned int i = 0; i < NR_NAMES; i++) {
		snprintf(name, sizeof(name), "p%03u", i);
		end(begin(name));
	}
	release_all();
	nr_procs = 0;
	begin("cat");
	host_call(0, 2000, 5);
	tasks[0].profile.waits.created_cycles = host_now - 9000;
	host_off = host_now - 7000; /* its CPU time is 7 us */
	host_cpu_times = (struct profile_cpu_times){ .user = 7000 };
	assert_string_equal(host_log, "");
	profile_end_reports();
	assert_non_null(strstr(host_log, ": run of 259 processes, 1 still running, 0.000 s\n"));
	assert_non_null(strstr(host_log, "CPU time: 0.000781 s, 259 threads = "));
	assert_non_null(strstr(host_log, "events: 1 system calls, "));
	assert_non_null(strstr(
		host_log, "Programs\n"
			  "processes    cpu seconds         waited     calls program\n"
			  "--------- -------------- -------------- --------- ----------------\n"
			  "        3    0.000013000    0.000006000         1 cat\n"
			  "        1    0.000003000    0.000002000         0 p000\n"));
	/* One of 257 names has no room, and 252 rows are not printed. */
	assert_non_null(strstr(
		host_log, "      253    0.000759000    0.000506000         0 [others]\n"
			  "--------- -------------- -------------- --------- ----------------\n"
			  "      259    0.000781000    0.000518000         1 total\n"));
	assert_non_null(strstr(host_log, "Kernel strace\nCalls of: all processes\n"));
}

int unit_tests_begin(void **state)
{
	profile_init();
	return 0;
}
