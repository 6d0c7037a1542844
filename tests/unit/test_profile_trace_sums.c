// SPDX-License-Identifier: BSD-2-Clause
/* Tests sums of events in the kernel: counts and histograms, while the rings record or not. */

#include "trace_files_unit.h"

#define EXIT "events/raw_syscalls/sys_exit/"

static void write_events(u32 nr, s64 ret)
{
	for (u32 i = 0; i < nr; i++) {
		host_cpu = i % 3;
		profile_trace(sys_exit, 1, ret);
	}
	host_cpu = 0;
}

static u64 nr_recorded(void)
{
	u64 nr = 0;

	for (u32 cpu = 0; cpu < HOST_NR_CPUS; cpu++)
		nr += ring_totals(cpu).nr;
	return nr;
}

static void check_file(const char *path, const char *text)
{
	if (strcmp(read_file(path), text))
		fail_msg("%s: %s", path, read_file(path));
}

#define TEST(name) HOST_TEST_WITH(name, set_up, NULL)

/* Events are counted without being recorded, and the counts of all CPUs add up. */
TEST(counts)
{
	check_file(EXIT "count", "0\n");
	assert_int_equal(write_file(EXIT "count", "1"), 0);
	write_events(100, 0);
	check_file(EXIT "count", "100\n");
	check_file(EXIT "enable", "0\n");
	assert_int_equal(nr_recorded(), 0);
	/* It starts from 0 again, and it keeps its value when it is switched off. */
	assert_int_equal(write_file(EXIT "count", "1\n"), 0);
	write_events(5, 0);
	assert_int_equal(write_file(EXIT "count", "0"), 0);
	write_events(3, 0);
	check_file(EXIT "count", "5\n");
	assert_int_equal(write_file(EXIT "count", "2"), -EINVAL);
	assert_int_equal(write_file(EXIT "count", ""), -EINVAL);
	assert_false(os_key_on(&profile_trace_key_sys_exit));
}

/* Recording and counting are switched independently, in any order. */
TEST(counts_and_rings)
{
	u64 counted = 0, recorded = 0;
	bool counts = false, records = false;
	u32 random = 1;
	char text[32];

	for (u32 i = 0; i < 200; i++) {
		random = random * 1103515245 + 12345;
		if (random >> 16 & 1) {
			records = !records;
			assert_int_equal(write_file(EXIT "enable", records ? "1" : "0"), 0);
		} else {
			counts = !counts;
			assert_int_equal(write_file(EXIT "count", counts ? "1" : "0"), 0);
			counted = counts ? 0 : counted;
		}
		write_events(3, 0);
		counted += counts ? 3 : 0;
		recorded += records ? 3 : 0;
		assert_int_equal(nr_recorded(), recorded);
		snprintf(text, sizeof(text), "%lu\n", counted);
		check_file(EXIT "count", text);
	}
	assert_int_equal(write_file(EXIT "enable", "0"), 0);
	assert_int_equal(write_file(EXIT "count", "0"), 0);
}

/* A count has the events that the filter and set_event_pid let pass. */
TEST(counts_are_filtered)
{
	assert_int_equal(write_file(EXIT "filter", "ret < 0 && common_pid == 7"), 0);
	assert_int_equal(write_file(EXIT "count", "1"), 0);
	write_events(4, 1);
	write_events(3, -1);
	check_file(EXIT "count", "3\n");
	assert_int_equal(write_file(EXIT "filter", "0"), 0);
	assert_int_equal(write_file("set_event_pid", "8"), 0);
	write_events(4, 1);
	check_file(EXIT "count", "3\n");
	assert_int_equal(truncate_file("set_event_pid"), 0);
	write_events(4, 1);
	check_file(EXIT "count", "7\n");
	assert_int_equal(write_file(EXIT "count", "0"), 0);
}

