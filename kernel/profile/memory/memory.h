/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_MEMORY_MEMORY_H
#define PROFILE_MEMORY_MEMORY_H

/*
 * Which code has allocated the kernel's memory. The hooks in <profile/memory.h> count allocations
 * by site and CPU, sites.c adds up the CPUs, and report.c prints the sums.
 */

#include "../report.h"
#include "os.h"

#include <profile/memory.h>

/* kmalloc takes its memory from pages, so the bytes of its objects are in both sums. */
enum memory_kind {
	MEMORY_PAGES,
	MEMORY_KMALLOC,
	MEMORY_NR_KINDS,
	/* For memory_growth() only: both, without what programs, kmalloc and profilers take. */
	MEMORY_KERNEL = MEMORY_NR_KINDS,
};

/* The sums of all CPUs, of a site or of a size. */
struct memory_sums {
	u64 nr_live, live_bytes;
	u64 nr, bytes; /* allocated since boot */
};

struct memory_row {
	const struct profile_memory_site *site;
	struct memory_sums sums;
	u64 peak_bytes; /* live at the peak */
};

#define MEMORY_MAX_ROWS	 512
#define MEMORY_MAX_SITES (2 * MEMORY_MAX_ROWS)

/* The most call chains of the kernel's allocations, each of one size: of objects, and of pages. */
#ifdef CONFIG_PROFILE_MEMORY_CHAINS
#define MEMORY_OBJECT_CHAINS (100 * PROFILE_MEMORY_SIZES)
#define MEMORY_PAGE_CHAINS   (66 * PROFILE_MEMORY_ORDERS)
#else
#define MEMORY_OBJECT_CHAINS 0
#define MEMORY_PAGE_CHAINS   0
#endif
#define MEMORY_CHAINS (MEMORY_OBJECT_CHAINS + MEMORY_PAGE_CHAINS)

/*
 * The live bytes of each site when most pages were in use since the mark, by site number. Sites
 * without room are left out.
 */
struct memory_peak {
	u64 page_bytes; /* of all pages */
	u64 slab_bytes; /* of the pages of kmalloc, when its sites were added up */
	u64 live_bytes[MEMORY_MAX_SITES]; /* with those of the site's chains */
};

struct memory_snapshot {
	u32 nr_rows;
	u32 nr_not_shown;			 /* sites without room */
	struct memory_row rows[MEMORY_MAX_ROWS]; /* sites that have allocated */
	struct memory_sums sizes[PROFILE_MEMORY_SIZES];
	struct memory_sums all;
	u64 peak_bytes; /* of all rows */
	/* For memory_growth() only: of pages of programs, and of objects of profilers. */
	u64 programs_peak_bytes, profilers_live_bytes;
	u64 allocator_bytes; /* what the allocator counts as live */
	struct memory_peak peak;
	bool peak_is_now;
};

/* Returns what the allocator counts as live. */
u64 memory_allocator_bytes(enum memory_kind kind);
bool memory_is_of_kind(const struct profile_memory_site *site, enum memory_kind kind);
/*
 * Copies the peak. Returns false if more is live now than at the last peak that was kept: then now
 * is the peak. Same contexts as memory_snapshot(). chain_bytes: as in memory_peak_copy().
 */
bool memory_peak_is_over(struct memory_peak *peak, u64 *chain_bytes);

/*
 * Adds up one kind of memory, sorted by live bytes. Allocates nothing. Any context, also a panic.
 * Exact if no CPU allocates or frees meanwhile.
 */
void memory_snapshot(struct memory_snapshot *snap, enum memory_kind kind);

/*
 * The same of what has become live since the mark, and still is, or was at the peak: rows have
 * grown, and their sums are the growth. Sites that have shrunk are in no row. Same contexts; one
 * reader at a time.
 */
void memory_growth(struct memory_snapshot *snap, enum memory_kind kind);
/* Sets the mark. Without one, all is growth. Any context but NMI and panic. */
void memory_mark(void);

/*
 * Returns the sums of a counter, in which allocations of one size are counted. The counter of their
 * frees is nr_sizes further.
 */
struct memory_sums memory_sum_count(const OS_PER_CPU(u64) * count, u32 nr_sizes, u32 size);
void memory_add_sums(struct memory_sums *to, const struct memory_sums *sums);
/* Returns the sums of a site and of its chains. */
struct memory_sums memory_sum_site(const struct profile_memory_site *site);
/* Returns the sums of a site's own counters, which are not those of its chains. */
struct memory_sums memory_sum_site_alone(const struct profile_memory_site *site);

/*
 * kernel_chains.c: returns the call chain of a site after `chain`, or the first one if that is
 * NULL; NULL at the end. Any context.
 */
struct kernel_chain;
#ifdef CONFIG_PROFILE_MEMORY_CHAINS
struct kernel_chain *memory_next_chain(const struct profile_memory_site *site,
				       const struct kernel_chain *chain);
struct memory_sums kernel_chain_sums(const struct kernel_chain *chain);
u32 kernel_chain_number(const struct kernel_chain *chain);
u32 kernel_chain_size(const struct kernel_chain *chain);
/* Sets the mark of a site's chains. */
void kernel_chains_mark(const struct profile_memory_site *site);
#else
#define memory_next_chain(site, chain) ((struct kernel_chain *)NULL)
#define kernel_chain_sums(chain)       ((struct memory_sums){ 0 })
#define kernel_chain_number(chain)     0
#define kernel_chain_size(chain)       0
#define kernel_chains_mark(site)       ((void)0)
#endif

/* Returns what is live of a site. */
u64 memory_site_live_bytes(const struct profile_memory_site *site);
extern const struct profile_memory_site __start_memory_sites[], __stop_memory_sites[];
static inline bool memory_is_of_pages(const struct profile_memory_site *site)
{
	return site->first_size;
}

/*
 * peak.c: copies the peak, to within a 32nd (see there). chain_bytes: gets what was live then of
 * each call chain, by its number, if that was kept; may be NULL. Any context but NMI.
 */
void memory_peak_copy(struct memory_peak *peak, u64 *chain_bytes);
/* From now on, keeps the peak of each call chain, too, in max_chains words. */
void memory_peak_keep_chains(u64 *chain_bytes, u32 max_chains);
/* Forgets the peak: what is live now is the most. Like memory_mark(). */
void memory_peak_restart(void);

/* Returns the bytes of a block of a size. */
u64 memory_size_bytes(u32 size);

/* Prints a snapshot as tables: by site and, if wide, by size. */
void report_print_memory(const struct memory_snapshot *snap, enum memory_kind kind,
			 const struct report *report);
/* Prints a snapshot of memory_growth(). */
void report_print_memory_growth(const struct memory_snapshot *snap, enum memory_kind kind);
/* Prints one of MEMORY_KERNEL, if the kernel's memory has grown much. */
void report_print_kernel_growth(const struct memory_snapshot *snap, const struct report *report);

#endif
