/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_SAMPLES_STORE_H
#define PROFILE_SAMPLES_STORE_H

/* The sample store of each CPU: store.c writes it, store_read.c reads it. */

#include "samples.h"

#define LOG2_RECENT 12

struct sample_cpu {
	struct stack_store store;
	struct sample_counts counts;
	u64 generation;		    /* of the counts; the log may still be of an older one */
	struct sample_stats pinned; /* the reader's */

	/* By recent_hash(): replayable records of the log, or nobody. */
	struct sample_record *recent[PF_BIT(LOG2_RECENT)];
};
OS_DECLARE_PER_CPU(struct sample_cpu, sample_cpus);
extern struct stack_kind sample_kind;

/* store_read.c: reads a CPU's samples when they have been pinned. */
void sample_read_cpu(unsigned int cpu, bool has_records);

extern u64 sample_newest_generation; /* grows with each reset; 0: not ready */

static inline u64 current_generation(void)
{
	/* Pairs with sample_reset(): a reader that sees the generation sees its start. */
	return pf_load_acquire(&sample_newest_generation);
}

#endif
