// SPDX-License-Identifier: BSD-2-Clause
/*
 * Samples the accessed and dirty bits of user pages. A worker thread looks every 5 ms at one page
 * of each region of each process: it reads the bits of the page that it chose the last time, and
 * clears those of another one, chosen at random. Then it flushes the TLBs, so that the CPUs set the
 * bits again. After 20 samples a period ends: regions that are used alike are merged, and split
 * again at other pages, and the areas of the process are read anew.
 *
 * In each round, it also visits some pages, for what programs use of the machine's memory
 * (memory.c).
 *
 * The cost is what the thread uses of a CPU, and the time of each flush for each CPU that it
 * interrupts. After each sample the thread sleeps 99 times as long as that has taken, or 5 ms, so
 * the cost is at most 1 % of one CPU. TLB misses after a flush are not in it.
 */

#include "working_set.h"

#include <profile/profile.h>

#define MAX_SLEEP_MS 10000

static bool is_on; /* read by the worker */
static struct poll_lock switching;
static bool has_worker;
struct profile_off_time working_set_off_time;
u64 working_set_generation = 1;
u64 working_set_begin_ns;
static u64 begin_generation; /* that of the worker's last sample */

static struct {
	u64 cycles, elapsed_cycles, nr_rounds, nr_samples, nr_changed;
	u64 generation;
} cost; /* written by the worker */

static struct profile_user_range ranges[REGIONS_MAX];
static os_mm_t *seen[WORKING_SET_SLOTS]; /* in this sample: vfork's child has its parent's */

static u64 count_pages(void *mm, u64 start, u64 end)
{
	return os_mm_count_pages(mm, start, end);
}

/* Reads the areas, and counts their pages. */
static void update_regions(struct working_set_slot *slot, os_mm_t *mm, u64 now_ns, bool is_first)
{
	struct regions *r = &slot->regions;

	regions_set_ranges(r, ranges, os_mm_ranges(mm, ranges, REGIONS_MAX / 2));
	for (u32 i = 0; i < r->nr; i++) {
		u64 nr = os_mm_count_pages(mm, r->all[i].start, r->all[i].end);

		region_set_pages(&r->all[i], nr, now_ns, is_first);
	}
}

static void begin_slot(struct working_set_slot *slot, os_mm_t *mm, u64 now_ns)
{
	bool is_first = slot->generation || !slot->has_just_begun;

	slot->generation = begin_generation;
	slot->nr_samples = 0;
	slot->regions.nr = 0;
	slot->period_begin_ns = now_ns;
	update_regions(slot, mm, now_ns, is_first);
}

static void end_period(struct working_set_slot *slot, os_mm_t *mm, u64 now_ns)
{
	struct regions *r = &slot->regions;

	regions_end_period(r);
	update_regions(slot, mm, now_ns, false);
	regions_merge(r, now_ns);
	working_set_publish(slot, now_ns);
	regions_split(r, slot->period_begin_ns, count_pages, mm);
	slot->nr_samples = 0;
	slot->period_begin_ns = now_ns;
}

static void read_sample(struct region *region, os_mm_t *mm, u64 now_ns)
{
	enum profile_page_use use;

	if (!region->sample)
		return;
	use = os_mm_use(mm, region->sample);
	region_add_sample(region, use, now_ns);
	cost.nr_samples++;
	if (use == PROFILE_PAGE_CHANGED)
		cost.nr_changed++;
	region->sample = 0;
}

/* Clears the bits of a resident page, the next one from a random place on. */
static void take_sample(struct region *region, os_mm_t *mm, bool *flush)
{
	u64 nr_pages = (region->end - region->start) / OS_PAGE_BYTES;
	u64 place = region->start + regions_random(nr_pages) * OS_PAGE_BYTES;
	u64 at = place;

	if (!os_mm_clear_used(mm, &at, region->end, flush)) {
		at = region->start;
		if (!os_mm_clear_used(mm, &at, place, flush))
			return;
	}
	region->sample = at;
}

/* Returns whether the TLBs have to be flushed. */
static bool sample_regions(struct working_set_slot *slot, os_mm_t *mm, u64 now_ns)
{
	bool flush = false;

	if (!os_mm_begin(mm))
		return false;
	for (u32 i = 0; i < slot->regions.nr; i++)
		read_sample(&slot->regions.all[i], mm, now_ns);
	for (u32 i = 0; i < slot->regions.nr; i++)
		take_sample(&slot->regions.all[i], mm, &flush);
	os_mm_end(mm);
	return flush;
}

