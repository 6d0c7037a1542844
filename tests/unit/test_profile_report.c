// SPDX-License-Identifier: BSD-2-Clause
/* Tests the reports: known output to the byte, and the limits of their arithmetic. */

#include "unit.h"

#include "../../kernel/profile/table.h"

static struct strace_snapshot strace;
static struct heat_snapshot heat;
static struct view view; /* rows of the heatmap */
static struct point_snapshot points;

static int setup(void **state)
{
	memset(&strace, 0, sizeof(strace));
	memset(&heat, 0, sizeof(heat));
	memset(&view, 0, sizeof(view));
	heat.view = &view;
	heat.source.settings =
		(struct source_settings){ .hz = 997, .seed = 1, .jitter = true, .on = true };
	heat.source.at_random = true;
	memset(&points, 0, sizeof(points));
	host_log_clear();
	table_text_restart();
	return 0;
}

static void add_call(u64 nr, const char *name, u64 ns, u64 nr_calls, u64 nr_errors)
{
	strace.entries[strace.nr_entries++] = (struct strace_entry){
		.nr = nr, .name = name, .ns = ns, .nr_calls = nr_calls, .nr_errors = nr_errors
	};
}

static void add_heat(u64 addr, const char *name, u64 nr)
{
	view.rows[view.nr_rows++] = (struct view_row){ .keys = { addr }, .name = name, .nr = nr };
}

static void add_point(const char *name, bool enabled, u64 ns, u64 nr)
{
	points.entries[points.nr_entries] = (struct point_entry){
		.name = name, .serial = points.nr_entries, .enabled = enabled, .ns = ns, .nr = nr
	};
	points.nr_entries++;
}

#define STRACE_HEAD                                                       \
	"% time        seconds  usecs/call     calls    errors syscall\n" \
	"------ -------------- ----------- --------- --------- ----------------\n"
#define STRACE_RULE "------ -------------- ----------- --------- --------- ----------------\n"

#define TEST(name) HOST_TEST_WITH(name, setup, NULL)

/* The sample output of LegoOS, with correct percentages. */
TEST(strace_sample)
{
	strace.pid = 20;
	strace.nr_accumulated_threads = 46;
	add_call(9, "sys_mmap", 76382842, 406, 0);
	add_call(1, "sys_write", 185456860, 26, 0);
	add_call(202, "sys_futex", 33839597842, 18, 0);
	add_call(59, "sys_execve", 260143997, 1, 0);
	report_print_strace(&strace, REPORT_TOP_ALL, false, NULL);
	assert_log("Kernel strace\n"
		   "Task: 20:20 nr_accumulated_threads: 46\n" STRACE_HEAD
		   " 98.48   33.839597842     1879978        18         0 sys_futex\n"
		   "  0.76    0.260143997      260144         1         0 sys_execve\n"
		   "  0.54    0.185456860        7133        26         0 sys_write\n"
		   "  0.22    0.076382842         189       406         0 sys_mmap\n" STRACE_RULE
		   "100.00   34.361581541                   451         0 total\n");
}

/* Rows beyond the top are one row, and the columns still add up. A wide table has all rows. */
TEST(strace_others)
{
	strace.pid = 20;
	strace.nr_accumulated_threads = 1;
	add_call(0, "sys_read", 6000, 3, 0);
	add_call(1, "sys_write", 3000, 1, 1);
	add_call(2, "sys_open", 700, 2, 1);
	add_call(3, "sys_close", 301, 3, 2);
	report_print_strace(&strace, 2, false, NULL);
	assert_log("Kernel strace\n"
		   "Task: 20:20 nr_accumulated_threads: 1\n" STRACE_HEAD
		   " 59.99    0.000006000           2         3         0 sys_read\n"
		   " 30.00    0.000003000           3         1         1 sys_write\n"
		   " 10.01    0.000001001           1         5         3 [2 others]\n" STRACE_RULE
		   "100.00    0.000010001                     9         4 total\n");

	host_log_clear();
	report_print_strace(&strace, 3, false, NULL);
	assert_string_equal(host_line("[1 other]"),
			    "  3.01    0.000000301           1         3         2 [1 other]");
	host_log_clear();
	report_print_strace(&strace, 4, false, NULL);
	assert_null(strstr(host_log, "other"));
	host_log_clear();
	report_print_strace(&strace, 2, true, NULL);
	assert_non_null(strstr(host_log, "sys_close"));
	assert_null(strstr(host_log, "others]"));
}

