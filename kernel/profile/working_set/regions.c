// SPDX-License-Identifier: BSD-2-Clause
/*
 * Divides an address space into regions of pages that are used alike, so that a sample of one page
 * tells about all of its region. After each period, neighbors that are alike are merged, and all
 * regions are split at random. A split between pages that are used differently lasts; others are
 * merged again. So regions end where use changes, and their number, which is what sampling costs,
 * is bounded. The idea, the smallest number of regions and the limit for `alike` are those of
 * Linux's DAMON (Documentation/mm/damon/design.rst). Unlike there, a region does not leave its
 * kind of memory, and knows when it was used last.
 */

#include "regions.h"

static struct regions scratch; /* of the one thread that samples */

u64 regions_random(u64 limit)
{
	static u64 state = 88172645463325252ull;

	/* Marsaglia's xorshift64. */
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % limit;
}

static u64 nr_pages_of(const struct region *region)
{
	return (region->end - region->start) / OS_PAGE_BYTES;
}

static void drop_sample(struct region *region)
{
	if (region->sample < region->start || region->sample >= region->end)
		region->sample = 0;
}

/* Adds a region. Without room, makes the last one longer. */
static void add_region(struct regions *to, struct region region)
{
	struct region *last = &to->all[to->nr - 1];

	if (to->nr < REGIONS_MAX) {
		drop_sample(&region);
		to->all[to->nr++] = region;
		return;
	}
	last->nr_pages += region.nr_pages;
	last->accessed_ns = pf_max(last->accessed_ns, region.accessed_ns);
	last->end = region.end;
	last->kind = REGION_MIXED;
}

static void add_new(struct regions *to, const struct profile_user_range *range, u64 start, u64 end)
{
	struct region new = { .start = start, .end = end, .kind = range->kind, .is_new = true };

	if (start < end)
		add_region(to, new);
}

/* Adds the part of a region that is in a range, and a new region for the gap before it. */
static void add_part(struct regions *to, const struct profile_user_range *range, u64 *at,
		     const struct region *old)
{
	struct region part = *old;

	part.start = pf_max(old->start, *at);
	part.end = pf_min(old->end, range->end);
	if (part.start >= part.end || part.kind != range->kind)
		return;
	add_new(to, range, *at, part.start);
	part.nr_pages = pf_min(part.nr_pages, nr_pages_of(&part));
	add_region(to, part);
	*at = part.end;
}

void regions_set_ranges(struct regions *r, const struct profile_user_range *ranges, u32 nr)
{
	u32 i = 0;

	scratch.nr = 0;
	scratch.bytes = 0;
	for (u32 n = 0; n < nr; n++) {
		u64 at = ranges[n].start;

		while (i < r->nr && r->all[i].end <= at)
			i++;
		for (u32 k = i; k < r->nr && r->all[k].start < ranges[n].end; k++)
			add_part(&scratch, &ranges[n], &at, &r->all[k]);
		add_new(&scratch, &ranges[n], at, ranges[n].end);
		scratch.bytes += ranges[n].end - ranges[n].start;
	}
	*r = scratch;
}

static void set_accessed(struct region *region, u64 page, u64 now_ns)
{
	region->accessed_ns = now_ns;
	region->hit = page;
}

void region_add_sample(struct region *region, enum profile_page_use use, u64 now_ns)
{
	if (use == PROFILE_PAGE_CHANGED)
		return;
	region->nr_samples++;
	if (use == PROFILE_PAGE_UNUSED)
		return;
	region->nr_accesses++;
	region->nr_writes += use == PROFILE_PAGE_WRITTEN;
	set_accessed(region, region->sample, now_ns);
}

void region_set_pages(struct region *region, u64 nr_pages, u64 now_ns, bool is_first)
{
	if (nr_pages > region->nr_pages && !is_first) {
		set_accessed(region, 0, now_ns);
		region->whole_ns = now_ns;
	}
	region->nr_pages = nr_pages;
	region->is_new = false;
}

static u32 share_of(u32 part, u32 whole)
{
	return part * REGIONS_WHOLE / whole;
}

static bool shares_are_alike(u32 a, u32 b)
{
	return (a > b ? a - b : b - a) <= REGIONS_ALIKE;
}

void regions_end_period(struct regions *r)
{
	for (u32 i = 0; i < r->nr; i++) {
		struct region *region = &r->all[i];
		u32 accessed = region->accessed, written = region->written;

		if (!region->nr_samples) {
			if (!region->nr_pages)
				region->accessed = region->written = 0;
			continue;
		}
		region->accessed = share_of(region->nr_accesses, region->nr_samples);
		region->written = share_of(region->nr_writes, region->nr_samples);
		if (shares_are_alike(accessed, region->accessed) &&
		    shares_are_alike(written, region->written))
			region->age++;
		else
			region->age = 0;
		/* Otherwise a part of it may be unused, and not be split off yet. */
		if (region->accessed >= REGIONS_WHOLE - REGIONS_ALIKE)
			region->whole_ns = region->accessed_ns;
		region->nr_samples = region->nr_accesses = region->nr_writes = 0;
	}
}

