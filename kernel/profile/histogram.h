/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_HISTOGRAM_H
#define PROFILE_HISTOGRAM_H

/*
 * Histograms of times by powers of two. Hot paths count a time by
 *
 *	buckets[pf_log2(cycles, first_log2) - first_log2]++;
 *
 * so bucket i has the times of 2^(first_log2 + i) to 2^(first_log2 + i + 1) - 1 cycles. The first
 * bucket also has all shorter times; callers add longer times than the last bucket's to the last.
 */

#include "table.h"

/* A copy of the buckets, which no longer changes. */
struct histogram {
	const u64 *buckets;
	u32 nr_buckets;
	u32 first_log2;
	u64 max_cycles; /* the longest time */
};

/* Returns the number of times in all buckets. */
u64 histogram_nr(const u64 *buckets, u32 nr_buckets);

/*
 * Returns an upper bound of a percentile (1 to 100), in cycles: the end of its bucket, or the
 * longest time if that is less. Returns 0 if there are no times.
 */
u64 histogram_percentile(const struct histogram *h, u32 percent);

/* Returns a cell with the buckets that are not empty, for a column of COLUMN_COUNTS. */
struct cell histogram_cell(const struct histogram *h);

/* Prints a line for each bucket that is not empty. */
void histogram_print(const struct histogram *h, const char *name);

#endif
