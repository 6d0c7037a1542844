/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_ROWS_H
#define PROFILE_ROWS_H

/*
 * A table of rows that are found by their keys, then sorted. A row begins with its key, of whole
 * words. Rows are one after the other, in the order in which they were added. A hash table, of the
 * numbers of rows, leads to them; it is never more than half full. Nothing is allocated, so a panic
 * can fill a table, too.
 */

#include "util.h"

#include <profile/stack_walk.h>

#define ROWS_MAX_BYTES	256 /* of a row that is sorted */
#define ROWS_SLOTS(max) (2 * (max))

struct rows {
	void *rows;
	u16 *slots; /* ROWS_SLOTS(max) of them: the number of a row, from 1 on; 0: free */
	u32 *nr;    /* rows in use; published with release */
	u32 row_bytes, key_words;
	u32 max; /* a power of two, less than 65536 */
};

/* A word of a key, whatever its type. */
typedef u64 __attribute__((__may_alias__)) row_word_t;

static pf_always_inline void *rows_at(const struct rows *t, u32 i)
{
	return (char *)t->rows + i * (size_t)t->row_bytes;
}

/* Adds a row to a free slot: its key, then zeros. Returns NULL if the table is full. */
void *rows_add(const struct rows *t, u16 *slot, const void *key);

/* Returns the row with this key, or a new one, or NULL if the table is full. */
static pf_always_inline void *rows_find(const struct rows *t, const void *key)
{
	const row_word_t *words = key;
	u64 hash = 0;

	for (u32 i = 0; i < t->key_words; i++)
		hash = profile_stack_hash(hash, words[i]);
	for (u32 at = hash >> 32;; at++) {
		u16 *slot = &t->slots[at & (ROWS_SLOTS(t->max) - 1)]; /* without a division */
		row_word_t *row = rows_at(t, *slot - 1);
		u32 i = 0;

		if (!*slot)
			return rows_add(t, slot, key);
		while (i < t->key_words && row[i] == words[i])
			i++;
		if (i == t->key_words)
			return row;
	}
}

/* Sorts the rows. No row can be found afterwards, because the slots are used for it. */
void rows_sort(const struct rows *t, int (*compare)(const void *a, const void *b));

#endif
