// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table of system calls; strace.h has its layout. A table has one writer: the thread that owns
 * it or, for the table of a sum, the holder of lists_lock. Finding the row of a known number is an
 * array access. A number beyond index[] is looked up in a small cache, and then searched for. Every
 * call has a row. The first 64 numbers beyond index[] have one each, all others share one. A call
 * for whose row there is no memory is counted in the spare row, which is not in the table.
 *
 * A new thread goes on with the table of threads of its process that have exited, if another one
 * has not got it. A table that is not used any more becomes that of a new thread or program, with
 * its rows.
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
	for_each_strace_row(at, table) {
		if (strace_row_at(table, at)->nr == nr && at != strace_others_at(table))
			return strace_row_at(table, at);
	}
	return NULL;
}

/* The memory for rows is not zeroed: add_row() does that for the few that are used. */
static struct profile_syscall_table *table_alloc(u32 size_bytes, u32 nr_error_slots)
{
	struct profile_syscall_table *table = os_alloc(size_bytes);

	if (!table)
		return NULL;
	memset(table, 0, sizeof(*table));
	strace_table_init(table, size_bytes, nr_error_slots);
	memset((char *)table + table->errors_at, 0, size_bytes - table->errors_at);
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

/* Rows keep their offsets. The old table can be freed at once, because readers hold lists_lock. */
void strace_table_grow(struct profile_syscall_table **table, bool for_errors)
{
	struct profile_syscall_table *old = *table, *new;
	u32 size_bytes = 2 * old->size_bytes, nr_slots = nr_error_slots(old);

	os_assert_held(&lists_lock);
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
	new->others = old->others;
	new->of_many = old->of_many;
	for_each_strace_error(error, old) {
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

static void clear_errors(struct profile_syscall_table *table)
{
	if (table->nr_errors)
		memset((char *)table + table->errors_at, 0, table->size_bytes - table->errors_at);
	table->nr_errors = 0;
	table->errors_full = false;
}

/* A stack of tables that are not used. They have rows, without calls. */
static struct profile_syscall_table *spares[STRACE_NR_SPARES];
static u32 nr_spares;

struct profile_syscall_table *strace_table_take_spare(void)
{
	os_assert_held(&lists_lock);
	return nr_spares ? spares[--nr_spares] : NULL;
}

void strace_free_spares(void)
{
	os_assert_held(&lists_lock);
	while (nr_spares)
		os_free(spares[--nr_spares]);
}

/*
 * Keeps a table without calls as a spare, unless it is large, or has rows that only few programs
 * need.
 */
static void spare_table(struct profile_syscall_table *table)
{
	os_assert_held(&lists_lock);
	if (nr_spares == STRACE_NR_SPARES || table->nr_unknown || table->others ||
	    table->size_bytes > STRACE_SPARE_BYTES)
		os_free(table);
	else
		spares[nr_spares++] = table;
}

static bool make_room(struct profile_syscall_table **table)
{
	if (!*table)
		*table = table_alloc(STRACE_FIRST_BYTES, FIRST_ERROR_SLOTS);
	else if (!has_room(*table))
		strace_table_grow(table, false);
	return *table && has_room(*table);
}

/* Adds a row to the table, or returns NULL. */
static struct profile_syscall_row *add_row(struct profile_syscall_table **table, u64 nr)
{
	struct profile_syscall_row *row;

	if (!make_room(table))
		return NULL;
	row = strace_row_at(*table, (*table)->rows_end);
	*row = (struct profile_syscall_row){ .nr = nr };
	(*table)->rows_end += ROW_BYTES;
	os_assert((*table)->rows_end <= (*table)->errors_at);
	return row;
}

static u16 index_of(const struct profile_syscall_table *table,
		    const struct profile_syscall_row *row)
{
	return ((char *)row - (char *)table) / PROFILE_INDEX_UNIT;
}

static struct profile_syscall_row *spare_row(struct profile_syscall_sum *sum, u64 nr)
{
	struct profile_syscall_row *row = sum->spare;

	if (!row->nr_calls)
		memset(row, 0, sizeof(*row));
	row->nr = nr;
	return row;
}

/* Returns the row of the numbers beyond index[] that have none of their own. */
static struct profile_syscall_row *others_row(struct profile_syscall_sum *sum, u64 nr)
{
	struct profile_syscall_row *row;

	if (sum->table && sum->table->others) {
		row = strace_row_at(sum->table, strace_others_at(sum->table));
	} else {
		row = add_row(&sum->table, nr);
		if (!row)
			return spare_row(sum, nr);
		sum->table->others = index_of(sum->table, row);
	}
	row->nr = nr;
	return row;
}

/* Returns the row of a number beyond index[], which it enters in the cache. */
static struct profile_syscall_row *unknown_row(struct profile_syscall_sum *sum, u64 nr)
{
	struct profile_syscall_row *row = sum->table ? find_row(sum->table, nr) : NULL;

	if (!row && sum->table && sum->table->nr_unknown == STRACE_MAX_UNKNOWN) {
		row = others_row(sum, nr);
	} else if (!row) {
		row = add_row(&sum->table, nr);
		if (!row)
			return spare_row(sum, nr);
		sum->table->nr_unknown++;
	}
	if (row != sum->spare)
		sum->table->unknown[nr % STRACE_UNKNOWN_CACHE] = index_of(sum->table, row);
	return row;
}

struct profile_syscall_row *strace_row(struct profile_syscall_sum *sum, u64 nr)
{
	struct profile_syscall_row *row;

	os_assert_held(&lists_lock);
	if (!sum->table)
		sum->table = strace_table_take_spare();
	if (nr >= PROFILE_NR_INDEXED)
		return unknown_row(sum, nr);
	row = sum->table ? find_row(sum->table, nr) : NULL;
	if (row)
		return row;
	row = add_row(&sum->table, nr);
	if (!row)
		return spare_row(sum, nr);
	sum->table->index[nr] = index_of(sum->table, row);
	return row;
}

void strace_table_clear(struct profile_syscall_table *table)
{
	if (!table)
		return;
	memset(table->index, 0, sizeof(table->index));
	memset(table->unknown, 0, sizeof(table->unknown));
	table->nr_unknown = table->others = 0;
	table->of_many = false;
	table->rows_end = sizeof(*table);
	clear_errors(table);
}

#ifdef CONFIG_PROFILE_STRACE_DETAIL
/*
 * Moves a histogram to another one. Begins with the longest call, goes on with shorter ones, and
 * ends when it has found all calls: most rows have only a few, of similar length.
 */
static pf_always_inline void move_histogram(struct profile_syscall_row *dst,
					    struct profile_syscall_row *src)
{
	u64 last = pf_min(profile_strace_log2(src->max_cycles), (u64)PROFILE_LAST_LOG2) -
		   PROFILE_BUCKET_BASE_LOG2;
	u64 nr_left = src->nr_calls; /* at least as many as have ended */
	u64 bucket = last;

	/* A copy of a row that changes may have calls in longer buckets: those come last. */
	do {
		u64 nr = src->nr_log2[bucket];

		if (nr) {
			dst->nr_log2[bucket] += nr;
			src->nr_log2[bucket] = 0;
			nr_left -= nr;
		}
		bucket = (bucket - 1) % PROFILE_SYSCALL_BUCKETS;
	} while (nr_left && bucket != last);
}
#endif

/* Adds counters to a row, and clears them. */
static pf_always_inline void move_to_row(struct profile_syscall_row *dst,
					 struct profile_syscall_row *src)
{
	dst->nr_calls += src->nr_calls;
	dst->nr_errors += src->nr_errors;
	dst->cycles += src->cycles;
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	dst->off_cycles += src->off_cycles;
	dst->max_cycles = pf_max(dst->max_cycles, src->max_cycles);
	move_histogram(dst, src);
	src->off_cycles = src->max_cycles = 0;
#endif
	src->nr_calls = src->nr_errors = src->cycles = 0;
}

/* Returns the row of a number in index[]; NULL: there is none, or the number is beyond index[]. */
static pf_always_inline struct profile_syscall_row *
row_in_table(const struct profile_syscall_sum *sum, u64 nr)
{
	u32 at = nr < PROFILE_NR_INDEXED && sum->table ? sum->table->index[nr] : 0;

	return at ? strace_row_at(sum->table, at * PROFILE_INDEX_UNIT) : NULL;
}

/* Returns the row of sum for the counters of a row of src. */
static struct profile_syscall_row *same_row(struct profile_syscall_sum *sum,
					    const struct profile_syscall_sum *src,
					    const struct profile_syscall_row *row)
{
	u64 nr = pf_read_once(row->nr);
	struct profile_syscall_row *known;

	if (row == src->spare)
		return spare_row(sum, nr);
	/* Usually there is one. The row of others has a number beyond index[]. */
	known = row_in_table(sum, nr);
	if (pf_likely(known))
		return known;
	if ((char *)row - (char *)src->table == strace_others_at(src->table))
		return others_row(sum, nr);
	return strace_row(sum, nr);
}

void strace_sum_add_row(struct profile_syscall_sum *sum, const struct profile_syscall_sum *src,
			const struct profile_syscall_row *row, struct profile_syscall_row *counters)
{
	os_assert(counters->nr_errors <= counters->nr_calls);
	os_assert(strace_row_nr_ended(counters) <= counters->nr_calls);
	os_assert(counters->nr_calls || !counters->cycles);
	if (counters->nr_calls)
		move_to_row(same_row(sum, src, row), counters);
}

/* Adds errors to a row. Those of the spare row are counted in its total only. */
static void add_error(struct profile_syscall_sum *sum, const struct profile_syscall_row *row,
		      u32 error, u64 nr)
{
	u32 at = (char *)row - (char *)sum->table;

	if (row == sum->spare || strace_table_add_error(sum->table, row, error, nr))
		return;
	strace_table_grow(&sum->table, true);
	strace_table_add_error(sum->table, strace_row_at(sum->table, at), error, nr);
}

void strace_sum_add_errors(struct profile_syscall_sum *sum, const struct profile_syscall_sum *src)
{
	/* Its owner may add the first one just now: then it is in the next report. */
	if (!src->table || !pf_read_once(src->table->nr_errors))
		return;
	for_each_strace_error(error, src->table) {
		/* Pairs with the release in strace_table_add_error(): key and count are set. */
		u64 key = pf_load_acquire(&error->key);
		const struct profile_syscall_row *row =
			strace_row_at(src->table, strace_error_row(key));

		if (key)
			add_error(sum, same_row(sum, src, row), strace_error_number(key),
				  pf_read_once(error->nr));
	}
}

void strace_add_returns(struct profile_return_time *sum, const struct profile_return_time *add)
{
	sum->cycles += add->cycles;
	sum->max_cycles = pf_max(sum->max_cycles, add->max_cycles);
}

/* Adds what is in no row. */
static void add_rest(struct profile_syscall_sum *sum, const struct profile_syscall_sum *src)
{
	strace_add_returns(&sum->returns, &src->returns);
	sum->nr_backwards += src->nr_backwards;
	sum->nr_unfollowed += src->nr_unfollowed;
	sum->nr_forks += src->nr_forks;
	sum->forked_bytes += src->forked_bytes;
}

void strace_sum_add(struct profile_syscall_sum *sum, const struct profile_syscall_sum *src)
{
	struct profile_syscall_row copy;

	if (strace_sum_spare(src)) {
		copy = *src->spare;
		strace_sum_add_row(sum, src, src->spare, &copy);
	}
	add_rest(sum, src);
	if (!src->table)
		return;
	for_each_strace_row(at, src->table) {
		copy = *strace_row_at(src->table, at);
		strace_sum_add_row(sum, src, strace_row_at(src->table, at), &copy);
	}
	strace_sum_add_errors(sum, src);
}

/* Clears a sum without a table. */
static void clear_rest(struct profile_syscall_sum *sum)
{
	struct profile_syscall_row *spare = strace_sum_spare(sum);

	if (spare)
		memset(spare, 0, sizeof(*spare));
	*sum = (struct profile_syscall_sum){ .spare = sum->spare };
}

static pf_noinline void fold_rows(struct profile_syscall_sum *sum, struct profile_syscall_sum *src)
{
	for_each_strace_row(at, src->table) {
		struct profile_syscall_row *row = strace_row_at(src->table, at), *to;

		os_assert(row->nr_errors <= row->nr_calls);
		os_assert(strace_row_nr_ended(row) <= row->nr_calls);
		if (!row->nr_calls)
			continue;
		to = row_in_table(sum, row->nr);
		if (pf_likely(to))
			move_to_row(to, row);
		else
			strace_sum_add_row(sum, src, row, row);
	}
	if (pf_unlikely(src->table->nr_errors)) {
		strace_sum_add_errors(sum, src);
		clear_errors(src->table);
	}
	src->table->errors_full = false;
	sum->table->of_many = true;
	src->table->of_many = false;
	spare_table(src->table);
}

void strace_sum_fold_any(struct profile_syscall_sum *sum, struct profile_syscall_sum *src)
{
	if (!sum->table)
		sum->table = src->table;
	else if (src->table)
		fold_rows(sum, src);
	src->table = NULL;
	if (strace_sum_has_no_rest(src))
		return;
	if (strace_sum_spare(src))
		strace_sum_add_row(sum, src, src->spare, src->spare);
	add_rest(sum, src);
	clear_rest(src);
}

void strace_sum_clear(struct profile_syscall_sum *sum)
{
	struct profile_syscall_table *table = sum->table;

	strace_table_clear(table);
	clear_rest(sum);
	sum->table = table;
}

void strace_sum_free(struct profile_syscall_sum *sum)
{
	os_free(sum->table);
	clear_rest(sum);
}