/* Wide form: percentiles are upper bounds, rounded up; errors have names. */
TEST(strace_wide)
{
	strace.pid = 20;
	strcpy(strace.name, "a (b)\x1b[1m");
	strace.nr_accumulated_threads = 3;
	strace.before = (struct strace_totals){ .nr_calls = 12, .nr_errors = 1, .ns = 123456 };
	strace.children = (struct strace_totals){ .nr_calls = 5, .nr_errors = 2, .ns = 1000000 };
	strace.nr_children = 4;
	strace.nr_unfollowed = 2;
	add_call(202, "sys_futex", 2000000000, 40, 16);
	strace.entries[0].cpu_ns = 1500;
	strace.entries[0].p50_ns = 8191;
	strace.entries[0].p99_ns = 10001;
	strace.entries[0].max_ns = 1999000000;
	strace.entries[0].nr_in_flight = 2;
	strace.entries[0].nr_error_kinds = 3;
	strace.errors[0] = (struct strace_error_entry){ .error = EAGAIN, .nr = 3 };
	strace.errors[1] = (struct strace_error_entry){ .error = 999, .nr = 1 };
	strace.errors[2] = (struct strace_error_entry){ .error = ETIMEDOUT, .nr = 11 };
	add_call(1000, NULL, 0, 1, 0);
	report_print_strace(&strace, REPORT_TOP_ALL, true, NULL);
	assert_log(
		"Kernel strace\n"
		"Task: 20:20 nr_accumulated_threads: 3 (a (b)?[1m)\n"
		"% time        seconds  usecs/call     calls    errors syscall       "
		"                 cpu seconds        p50        p99    max seconds in flight  "
		"errors by name\n"
		"------ -------------- ----------- --------- --------- --------------------------- "
		"-------------- ---------- ---------- -------------- --------- ---------------\n"
		"100.00    2.000000000       50000        40        16 sys_futex                   "
		"   0.000001500  <= 8191ns    <= 11us    1.999000000         2  "
		"ETIMEDOUT 11, EAGAIN 3, errno 999 1, other 1\n"
		"  0.00    0.000000000           0         1         0 sys_1000                    "
		"   0.000000000          -          -    0.000000000         0\n"
		"------ -------------- ----------- --------- --------- --------------------------- "
		"-------------- ---------- ---------- -------------- ---------\n"
		"100.00    2.000000000                    41        16 total                       "
		"   0.000001500                                              2\n"
		"not in this table: 12 calls before execve, 1 errors, 0.000123456 s\n"
		"including children that were waited for (4): 58 calls, 19 errors, "
		"0.000001500 s of CPU time\n"
		"2 interrupted calls were given up: one that went on is counted twice\n");
}

/* Errors that do not fit the line are summed up as "other". */
TEST(strace_many_errors)
{
	add_call(2, "sys_open", 5, 200, 133);
	strace.entries[0].nr_error_kinds = 133;
	for (u32 i = 0; i < 133; i++)
		strace.errors[i] = (struct strace_error_entry){ .error = i + 1, .nr = 1 };
	report_print_strace(&strace, REPORT_TOP_ALL, true, NULL);
	assert_non_null(
		strstr(host_log, "  EPERM 1, ENOENT 1, ESRCH 1, EINTR 1, EIO 1, ENXIO 1, "));
	assert_non_null(strstr(host_log, ", other 1"));
	assert_true(strcspn(strstr(host_log, " sys_open"), "\n") < 320);
}

