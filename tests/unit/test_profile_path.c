// SPDX-License-Identifier: BSD-2-Clause
/*
 * The walk along the critical path, on events that are made up. A cycle is a nanosecond. Each test
 * lists the segments, the latest first; walk() also checks that they cover the scope.
 */
#include "unit.h"

#include "../../kernel/profile/findings.h"
#include "../../kernel/profile/path/path.h"

#define MAX_FOUND 64

static struct path_segment found[MAX_FOUND];
static u32 nr_found;

/* Threads 1 to 9 are of process 1, 10 to 19 of process 10; others are kernel threads. */
static u32 pid_of(u32 tid)
{
	return tid >= 20 ? 0 : tid >= 10 ? 10 : tid ? 1 : 0;
}

/* A function has 16 bytes. */
static void set_function(struct path_segment *segment)
{
	segment->function[0] = segment->map;
	segment->function[1] = segment->pc / 16;
}

static const struct path_names names = { pid_of, set_function };

static void visit(const struct path_segment *segment)
{
	assert_true(nr_found < MAX_FOUND);
	found[nr_found++] = *segment;
}

static bool joins_ticks;

static void walk_from(u64 begin, u64 end, u32 cpu, u32 tid, u32 pid)
{
	const struct path_scope scope = { begin, end, cpu, tid, pid, joins_ticks };
	u64 at = end;

	nr_found = 0;
	path_visit(&scope, &names, visit);
	for (u32 i = 0; i < nr_found; i++) {
		assert_true(found[i].from_ns < found[i].to_ns);
		assert_int_equal(found[i].to_ns, at);
		at = found[i].from_ns;
	}
	assert_int_equal(at, begin);
}

static void walk(u64 end, u32 cpu, u32 tid)
{
	walk_from(0, end, cpu, tid, 0);
}

#define expect(nr, from, tid_, cause_)                     \
	do {                                               \
		assert_true((nr) < nr_found);              \
		assert_int_equal(found[nr].from_ns, from); \
		assert_int_equal(found[nr].tid, tid_);     \
		assert_int_equal(found[nr].cause, cause_); \
	} while (0)

static void add(struct path_event event)
{
	assert_true(path_add(&event));
}

static void add_switch(u64 now, u32 cpu, u32 from, bool asleep, u32 to)
{
	add((struct path_event){ now, cpu, from, PATH_SWITCH, .other = to, .value = asleep });
}

static void add_wake(u64 now, u32 cpu, u32 by, u32 task)
{
	add((struct path_event){ now, cpu, by, PATH_WAKE, .other = task });
}

static void add_irq_wake(u64 now, u32 cpu, u32 current, u32 task)
{
	add((struct path_event){ now, cpu, current, PATH_WAKE, true, .other = task });
}

static void add_kind(u64 now, u32 cpu, u32 tid, enum path_kind kind, u64 value)
{
	add((struct path_event){ now, cpu, tid, kind, .value = value });
}

static void add_sample(u64 now, u32 cpu, u32 tid, u64 pc)
{
	add((struct path_event){ now, cpu, tid, PATH_SAMPLE, .other = 1, .value = pc, .map = 7 });
}

static void add_fork(u64 now, u32 cpu, u32 tid, u32 child)
{
	add((struct path_event){ now, cpu, tid, PATH_FORK, .other = child });
	add_wake(now, cpu, tid, child);
}

static int set_up(void **state)
{
	path_begin();
	joins_ticks = false;
	return 0;
}

static int tear_down(void **state)
{
	path_free();
	return 0;
}

#define TEST(name) HOST_TEST_WITH(name, set_up, tear_down)

