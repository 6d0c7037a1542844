// SPDX-License-Identifier: BSD-2-Clause
/*
 * Adds up the frees of the kernel's memory, and sorts them. What the allocators have freed more
 * than is in the rows was freed before frees were counted, or while that was off: the difference is
 * a row, too.
 */

#include "kernel_frees.h"

struct kernel_frees_view kernel_frees_view;

bool kernel_frees_view_init(u32 max_frees)
{
	kernel_frees_view.rows = os_zalloc(max_frees * sizeof(struct kernel_free_row));
	return kernel_frees_view.rows;
}

/* Most bytes first; then most objects. Their number decides the rest. */
static int compare_rows(const void *a_, const void *b_)
{
	const struct kernel_free_row *a = a_, *b = b_;
	int order = compare_u64(b->bytes, a->bytes);

	order = order ? order : compare_u64(b->nr, a->nr);
	return order ? order : compare_u64((u64)a->by, (u64)b->by);
}

/* Adds the rows of a kind. Returns their sum. */
static struct kernel_free_row add_rows(struct kernel_frees_view *view, enum memory_kind kind)
{
	struct kernel_free_row row, all = { 0 };

	for (u32 i = 0; (row.by = kernel_frees_read(i, &row.nr)); i++) {
		struct kernel_count of;

		if (!row.nr)
			continue;
		of = kernel_chains_find_count(row.by->count);
		if (!memory_is_of_kind(of.site, kind))
			continue;
		row.bytes = row.nr * memory_size_bytes(of.size);
		all.nr += row.nr;
		all.bytes += row.bytes;
		view->rows[view->nr_rows++] = row;
	}
	return all;
}

/* The rows are read before the counters of the allocations' places, which are never behind. */
void kernel_frees_make_view(enum memory_kind kind)
{
	struct kernel_frees_view *view = &kernel_frees_view;
	const struct profile_memory_site *site;
	struct kernel_free_row rows;
	struct memory_sums all = { 0 };

	view->nr_rows = 0;
	view->lost = view->off = (struct kernel_free_row){ 0 };
	if (!view->rows)
		return;
	rows = add_rows(view, kind);
	kernel_frees_read_lost(kind, &view->lost.nr, &view->lost.bytes);
	for (site = __start_memory_sites; site < __stop_memory_sites; site++) {
		struct memory_sums sums = { 0 };

		if (memory_is_of_kind(site, kind))
			sums = memory_sum_site(site);
		memory_add_sums(&all, &sums);
	}
	view->bytes = all.bytes - all.live_bytes;
	view->off.bytes = view->bytes - rows.bytes - view->lost.bytes;
	view->off.nr = all.nr - all.nr_live - rows.nr - view->lost.nr;
	os_sort(view->rows, view->nr_rows, sizeof(view->rows[0]), compare_rows);
}
