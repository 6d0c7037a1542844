// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests in all interleavings (interleave.h) that a CPU and its interrupt, which claim rows of the
 * same table of functions, count all calls.
 */

#include "unit.h"

#include "../../kernel/profile/functions/functions.h"

#define FUNCTION 0x81000100
#define CALLER	 0x81000205

bool functions_used; /* normally in profiler.c, which is not linked here */

static struct function_table *table;

static u64 row_of(u64 caller)
{
	return function_key(FUNCTION, caller) * 0x9e3779b97f4a7c15ull >> (64 - FUNCTION_LOG2_ROWS);
}

/* Returns a caller whose row is taken by that of CALLER. */
static u64 other_caller(void)
{
	static u64 caller = CALLER;

	while (caller == CALLER || row_of(caller) != row_of(CALLER))
		caller++;
	return caller;
}

static void make_table(void)
{
	if (!table) {
		assert_true(functions_alloc());
		table = os_per_cpu(function_table, 0);
		os_per_cpu(function_counts, 0) = table;
	}
	memset(table, 0, sizeof(*table));
	il_share(&table->rows[row_of(CALLER)], 2 * sizeof(struct function_row));
}

static void call_from(u64 caller)
{
	struct profile_function_thread thread = { 0 };
	struct profile_function_call call, parent = { 0 };

	il_check(profile_function_enter(FUNCTION, caller, &call, &thread));
	profile_function_exit(&call, &parent, &thread);
}

static void call_from_one(void)
{
	call_from(CALLER);
}

static void call_from_other(void)
{
	call_from(other_caller());
	call_from(CALLER);
}

static void all_are_counted(void)
{
	const struct function_row *row = &table->rows[row_of(CALLER)];
	bool is_first = row->key == function_key(FUNCTION, CALLER);

	il_check(row[!is_first].key == function_key(FUNCTION, CALLER));
	il_check(row[!is_first].nr == 2 && row[is_first].nr == 1);
	il_check(row[is_first].key == function_key(FUNCTION, other_caller()));
}

const struct il_test il_tests[] = {
	{ "rows",
	  make_table,
	  { { call_from_one, 0 }, { call_from_other, 0 } },
	  all_are_counted,
	  2,
	  "" },
	{ 0 },
};