TEST(strace_processes)
{
	static struct strace_system_snapshot system = {
		.nr_entries = 3,
		.entries = {
			{ .name = "[gone]", .nr_threads = 5, .nr_calls = 1, .ns = 2, .cpu_ns = 2 },
			{ .name = "[others]" },
			{ .pid = 1234567890, .name = "word\ncount", .nr_threads = 3, .nr_calls = 2,
			  .nr_errors = 1, .ns = 8, .cpu_ns = 7 },
		},
	};

	report_print_strace_processes(&system);
	assert_log("Kernel strace by process\n"
		   "% time        seconds    cpu seconds     calls    errors threads        pid "
		   "process\n"
		   "------ -------------- -------------- --------- --------- ------- ---------- "
		   "----------------\n"
		   " 80.00    0.000000008    0.000000007         2         1       3 1234567890 "
		   "word?count\n"
		   " 20.00    0.000000002    0.000000002         1         0       5          - "
		   "[gone]\n"
		   "------ -------------- -------------- --------- --------- ------- ---------- "
		   "----------------\n"
		   "100.00    0.000000010    0.000000009         3         1                    "
		   "total\n");
}

TEST(heatmap_sample)
{
	heat.nr_class[HEAT_KERNEL] = heat.nr_scope_class[HEAT_KERNEL] = 39912;
	heat.nr_class[HEAT_IDLE] = heat.nr_scope_class[HEAT_IDLE] = 112082;
	heat.elapsed_ns = 38111999999;
	add_heat(0xffffffff810666f0, "__schedule", 19192);
	for (u32 i = 0; i < 20; i++)
		add_heat(0xffffffff81070000 + i * 16, "small", 1036);
	add_heat(0xffffffff8101a600, "cpu_idle", 112082);
	heat.source.all =
		(struct source_sums){ .expected = 2000, .taken = 1490, .lost = 500, .self = 10 };
	heat.source.nr_cpus = 1;
	heat.source.nr_taken[LATE_KERNEL] = 490;
	heat.source.nr_taken[LATE_IDLE] = 1000;
	heat.source.counts.lost[LATE_KERNEL] = 500;
	heat.source.counts.late[LATE_KERNEL] = 10;
	view_sort(&view);
	report_print_heatmap(&heat, 10, false);
	report_print_heatmap_notes(&heat, false);
	assert_ptr_equal(strstr(host_log,
				"Kernel Heatmap (top #10)\n"
				"samples: 151994, all CPUs since boot (38.11 s) = kernel 39912 + "
				"idle 112082\n"
				"sampling: APIC timer, 997 per second and CPU at random moments "
				"(seed 1)\n"
				"         Address              Function          NR          %\n"
				"----------------  --------------------  ----------  ---------\n"
				"ffffffff8101a600              cpu_idle      112082      73.74\n"
				"ffffffff810666f0            __schedule       19192      12.63\n"
				"ffffffff81070000                 small        1036       0.68\n"
				"ffffffff81070010                 small        1036       0.68\n"),
			 host_log);
	assert_non_null(strstr(host_log,
			       "ffffffff81070070                 small        1036       0.68\n"
			       "0000000000000000           [12 others]       12432       8.18\n"
			       "----------------  --------------------  ----------  ---------\n"
			       "                                            151994     100.00\n"));
	assert_non_null(strstr(host_log,
			       "510 of 2000 expected samples lost: 500 late by a whole period, 10 "
			       "in the profiler itself\n"
			       "blind spot: at least 51.52 % of busy time ran with interrupts off; "
			       "its samples are charged to the code that turned them on\n"));
}

