/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_SAMPLES_STORE_H
#define PROFILE_SAMPLES_STORE_H

/* The sample store of each CPU: store.c writes it, store_read.c reads it. */

#include "samples.h"

#define LOG2_RECENT 12

struct sample_cpu {
	struct stack_store store;
	u64 entered; /* the generation for which the log was emptied last */
	struct sample_counts counts;
	bool is_stale;	/* the log is an older generation's, not emptied yet, or there is none */
	u64 generation; /* of the counts */
	struct sample_stats pinned; /* the reader's */

	/* By recent_hash(): replayable records of the log, or nobody. */
	struct sample_record *recent[PF_BIT(LOG2_RECENT)];
};
OS_DECLARE_PER_CPU(struct sample_cpu, sample_cpus);

extern u64 sample_newest_generation; /* grows with each reset; 0: not ready */

static inline u64 current_generation(void)
{
	/* Pairs with sample_reset(): a reader that sees the generation sees its start. */
	return pf_load_acquire(&sample_newest_generation);
}

#endif
