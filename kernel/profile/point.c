// SPDX-License-Identifier: BSD-2-Clause
/*
 * Profile points: what profile.h puts into the code only changes the running CPU's counters, each
 * with one instruction that neither an interrupt nor an NMI can tear; here they are summed up. The
 * number of pairs is the sum of the histogram, so counting it costs nothing of its own.
 *
 * As a CPU's sums are its own, profile_reset() does not touch them: it remembers their values, and
 * reports print the difference. It does restart the extremes, from outside: one that is being
 * raised or lowered in those nanoseconds may keep a value from before.
 *
 * A report taken while points are hit may be ahead in time by the one pair of a CPU that has added
 * its cycles and not yet its count.
 */

#include "internal.h"

#define CALIBRATION_PAIRS  64
#define CALIBRATION_ROUNDS 16

/* Made by the linker around section profile_points; weak: there may be no point at all. */
extern struct profile_point __start_profile_points[] __attribute__((weak));
extern struct profile_point __stop_profile_points[] __attribute__((weak));

#define for_each_point(point) \
	for ((point) = __start_profile_points; (point) < __stop_profile_points; (point)++)

/* A point like any other, but outside the section: no report shows it. */
__PROFILE_POINT_CODE(calibration, false)
static struct profile_point __PROFILE_POINT(calibration) = {
	.cpu = &__PROFILE_POINT_CPU(calibration),
};

static os_lock_t reset_lock = OS_LOCK_INIT; /* guards all base */

/* The best round of CALIBRATION_PAIRS pairs: how long they took, and how long they read as. */
struct calibration {
	u64 cycles;
	u64 reading_cycles;
};

static u64 empty_pairs_cycles;	  /* what CALIBRATION_PAIRS empty pairs cost */
static u64 empty_readings_cycles; /* what they add to the readings of their sections */

u64 profile_oncpu_cycles(void)
{
	return os_oncpu_cycles();
}

#define DEFINE_CALIBRATION(name, body)                        \
	static noinline void name(void)                       \
	{                                                     \
		for (u32 i = 0; i < CALIBRATION_PAIRS; i++) { \
			PROFILE_POINT_TIME(calibration)       \
                                                              \
			profile_point_start(calibration);     \
			body;                                 \
			profile_point_leave(calibration);     \
		}                                             \
	}

DEFINE_CALIBRATION(run_empty_pairs, barrier())
DEFINE_CALIBRATION(run_short_pairs, POINT_CLOCK_BODY(32))
DEFINE_CALIBRATION(run_long_pairs, POINT_CLOCK_BODY(64))

/* The fastest round is the one that nothing interrupted. */
static struct calibration calibrate(void (*run_pairs)(void))
{
	struct calibration best = { ~0ull, ~0ull };

	for (u32 round = 0; round < CALIBRATION_ROUNDS; round++) {
		u64 reading = this_cpu_read(__PROFILE_POINT_CPU(calibration).sums.cycles);
		u64 start = point_clock_begin(), cycles;

		run_pairs();
		cycles = point_clock_end() - start;
		reading = this_cpu_read(__PROFILE_POINT_CPU(calibration).sums.cycles) - reading;
		if (cycles < best.cycles && reading <= cycles)
			best = (struct calibration){ cycles, reading };
	}
	return best;
}

/*
 * What a pair adds to a reading is a little less than what an empty one reads as: a section hides
 * part of the pair's own instructions. So it is what a short section reads as, less what doubling
 * it adds. If that is far off, as under an emulator, the empty pair's reading has to do.
 */
static void measure_empty_pairs(void)
{
	struct calibration empty, short_section, long_section;
	u64 added;

	static_key_set(&__PROFILE_POINT(calibration).key, true);
	empty = calibrate(run_empty_pairs);
	short_section = calibrate(run_short_pairs);
	long_section = calibrate(run_long_pairs);
	static_key_set(&__PROFILE_POINT(calibration).key, false);
	added = 2 * short_section.reading_cycles - long_section.reading_cycles;
	empty_pairs_cycles = empty.cycles;
	empty_readings_cycles = empty.reading_cycles;
	if (added > empty.reading_cycles / 2 && added < empty.reading_cycles)
		empty_readings_cycles = added;
}

static void switch_point(struct profile_point *point, bool on)
{
	if (static_key_is_set(&point->key) == on)
		return;
	WRITE_ONCE(point->nr_switches, point->nr_switches + 1);
	static_key_set(&point->key, on);
}

bool points_match(const char *pattern)
{
	struct profile_point *point;

	for_each_point(point) if (glob_match_list(pattern, point->name)) return true;
	return false;
}

void points_switch(const char *pattern, bool on)
{
	struct profile_point *point;

	for_each_point(point) if (glob_match_list(pattern, point->name)) switch_point(point, on);
}

void points_toggle(void)
{
	struct profile_point *point;
	bool any = false;

	for_each_point(point) any |= static_key_is_set(&point->key);
	points_switch("*", !any);
}

/*
 * Points start here, not at boot: until there are per-CPU areas, counters would be copied with
 * the image, and until other CPUs run, code is not patched under them.
 */
void points_init(bool ordered)
{
	if (!ordered)
		os_drop_fences();
	measure_empty_pairs();
}