/* Thread 1 sleeps in a call until thread 2 wakes it, on another CPU. */
TEST(wake_by_thread)
{
	add_fork(10, 0, 1, 2);
	add_switch(12, 1, 0, false, 2);
	add_kind(20, 0, 1, PATH_ENTER, 5);
	add_switch(25, 0, 1, true, 0);
	add_kind(60, 1, 2, PATH_ENTER, 8);
	add_wake(70, 1, 2, 1);
	add_switch(73, 0, 0, false, 1);
	add_kind(80, 0, 1, PATH_LEAVE, 5);
	walk(100, 0, 1);
	expect(0, 80, 1, PATH_IN_USER);
	expect(1, 73, 1, PATH_IN_CALL);
	assert_int_equal(found[1].call, 5);
	expect(2, 70, 1, PATH_FOR_A_CPU);
	assert_int_equal(found[2].holder, 0);
	expect(3, 60, 2, PATH_IN_CALL);
	assert_int_equal(found[3].call, 8);
	expect(4, 12, 2, PATH_IN_USER);
	expect(5, 10, 2, PATH_FOR_A_CPU);
	/* Nothing is known of what its creator did before. */
	expect(6, 0, 0, PATH_UNKNOWN);
	assert_int_equal(nr_found, 7);
}

/* A timer, a device, another interrupt, and nobody known end four sleeps. */
TEST(causes_of_sleeps)
{
	add_kind(10, 0, 1, PATH_ENTER, 35);
	add_switch(11, 0, 1, true, 0);
	add_kind(20, 0, 0, PATH_TIMER, 0);
	add_irq_wake(21, 0, 0, 1);
	add_kind(22, 0, 0, PATH_IRQ_END, 0);
	add_switch(23, 0, 0, false, 1);
	add_switch(31, 0, 1, true, 0);
	add_kind(40, 1, 3, PATH_DEVICE, 0);
	add_irq_wake(41, 1, 3, 1);
	add_kind(42, 1, 3, PATH_IRQ_END, 0);
	add_switch(43, 0, 0, false, 1);
	add_switch(51, 0, 1, true, 0);
	add_irq_wake(61, 0, 0, 1);
	add_switch(63, 0, 0, false, 1);
	add_switch(71, 0, 1, true, 0);
	add_switch(83, 0, 0, false, 1);
	walk_from(10, 90, 0, 1, 0);
	expect(0, 83, 1, PATH_IN_CALL);
	expect(1, 71, 1, PATH_UNKNOWN);
	expect(2, 63, 1, PATH_IN_CALL);
	expect(3, 61, 1, PATH_FOR_A_CPU);
	expect(4, 51, 1, PATH_UNTIL_TIMER);
	expect(6, 41, 1, PATH_FOR_A_CPU);
	expect(7, 31, 1, PATH_UNTIL_DEVICE);
	expect(8, 23, 1, PATH_IN_CALL);
	/* The interrupt on the idle CPU is before the thread runs: not its own time. */
	expect(9, 21, 1, PATH_FOR_A_CPU);
	expect(10, 11, 1, PATH_UNTIL_TIMER);
	assert_int_equal(found[10].call, 35);
	assert_int_equal(found[10].cpu, PATH_NO_CPU);
	expect(11, 10, 1, PATH_IN_CALL);
	assert_int_equal(nr_found, 12);
}

/* What a thread does: interrupts are in faults, faults in calls. */
TEST(contexts)
{
	add_kind(10, 0, 1, PATH_ENTER, 0);
	add_kind(20, 0, 1, PATH_FAULT, 0);
	add_kind(30, 0, 1, PATH_TIMER, 0);
	add_kind(35, 0, 1, PATH_IRQ_END, 0);
	add_kind(40, 0, 1, PATH_FAULT_END, 0);
	add_kind(50, 0, 1, PATH_LEAVE, 0);
	add_kind(60, 0, 1, PATH_EXIT, 0);
	walk_from(10, 70, 0, 1, 0);
	expect(0, 60, 1, PATH_IN_EXIT);
	expect(1, 50, 1, PATH_IN_USER);
	expect(2, 40, 1, PATH_IN_CALL);
	expect(3, 20, 1, PATH_IN_FAULT);
	assert_int_equal(found[3].call, 0);
	/* A timer interrupt does not divide what it interrupts. */
	assert_int_equal(found[3].irq_ns, 5);
	expect(4, 10, 1, PATH_IN_CALL);
	assert_int_equal(nr_found, 5);
}

