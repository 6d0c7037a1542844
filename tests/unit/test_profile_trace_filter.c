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
	assert_int_equal(truncate_file("trace"), 0);
	return nr;
}

#define TEST(name) HOST_TEST_WITH(name, set_up, NULL)

TEST(filters_of_numbers)
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
TEST(filters_at_the_edges)
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

TEST(filters_of_texts)
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
TEST(filters_are_replaced)
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
TEST(filters_of_long_texts)
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

TEST(bad_filters)
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
					   "id == 1 &&",
					   "id && 1",
					   "&& id == 1",
					   "id == 1 & ret == 1",
					   "id == 1 | ret == 1",
					   "id == 1 ret == 1",
					   "(id == 1",
					   "id == 1)",
					   "()",
					   "!",
					   "id == '1",
					   "id.function == no_such_function",
					   "id.function == ",
					   "((((((((((((((((id == 1))))))))))))))))",
					   "!!!!!!!!!!!!!!!!id == 1",
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
	assert_int_equal(write_file("events/sched/sched_wakeup/filter", "comm == 'a'b"), -EINVAL);
	memset(text, 'a', sizeof(text) - 1);
	memcpy(text, "comm == ", 8);
	assert_int_equal(write_file("events/sched/sched_wakeup/filter", text), -EINVAL);
	/* One comparison too many: 17. */
	for (u32 i = 0; i < 17; i++)
		snprintf(text + 8 * i, sizeof(text) - 8 * i, "pid==1%s", i < 16 ? "||" : "");
	assert_int_equal(write_file("events/sched/sched_wakeup/filter", text), -EINVAL);
	assert_string_equal(read_file("events/sched/sched_wakeup/filter"), "none\n");
}

/* The truth of a filter of the bits of id, as random() has made it. */
struct expression {
	char text[200];
	u16 truth; /* bit n: of id == n */
};

static u32 next_random(u32 below)
{
	static u64 random = 1;

	random = random * 6364136223846793005ull + 1442695040888963407ull;
	return (random >> 33) % below;
}

static struct expression make_expression(u32 depth)
{
	struct expression made, left, right;
	bool is_and = next_random(2);
	u32 bit = next_random(4);

	if (!depth) {
		snprintf(made.text, sizeof(made.text), "id & %u", 1u << bit);
		made.truth = 0;
		for (u32 id = 0; id < 16; id++)
			made.truth |= (id >> bit & 1) << id;
		return made;
	}
	left = make_expression(depth - 1);
	right = make_expression(next_random(depth));
	made.truth = is_and ? left.truth & right.truth : left.truth | right.truth;
	switch (next_random(3)) {
	case 0:
		made.truth = ~made.truth;
		snprintf(made.text, sizeof(made.text), "!((%.80s) %s (%.80s))", left.text,
			 is_and ? "&&" : "||", right.text);
		break;
	case 1:
		made.truth = is_and ? (u16)~left.truth & right.truth :
				      (u16)~left.truth | right.truth;
		snprintf(made.text, sizeof(made.text), "(! (%.80s)%s(%.80s))", left.text,
			 is_and ? "&&" : "||", right.text);
		break;
	default:
		snprintf(made.text, sizeof(made.text), "((%.80s) %s  (%.80s))", left.text,
			 is_and ? "&&" : "||", right.text);
		break;
	}
	return made;
}

/* && binds closer than ||, and ! closest. Random filters have the truth of their parts. */
TEST(filters_of_several_comparisons)
{
	assert_int_equal(write_file("set_event", "raw_syscalls:*"), 0);
	assert_int_equal(nr_kept("id == 1 || id == 2 && ret == 3", 1, 0), 1);
	assert_int_equal(nr_kept("id == 1 || id == 2 && ret == 3", 2, 0), 0);
	assert_int_equal(nr_kept("id == 1 || id == 2 && ret == 3", 2, 3), 1);
	assert_int_equal(nr_kept("id==2&&ret==3||id==1", 1, 0), 1);
	assert_int_equal(nr_kept("!id==2&&ret==3", 2, 3), 0);
	assert_int_equal(nr_kept("!id==2&&ret==3", 1, 3), 1);
	/* What trace-cmd writes, so that its own threads leave no events. */
	assert_int_equal(nr_kept("((id > 100))&&((common_pid<4||common_pid>6))", 101, 0), 1);
	assert_int_equal(nr_kept("((id > 100))&&((common_pid<8||common_pid>9))", 101, 0), 1);
	assert_int_equal(nr_kept("((id > 100))&&((common_pid<7||common_pid>9))", 101, 0), 0);
	assert_int_equal(nr_kept("comm == test && id == 1", 1, 0), 1);
	assert_int_equal(nr_kept("COMM ~ x* || id == 2", 1, 0), 0);
	for (u32 i = 0; i < 300; i++) {
		struct expression e = make_expression(1 + i % 3);

		for (u32 id = 0; id < 16; id++) {
			if (nr_kept(e.text, id, 0) != (e.truth >> id & 1))
				fail_msg("%s of %u", e.text, id);
		}
	}
	assert_int_equal(nr_kept("0", 1, 0), 1);
}

