// SPDX-License-Identifier: BSD-2-Clause
/* Tests events: their files and switches, and the text of the rings. */

#include "trace_files_unit.h"

#define TEST(name) HOST_TEST_WITH(name, set_up, NULL)

TEST(format)
{
	const char *text = read_file("events/sched/sched_switch/format");

	assert_int_equal(strncmp(text, "name: sched_switch\nID: 1", 24), 0);
	assert_non_null(strstr(
		text, "\nformat:\n"
		      "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		      "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		      "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		      "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
		      "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
		      "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
		      "\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n"
		      "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
		      "\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n"
		      "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n"
		      "\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n\n"
		      "print fmt: \"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s ==> "
		      "next_comm=%s next_pid=%d next_prio=%d\", REC->prev_comm, "));
	assert_non_null(
		strstr(read_file("events/irq/irq_handler_entry/format"),
		       "\tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n"));
	assert_non_null(
		strstr(read_file("events/raw_syscalls/sys_enter/format"),
		       "\tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;\n"));
	text = read_file("events/lock/contention_begin/format");
	assert_non_null(strstr(text, "\nprint fmt: \"%p (flags=%s)\", REC->lock_addr, "
				     "__print_flags(REC->flags, \"|\", { 1, \"SPIN\" }, "));
}

TEST(lines)
{
	assert_int_equal(write_file("set_event", "sched:sched_switch,irq raw_syscalls\n"), 0);
	profile_trace(sched_switch, &task, &task);
	host_now += 1500;
	host_trace_flags = PROFILE_TRACE_IRQS_OFF | PROFILE_TRACE_HARDIRQ;
	profile_trace(irq_handler_entry, 4, "a name that is too long for it");
	host_trace_flags |= PROFILE_TRACE_NMI;
	profile_trace(sys_exit, 39, -11);
	host_tid = 0;
	host_trace_flags = 0;
	profile_trace(irq_handler_exit, 4, true);
	profile_trace(sched_process_exit, &task); /* this event is off */
	assert_string_equal(
		events(),
		"            test-7       [000] .....     5.000000: sched_switch: prev_comm=test "
		"prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=test next_pid=7 "
		"next_prio=120\n"
		"            test-7       [000] d.h..     5.000002: irq_handler_entry: irq=4 "
		"name=a name that is \n"
		"            test-7       [000] d.Z..     5.000002: sys_exit: NR 39 = -11\n"
		"          <idle>-0       [000] .....     5.000002: irq_handler_exit: irq=4 "
		"ret=handled\n");
	assert_non_null(strstr(read_file("trace"), "# tracer: nop\n#\n# entries-in-buffer/"
						   "entries-written: 4/4   #P:3\n"));
	assert_int_equal(truncate_file("trace"), 0);
	assert_string_equal(events(), "");
}

/* A thread's name cannot forge a line. The name of a thread may be unknown. */
TEST(names_forge_no_line)
{
	snprintf(host_comm, sizeof(host_comm), "a\n[000]\x1b");
	profile_trace_task(&task);
	assert_int_equal(write_file("set_event", "sched_process_exit"), 0);
	profile_trace(sched_process_exit, &task);
	host_tid = 7 + 4096;
	profile_trace(sched_process_exit, &task);
	assert_string_equal(
		events(), "        a?[000]?-7       [000] .....     5.000000: sched_process_exit: "
			  "comm=a?[000]? pid=7 prio=120\n"
			  "           <...>-4103    [000] .....     5.000000: sched_process_exit: "
			  "comm=a?[000]? pid=4103 prio=120\n");
}

/* The size of saved_cmdlines stays the same while a tool reads it, with recording off. */
TEST(names_stay_while_nothing_is_recorded)
{
	assert_int_equal(write_file("set_event", "sched_process_exit"), 0);
	assert_int_equal(write_file("tracing_on", "0"), 0);
	snprintf(host_comm, sizeof(host_comm), "other");
	host_tid = 8;
	profile_trace_task(&task);
	assert_null(strstr(read_file("saved_cmdlines"), "8 other\n"));
	assert_int_equal(write_file("tracing_on", "1"), 0);
	assert_non_null(strstr(read_file("saved_cmdlines"), "8 other\n"));
	assert_non_null(strstr(read_file("saved_cmdlines"), "7 test\n"));
}

