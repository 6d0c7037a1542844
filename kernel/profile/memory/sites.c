// SPDX-License-Identifier: BSD-2-Clause
/*
 * Adds up the counters of all sites and CPUs. A site has a counter for each size, and a size has
 * known bytes, so a count of objects gives bytes exactly. A CPU that frees what another one has
 * allocated counts the free itself: only the sum of all CPUs tells what is live.
 *
 * While call chains are recorded, an allocation is counted in the counters of its chain
 * (kernel_chains.c), and not in those of its site. So the sum of a site includes its chains.
 */

#include "memory.h"

u64 memory_size_bytes(u32 size)
{
	if (size < PROFILE_MEMORY_CLASSES)
		return os_kmalloc_class_size(size);
	return (u64)OS_PAGE_BYTES << (size - PROFILE_MEMORY_CLASSES);
}

void memory_add_sums(struct memory_sums *to, const struct memory_sums *sums)
{
	to->nr_live += sums->nr_live;
	to->live_bytes += sums->live_bytes;
	to->nr += sums->nr;
	to->bytes += sums->bytes;
}

/*
 * Frees are read before allocations: what is freed was allocated before, so live objects are never
 * negative.
 */
struct memory_sums memory_sum_count(const OS_PER_CPU(u64) * count, u32 nr_sizes, u32 size)
{
	u64 bytes = memory_size_bytes(size), nr = 0, nr_freed = 0;
	u32 cpu;

	os_for_each_cpu(cpu)
		nr_freed += pf_load_acquire(&os_per_cpu(count[nr_sizes], cpu));
	os_for_each_cpu(cpu)
		nr += pf_read_once(os_per_cpu(count[0], cpu));
	return (struct memory_sums){
		.nr_live = nr - nr_freed,
		.live_bytes = (nr - nr_freed) * bytes,
		.nr = nr,
		.bytes = nr * bytes,
	};
}

static void add_row(struct memory_snapshot *snap, struct memory_row row)
{
	memory_add_sums(&snap->all, &row.sums);
	snap->peak_bytes += row.peak_bytes;
	if (!row.sums.nr && !row.peak_bytes)
		return;
	if (snap->nr_rows == MEMORY_MAX_ROWS)
		snap->nr_not_shown++;
	else
		snap->rows[snap->nr_rows++] = row;
}

/* Sets which sizes the site has ever allocated: most have not, and reading them takes long. */
static void find_used(const struct profile_memory_site *site, u64 is_used[PROFILE_MEMORY_SIZES])
{
	u32 cpu;

	memset(is_used, 0, site->nr_sizes * sizeof(*is_used));
	os_for_each_cpu(cpu) {
		const u64 *counts = &os_per_cpu(site->counts[0], cpu);

		for (u32 i = 0; i < site->nr_sizes; i++)
			is_used[i] |= pf_read_once(counts[i]);
	}
}

/* Adds up a site's own counters. Adds them to the sums of each size, too, unless that is NULL. */
static struct memory_sums sum_site_alone(const struct profile_memory_site *site,
					 struct memory_sums *sizes)
{
	u64 is_used[PROFILE_MEMORY_SIZES];
	struct memory_sums all = { 0 };

	find_used(site, is_used);
	for (u32 i = 0; i < site->nr_sizes; i++) {
		u32 size = site->first_size + i;
		struct memory_sums sums;

		if (!is_used[i])
			continue;
		sums = memory_sum_count(&site->counts[i], site->nr_sizes, size);
		memory_add_sums(&all, &sums);
		if (sizes)
			memory_add_sums(&sizes[size], &sums);
	}
	return all;
}

struct memory_sums memory_sum_site_alone(const struct profile_memory_site *site)
{
	return sum_site_alone(site, NULL);
}

/* Adds up a site and its call chains. */
static struct memory_sums sum_site(const struct profile_memory_site *site,
				   struct memory_sums *sizes)
{
	struct memory_sums all = sum_site_alone(site, sizes);
	const struct kernel_chain *chain = NULL;

	while ((chain = memory_next_chain(site, chain))) {
		struct memory_sums sums = kernel_chain_sums(chain);

		memory_add_sums(&all, &sums);
		if (sizes)
			memory_add_sums(&sizes[kernel_chain_size(chain)], &sums);
	}
	return all;
}

struct memory_sums memory_sum_site(const struct profile_memory_site *site)
{
	return sum_site(site, NULL);
}

u64 memory_site_live_bytes(const struct profile_memory_site *site)
{
	return memory_sum_site(site).live_bytes;
}

bool memory_peak_is_over(struct memory_peak *peak, u64 *chain_bytes)
{
	const struct profile_memory_site *site;
	u64 page_bytes = 0;

	memory_peak_copy(peak, chain_bytes);
	for (site = __start_memory_sites; site < __stop_memory_sites; site++)
		page_bytes += memory_is_of_pages(site) ? memory_site_live_bytes(site) : 0;
	return page_bytes < peak->page_bytes;
}