TEST(points_sample)
{
	points.empty_pair_ns = 25;
	points.empty_reading_ns = 12;
	add_point("pcache_cache_miss", true, 16147020152, 274698);
	add_point("never_hit", true, 0, 0);
	add_point("flush_tlb_others", true, 153470, 55);
	points.of_process = true;
	points.since = POINTS_SINCE_EXEC;
	points.since_ns = 1805000000;
	report_print_points(&points, false, false);
	assert_log(
		"Kernel Profile Points\n"
		"of this process since its execve (1.81 s)\n"
		" status                  name             total                nr            "
		"avg.ns\n"
		"-------  --------------------  ----------------  ----------------  "
		"----------------\n"
		"     on      flush_tlb_others       0.000153470                55              "
		"2791\n"
		"     on     pcache_cache_miss      16.147020152            274698             "
		"58781\n"
		"-------  --------------------  ----------------  ----------------  "
		"----------------\n"
		"overhead: 25 ns a pair, 12 ns of it inside total and avg.ns (not subtracted)\n");
}

static u32 nr_in_log(const char *text)
{
	u32 nr = 0;

	for (const char *at = host_log; (at = strstr(at, text)); at++)
		nr++;
	return nr;
}

/* Once below the heading of a report, or below the title of a file's first table. */
TEST(cpus_take_turns)
{
	static const char says[] = "3 CPUs take turns in this emulator: times and samples include "
				   "waits for a turn\n";

	report_print_heading(1, &(struct report){ 0 }, "test");
	report_print_points(&points, false, false);
	assert_int_equal(nr_in_log("take turns"), 0);
	host_counts_instructions = true;
	host_log_clear();
	report_print_heading(1, &(struct report){ 0 }, "test");
	report_print_points(&points, false, false);
	assert_ptr_equal(strstr(host_log, "profile: report 1: test\nprofile: 3 CPUs"), host_log);
	assert_int_equal(nr_in_log(says), 1);
	host_log_clear();
	report_restart();
	report_print_points(&points, false, false);
	report_print_points(&points, false, false);
	host_counts_instructions = false;
	assert_ptr_equal(strstr(host_log, "Kernel Profile Points\n3 CPUs"), host_log);
	assert_int_equal(nr_in_log(says), 1);
}

#define WIDE_RULE                                                                          \
	"-------  --------------------  ----------------  ----------------  -------------" \
	"---  ------------  ------------  ------------  ------------  ------------  -----" \
	"-------\n"
#define WIDE_HEAD                                                                          \
	"Kernel Profile Points\n"                                                          \
	"all CPUs since boot (0.00 s)\n"                                                   \
	" status                  name             total                nr            avg" \
	".ns        net.ns      oncpu.ns        min.ns        p50.ns        p99.ns       " \
	" max.ns\n" WIDE_RULE

TEST(points_wide)
{
	points.empty_pair_ns = 25;
	points.empty_reading_ns = 12;
	add_point("futex_wait", false, 5000000001, 3);
	points.entries[0].sleeps = true;
	points.entries[0].net_ns = 4999999965;
	points.entries[0].oncpu_ns = 100;
	points.entries[0].min_ns = 7;
	points.entries[0].p50_ns = 8191;
	points.entries[0].p99_ns = 4999999000;
	points.entries[0].max_ns = 4999999000;
	add_point("exec", true, 10, 2);
	report_print_points(&points, true, false);
	assert_log(
		WIDE_HEAD
		"     on                  exec       0.000000010                 2             "
		"    5             0             -             0  <=         0  <=         0     "
		"        0\n"
		"    off            futex_wait       5.000000001                 3        166666"
		"6667    1666666655            34             7  <=      8191  <=4999999000    49"
		"99999000\n" WIDE_RULE
		"overhead: 25 ns a pair, 12 ns of it inside total and avg.ns (not subtracted)\n");
}

#define STARS_40 "****************************************"

