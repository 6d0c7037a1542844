// SPDX-License-Identifier: BSD-2-Clause
/*
 * Adds up the counters of all sites and CPUs. A site has a counter for each size, and a size has
 * known bytes, so a count of objects gives bytes exactly. A CPU that frees what another one has
 * allocated counts the free itself: only the sum of all CPUs tells what is live.
 */

#include "memory.h"

extern const struct profile_memory_site __start_memory_sites[], __stop_memory_sites[];

u64 memory_size_bytes(u32 size)
{
	if (size < PROFILE_MEMORY_CLASSES)
		return os_kmalloc_class_size(size);
	return (u64)OS_PAGE_BYTES << (size - PROFILE_MEMORY_CLASSES);
}

static void add_sums(struct memory_sums *to, const struct memory_sums *sums)
{
	to->nr_live += sums->nr_live;
	to->live_bytes += sums->live_bytes;
	to->nr += sums->nr;
	to->bytes += sums->bytes;
}

/*
 * Adds up a counter. Frees are read before allocations: what is freed was allocated before, so live
 * objects are never negative.
 */
static struct memory_sums sum_count(const struct profile_memory_site *site, u32 i)
{
	u64 bytes = memory_size_bytes(site->first_size + i), nr = 0, nr_freed = 0;
	u32 cpu;

	os_for_each_cpu(cpu)
		nr_freed += pf_load_acquire(&os_per_cpu(site->counts[site->nr_sizes + i], cpu));
	os_for_each_cpu(cpu)
		nr += pf_read_once(os_per_cpu(site->counts[i], cpu));
	return (struct memory_sums){
		.nr_live = nr - nr_freed,
		.live_bytes = (nr - nr_freed) * bytes,
		.nr = nr,
		.bytes = nr * bytes,
	};
}

static void add_row(struct memory_snapshot *snap, struct memory_row row)
{
	add_sums(&snap->all, &row.sums);
	if (!row.sums.nr)
		return;
	if (snap->nr_rows == MEMORY_MAX_ROWS)
		snap->nr_not_shown++;
	else
		snap->rows[snap->nr_rows++] = row;
}

static void add_site(struct memory_snapshot *snap, const struct profile_memory_site *site)
{
	struct memory_row row = { .site = site };

	for (u32 i = 0; i < site->nr_sizes; i++) {
		struct memory_sums sums = sum_count(site, i);

		add_sums(&row.sums, &sums);
		add_sums(&snap->sizes[site->first_size + i], &sums);
	}
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

static bool is_of_kind(const struct profile_memory_site *site, enum memory_kind kind)
{
	return kind == (site->first_size ? MEMORY_PAGES : MEMORY_KMALLOC);
}

/* What was live at the mark, by site number. Sites without room here count as empty then. */
static struct memory_sums marked[2 * MEMORY_MAX_ROWS];

static struct memory_sums sum_site(const struct profile_memory_site *site)
{
	struct memory_sums all = { 0 };

	for (u32 i = 0; i < site->nr_sizes; i++) {
		struct memory_sums sums = sum_count(site, i);

		add_sums(&all, &sums);
	}
	return all;
}

void memory_mark(void)
{
	u32 nr = __stop_memory_sites - __start_memory_sites;

	for (u32 i = 0; i < pf_min(nr, (u32)PF_ARRAY_SIZE(marked)); i++)
		marked[i] = sum_site(&__start_memory_sites[i]);
}

void memory_growth(struct memory_snapshot *snap, enum memory_kind kind)
{
	u32 nr = __stop_memory_sites - __start_memory_sites;

	memset(snap, 0, sizeof(*snap));
	for (u32 i = 0; i < nr; i++) {
		struct memory_row row = { .site = &__start_memory_sites[i] };
		static const struct memory_sums none;
		const struct memory_sums *old = i < PF_ARRAY_SIZE(marked) ? &marked[i] : &none;

		if (!is_of_kind(row.site, kind))
			continue;
		row.sums = sum_site(row.site);
		if (row.sums.live_bytes <= old->live_bytes)
			continue;
		row.sums.live_bytes -= old->live_bytes;
		/* A site may have fewer objects than before, but larger ones. */
		row.sums.nr_live -= pf_min(row.sums.nr_live, old->nr_live);
		row.sums.nr -= old->nr;
		row.sums.bytes -= old->bytes;
		add_row(snap, row);
	}
	os_sort(snap->rows, snap->nr_rows, sizeof(snap->rows[0]), compare_rows);
}

void memory_snapshot(struct memory_snapshot *snap, enum memory_kind kind)
{
	const struct profile_memory_site *site;

	memset(snap, 0, sizeof(*snap));
	for (site = __start_memory_sites; site < __stop_memory_sites; site++) {
		if (is_of_kind(site, kind))
			add_site(snap, site);
	}
	snap->allocator_bytes = kind == MEMORY_PAGES ? os_page_bytes_live() :
						       os_kmalloc_bytes_live();
	os_sort(snap->rows, snap->nr_rows, sizeof(snap->rows[0]), compare_rows);
}
