/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TEST_SAMPLES_H
#define TEST_SAMPLES_H

/* What the suites about samples share. */

#include "../../kernel/profile/internal.h"

#include <lego/smp.h>

#include "sleep.h"

#ifdef CONFIG_PROFILE_HEATMAP
static struct heat_snapshot heat;

static inline u64 nr_ticks(void)
{
	u64 sum = 0;

	heatmap_snapshot(&heat);
	for (u32 i = 0; i < NR_HEAT_CLASSES; i++)
		sum += heat.nr_class[i];
	return sum;
}

/* Samples in a function, at the last nr_ticks(). */
static inline u64 nr_at(void *fn)
{
	for (u32 i = 0; i < heat.nr_entries; i++) {
		if (heat.entries[i].addr == (u64)fn)
			return heat.entries[i].nr;
	}
	return 0;
}

static inline void reset_samples(void)
{
	sample_reset();
	source_reset();
}

/* Whether each CPU has had so many samples since source_reset(). */
static inline bool all_have_taken(u64 nr)
{
	static struct source_snapshot snap;
	unsigned int cpu;

	source_snapshot(&snap);
	for_each_online_cpu(cpu) {
		if (snap.cpus[cpu].taken < nr)
			return false;
	}
	return true;
}
#endif

#endif