TEST(points_histogram)
{
	const char *end;

	add_point("exec", true, 10, 124);
	points.entries[0].nr_log2[0] = 1;
	points.entries[0].nr_log2[3] = 20;
	points.entries[0].nr_log2[4] = 100;
	points.entries[0].nr_log2[5] = 2;
	points.entries[0].nr_log2[63] = 1;
	add_point("a_point", true, 0, 0);
	report_print_points(&points, true, true);
	end = strstr(host_log, "(not subtracted)\n");
	assert_non_null(end);
	assert_string_equal(
		end + strlen("(not subtracted)\n"),
		"                          exec  2^0  cycles                 1  *\n"
		"                          exec  2^3  cycles                20  ********\n"
		"                          exec  2^4  cycles               100  " STARS_40 "\n"
		"                          exec  2^5  cycles                 2  *\n"
		"                          exec  2^63 cycles                 1  *\n");
}

TEST(strace_empty)
{
	strace.pid = 1;
	strace.nr_accumulated_threads = 1;
	report_print_strace(&strace, REPORT_TOP_ALL, false, NULL);
	assert_log("Kernel strace\n"
		   "Task: 1:1 nr_accumulated_threads: 1\n" STRACE_HEAD STRACE_RULE
		   "  0.00    0.000000000                     0         0 total\n");
}

TEST(heatmap_empty)
{
	view_sort(&view);
	report_print_heatmap(&heat, REPORT_TOP_ALL, false);
	report_print_heatmap_notes(&heat, false);
	assert_log("Kernel Heatmap (all)\n"
		   "samples: 0, all CPUs since boot (0.00 s)\n"
		   "sampling: APIC timer, 997 per second and CPU at random moments (seed 1)\n"
		   "         Address              Function          NR          %\n"
		   "----------------  --------------------  ----------  ---------\n"
		   "----------------  --------------------  ----------  ---------\n"
		   "                                                 0       0.00\n");
}

TEST(percent_rounds_half_up)
{
	assert_int_equal(report_percent(0, 0), 0);
	assert_int_equal(report_percent(0, 5), 0);
	assert_int_equal(report_percent(5, 5), 10000);
	assert_int_equal(report_percent(1, 3), 3333);
	assert_int_equal(report_percent(2, 3), 6667);
	/* 0.005 % is the smallest share that is shown. */
	assert_int_equal(report_percent(1, 20000), 1);
	assert_int_equal(report_percent(1, 20001), 0);
	/* 99.995 % rounds up to 100 %. */
	assert_int_equal(report_percent(19999, 20000), 10000);
	assert_int_equal(report_percent(19998, 20000), 9999);
}

TEST(percent_of_huge_numbers)
{
	assert_int_equal(report_percent(~0ull, ~0ull), 10000);
	assert_int_equal(report_percent(~0ull / 2, ~0ull), 5000);
	assert_int_equal(report_percent(~0ull / 3, ~0ull), 3333);
	assert_int_equal(report_percent(1, ~0ull), 0);
}

TEST(averages_round_up)
{
	assert_int_equal(report_usecs_per_call(0, 0), 0);
	assert_int_equal(report_usecs_per_call(0, 7), 0);
	assert_int_equal(report_usecs_per_call(1, 1), 1);
	assert_int_equal(report_usecs_per_call(1000, 1), 1);
	assert_int_equal(report_usecs_per_call(1001, 1), 2);
	assert_int_equal(report_usecs_per_call(2000, 2), 1);
	assert_int_equal(report_usecs_per_call(2001, 2), 2);
	assert_int_equal(report_avg_ns(10, 5), 2);
	assert_int_equal(report_avg_ns(11, 5), 3);
	assert_int_equal(report_avg_ns(~0ull, 1), ~0ull);
	assert_int_equal(report_avg_ns(5, 0), 0);
	/* n times the unit does not fit 64 bits. */
	assert_int_equal(report_usecs_per_call(~0ull, ~0ull), 1);
}

