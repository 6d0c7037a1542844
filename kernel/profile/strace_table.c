// SPDX-License-Identifier: BSD-2-Clause
/*
 * The system call table: see strace.h for its form. One writer (a thread for its own table, the
 * holder of strace_lock for a sum's). Looking up a known number is an array access; adding one
 * happens once for each number. A number beyond index[] is searched for, as no real program makes
 * such calls. What cannot have a row is counted in an overflow row, so the sum of all rows is
 * always all calls; an error that has no place of its own is still in its row's number of errors.
 */

#include "internal.h"

#define ROW_BYTES sizeof(struct profile_syscall_row)

u64 strace_row_nr_ended(const struct profile_syscall_row *row)
{
	u64 sum = 0;

#ifdef CONFIG_PROFILE_STRACE_DETAIL
	for (u32 i = 0; i < PROFILE_SYSCALL_BUCKETS; i++)
		sum += row->nr_log2[i];
#else
	(void)row;
#endif
	return sum;
}

void strace_table_init(struct profile_syscall_table *table, u32 size_bytes)
{
	table->size_bytes = size_bytes;
	table->rows_end = sizeof(*table);
	table->errors_begin = size_bytes;
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

static struct profile_syscall_table *table_alloc(u32 size_bytes)
{
	struct profile_syscall_table *table = os_zalloc(size_bytes);

	if (table)
		strace_table_init(table, size_bytes);
	return table;
}

/* Rows keep their offsets. Nobody reads the old one: readers hold strace_lock, too. */
void strace_table_grow(struct profile_syscall_table **table)
{
	struct profile_syscall_table *old = *table, *new;
	u32 error_bytes = old->size_bytes - old->errors_begin;

	if (old->fixed || old->size_bytes >= STRACE_MAX_BYTES)
		return;
	new = table_alloc(old->size_bytes * 2);
	if (!new)
		return;
	memcpy(new->index, old->index, sizeof(new->index));
	memcpy(new + 1, old + 1, old->rows_end - sizeof(*old));
	new->rows_end = old->rows_end;
	new->nr_unknown = old->nr_unknown;
	new->errors_begin = new->size_bytes - error_bytes;
	memcpy(strace_error_at(new, new->errors_begin), strace_error_at(old, old->errors_begin),
	       error_bytes);
	*table = new;
	os_free(old);
}

static bool has_room(const struct profile_syscall_table *table)
{
	return table->errors_begin - table->rows_end >= ROW_BYTES;
}

static bool make_room(struct profile_syscall_table **table)
{
	if (!*table)
		*table = table_alloc(STRACE_FIRST_BYTES);
	else if (!has_room(*table))
		strace_table_grow(table);
	return *table && has_room(*table);
}

struct profile_syscall_row *strace_table_row(struct profile_syscall_table **table, u64 nr,
					     enum profile_overflow *why)
{
	struct profile_syscall_row *row = *table ? find_row(*table, nr) : NULL;
	bool unknown = nr >= PROFILE_NR_INDEXED;

	if (row)
		return row;
	*why = PROFILE_OVERFLOW_UNKNOWN;
	if (unknown && *table && (*table)->nr_unknown == STRACE_MAX_UNKNOWN)
		return NULL;
	*why = PROFILE_OVERFLOW_NO_MEMORY;
	if (!make_room(table))
		return NULL;

	row = strace_row_at(*table, (*table)->rows_end);
	*row = (struct profile_syscall_row){ .nr = nr };
	if (unknown)
		(*table)->nr_unknown++;
	else
		(*table)->index[nr] = (*table)->rows_end / PROFILE_INDEX_UNIT;
	(*table)->rows_end += ROW_BYTES;
	return row;
}

bool strace_table_add_error(struct profile_syscall_table *table,
			    const struct profile_syscall_row *row, u32 error, u64 nr)
{
	u32 row_at = (char *)row - (char *)table;
	struct strace_error *slot;

	for (u32 at = table->errors_begin; at < table->size_bytes; at += sizeof(*slot)) {
		slot = strace_error_at(table, at);
		if (slot->row == row_at && slot->error == error) {
			WRITE_ONCE(slot->nr, slot->nr + nr);
			return true;
		}
	}
	if (table->errors_begin - table->rows_end < sizeof(*slot))
		return false;
	slot = strace_error_at(table, table->errors_begin - sizeof(*slot));
	*slot = (struct strace_error){ .nr = nr, .row = row_at, .error = error };
	/* Pairs with the acquire in strace_sum_add_errors(). */
	smp_store_release(&table->errors_begin, table->errors_begin - (u32)sizeof(*slot));
	return true;
}

void strace_table_clear(struct profile_syscall_table *table)
{
	if (!table)
		return;
	memset(table->index, 0, sizeof(table->index));
	table->nr_unknown = 0;
	table->rows_end = sizeof(*table);
	table->errors_begin = table->size_bytes;
}

static void add_to_row(struct profile_syscall_row *dst, const struct profile_syscall_row *src)
{
	dst->nr_calls += src->nr_calls;
	dst->nr_errors += src->nr_errors;
	dst->cycles += src->cycles;
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	dst->off_cycles += src->off_cycles;
	dst->max_cycles = max(dst->max_cycles, src->max_cycles);
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
	dst->max_cycles = max(dst->max_cycles, src->max_cycles);
}

void strace_sum_add_row(struct profile_syscall_sum *sum, const struct profile_syscall_row *src)
{
	struct profile_overflow_row overflow = {
		.nr_calls = src->nr_calls,
		.nr_errors = src->nr_errors,
		.nr_ended = strace_row_nr_ended(src),
		.cycles = src->cycles,
		.off_cycles = strace_row_off_cycles(src),
		.max_cycles = strace_row_max_cycles(src),
	};
	enum profile_overflow why;
	struct profile_syscall_row *row;

	if (!src->nr_calls)
		return;
	row = strace_table_row(&sum->table, src->nr, &why);
	if (row)
		add_to_row(row, src);
	else
		strace_add_overflow(&sum->overflow[why], &overflow);
}

/* Errors of a row that has become part of an overflow row have no name any more. */
void strace_sum_add_errors(struct profile_syscall_sum *sum, const struct profile_syscall_table *src)
{
	struct profile_syscall_row *row;
	enum profile_overflow why;
	u32 at;

	if (!src)
		return;
	/* Pairs with the release in strace_table_add_error(). */
	at = smp_load_acquire(&src->errors_begin);
	for (; at < src->size_bytes; at += sizeof(struct strace_error)) {
		const struct strace_error *error = strace_error_at(src, at);

		row = strace_table_row(&sum->table, strace_row_at(src, error->row)->nr, &why);
		if (row &&
		    !strace_table_add_error(sum->table, row, error->error, READ_ONCE(error->nr))) {
			u64 nr = row->nr;

			strace_table_grow(&sum->table);
			row = strace_table_row(&sum->table, nr, &why);
			strace_table_add_error(sum->table, row, error->error, READ_ONCE(error->nr));
		}
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
	sum->nr_backwards += src->nr_backwards;
	sum->nr_unfollowed += src->nr_unfollowed;
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
