// SPDX-License-Identifier: BSD-2-Clause
/*
 * Profile points: what profile.h puts into the code only adds to the running CPU's counters,
 * each with one instruction that neither an interrupt nor an NMI can tear; here they are summed
 * up. As a CPU's counters are its own, profile_reset() does not touch them: it remembers their
 * values, and reports print the difference.
 *
 * A report taken while points are hit may be ahead in time by the one pair of a CPU that has
 * added its cycles and not yet its count.
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
__PROFILE_POINT_CODE(calibration)
static struct profile_point __PROFILE_POINT(calibration) = { .enabled = true };

static os_lock_t reset_lock = OS_LOCK_INIT; /* guards all base_* */

static u64 empty_pairs_cycles; /* CALIBRATION_PAIRS of them */

/* The fastest round is the one that nothing interrupted. */
static u64 measure_empty_pairs(void)
{
	u64 best = ~0ull;

	for (u32 round = 0; round < CALIBRATION_ROUNDS; round++) {
		u64 start = rdtsc_begin();

		for (u32 i = 0; i < CALIBRATION_PAIRS; i++) {
			PROFILE_POINT_TIME(calibration)

			profile_point_start(calibration);
			profile_point_leave(calibration);
		}
		best = min(best, rdtsc_end() - start);
	}
	return best;
}

/*
 * Points start here, not at boot: until there are per-CPU areas, counters would be copied with
 * the image.
 */
void points_init(void)
{
	struct profile_point *point;

	empty_pairs_cycles = measure_empty_pairs();
	for_each_point(point) WRITE_ONCE(point->enabled, true);
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

			c->base_nr = READ_ONCE(c->nr);
			c->base_cycles = READ_ONCE(c->cycles);
			c->base_nr_backwards = READ_ONCE(c->nr_backwards);
		}
	}
	os_unlock(&reset_lock, flags);
}

static void add_point(struct point_snapshot *snap, const struct profile_point *point)
{
	struct point_entry entry = {
		.name = point->name,
		.serial = point - __start_profile_points,
		.enabled = READ_ONCE(point->enabled),
	};
	unsigned int cpu;
	u64 cycles = 0;

	for_each_possible_cpu(cpu) {
		const struct profile_point_cpu *c = &per_cpu(*point->cpu, cpu);

		entry.nr += READ_ONCE(c->nr) - c->base_nr;
		cycles += READ_ONCE(c->cycles) - c->base_cycles;
		entry.nr_backwards += READ_ONCE(c->nr_backwards) - c->base_nr_backwards;
	}
	entry.ns = os_cycles_to_ns(cycles);
	if (!entry.nr && !entry.nr_backwards)
		return;
	if (snap->nr_entries == POINTS_MAX_ENTRIES)
		snap->nr_not_shown++;
	else
		snap->entries[snap->nr_entries++] = entry;
}

void points_snapshot(struct point_snapshot *snap)
{
	const struct profile_point *point;
	unsigned long flags;
	bool locked;

	snap->nr_entries = 0;
	snap->nr_not_shown = 0;
	snap->empty_pair_ns =
		(os_cycles_to_ns(empty_pairs_cycles) + CALIBRATION_PAIRS / 2) / CALIBRATION_PAIRS;
	flags = snapshot_lock(&reset_lock, &locked);
	for_each_point(point) add_point(snap, point);
	snapshot_unlock(&reset_lock, locked, flags);
}