/* Each percentage is rounded alone: three thirds print 33.33 each, which add up to 99.99. */
TEST(percentages_are_not_adjusted)
{
	add_call(0, "sys_read", 1, 1, 0);
	add_call(1, "sys_write", 1, 1, 0);
	add_call(2, "sys_open", 1, 1, 1);
	report_print_strace(&strace, REPORT_TOP_ALL, false, NULL);
	assert_non_null(strstr(host_log,
			       " 33.33    0.000000001           1         1         0 sys_read\n"
			       " 33.33    0.000000001           1         1         0 sys_write\n"
			       " 33.33    0.000000001           1         1         1 sys_open\n"));
	assert_string_equal(host_line(" total"),
			    "100.00    0.000000003                     3         1 total");
}

TEST(huge_numbers_are_whole)
{
	add_call(0, "sys_read", ~0ull, ~0ull, ~0ull);
	add_call(1, "sys_write", 1, 1, 0);
	report_print_strace(&strace, REPORT_TOP_ALL, false, NULL);
	assert_string_equal(host_line(" sys_read"),
			    "100.00 18446744073.709551615           1 18446744073709551615 "
			    "18446744073709551615 sys_read");
	/* A sum that does not fit saturates; it does not wrap. */
	assert_string_equal(host_line(" total"),
			    "100.00 18446744073.709551615             18446744073709551615 "
			    "18446744073709551615 total");
}

TEST(long_names_keep_their_column)
{
	static const char *const name = "a_function_name_longer_than_its_column";
	char line[128];

	heat.nr_scope_class[HEAT_KERNEL] = 3;
	add_heat(0xffffffff81000000, name, 2);
	add_heat(0xffffffff81000010, "walk_components.cons", 1);
	view_sort(&view);
	report_print_heatmap(&heat, 10, false);
	host_line("ffffffff81000000  a_function_name_lon~           2      66.67");
	host_line("ffffffff81000010  walk_components.cons           1      33.33");
	view_sort(&view);
	report_print_heatmap(&heat, 10, true);
	host_line(
		"ffffffff81000000  a_function_name_longer_than_its_column           2      66.67");

	host_log_clear();
	add_point(name, false, 5, 1);
	report_print_points(&points, false, false);
	snprintf(line, sizeof(line), "    off  %s       0.000000005                 1", name);
	assert_non_null(strstr(host_log, line));
}

TEST(numbers_without_a_name)
{
	add_call(1000, NULL, 30, 1, 1);
	add_call(~0ull, NULL, 20, 1, 1);
	add_call(400, NULL, 10, 1, 1);
	report_print_strace(&strace, REPORT_TOP_ALL, false, NULL);
	host_line(" sys_1000");
	host_line(" sys_-1");
	host_line(" sys_400");
}

/* Rows of equal time are sorted by call number. */
TEST(order_is_fixed)
{
	char *first;

	add_call(3, "sys_close", 7, 1, 0);
	add_call(STRACE_SPARE_NR, "[no memory]", 7, 1, 0);
	add_call(1, "sys_write", 7, 1, 0);
	add_call(2, "sys_open", 9, 1, 0);
	report_print_strace(&strace, REPORT_TOP_ALL, false, NULL);
	assert_true(strstr(host_log, "sys_open") < strstr(host_log, "sys_write"));
	assert_true(strstr(host_log, "sys_write") < strstr(host_log, "sys_close"));
	assert_true(strstr(host_log, "sys_close") < strstr(host_log, "[no memory]"));
	first = strdup(host_log);
	assert_non_null(first);

	setup(NULL);
	add_call(2, "sys_open", 9, 1, 0);
	add_call(1, "sys_write", 7, 1, 0);
	add_call(3, "sys_close", 7, 1, 0);
	add_call(STRACE_SPARE_NR, "[no memory]", 7, 1, 0);
	report_print_strace(&strace, REPORT_TOP_ALL, false, NULL);
	assert_log(first);
	free(first);
}

