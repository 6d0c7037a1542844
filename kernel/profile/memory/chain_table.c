// SPDX-License-Identifier: BSD-2-Clause
/* Finds or adds a call chain in a table that all CPUs share, without locks: see chain_table.h. */

#include "chain_table.h"

#define MAX_PROBES 64

/* If another CPU adds the same chain meanwhile, this one's stays unused. */
u32 chain_table_find(const struct chain_table *table, u32 tag, const void *key)
{
	u32 new = 0;

	for (u32 probe = 0; table->slots && probe < MAX_PROBES; probe++) {
		u32 *slot = &table->slots[(tag + probe) & (PF_BIT(table->log2_slots) - 1)];
		u32 nr = pf_load_acquire(slot); /* pairs with pf_cmpxchg() */

		if (!nr) {
			new = new ? new : table->make(key);
			if (!new)
				return 0;
			nr = pf_cmpxchg(slot, 0, new);
			if (!nr) {
				if (table->added)
					table->added(new);
				return new;
			}
		}
		if (table->has_key(nr, key))
			return nr;
	}
	return 0;
}
