// SPDX-License-Identifier: BSD-2-Clause
/*
 * Adds up the records of waits in rows: by what was waited for, by system call, by task or by lock.
 * The rows are those of rows.h.
 */

#include "waits.h"

#define KEY_WORDS (__builtin_offsetof(struct wait_row, nr) / sizeof(u64))

struct wait_view wait_view;

/* Returns the start of the first function outside of the scheduler, or 0. */
static u64 first_function(const struct wait_record *rec)
{
	u64 start;

	for (u32 i = 0; i < rec->nr_kernel; i++) {
		if (!os_in_scheduler(rec->pcs[i] - 1) &&
		    os_symbol_lookup(rec->pcs[i] - 1, &start, NULL, 0))
			return start;
	}
	return 0;
}

bool wait_by_reason(const struct wait_record *rec, struct wait_row *key)
{
	const struct wait_record *waker = rec->waker;

	if (rec->kind == WAIT_PREEMPTED) {
		key->name = "a CPU";
		return true;
	}
	key->name = rec->name ? rec->name : "?";
	key->addr = rec->addr;
	key->where = first_function(rec);
	if (waker) {
		key->waker = first_function(waker);
		key->waker_comm[0] = waker->comm[0];
		key->waker_comm[1] = waker->comm[1];
	}
	return true;
}

bool wait_by_reason_of_processes(const struct wait_record *rec, struct wait_row *key)
{
	return rec->process && wait_by_reason(rec, key);
}

bool wait_by_call(const struct wait_record *rec, struct wait_row *key)
{
	bool in_call = rec->process && rec->phase == PROFILE_IN_CALL;

	key->call = in_call ? rec->syscall : OS_NO_SYSCALL;
	key->name = !rec->process		    ? "[kernel threads]" :
		    rec->phase == WAIT_CALL_UNKNOWN ? "[unknown]" :
		    rec->phase == PROFILE_RETURNS   ? "[return to user]" :
		    key->call == OS_NO_SYSCALL	    ? "[no system call]" :
						      "";
	return true;
}

bool wait_by_task(const struct wait_record *rec, struct wait_row *key)
{
	key->name = "";
	key->process = rec->process;
	key->comm[0] = rec->comm[0];
	key->comm[1] = rec->comm[1];
	return true;
}

bool wait_by_lock(const struct wait_record *rec, struct wait_row *key)
{
	bool is_lock = rec->addr;

	for (u32 i = 0; i < rec->nr_kernel && os_in_scheduler(rec->pcs[i] - 1); i++)
		is_lock |= os_in_lock(rec->pcs[i] - 1);
	key->name = rec->name ? rec->name : "?";
	key->addr = rec->addr;
	key->process = rec->addr ? rec->process : 0;
	return is_lock && rec->kind == WAIT_SLEPT;
}

bool wait_by_spinlock(const struct wait_record *rec, struct wait_row *key)
{
	key->name = rec->name;
	key->where = first_function(rec);
	return rec->kind == WAIT_SPUN;
}

static struct rows rows_of(struct wait_view *view)
{
	return (struct rows){
		.rows = view->rows,
		.slots = view->slots,
		.nr = &view->nr_rows,
		.row_bytes = sizeof(view->rows[0]),
		.key_words = KEY_WORDS,
		.max = WAIT_MAX_ROWS,
	};
}

/* Adds waits to the row with this key. Returns the row, or NULL if the table is full. */
static struct wait_row *add_waits(struct wait_view *view, const struct wait_row *key,
				  const struct wait_counts *counts)
{
	const struct rows rows = rows_of(view);
	struct wait_row *row = rows_find(&rows, key);

	view->nr += counts->nr;
	view->asleep_cycles += counts->asleep_cycles;
	view->ready_cycles += counts->ready_cycles;
	if (!row) {
		view->nr_dropped += counts->nr;
		return NULL;
	}
	row->nr += counts->nr;
	row->asleep_cycles += counts->asleep_cycles;
	row->ready_cycles += counts->ready_cycles;
	row->max_cycles = pf_max(row->max_cycles, counts->max_cycles);
	return row;
}

/* The views that are being made: by key, with wait_view for the first of them. */
static wait_key_fn *const *view_keys;
static u32 nr_views, nr_shown;
static struct wait_view other_views[WAIT_MAX_VIEWS - 1];