TEST(cpus_are_merged)
{
	const char *text;
	char line[128];

	assert_int_equal(write_file("set_event", "timer:*"), 0);
	for (u32 i = 0; i < 6; i++) {
		host_cpu = i % 3;
		host_now += 1000000;
		profile_trace(timer_expire_exit, (void *)(u64)(i + 1));
	}
	host_cpu = 0;
	text = events();
	for (u32 i = 0; i < 6; i++) {
		snprintf(line, sizeof(line),
			 "            test-7       [00%u] .....     5.00%u000: "
			 "timer_expire_exit: timer=0x000000000000000%u\n",
			 i % 3, i + 1, i + 1);
		if (strncmp(text, line, strlen(line)))
			fprintf(stderr, "%s--%s", text, line);
		text += strlen(line);
	}
	assert_string_equal(text, "");
}

/* Reading trace_pipe consumes events. It says how many were lost. */
TEST(pipe)
{
	u32 nr_lines = 0, total = 0;
	const char *text;

	assert_int_equal(write_file("set_event", "timer_expire_exit"), 0);
	profile_trace(timer_expire_exit, &task);
	assert_non_null(strstr(read_file("trace_pipe"), ": timer_expire_exit: "));
	assert_string_equal(read_file("trace_pipe"), "");
	assert_string_equal(events(), "");
	assert_int_equal(write_file("options/overwrite", "0"), 0);
	assert_int_equal(write_file("buffer_size_kb", "8\n"), 0);
	for (u32 i = 0; i < 1000; i++)
		profile_trace(timer_expire_exit, &task);
	do {
		nr_lines = 0;
		for (text = read_file("trace_pipe"); *text; text = strchr(text, '\n') + 1)
			nr_lines++;
		total += nr_lines;
	} while (nr_lines);
	assert_in_range(total, 300, 350);
	profile_trace(timer_expire_exit, &task);
	text = read_file("trace_pipe");
	assert_int_equal(strncmp(text, "CPU:0 [LOST ", 12), 0);
	assert_int_equal(atoi(text + 12), 1000 - total);
	assert_int_equal(write_file("options/overwrite", "1"), 0);
	assert_int_equal(write_file("buffer_size_kb", "1024"), 0);
}

/* Another thread writes the size while a file is being printed. */
static int resize_result;
static bool has_waited, is_resized;

static void note_wait(void)
{
	__atomic_store_n(&has_waited, true, __ATOMIC_RELEASE);
	sched_yield();
}

static void *resize(void *unused)
{
	resize_result = write_file("buffer_size_kb", "16");
	__atomic_store_n(&is_resized, true, __ATOMIC_RELEASE);
	return NULL;
}

static pthread_t resizer;

static void resize_meanwhile(void)
{
	host_on_text = NULL;
	assert_int_equal(pthread_create(&resizer, NULL, resize, NULL), 0);
	while (!__atomic_load_n(&has_waited, __ATOMIC_ACQUIRE) &&
	       !__atomic_load_n(&is_resized, __ATOMIC_ACQUIRE))
		sched_yield();
}

/* A reader of trace_pipe returns soon, so a write of the size waits for it. */
TEST(resize_waits)
{
	const char *text;

	assert_int_equal(write_file("set_event", "timer_expire_exit"), 0);
	for (u32 i = 0; i < 10; i++)
		profile_trace(timer_expire_exit, &task);
	host_on_text = resize_meanwhile;
	host_on_wait = note_wait;
	text = read_file("trace_pipe");
	for (u32 i = 0; i < 10; i++)
		text = strchr(text, '\n') + 1;
	assert_string_equal(text, "");
	pthread_join(resizer, NULL);
	host_on_wait = NULL;
	assert_int_equal(resize_result, 0);
	assert_true(has_waited);
	assert_string_equal(read_file("buffer_size_kb"), "16\n");
	assert_int_equal(write_file("buffer_size_kb", "1024"), 0);
}

