// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table of system calls; strace.h has its layout. A table has one writer: the thread that owns
 * it or, for the table of a sum, the holder of strace_lock. Finding the row of a known number is an
 * array access. A number beyond index[] is looked up in a small cache, and then searched for. A
 * call that cannot get a row is counted in an overflow row, so the rows add up to all calls.
 *
 * Errors are counted in a hash, by row and error number. An error can only be in two buckets of
 * four slots each, so the cost of a failing call does not grow with the number of different errors.
 * An error without a slot is counted only in the row's total of errors.
 */

#include "strace.h"

#include "../histogram.h"

#define ROW_BYTES	  sizeof(struct profile_syscall_row)
#define FIRST_ERROR_SLOTS (STRACE_FIRST_BYTES / 256)

u64 strace_row_nr_ended(const struct profile_syscall_row *row)
{
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	return histogram_nr(row->nr_log2, PROFILE_SYSCALL_BUCKETS);
#else
	(void)row;
	return 0;
#endif
}

void strace_table_init(struct profile_syscall_table *table, u32 size_bytes, u32 nr_error_slots)
{
	os_assert(nr_error_slots && !(nr_error_slots & (nr_error_slots - 1)));
	table->size_bytes = size_bytes;
	table->rows_end = sizeof(*table);
	table->errors_at = size_bytes - nr_error_slots * sizeof(struct strace_error);
	table->error_mask = (nr_error_slots - STRACE_ERROR_BUCKET) * sizeof(struct strace_error);
	os_assert(table->rows_end <= table->errors_at);
}

static struct profile_syscall_row *find_row(const struct profile_syscall_table *table, u64 nr)
{
	if (nr < PROFILE_NR_INDEXED) {
		u32 at = table->index[nr];

		return at ? strace_row_at(table, at * PROFILE_INDEX_UNIT) : NULL;
	}
	for_each_strace_row(at, table)
	{
		if (strace_row_at(table, at)->nr == nr)
			return strace_row_at(table, at);
	}
	return NULL;
}

static void remember_unknown(struct profile_syscall_table *table,
			     const struct profile_syscall_row *row)
{
	table->unknown[row->nr % STRACE_UNKNOWN_CACHE] =
		((char *)row - (char *)table) / PROFILE_INDEX_UNIT;
}

static struct profile_syscall_table *table_alloc(u32 size_bytes, u32 nr_error_slots)
{
	struct profile_syscall_table *table = os_zalloc(size_bytes);

	if (table)
		strace_table_init(table, size_bytes, nr_error_slots);
	return table;
}

static u32 nr_error_slots(const struct profile_syscall_table *table)
{
	return (table->size_bytes - table->errors_at) / sizeof(struct strace_error);
}

/*
 * Returns the maximum number of slots for errors: a quarter of the table's memory, so that the rows
 * of the old table always fit when it doubles.
 */
static u32 max_error_slots(u32 size_bytes)
{
	return pf_min(size_bytes / 4 / (u32)sizeof(struct strace_error), (u32)STRACE_MAX_ERRORS);
}

/* Rows keep their offsets. The old table can be freed at once, because readers hold strace_lock. */
void strace_table_grow(struct profile_syscall_table **table, bool for_errors)
{
	struct profile_syscall_table *old = *table, *new;
	u32 size_bytes = 2 * old->size_bytes, nr_slots = nr_error_slots(old);

	os_assert_held(&strace_lock);
	if (old->fixed || size_bytes > STRACE_MAX_BYTES)
		return;
	nr_slots = pf_min(nr_slots * (for_errors ? 4 : 2), max_error_slots(size_bytes));
	new = table_alloc(size_bytes, nr_slots);
	if (!new)
		return;
	memcpy(new->index, old->index, sizeof(new->index));
	memcpy(new->unknown, old->unknown, sizeof(new->unknown));
	memcpy(new + 1, old + 1, old->rows_end - sizeof(*old));
	new->rows_end = old->rows_end;
	new->nr_unknown = old->nr_unknown;
	for_each_strace_error(error, old)
	{
		const struct profile_syscall_row *row =
			strace_row_at(new, strace_error_row(error->key));

		if (error->key)
			strace_table_add_error(new, row, strace_error_number(error->key),
					       error->nr);
	}
	os_assert(new->rows_end <= new->errors_at &&new->nr_errors <= old->nr_errors);
	*table = new;
	os_free(old);
}

static bool has_room(const struct profile_syscall_table *table)
{
	return table->errors_at - table->rows_end >= ROW_BYTES;
}

static bool make_room(struct profile_syscall_table **table)
{
	if (!*table)
		*table = table_alloc(STRACE_FIRST_BYTES, FIRST_ERROR_SLOTS);
	else if (!has_room(*table))
		strace_table_grow(table, false);
	return *table && has_room(*table);
}

struct profile_syscall_row *strace_table_row(struct profile_syscall_table **table, u64 nr,
					     enum profile_overflow *why)
{
	struct profile_syscall_row *row = *table ? find_row(*table, nr) : NULL;
	bool unknown = nr >= PROFILE_NR_INDEXED;

	os_assert_held(&strace_lock);
	if (row) {
		if (unknown)
			remember_unknown(*table, row);
		return row;
	}
	*why = PROFILE_OVERFLOW_UNKNOWN;
	if (unknown && *table && (*table)->nr_unknown == STRACE_MAX_UNKNOWN)
		return NULL;
	*why = PROFILE_OVERFLOW_NO_MEMORY;
	if (!make_room(table))
		return NULL;