/* Interrupts that are segments of their own: of a device, and between two different segments. */
TEST(interrupts)
{
	add_kind(10, 0, 1, PATH_ENTER, 0);
	add_kind(20, 0, 1, PATH_DEVICE, 0);
	add_kind(25, 0, 1, PATH_IRQ_END, 0);
	add_kind(30, 0, 1, PATH_LEAVE, 0);
	add_kind(30, 0, 1, PATH_TIMER, 0);
	add_sample(33, 0, 1, 0x100);
	add_kind(35, 0, 1, PATH_IRQ_END, 0);
	walk_from(10, 40, 0, 1, 0);
	expect(0, 35, 1, PATH_IN_USER);
	expect(1, 30, 1, PATH_IN_IRQ);
	assert_int_equal(found[1].irq, PATH_TIMER);
	expect(2, 25, 1, PATH_IN_CALL);
	expect(3, 20, 1, PATH_IN_IRQ);
	assert_int_equal(found[3].irq, PATH_DEVICE);
	expect(4, 10, 1, PATH_IN_CALL);
	assert_int_equal(nr_found, 5);
}

/* Where CPUs take turns, ticks are of what they interrupt; a device's interrupts are not. */
TEST(joined_ticks)
{
	joins_ticks = true;
	add_kind(10, 0, 1, PATH_ENTER, 0);
	add_kind(20, 0, 1, PATH_DEVICE, 0);
	add_kind(25, 0, 1, PATH_IRQ_END, 0);
	add_kind(27, 0, 1, PATH_TIMER, 0);
	add_kind(28, 0, 1, PATH_IRQ_END, 0);
	add_kind(30, 0, 1, PATH_LEAVE, 0);
	add_kind(30, 0, 1, PATH_TIMER, 0);
	add_sample(33, 0, 1, 0x100);
	add_kind(35, 0, 1, PATH_IRQ_END, 0);
	walk_from(10, 40, 0, 1, 0);
	expect(0, 30, 1, PATH_IN_USER);
	assert_int_equal(found[0].irq_ns, 0);
	expect(1, 25, 1, PATH_IN_CALL);
	expect(2, 20, 1, PATH_IN_IRQ);
	expect(3, 10, 1, PATH_IN_CALL);
	assert_int_equal(nr_found, 4);
}

/* Samples of the kernel count outside of calls: on the way back to user mode. */
TEST(return_to_user)
{
	const struct path_event sample = {
		.cycles = 30, .tid = 1, .kind = PATH_SAMPLE, .value = 0x800
	};

	add_kind(10, 0, 1, PATH_ENTER, 0);
	add((struct path_event){ 15, 0, 1, PATH_SAMPLE, .value = 0x700 });
	add_kind(20, 0, 1, PATH_LEAVE, 0);
	add(sample);
	add_sample(40, 0, 1, 0x100);
	walk_from(10, 50, 0, 1, 0);
	expect(0, 35, 1, PATH_IN_USER);
	expect(1, 20, 1, PATH_IN_KERNEL);
	assert_int_equal(found[1].pc, 0x800);
	expect(2, 10, 1, PATH_IN_CALL);
	assert_int_equal(nr_found, 3);
}

/* User code is in the function of the nearest sample; segments of one function are one. */
TEST(nearest_sample)
{
	add_kind(10, 0, 1, PATH_LEAVE, 0);
	add_sample(20, 0, 1, 0x100);
	add_sample(30, 0, 1, 0x104);
	add_sample(40, 0, 1, 0x200);
	add_switch(50, 0, 1, false, 2);
	add_switch(90, 0, 2, false, 1);
	walk_from(10, 100, 0, 1, 0);
	expect(0, 90, 1, PATH_IN_USER);
	assert_int_equal(found[0].function[1], 0x20);
	/* Thread 2 has the CPU meanwhile, and no sample. */
	expect(1, 50, 2, PATH_IN_USER);
	assert_int_equal(found[1].waiter, 1);
	assert_int_equal(found[1].pc, 0);
	expect(2, 35, 1, PATH_IN_USER);
	assert_int_equal(found[2].function[1], 0x20);
	expect(3, 10, 1, PATH_IN_USER);
	assert_int_equal(found[3].function[1], 0x10);
	assert_int_equal(found[3].function[0], 7);
	assert_int_equal(nr_found, 4);
}

