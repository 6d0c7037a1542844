// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests whole reports: what triggers them, their first and last lines, one at a time, reset, and
 * panic.
 */

#include "unit.h"

DEFINE_PROFILE_POINT(work)

static struct process proc;
static struct task task;
static int nr_allocated_at_start; /* allocated once and never freed */

static int setup(void **state)
{
	host_step = 0;
	host_now = 1000;
	host_on_line = NULL;
	host_on_wait = NULL;
	assert_int_equal(host_set_param("profile.on_exit", "all"), 0);
	assert_int_equal(host_set_param("profile.top", "10"), 0);
	assert_int_equal(host_set_param("profile.report", "narrow"), 0);
	proc = (struct process){ .pid = 20, .comm = "wordcount" };
	host_pid = 20;
	host_wait_status = host_age_ns = 0;
	profile_process_init(&proc);
	task.proc = &proc;
	profile_task_init(&task);
	host_current = &task;
	profile_task_runs(&task.profile);
	profile_reset();
	host_log_clear();
	return 0;
}

static int teardown(void **state)
{
	host_on_line = NULL;
	host_panicking = false;
	assert_int_equal(host_set_param("profile.on_exit", "none"), 0);
	profile_task_exit(&task);
	profile_process_exit(&proc);
	profile_process_release(&proc);
	strace_reset();
	assert_int_equal(host_nr_allocated, nr_allocated_at_start);
	return 0;
}

static void work(void)
{
	struct pt_regs regs = { .pc = 0xffffffff81000410 };
	PROFILE_POINT_TIME(work)

	host_call(0, 2000, 5);
	host_call(1, 500, -1);
	sample_take(&regs, os_cycles(), 0);
	profile_point_start(work);
	host_now += 30;
	profile_point_leave(work);
}

static bool printed_at_exit(const char *on_exit)
{
	assert_int_equal(host_set_param("profile.on_exit", on_exit), 0);
	host_log_clear();
	profile_task_exit(&task);
	profile_process_exit(&proc);
	profile_process_release(&proc);
	profile_process_init(&proc);
	profile_task_init(&task);
	return host_log[0];
}

/*
 * The tables of a report. Filled in: the name, except at an exit; since when samples count; the
 * line about the process's own samples.
 */
static const char *const tables =
	"Kernel strace\n"
	"Task: 20:20 nr_accumulated_threads: 1%s\n"
	"%% time        seconds  usecs/call     calls    errors syscall\n"
	"------ -------------- ----------- --------- --------- ----------------\n"
	" 80.00    0.000002000           2         1         0 sys_read\n"
	" 20.00    0.000000500           1         1         1 sys_write\n"
	"------ -------------- ----------- --------- --------- ----------------\n"
	"100.00    0.000002500                     2         1 total\n"
	"\n"
	"Kernel Heatmap (top #10)\n"
	"samples: 1, all CPUs since %s (0.00 s) = kernel 1\n"
	"%s"
	"sampling: APIC timer, 997 per second and CPU at random moments (seed 1)\n"
	"         Address              Function          NR          %%\n"
	"----------------  --------------------  ----------  ---------\n"
	"ffffffff81000400                  fn_4           1     100.00\n"
	"----------------  --------------------  ----------  ---------\n"
	"                                                 1     100.00\n"
	"\n"
	"Kernel Profile Points\n"
	"%s since %s (0.00 s)\n"
	" status                  name             total                nr            avg.ns\n"
	"-------  --------------------  ----------------  ----------------  ----------------\n"
	"     on                  work       0.000000030                 1                30\n"
	"-------  --------------------  ----------------  ----------------  ----------------\n"
	"overhead: 0 ns a pair, 0 ns of it inside total and avg.ns (not subtracted)\n";

static void print_tables(char text[4096], const char *since, const char *of_process)
{
	const char *points = of_process[0] ? "of this process" : "all CPUs";
	/* setup() reset the counters of the process, but points did not exist yet. */
	const char *points_since = of_process[0] ? "the last reset" : since;
	const char *name = of_process[0] ? "" : " (wordcount)";

	assert_true(snprintf(text, 4096, tables, name, since, of_process, points, points_since) <
		    4096);
}

/* The tables do not depend on the reason. The first and last lines have the report's number. */
static void expect_report(unsigned int number, const char *why, const char *since,
			  const char *of_process)
{
	char text[8192], tables_text[4096];

	print_tables(tables_text, since, of_process);
	snprintf(text, sizeof(text), "profile: report %u: %s\n%sprofile: end of report %u\n",
		 number, why, tables_text, number);
	assert_log(text);
}

#define TEST(name) HOST_TEST_WITH(name, setup, teardown)

