// SPDX-License-Identifier: BSD-2-Clause
/*
 * Keeps the per-CPU sums of profile points. The inline code at a point (profile_point.h) changes
 * only the counters of its CPU, each with one instruction that neither an interrupt nor an NMI can
 * tear. This file adds up the CPUs, and has the slow path of a pair's end. The number of pairs is
 * the sum of the histogram, so it has no counter of its own.
 *
 * Only a CPU itself writes to its sums. So a reset does not clear them: it remembers their values,
 * and reports print the difference. Minimum and maximum, however, are restarted by the CPU that
 * does the reset. This sends pairs in flight to the slow path, which counts them from the reset on:
 * such a pair is longer than all pairs that began after the reset and have ended, so it is always a
 * new maximum.
 *
 * A report or a reset may be off by one pair for each CPU: the pair whose end is being counted at
 * that moment. A report may have its count but not yet its cycles. A reset may split it between the
 * two periods, or count all of it in the new one.
 */

#include "points.h"

#include "../event_keys.h"
#include "../histogram.h"

#define CALIBRATION_PAIRS  64
#define CALIBRATION_ROUNDS 16
#define RESET_TRIES	   4

/* An ordinary point, but without a name, so that no report shows it. */
__PROFILE_POINT_CODE(calibration, false)
static struct profile_point __PROFILE_POINT(calibration) pf_used pf_section("profile_points")
	pf_aligned(8) = {
		.cpu = &__PROFILE_POINT_CPU(calibration),
	};

OS_DEFINE_PER_CPU(u64, profile_cpu_bits);
OS_DEFINE_PER_CPU(u64, profile_off_bits);

static os_lock_t reset_lock = OS_LOCK_INIT; /* guards all `base`, and writes to reset_cycles */
static u64 reset_cycles;
static u32 nr_resets;
static bool started; /* points_started() was called */
struct profile_off_time points_off_time;
static bool usable; /* points_init() has succeeded: points can be switched on */

/*
 * The fastest round of CALIBRATION_PAIRS pairs: its duration, and the measured time of its pairs.
 */
struct calibration {
	u64 cycles;
	u64 reading_cycles;
};

static u64 empty_pairs_cycles;	  /* the cost of CALIBRATION_PAIRS empty pairs */
static u64 empty_readings_cycles; /* the part of it that is inside their measured time */

/* Returns how many cycles of a pair that ended at `end` came after the reset, and so count. */
static u64 cycles_since(u64 reset, u64 end, u64 cycles)
{
	u64 since = end - reset;

	/* The clock of the CPU that did the reset may be ahead. */
	return (s64)since < 0 ? 0 : pf_min(cycles, since);
}

/*
 * Raises the maximum to the pair's length, if it is longer, and returns how many of its cycles
 * count. The barrier pairs with those in points_reset(): either this CPU sees the new reset_cycles,
 * or the reset's store to max_cycles comes after this one. Otherwise a maximum from before the
 * reset could stay, and hide pairs in flight.
 */
static u64 raise_max(OS_PER_CPU(struct profile_point_cpu) * c, u64 end, u64 cycles)
{
	u64 reset, counted, old, seen;

	for (;;) {
		reset = pf_read_once(reset_cycles);
		counted = cycles_since(reset, end, cycles);
		old = os_this_cpu_read(os_local(*c).max_cycles);
		while (old < counted &&
		       (seen = os_this_cpu_cmpxchg(os_local(*c).max_cycles, old, counted)) != old)
			old = seen;
		pf_mb();
		if (pf_read_once(reset_cycles) == reset)
			return counted;
		os_this_cpu_cmpxchg(os_local(*c).max_cycles, counted, 0);
	}
}

/* Takes the difference of two CPUs' numbers out of a sum, and returns it. */
static s64 take_cpus_away(u64 *sum)
{
	s64 nr = (s64)(*sum + (1ull << (PROFILE_CPU_SHIFT - 1))) >> PROFILE_CPU_SHIFT;

	*sum -= (u64)nr << PROFILE_CPU_SHIFT;
	return nr;
}