/* A reader of `trace` may take any time, so a write of the size fails with EBUSY. */
TEST(resize_fails)
{
	profile_trace(timer_expire_exit, &task);
	has_waited = is_resized = false;
	host_on_text = resize_meanwhile;
	events();
	pthread_join(resizer, NULL);
	assert_int_equal(resize_result, -EBUSY);
}

TEST(no_memory)
{
	const os_trace_file_t *file = host_trace_file("trace");
	const os_trace_file_t *stats = host_trace_file("per_cpu/cpu0/stats");
	static os_text_t text;

	host_fail_alloc = 1;
	assert_int_equal(file->show(&text, file->arg), -ENOMEM);
	assert_int_equal(stats->show(&text, stats->arg), -ENOMEM);
	host_fail_alloc = 0;
	assert_int_equal(write_file("buffer_size_kb", "1024"), 0);
}

static void check_stats(u32 nr_kept, u32 nr_overwritten, u32 nr_lost, u32 nr_read)
{
	const char *stats = read_file("per_cpu/cpu0/stats");
	char start[96], end[64];

	snprintf(start, sizeof(start), "entries: %u\noverrun: %u\ncommit overrun: 0\nbytes: %u\n",
		 nr_kept, nr_overwritten, nr_kept * 24);
	snprintf(end, sizeof(end), "dropped events: %u\nread events: %u\n", nr_lost, nr_read);
	assert_int_equal(strncmp(stats, start, strlen(start)), 0);
	assert_string_equal(strstr(stats, "dropped"), end);
}

/* Each event since the rings were cleared is kept, overwritten, lost or read. */
TEST(stats)
{
	u32 nr_kept, nr_kept_later;

	assert_int_equal(write_file("set_event", "timer_expire_exit"), 0);
	assert_int_equal(write_file("options/overwrite", "0"), 0);
	assert_int_equal(write_file("buffer_size_kb", "8"), 0);
	check_stats(0, 0, 0, 0);
	for (u32 i = 0; i < 1000; i++)
		profile_trace(timer_expire_exit, &task);
	nr_kept = atoi(read_file("per_cpu/cpu0/stats") + strlen("entries: "));
	assert_in_range(nr_kept, 300, 350);
	check_stats(nr_kept, 0, 1000 - nr_kept, 0);
	assert_non_null(
		strstr(read_file("per_cpu/cpu0/stats"), "\noldest event ts:     5.000000\n"));
	while (*read_file("trace_pipe"))
		;
	check_stats(0, 0, 1000 - nr_kept, nr_kept);
	/* Events after the gap are kept; those in the gap still count as lost. */
	profile_trace(timer_expire_exit, &task);
	check_stats(1, 0, 1000 - nr_kept, nr_kept);

	assert_int_equal(write_file("options/overwrite", "1"), 0);
	assert_int_equal(truncate_file("trace"), 0);
	check_stats(0, 0, 0, 0);
	for (u32 i = 0; i < 1000; i++)
		profile_trace(timer_expire_exit, &task);
	nr_kept_later = atoi(read_file("per_cpu/cpu0/stats") + strlen("entries: "));
	assert_in_range(nr_kept_later, 150, 350);
	check_stats(nr_kept_later, 1000 - nr_kept_later, 0, 0);
	read_file("trace_pipe");
	check_stats(nr_kept_later - 64, 1000 - nr_kept_later, 0, 64);
	assert_int_equal(write_file("buffer_size_kb", "1024"), 0);
}

