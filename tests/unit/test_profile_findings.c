// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests findings: which of them are told, and those about samples, calls and waits, at given
 * numbers.
 */
#include "unit.h"

#include "../../kernel/profile/findings.h"
#include "../../kernel/profile/profiler.h"
#include "../../kernel/profile/samples/store.h"

#define MS    NS_PER_MSEC
#define FN(i) (0xffffffff81000000ull + (i)*256)

static struct report report;
static u32 top = 4; /* rows of a table */
static struct report_summary sums;
static void (*offer)(const struct finding_scope *scope);

static void find(const struct finding_scope *scope)
{
	if (offer)
		offer(scope);
}

PROFILER(test) = { .name = "test", .find = find };

/* Prints the findings of a life of wall_ms, of which cpu_ms were on a CPU. */
static void print(u64 wall_ms, u64 cpu_ms)
{
	report = (struct report){ .wall_ns = wall_ms * MS, .top = top };
	sums.threads.cycles = (wall_ms + cpu_ms) * MS;
	sums.threads.off_cycles = wall_ms * MS;
	sums.cpu.user = cpu_ms * MS - sums.cpu.faults;
	host_log_clear();
	findings_print(&report, &sums);
}

static int setup(void **state)
{
	offer = NULL;
	sums = (struct report_summary){ 0 };
	host_cpu = host_irq_depth = 0;
	host_pid = host_tid = 1;
	strcpy(host_comm, "test");
	sample_reset();
	return 0;
}

static void offer_some(const struct finding_scope *scope)
{
	finding_of_cpu_time(scope, 19 * MS, "below the least share");
	finding_of_cpu_time(scope, 21 * MS, "in %s", "b");
	finding_of_wall_time(scope, 97 * MS, "waiting");
	finding_of_last_resort(scope, 99 * MS, "children");
	finding_of_cpu_time(scope, 40 * MS, "in a\n");
	finding_of_cpu_time(scope, 20 * MS, "the fourth");
}

#define TEST(name) HOST_TEST_WITH(name, setup, NULL)

/* At most three, the largest first. No finding forges a line. */
TEST(order)
{
	offer = offer_some;
	print(100, 100);
	assert_string_equal(host_log, "97 % of wall time waiting\n"
				      "40 % of CPU time in a?\n"
				      "21 % of CPU time in b\n");
}

/* CPU time that is a small part of the wall time is not told, whatever its share. */
TEST(a_small_part_of_the_wall_time)
{
	offer = offer_some;
	print(1000, 50);
	assert_string_equal(host_log, "");
	print(200, 50);
	assert_string_equal(host_log, "48 % of wall time waiting\n"
				      "80 % of CPU time in a?\n");
}

static void offer_last(const struct finding_scope *scope)
{
	finding_of_last_resort(scope, 60 * MS, "children");
	finding_of_cpu_time(scope, 10 * MS, "little");
}

TEST(last_resort)
{
	offer = offer_last;
	print(100, 100);
	assert_string_equal(host_log, "60 % of wall time children\n");
}

static void offer_short(const struct finding_scope *scope)
{
	finding_of_cpu_time(scope, MS - 1, "a millisecond less one");
}

TEST(short_times_and_none)
{
	offer = offer_short;
	print(1, 1);
	assert_string_equal(host_log, "");
	print(0, 0);
	assert_string_equal(host_log, "");
}

TEST(numbers)
{
	char text[FINDING_COUNT_BYTES];

	assert_string_equal(finding_count(text, 999), "999");
	assert_string_equal(finding_count(text, 50000), "50,000");
	assert_string_equal(finding_count(text, 12345006), "12,345,006");
	assert_string_equal(finding_each(text, 1000, 3), "333 ns");
	assert_string_equal(finding_each(text, 2849, 1), "2.8 us");
	assert_string_equal(finding_each(text, 168000000, 60), "2.8 ms");
	assert_string_equal(finding_each(text, 99949, 1), "100 us");
	assert_string_equal(finding_each(text, 5, 0), "0 ns");
	assert_string_equal(finding_bytes(text, 320 << 10), "320 KiB");
	assert_string_equal(finding_bytes(text, 3 << 19), "1.5 MiB");
	assert_string_equal(finding_bytes(text, (64 << 20) + 300000), "64 MiB");
}

static void take(u64 pc, bool user, u32 nr)
{
	struct pt_regs regs = { .pc = pc, .user = user };

	while (nr--)
		sample_take(&regs, os_cycles(), 0);
}

static void lose(u32 nr)
{
	os_per_cpu(sample_cpus, host_cpu).counts.nr_dropped[DROP_NESTED][HEAT_KERNEL] += nr;
}

/* 60 of 100 samples are in one block of user code, 25 in one function, and the others elsewhere. */
static void take_samples(u32 nr)
{
	for (u32 i = 0; i < nr; i++) {
		take(0x401000 + i % 3 * 16, true, 60 / nr);
		take(FN(1) + 16 * i, false, 25 / nr);
		take(0x500000 + 4096 * i, true, 15 / nr);
	}
}

static void offer_samples(const struct finding_scope *scope)
{
	static const struct sample_scope machine;
	static struct heat_snapshot snap;

	samples_pin();
	samples_find(scope, &snap, &machine);
	samples_unpin();
}

TEST(samples)
{
	offer = offer_samples;
	take_samples(5);
	print(100, 100);
	assert_string_equal(host_log,
			    "60 % of CPU time in user code at 0x401000 [Kernel Heatmap of user "
			    "functions: row 1]\n"
			    "25 % of CPU time in the kernel's function fn_1 [Kernel Heatmap: row "
			    "2]\n");
}

