// SPDX-License-Identifier: BSD-2-Clause
/*
 * Adds up the counters of each call chain of the kernel's allocations, and sorts the chains. What
 * is in the counters of the sites themselves, as from before chains were recorded, is one row. So
 * the rows have what the table of sites has.
 */

#include "kernel_chains.h"

struct kernel_chain_view kernel_chain_view;
static struct memory_peak peak;
static u64 *peak_bytes; /* of each call chain, by its number */
static u32 max_rows;

void kernel_chain_view_init(u32 max_chains)
{
	max_rows = max_chains + 1; /* one for what was allocated before */
	peak_bytes = os_zalloc(max_chains * sizeof(*peak_bytes));
	if (peak_bytes)
		kernel_chain_view.rows = os_zalloc(max_rows * sizeof(struct kernel_chain_row));
}

static void add_row(const struct kernel_chain_row *row)
{
	struct kernel_chain_view *view = &kernel_chain_view;

	if (!row->sums.nr && !row->peak_bytes)
		return;
	memory_add_sums(&view->all, &row->sums);
	os_assert(view->nr_rows < max_rows);
	view->rows[view->nr_rows++] = *row;
}

/* Returns by how much the sums have grown since the mark. */
static struct memory_sums since(struct memory_sums sums, const struct memory_sums *marked)
{
	sums.nr -= marked->nr;
	sums.bytes -= marked->bytes;
	sums.nr_live -= pf_min(sums.nr_live, marked->nr_live);
	sums.live_bytes -= pf_min(sums.live_bytes, marked->live_bytes);
	return sums;
}

/* Adds the chains of a site, or those of one process. Returns what they had at the peak. */
static u64 add_chains(const struct profile_memory_site *site, bool peak_is_over, bool since_mark,
		      u64 process)
{
	const struct kernel_chain *chain = NULL;
	u64 bytes = 0;

	while ((chain = memory_next_chain(site, chain))) {
		struct kernel_chain_row row = { chain, kernel_chain_sums(chain), 0 };

		row.peak_bytes = peak_is_over ? peak_bytes[kernel_chain_number(chain)] :
						row.sums.live_bytes;
		bytes += row.peak_bytes;
		if (since_mark)
			row.sums = since(row.sums, &chain->marked);
		if (process && (chain->process != process || !row.sums.live_bytes))
			continue;
		if (!since_mark || row.sums.live_bytes)
			add_row(&row);
	}
	return bytes;
}

/* Most live bytes first; then most allocated bytes. Their number decides the rest. */
static int compare_rows(const void *a_, const void *b_)
{
	const struct kernel_chain_row *a = a_, *b = b_;
	int order = compare_u64(b->sums.live_bytes, a->sums.live_bytes);

	order = order ? order : compare_u64(b->sums.bytes, a->sums.bytes);
	return order ? order : compare_u64((u64)a->chain, (u64)b->chain);
}

static void make_view(enum memory_kind kind, bool since_mark, u64 process)
{
	struct kernel_chain_row before = { 0 };
	bool peak_is_over = memory_peak_is_over(&peak, peak_bytes);
	const struct profile_memory_site *site;

	kernel_chain_view.nr_rows = 0;
	kernel_chain_view.all = (struct memory_sums){ 0 };
	if (!kernel_chain_view.rows)
		return;
	for (site = __start_memory_sites; site < __stop_memory_sites; site++) {
		struct memory_sums sums;
		u64 i = site - __start_memory_sites, of_chains, bytes;

		if (!memory_is_of_kind(site, kind))
			continue;
		sums = memory_sum_site_alone(site);
		of_chains = add_chains(site, peak_is_over, since_mark, process);
		bytes = peak_is_over && i < MEMORY_MAX_SITES ? peak.live_bytes[i] - of_chains :
							       sums.live_bytes;
		memory_add_sums(&before.sums, &sums);
		before.peak_bytes += bytes;
	}
	if (!since_mark && !process)
		add_row(&before);
	kernel_chain_view.allocator_bytes = memory_allocator_bytes(kind);
	os_sort(kernel_chain_view.rows, kernel_chain_view.nr_rows,
		sizeof(kernel_chain_view.rows[0]), compare_rows);
}

void kernel_chains_make_view(enum memory_kind kind, bool since_mark)
{
	make_view(kind, since_mark, 0);
}

void kernel_chains_make_view_of(u64 process)
{
	make_view(MEMORY_KERNEL, false, process);
}