TEST(switches)
{
	assert_string_equal(read_file("events/enable"), "0\n");
	assert_int_equal(write_file("events/sched/enable", "1\n"), 0);
	assert_string_equal(read_file("events/enable"), "X\n");
	assert_string_equal(read_file("events/sched/enable"), "1\n");
	assert_int_equal(write_file("set_event", "!sched:sched_s* !sched_w*"), 0);
	assert_string_equal(read_file("events/sched/sched_switch/enable"), "0\n");
	assert_string_equal(read_file("events/sched/enable"), "X\n");
	assert_null(strstr(read_file("set_event"), "sched_wakeup"));
	assert_non_null(strstr(read_file("set_event"), "sched:sched_process_exit\n"));
	assert_int_equal(write_file("events/enable", "1"), 0);
	assert_string_equal(read_file("events/enable"), "1\n");
	assert_string_equal(read_file("set_event"), read_file("available_events"));
	assert_int_equal(write_file("events/enable", "0"), 0);
	assert_string_equal(read_file("set_event"), "");
	assert_int_equal(write_file("events/enable", "2"), -EINVAL);
	assert_int_equal(write_file("set_event", "sched:nonsense"), -EINVAL);
	assert_int_equal(write_file("set_event", "nonsense:"), -EINVAL);
	assert_int_equal(write_file("buffer_size_kb", "0"), 0);
	assert_int_equal(write_file("events/sched/enable", "1"), 0);
	assert_int_equal(write_file("buffer_size_kb", "0"), -EBUSY);
	assert_int_equal(write_file("events/sched/enable", "0"), 0);
	assert_int_equal(write_file("buffer_size_kb", "4097"), -EINVAL);
	assert_int_equal(write_file("tracing_on", "maybe"), -EINVAL);
}

/* While tracing is off, nothing is recorded and nothing counts as lost. */
TEST(tracing_on)
{
	assert_int_equal(write_file("set_event", "timer_expire_exit"), 0);
	assert_int_equal(write_file("tracing_on", "0"), 0);
	assert_string_equal(read_file("tracing_on"), "0\n");
	profile_trace(timer_expire_exit, &task);
	assert_int_equal(write_file("tracing_on", "1"), 0);
	profile_trace(timer_expire_exit, &task);
	assert_non_null(strstr(read_file("trace"), "entries-written: 1/1 "));
	assert_non_null(strstr(read_file("per_cpu/cpu0/stats"), "entries: 1\noverrun: 0\n"));
	assert_int_equal(write_file("tracing_on", "0"), 0);
	assert_int_equal(write_file("tracing_on", "2\n"), 0);
	assert_string_equal(read_file("tracing_on"), "1\n");
	assert_int_equal(write_file("tracing_on", "on"), -EINVAL);
}

/* The file shows the size that the rings will have, even before they are allocated. */
TEST(size)
{
	assert_int_equal(write_file("set_event", "!*:*"), 0);
	assert_int_equal(write_file("buffer_size_kb", "0"), 0);
	assert_int_equal(write_file("buffer_size_kb", "100"), 0);
	assert_string_equal(read_file("buffer_size_kb"), "128\n");
	assert_int_equal(write_file("buffer_size_kb", "4"), 0); /* the smallest ring has 8 */
	assert_string_equal(read_file("buffer_size_kb"), "8\n");
	assert_int_equal(write_file("buffer_size_kb", "100"), 0);
	assert_int_equal(write_file("set_event", "timer_expire_exit"), 0);
	assert_string_equal(read_file("buffer_size_kb"), "128\n");
	assert_int_equal(write_file("buffer_size_kb", "1024"), 0);
}

/* Log of the test's own tracer. */
static char tracer_log[64];

static int start_tracer(void)
{
	strcat(tracer_log, "start ");
	return 0;
}

static void stop_tracer(void)
{
	strcat(tracer_log, "stop ");
}

/* Prints a line for two events. */
static bool print_line(os_text_t *text, struct tracer_line *line)
{
	line->takes_next = line->next;
	os_text_printf(text, "%u: line %lu%s\n", line->cpu, line->state[0]++,
		       line->next ? " of two" : "");
	return true;
}

TRACER(test) = {
	.name = "test",
	.start = start_tracer,
	.stop = stop_tracer,
	.print_line = print_line,
};