	row = strace_row_at(*table, (*table)->rows_end);
	*row = (struct profile_syscall_row){ .nr = nr };
	if (unknown) {
		(*table)->nr_unknown++;
		remember_unknown(*table, row);
	} else {
		(*table)->index[nr] = (*table)->rows_end / PROFILE_INDEX_UNIT;
	}
	(*table)->rows_end += ROW_BYTES;
	os_assert((*table)->rows_end <= (*table)->errors_at);
	return row;
}

void strace_table_clear(struct profile_syscall_table *table)
{
	if (!table)
		return;
	memset(table->index, 0, sizeof(table->index));
	memset(table->unknown, 0, sizeof(table->unknown));
	table->nr_unknown = 0;
	table->rows_end = sizeof(*table);
	table->errors_full = false;
	if (table->nr_errors)
		memset((char *)table + table->errors_at, 0, table->size_bytes - table->errors_at);
	table->nr_errors = 0;
}

static void add_to_row(struct profile_syscall_row *dst, const struct profile_syscall_row *src)
{
	dst->nr_calls += src->nr_calls;
	dst->nr_errors += src->nr_errors;
	dst->cycles += src->cycles;
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	dst->off_cycles += src->off_cycles;
	dst->max_cycles = pf_max(dst->max_cycles, src->max_cycles);
	for (u32 i = 0; i < PROFILE_SYSCALL_BUCKETS; i++)
		dst->nr_log2[i] += src->nr_log2[i];
#endif
}

void strace_add_overflow(struct profile_overflow_row *dst, const struct profile_overflow_row *src)
{
	dst->nr_calls += src->nr_calls;
	dst->nr_errors += src->nr_errors;
	dst->nr_ended += src->nr_ended;
	dst->cycles += src->cycles;
	dst->off_cycles += src->off_cycles;
	dst->max_cycles = pf_max(dst->max_cycles, src->max_cycles);
}

static void add_to_overflow(struct profile_overflow_row *dst, const struct profile_syscall_row *src)
{
	struct profile_overflow_row overflow = {
		.nr_calls = src->nr_calls,
		.nr_errors = src->nr_errors,
		.nr_ended = strace_row_nr_ended(src),
		.cycles = src->cycles,
		.off_cycles = strace_row_off_cycles(src),
		.max_cycles = strace_row_max_cycles(src),
	};

	strace_add_overflow(dst, &overflow);
}

void strace_sum_add_row(struct profile_syscall_sum *sum, const struct profile_syscall_row *src)
{
	enum profile_overflow why;
	struct profile_syscall_row *row;

	os_assert(src->nr_errors <= src->nr_calls);
	os_assert(strace_row_nr_ended(src) <= src->nr_calls);
	if (!src->nr_calls)
		return;
	row = strace_table_row(&sum->table, src->nr, &why);
	if (row)
		add_to_row(row, src);
	else
		add_to_overflow(&sum->overflow[why], src);
}

/*
 * Adds errors of a system call to a sum. If the call has no row there, the overflow row has counted
 * them, without their names.
 */
static void sum_add_error(struct profile_syscall_sum *sum, u64 syscall, u32 error, u64 nr)
{
	enum profile_overflow why;
	struct profile_syscall_row *row = strace_table_row(&sum->table, syscall, &why);

	if (!row || strace_table_add_error(sum->table, row, error, nr))
		return;
	strace_table_grow(&sum->table, true);
	strace_table_add_error(sum->table, strace_table_row(&sum->table, syscall, &why), error, nr);
}

void strace_sum_add_errors(struct profile_syscall_sum *sum, const struct profile_syscall_table *src)
{
	if (!src)
		return;
	for_each_strace_error(error, src)
	{
		/* Pairs with the release in strace_table_add_error(): key and count are set. */
		u64 key = pf_load_acquire(&error->key);

		if (key)
			sum_add_error(sum, strace_row_at(src, strace_error_row(key))->nr,
				      strace_error_number(key), pf_read_once(error->nr));
	}
}

static void add_table(struct profile_syscall_sum *sum, const struct profile_syscall_table *table)
{
	if (!table)
		return;
	for_each_strace_row(at, table) strace_sum_add_row(sum, strace_row_at(table, at));
	strace_sum_add_errors(sum, table);
}

static void add_rest(struct profile_syscall_sum *sum, const struct profile_syscall_sum *src)
{
	for (u32 i = 0; i < NR_PROFILE_OVERFLOWS; i++)
		strace_add_overflow(&sum->overflow[i], &src->overflow[i]);
	strace_add_returns(&sum->returns, &src->returns);
	sum->nr_backwards += src->nr_backwards;
	sum->nr_unfollowed += src->nr_unfollowed;
	sum->nr_forks += src->nr_forks;
	sum->forked_bytes += src->forked_bytes;
}

void strace_sum_add(struct profile_syscall_sum *sum, const struct profile_syscall_sum *src)
{
	add_table(sum, src->table);
	add_rest(sum, src);
}

void strace_sum_fold_table(struct profile_syscall_sum *sum, struct profile_syscall_table **table)
{
	if (!sum->table) {
		sum->table = *table;
	} else {
		add_table(sum, *table);
		os_free(*table);
	}
	*table = NULL;
}

void strace_sum_fold(struct profile_syscall_sum *sum, struct profile_syscall_sum *src)
{
	strace_sum_fold_table(sum, &src->table);
	add_rest(sum, src);
	memset(src, 0, sizeof(*src));
}

void strace_sum_clear(struct profile_syscall_sum *sum)
{
	struct profile_syscall_table *table = sum->table;

	strace_table_clear(table);
	memset(sum, 0, sizeof(*sum));
	sum->table = table;
}

void strace_sum_free(struct profile_syscall_sum *sum)
{
	os_free(sum->table);
	memset(sum, 0, sizeof(*sum));
}