TEST(full_report_to_the_byte)
{
	profile_init();
	/* Each CPU: seven for samples, one for points. Once: a spare archive, a report's points. */
	nr_allocated_at_start = (7 + 1) * HOST_NR_CPUS + 3 + 1;
	work();
	profile_report("sysrq");
	expect_report(1, "sysrq", "boot", "");
	/* A report does not change the next one. */
	host_log_clear();
	profile_report("sysrq");
	expect_report(2, "sysrq", "boot", "");
	host_log_clear();
	host_age_ns = 1810000000;
	host_wait_status = 3 << 8;
	profile_task_exit(&task);
	profile_process_exit(&proc);
	profile_process_release(&proc);
	expect_report(3, "wordcount (pid 20) exited with status 3 after 1.810 s", "boot",
		      "of this process: 1\n");
	/* The process has been released. */
	host_log_clear();
	profile_report("sysrq");
	assert_null(strstr(host_log, "Kernel strace"));
	assert_non_null(strstr(host_log, "Kernel Heatmap"));
}

TEST(on_exit_patterns)
{
	assert_true(printed_at_exit("all"));
	assert_false(printed_at_exit("none"));
	assert_true(printed_at_exit("wordcount"));
	assert_true(printed_at_exit("w*"));
	assert_true(printed_at_exit("sh,word?ount,ls"));
	assert_false(printed_at_exit("word"));
	assert_false(printed_at_exit("sh,ls"));
	assert_false(printed_at_exit("*x"));
}

TEST(bad_values_are_refused)
{
	static const char *const bad_on_exit[] = { "", ",", "a,", ",a", "a,,b" };
	static const char *const bad_top[] = {
		"", "0", "-1", "ten", "5x", "al", " 5", "4294967295"
	};
	char too_long[400];

	for (u32 i = 0; i < ARRAY_SIZE(bad_on_exit); i++)
		assert_int_equal(host_set_param("profile.on_exit", bad_on_exit[i]), -EINVAL);
	memset(too_long, 'a', sizeof(too_long));
	too_long[sizeof(too_long) - 1] = '\0';
	assert_int_equal(host_set_param("profile.on_exit", too_long), -EINVAL);
	for (u32 i = 0; i < ARRAY_SIZE(bad_top); i++)
		assert_int_equal(host_set_param("profile.top", bad_top[i]), -EINVAL);
	/* The previous value stays. */
	profile_report("x");
	assert_non_null(strstr(host_log, "(top #10)"));
	assert_int_equal(host_set_param("profile.top", "1"), 0);
	profile_report("x");
	assert_non_null(strstr(host_log, "(top #1)"));
	assert_int_equal(host_set_param("profile.top", "all"), 0);
	profile_report("x");
	assert_non_null(strstr(host_log, "(all)"));
}

TEST(report_widths)
{
	static const char *const bad[] = { "", "wid", "wide,", "Wide", "histogram wide" };

	work();
	assert_int_equal(host_set_param("profile.report", "wide"), 0);
	profile_report("x");
	assert_non_null(strstr(host_log, "net.ns"));
	assert_null(strstr(host_log, "2^"));

	assert_int_equal(host_set_param("profile.report", "histogram"), 0);
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(host_set_param("profile.report", bad[i]), -EINVAL);
	host_log_clear();
	print_profile_points();
	assert_non_null(strstr(host_log, "net.ns"));
	assert_non_null(strstr(host_log, "work  2^4  cycles                 1  ***"));

	assert_int_equal(host_set_param("profile.report", "narrow"), 0);
	host_log_clear();
	profile_report("x");
	assert_null(strstr(host_log, "net.ns"));
}

TEST(names_are_made_printable)
{
	strcpy(proc.comm, "a\nb\x1b[2J\xff");
	host_wait_status = 9;
	profile_task_exit(&task);
	profile_process_exit(&proc);
	profile_process_release(&proc);
	assert_non_null(
		strstr(host_log, ": a?b?[2J? (pid 20) was killed by signal 9 after 0.000 s\n"));
}

TEST(what_is_unknown_is_not_printed)
{
	host_wait_status = OS_NO_STATUS;
	host_age_ns = OS_NO_AGE;
	profile_task_exit(&task);
	profile_process_exit(&proc);
	profile_process_release(&proc);
	assert_non_null(strstr(host_log, ": wordcount (pid 20) exited\n"));
}

static void report_once(void)
{
	host_on_line = NULL;
	profile_report("from an interrupt");
}

TEST(report_inside_a_report_comes_after_it)
{
	const char *end, *second;

	host_on_line = report_once;
	profile_report("first");
	end = strstr(host_log, "profile: end of report");
	second = strstr(host_log, ": from an interrupt\n");
	assert_non_null(end);
	assert_non_null(second);
	assert_true(second > end);
	assert_null(strstr(second + 1, "profile: report"));
}

static struct process second_proc;

