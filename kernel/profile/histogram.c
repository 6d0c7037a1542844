// SPDX-License-Identifier: BSD-2-Clause
/* Prints histograms in reports: as percentiles, as a cell of a table, as lines of stars. */

#include "histogram.h"

#define MAX_BUCKETS 64

u64 histogram_nr(const u64 *buckets, u32 nr_buckets)
{
	u64 nr = 0;

	for (u32 i = 0; i < nr_buckets; i++)
		nr += buckets[i];
	return nr;
}

u64 histogram_percentile(const struct histogram *h, u32 percent)
{
	u64 nr = histogram_nr(h->buckets, h->nr_buckets), below = 0;
	u64 rank = nr - os_mul_div_u64(nr, 100 - percent, 100); /* rounded up */

	if (!nr)
		return 0;
	for (u32 i = 0; i < h->nr_buckets - 1; i++) {
		below += h->buckets[i];
		if (below >= rank)
			return pf_min((2ull << (h->first_log2 + i)) - 1, h->max_cycles);
	}
	return h->max_cycles;
}

struct cell histogram_cell(const struct histogram *h)
{
	static struct table_count counts[MAX_BUCKETS];
	u32 nr = 0;

	os_assert(h->nr_buckets <= MAX_BUCKETS);
	for (u32 i = 0; i < h->nr_buckets; i++) {
		if (!h->buckets[i])
			continue;
		os_snprintf(counts[nr].name, sizeof(counts[nr].name), "%u", h->first_log2 + i);
		counts[nr++].nr = h->buckets[i];
	}
	return cell_counts(counts, nr);
}

/* Stars are in proportion to the fullest bucket, but at least one. */
void histogram_print(const struct histogram *h, const char *name)
{
	static const char stars[] = "****************************************";
	u64 most = 0;

	for (u32 i = 0; i < h->nr_buckets; i++)
		most = pf_max(most, h->buckets[i]);
	for (u32 i = 0; i < h->nr_buckets; i++) {
		u64 nr = h->buckets[i];

		if (nr)
			table_note("%30s  2^%-2u cycles  %16lu  %.*s", name, h->first_log2 + i, nr,
				   (int)pf_max(os_mul_div_u64(nr, sizeof(stars) - 1, most), 1ul),
				   stars);
	}
}