/* Two events with one key: counting one of them neither counts nor records the other. */
TEST(counts_of_a_shared_key)
{
	assert_int_equal(write_file("events/profile/point_end/count", "1"), 0);
	assert_true(
		os_key_on(&profile_trace_key_point_begin)); /* this one, which points.c looks at */
	profile_trace_point_begin("a");
	profile_trace_point_end("a");
	profile_trace_point_end("b");
	check_file("events/profile/point_begin/count", "0\n");
	check_file("events/profile/point_end/count", "2\n");
	assert_int_equal(nr_recorded(), 0);
	assert_int_equal(write_file("events/profile/point_end/count", "0"), 0);
}

TEST(counts_of_systems)
{
	check_file("events/lock/count", "");
	assert_int_equal(write_file("events/lock/count", "1"), 0);
	profile_trace(contention_end, NULL, 0);
	assert_non_null(strstr(read_file("events/lock/count"), "lock:contention_end 1\n"));
	assert_non_null(strstr(read_file("events/lock/count"), "lock:contention_begin 0\n"));
	assert_int_equal(write_file("events/lock/count", "x"), -EINVAL);
	assert_int_equal(write_file("events/lock/count", "0"), 0);
	check_file("events/lock/count", "lock:contention_end 1\n");
	assert_non_null(strstr(read_file("events/count"), "lock:contention_end 1\n"));
	assert_int_equal(write_file("events/count", "1"), 0);
	assert_non_null(strstr(read_file("events/count"), "lock:contention_end 0\n"));
	assert_int_equal(write_file("events/count", "0"), 0);
}

static void write_one(void)
{
	profile_trace(sys_exit, 1, 0);
}

/* No event gets into the ring while counting is being switched. */
TEST(nothing_is_recorded_meanwhile)
{
	assert_int_equal(write_file(EXIT "enable", "1"), 0); /* so that there are rings */
	assert_int_equal(write_file(EXIT "enable", "0"), 0);
	host_on_key = write_one;
	assert_int_equal(write_file(EXIT "count", "1"), 0);
	assert_int_equal(write_file(EXIT "count", "0"), 0);
	host_on_key = NULL;
	assert_int_equal(nr_recorded(), 0);
	write_one();
	assert_string_not_equal(read_file(EXIT "count"), "0\n");
}

#define KMALLOC "events/kmem/kmalloc/"

static void allocate(u64 caller, u64 bytes)
{
	profile_trace(kmalloc, caller, NULL, bytes, bytes);
}

static void check_part(const char *path, const char *part)
{
	if (!strstr(read_file(path), part))
		fail_msg("%s: %s", path, read_file(path));
}

/* A histogram has Linux's format, its rows are sums of all CPUs, and nothing is recorded. */
TEST(hist)
{
	check_file(KMALLOC "trigger", "# Available triggers:\n# hist\n");
	check_file(KMALLOC "hist", "");
	assert_int_equal(write_file(KMALLOC "trigger", "hist:keys=call_site:vals=bytes_req\n"), 0);
	check_file(KMALLOC "trigger", "hist:keys=call_site:vals=hitcount,bytes_req:sort=hitcount:"
				      "size=2048 [active]\n");
	for (u32 i = 0; i < 6; i++) {
		host_cpu = i % 3;
		allocate(i < 2 ? 7000 : 8000, 100 + i);
	}
	host_cpu = 0;
	check_file(KMALLOC "hist",
		   "# event histogram\n#\n"
		   "# trigger info: hist:keys=call_site:vals=hitcount,bytes_req:sort=hitcount:"
		   "size=2048 [active]\n#\n\n"
		   "{ call_site:       7000 } hitcount:          2  bytes_req:        201\n"
		   "{ call_site:       8000 } hitcount:          4  bytes_req:        414\n"
		   "\nTotals:\n    Hits: 6\n    Entries: 2\n    Dropped: 0\n");
	assert_int_equal(nr_recorded(), 0);
	check_file(KMALLOC "enable", "0\n");
	/* What the file shows removes it. */
	assert_int_equal(write_file(KMALLOC "trigger", "!hist:keys=call_site:vals=hitcount,"
						       "bytes_req:sort=hitcount:size=2048"),
			 0);
	check_file(KMALLOC "hist", "");
	assert_false(os_key_on(&profile_trace_key_kmalloc));
}

