// SPDX-License-Identifier: BSD-2-Clause
/* Tests filters of events: numbers, texts, replacement, and filters that are refused. */

#include "trace_files_unit.h"

static u32 nr_kept(const char *filter, u64 id, s64 ret)
{
	const char *text;
	u32 nr = 0;

	assert_int_equal(write_file("events/raw_syscalls/sys_exit/filter", filter), 0);
	profile_trace(sys_exit, id, ret);
	for (text = events(); *text; text = strchr(text, '\n') + 1)
		nr++;
	assert_int_equal(host_trace_file("trace")->truncate(NULL), 0);
	return nr;
}

static void test_filters_of_numbers(void **state)
{
	assert_int_equal(write_file("events/raw_syscalls/enable", "1"), 0);
	assert_int_equal(nr_kept("id == 39", 39, 0), 1);
	assert_int_equal(nr_kept("id == 39", 40, 0), 0);
	assert_int_equal(nr_kept("id != 0x27\n", 39, 0), 0);
	assert_int_equal(nr_kept("id != 0x27", 40, 0), 1);
	assert_int_equal(nr_kept("id == 0XaB", 171, 0), 1);
	assert_int_equal(nr_kept("id == 047", 39, 0), 1);
	assert_int_equal(nr_kept("id == 0", 0, 0), 1);
	assert_int_equal(nr_kept("ret<0", 1, -11), 1);
	assert_int_equal(nr_kept("ret<0", 1, 11), 0);
	assert_int_equal(nr_kept("ret > -12", 1, -11), 1);
	assert_int_equal(nr_kept("ret > -11", 1, -11), 0);
	assert_int_equal(nr_kept("id & 0x30", 0x20, 0), 1);
	assert_int_equal(nr_kept("id & 0x30", 0x40, 0), 0);
	assert_int_equal(nr_kept("common_pid == 7", 1, 0), 1);
	assert_int_equal(nr_kept("common_pid == 8", 1, 0), 0);
	assert_string_equal(read_file("events/raw_syscalls/sys_exit/filter"), "common_pid == 8\n");
	assert_int_equal(nr_kept("0", 1, 0), 1);
	assert_string_equal(read_file("events/raw_syscalls/sys_exit/filter"), "none\n");
}

static bool is_wanted(const char *operator, s64 a, s64 b, bool is_signed)
{
	switch (*operator) {
	case '=':
		return a == b;
	case '!':
		return a != b;
	case '<':
		return (operator[1] && a == b) || (is_signed ? a < b : (u64)a < (u64)b);
	case '>':
		return (operator[1] && a == b) || (is_signed ? a > b : (u64)a > (u64)b);
	default:
		return a & b;
	}
}

/* Every comparison of every field with every value, including values that do not fit the field. */
static void test_filters_at_the_edges(void **state)
{
	static const char *const operators[] = { "==", "!=", "<", "<=", ">", ">=", "&" };
	static const s64 values[] = { 0,
				      1,
				      2,
				      -1,
				      -2,
				      0x7fffffff,
				      0x80000000,
				      0xfffffffe,
				      0xffffffff,
				      0x100000000,
				      -0x7fffffff,
				      -0x80000000ll,
				      -0x80000001ll,
				      INT64_MAX,
				      INT64_MIN };
	static const struct {
		const char *event, *field;
		u32 bytes;
		bool is_signed;
	} fields[] = {
		{ "kmem/mm_page_alloc", "pfn", 8, false },
		{ "kmem/mm_page_alloc", "order", 4, false },
		{ "raw_syscalls/sys_exit", "ret", 8, true },
		{ "lock/contention_end", "ret", 4, true },
		{ "lock/contention_end", "common_pid", 4, true },
		{ "lock/contention_end", "common_flags", 1, false },
	};
	const u32 nr = ARRAY_SIZE(values);
	char path[64], text[64];

	assert_int_equal(write_file("set_event", "kmem:* raw_syscalls:* lock:*"), 0);
	for (u32 i = 0; i < ARRAY_SIZE(fields) * ARRAY_SIZE(operators) * nr; i++) {
		u32 f = i / nr / ARRAY_SIZE(operators);
		const char *operator= operators[i / nr % ARRAY_SIZE(operators)];
		s64 value = values[i % nr];

		snprintf(path, sizeof(path), "events/%s/filter", fields[f].event);
		snprintf(text, sizeof(text), "%s %s %s0x%lx", fields[f].field, operator,
			 value<0 && fields[f].is_signed ? "-" : "",
			 value < 0 && fields[f].is_signed ? -(u64)value : (u64)value);
		assert_int_equal(write_file(path, text), 0);
		for (u32 j = 0; j < nr; j++) {
			u32 unused = 64 - 8 * fields[f].bytes;
			s64 is = fields[f].is_signed ? (s64)((u64)values[j] << unused) >> unused :
						       (u64)values[j] << unused >> unused;
			u64 before = ring_newest(0).nr;

			host_tid = is;
			host_trace_flags = is;
			profile_trace(mm_page_alloc, is, is);
			profile_trace(sys_exit, 0, is);
			profile_trace(contention_end, NULL, is);
			if (ring_newest(0).nr - before - 2 !=
			    is_wanted(operator, is, value, fields[f].is_signed))
				fail_msg("%s of %ld", text, is);
		}
		assert_int_equal(write_file(path, "0"), 0);
	}
}