static void report_meanwhile(void)
{
	host_on_line = NULL;
	profile_report("meanwhile");
}

/* A report requested while an exit report is being printed follows it. */
TEST(report_inside_an_exit_report)
{
	second_proc = (struct process){ .pid = 21, .comm = "second" };
	profile_process_init(&second_proc);
	host_on_line = report_meanwhile;
	profile_process_exit(&second_proc);
	profile_process_release(&second_proc);
	assert_non_null(strstr(host_log, ": second (pid 21) exited"));
	assert_true(strstr(host_log, ": meanwhile\n") > strstr(host_log, ": second (pid"));
}

static void *report_many(void *arg)
{
	for (int i = 0; i < 200; i++)
		profile_report(arg);
	return NULL;
}

static void wait_a_little(void)
{
	sched_yield();
}

/* Reports from two threads never mix, and every exit has its report. */
TEST(reports_do_not_mix)
{
	unsigned int nr_begin = 0, nr_end = 0, nr_exits = 0, inside = 0, number, last = 0;
	pthread_t thread;

	host_on_wait = wait_a_little;
	assert_int_equal(pthread_create(&thread, NULL, report_many, "other"), 0);
	for (int i = 0; i < 50; i++) {
		profile_task_exit(&task);
		profile_process_exit(&proc);
		profile_process_release(&proc);
		profile_process_init(&proc);
		profile_task_init(&task);
	}
	pthread_join(thread, NULL);
	for (const char *line = host_log; *line; line = strchr(line, '\n') + 1) {
		if (sscanf(line, "profile: report %u:", &number) == 1) {
			assert_int_equal(inside, 0);
			assert_true(number > last);
			inside = last = number;
			nr_begin++;
			nr_exits += !!memmem(line, strcspn(line, "\n"), " exited ", 8);
		} else if (sscanf(line, "profile: end of report %u", &number) == 1) {
			assert_int_equal(number, inside);
			inside = 0;
			nr_end++;
		}
	}
	assert_int_equal(nr_begin, nr_end);
	assert_int_equal(nr_exits, 50);
	assert_true(nr_begin > 50);
}

TEST(reset_empties_all)
{
	char text[4096];

	work();
	profile_reset();
	profile_report("x");
	assert_null(strstr(host_log, "sys_read"));
	assert_non_null(strstr(host_log, "samples: 0, all CPUs since the last reset (0.00 s)\n"));
	assert_null(strstr(host_log, "  work "));
	work();
	host_log_clear();
	profile_report("x");
	print_tables(text, "the last reset", "");
	assert_non_null(strstr(host_log, text));
}

/* Returns the tables of a report after some work and with a call in flight. */
static char *report_of_work(bool extra_reports)
{
	static const char frame[] = "profile: ";
	char *text, *end;

	host_now = 1000;
	profile_reset();
	work();
	profile_syscall_enter(3);
	if (extra_reports) {
		profile_report("extra");
		print_profile_points();
		profile_report("extra");
	}
	host_now += 70;
	profile_syscall_exit(0);
	work();
	profile_syscall_enter(1);
	host_now += 5;
	host_log_clear();
	profile_report("x");
	profile_syscall_exit(0);
	text = strchr(host_log, '\n');
	assert_non_null(text);
	end = strstr(text, frame);
	assert_non_null(end);
	return strndup(text, end - text);
}

TEST(extra_reports_change_nothing)
{
	char *without = report_of_work(false), *with = report_of_work(true);

	assert_non_null(strstr(without, "sys_close"));
	assert_string_equal(without, with);
	free(without);
	free(with);
}

static void panic_once(void)
{
	host_on_line = NULL;
	host_panicking = true;
	profile_report("panic");
}

static void fault_again(void)
{
	profile_report("nested");
}

/* A panic interrupts a report that is being printed, and faults again while it prints its own. */
TEST(panic)
{
	const char *panic;

	work();
	host_on_line = panic_once;
	profile_report("first");
	panic = strstr(host_log, ": panic\n");
	assert_non_null(panic);
	assert_non_null(strstr(panic, "sys_read"));
	assert_true(strstr(host_log, "profile: end of report") > panic);

	host_log_clear();
	host_on_line = fault_again;
	profile_report("panic");
	assert_log("");
	host_on_line = NULL;
	host_panicking = false;
}

/* Prints to the console, while another report is being read as text. */
static void sysrq_meanwhile(void)
{
	profile_report("sysrq");
}