TEST(forms_of_keys)
{
	static const struct {
		const char *event, *keys, *row;
	} cases[] = {
		{ "kmem/kmalloc", "call_site.hex", "{ call_site: ffffffff81000105 } hit" },
		{ "kmem/kmalloc", "call_site.sym",
		  "{ call_site: [ffffffff81000105] fn_1                                          } "
		  "hit" },
		{ "kmem/kmalloc", "call_site.sym-offset",
		  "{ call_site: [ffffffff81000105] fn_1+0x5                                      "
		  "          } hit" },
		{ "kmem/kmalloc", "bytes_req.log2", "{ bytes_req: ~ 2^6  } hit" },
		{ "kmem/kmalloc", "common_pid", "{ common_pid:          7 } hit" },
		{ "kmem/kmalloc", "common_pid.execname",
		  "{ common_pid: test            [         7] } hit" },
		{ "kmem/kmalloc", "common_cpu", "{ common_cpu:          0 } hit" },
		{ "kmem/kmalloc", "bytes_req,common_cpu,node",
		  "{ bytes_req:         33, common_cpu:          0, node:          0 } hit" },
		{ "kmem/kmalloc", "comm",
		  "{ comm: test                                               } hit" },
		{ "raw_syscalls/sys_exit", "id.syscall,ret",
		  "{ id: sys_open                      [  2], ret:        -11 } hit" },
		{ "raw_syscalls/sys_exit", "common_type,common_flags",
		  ", common_flags:          5 }" },
		{ "sched/sched_process_exec", "filename",
		  "{ filename: /bin/true                                          } hit" },
	};
	char path[64], text[128];

	host_trace_flags = 5;
	for (u32 i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(path, sizeof(path), "events/%s/trigger", cases[i].event);
		snprintf(text, sizeof(text), "hist:keys=%s", cases[i].keys);
		assert_int_equal(write_file(path, text), 0);
		allocate(0xffffffff81000105, 33);
		profile_trace(sys_exit, 2, -11);
		profile_trace(sched_process_exec, &task, "/bin/true");
		snprintf(path, sizeof(path), "events/%s/hist", cases[i].event);
		check_part(path, cases[i].row);
		snprintf(path, sizeof(path), "events/%s/trigger", cases[i].event);
		assert_int_equal(truncate_file(path), 0);
	}
}

TEST(log2)
{
	static const u64 values[] = { 0, 1, 2, 3, 4, 5, 8, 9, 1ull << 40, (1ull << 40) + 1, ~0ull };
	static const u32 logs[] = { 0, 0, 1, 2, 2, 3, 3, 4, 40, 41, 64 };
	char text[32];

	for (u32 i = 0; i < ARRAY_SIZE(values); i++) {
		assert_int_equal(write_file(KMALLOC "trigger", "hist:keys=bytes_req.log2"), 0);
		allocate(1, values[i]);
		snprintf(text, sizeof(text), "~ 2^%-2u } hit", logs[i]);
		check_part(KMALLOC "hist", text);
		assert_int_equal(truncate_file(KMALLOC "trigger"), 0);
	}
}

/* Rows in this order have these values of bytes_req. */
static void check_order(const char *sort, const char *order)
{
	char text[128], found[128] = "";
	const char *at;

	snprintf(text, sizeof(text), "hist:keys=call_site,bytes_req:vals=bytes_alloc:sort=%s",
		 sort);
	assert_int_equal(write_file(KMALLOC "trigger", text), 0);
	for (u32 i = 0; i < 3; i++)
		allocate(100, 3);
	allocate(200, 1);
	allocate(200, 5);
	allocate(200, 5);
	for (at = read_file(KMALLOC "hist"); (at = strstr(at, "bytes_req:  ")); at++)
		snprintf(found + strlen(found), sizeof(found) - strlen(found), "%d ",
			 atoi(at + 10));
	assert_string_equal(found, order);
	assert_int_equal(truncate_file(KMALLOC "trigger"), 0);
}

