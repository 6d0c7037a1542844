// SPDX-License-Identifier: BSD-2-Clause
/* Finds functions by a binary search in the table that symbols.awk has made from nm's output. */

#include "symbols.h"

struct symbol {
	u64 addr;
	const char *name; /* NULL: the end of the function before it */
};

extern const struct symbol battery_symbols[], battery_symbols_end[];

const char *battery_symbol(u64 addr, u64 *start)
{
	const struct symbol *low = battery_symbols, *high = battery_symbols_end;

	/* Those before low begin at or below addr, those from high on above it. */
	while (low < high) {
		const struct symbol *middle = low + (high - low) / 2;

		if (middle->addr <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == battery_symbols)
		return NULL;
	*start = low[-1].addr;
	return low[-1].name;
}

bool battery_symbol_lookup(u64 addr, u64 *start, char *name, size_t size)
{
	const char *found = battery_symbol(addr, start);

	if (!found)
		return false;
	if (name && size) {
		for (; --size && *found; found++)
			*name++ = *found;
		*name = '\0';
	}
	return true;
}