TEST(filters_of_functions)
{
	static const char *const filter = "events/kmem/kfree/filter";

	assert_int_equal(write_file("set_event", "kfree"), 0);
	for (u32 i = 0; i < 2; i++) {
		assert_int_equal(write_file(filter, i ? "call_site.function != fn_2" :
							"call_site.function == fn_2"),
				 0);
		profile_trace(kfree, 0xffffffff810001ff, NULL);
		profile_trace(kfree, 0xffffffff81000200, NULL);
		profile_trace(kfree, 0xffffffff810002ff, NULL);
		profile_trace(kfree, 0xffffffff81000300, NULL);
		assert_non_null(strstr(read_file("trace"), "entries-written: 2/2 "));
		assert_int_equal(!strstr(events(), "fn_2"), i);
		assert_int_equal(truncate_file("trace"), 0);
	}
	assert_int_equal(write_file(filter, "0"), 0);
}

/* A filter of a system is that of each of its events that has the fields. */
TEST(filters_of_systems)
{
	assert_int_equal(write_file("events/sched/filter", "prev_pid == 3"), 0);
	assert_string_equal(read_file("events/sched/sched_switch/filter"), "prev_pid == 3\n");
	assert_string_equal(read_file("events/sched/sched_wakeup/filter"), "none\n");
	assert_non_null(
		strstr(read_file("events/sched/filter"), "sched:sched_switch prev_pid == 3\n"));
	assert_int_equal(write_file("events/sched/filter", "id == 3"), -EINVAL);
	assert_int_equal(write_file("events/filter", "common_pid != 3"), 0);
	assert_string_equal(read_file("events/filter"), "common_pid != 3\n");
	assert_int_equal(write_file("events/filter", "0"), 0);
	assert_string_equal(read_file("events/filter"), "none\n");
}

/* error_log shows what is wrong, and where. */
TEST(errors)
{
	assert_int_equal(truncate_file("error_log"), 0);
	assert_string_equal(read_file("error_log"), "");
	assert_int_equal(write_file("events/sched/filter", "  pid == 3 && xyz == 1"), -EINVAL);
	assert_string_equal(read_file("error_log"),
			    "[    5.000000] event filter parse error: error: no such field\n"
			    "  Command: pid == 3 && xyz == 1\n"
			    "                       ^\n");
	for (u32 i = 0; i < 8; i++)
		assert_int_equal(write_file("events/sched/filter", "pid ="), -EINVAL);
	assert_null(strstr(read_file("error_log"), "xyz"));
}

static u32 nr_recorded(void)
{
	u32 nr = ring_totals(0).nr;

	assert_int_equal(truncate_file("trace"), 0);
	return nr;
}

/* set_event_pid has threads, and with event-fork those that they create. */
TEST(threads)
{
	struct task child = { .proc = &process };

	assert_string_equal(read_file("set_event_pid"), "");
	assert_int_equal(write_file("set_event", "sys_exit sched_switch"), 0);
	assert_int_equal(write_file("set_event_pid", "8 10"), 0);
	assert_string_equal(read_file("set_event_pid"), "8\n10\n");
	profile_trace(sys_exit, 1, 0);
	assert_int_equal(nr_recorded(), 0);
	assert_int_equal(write_file("set_event_pid", "7"), 0);
	profile_trace(sys_exit, 1, 0);
	assert_int_equal(nr_recorded(), 1);
	/* A switch to a thread of the set is recorded, too. */
	host_tid = 3;
	host_other_tid = 7;
	profile_trace(sched_switch, &task, &child);
	profile_trace(sys_exit, 1, 0);
	assert_int_equal(nr_recorded(), 1);
	host_tid = 7;

	host_other_tid = 9;
	profile_task_init(&child);
	assert_string_equal(read_file("set_event_pid"), "7\n8\n10\n");
	assert_int_equal(write_file("options/event-fork", "1"), 0);
	profile_task_init(&child);
	assert_string_equal(read_file("set_event_pid"), "7\n8\n9\n10\n");
	host_tid = 3; /* a creator that is not in the set: number 9 is used again */
	profile_task_init(&child);
	assert_string_equal(read_file("set_event_pid"), "7\n8\n10\n");
	host_other_tid = 0;
	host_tid = 7;

	assert_int_equal(write_file("set_event_pid", "x"), -EINVAL);
	assert_int_equal(write_file("set_event_pid", "0"), -EINVAL);
	assert_int_equal(write_file("set_event_pid", "32768"), -EINVAL);
	assert_int_equal(truncate_file("set_event_pid"), 0);
	assert_string_equal(read_file("set_event_pid"), "");
	profile_trace(sys_exit, 1, 0);
	assert_int_equal(nr_recorded(), 1);
	assert_int_equal(write_file("options/event-fork", "0"), 0);
}