TEST(report_as_a_text)
{
	const char *text;
	char want[8192], tables_text[4096];
	unsigned int number;

	work();
	text = host_file_read("profile/report");
	assert_int_equal(sscanf(text, "profile: report %u: read\n", &number), 1);
	print_tables(tables_text, "the last reset", "");
	snprintf(want, sizeof(want), "profile: report %u: read\n%sprofile: end of report %u\n",
		 number, tables_text, number);
	assert_string_equal(text, want);
	assert_log("");

	host_on_text = sysrq_meanwhile;
	text = host_file_read("profile/report");
	host_on_text = NULL;
	assert_null(strstr(text, "sysrq"));
	expect_report(number + 2, "sysrq", "the last reset", "");

	assert_int_equal(host_file_write("profile/report", "again\n"), -EINVAL);
	assert_int_equal(host_file_write("profile/report", "reset\n"), 0);
	assert_null(strstr(host_file_read("profile/report"), "sys_read"));
}

/* The file refuses the name of an unknown function, since its table would always be empty. */
TEST(unknown_function_is_refused)
{
	assert_int_equal(host_file_write("profile/function", "fn_4\n"), 0);
	assert_int_equal(host_file_write("profile/function", "no_such_function\n"), -EINVAL);
	assert_int_equal(host_file_write("profile/function", ""), -EINVAL);
	assert_non_null(strstr(host_file_read("profile/function"), "Kernel Heatmap of fn_4: "));
}

static void write_another_function(void)
{
	host_on_symbol = NULL;
	assert_int_equal(host_file_write("profile/function", "fn_77\n"), 0);
}

/* A table shows the function that was selected when the reader began. */
TEST(function_changes_while_it_is_printed)
{
	const char *text;

	work();
	assert_int_equal(host_file_write("profile/function", "fn_4\n"), 0);
	host_on_symbol = write_another_function;
	text = host_file_read("profile/function");
	assert_null(host_on_symbol);
	assert_non_null(strstr(text, "Kernel Heatmap of fn_4: 1 of 1 samples\n"));
	assert_non_null(strstr(host_file_read("profile/function"), "Kernel Heatmap of fn_77: 0 "));
}

TEST(on_exit_file)
{
	assert_string_equal(host_file_read("profile/on_exit"), "all\n");
	assert_int_equal(host_file_write("profile/on_exit", "none\n"), 0);
	assert_string_equal(host_file_read("profile/on_exit"), "none\n");
	work();
	profile_task_exit(&task);
	profile_process_exit(&proc);
	profile_process_release(&proc);
	assert_log("");
	profile_process_init(&proc);
	profile_task_init(&task);
	assert_int_equal(host_file_write("profile/on_exit", "a,,b"), -EINVAL);
	assert_int_equal(host_file_write("profile/on_exit", "\n"), -EINVAL);
	assert_string_equal(host_file_read("profile/on_exit"), "none\n");
}

static bool end_waits, end_is_there;

static void note_wait(void)
{
	__atomic_store_n(&end_waits, true, __ATOMIC_RELEASE);
	sched_yield();
}

/* Waits for reports to end, and stores the length of the log when the machine may switch off. */
static void *end_reports(void *logged)
{
	profile_end_reports();
	*(size_t *)logged = strlen(host_log);
	__atomic_store_n(&end_is_there, true, __ATOMIC_RELEASE);
	return NULL;
}

static pthread_t end_thread;
static size_t logged_at_end;

static unsigned int nr_cut_reports(void)
{
	unsigned int nr = 0;

	profile_count_cut_reports(&nr);
	return nr;
}

/* Begins to switch the machine off in the middle of a report. */
static void end_meanwhile(void)
{
	host_on_line = NULL;
	assert_int_equal(nr_cut_reports(), 1);
	profile_report("sysrq");
	assert_int_equal(pthread_create(&end_thread, NULL, end_reports, &logged_at_end), 0);
	while (!__atomic_load_n(&end_waits, __ATOMIC_ACQUIRE) &&
	       !__atomic_load_n(&end_is_there, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void leave(void)
{
	pthread_exit(NULL);
}

static void *report_exit_too_late(void *arg)
{
	static struct task last = { 0 };

	host_current = &last;
	profile_process_exit(arg);
	return NULL;
}

/*
 * Switching off waits for the report being printed and for the requested one. Later reports block
 * for ever, so this is the last test.
 */
TEST(power_off_waits_for_reports)
{
	static struct process late;
	pthread_t thread;

	host_on_wait = note_wait;
	host_on_line = end_meanwhile;
	profile_process_exit(&proc);
	pthread_join(end_thread, NULL);
	assert_true(end_waits);
	assert_int_equal(logged_at_end, strlen(host_log));
	assert_int_equal(nr_cut_reports(), 0);
	assert_non_null(strstr(host_log, ": sysrq\n"));

	late = (struct process){ .pid = 21, .comm = "late" };
	profile_process_init(&late);
	host_log_clear();
	host_on_wait = leave;
	assert_int_equal(pthread_create(&thread, NULL, report_exit_too_late, &late), 0);
	pthread_join(thread, NULL);
	assert_log("");
	host_on_wait = NULL;
	profile_process_release(&late);
}