/* A page fault is at an exact place. Its end says in which code map. */
TEST(place_of_fault)
{
	add_kind(10, 0, 1, PATH_FAULT, 0x123);
	add((struct path_event){ 20, 0, 1, PATH_FAULT_END, .map = 9 });
	walk_from(10, 20, 0, 1, 0);
	expect(0, 10, 1, PATH_IN_FAULT);
	assert_int_equal(found[0].pc, 0x123);
	assert_int_equal(found[0].map, 9);
}

/* Two threads share a CPU. One is preempted; the other one's system call fills the time. */
TEST(ready)
{
	add_kind(10, 0, 1, PATH_LEAVE, 0);
	add_switch(20, 0, 1, false, 2);
	add_kind(30, 0, 2, PATH_ENTER, 1);
	add_switch(40, 0, 2, false, 1);
	walk_from(10, 50, 0, 1, 0);
	expect(0, 40, 1, PATH_IN_USER);
	expect(1, 30, 2, PATH_IN_CALL);
	assert_int_equal(found[1].waiter, 1);
	expect(2, 20, 2, PATH_IN_USER);
	expect(3, 10, 1, PATH_IN_USER);
	assert_int_equal(found[3].waiter, 0);
	assert_int_equal(nr_found, 4);
}

/* In the report of a process, others that have its CPU are not looked into. */
TEST(other_process_has_the_cpu)
{
	add_kind(10, 0, 1, PATH_LEAVE, 0);
	add_switch(20, 0, 1, false, 12);
	add_kind(30, 0, 12, PATH_ENTER, 1);
	add_switch(40, 0, 12, false, 1);
	walk_from(10, 50, 0, 1, 1);
	expect(1, 20, 1, PATH_FOR_A_CPU);
	assert_int_equal(found[1].holder, 12);
	assert_int_equal(nr_found, 3);
	/* Control: the report of the run looks into them. */
	walk_from(10, 50, 0, 1, 0);
	expect(1, 30, 12, PATH_IN_CALL);
}

/* The thread that a thread woke while it was preempted itself goes on at the wake-up. */
TEST(woken_before_the_waker_was_preempted)
{
	add_switch(5, 1, 1, true, 0);
	add_kind(10, 0, 2, PATH_LEAVE, 0);
	add_wake(20, 0, 2, 1);
	add_switch(30, 0, 2, false, 3);
	add_switch(60, 0, 3, false, 1);
	walk_from(10, 70, 0, 1, 0);
	expect(0, 60, 1, PATH_IN_USER);
	expect(1, 30, 3, PATH_IN_USER);
	expect(2, 20, 2, PATH_IN_USER);
	assert_int_equal(found[2].waiter, 1);
	expect(3, 10, 2, PATH_IN_USER);
	assert_int_equal(found[3].waiter, 0);
}

/* A kernel thread that does the work is on the path. */
TEST(kernel_thread)
{
	add_switch(10, 0, 1, true, 25);
	add_wake(40, 0, 25, 1);
	add_switch(50, 0, 25, true, 1);
	walk_from(10, 60, 0, 1, 0);
	expect(1, 40, 25, PATH_IN_KERNEL_THREAD);
	assert_int_equal(found[1].waiter, 1);
	expect(2, 10, 25, PATH_IN_KERNEL_THREAD);
}

/* The first program begins in the kernel, until its execve. */
TEST(start)
{
	add_wake(10, 0, 25, 1);
	add_switch(12, 0, 25, true, 1);
	add_kind(20, 0, 1, PATH_EXEC, 0);
	walk_from(10, 30, 0, 1, 0);
	expect(0, 20, 1, PATH_IN_USER);
	expect(1, 12, 1, PATH_IN_START);
}