TEST(orders)
{
	check_order("hitcount", "1 5 3 ");
	check_order("hitcount.descending", "3 5 1 ");
	check_order("bytes_req", "1 3 5 ");
	check_order("bytes_req.descending", "5 3 1 ");
	check_order("call_site.descending,bytes_req", "1 5 3 ");
	check_order("call_site.ascending,bytes_req.descending", "3 5 1 ");
	check_order("bytes_alloc", "1 3 5 "); /* 1, 9, 10 */
	/* Signed numbers have their own order. */
	assert_int_equal(write_file(EXIT "trigger", "hist:keys=ret:sort=ret"), 0);
	write_events(1, 1);
	write_events(1, -1);
	assert_true(strstr(read_file(EXIT "hist"), "-1 }") <
		    strstr(read_file(EXIT "hist"), " 1 }"));
	assert_int_equal(truncate_file(EXIT "trigger"), 0);
}

static u64 total(const char *path, const char *name)
{
	const char *at = strstr(read_file(path), name);

	assert_non_null(at);
	return strtoull(at + strlen(name), NULL, 10);
}

/* Events beyond the size are counted as dropped, on each CPU. */
TEST(full_tables)
{
	assert_int_equal(write_file(KMALLOC "trigger", "hist:keys=bytes_req:size=100"), -EINVAL);
	assert_int_equal(write_file(KMALLOC "trigger", "hist:keys=bytes_req:size=129"), 0);
	check_part(KMALLOC "trigger", ":size=256 ");
	for (u32 i = 0; i < 900; i++) {
		host_cpu = i % 3;
		allocate(1, i);
		allocate(1, i);
	}
	host_cpu = 0;
	assert_int_equal(total(KMALLOC "hist", "Entries: "), 3 * 256);
	assert_int_equal(total(KMALLOC "hist", "Hits: "), 2 * 3 * 256);
	assert_int_equal(total(KMALLOC "hist", "Dropped: "), 2 * 3 * (300 - 256));
	assert_int_equal(truncate_file(KMALLOC "trigger"), 0);
}

/* Histograms have filters of their own, which do not change what is recorded. */
TEST(hists_with_filters)
{
	assert_int_equal(write_file(EXIT "enable", "1"), 0);
	assert_int_equal(write_file(EXIT "filter", "ret == 5"), 0);
	assert_int_equal(write_file(EXIT "trigger", "hist:keys=id if ret < 0"), 0);
	assert_int_equal(
		write_file(EXIT "trigger", "hist:keys=id   if  ret > 0 && common_pid == 7"), 0);
	assert_int_equal(write_file(EXIT "trigger", "hist:keys=id if ret > 0 && common_pid == 7"),
			 -EINVAL);
	check_part("error_log",
		   "hist:raw_syscalls:sys_exit: error: there is such a trigger already");
	check_part(EXIT "trigger", "hist:keys=id:vals=hitcount:sort=hitcount:size=2048 if ret < 0 "
				   "[active]\n");
	write_events(3, -1);
	write_events(4, 1);
	write_events(2, 5);
	assert_int_equal(nr_recorded(), 2);
	assert_int_equal(total(EXIT "hist", "Hits: "), 6); /* the newest first */
	check_part(EXIT "hist", "Hits: 3\n");
	/* One that there is not is no error, as on Linux, and none is removed. */
	assert_int_equal(write_file(EXIT "trigger", "!hist:keys=id if ret > 0"), 0);
	assert_int_equal(total(EXIT "hist", "Hits: "), 6);
	/* Without a filter, any of them. */
	assert_int_equal(write_file(EXIT "trigger", "!hist:keys=id"), 0);
	assert_int_equal(total(EXIT "hist", "Hits: "), 3);
	assert_int_equal(write_file(EXIT "trigger", "!hist:keys=id if ret < 0"), 0);
	check_file(EXIT "hist", "");
	assert_int_equal(write_file(EXIT "filter", "0"), 0);
	assert_int_equal(write_file(EXIT "enable", "0"), 0);
}