void profile_point_end_slow(struct profile_point *point, u64 start, u64 cycles, u64 off_cycles)
{
	OS_PER_CPU(struct profile_point_cpu) *c = point->cpu;
	struct profile_point_task *task;
	u64 recorded = start & PROFILE_POINT_RECORDED, end;
	s64 nr_cpus_away;

	start -= recorded;
	cycles += recorded;
	end = start + cycles;
	if (!point->sleeps)
		end -= os_this_cpu_read(os_local(profile_cpu_bits));
	nr_cpus_away = take_cpus_away(point->sleeps ? &off_cycles : &cycles);
	if (!start) {
		os_this_cpu_inc(os_local(*c).sums.nr_unmatched);
		return;
	}
	if ((s64)cycles < 0) {
		os_this_cpu_inc(os_local(*c).sums.nr_backwards);
		return;
	}
	if (nr_cpus_away)
		os_this_cpu_inc(os_local(*c).sums.nr_migrated);
	cycles = raise_max(c, end, cycles);
	os_this_cpu_lower(os_local(*c).min_cycles, cycles);
	os_this_cpu_add(os_local(*c).sums.cycles, cycles);
	/*
	 * It is out of range if the clocks of two CPUs differ, or if a reset has shortened the
	 * pair.
	 */
	off_cycles = (s64)off_cycles < 0 ? 0 : pf_min(off_cycles, cycles);
	os_this_cpu_add(os_local(*c).sums.off_cycles, off_cycles);
	task = __PROFILE_POINT_TASK(point, os_this_cpu_read(os_local(profile_points_offset)));
	os_add(task->cycles, cycles);
	os_add(task->nr, 1);
	os_this_cpu_inc(os_local(*c).sums.nr_log2[PROFILE_POINT_BUCKET(cycles)]);
	if (recorded)
		profile_event_write(point_end, point->name);
}

#ifdef CONFIG_PROFILE_TRACE
void profile_point_record_begin(const struct profile_point *point)
{
	profile_event_write(point_begin, point->name);
}
#endif

#define DEFINE_CALIBRATION(name, body)                        \
	static pf_noinline void name(void)                    \
	{                                                     \
		for (u32 i = 0; i < CALIBRATION_PAIRS; i++) { \
			PROFILE_POINT_TIME(calibration)       \
                                                              \
			profile_point_start(calibration);     \
			body;                                 \
			profile_point_leave(calibration);     \
		}                                             \
	}

DEFINE_CALIBRATION(run_empty_pairs, pf_barrier())
DEFINE_CALIBRATION(run_short_pairs, OS_CLOCK_BODY(32))
DEFINE_CALIBRATION(run_long_pairs, OS_CLOCK_BODY(64))

/* Runs rounds of pairs and returns the fastest one, which was not interrupted. */
static struct calibration calibrate_pairs(void (*run_pairs)(void))
{
	struct calibration best = { ~0ull, ~0ull };

	for (u32 round = 0; round < CALIBRATION_ROUNDS; round++) {
		u64 reading =
			os_this_cpu_read(os_local(__PROFILE_POINT_CPU(calibration)).sums.cycles);
		u64 start = os_clock_begin(), cycles;

		run_pairs();
		cycles = os_clock_end() - start;
		reading = os_this_cpu_read(os_local(__PROFILE_POINT_CPU(calibration)).sums.cycles) -
			  reading;
		if (cycles < best.cycles && reading <= cycles)
			best = (struct calibration){ cycles, reading };
	}
	return best;
}

/*
 * Measures the overhead of a pair. The part inside the measured time is a little less than the
 * measured time of an empty pair, because the CPU executes some of the pair's instructions in
 * parallel with the section. So it is computed from two sections, one twice as long as the other:
 * twice the short time minus the long time. If the result is implausible, as under an emulator, the
 * measured time of an empty pair is used.
 */