/* Missing events: only what comes after them is known. */
TEST(lost_events)
{
	add_kind(10, 0, 1, PATH_ENTER, 0);
	path_forget(40);
	add_kind(40, 0, 1, PATH_LEAVE, 0);
	add_kind(50, 0, 1, PATH_ENTER, 3);
	walk(60, 0, 1);
	expect(0, 50, 1, PATH_IN_CALL);
	expect(1, 40, 1, PATH_IN_USER);
	expect(2, 0, 0, PATH_NOT_RECORDED);
	assert_int_equal(path_known_cycles(), 40);
}

/* The clocks of two CPUs differ: a thread runs before it is woken. The walk ends, without a gap. */
TEST(wake_too_late)
{
	add_switch(10, 0, 1, true, 0);
	add_kind(12, 1, 2, PATH_LEAVE, 0);
	add_switch(20, 0, 0, false, 1);
	add_wake(21, 1, 2, 1);
	walk_from(10, 30, 0, 1, 0);
	expect(0, 20, 1, PATH_IN_USER);
	expect(1, 10, 1, PATH_UNKNOWN);
	assert_int_equal(nr_found, 2);
}

/* Events at and after the end, and a scope that begins in the middle of a segment. */
TEST(scope)
{
	add_kind(10, 0, 1, PATH_ENTER, 1);
	add_kind(30, 0, 1, PATH_LEAVE, 1);
	add_kind(50, 0, 1, PATH_ENTER, 2);
	walk_from(20, 40, 0, 1, 0);
	expect(0, 30, 1, PATH_IN_USER);
	expect(1, 20, 1, PATH_IN_CALL);
	assert_int_equal(nr_found, 2);
	walk_from(40, 40, 0, 1, 0);
	assert_int_equal(nr_found, 0);
}

TEST(no_event)
{
	walk(100, 0, 1);
	expect(0, 0, 0, PATH_UNKNOWN);
	assert_int_equal(nr_found, 1);
}

TEST(no_memory)
{
	const struct path_event event = { .cycles = 10, .tid = 1, .kind = PATH_ENTER };

	path_free();
	host_fail_alloc = 1;
	assert_false(path_add(&event));
	host_fail_alloc = 0;
	assert_true(path_add(&event));
}

static u32 random_below(u32 limit)
{
	static u64 state = 1;

	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 33) % limit;
}

/* Whatever the events are, the walk ends and covers the scope. walk_from() checks that. */
static void ignore(const struct path_segment *segment)
{
	assert_true(segment->from_ns < segment->to_ns);
	assert_true(!nr_found || segment->to_ns == found[0].from_ns);
	found[0] = *segment;
	nr_found = 1;
}

TEST(random_events)
{
	for (u32 run = 0; run < 200; run++) {
		struct path_scope scope = { .end_ns = 10000 };
		u64 now = 0;

		path_begin();
		for (u32 i = 0; i < 2000; i++) {
			now += random_below(6);
			if (!random_below(1500))
				path_forget(now);
			add((struct path_event){ now, random_below(HOST_NR_CPUS), random_below(30),
						 random_below(PATH_SAMPLE + 1), !random_below(8),
						 random_below(30), random_below(4),
						 random_below(3) });
		}
		for (scope.cpu = 0; scope.cpu < HOST_NR_CPUS; scope.cpu++) {
			scope.begin_ns = random_below(9000);
			nr_found = 0;
			path_visit(&scope, &names, ignore);
			assert_int_equal(found[0].from_ns, scope.begin_ns);
		}
	}
}

/* findings.c would ask all profilers. */
void report_find(const struct finding_scope *scope)
{
}

static void call(u32 tid, u32 number, long result, bool is_of_report)
{
	add((struct path_event){ 1, 0, tid, PATH_ENTER, .value = number });
	add((struct path_event){ 2, 0, tid, PATH_LEAVE, .other = is_of_report, .value = result });
}

