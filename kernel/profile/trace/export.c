// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints the rings into an export: the events with their formats, the tasks, the CPUs, and the
 * pages as base64 (formats.md). Pages are copied as they are; tools on the host decode them. All
 * tables are empty as long as the rings have no memory.
 */

#include "trace.h"

#include "../table.h"
#include "tasks.h"

static const struct column event_columns[] = {
	{ .key = "system", .kind = COLUMN_TEXT },
	{ .key = "event", .kind = COLUMN_TEXT },
	{ .key = "id", .kind = COLUMN_COUNT },
	{ .key = "format", .kind = COLUMN_TEXT },
};
static const struct column task_columns[] = {
	{ .key = "tid", .kind = COLUMN_COUNT },
	{ .key = "pid", .kind = COLUMN_COUNT },
	{ .key = "task", .kind = COLUMN_TEXT },
};
static const struct column call_columns[] = {
	{ .key = "nr", .kind = COLUMN_COUNT },
	{ .key = "syscall", .kind = COLUMN_TEXT },
};
static const struct column cpu_columns[] = {
	{ .key = "cpu", .kind = COLUMN_COUNT },
	{ .key = "first", .kind = COLUMN_COUNT },
	{ .key = "next", .kind = COLUMN_COUNT },
};
static const struct column page_columns[] = {
	{ .key = "cpu", .kind = COLUMN_COUNT },
	{ .key = "data", .kind = COLUMN_TEXT },
};

static const struct table event_table = TABLE(event_columns);
static const struct table task_table = TABLE(task_columns);
static const struct table call_table = TABLE(call_columns);
static const struct table cpu_table = TABLE(cpu_columns);
static const struct table page_table = TABLE(page_columns);

/* Static, because only one export is made at a time. */
static struct ring_reader reader;
static char format[TRACE_FORMAT_BYTES];
static char base64[PROFILE_TRACE_PAGE_BYTES / 3 * 4 + 8];

void trace_print_events_json(const void *unused)
{
	struct trace_event *event;

	table_begin(&event_table, "Kernel Trace Events");
	table_head();
	trace_for_each_event(event) {
		if (!ring_bytes())
			break;
		if (event->call && !event->was_on)
			continue; /* there are hundreds of them */
		trace_format_text(event, format);
		table_row((struct cell[]){ cell_text(event->system), cell_text(event->name),
					   cell_nr(event->id), cell_text(format) });
	}
	table_end_without_total();
}

static void print_task(os_text_t *unused, u32 tid, u32 pid, const char *name)
{
	table_row((struct cell[]){ cell_nr(tid), cell_nr(pid), cell_text(name) });
}

void trace_print_tasks_json(const void *unused)
{
	table_begin(&task_table, "Kernel Trace Tasks");
	table_head();
	trace_visit_tasks(print_task, NULL);
	table_end_without_total();
}

/* The records of sys_enter and sys_exit have numbers only. */
void trace_print_calls_json(const void *unused)
{
	table_begin(&call_table, "Kernel Trace System Calls");
	table_head();
	for (u32 nr = 0; nr < OS_MAX_SYSCALLS && ring_bytes(); nr++) {
		if (os_syscall_name(nr))
			table_row((struct cell[]){ cell_nr(nr), cell_text(os_syscall_name(nr)) });
	}
	table_end_without_total();
}

void trace_print_cpus_json(const void *unused)
{
	u32 cpu;

	table_begin(&cpu_table, "Kernel Trace CPUs");
	table_head();
	os_for_each_cpu(cpu) {
		if (ring_bytes())
			table_row((struct cell[]){ cell_nr(cpu), cell_nr(ring_oldest(cpu).nr),
						   cell_nr(ring_newest(cpu).nr) });
	}
	table_end_without_total();
}

/* Returns nr bytes, a multiple of 8, as base64 (RFC 4648, section 4) in a static buffer. */
static const char *encode(const u8 *bytes, u32 nr)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *to = base64;

	for (u32 i = 0; i < nr; i += 3) {
		u32 left = pf_min(nr - i, 3u);
		u32 group = bytes[i] << 16 | (left > 1 ? bytes[i + 1] << 8 : 0) |
			    (left > 2 ? bytes[i + 2] : 0);

		*to++ = letters[group >> 18];
		*to++ = letters[group >> 12 & 63];
		*to++ = left > 1 ? letters[group >> 6 & 63] : '=';
		*to++ = left > 2 ? letters[group & 63] : '=';
	}
	*to = '\0';
	return base64;
}

void trace_print_pages_json(const void *unused)
{
	bool held = trace_pin_rings();
	u32 cpu, nr_words;

	table_begin(&page_table, "Kernel Trace Pages");
	table_head();
	os_for_each_cpu(cpu) {
		if (!held)
			break;
		ring_reader_init(&reader, cpu);
		while ((nr_words = ring_read_page(&reader)))
			table_row((struct cell[]){ cell_nr(cpu),
						   cell_text(encode((const u8 *)reader.words,
								    nr_words * sizeof(u64))) });
	}
	table_end_without_total();
	if (held)
		trace_unpin_rings();
}