static void read_peak(struct memory_snapshot *snap)
{
	snap->peak_is_now = !memory_peak_is_over(&snap->peak, NULL);
}

static u64 peak_bytes(const struct memory_snapshot *snap, const struct memory_row *row)
{
	u64 i = row->site - __start_memory_sites;

	if (snap->peak_is_now || i >= MEMORY_MAX_SITES)
		return row->sums.live_bytes;
	return snap->peak.live_bytes[i];
}

static void add_site(struct memory_snapshot *snap, const struct profile_memory_site *site)
{
	struct memory_row row = { .site = site, .sums = sum_site(site, snap->sizes) };

	row.peak_bytes = peak_bytes(snap, &row);
	add_row(snap, row);
}

/* Sorts by live bytes, then by all bytes, then by place. */
static int compare_rows(const void *a_, const void *b_)
{
	const struct memory_row *a = a_, *b = b_;
	int order = compare_u64(b->sums.live_bytes, a->sums.live_bytes);

	order = order ? order : compare_u64(b->sums.bytes, a->sums.bytes);
	order = order ? order : strcmp(a->site->file, b->site->file);
	return order ? order : compare_u64(a->site->line, b->site->line);
}

/* Sorts by the larger of both, live now and at the peak. */
static int compare_most(const void *a_, const void *b_)
{
	const struct memory_row *a = a_, *b = b_;
	int order = compare_u64(pf_max(b->sums.live_bytes, b->peak_bytes),
				pf_max(a->sums.live_bytes, a->peak_bytes));

	return order ? order : compare_rows(a, b);
}

bool memory_is_of_kind(const struct profile_memory_site *site, enum memory_kind kind)
{
	if (kind == MEMORY_KERNEL)
		return site->use == PROFILE_MEMORY_OF_KERNEL;
	return kind == (memory_is_of_pages(site) ? MEMORY_PAGES : MEMORY_KMALLOC);
}

/* The sums at the mark, by site number. Sites beyond the end of the array count from 0. */
static struct memory_sums marked[MEMORY_MAX_SITES];

void memory_mark(void)
{
	u32 nr = __stop_memory_sites - __start_memory_sites;

	for (u32 i = 0; i < pf_min(nr, (u32)PF_ARRAY_SIZE(marked)); i++) {
		marked[i] = sum_site(&__start_memory_sites[i], NULL);
		kernel_chains_mark(&__start_memory_sites[i]);
	}
	memory_peak_restart();
}

/* Makes the growth of what is in a row. Returns false if it has not grown. */
static bool subtract_marked(struct memory_row *row, const struct memory_sums *old)
{
	struct memory_sums *sums = &row->sums;

	if (sums->live_bytes <= old->live_bytes && row->peak_bytes <= old->live_bytes)
		return false;
	row->peak_bytes -= pf_min(row->peak_bytes, old->live_bytes);
	sums->live_bytes -= pf_min(sums->live_bytes, old->live_bytes);
	/* A site may have fewer objects than before, but larger ones. */
	sums->nr_live -= pf_min(sums->nr_live, old->nr_live);
	sums->nr -= old->nr;
	sums->bytes -= old->bytes;
	return true;
}

void memory_growth(struct memory_snapshot *snap, enum memory_kind kind)
{
	u32 nr = __stop_memory_sites - __start_memory_sites;

	memset(snap, 0, sizeof(*snap));
	read_peak(snap);
	for (u32 i = 0; i < nr; i++) {
		struct memory_row row = { .site = &__start_memory_sites[i] };
		static const struct memory_sums none;
		const struct memory_sums *old = i < PF_ARRAY_SIZE(marked) ? &marked[i] : &none;

		row.sums = sum_site(row.site, NULL);
		row.peak_bytes = peak_bytes(snap, &row);
		if (!subtract_marked(&row, old))
			continue;
		if (row.site->use == PROFILE_MEMORY_OF_PROGRAMS)
			snap->programs_peak_bytes += row.peak_bytes;
		if (row.site->use == PROFILE_MEMORY_OF_PROFILERS)
			snap->profilers_live_bytes += row.sums.live_bytes;
		if (memory_is_of_kind(row.site, kind))
			add_row(snap, row);
	}
	os_sort(snap->rows, snap->nr_rows, sizeof(snap->rows[0]),
		kind == MEMORY_KERNEL ? compare_most : compare_rows);
}

u64 memory_allocator_bytes(enum memory_kind kind)
{
	return kind == MEMORY_PAGES ? os_page_bytes_live() : os_kmalloc_bytes_live();
}

void memory_snapshot(struct memory_snapshot *snap, enum memory_kind kind)
{
	const struct profile_memory_site *site;

	memset(snap, 0, sizeof(*snap));
	read_peak(snap);
	for (site = __start_memory_sites; site < __stop_memory_sites; site++) {
		if (memory_is_of_kind(site, kind))
			add_site(snap, site);
	}
	snap->allocator_bytes = memory_allocator_bytes(kind);
	os_sort(snap->rows, snap->nr_rows, sizeof(snap->rows[0]), compare_rows);
}