TEST(options)
{
	assert_non_null(strstr(read_file("trace_options"), "noevent-fork\n"));
	assert_non_null(strstr(read_file("trace_options"), "\noverwrite\n"));
	assert_int_equal(write_file("trace_options", "nooverwrite event-fork"), 0);
	assert_string_equal(read_file("options/overwrite"), "0\n");
	assert_string_equal(read_file("options/event-fork"), "1\n");
	assert_int_equal(write_file("trace_options", "overwrite,noevent-fork\n"), 0);
	assert_string_equal(read_file("options/overwrite"), "1\n");
	assert_int_equal(write_file("trace_options", "nosuch"), -EINVAL);
	assert_int_equal(write_file("options/overwrite", "2"), -EINVAL);
}

/* README says what files accept, among them those of events. */
TEST(readme)
{
	const char *text = read_file("README");

	assert_non_null(strstr(text, "\n  tracing_on\n\t0|1\n"));
	assert_non_null(strstr(text, "\n  events/<system>/<event>/trigger\n\t[!]hist:keys="));
	assert_non_null(strstr(text, "\noverwrite\n"));
	assert_null(strstr(text, "\n  available_events\n")); /* cannot be written to */
	assert_string_equal(read_file("printk_formats"), "");
}

/* A program's text is an event of its thread, without its newline. A long one is truncated. */
TEST(marker)
{
	static char text[4095];

	/* It gets its rings itself, and no more events than this one. */
	assert_int_equal(write_file("buffer_size_kb", "0"), 0);
	for (u32 len = 0; len < 20; len++) {
		memset(text, 'a' + len, len);
		text[len] = '\0';
		assert_int_equal(write_file("trace_marker", text), 0);
		text[len] = '\n';
		assert_non_null(strstr(events(), ": "));
		assert_int_equal(strcspn(strrchr(events(), ' ') + 1, "\n"), len);
		assert_int_equal(nr_recorded(), 1);
	}
	memset(text, 'x', 4094);
	assert_int_equal(write_file("trace_marker", text), 0);
	assert_int_equal(strlen(strrchr(events(), ' ')),
			 1 + 255 + 1); /* as all texts are printed */
	assert_int_equal(write_file("trace_marker", "a\033b\nc"), 0);
	assert_non_null(strstr(events(), ": a?b?c\n"));
}

TEST(cpus)
{
	assert_string_equal(read_file("tracing_cpumask"), "f\n"); /* of 4 CPUs */
	assert_int_equal(write_file("set_event", "sys_exit"), 0);
	profile_trace(sys_exit, 1, 0);
	assert_int_equal(write_file("tracing_cpumask", "6"), 0);
	assert_string_equal(read_file("tracing_cpumask"), "6\n");
	profile_trace(sys_exit, 1, 0);
	assert_int_equal(nr_recorded(), 1);
	assert_int_equal(write_file("tracing_cpumask", "00000000,0000000F\n"), 0);
	assert_string_equal(read_file("tracing_cpumask"), "f\n");
	profile_trace(sys_exit, 1, 0);
	assert_int_equal(nr_recorded(), 1);
	assert_int_equal(write_file("tracing_cpumask", ""), -EINVAL);
	assert_int_equal(write_file("tracing_cpumask", "0x3"), -EINVAL);
}

/* poll() finds a stream ready while it has events. */
TEST(ready)
{
	const os_trace_file_t *all = host_trace_file("trace_pipe");
	const os_trace_file_t *second = host_trace_file("per_cpu/cpu1/trace_pipe");

	assert_int_equal(write_file("set_event", "sys_exit"), 0);
	assert_false(all->ready(all->arg));
	profile_trace(sys_exit, 1, 0);
	assert_true(all->ready(all->arg));
	assert_false(second->ready(second->arg));
	read_file("trace_pipe");
	assert_false(all->ready(all->arg));
}