static struct wait_view *view_at(u32 i)
{
	return i ? &other_views[i - 1] : &wait_view;
}

/* Adds waits to all views. in_flight: they have not ended, and rec is only valid now. */
static void add_record(const struct wait_record *rec, const struct wait_counts *counts,
		       bool in_flight)
{
	u64 cycles = counts->asleep_cycles + counts->ready_cycles;

	for (u32 i = 0; i < nr_views; i++) {
		struct wait_view *view = view_at(i);
		struct wait_row key = { 0 }, *row;

		if ((rec->kind == WAIT_SPUN) != (view_keys[i] == wait_by_spinlock) ||
		    !view_keys[i](rec, &key))
			continue;
		row = add_waits(view, &key, counts);
		view->nr_in_flight += in_flight;
		if (!row)
			continue;
		row->nr_in_flight += in_flight;
		if (!in_flight && (!row->most || cycles > row->most_cycles)) {
			row->most = rec;
			row->most_cycles = cycles;
		}
	}
}

static void add_in_flight(unsigned int cpu, const struct wait_record *rec)
{
	struct wait_counts counts = { 1, rec->asleep_cycles, rec->ready_cycles, rec->max_cycles };

	add_record(rec, &counts, true);
}

static int compare_rows(const void *a_, const void *b_)
{
	const struct wait_row *a = a_, *b = b_;
	int order =
		compare_u64(b->asleep_cycles + b->ready_cycles, a->asleep_cycles + a->ready_cycles);

	for (u32 i = 0; i < KEY_WORDS && !order; i++)
		order = compare_u64(((const u64 *)a)[i], ((const u64 *)b)[i]);
	return order;
}

void waits_make_views(os_process_t *proc, wait_key_fn *const *keys, u32 nr)
{
	u64 process = proc ? stack_process_number(proc) : 0;
	unsigned int cpu;

	os_assert(nr <= WAIT_MAX_VIEWS);
	view_keys = keys;
	nr_views = nr;
	nr_shown = 1;
	for (u32 i = 0; i < nr; i++)
		memset(view_at(i), 0, __builtin_offsetof(struct wait_view, rows));
	os_for_each_cpu(cpu) {
		const struct wait_record *rec = NULL;

		while ((rec = waits_next(cpu, rec))) {
			struct wait_counts counts;

			if (rec->kind > WAIT_SPUN || (process && rec->process != process))
				continue;
			counts = waits_read(cpu, rec);
			add_record(rec, &counts, false);
		}
	}
	waits_visit_in_flight(proc, add_in_flight);
	for (u32 i = 0; i < nr; i++) {
		const struct rows rows = rows_of(view_at(i));

		rows_sort(&rows, compare_rows);
	}
}

void waits_make_view(os_process_t *proc, wait_key_fn *key_of)
{
	waits_make_views(proc, &key_of, 1);
}

void waits_next_view(void)
{
	os_assert(nr_shown < nr_views);
	wait_view = *view_at(nr_shown++);
}

static report_chain_fn *visit_chain; /* of the one reader */

/* Visits the chain of a wait and that of its waker, which has no weight. */
static void visit_chains(const struct wait_record *rec, u64 weight)
{
	visit_chain(&(struct report_chain){
		.comm = rec->comm,
		.pid = stack_process_pid(rec->process),
		.call = rec->syscall,
		.asleep = true,
		.code_map = rec->code_map,
		.kernel = rec->pcs,
		.nr_kernel = rec->nr_kernel,
		.user = rec->pcs + rec->nr_kernel,
		.nr_user = rec->nr_user,
		.weight = weight,
	});
	if (rec->waker)
		visit_chains(rec->waker, 0);
}

static void visit_in_flight(unsigned int cpu, const struct wait_record *rec)
{
	visit_chains(rec, 0);
}

void waits_visit_chains(report_chain_fn *visit)
{
	unsigned int cpu;

	visit_chain = visit;
	waits_pin();
	os_for_each_cpu(cpu) {
		const struct wait_record *rec = NULL;

		while ((rec = waits_next(cpu, rec))) {
			bool in_call = rec->kind == WAIT_SLEPT && rec->phase == PROFILE_IN_CALL;

			visit_chains(rec, in_call ? waits_read(cpu, rec).asleep_cycles : 0);
		}
	}
	waits_visit_in_flight(NULL, visit_in_flight);
	waits_unpin();
}
