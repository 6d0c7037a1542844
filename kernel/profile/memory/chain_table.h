/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_MEMORY_CHAIN_TABLE_H
#define PROFILE_MEMORY_CHAIN_TABLE_H

/*
 * A hash table of call chains that all CPUs share. A chain is added once, and never changes, moves
 * or goes, because memory may belong to it. So there are no locks: slots have the numbers of
 * chains, and a slot is set once.
 */

#include "../util.h"

struct chain_table {
	u32 log2_slots;
	u32 *slots; /* numbers from 1 on; 0: free. NULL: there is no memory */
	bool (*has_key)(u32 nr, const void *key);
	/* Makes a chain that nobody sees yet. Returns its number, or 0 if there is no room. */
	u32 (*make)(const void *key);
	/* Called for a chain that is new in the table; may be NULL. */
	void (*added)(u32 nr);
};

/*
 * Returns the number of the chain with this key, whose hash is tag; if there is none, adds it. 0:
 * no room. Any context.
 */
u32 chain_table_find(const struct chain_table *table, u32 tag, const void *key);

/*
 * For make(): takes one of max numbers. Returns it, from 1 on, or 0 if none is left. *nr may exceed
 * max then.
 */
static inline u32 chain_table_take(u32 *nr, u32 max)
{
	u32 new = max;

	if (pf_read_once(*nr) < max)
		new = __atomic_fetch_add(nr, 1, __ATOMIC_RELAXED);
	return new < max ? new + 1 : 0;
}

#endif
