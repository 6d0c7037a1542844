// SPDX-License-Identifier: BSD-2-Clause
/*
 * Makes views. A view walks over the pinned records, skips those out of scope, and adds each other
 * record to one or more rows. Rows are found by their keys, and sorted at the end (rows.h).
 */

#include "samples.h"

#include "../user_symbols.h"

struct view report_view;

/* Adds a sample to a row. Returns false if there is no row, because the table is full. */
static bool add_sample(struct view *view, struct view_row *row, const struct sample_record *rec)
{
	u64 nr = rec->nr_pinned;

	if (!row) {
		view->nr_dropped += nr;
		return false;
	}
	row->nr += nr;
	row->nr_class[rec->class] += nr;
	if (!(rec->flags & SAMPLE_IRQS_ON))
		row->nr_irqs_off += nr;
	return true;
}

static pf_always_inline struct rows rows_of(struct view *view)
{
	return (struct rows){
		.rows = view->rows,
		.slots = view->slots,
		.nr = &view->nr_rows,
		.row_bytes = sizeof(view->rows[0]),
		.key_words = VIEW_NR_KEYS,
		.max = VIEW_MAX_ROWS,
	};
}

/* Returns the row with these keys, or a new one, or NULL if the table is full. */
static struct view_row *find_row(struct view *view, u64 a, u64 b, u64 c, const char *name)
{
	const struct rows rows = rows_of(view);
	struct view_row *row = rows_find(&rows, (u64[VIEW_NR_KEYS]){ a, b, c });

	if (row && !row->name)
		row->name = name;
	return row;
}

/*
 * A cache of symbol look-ups, by block of text. An entry says which function the addresses from
 * `start` up to nr_known bytes belong to. Entries stay valid for later views, because text does not
 * move; only their rows are of one view. Blocks with the same first entry have more entries to
 * share, or they would take turns in it.
 */
#define LOG2_BLOCK_BYTES 5
#define NR_BLOCKS	 16384
#define NR_ENTRIES	 4 /* that a block can have */

struct block {
	u64 start;    /* of the function, or an address without one */
	u32 nr_known; /* bytes from start on; 0: free */
	u32 row_at;   /* where in this view a row of the function is; 0: none */
};

static struct block blocks[NR_BLOCKS];

static pf_always_inline bool is_known(const struct block *block, u64 pc)
{
	return pc - block->start < block->nr_known;
}

static pf_always_inline struct block *entry_of(u64 pc, u32 i)
{
	return &blocks[((pc >> LOG2_BLOCK_BYTES) + i * (NR_BLOCKS / NR_ENTRIES)) % NR_BLOCKS];
}

/*
 * Returns the first entry that is of this function, or that this view has not used; if there is
 * none, the first one.
 */
static struct block *entry_for(u64 pc, u64 start)
{
	for (u32 i = 0; i < NR_ENTRIES; i++) {
		struct block *block = entry_of(pc, i);

		if (!block->row_at || block->start == start)
			return block;
	}
	return entry_of(pc, 0);
}

/* Slow path: the first entry does not know. Looks at the others, then the function up. */
static pf_noinline struct block *look_up(u64 pc)
{
	u64 start = pc, last = pc | ((1 << LOG2_BLOCK_BYTES) - 1), start_of_last;
	struct block *block;

	for (u32 i = 0; i < NR_ENTRIES && entry_of(pc, i)->nr_known; i++) {
		if (is_known(entry_of(pc, i), pc))
			return entry_of(pc, i);
	}
	if (!os_symbol_lookup(pc, &start, NULL, 0) ||
	    !os_symbol_lookup(last, &start_of_last, NULL, 0) || start_of_last != start)
		last = pc;
	block = entry_for(pc, start);
	/* If a panic comes here, it must not find a half-changed entry. */
	pf_write_once(block->nr_known, 0);
	pf_barrier();
	block->start = start;
	block->row_at = 0;
	pf_barrier();
	pf_write_once(block->nr_known, last - start + 1);
	return block;
}

/* Returns the entry of the function at pc. */
static pf_always_inline struct block *find_block(u64 pc)
{
	struct block *block = entry_of(pc, 0);

	return pf_likely(is_known(block, pc)) ? block : look_up(pc);
}

/* Returns the row that was found last for the block. */
static pf_always_inline struct view_row *last_row(struct view *view, const struct block *block)
{
	return block->row_at ? (struct view_row *)((char *)view + block->row_at) : NULL;
}