TEST(pause_and_clear)
{
	assert_int_equal(write_file(EXIT "trigger", "hist:keys=id:clear"), -EINVAL);
	assert_int_equal(write_file(EXIT "trigger", "hist:keys=id:cont"), -EINVAL);
	assert_int_equal(write_file(EXIT "trigger", "hist:keys=id:pause"), 0);
	check_part(EXIT "trigger", " [paused]\n");
	write_events(1, 0);
	assert_int_equal(total(EXIT "hist", "Hits: "), 0);
	assert_int_equal(write_file(EXIT "trigger", "hist:keys=id:continue"), 0);
	check_part(EXIT "trigger", " [active]\n");
	write_events(2, 0);
	assert_int_equal(write_file(EXIT "trigger", "hist:keys=id:pause"), 0);
	write_events(4, 0);
	assert_int_equal(total(EXIT "hist", "Hits: "), 2);
	assert_int_equal(write_file(EXIT "trigger", "hist:keys=id:clear"), 0);
	assert_int_equal(total(EXIT "hist", "Hits: "), 0);
	write_events(8, 0);
	assert_int_equal(total(EXIT "hist", "Hits: "), 0);
	assert_int_equal(write_file(EXIT "trigger", "hist:keys=id:cont:clear"), 0);
	write_events(16, 0);
	assert_int_equal(total(EXIT "hist", "Hits: "), 16);
	assert_int_equal(truncate_file(EXIT "trigger"), 0);
}

/* error_log points to what is wrong. */
TEST(bad_commands)
{
	static const struct {
		const char *text, *what;
		u32 at;
	} cases[] = {
		{ "", "the only trigger is hist", 0 },
		{ "traceon", "the only trigger is hist", 0 },
		{ "!snapshot", "the only trigger is hist", 1 },
		{ "hist", "no keys", 4 },
		{ "hist:vals=id", "no keys", 12 },
		{ "hist:keys=", "no such field", 10 },
		{ "hist:keys=xyz", "no such field", 10 },
		{ "hist:keys=id,xyz", "no such field", 13 },
		{ "hist:keys=id.xyz", "no such form of a field", 13 },
		{ "hist:keys=id.execname", "only common_pid has an execname", 13 },
		{ "hist:keys=comm.hex", "a text has no forms", 15 },
		{ "hist:keys=common_cpu.hex", "this field has no forms", 21 },
		{ "hist:keys=id,id,id,id", "too many keys", 19 },
		{ "hist:keys=id:keys=id", "the keys are given twice", 18 },
		{ "hist:keys=id:vals=ret,ret,ret,ret", "too many values", 30 },
		{ "hist:keys=id:vals=comm", "only numbers have sums, and these have no forms", 18 },
		{ "hist:keys=id:vals=id.hex", "only numbers have sums, and these have no forms",
		  18 },
		{ "hist:keys=id:sort=ret", "no key and no value to sort by", 18 },
		{ "hist:keys=id:sort=id.up", "neither ascending nor descending", 21 },
		{ "hist:keys=id:sort=id,id,id", "too many fields to sort by", 24 },
		{ "hist:keys=id:size=abc", "the size is no number from 128 to 16384", 18 },
		{ "hist:keys=id:size=16385", "the size is no number from 128 to 16384", 18 },
		{ "hist:keys=id:name=x", "no such option", 13 },
		{ "hist:keys=id:", "no such option", 13 },
		{ "hist:keys=id:pause:cont", "both pause and continue", 19 },
		{ "hist:keys=id ret > 0", "neither an option nor `if <filter>`", 13 },
		{ "hist:keys=id if ret > x", "not a number of 64 bits", 22 },
		{ "hist:keys=id if xyz > 1", "no such field", 16 },
		{ "hist:keys=id:cont", "there is no such trigger", 0 },
		{ "hist:keys=id:clear", "there is no such trigger", 0 },
	};
	char text[256];

	for (u32 i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(truncate_file("error_log"), 0);
		assert_int_equal(write_file(EXIT "trigger", cases[i].text), -EINVAL);
		snprintf(text, sizeof(text),
			 "hist:raw_syscalls:sys_exit: error: %s\n  Command: %s\n           %*s^\n",
			 cases[i].what, cases[i].text, (int)cases[i].at, "");
		check_part("error_log", text);
	}
	assert_int_equal(write_file("events/raw_syscalls/sys_enter/trigger", "hist:keys=args"),
			 -EINVAL);
	check_part("error_log", "an array is no single value");
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	memcpy(text, "hist:keys=", 10);
	assert_int_equal(write_file(EXIT "trigger", text), -EINVAL);
	check_file(EXIT "trigger", "# Available triggers:\n# hist\n");
	assert_false(os_key_on(&profile_trace_key_sys_exit));
}

