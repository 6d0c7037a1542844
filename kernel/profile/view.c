// SPDX-License-Identifier: BSD-2-Clause
/*
 * Views: each walks over all records that are held and adds each to one row or several. Rows are
 * found by hashing their keys; when all are in, the table is closed up for sorting. Nothing is
 * allocated, so a dying kernel can show them.
 */

#include "internal.h"

static void add_counts(struct view_row *row, const struct sample_record *rec)
{
	row->nr += rec->nr_held;
	row->nr_class[rec->class] += rec->nr_held;
	row->late_cycles += rec->late_cycles;
	if (!(rec->flags & SAMPLE_IRQS_ON))
		row->nr_irqs_off += rec->nr_held;
}

/* The row with these keys, or NULL when the table is full. */
static struct view_row *find_row(struct view *view, u64 a, u64 b, u64 c, const char *name)
{
	u64 i = stack_hash(stack_hash(stack_hash(0, a), b), c) >> 32;

	for (u32 probe = 0; probe < VIEW_MAX_ROWS; probe++) {
		struct view_row *row = &view->rows[(i + probe) % VIEW_MAX_ROWS];

		if (!row->name) {
			row->keys[0] = a;
			row->keys[1] = b;
			row->keys[2] = c;
			row->name = name;
			return row;
		}
		if (row->keys[0] == a && row->keys[1] == b && row->keys[2] == c)
			return row;
	}
	return NULL;
}

/* The function's name; *start: its address, or the address itself. */
static const char *name_pc(u64 pc, u64 *start)
{
	const char *name = os_symbol_lookup(pc, start);

	if (name)
		return name;
	*start = pc;
	return "[unknown]";
}

static void visit_all(struct view *view,
		      void (*visit)(struct view *view, const struct sample_record *rec,
				    const void *arg),
		      const void *arg)
{
	unsigned int cpu;
	u32 nr = 0;

	memset(view, 0, sizeof(*view));
	for_each_possible_cpu(cpu) {
		const struct sample_record *rec = NULL;

		while ((rec = samples_next(cpu, rec))) {
			if (!rec->nr_held)
				continue;
			view->nr_ticks += rec->nr_held;
			view->nr_cut[rec->cut] += rec->nr_held;
			visit(view, rec, arg);
		}
	}
	for (u32 i = 0; i < VIEW_MAX_ROWS; i++) {
		if (view->rows[i].name)
			view->rows[nr++] = view->rows[i];
	}
	view->nr_rows = nr;
}

/* Each function of the chain once, though it may call itself. */
static void add_callers(struct view *view, const struct sample_record *rec)
{
	u64 starts[SAMPLE_MAX_DEPTH], start;

	for (u32 i = 0; i < rec->nr_kernel; i++) {
		const char *name = name_pc(rec->pcs[i] - (i != 0), &start);
		struct view_row *row;
		u32 seen = 0;

		while (seen < i && starts[seen] != start)
			seen++;
		starts[i] = start;
		if (seen < i)
			continue;
		row = find_row(view, start, 0, 0, name);
		if (row)
			row->nr_inclusive += rec->nr_held;
	}
}

static void visit_functions(struct view *view, const struct sample_record *rec, const void *arg)
{
	const char *name = "[user]";
	struct view_row *row;
	u64 start = 0;

	if (rec->class != HEAT_USER)
		name = name_pc(rec->pcs[0], &start);
	row = find_row(view, start, rec->class == HEAT_USER, 0, name);
	if (!row) {
		view->nr_dropped += rec->nr_held;
		return;
	}
	add_counts(row, rec);
	if (rec->class == HEAT_USER)
		row->nr_inclusive += rec->nr_held;
	else
		add_callers(view, rec);
}

void view_functions(struct view *view)
{
	visit_all(view, visit_functions, NULL);
}

static u32 call_of(const struct sample_record *rec)
{
	switch (rec->class) {
	case HEAT_USER:
		return CALL_USER;
	case HEAT_IRQ:
		return CALL_IRQ;
	case HEAT_IDLE:
		return CALL_IDLE;
	default:
		return rec->syscall;
	}
}

static void visit_calls(struct view *view, const struct sample_record *rec, const void *arg)
{
	static const char *const names[] = { "[no call]", "[irq]", "[idle]", "[user]" };
	u32 call = call_of(rec);
	const char *name = call < CALL_NONE ? os_syscall_name(call) : names[call - CALL_NONE];
	struct view_row *row = find_row(view, call, 0, 0, name ? name : "");
	u64 start;

	if (!row) {
		view->nr_dropped += rec->nr_held;
		return;
	}
	add_counts(row, rec);
	if (rec->class == HEAT_USER)
		return;
	name = name_pc(rec->pcs[0], &start);
	row = find_row(view, call, start, 0, name);
	if (row)
		add_counts(row, rec);
}

void view_calls(struct view *view)
{
	visit_all(view, visit_calls, NULL);
}

static void visit_tasks(struct view *view, const struct sample_record *rec, const void *arg)
{
	char comm[SAMPLE_COMM_BYTES];
	u64 name[2];
	struct view_row *row;

	sample_comm(rec, comm);
	memcpy(name, comm, sizeof(name));
	row = find_row(view, (u64)rec->pid << 32 | rec->tid, name[0], name[1], "");
	if (row)
		add_counts(row, rec);
	else
		view->nr_dropped += rec->nr_held;
}

void view_tasks(struct view *view)
{
	visit_all(view, visit_tasks, NULL);
}

static void visit_function(struct view *view, const struct sample_record *rec, const void *function)
{
	const char *name;
	struct view_row *row;
	u64 start;

	if (rec->class == HEAT_USER)
		return;
	name = name_pc(rec->pcs[0], &start);
	if (strcmp(name, function))
		return;
	row = find_row(view, rec->pcs[0], start, 0, name);
	if (row)
		add_counts(row, rec);
	else
		view->nr_dropped += rec->nr_held;
}

void view_function(struct view *view, const char *function)
{
	visit_all(view, visit_function, function);
}

struct program {
	u32 pid;
	u8 number;
};

static void visit_user(struct view *view, const struct sample_record *rec, const void *arg)
{
	const struct program *program = arg;
	struct view_row *row;

	if (rec->class != HEAT_USER || rec->pid != program->pid || rec->program != program->number)
		return;
	row = find_row(view, rec->pcs[0], 0, 0, "");
	if (row)
		add_counts(row, rec);
	else
		view->nr_dropped += rec->nr_held;
}

void view_user(struct view *view, u32 pid, u8 program)
{
	visit_all(view, visit_user, &(struct program){ .pid = pid, .number = program });
}
