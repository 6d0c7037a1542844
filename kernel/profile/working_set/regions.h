/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_WORKING_SET_REGIONS_H
#define PROFILE_WORKING_SET_REGIONS_H

/*
 * The regions of an address space: ranges of pages that are used alike. See regions.c. All
 * functions here are for one thread at a time, and allocate nothing.
 */

#include "os.h"

#define REGIONS_MAX	  128
#define REGIONS_MAX_SPLIT 96		     /* splits leave the rest to new areas */
#define REGIONS_MIN	  10		     /* at least so many for a whole address space */
#define REGIONS_WHOLE	  10000		     /* a share of 100 % */
#define REGIONS_ALIKE	  1000		     /* shares that differ by at most 10 % are alike */
#define REGION_MIXED	  OS_NR_MEMORY_KINDS /* the kind of a region with several areas */

/* The times for which the working set is known. */
#define WORKING_SET_SHORT_NS (1ull * 1000000000)
#define WORKING_SET_LONG_NS  (10ull * 1000000000)

struct region {
	u64 start, end;
	u64 sample;	 /* the page whose bits were cleared; 0: none */
	u64 hit;	 /* the page that was used last; 0: unknown */
	u64 accessed_ns; /* when its last use was seen; 0: never */
	u64 whole_ns;	 /* when it was last used as a whole; 0: never */
	u64 nr_pages;	 /* resident */
	u32 age;	 /* periods in which it was used alike */
	/* Of this period. */
	u16 nr_samples, nr_accesses, nr_writes;
	/* Of the last one: shares of its samples, in hundredths of a percent. */
	u16 accessed, written;
	u8 kind;
	bool is_new; /* its pages have not been counted yet */
};

struct regions {
	u32 nr;
	u64 bytes; /* of all */
	struct region all[REGIONS_MAX];
};

/*
 * Makes the regions cover these ranges, and nothing else. Regions keep what is known of the part
 * that remains. What does not fit is in the last region.
 */
void regions_set_ranges(struct regions *r, const struct profile_user_range *ranges, u32 nr);

/* Adds a sample of a region. */
void region_add_sample(struct region *region, enum profile_page_use use, u64 now_ns);

/*
 * Sets the number of resident pages. More pages than before were used just now; so were all of a
 * new region, unless is_first: it is not known whether they were touched just now.
 */
void region_set_pages(struct region *region, u64 nr_pages, u64 now_ns, bool is_first);

/* Ends a period: its samples become shares. */
void regions_end_period(struct regions *r);

/* Merges neighbors that are used alike. */
void regions_merge(struct regions *r, u64 now_ns);

/*
 * Splits each region at a random page, if there is room for that. The period began at begin_ns.
 * count() returns the resident pages of a range; it is only called for regions that are partly
 * resident.
 */
void regions_split(struct regions *r, u64 begin_ns, u64 (*count)(void *arg, u64 start, u64 end),
		   void *arg);

/* Returns whether a region was used in the last `ns`. */
bool region_was_used_in(const struct region *region, u64 now_ns, u64 ns);

/* Returns the resident pages of regions that were used in the last `ns`. */
u64 regions_working_set(const struct regions *r, u64 now_ns, u64 ns);

/* Returns a pseudo-random number below a limit, which is not 0. */
u64 regions_random(u64 limit);

#endif