/* A text that is longer than its key is truncated, and no text can forge a line. */
TEST(texts)
{
	char path[101];

	memset(path, 'p', 100);
	path[100] = '\0';
	assert_int_equal(write_file("events/sched/sched_process_exec/trigger",
				    "hist:keys=filename,comm:sort=filename"),
			 0);
	snprintf(host_comm, sizeof(host_comm), "a\n}");
	profile_trace(sched_process_exec, &task, path);
	profile_trace(sched_process_exec, &task, "x");
	check_part("events/sched/sched_process_exec/hist",
		   "{ filename: "
		   "ppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp, comm: a?}  ");
	assert_int_equal(total("events/sched/sched_process_exec/hist", "Entries: "), 2);
	assert_int_equal(truncate_file("events/sched/sched_process_exec/trigger"), 0);
}

/* Counts, histograms and the ring agree, whatever is switched in between. */
TEST(all_agree)
{
	assert_int_equal(write_file(KMALLOC "count", "1"), 0);
	assert_int_equal(write_file(KMALLOC "trigger", "hist:keys=bytes_req:vals=bytes_alloc"), 0);
	assert_int_equal(write_file(KMALLOC "enable", "1"), 0);
	for (u32 i = 0; i < 100; i++)
		allocate(i, i % 10);
	check_file(KMALLOC "count", "100\n");
	assert_int_equal(total(KMALLOC "hist", "Hits: "), 100);
	assert_int_equal(nr_recorded(), 100);
	assert_int_equal(write_file(KMALLOC "enable", "0"), 0);
	allocate(1, 1);
	assert_int_equal(write_file(KMALLOC "count", "0"), 0);
	allocate(1, 1);
	check_file(KMALLOC "count", "101\n");
	assert_int_equal(total(KMALLOC "hist", "Hits: "), 102);
	assert_int_equal(nr_recorded(), 100);
	assert_int_equal(truncate_file(KMALLOC "trigger"), 0);
	allocate(1, 1);
	assert_int_equal(nr_recorded(), 100);
}

TEST(no_memory)
{
	host_memory_bytes = 1 << 16;
	assert_int_equal(write_file(KMALLOC "trigger", "hist:keys=bytes_req"), -ENOMEM);
	check_file(KMALLOC "hist", "");
	host_memory_bytes = 1ull << 30;
	assert_int_equal(write_file(KMALLOC "trigger", "hist:keys=bytes_req"), 0);
	assert_int_equal(truncate_file(KMALLOC "trigger"), 0);
}