static void test_filters_of_texts(void **state)
{
	static const char *const filter = "events/sched/sched_process_exit/filter";

	assert_int_equal(write_file("set_event", "sched_process_exit"), 0);
	assert_int_equal(write_file(filter, "comm == \"test\""), 0);
	profile_trace(sched_process_exit, &task);
	assert_int_equal(write_file(filter, "comm != test"), 0);
	profile_trace(sched_process_exit, &task);
	assert_int_equal(write_file(filter, "comm ~ 'te*'"), 0);
	profile_trace(sched_process_exit, &task);
	assert_int_equal(write_file(filter, "comm ~ 'x*'"), 0);
	profile_trace(sched_process_exit, &task);
	assert_non_null(strstr(read_file("trace"), "entries-written: 2/2 "));
	/* A comma has no special meaning. */
	assert_int_equal(write_file(filter, " comm ~ \"x*,te*\" \n"), 0);
	assert_string_equal(read_file(filter), "comm ~ \"x*,te*\"\n");
	profile_trace(sched_process_exit, &task);
	assert_non_null(strstr(read_file("trace"), "entries-written: 2/2 "));
	assert_int_equal(write_file(filter, " 0 "), 0);
	assert_string_equal(read_file(filter), "none\n");
}

static void write_refused(void)
{
	profile_trace(sys_exit, 3, 0);
}

/* While a filter replaces another one, events that both refuse are not recorded. */
static void test_filters_are_replaced(void **state)
{
	static const char *const filter = "events/raw_syscalls/sys_exit/filter";

	assert_int_equal(write_file(filter, "id == 2"), 0);
	assert_int_equal(write_file("set_event", "sys_exit"), 0);
	host_on_key = write_refused;
	assert_int_equal(write_file(filter, "id == 1"), 0);
	assert_int_equal(ring_totals(0).nr, 0);
	assert_int_equal(write_file(filter, "0"), 0);
	host_on_key = NULL;
	assert_int_equal(ring_totals(0).nr, 1);
}

/* A pattern is compared with the longest possible text, up to its end. */
static void test_filters_of_long_texts(void **state)
{
	static const char *const filter = "events/sched/sched_process_exec/filter";
	char path[251];

	memset(path, 'p', 249);
	path[249] = 'q';
	path[250] = '\0';
	assert_int_equal(write_file("set_event", "sched_process_exec"), 0);
	assert_int_equal(write_file(filter, "filename ~ *q"), 0);
	profile_trace(sched_process_exec, &task, path);
	path[249] = 'p';
	profile_trace(sched_process_exec, &task, path);
	assert_non_null(strstr(read_file("trace"), "entries-written: 1/1 "));
	assert_int_equal(write_file(filter, "0"), 0);
}

static void test_bad_filters(void **state)
{
	static const char *const bad[] = { "",
					   "id",
					   "id ==",
					   "nr == 3",
					   "id ~ 3",
					   "== 3",
					   "id == 3x",
					   "id == 0xg",
					   "id = 3",
					   "id == -",
					   "id == 0x",
					   "id == 08",
					   "id == 1 && ret == 1",
					   "(id == 1)",
					   "ret & 99999999999999999999" };
	static char text[300];

	for (u32 i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(write_file("events/raw_syscalls/sys_exit/filter", bad[i]),
				 -EINVAL);
	assert_int_equal(write_file("events/raw_syscalls/sys_enter/filter", "args == 1"), -EINVAL);
	assert_int_equal(write_file("events/sched/sched_wakeup/filter", "comm > a"), -EINVAL);
	assert_int_equal(write_file("events/sched/sched_wakeup/filter", "comm =="), -EINVAL);
	assert_int_equal(write_file("events/sched/sched_wakeup/filter", "comm == \"a"), -EINVAL);
	assert_int_equal(write_file("events/sched/sched_wakeup/filter",
				    "comm == \"a\" || pid == \"b\""),
			 -EINVAL);
	assert_int_equal(write_file("events/sched/sched_wakeup/filter", "comm == a || comm == b"),
			 -EINVAL);
	assert_int_equal(write_file("events/sched/sched_wakeup/filter", "comm == 'a'b"), -EINVAL);
	memset(text, 'a', sizeof(text) - 1);
	memcpy(text, "comm == ", 8);
	assert_int_equal(write_file("events/sched/sched_wakeup/filter", text), -EINVAL);
	text[200] = '\0';
	assert_int_equal(write_file("events/sched/sched_wakeup/filter", text), -EINVAL);
	assert_string_equal(read_file("events/sched/sched_wakeup/filter"), "none\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_filters_of_numbers, set_up),
		cmocka_unit_test_setup(test_filters_at_the_edges, set_up),
		cmocka_unit_test_setup(test_filters_of_texts, set_up),
		cmocka_unit_test_setup(test_filters_are_replaced, set_up),
		cmocka_unit_test_setup(test_filters_of_long_texts, set_up),
		cmocka_unit_test_setup(test_bad_filters, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