static void measure_empty_pairs(void)
{
	struct calibration empty, short_section, long_section;
	u64 added;

	os_key_set(&__PROFILE_POINT(calibration).key, true);
	empty = calibrate_pairs(run_empty_pairs);
	short_section = calibrate_pairs(run_short_pairs);
	long_section = calibrate_pairs(run_long_pairs);
	os_key_set(&__PROFILE_POINT(calibration).key, false);
	added = 2 * short_section.reading_cycles - long_section.reading_cycles;
	empty_pairs_cycles = empty.cycles;
	empty_readings_cycles = empty.reading_cycles;
	if (added > empty.reading_cycles / 2 && added < empty.reading_cycles)
		empty_readings_cycles = added;
}

static void switch_point(struct profile_point *point)
{
	if (os_key_is_set(&point->key) == point->wanted)
		return;
	pf_write_once(point->nr_switches, point->nr_switches + 1);
	os_keys_add(&point->key, point->wanted);
	point->was_on |= point->wanted;
}

/* Notes whether any point is off that was on. */
static void note_off(void)
{
	struct profile_point *point;
	bool is_off = false;

	for_each_point(point)
		is_off |= point->was_on && !os_key_is_set(&point->key);
	off_time_switch(&points_off_time, is_off, false);
}

void points_started(void)
{
	struct profile_point *point;

	for_each_point(point)
		point->was_on = os_key_is_set(&point->key);
	started = true;
}

bool points_match(const char *pattern)
{
	struct profile_point *point;

	for_each_point(point)
		if (os_glob_match_list(pattern, point->name))
			return true;
	return false;
}

static bool any_is_on(void)
{
	struct profile_point *point;

	for_each_point(point)
		if (os_key_is_set(&point->key))
			return true;
	return false;
}

static struct poll_lock switching;

void points_begin(void)
{
	struct profile_point *point;

	poll_lock(&switching);
	for_each_point(point)
		point->wanted = os_key_is_set(&point->key);
}

void points_want(const char *pattern, bool on)
{
	struct profile_point *point;

	os_assert(switching.is_held);
	for_each_point(point)
		if (os_glob_match_list(pattern, point->name))
			point->wanted = on;
}

void points_apply(void)
{
	struct profile_point *point;
	bool any = false;

	if (!usable)
		goto out;
	for_each_point(point)
		any |= point->wanted;
	if (any)
		points_tasks_switch(true);
	os_keys_begin();
	for_each_point(point)
		switch_point(point);
	os_keys_commit();
	if (!any)
		points_tasks_switch(false);
	if (started)
		note_off();
out:
	poll_unlock(&switching);
}

void points_switch(const char *pattern, bool on)
{
	points_begin();
	points_want(pattern, on);
	points_apply();
}

bool points_toggle(void)
{
	bool on = !any_is_on();

	points_switch("*", on);
	return on;
}

/*
 * Points are off until this function runs, for two reasons: earlier counts would be copied into the
 * per-CPU area of each CPU, and code can be patched only when all CPUs run.
 */
void points_init(bool ordered)
{
	unsigned int cpu;

	os_assert_process_context();
	os_for_each_cpu(cpu)
		os_per_cpu(profile_cpu_bits, cpu) = (u64)cpu << PROFILE_CPU_SHIFT;
	if (points_tasks_init()) {
		os_printk("profile: no memory for points: they stay off\n");
		return;
	}
	if (!ordered)
		os_drop_fences();
	measure_empty_pairs();
	reset_cycles = 0;
	usable = true;
}

void points_list(os_text_t *text)
{
	struct profile_point *point;

	for_each_point(point)
		os_text_printf(text, "%s %s\n", os_key_is_set(&point->key) ? "on" : "off",
			       point->name);
}

/*
 * Restarts the counters of a point, unless that was done since the last reset. reset_lock is held,
 * except in a panic. The barriers pair with the one in raise_max().
 */