TEST(tracers)
{
	assert_string_equal(read_file("available_tracers"), "test nop\n");
	assert_string_equal(read_file("current_tracer"), "nop\n");
	assert_int_equal(write_file("current_tracer", "none\n"), -EINVAL);
	assert_int_equal(write_file("current_tracer", "test\n"), 0);
	assert_int_equal(write_file("current_tracer", "test"), 0);
	assert_string_equal(read_file("current_tracer"), "test\n");
	assert_int_equal(write_file("set_event", "timer_expire_exit"), 0);
	for (int i = 0; i < 3; i++)
		profile_trace(timer_expire_exit, &task);
	assert_string_equal(events(), "0: line 0 of two\n0: line 1\n");
	assert_int_equal(write_file("current_tracer", "nop"), 0);
	/* Changing the tracer clears the rings. */
	assert_string_equal(events(), "");
	assert_string_equal(tracer_log, "start stop ");
}

/* Decodes base64 (RFC 4648, section 4). Returns the number of bytes. */
static u32 decode(const char *text, u8 *bytes)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	u32 nr = 0, bits = 0, nr_bits = 0;

	for (; *text != '"' && *text != '='; text++) {
		assert_non_null(strchr(letters, *text));
		bits = bits << 6 | (u32)(strchr(letters, *text) - letters);
		nr_bits += 6;
		if (nr_bits >= 8)
			bytes[nr++] = bits >> (nr_bits -= 8);
	}
	return nr;
}

/* Any write ends the session of another profiler, with the events that it has switched on. */
TEST(session)
{
	assert_int_equal(write_file("buffer_size_kb", "0"), 0);
	assert_int_equal(write_file("set_event", "signal"), 0);
	assert_int_equal(write_file("buffer_size_kb", "8"), 0);
	/* Rings that exist keep their size. */
	assert_int_equal(trace_begin_session("sched:sched_*,signal", 32768), 0);
	assert_string_equal(read_file("buffer_size_kb"), "8\n");
	assert_true(trace_session_is_on());
	assert_string_equal(read_file("events/sched/sched_switch/enable"), "1\n");
	profile_trace(sched_process_exit, &task);
	assert_int_not_equal(*events(), 0);
	assert_int_equal(write_file("options/overwrite", "1"), 0);
	assert_false(trace_session_is_on());
	assert_string_equal(read_file("events/sched/enable"), "0\n");
	assert_string_equal(read_file("events/signal/enable"), "1\n");
	assert_int_equal(*events(), 0);
	/* So does whoever reads trace_pipe. */
	assert_int_equal(trace_begin_session("sched", 32768), 0);
	read_file("trace_pipe");
	assert_false(trace_session_is_on());
	assert_int_equal(trace_begin_session("nothing", 32768), -EINVAL);
	assert_false(trace_session_is_on());
}

TEST(export)
{
	static u8 bytes[PROFILE_TRACE_PAGE_BYTES];
	const char *text;
	u32 nr_bytes;
	u64 value;

	assert_int_equal(write_file("set_event", "timer_expire_exit"), 0);
	profile_trace(timer_expire_exit, (void *)0x1122334455667788);
	assert_non_null(strstr(host_file_read("profile/trace_tasks.json"),
			       "{\"tid\":7,\"pid\":7,\"task\":\"test\"}\n"));
	assert_non_null(strstr(host_file_read("profile/trace_events.json"),
			       "\"event\":\"timer_expire_exit\",\"id\":1"));
	text = strstr(host_file_read("profile/trace_pages.json"), "{\"cpu\":0,\"data\":\"");
	assert_non_null(text);
	nr_bytes = decode(strstr(text, "data\":\"") + 7, bytes);
	assert_int_equal(nr_bytes % 8, 0);
	memcpy(&value, bytes + nr_bytes - sizeof(value), sizeof(value));
	assert_true(value == 0x1122334455667788);
	assert_non_null(
		strstr(host_file_read("profile/trace_cpus.json"), "{\"cpu\":3,\"first\":0,"));
}
