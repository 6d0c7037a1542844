/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_MEMORY_SUM_COLUMNS_H
#define PROFILE_MEMORY_SUM_COLUMNS_H

/* The first columns of tables of the kernel's memory, for report.c and kernel_chains_report.c. */

#include "../table.h"
#include "memory.h"

enum {
	LIVE_BYTES,
	PERCENT,
	NR_LIVE,
	BYTES,
	NR,
	NR_SUM_COLUMNS,
};

#define MEMORY_SUM_COLUMNS                                                                   \
	[LIVE_BYTES] = { "live.bytes", "live_bytes", COLUMN_COUNT, 14, .total = TOTAL_SUM }, \
	[PERCENT] = { "% live", NULL, COLUMN_PERCENT, 7 },                                   \
	[NR_LIVE] = { "live", "live_objects", COLUMN_COUNT, 10, .total = TOTAL_SUM },        \
	[BYTES] = { "allocated.bytes", "allocated_bytes", COLUMN_COUNT, 16,                  \
		    .wide_width = 20,  .total = TOTAL_SUM },                                 \
	[NR] = { "allocated", "allocated_objects", COLUMN_COUNT, 12, .total = TOTAL_SUM }
#define MEMORY_PEAK_COLUMN                                                       \
	{                                                                        \
		"peak.bytes", "peak_bytes", COLUMN_COUNT, 14, .total = TOTAL_SUM \
	}

/* Sets the cells of MEMORY_SUM_COLUMNS. */
static inline void memory_set_sums(struct cell *cells, const struct memory_sums *sums,
				   const struct memory_sums *all)
{
	cells[LIVE_BYTES] = cell_nr(sums->live_bytes);
	cells[PERCENT] = cell_percent(sums->live_bytes, all->live_bytes);
	cells[NR_LIVE] = cell_nr(sums->nr_live);
	cells[BYTES] = cell_nr(sums->bytes);
	cells[NR] = cell_nr(sums->nr);
}

#endif