static void catch_up(struct profile_point *point)
{
	unsigned int cpu;

	if (point->nr_resets == nr_resets)
		return;
	point->nr_resets = nr_resets;
	pf_mb();
	os_for_each_cpu(cpu) {
		struct profile_point_cpu *c = &os_per_cpu(*point->cpu, cpu);

		pf_write_once(c->min_cycles, ~0ull);
		pf_write_once(c->max_cycles, 0);
	}
	/* From here on, pairs in flight find the maximum at 0 and take the slow path. */
	pf_mb();
	os_for_each_cpu(cpu) {
		struct profile_point_cpu *c = &os_per_cpu(*point->cpu, cpu);

		c->base = c->sums;
	}
}

/* Takes the lock once for each point, so that interrupts are not off for long. */
void points_reset(void)
{
	unsigned long flags = os_lock(&reset_lock);
	struct profile_point *point;

	pf_write_once(reset_cycles, os_cycles());
	nr_resets++;
	os_unlock(&reset_lock, flags);
	for_each_point(point) {
		flags = os_lock(&reset_lock);
		catch_up(point);
		os_unlock(&reset_lock, flags);
	}
	off_time_reset(&points_off_time);
	points_tasks_reset();
}

/* Adds up the sums of a point over all CPUs, since the last reset. */
static void add_up(const struct profile_point *point, struct profile_point_cpu *all)
{
	unsigned int cpu;

	memset(all, 0, sizeof(*all));
	all->min_cycles = ~0ull;
	os_for_each_cpu(cpu) {
		const struct profile_point_cpu *c = &os_per_cpu(*point->cpu, cpu);
		const struct profile_point_sums *sums = &c->sums, *base = &c->base;

		all->sums.cycles += pf_read_once(sums->cycles) - base->cycles;
		all->sums.off_cycles += pf_read_once(sums->off_cycles) - base->off_cycles;
		all->sums.nr_backwards += pf_read_once(sums->nr_backwards) - base->nr_backwards;
		all->sums.nr_migrated += pf_read_once(sums->nr_migrated) - base->nr_migrated;
		all->sums.nr_unmatched += pf_read_once(sums->nr_unmatched) - base->nr_unmatched;
		/* Here bucket n is that of 2^n (histogram.h). */
		for (u32 i = 0; i < PROFILE_POINT_BUCKETS; i++)
			all->sums.nr_log2[i ? i - 1 : 0] +=
				pf_read_once(sums->nr_log2[i]) - base->nr_log2[i];
		all->min_cycles = pf_min(all->min_cycles, pf_read_once(c->min_cycles));
		all->max_cycles = pf_max(all->max_cycles, pf_read_once(c->max_cycles));
	}
}

/* Returns the time of nr pairs without the overhead that is inside their measured time. */
static u64 net_cycles(u64 cycles, u64 nr)
{
	u64 empty = os_mul_div_u64(nr, empty_readings_cycles, CALIBRATION_PAIRS);

	return cycles > empty ? cycles - empty : 0;
}

static void make_entry(struct point_entry *entry, const struct profile_point *point)
{
	struct profile_point_cpu all;
	struct histogram h;

	os_assert_held(&reset_lock);
	*entry = (struct point_entry){
		.name = point->name,
		.serial = point - __start_profile_points,
		.enabled = os_key_is_set(&point->key),
		.sleeps = point->sleeps && OS_HAS_EXEC_CYCLES,
	};
	add_up(point, &all);
	entry->nr_backwards = all.sums.nr_backwards;
	entry->nr_migrated = all.sums.nr_migrated;
	entry->nr_unmatched = all.sums.nr_unmatched;
	entry->nr = histogram_nr(all.sums.nr_log2, PROFILE_POINT_BUCKETS);
	entry->ns = os_cycles_to_ns(all.sums.cycles);
	if (!entry->nr)
		return;
	entry->net_ns = os_cycles_to_ns(net_cycles(all.sums.cycles, entry->nr));
	entry->oncpu_ns =
		os_cycles_to_ns(all.sums.cycles - pf_min(all.sums.off_cycles, all.sums.cycles));
	entry->min_ns = os_cycles_to_ns(pf_min(all.min_cycles, all.max_cycles));
	entry->max_ns = os_cycles_to_ns(all.max_cycles);
	h = (struct histogram){ all.sums.nr_log2, PROFILE_POINT_BUCKETS, 0, all.max_cycles };
	entry->p50_ns = os_cycles_to_ns(histogram_percentile(&h, 50));
	entry->p99_ns = os_cycles_to_ns(histogram_percentile(&h, 99));
	memcpy(entry->nr_log2, all.sums.nr_log2, sizeof(entry->nr_log2));
}

