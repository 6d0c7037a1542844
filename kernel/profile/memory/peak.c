// SPDX-License-Identifier: BSD-2-Clause
/*
 * Keeps what was live of each site when most pages were in use. The page allocator calls when it
 * has given out a 32nd more pages than at the last peak that was kept, and at least 256 KiB more.
 * So a peak is known to within that, and a machine that fills its memory adds up its sites some
 * hundred times.
 *
 * The sites of pages are few. Those of kmalloc are many: they are added up only when the pages of
 * kmalloc differ from the last sums by an eighth, and by 256 KiB.
 */

#include "memory.h"

#include "../seq.h"

#define STEP_BYTES (256ull << 10)

static struct memory_peak kept;
static u64 seq;
static bool is_writing; /* one CPU at a time */
u64 profile_memory_next_peak = ~0ull;

static u32 nr_sites(void)
{
	return pf_min((u32)(__stop_memory_sites - __start_memory_sites), (u32)MEMORY_MAX_SITES);
}

static void add_up_pages(void)
{
	u64 page_bytes = 0;

	for (u32 i = 0; i < nr_sites(); i++) {
		const struct profile_memory_site *site = &__start_memory_sites[i];

		if (!memory_is_of_pages(site))
			continue;
		kept.live_bytes[i] = memory_site_live_bytes(site);
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

static void add_up_objects(void)
{
	u64 bytes = slab_bytes(), old = kept.slab_bytes;
	u64 difference = bytes > old ? bytes - old : old - bytes;

	if (difference < pf_max(STEP_BYTES, old / 8))
		return;
	kept.slab_bytes = bytes;
	for (u32 i = 0; i < nr_sites(); i++) {
		const struct profile_memory_site *site = &__start_memory_sites[i];

		if (!memory_is_of_pages(site))
			kept.live_bytes[i] = memory_site_live_bytes(site);
	}
}

/* Keeps this moment as the peak. The caller has set is_writing, with interrupts off. */
static void keep(u64 nr_pages)
{
	seq_begin(&seq);
	add_up_pages();
	add_up_objects();
	seq_end(&seq);
	pf_write_once(profile_memory_next_peak,
		      nr_pages + pf_max(nr_pages / 32, STEP_BYTES / OS_PAGE_BYTES));
	pf_store_release(&is_writing, false);
}

pf_noinline void profile_memory_note_peak(u64 nr_pages)
{
	unsigned long flags = os_irq_save();

	if (!pf_xchg(&is_writing, true))
		keep(nr_pages);
	os_irq_restore(flags);
}

void memory_peak_restart(void)
{
	unsigned long flags = os_irq_save();

	while (pf_xchg(&is_writing, true))
		os_cpu_relax();
	kept.slab_bytes = ~0ull >> 1; /* far from any sum: all sites are added up */
	keep(os_page_bytes_live() / OS_PAGE_BYTES);
	os_irq_restore(flags);
}

void memory_peak_copy(struct memory_peak *peak)
{
	SEQ_COPY(&seq)
		*peak = kept;
}