static u64 column_sum(u32 top)
{
	const char *line;
	u64 sum = 0, nr;

	host_log_clear();
	view_sort(&view);
	report_print_heatmap(&heat, top, false);
	line = strstr(host_log, "---------\n") + 10;
	for (; *line != '-'; line = strchr(line, '\n') + 1) {
		assert_int_equal(sscanf(line + 38, "%lu", &nr), 1);
		sum += nr;
	}
	return sum;
}

TEST(heatmap_columns_close)
{
	static const u32 tops[] = { 1, 2, 5, 6, 7, 8, 100, REPORT_TOP_ALL };

	heat.nr_scope_class[HEAT_USER] = 50;
	heat.nr_scope_class[HEAT_KERNEL] = 31;
	heat.nr_scope_class[HEAT_IDLE] = 24;
	heat.nr_dropped = 4;
	add_heat(0, "[user]", 50);
	for (u32 i = 0; i < 6; i++)
		add_heat(0xffffffff81000000 + i, "f", 6 + i);
	for (u32 i = 0; i < ARRAY_SIZE(tops); i++) {
		assert_int_equal(column_sum(tops[i]), 105);
		assert_string_equal(
			host_line("[dropped]           4       3.81"),
			"0000000000000000             [dropped]           4       3.81");
		assert_true(!strstr(host_log, " other") == (tops[i] >= 7));
	}
}

TEST(anomalies_are_printed)
{
	strace.nr_backwards = 3;
	report_print_strace(&strace, REPORT_TOP_ALL, false, NULL);
	host_line("clock went backwards in 3 calls: counted without time");

	host_log_clear();
	add_point("p", true, 10, 7);
	points.nr_threads_lost = 2;
	points.entries[0].nr_backwards = 2;
	points.entries[0].nr_migrated = 3;
	add_point("q", true, 0, 0);
	points.entries[1].nr_unmatched = 4;
	points.nr_not_shown = 9;
	report_print_points(&points, false, false);
	host_line("p: the clock went backwards in 2 pairs (not included)");
	host_line("q: 4 ends without a start (not included)");
	assert_null(strstr(host_log, " q  "));
	assert_null(strstr(host_log, " 0 pairs"));
	assert_null(strstr(host_log, " 0 ends"));
	assert_null(strstr(host_log, "another CPU"));
	assert_null(strstr(host_log, "no complete pair"));
	host_line("no room for 9 other points");
	host_line("no memory for the sums of 2 threads: their pairs are missing");
	report_print_points(&points, true, false);
	host_line("p: 3 of 7 pairs ended on another CPU (included)");
}

/* Sorts the names, and prints as many lines as they need. */
TEST(points_without_a_pair)
{
	static const char *const names[] = {
		"tree_find",
		"a_name_of_a_point_that_is_rather_long_but_fits_well",
		"fork",
		"flush_tlb_others",
		"another_name_that_is_long",
		"the_point_with_a_name_so_long_that_no_line_of_ordinary_length_has_room",
	};

	points.incomplete[points.nr_incomplete++] = "tree_find";
	points.incomplete[points.nr_incomplete++] = "fork";
	report_print_points(&points, false, false);
	assert_null(strstr(host_log, "no complete pair"));
	host_log_clear();
	report_print_points(&points, true, false);
	host_line("no complete pair: fork, tree_find");

	host_log_clear();
	points.nr_incomplete = 0;
	for (u32 i = 0; i < ARRAY_SIZE(names); i++)
		points.incomplete[points.nr_incomplete++] = names[i];
	report_print_points(&points, true, false);
	host_line("no complete pair: a_name_of_a_point_that_is_rather_long_but_fits_well,");
	host_line("    another_name_that_is_long, flush_tlb_others, fork,");
	host_line("    the_point_with_a_name_so_long_that_no_line_of_ordinary_length_has_room,");
	host_line("    tree_find");
}