bool region_was_used_in(const struct region *region, u64 now_ns, u64 ns)
{
	return region->accessed_ns && now_ns - region->accessed_ns <= ns;
}

/* Returns true if both are in the same working sets, so that merging them changes none. */
static bool ages_are_alike(const struct region *a, const struct region *b, u64 now_ns)
{
	return region_was_used_in(a, now_ns, WORKING_SET_SHORT_NS) ==
		       region_was_used_in(b, now_ns, WORKING_SET_SHORT_NS) &&
	       region_was_used_in(a, now_ns, WORKING_SET_LONG_NS) ==
		       region_was_used_in(b, now_ns, WORKING_SET_LONG_NS);
}

static bool can_merge(const struct regions *r, const struct region *a, const struct region *b,
		      u64 now_ns)
{
	return a->end == b->start && a->kind == b->kind &&
	       b->end - a->start <= r->bytes / REGIONS_MIN &&
	       shares_are_alike(a->accessed, b->accessed) &&
	       shares_are_alike(a->written, b->written) && ages_are_alike(a, b, now_ns);
}

static u32 weighted(u32 a, u64 a_pages, u32 b, u64 b_pages)
{
	return (a * a_pages + b * b_pages) / (a_pages + b_pages);
}

static void merge_into(struct region *a, const struct region *b)
{
	u64 a_pages = nr_pages_of(a), b_pages = nr_pages_of(b);

	a->accessed = weighted(a->accessed, a_pages, b->accessed, b_pages);
	a->written = weighted(a->written, a_pages, b->written, b_pages);
	a->age = weighted(a->age, a_pages, b->age, b_pages);
	a->nr_pages += b->nr_pages;
	if (b->accessed_ns > a->accessed_ns)
		a->hit = b->hit;
	a->accessed_ns = pf_max(a->accessed_ns, b->accessed_ns);
	if (b_pages > a_pages)
		a->whole_ns = b->whole_ns;
	a->sample = a->sample ?: b->sample;
	a->end = b->end;
}

void regions_merge(struct regions *r, u64 now_ns)
{
	u32 last = 0;

	for (u32 i = 1; i < r->nr; i++) {
		if (can_merge(r, &r->all[last], &r->all[i], now_ns))
			merge_into(&r->all[last], &r->all[i]);
		else
			r->all[++last] = r->all[i];
	}
	r->nr = r->nr ? last + 1 : 0;
}

/*
 * If a region is used in few places, the part without the page that was used last has to show by
 * itself that it is used, too. So unused pages of a large region do not stay in the working set.
 */
static void set_time_of_part(struct region *part, u64 begin_ns)
{
	if (!part->hit || (part->hit >= part->start && part->hit < part->end))
		return;
	part->hit = 0;
	if (part->accessed_ns >= begin_ns)
		part->accessed_ns = part->whole_ns;
}

void regions_split(struct regions *r, u64 begin_ns, u64 (*count)(void *arg, u64 start, u64 end),
		   void *arg)
{
	if (r->nr > REGIONS_MAX_SPLIT / 2)
		return;
	scratch.nr = 0;
	for (u32 i = 0; i < r->nr; i++) {
		struct region a = r->all[i], b = a;
		u64 nr_pages = nr_pages_of(&a);

		if (nr_pages < 2) {
			scratch.all[scratch.nr++] = a;
			continue;
		}
		a.end = b.start = a.start + (1 + regions_random(nr_pages - 1)) * OS_PAGE_BYTES;
		if (a.nr_pages == nr_pages)
			a.nr_pages = nr_pages_of(&a);
		else if (a.nr_pages)
			a.nr_pages = pf_min(count(arg, a.start, a.end), a.nr_pages);
		b.nr_pages -= a.nr_pages;
		set_time_of_part(&a, begin_ns);
		set_time_of_part(&b, begin_ns);
		drop_sample(&a);
		drop_sample(&b);
		scratch.all[scratch.nr++] = a;
		scratch.all[scratch.nr++] = b;
	}
	scratch.bytes = r->bytes;
	*r = scratch;
}

u64 regions_working_set(const struct regions *r, u64 now_ns, u64 ns)
{
	u64 nr = 0;

	for (u32 i = 0; i < r->nr; i++) {
		if (region_was_used_in(&r->all[i], now_ns, ns))
			nr += r->all[i].nr_pages;
	}
	return nr;
}
