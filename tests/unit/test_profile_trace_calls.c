// SPDX-License-Identifier: BSD-2-Clause
/* Tests the events of each system call: their fields, and that they get what raw events get. */

#include "trace_files_unit.h"

#define READ  "events/syscalls/sys_enter_read/"
#define WRITE "events/syscalls/sys_exit_write/"

static u64 arguments[6];

static void write_calls(u32 nr_calls, u64 nr, s64 ret)
{
	for (u32 i = 0; i < nr_calls; i++) {
		profile_trace(sys_enter, nr);
		profile_trace(sys_exit, nr, ret);
	}
}

static u64 nr_recorded(void)
{
	u64 nr = ring_totals(0).nr;

	assert_int_equal(truncate_file("trace"), 0);
	return nr;
}

static void check_part(const char *path, const char *part)
{
	if (!strstr(read_file(path), part))
		fail_msg("%s: %s", path, read_file(path));
}

static int begin(void **state)
{
	host_syscall_args = arguments;
	memset(arguments, 0, sizeof(arguments));
	return set_up(state);
}

#define TEST(name) HOST_TEST_WITH(name, begin, NULL)

/* The formats are those of Linux, whose tools find arguments by name. */
TEST(formats)
{
	check_part(READ "format", "\n\n\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"
				  "\tfield:int fd;\toffset:16;\tsize:8;\tsigned:0;\n"
				  "\tfield:char * buf;\toffset:24;\tsize:8;\tsigned:0;\n"
				  "\tfield:size_t count;\toffset:32;\tsize:8;\tsigned:0;\n\n"
				  "print fmt: \"fd: 0x%08lx, buf: 0x%08lx, count: 0x%08lx\", "
				  "((unsigned long)(REC->fd)), ((unsigned long)(REC->buf)), "
				  "((unsigned long)(REC->count))\n");
	check_part("events/syscalls/sys_enter_write/format",
		   "field:const char * buf;\toffset:24;"); /* `char *buf` in C */
	check_part("events/syscalls/sys_enter_other/format",
		   "field:unsigned mode;\toffset:32;\tsize:8;");
	check_part(WRITE "format", "\tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;\n\n"
				   "print fmt: \"0x%lx\", REC->ret\n");
	check_part("events/syscalls/sys_enter_exit_group/format",
		   "size:4;\tsigned:1;\n\nprint fmt: \"\"\n");
	check_part("available_events", "syscalls:sys_enter_read\n");
}

/* An event of a call is recorded as Linux prints it; the raw event is not. */
TEST(records)
{
	arguments[0] = 3;
	arguments[1] = 0x1000;
	arguments[2] = 99;
	assert_int_equal(write_file("set_event", "syscalls:sys_enter_read sys_exit_write"), 0);
	write_calls(1, 0, 10);
	write_calls(1, 1, -11);
	write_calls(1, 3, 0);
	write_calls(1, 400, 0);
	write_calls(1, ~0ull, 0);
	check_part("trace", ": sys_read(fd: 3, buf: 1000, count: 63)\n");
	check_part("trace", ": sys_write -> 0xfffffffffffffff5\n");
	assert_int_equal(nr_recorded(), 2);
	assert_string_equal(read_file("events/raw_syscalls/enable"), "0\n");
	assert_string_equal(read_file("events/syscalls/enable"), "X\n");
	/* Both, if both are on. */
	assert_int_equal(write_file("events/raw_syscalls/sys_enter/enable", "1"), 0);
	write_calls(2, 0, 0);
	assert_int_equal(nr_recorded(), 4);
	assert_int_equal(write_file(READ "enable", "0"), 0);
	write_calls(2, 0, 0);
	assert_int_equal(nr_recorded(), 2);
	assert_int_equal(truncate_file("set_event"), 0);
	write_calls(2, 0, 0);
	write_calls(2, 1, 0);
	assert_int_equal(nr_recorded(), 0);
	assert_false(os_key_on(&profile_trace_key_sys_enter));
	assert_false(os_key_on(&profile_trace_key_sys_exit));
}

/* Filters of arguments by name; the filter of the raw event does not matter. */
TEST(filters)
{
	assert_int_equal(write_file(READ "enable", "1"), 0);
	assert_int_equal(write_file(READ "filter", "fd == 3 && count > 98"), 0);
	assert_int_equal(write_file("events/raw_syscalls/sys_enter/filter", "id == 1"), 0);
	arguments[0] = 3;
	arguments[2] = 99;
	write_calls(1, 0, 0);
	arguments[2] = 98;
	write_calls(1, 0, 0);
	assert_int_equal(nr_recorded(), 1);
	assert_int_equal(write_file(READ "filter", "path == 3"), -EINVAL);
	assert_int_equal(write_file(READ "filter", "0"), 0);
	assert_int_equal(write_file("events/raw_syscalls/sys_enter/filter", "0"), 0);
	assert_int_equal(write_file(READ "enable", "0"), 0);
}

/* Counts and histograms of calls, with nothing else on. */
TEST(sums)
{
	arguments[0] = 5;
	arguments[2] = 10;
	assert_int_equal(write_file(READ "count", "1"), 0);
	assert_int_equal(write_file(WRITE "trigger", "hist:keys=ret:vals=ret"), 0);
	assert_int_equal(write_file("events/syscalls/sys_enter_write/trigger",
				    "hist:keys=fd:vals=count"),
			 0);
	write_calls(3, 0, 1);
	write_calls(4, 1, 7);
	assert_string_equal(read_file(READ "count"), "3\n");
	check_part("events/syscalls/count", "syscalls:sys_enter_read 3\n");
	check_part(WRITE "hist", "{ ret:          7 } hitcount:          4  ret:         28\n");
	check_part("events/syscalls/sys_enter_write/hist",
		   "{ fd:          5 } hitcount:          4  count:         40\n");
	assert_int_equal(nr_recorded(), 0);
	assert_int_equal(write_file(READ "count", "0"), 0);
	assert_int_equal(truncate_file(WRITE "trigger"), 0);
	assert_int_equal(truncate_file("events/syscalls/sys_enter_write/trigger"), 0);
	assert_false(os_key_on(&profile_trace_key_sys_enter));
}
