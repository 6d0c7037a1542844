// SPDX-License-Identifier: BSD-2-Clause
/*
 * Adds up the tables of all CPUs by function and caller, while the CPUs go on counting. A reset
 * does not change a table: it saves the current values, and readers subtract them. Reports and
 * exports print the result.
 */

#include "functions.h"

#include "../rows.h"

#define MAX_PAIRS 16384

static u64 code_base; /* upper half of the addresses of code */
static struct {
	struct function_pair rows[MAX_PAIRS];
	u16 slots[ROWS_SLOTS(MAX_PAIRS)];
} * pairs;
static u32 nr_pairs;
static struct function_lost lost_before; /* the sums of all CPUs at the last reset */

u64 function_of_key(u64 key)
{
	return code_base | key >> 32;
}

u64 return_address_of_key(u64 key)
{
	return code_base | (u32)key;
}

static bool alloc_table(u32 cpu)
{
	if (!os_per_cpu(function_table, cpu))
		os_per_cpu(function_table, cpu) = os_zalloc(sizeof(struct function_table));
	return os_per_cpu(function_table, cpu);
}

bool functions_alloc(void)
{
	bool done;
	u32 cpu;

	code_base = (u64)functions_alloc & ~0xffffffffull;
	if (!pairs)
		pairs = os_alloc(sizeof(*pairs));
	done = pairs;
	os_for_each_cpu(cpu)
		done &= alloc_table(cpu);
	return done;
}

static struct function_row read_row(const struct function_row *row)
{
	return (struct function_row){
		.key = pf_read_once(row->key),
		.nr = pf_read_once(row->nr),
		.cycles = pf_read_once(row->cycles),
		.self_cycles = pf_read_once(row->self_cycles),
	};
}

/* Returns the sums of all CPUs. */
static struct function_lost read_lost(void)
{
	struct function_lost sum = { 0 };
	u32 cpu;

	os_for_each_cpu(cpu) {
		sum.nr_no_row += pf_read_once(os_per_cpu(function_lost, cpu).nr_no_row);
		sum.nr_no_time += pf_read_once(os_per_cpu(function_lost, cpu).nr_no_time);
		sum.nr_in_nmi += pf_read_once(os_per_cpu(function_lost, cpu).nr_in_nmi);
	}
	return sum;
}

void functions_reset(void)
{
	struct function_table *table;
	u32 cpu;

	lost_before = read_lost();
	os_for_each_cpu(cpu) {
		table = os_per_cpu(function_table, cpu);
		for (u32 i = 0; table && i < FUNCTION_NR_ROWS; i++) {
			struct function_row row = read_row(&table->rows[i]);

			table->base[i] =
				(struct function_base){ row.nr, row.cycles, row.self_cycles };
		}
	}
}

static u64 start_of(u64 addr)
{
	u64 start;

	return os_symbol_lookup(addr, &start, NULL, 0) ? start : 0;
}

static struct rows rows_of_pairs(void)
{
	return (struct rows){
		.rows = pairs->rows,
		.slots = pairs->slots,
		.nr = &nr_pairs,
		.row_bytes = sizeof(pairs->rows[0]),
		.key_words = 2,
		.max = MAX_PAIRS,
	};
}

static void add_row(struct function_snapshot *snap, const struct function_row *row,
		    const struct function_base *base, bool by_caller)
{
	const struct rows rows = rows_of_pairs();
	struct function_pair *pair;
	u64 key[2];

	if (row->nr == base->nr && row->cycles == base->cycles)
		return;
	/* The return address may lie behind the caller's last instruction, so subtract 1. */
	key[0] = function_of_key(row->key);
	key[1] = by_caller ? start_of(return_address_of_key(row->key) - 1) : 0;
	pair = rows_find(&rows, key);
	if (!pair) {
		snap->nr_no_room += row->nr - base->nr;
		return;
	}
	pair->nr += row->nr - base->nr;
	pair->cycles += row->cycles - base->cycles;
	pair->self_cycles += row->self_cycles - base->self_cycles;
}

static int compare_pairs(const void *a_, const void *b_)
{
	const struct function_pair *a = a_, *b = b_;
	int order = compare_u64(b->self_cycles, a->self_cycles);

	if (!order)
		order = compare_u64(b->nr, a->nr);
	if (!order)
		order = compare_u64(a->function, b->function);
	return order ? order : compare_u64(a->caller, b->caller);
}

static int compare_functions(const void *a_, const void *b_)
{
	const struct function_pair *a = a_, *b = b_;
	int order = compare_u64(b->cycles, a->cycles);

	return order ? order : compare_pairs(a, b);
}

/* Sorts the pairs, and computes the sums. */
static void finish_snapshot(struct function_snapshot *snap, bool by_caller)
{
	const struct rows rows = rows_of_pairs();

	rows_sort(&rows, by_caller ? compare_pairs : compare_functions);
	snap->pairs = pairs->rows;
	snap->nr_pairs = nr_pairs;
	for (u32 i = 0; i < nr_pairs; i++) {
		snap->nr += pairs->rows[i].nr;
		snap->self_cycles += pairs->rows[i].self_cycles;
	}
}

/* Adds up the table of a CPU. */
static void add_cpu(struct function_snapshot *snap, u32 cpu, bool by_caller)
{
	const struct function_table *table = os_per_cpu(function_table, cpu);

	for (u32 i = 0; table && i < FUNCTION_NR_ROWS; i++) {
		struct function_base base = table->base[i];
		struct function_row row;

		pf_rmb();
		row = read_row(&table->rows[i]);
		if (row.key)
			add_row(snap, &row, &base, by_caller);
	}
}

static void begin_snapshot(struct function_snapshot *snap)
{
	memset(snap, 0, sizeof(*snap));
	nr_pairs = 0;
	if (pairs)
		memset(pairs->slots, 0, sizeof(pairs->slots));
}

void functions_snapshot(struct function_snapshot *snap)
{
	/*
	 * What a reset saves is read first, here and in each row, and the current values after it.
	 * In the other order, a reset in between would save more than the snapshot has, and the
	 * differences would be negative. The barriers pair with functions_reset(), whose stores
	 * depend on its loads.
	 */
	const struct function_lost lost = lost_before;
	u32 cpu;

	begin_snapshot(snap);
	if (!pairs)
		return;
	os_for_each_cpu(cpu)
		add_cpu(snap, cpu, true);
	pf_rmb();
	snap->lost = read_lost();
	snap->lost.nr_no_row -= lost.nr_no_row;
	snap->lost.nr_no_time -= lost.nr_no_time;
	snap->lost.nr_in_nmi -= lost.nr_in_nmi;
	finish_snapshot(snap, true);
}

void functions_snapshot_cpu(struct function_snapshot *snap, u32 cpu)
{
	begin_snapshot(snap);
	if (!pairs)
		return;
	add_cpu(snap, cpu, false);
	finish_snapshot(snap, false);
}