/* Adds a point to the snapshot, with the number and time of pp's pairs; pp of NULL: of all CPUs. */
static void add_point(struct point_snapshot *snap, const struct profile_point *point,
		      const struct profile_process *pp)
{
	struct profile_point_task sums;
	struct point_entry entry;

	make_entry(&entry, point);
	if (!entry.nr && entry.enabled && snap->nr_incomplete < POINTS_MAX_ENTRIES)
		snap->incomplete[snap->nr_incomplete++] = entry.name;
	if (pp) {
		sums = points_read_sums(point);
		entry.nr = sums.nr;
		entry.ns = os_cycles_to_ns(sums.cycles);
	}
	if (!entry.nr && !entry.nr_backwards && !entry.nr_unmatched)
		return;
	if (snap->nr_entries == POINTS_MAX_ENTRIES)
		snap->nr_not_shown++;
	else
		snap->entries[snap->nr_entries++] = entry;
}

static void set_since(struct point_snapshot *snap, const struct profile_process *pp)
{
	u64 since_cycles = reset_cycles;

	snap->since = reset_cycles ? POINTS_SINCE_RESET : POINTS_SINCE_BOOT;
	snap->off = pp ? off_time_since(&points_off_time, pp->points.off_base_ns) :
			 off_time_since_reset(&points_off_time);
	if (pp) {
		snap->since = pp->points.since;
		since_cycles = pp->points.since_cycles;
	}
	snap->since_ns = os_cycles_to_ns(os_cycles() - since_cycles);
}

/* Copies all points, each with reset_lock held. Returns false if there was a reset meanwhile. */
static bool copy_points(struct point_snapshot *snap, const struct profile_process *pp)
{
	u32 nr_resets_before = pf_read_once(nr_resets);
	struct profile_point *point;
	unsigned long flags;
	bool locked;

	snap->nr_entries = 0;
	snap->nr_not_shown = 0;
	snap->nr_incomplete = 0;
	if (pp)
		points_read_process(pp);
	for_each_point(point) {
		flags = snapshot_lock(&reset_lock, &locked);
		catch_up(point);
		add_point(snap, point, pp);
		snapshot_unlock(&reset_lock, locked, flags);
	}
	set_since(snap, pp);
	return pf_read_once(nr_resets) == nr_resets_before;
}

static void take_snapshot(struct point_snapshot *snap, const struct profile_process *pp)
{
	snap->nr_threads_lost = pp ? pp->points.nr_lost : 0;
	snap->of_process = pp;
	snap->empty_pair_ns = os_cycles_to_ns(empty_pairs_cycles / CALIBRATION_PAIRS);
	snap->empty_reading_ns = os_cycles_to_ns(empty_readings_cycles / CALIBRATION_PAIRS);
	for (int i = 0; i < RESET_TRIES && !copy_points(snap, pp); i++)
		;
}

void points_snapshot(struct point_snapshot *snap)
{
	take_snapshot(snap, NULL);
}

void points_snapshot_process(struct point_snapshot *snap, const struct profile_process *pp)
{
	take_snapshot(snap, pp);
}