static void set_last_row(const struct view *view, struct block *block, const struct view_row *row)
{
	block->row_at = row ? (const char *)row - (const char *)view : 0;
}

static pf_noinline struct view_row *add_function_row(struct view *view, struct block *block)
{
	struct view_row *row = find_row(view, block->start, 0, 0, VIEW_FUNCTION_NAME);

	set_last_row(view, block, row);
	return row;
}

/* Returns the row of the function at pc, or NULL if the table is full. */
static pf_always_inline struct view_row *function_row(struct view *view, u64 pc)
{
	struct block *block = find_block(pc);

	if (pf_likely(block->row_at))
		return last_row(view, block);
	return add_function_row(view, block);
}

/* Removes all rows of the last view. */
static void clear(struct view *view)
{
	memset(view, 0, __builtin_offsetof(struct view, rows));
	for (u32 i = 0; i < NR_BLOCKS; i++)
		blocks[i].row_at = 0;
}

/* Calls visit() for each record in scope. Both are inlined, because there can be many records. */
static pf_always_inline void
visit_all(struct view *view, const struct sample_scope *scope,
	  void (*visit)(struct view *view, const struct sample_record *rec, const void *arg),
	  const void *arg)
{
	unsigned int cpu;

	clear(view);
	os_for_each_cpu(cpu) {
		const struct sample_record *rec;

		stack_store_for_each(samples_store(cpu), rec, record_bytes) {
			u64 nr = rec->nr_pinned;

			if (!nr || !sample_is_in(rec, scope))
				continue;
			view->nr_class[rec->class] += nr;
			view->nr_truncated[rec->truncated] += nr;
			visit(view, rec, arg);
		}
	}
	for (u32 i = 0; i < NR_HEAT_CLASSES; i++)
		view->nr_samples += view->nr_class[i];
}

/* Sorts by samples, most first, then by key. */
static int compare_rows(const void *a_, const void *b_)
{
	const struct view_row *a = a_, *b = b_;

	if (a->nr != b->nr)
		return compare_u64(b->nr, a->nr);
	if (a->nr_inclusive != b->nr_inclusive)
		return compare_u64(b->nr_inclusive, a->nr_inclusive);
	for (u32 i = 0; i < VIEW_NR_KEYS; i++) {
		if (a->keys[i] != b->keys[i])
			return compare_u64(a->keys[i], b->keys[i]);
	}
	return 0;
}

static void sort_rows(struct view *view, int (*compare)(const void *a, const void *b))
{
	const struct rows rows = rows_of(view);

	rows_sort(&rows, compare);
}

void view_sort(struct view *view)
{
	sort_rows(view, compare_rows);
}

const char *view_row_name(const struct view_row *row, u64 addr, char text[OS_SYMBOL_BYTES])
{
	u64 start;

	if (row->name[0])
		return row->name;
	return os_symbol_lookup(addr, &start, text, OS_SYMBOL_BYTES) ? text : "[unknown]";
}

/*
 * Adds a sample to nr_inclusive of each function in its chain, once even if it is recursive. row is
 * that of the innermost function.
 */
static void add_callers(struct view *view, struct view_row *row, const struct sample_record *rec)
{
	const u64 *pc = rec->pcs + 1, *end = rec->pcs + rec->nr_kernel;
	u64 nr = rec->nr_pinned;
	u32 visit = ++view->nr_visits;

	row->visit = visit;
	row->nr_inclusive += nr;
	for (; pc < end; pc++) {
		row = function_row(view, *pc - 1);
		if (!row || row->visit == visit)
			continue;
		row->visit = visit;
		row->nr_inclusive += nr;
	}
}

static void visit_heatmap(struct view *view, const struct sample_record *rec, const void *arg)
{
	if (rec->class != HEAT_USER)
		add_sample(view, function_row(view, rec->pcs[0]), rec);
}

void view_heatmap(struct view *view, const struct sample_scope *scope)
{
	visit_all(view, scope, visit_heatmap, NULL);
}

static void visit_functions(struct view *view, const struct sample_record *rec, const void *arg)
{
	struct view_row *row = rec->class == HEAT_USER ? find_row(view, 0, 1, 0, "[user]") :
							 function_row(view, rec->pcs[0]);

	if (add_sample(view, row, rec))
		add_callers(view, row, rec);
}

