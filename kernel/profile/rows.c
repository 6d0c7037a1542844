// SPDX-License-Identifier: BSD-2-Clause
/* Adds rows to a table, and sorts it: see rows.h. */

#include "rows.h"

void *rows_add(const struct rows *t, u16 *slot, const void *key)
{
	u32 nr = *t->nr;
	void *row = rows_at(t, nr);

	if (nr == t->max)
		return NULL;
	memset(row, 0, t->row_bytes);
	memcpy(row, key, t->key_words * sizeof(u64));
	*slot = nr + 1;
	pf_store_release(t->nr, nr + 1);
	return row;
}

/* The table that is being sorted: one report is printed at a time. */
static struct rows sorted;
static int (*compare_rows)(const void *a, const void *b);

static int compare_numbers(const void *a, const void *b)
{
	return compare_rows(rows_at(&sorted, *(const u16 *)a), rows_at(&sorted, *(const u16 *)b));
}

/* Sorts numbers, which are smaller than rows, then moves each row to its place. */
void rows_sort(const struct rows *t, int (*compare)(const void *a, const void *b))
{
	u64 first[ROWS_MAX_BYTES / sizeof(u64)];
	u16 *order = t->slots;
	u32 nr = *t->nr;

	os_assert(t->row_bytes <= sizeof(first));
	for (u32 i = 0; i < nr; i++)
		order[i] = i;
	sorted = *t;
	compare_rows = compare;
	os_sort(order, nr, sizeof(order[0]), compare_numbers);
	/* A permutation consists of cycles: move the rows of each cycle. */
	for (u32 i = 0; i < nr; i++) {
		u32 to = i, from = order[i];

		memcpy(first, rows_at(t, i), t->row_bytes);
		for (; from != i; to = from, from = order[to]) {
			memcpy(rows_at(t, to), rows_at(t, from), t->row_bytes);
			order[to] = to;
		}
		memcpy(rows_at(t, to), first, t->row_bytes);
		order[to] = to;
	}
}
