// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints the critical path: a table of its parts by cause, function and task, and all segments as
 * JSON. Rows are made while the walk goes on, so segments are not stored. Times of segments are
 * differences of one clock, so they sum up exactly.
 */

#include "path.h"

#include "../rows.h"
#include "../table.h"
#include "../trace/tasks.h"
#include "../user_symbols.h"

#define MAX_ROWS     1024
#define MAX_SEGMENTS 32768 /* in an export: 5 MB */

static struct path_row *row_memory;
static u16 *slots;
static u32 nr_rows;
static u64 ready_ns;		    /* the path's thread was ready, and others ran */
static u64 nr_parts;		    /* segments, and interrupts in them */
static u64 others_ns, others_times; /* without room for a row */

static struct rows rows(void)
{
	return (struct rows){
		.rows = row_memory,
		.slots = slots,
		.nr = &nr_rows,
		.row_bytes = sizeof(struct path_row),
		.key_words = sizeof(struct path_row_key) / sizeof(u64),
		.max = MAX_ROWS,
	};
}

static void set_function(struct path_segment *segment)
{
	struct user_symbol symbol;

	if (segment->cause == PATH_IN_KERNEL) {
		os_symbol_lookup(segment->pc, &segment->function[1], NULL, 0);
		return;
	}
	user_symbol_of_code(segment->map, segment->pc, &symbol);
	if (!symbol.image)
		return;
	segment->function[0] = symbol.image;
	segment->function[1] = symbol.is_known ? symbol.start : 0;
}

static const struct path_names names = { trace_task_pid, set_function };

/* Makes the key of a row. Names are compared by what they are names of. */
static struct path_row_key key_of(const struct path_segment *segment)
{
	struct path_row_key key = { .cause = segment->cause };

	if (segment->tid)
		trace_task_name(segment->tid, (char *)key.task);
	switch (segment->cause) {
	case PATH_IN_USER:
	case PATH_IN_KERNEL:
	case PATH_IN_FAULT:
		memcpy(key.what, segment->function, sizeof(key.what));
		if (!segment->pc)
			key.what[1] = segment->call;
		break;
	case PATH_IN_IRQ:
		key.what[0] = segment->irq;
		break;
	case PATH_FOR_A_CPU:
		if (segment->holder)
			trace_task_name(segment->holder, (char *)key.what);
		break;
	default:
		key.what[0] = segment->call;
	}
	return key;
}

static void add_ns(const struct path_segment *segment, u64 ns)
{
	const struct rows table = rows();
	struct path_row_key key = key_of(segment);
	struct path_row *row = rows_find(&table, &key);

	nr_parts++;
	if (!row) {
		others_ns += ns;
		others_times++;
		return;
	}
	row->ns += ns;
	if (!row->times++)
		row->example = *segment;
}

/* Timer interrupts in a segment are not of its row. */
static void add_to_row(const struct path_segment *segment)
{
	u64 ns = segment->to_ns - segment->from_ns;
	struct path_segment irq = *segment;

	ready_ns += segment->waiter || segment->cause == PATH_FOR_A_CPU ? ns : 0;
	add_ns(segment, ns - segment->irq_ns);
	irq.cause = PATH_IN_IRQ;
	irq.irq = PATH_TIMER;
	if (segment->irq_ns)
		add_ns(&irq, segment->irq_ns);
}

static int compare_rows(const void *a_, const void *b_)
{
	const struct path_row *a = a_, *b = b_;

	return compare_u64(b->ns, a->ns) ?: memcmp(&a->key, &b->key, sizeof(a->key));
}

bool path_prepare(const struct path_scope *scope)
{
	struct rows table;

	path_release();
	row_memory = os_zalloc(MAX_ROWS * sizeof(*row_memory));
	slots = os_zalloc(ROWS_SLOTS(MAX_ROWS) * sizeof(*slots));
	if (!row_memory || !slots || !path_load(scope->pid)) {
		path_release();
		return false;
	}
	table = rows();
	path_visit(scope, &names, add_to_row);
	rows_sort(&table, compare_rows);
	path_find_callers(scope->pid, row_memory, nr_rows);
	path_make_parts(row_memory, nr_rows);
	return true;
}

void path_print_calls(const struct path_scope *scope)
{
	path_print_results(row_memory, nr_rows, scope->end_ns - scope->begin_ns);
}

void path_release(void)
{
	os_free(row_memory);
	os_free(slots);
	row_memory = NULL;
	slots = NULL;
	nr_rows = 0;
	nr_parts = ready_ns = others_ns = others_times = 0;
	path_free();
}

enum {
	SECONDS,
	PERCENT,
	TIMES,
	CAUSE,
	FUNCTION,
	TASK,
	CALLER,
	PART,
	NR_COLUMNS,
};

static const struct column columns[NR_COLUMNS] = {
	[SECONDS] = { "seconds", "time_ns", COLUMN_SECONDS, 14, TOTAL_SUM },
	[PERCENT] = { "%", NULL, COLUMN_PERCENT, 9, TOTAL_SUM },
	[TIMES] = { "times", "times", COLUMN_COUNT, 9, TOTAL_SUM },
	[CAUSE] = { "cause", "cause", COLUMN_TEXT, 13, TOTAL_END, .left = true },
	[FUNCTION] = { "function", "function", COLUMN_TEXT, 24, .left = true },
	[TASK] = { "task", "task", COLUMN_TEXT, 15, .left = true },
	[CALLER] = { "called from", "called_from", COLUMN_TEXT, 24, .left = true },
	[PART] = { NULL, "part", COLUMN_TEXT },
};