/* Returns the cycles that the flush takes of other CPUs, which is at most as long as it takes. */
static u64 flush_tlbs(os_mm_t *mm)
{
	u64 begin = os_cycles();
	u32 nr_others = os_mm_flush(mm);

	return nr_others * (os_cycles() - begin);
}

static u64 sample_slot(struct working_set_slot *slot, os_mm_t *mm)
{
	u64 now_ns = os_cycles_to_ns(os_cycles()), others_cycles = 0;

	if (slot->generation != begin_generation)
		begin_slot(slot, mm, now_ns);
	else if (slot->nr_samples >= WORKING_SET_SAMPLES)
		end_period(slot, mm, now_ns);
	if (sample_regions(slot, mm, now_ns))
		others_cycles = flush_tlbs(mm);
	slot->nr_samples++;
	return others_cycles;
}

static bool was_sampled(os_mm_t *mm, u32 nr)
{
	for (u32 i = 0; i < nr; i++) {
		if (seen[i] == mm)
			return true;
	}
	return false;
}

/* Samples all processes. Returns the cycles that this takes of other CPUs. */
static u64 sample_all(void)
{
	u64 others_cycles = 0;
	u32 nr = 0;

	for (u32 i = 0; i < WORKING_SET_SLOTS; i++) {
		struct working_set_slot *slot = working_set_slot_at(i);
		os_mm_t *mm = slot ? working_set_slot_mm(slot) : NULL;

		if (!mm)
			continue;
		if (!was_sampled(mm, nr)) {
			seen[nr++] = mm;
			others_cycles += sample_slot(slot, mm);
		}
		os_mm_put(mm);
	}
	return others_cycles;
}

static u64 cpu_cycles(void)
{
	return os_task_exec_cycles(os_task_profile(os_current_task()));
}

/* All begins anew after a reset, and after a time off. */
static void check_generation(void)
{
	u64 generation = pf_load_acquire(&working_set_generation);

	if (generation == begin_generation)
		return;
	begin_generation = generation;
	memset(&cost, 0, sizeof(cost));
	cost.generation = generation;
}

/* Returns for how long to sleep after a sample that took so long. */
static u64 sleep_after(u64 cycles)
{
	u64 rest = os_cycles_to_ns(cycles) * (REGIONS_WHOLE / WORKING_SET_COST_LIMIT - 1);
	u64 ms = (rest + NS_PER_MSEC - 1) / NS_PER_MSEC;

	return pf_min(pf_max(ms, (u64)WORKING_SET_SLEEP_MS), (u64)MAX_SLEEP_MS);
}

static void sample_while_on(void)
{
	u32 nr = 0;

	while (pf_read_once(is_on)) {
		u64 begin = os_cycles(), used = cpu_cycles(), others_cycles;

		check_generation();
		if (nr++ % WORKING_SET_SAMPLES == 0)
			working_set_find_processes();
		others_cycles = sample_all();
		working_set_visit_memory(begin_generation, os_cycles_to_ns(os_cycles()));
		used = others_cycles + cpu_cycles() - used;
		os_sleep_ms(sleep_after(used));
		cost.nr_rounds++;
		cost.cycles += used;
		cost.elapsed_cycles += os_cycles() - begin;
	}
}

static OS_WORKER(worker, sample_while_on);

static void begin_anew(void)
{
	pf_write_once(working_set_begin_ns, os_cycles_to_ns(os_cycles()));
	__atomic_fetch_add(&working_set_generation, 1, __ATOMIC_RELEASE);
}

void working_set_switch(bool on, bool at_boot)
{
	poll_lock(&switching);
	if (on && !has_worker && os_worker_start(&worker, "working_set")) {
		os_printk("profile: no memory for the thread that samples memory\n");
		on = false;
	}
	has_worker |= on;
	off_time_switch(&working_set_off_time, !on, at_boot);
	if (on && !is_on)
		begin_anew();
	pf_write_once(is_on, on);
	if (on)
		os_worker_wake(&worker);
	poll_unlock(&switching);
}

void working_set_reset(void)
{
	begin_anew();
	off_time_reset(&working_set_off_time);
}

void working_set_read_cost(struct working_set_cost *to)
{
	bool is_known = pf_read_once(cost.generation) == pf_read_once(working_set_generation);

	*to = (struct working_set_cost){ 0 };
	if (!is_known)
		return;
	to->cycles = pf_read_once(cost.cycles);
	to->elapsed_cycles = pf_read_once(cost.elapsed_cycles);
	to->nr_rounds = pf_read_once(cost.nr_rounds);
	to->nr_samples = pf_read_once(cost.nr_samples);
	to->nr_changed = pf_read_once(cost.nr_changed);
}
