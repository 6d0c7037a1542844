// SPDX-License-Identifier: BSD-2-Clause
/*
 * The system call table: see internal.h for its form. One writer (a thread for its own table,
 * the holder of the strace lock for a process's). Looking up a known number is an array access;
 * adding one happens once for each number. A number beyond index[] is searched for, as no real
 * program makes such calls. What cannot have a row is counted in a spill row, so the sum of all
 * rows is always all calls.
 */

#include "internal.h"

void strace_map_init(struct profile_syscall_map *map)
{
	map->chunks[0] = map->first;
	map->nr_chunks = 1;
}

static struct profile_syscall_row *find_row(struct profile_syscall_map *map, u64 nr)
{
	if (nr < STRACE_NR_INDEXED) {
		u32 i = map->index[nr];

		return i ? strace_map_row(map, i - 1) : NULL;
	}
	for (u32 i = 0; i < map->nr_rows; i++) {
		if (strace_map_row(map, i)->nr == nr)
			return strace_map_row(map, i);
	}
	return NULL;
}

static bool make_room(struct profile_syscall_table *table)
{
	struct profile_syscall_map *map = table->map;
	struct profile_syscall_row *chunk;

	if (!map) {
		map = os_zalloc(sizeof(*map));
		if (!map)
			return false;
		strace_map_init(map);
		/* Pairs with the acquire of readers in strace.c. */
		smp_store_release(&table->map, map);
	}
	if (map->nr_rows < map->nr_chunks * STRACE_CHUNK_ROWS)
		return true;
	chunk = os_zalloc(STRACE_CHUNK_ROWS * sizeof(*chunk));
	if (!chunk)
		return false;
	map->chunks[map->nr_chunks++] = chunk;
	return true;
}

struct profile_syscall_row *strace_table_row(struct profile_syscall_table *table, u64 nr)
{
	struct profile_syscall_map *map = table->map;
	struct profile_syscall_row *row = map ? find_row(map, nr) : NULL;
	bool unknown = nr >= STRACE_NR_INDEXED;

	if (row)
		return row;
	if (unknown && map && map->nr_unknown == STRACE_MAX_UNKNOWN)
		return &table->spill[PROFILE_SPILL_UNKNOWN];
	if (!make_room(table))
		return &table->spill[PROFILE_SPILL_NO_MEMORY];

	map = table->map;
	row = strace_map_row(map, map->nr_rows);
	*row = (struct profile_syscall_row){ .nr = nr };
	if (unknown)
		map->nr_unknown++;
	else
		map->index[nr] = map->nr_rows + 1;
	/* Pairs with the acquire of readers in strace.c: they see a complete row. */
	smp_store_release(&map->nr_rows, map->nr_rows + 1);
	return row;
}

static void add_counters(struct profile_syscall_row *dst, const struct profile_syscall_row *src)
{
	dst->nr_calls += src->nr_calls;
	dst->nr_errors += src->nr_errors;
	dst->cycles += src->cycles;
}

void strace_table_add(struct profile_syscall_table *table, const struct profile_syscall_row *src)
{
	if (src->nr_calls)
		add_counters(strace_table_row(table, src->nr), src);
}

void strace_table_clear(struct profile_syscall_table *table)
{
	if (table->map) {
		memset(table->map->index, 0, sizeof(table->map->index));
		table->map->nr_unknown = 0;
		WRITE_ONCE(table->map->nr_rows, 0);
	}
	memset(table->spill, 0, sizeof(table->spill));
	table->nr_backwards = 0;
}

void strace_table_fold(struct profile_syscall_table *dst, struct profile_syscall_table *src)
{
	if (!dst->map) {
		dst->map = src->map;
		src->map = NULL;
	}
	for (u32 i = 0; src->map && i < src->map->nr_rows; i++)
		strace_table_add(dst, strace_map_row(src->map, i));
	for (u32 i = 0; i < NR_PROFILE_SPILLS; i++)
		add_counters(&dst->spill[i], &src->spill[i]);
	dst->nr_backwards += src->nr_backwards;
	strace_table_clear(src);
	strace_table_free(src);
}

void strace_table_free(struct profile_syscall_table *table)
{
	struct profile_syscall_map *map = table->map;

	if (!map)
		return;
	table->map = NULL;
	for (u32 i = 1; i < map->nr_chunks; i++)
		os_free(map->chunks[i]);
	os_free(map);
}