/* Few samples prove nothing, and neither do samples of which many were lost. */
TEST(few_or_lost_samples)
{
	offer = offer_samples;
	take(0x401000, true, 49);
	print(100, 100);
	assert_string_equal(host_log, "");
	take(0x401000, true, 51);
	print(100, 100);
	assert_non_null(strstr(host_log, "100 % of CPU time in user code at 0x401000"));
	lose(5);
	print(100, 100);
	assert_non_null(strstr(host_log, "100 % of CPU time"));
	lose(1);
	print(100, 100);
	assert_string_equal(host_log, "");
}

static struct strace_snapshot calls;

static void offer_calls(const struct finding_scope *scope)
{
	strace_find(scope, &calls);
}

static void add_call(u64 nr, const char *name, u64 ns, u64 cpu_ns, u64 nr_calls)
{
	calls.entries[calls.nr_entries++] = (struct strace_entry){
		.nr = nr, .name = name, .ns = ns, .cpu_ns = cpu_ns, .nr_calls = nr_calls
	};
}

/* The CPU time decides, not the wall time. Calls in step with the first one are told, too. */
TEST(calls)
{
	offer = offer_calls;
	calls.nr_entries = 0;
	add_call(230, "sys_clock_nanosleep", 200 * MS, 0, 1);
	add_call(7, "sys_poll", 79 * MS, 79 * MS, 257417);
	print(100, 100);
	assert_string_equal(host_log, "79 % of CPU time in sys_poll: 257,417 calls, 307 ns each "
				      "[Kernel strace: row 2]\n");
	calls.nr_entries = 0;
	add_call(1, "sys_write", 30 * MS, 30 * MS, 50000);
	add_call(74, "sys_fsync", 4 * MS, 4 * MS, 50001);
	add_call(3, "sys_close", 3 * MS, 3 * MS, 7);
	print(100, 100);
	assert_string_equal(host_log, "34 % of CPU time in system calls: 50,000 sys_write, 600 ns "
				      "each; 50,001 sys_fsync, 80 ns each [Kernel strace: rows 1, "
				      "2]\n");
	/* A row that is not in the table is not cited. */
	top = 1;
	print(100, 100);
	assert_non_null(strstr(host_log, " sys_fsync, 80 ns each [CPU time]\n"));
	top = 4;
}

static void set_errors(struct strace_entry *entry, u32 first, u32 nr_kinds, u64 nr)
{
	entry->first_error = first;
	entry->nr_error_kinds = nr_kinds;
	entry->nr_errors = nr;
}

/* The most frequent error is told, unless fewer than a tenth of the calls failed. */
TEST(errors)
{
	offer = offer_calls;
	calls.nr_entries = 0;
	calls.errors[0] = (struct strace_error_entry){ .error = 11, .nr = 3 };
	calls.errors[1] = (struct strace_error_entry){ .error = 13, .nr = 10 };
	calls.errors[2] = (struct strace_error_entry){ .error = 2, .nr = 30000 };
	add_call(257, "sys_openat", 90 * MS, 90 * MS, 30000);
	set_errors(&calls.entries[0], 2, 1, 30000);
	print(100, 100);
	assert_string_equal(host_log, "90 % of CPU time in sys_openat: 30,000 calls, 3.0 us each, "
				      "all failed (ENOENT) [Kernel strace: row 1]\n");
	set_errors(&calls.entries[0], 1, 2, 3000);
	calls.errors[2].nr = 2990;
	print(100, 100);
	assert_non_null(strstr(host_log, " each, 3,000 failed (most: ENOENT) [Kernel"));
	set_errors(&calls.entries[0], 1, 2, 2999);
	print(100, 100);
	assert_non_null(strstr(host_log, " each [Kernel strace: row 1]"));
	set_errors(&calls.entries[0], 0, 0, 30000); /* counted without their kinds */
	print(100, 100);
	assert_non_null(strstr(host_log, " each [Kernel strace: row 1]"));
	memset(calls.errors, 0, sizeof(calls.errors));
}

/* The size is the average of all forks. Calls that are told without a fork do not have it. */
TEST(forks)
{
	offer = offer_calls;
	calls.nr_entries = 0;
	calls.nr_forks = 60;
	calls.forked_bytes = 60ull * (64 << 20) + 60 * 300 * 1024;
	add_call(56, "sys_clone", 55 * MS, 55 * MS, 61);
	print(100, 100);
	assert_string_equal(host_log, "55 % of CPU time in sys_clone: 61 calls, 902 us each; 60 "
				      "forks of 64 MiB [Kernel strace: row 1]\n");
	add_call(231, "sys_exit_group", 30 * MS, 30 * MS, 61);
	calls.nr_forks = 1;
	print(100, 100);
	assert_non_null(strstr(host_log, "; 1 fork of 3858 MiB [Kernel strace: rows 1, 2]\n"));
	calls.entries[0].name = "sys_read";
	print(100, 100);
	assert_null(strstr(host_log, "fork"));
	calls.nr_forks = 0;
}

TEST(faults)
{
	offer = offer_calls;
	calls.nr_entries = 0;
	add_call(12, "sys_brk", MS, MS, 896);
	print(100, 100);
	assert_string_equal(host_log, "");
	sums.cpu.faults = 55 * MS;
	sums.nr_faults[0] = 29484;
	print(100, 100);
	assert_string_equal(host_log, "55 % of CPU time in page faults: 29,484, 1.9 us each; 896 "
				      "brk, 0 mmap, 0 munmap [CPU time; Kernel strace]\n");
}

int unit_tests_begin(void **state)
{
	sample_init();
	return 0;
}