void points_list(os_text_t *text)
{
	struct profile_point *point;

	for_each_point(point) os_text_printf(
		text, "%s %s\n", static_key_is_set(&point->key) ? "on" : "off", point->name);
}

void points_reset(void)
{
	unsigned long flags = os_lock(&reset_lock);
	struct profile_point *point;
	unsigned int cpu;

	for_each_point(point)
	{
		for_each_possible_cpu(cpu) {
			struct profile_point_cpu *c = &per_cpu(*point->cpu, cpu);

			c->base = c->sums;
			WRITE_ONCE(c->min_cycles, ~0ull);
			WRITE_ONCE(c->max_cycles, 0);
		}
	}
	os_unlock(&reset_lock, flags);
}

/* What point has in all CPUs' tables since the last reset. */
static void add_up(const struct profile_point *point, struct profile_point_cpu *all)
{
	unsigned int cpu;

	memset(all, 0, sizeof(*all));
	all->min_cycles = ~0ull;
	for_each_possible_cpu(cpu) {
		const struct profile_point_cpu *c = &per_cpu(*point->cpu, cpu);
		const struct profile_point_sums *sums = &c->sums, *base = &c->base;

		all->sums.cycles += READ_ONCE(sums->cycles) - base->cycles;
		all->sums.oncpu_cycles += READ_ONCE(sums->oncpu_cycles) - base->oncpu_cycles;
		all->sums.nr_backwards += READ_ONCE(sums->nr_backwards) - base->nr_backwards;
		all->sums.nr_migrated += READ_ONCE(sums->nr_migrated) - base->nr_migrated;
		all->sums.nr_unmatched += READ_ONCE(sums->nr_unmatched) - base->nr_unmatched;
		for (u32 i = 0; i < PROFILE_POINT_BUCKETS; i++)
			all->sums.nr_log2[i] += READ_ONCE(sums->nr_log2[i]) - base->nr_log2[i];
		all->min_cycles = min(all->min_cycles, READ_ONCE(c->min_cycles));
		all->max_cycles = max(all->max_cycles, READ_ONCE(c->max_cycles));
	}
}

/* The time that at least percent of the pairs did not exceed, as far as the histogram knows. */
static u64 percentile_ns(const struct profile_point_cpu *all, u64 nr, u32 percent)
{
	u64 wanted = mul_div_u64(nr, percent, 100), below = 0;

	if (mul_div_u64(wanted, 100, percent) < nr)
		wanted++;
	for (u32 i = 0; i < PROFILE_POINT_BUCKETS; i++) {
		u64 bound = (2ull << i) - 1; /* of the last bucket: ~0 */

		below += all->sums.nr_log2[i];
		if (below >= wanted)
			return os_cycles_to_ns(min(bound, all->max_cycles));
	}
	return os_cycles_to_ns(all->max_cycles);
}

/* What is left of the pairs' time when each is shorter by what an empty one reads as. */
static u64 net_cycles(u64 cycles, u64 nr)
{
	u64 empty = mul_div_u64(nr, empty_readings_cycles, CALIBRATION_PAIRS);

	return cycles > empty ? cycles - empty : 0;
}

static void add_point(struct point_snapshot *snap, const struct profile_point *point)
{
	struct profile_point_cpu all;
	struct point_entry entry = {
		.name = point->name,
		.serial = point - __start_profile_points,
		.enabled = static_key_is_set(&point->key),
		.sleeps = point->sleeps,
	};

	add_up(point, &all);
	entry.nr_backwards = all.sums.nr_backwards;
	entry.nr_migrated = all.sums.nr_migrated;
	entry.nr_unmatched = all.sums.nr_unmatched;
	for (u32 i = 0; i < PROFILE_POINT_BUCKETS; i++)
		entry.nr += all.sums.nr_log2[i];
	if (!entry.nr && !entry.nr_backwards && !entry.nr_unmatched)
		return;
	if (snap->nr_entries == POINTS_MAX_ENTRIES) {
		snap->nr_not_shown++;
		return;
	}
	entry.ns = os_cycles_to_ns(all.sums.cycles);
	if (entry.nr) {
		entry.net_ns = os_cycles_to_ns(net_cycles(all.sums.cycles, entry.nr));
		entry.oncpu_ns = os_cycles_to_ns(all.sums.oncpu_cycles);
		entry.min_ns = os_cycles_to_ns(min(all.min_cycles, all.max_cycles));
		entry.max_ns = os_cycles_to_ns(all.max_cycles);
		entry.p50_ns = percentile_ns(&all, entry.nr, 50);
		entry.p99_ns = percentile_ns(&all, entry.nr, 99);
		memcpy(entry.nr_log2, all.sums.nr_log2, sizeof(entry.nr_log2));
	}
	snap->entries[snap->nr_entries++] = entry;
}

void points_snapshot(struct point_snapshot *snap)
{
	const struct profile_point *point;
	unsigned long flags;
	bool locked;

	snap->nr_entries = 0;
	snap->nr_not_shown = 0;
	snap->empty_pair_ns = os_cycles_to_ns(empty_pairs_cycles / CALIBRATION_PAIRS);
	snap->empty_reading_ns = os_cycles_to_ns(empty_readings_cycles / CALIBRATION_PAIRS);
	flags = snapshot_lock(&reset_lock, &locked);
	for_each_point(point) add_point(snap, point);
	snapshot_unlock(&reset_lock, locked, flags);
}