/* Returns the line about results, when a call has all of the path and another one has half. */
static const char *results_of(u32 number, u32 other)
{
	struct path_row rows[] = {
		{ .ns = 10, .example = { .call = number } },
		{ .ns = 5, .example = { .call = other } },
		{ .ns = 900, .example = { .cause = PATH_NOT_RECORDED, .call = PATH_NO_CALL } },
	};

	host_log_clear();
	path_print_results(rows, PF_ARRAY_SIZE(rows), 950);
	return host_log;
}

/* Averages are of the calls that did not fail, of threads of the report. */
TEST(results)
{
	path_begin_results();
	call(1, 0, 1, true);
	call(2, 0, 2, true);
	call(3, 0, -4, true);
	call(4, 0, 4096, false);
	for (u32 i = 0; i < 1200; i++)
		call(1, 232, i == 5, true);
	call(1, 217, 10000, true);
	call(1, 2, 3, true);
	add((struct path_event){ 9, 0, 5, PATH_LEAVE, .other = true, .value = 7 }); /* no begin */
	assert_string_equal(results_of(0, 232), "calls: sys_read returned 1.5 bytes on average; "
						"sys_epoll_wait found nothing ready in 1,199 of "
						"1,200 calls\n");
	assert_string_equal(results_of(217, 2),
			    "calls: sys_getdents64 returned 10 KiB on average\n");
	assert_string_equal(results_of(2, 1000), "");
	path_forget(7);
	call(1, 0, 1, true);
	assert_string_equal(results_of(PATH_NO_CALL, 0),
			    "calls, as far as they are recorded: sys_read returned 1.3 bytes on "
			    "average\n");
}

/* A call with less than a tenth of the path is not told. */
/* names.c would read symbols. Here a function's map is its name's index. */
static char function_names[4][PATH_NAME_BYTES] = { "-", "main" };
const char *const path_cause_names[NR_PATH_CAUSES] = { [PATH_IN_USER] = "user code" };

void path_user_name(u32 map, u64 pc, char name[PATH_NAME_BYTES])
{
	os_strscpy(name, function_names[map], PATH_NAME_BYTES);
}

void path_function_name(const struct path_segment *segment, char name[PATH_NAME_BYTES])
{
	path_user_name(segment->map, segment->pc, name);
}

/* The line cuts long names, but does not join two of them that begin alike. */
TEST(long_names_in_line)
{
	const struct path_scope scope = { .end_ns = 600 * NS_PER_MSEC };
	struct path_row rows[] = {
		{ .ns = 300 * NS_PER_MSEC, .example = { .cause = PATH_IN_USER, .map = 2 } },
		{ .ns = 200 * NS_PER_MSEC, .example = { .cause = PATH_IN_USER, .map = 3 } },
		{ .ns = 60 * NS_PER_MSEC, .example = { .cause = PATH_IN_USER, .map = 1 } },
		{ .ns = 40 * NS_PER_MSEC, .example = { .cause = PATH_IN_USER } },
	};
	char expected[256], name[PATH_PART_BYTES];

	for (u32 map = 2; map < 4; map++) {
		memset(function_names[map], 'x', 100);
		function_names[map][100] = '0' + map;
	}
	rows[2].caller_pc = 1;
	rows[2].caller_map = 1;
	rows[2].caller_share = 9000;
	path_make_parts(rows, PF_ARRAY_SIZE(rows));
	host_log_clear();
	path_print_line(&scope);
	os_snprintf(expected, sizeof(expected),
		    "critical path: 0.600 s = %.63s~ 0.300 + %.63s~ 0.200 + main() called from "
		    "main() (90 %%) 0.060 + user code 0.040\n",
		    function_names[2], function_names[2]);
	assert_string_equal(host_log, expected);
	path_part_name(&rows[1], name);
	assert_string_equal(name + 100, "3()");
}

TEST(results_of_short_calls)
{
	struct path_row row = { .ns = 99, .example = { .call = 0 } };

	path_begin_results();
	call(1, 0, 512, true);
	host_log_clear();
	path_print_results(&row, 1, 1000);
	assert_string_equal(host_log, "");
	row.ns = 100;
	path_print_results(&row, 1, 1000);
	assert_string_equal(host_log, "calls: sys_read returned 512 bytes on average\n");
}