/* For an assertion. Returns true if each sample is in one row, or had no room. */
static pf_unused bool rows_add_up(const struct view *view)
{
	u64 nr = view->nr_dropped;

	for (u32 i = 0; i < view->nr_rows; i++)
		nr += view->rows[i].nr;
	return nr == view->nr_samples;
}

void view_functions(struct view *view, const struct sample_scope *scope)
{
	visit_all(view, scope, visit_functions, NULL);
	view_sort(view);
	os_assert(rows_add_up(view));
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
		return rec->flags & SAMPLE_NO_ROOM ? CALL_UNKNOWN : rec->syscall;
	}
}

static struct view_row *find_call(struct view *view, u32 call)
{
	static const char *const names[] = { "[no call]", "[irq]", "[idle]", "[user]",
					     "[unknown]" };
	const char *name = call < CALL_NONE ? os_syscall_name(call) : names[call - CALL_NONE];

	return find_row(view, call, 0, 0, name ? name : "");
}

/* Returns keys[1] of a function in a call. The unknown function begins at 0, the key of the sum. */
static u64 function_key(const struct block *block)
{
	return block->start ?: 1;
}

/*
 * Makes the row of a function in a call. Makes the row of the call first: its sum must have room.
 */
static pf_noinline struct view_row *add_call_row(struct view *view, u32 call, struct block *block)
{
	struct view_row *row = find_call(view, call);

	if (row)
		row = find_row(view, call, function_key(block), 0, VIEW_FUNCTION_NAME);
	set_last_row(view, block, row);
	return row;
}

/* Adds a sample to the row of its call and function. view_calls() makes the sums of calls later. */
static void visit_calls(struct view *view, const struct sample_record *rec, const void *arg)
{
	u32 call = call_of(rec);
	struct block *block;
	struct view_row *row;

	if (rec->class == HEAT_USER) {
		add_sample(view, find_call(view, call), rec);
		return;
	}
	block = find_block(rec->pcs[0]);
	row = last_row(view, block);
	if (!row || row->keys[0] != call || row->keys[1] != function_key(block))
		row = add_call_row(view, call, block);
	/* If there is no room for the function, the sample is only in the sum. */
	if (!add_sample(view, row, rec)) {
		row = find_call(view, call);
		if (row)
			row->nr += rec->nr_pinned;
	}
}

static void add_to_call(struct view *view, const struct view_row *row)
{
	struct view_row *call = find_row(view, row->keys[0], 0, 0, "");

	if (row == call)
		return;
	call->nr += row->nr;
	call->nr_irqs_off += row->nr_irqs_off;
	for (u32 i = 0; i < NR_HEAT_CLASSES; i++)
		call->nr_class[i] += row->nr_class[i];
}

/*
 * Sorts calls by their sums, which are in nr_inclusive of all rows of a call; the sum comes first.
 */
static int compare_calls(const void *a_, const void *b_)
{
	const struct view_row *a = a_, *b = b_;

	if (a->nr_inclusive != b->nr_inclusive)
		return compare_u64(b->nr_inclusive, a->nr_inclusive);
	if (a->keys[0] != b->keys[0])
		return compare_u64(a->keys[0], b->keys[0]);
	if (!a->keys[1] != !b->keys[1])
		return compare_u64(!b->keys[1], !a->keys[1]);
	return compare_rows(a, b);
}

void view_calls(struct view *view, const struct sample_scope *scope)
{
	visit_all(view, scope, visit_calls, NULL);
	for (u32 i = 0; i < view->nr_rows; i++)
		add_to_call(view, &view->rows[i]);
	for (u32 i = 0; i < view->nr_rows; i++) {
		struct view_row *row = &view->rows[i];

		row->nr_inclusive = find_row(view, row->keys[0], 0, 0, "")->nr;
	}
	sort_rows(view, compare_calls);
}

/* A cache of rows of tasks, by tid, because making a name printable takes long. */
static struct {
	const struct sample_record *rec; /* a record of the task; NULL: free */
	struct view_row *row;
} recent_tasks[64];

static bool is_same_task(const struct sample_record *a, const struct sample_record *b)
{
	return a->tid == b->tid && a->pid == b->pid && a->comm[0] == b->comm[0] &&
	       a->comm[1] == b->comm[1];
}

static struct view_row *find_task(struct view *view, const struct sample_record *rec)
{
	char comm[SAMPLE_COMM_BYTES];
	u64 name[2];