static void print_row(const struct path_row *row, u64 total_ns)
{
	char function[PATH_NAME_BYTES], task[TRACE_COMM_BYTES] = "-", caller[PATH_CALLER_BYTES];
	char part[PATH_PART_BYTES];

	path_function_name(&row->example, function);
	path_caller_name(row, caller);
	path_part_name(row, part);
	if (row->example.tid)
		path_task_name(row->example.tid, task);
	table_row((struct cell[]){
		[SECONDS] = cell_nr(row->ns),
		[PERCENT] = cell_percent(row->ns, total_ns),
		[TIMES] = cell_nr(row->times),
		[CAUSE] = cell_text(path_cause_names[row->key.cause]),
		[FUNCTION] = cell_text(function),
		[TASK] = cell_text(task),
		[CALLER] = cell_text(caller),
		[PART] = cell_text(part),
	});
}

/* Prints the rows beyond the top, and the segments without a row, as one row. */
static void print_others(u64 total_ns)
{
	u64 ns = table_others_sum(SECONDS) + others_ns;
	char name[32];

	os_snprintf(name, sizeof(name), "[%u others]", table_nr_others());
	if (table_nr_others() || others_times)
		table_summary_row((struct cell[NR_COLUMNS]){
			[SECONDS] = cell_nr(ns),
			[PERCENT] = cell_percent(ns, total_ns),
			[TIMES] = cell_nr(table_others_sum(TIMES) + others_times),
			[CAUSE] = cell_text(name),
		});
}

void path_print_table(const struct path_scope *scope, u32 top)
{
	const struct table table = TABLE(columns, .top = top);
	u64 total_ns = scope->end_ns - scope->begin_ns;

	table_begin_top(&table, "Critical path", top);
	table_note("path: %lu parts; in %lu.%06lu s of them, the thread that comes next on the "
		   "path was ready",
		   nr_parts, ready_ns / NS_PER_SEC, ready_ns % NS_PER_SEC / 1000);
	table_head();
	for (u32 i = 0; i < nr_rows; i++)
		print_row(&row_memory[i], total_ns);
	print_others(total_ns);
	table_end();
}

enum {
	FROM,
	TO,
	CPU,
	PID,
	TID,
	SEGMENT_TASK,
	SEGMENT_CAUSE,
	SEGMENT_FUNCTION,
	WAITER,
	INTERRUPTS,
	NR_SEGMENT_COLUMNS,
};

static const struct column segment_columns[NR_SEGMENT_COLUMNS] = {
	[FROM] = { .key = "from_ns", .kind = COLUMN_COUNT },
	[TO] = { .key = "to_ns", .kind = COLUMN_COUNT },
	[CPU] = { .key = "cpu", .kind = COLUMN_COUNT },
	[PID] = { .key = "pid", .kind = COLUMN_COUNT },
	[TID] = { .key = "tid", .kind = COLUMN_COUNT },
	[SEGMENT_TASK] = { .key = "task", .kind = COLUMN_TEXT },
	[SEGMENT_CAUSE] = { .key = "cause", .kind = COLUMN_TEXT },
	[SEGMENT_FUNCTION] = { .key = "function", .kind = COLUMN_TEXT },
	[WAITER] = { .key = "waiter", .kind = COLUMN_COUNT },
	[INTERRUPTS] = { .key = "interrupts_ns", .kind = COLUMN_COUNT },
};

static const struct table segment_table = TABLE(segment_columns);
static u64 nr_printed, earlier_ns; /* rows, and the time of segments without one */

static void print_segment(const struct path_segment *segment)
{
	char function[PATH_NAME_BYTES], task[TRACE_COMM_BYTES];
	u32 pid = trace_task_pid(segment->tid);

	if (nr_printed++ >= MAX_SEGMENTS) {
		earlier_ns += segment->to_ns - segment->from_ns;
		return;
	}
	path_function_name(segment, function);
	path_task_name(segment->tid, task);
	table_row((struct cell[NR_SEGMENT_COLUMNS]){
		[FROM] = cell_nr(segment->from_ns),
		[TO] = cell_nr(segment->to_ns),
		[CPU] = segment->cpu == PATH_NO_CPU ? cell_dash() : cell_nr(segment->cpu),
		[PID] = segment->tid && pid != PATH_NO_PID ? cell_nr(pid) : cell_dash(),
		[TID] = segment->tid ? cell_nr(segment->tid) : cell_dash(),
		[SEGMENT_TASK] = segment->tid ? cell_text(task) : cell_dash(),
		[SEGMENT_CAUSE] = cell_text(path_cause_names[segment->cause]),
		[SEGMENT_FUNCTION] = cell_text(function),
		[WAITER] = segment->waiter ? cell_nr(segment->waiter) : cell_dash(),
		[INTERRUPTS] = cell_nr(segment->irq_ns),
	});
}

void path_print_segments(const struct path_scope *scope)
{
	table_begin(&segment_table, "Kernel Critical Path");
	table_head();
	nr_printed = earlier_ns = 0;
	if (scope)
		path_visit(scope, &names, print_segment);
	if (earlier_ns)
		table_row((struct cell[NR_SEGMENT_COLUMNS]){
			[FROM] = cell_nr(scope->begin_ns),
			[TO] = cell_nr(scope->begin_ns + earlier_ns),
			[SEGMENT_CAUSE] = cell_text("earlier"),
		});
	table_end_without_total();
}
