// SPDX-License-Identifier: BSD-2-Clause
/*
 * Keeps what was live of each site when most pages were in use. The page allocator calls when it
 * has given out a 32nd more pages than at the last peak that was kept, and at least 256 KiB more.
 * So a peak is known to within that, and a machine that fills its memory adds up its sites some
 * hundred times.
 *
 * The sites of pages are few. Those of kmalloc are many: they are added up only when the pages of
 * kmalloc differ from the last sums by an eighth, and by 256 KiB. That is done a few at a time, by
 * the next calls, as interrupts are off.
 */

#include "memory.h"

#include "../seq.h"

#define STEP_BYTES    (256ull << 10)
#define SITES_AT_ONCE 16

static struct memory_peak kept;
static u64 *kept_chains; /* of each call chain, by its number; NULL: none has been recorded */
static u32 max_kept_chains;
static u64 seq;
static pf_flag_t is_writing;		 /* one CPU at a time: the words below, and those above */
static u64 peak_pages;			 /* in use at the peak */
static u32 next_site = MEMORY_MAX_SITES; /* the next site of kmalloc to be added up, if any */
u64 profile_memory_next_peak = ~0ull;

static u32 nr_sites(void)
{
	return pf_min((u32)(__stop_memory_sites - __start_memory_sites), (u32)MEMORY_MAX_SITES);
}

/* Keeps what is live of a site, and of each of its call chains. */
static void add_up_site(u32 i)
{
	const struct profile_memory_site *site = &__start_memory_sites[i];
	const struct kernel_chain *chain = NULL;
	u64 bytes = memory_sum_site_alone(site).live_bytes;

	while ((chain = memory_next_chain(site, chain))) {
		u64 of_chain = kernel_chain_sums(chain).live_bytes;

		kept_chains[kernel_chain_number(chain)] = of_chain;
		bytes += of_chain;
	}
	kept.live_bytes[i] = bytes;
}

static void add_up_pages(void)
{
	u64 page_bytes = 0;

	for (u32 i = 0; i < nr_sites(); i++) {
		const struct profile_memory_site *site = &__start_memory_sites[i];

		if (!memory_is_of_pages(site))
			continue;
		add_up_site(i);
		page_bytes += kept.live_bytes[i];
	}
	kept.page_bytes = page_bytes;
}

static u64 slab_bytes(void)
{
	u64 bytes = 0;

	for (u32 i = 0; i < nr_sites(); i++) {
		if (__start_memory_sites[i].use == PROFILE_MEMORY_OF_KMALLOC)
			bytes += kept.live_bytes[i];
	}
	return bytes;
}

/* Has the sites of kmalloc added up if its pages differ enough. */
static void check_objects(void)
{
	u64 bytes = slab_bytes(), old = kept.slab_bytes;
	u64 difference = bytes > old ? bytes - old : old - bytes;

	if (difference < pf_max(STEP_BYTES, old / 8))
		return;
	kept.slab_bytes = bytes;
	next_site = 0;
}

static void add_up_some_objects(void)
{
	u32 end = pf_min(next_site + SITES_AT_ONCE, nr_sites());

	for (; next_site < end; next_site++) {
		if (!memory_is_of_pages(&__start_memory_sites[next_site]))
			add_up_site(next_site);
	}
}

static bool is_adding_up(void)
{
	return next_site < nr_sites();
}

/* Keeps this moment as the peak, or goes on with the last one. is_writing, interrupts off. */
static void keep(u64 nr_pages)
{
	seq_begin(&seq);
	if (is_adding_up()) {
		add_up_some_objects();
	} else {
		peak_pages = nr_pages;
		add_up_pages();
		check_objects();
	}
	seq_end(&seq);
	pf_write_once(profile_memory_next_peak,
		      is_adding_up() ?
			      0 :
			      peak_pages + pf_max(peak_pages / 32, STEP_BYTES / OS_PAGE_BYTES));
	pf_store_release(&is_writing, false);
}

pf_noinline void profile_memory_note_peak(u64 nr_pages)
{
	unsigned long flags = os_irq_save();

	if (!pf_xchg(&is_writing, true))
		keep(nr_pages);
	os_irq_restore(flags);
}

static void lock_and_keep(bool restart)
{
	unsigned long flags = os_irq_save();

	while (pf_xchg(&is_writing, true))
		os_cpu_relax();
	if (restart) {
		kept.slab_bytes = ~0ull >> 1; /* far from any sum: all sites are added up */
		next_site = MEMORY_MAX_SITES;
	}
	keep(os_page_bytes_live() / OS_PAGE_BYTES);
	os_irq_restore(flags);
}

void memory_peak_restart(void)
{
	lock_and_keep(true);
	while (is_adding_up())
		lock_and_keep(false);
}

void memory_peak_keep_chains(u64 *chain_bytes, u32 max_chains)
{
	max_kept_chains = max_chains;
	pf_store_release(&kept_chains, chain_bytes);
}

void memory_peak_copy(struct memory_peak *peak, u64 *chain_bytes)
{
	const u64 *chains = chain_bytes ? pf_load_acquire(&kept_chains) : NULL;

	SEQ_COPY(&seq) {
		*peak = kept;
		if (chains)
			memcpy(chain_bytes, chains, max_kept_chains * sizeof(*chains));
	}
}