	sample_comm(rec, comm);
	memcpy(name, comm, sizeof(name));
	return find_row(view, (u64)rec->pid << 32 | rec->tid, name[0], name[1], "");
}

static void visit_tasks(struct view *view, const struct sample_record *rec, const void *arg)
{
	u32 i = rec->tid % PF_ARRAY_SIZE(recent_tasks);

	if (!recent_tasks[i].rec || !is_same_task(recent_tasks[i].rec, rec)) {
		recent_tasks[i].row = find_task(view, rec);
		recent_tasks[i].rec = rec;
	}
	add_sample(view, recent_tasks[i].row, rec);
}

void view_tasks(struct view *view, const struct sample_scope *scope)
{
	memset(recent_tasks, 0, sizeof(recent_tasks));
	visit_all(view, scope, visit_tasks, NULL);
	view_sort(view);
	os_assert(rows_add_up(view));
}

static void visit_function(struct view *view, const struct sample_record *rec, const void *function)
{
	char name[OS_SYMBOL_BYTES];
	u64 start;

	if (rec->class == HEAT_USER || !os_symbol_lookup(rec->pcs[0], &start, name, sizeof(name)) ||
	    strcmp(name, function))
		return;
	/* The instruction is not known any more if only the function was kept. */
	add_sample(view,
		   rec->truncated == PROFILE_STACK_TRUNCATED_ROOM ?
			   NULL :
			   find_row(view, rec->pcs[0], start, 0, ""),
		   rec);
}

static int compare_address(const void *a_, const void *b_)
{
	const struct view_row *a = a_, *b = b_;

	return compare_u64(a->keys[0], b->keys[0]);
}

void view_function(struct view *view, const char *function)
{
	visit_all(view, &(struct sample_scope){ 0 }, visit_function, function);
	sort_rows(view, compare_address);
}

static void visit_user(struct view *view, const struct sample_record *rec, const void *program)
{
	if (rec->class == HEAT_USER && rec->program == *(const u8 *)program)
		add_sample(view, find_row(view, rec->nr_user ? rec->pcs[0] : 0, 0, 0, ""), rec);
}

/* User code of no known function is one row for each block of this size. */
#define USER_BLOCK_BYTES 256

static void visit_user_functions(struct view *view, const struct sample_record *rec,
				 const void *arg)
{
	struct user_symbol symbol = { 0 };
	u64 offset;

	if (rec->class != HEAT_USER)
		return;
	if (rec->nr_user)
		user_symbol_of_code(rec->code_map, rec->pcs[0], &symbol);
	offset = symbol.offset - symbol.distance;
	if (!symbol.is_known) {
		symbol.start -= symbol.start % USER_BLOCK_BYTES;
		offset -= offset % USER_BLOCK_BYTES;
	}
	add_sample(view, find_row(view, symbol.start, symbol.image, offset, symbol.name ?: ""),
		   rec);
}

const struct view *view_user_functions(const struct sample_scope *scope)
{
	static struct view view;
	static struct sample_scope of;
	static u64 nr_reads;

	if (nr_reads == samples_nr_reads() && of.pid == scope->pid && of.is_run == scope->is_run &&
	    of.key_floor == scope->key_floor)
		return &view;
	nr_reads = 0; /* a panic may come before the view is complete */
	visit_all(&view, scope, visit_user_functions, NULL);
	view_sort(&view);
	of = *scope;
	nr_reads = samples_nr_reads();
	return &view;
}

void view_user(struct view *view, const struct sample_scope *scope, u8 program)
{
	visit_all(view, scope, visit_user, &program);
	view_sort(view);
}

void samples_visit_chains(report_chain_fn *visit)
{
	unsigned int cpu;

	samples_pin();
	os_for_each_cpu(cpu) {
		const struct sample_record *rec = NULL;

		while ((rec = samples_next(cpu, rec))) {
			if (!rec->nr_pinned)
				continue;
			visit(&(struct report_chain){
				.comm = rec->comm,
				.pid = rec->pid,
				.call = rec->class == HEAT_USER ? OS_NO_SYSCALL : rec->syscall,
				.is_sample = true,
				.code_map = rec->code_map,
				.kernel = rec->pcs,
				.nr_kernel = rec->nr_kernel,
				.user = rec->pcs + rec->nr_kernel,
				.nr_user = rec->nr_user,
				.weight = rec->nr_pinned,
			});
		}
	}
	samples_unpin();
}
