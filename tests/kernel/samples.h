/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TEST_SAMPLES_H
#define TEST_SAMPLES_H

/* Shared by the test suites of samples. */

#include "../../kernel/profile/points/points.h"
#include "../../kernel/profile/samples/samples.h"

#include <lego/smp.h>

#include "sleep.h"

#ifdef CONFIG_PROFILE_HEATMAP
static struct heat_snapshot heat;
static struct view heat_view;

static inline u64 nr_ticks(void)
{
	u64 sum = 0;

	heatmap_snapshot(&heat, &heat_view, &(struct sample_scope){ 0 });
	for (u32 i = 0; i < NR_HEAT_CLASSES; i++)
		sum += heat.nr_class[i];
	return sum;
}

/* Returns the samples in a function, as of the last nr_ticks(). */
static inline u64 nr_at(void *fn)
{
	for (u32 i = 0; i < heat_view.nr_rows; i++) {
		if (heat_view.rows[i].keys[0] == (u64)fn)
			return heat_view.rows[i].nr;
	}
	return 0;
}

static inline void reset_samples(void)
{
	source_reset();
}

/* Returns whether each CPU has taken at least nr samples since source_reset(). */
static inline bool all_have_taken(u64 nr)
{
	static struct source_snapshot snap;
	unsigned int cpu;

	samples_pin();
	source_snapshot(&snap);
	samples_unpin();
	for_each_online_cpu(cpu) {
		if (snap.cpus[cpu].taken < nr)
			return false;
	}
	return true;
}
#endif

#endif
