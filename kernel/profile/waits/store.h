/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_WAITS_STORE_H
#define PROFILE_WAITS_STORE_H

/* The store of waits of each CPU. record.c writes to it, store.c reads it. */

#include "waits.h"

#define LOG2_RECENT	 9
#define RECORD_BYTES(nr) (sizeof(struct wait_record) + (nr) * sizeof(u64))

struct recent {
	u64 task_key;
	struct wait_record *rec; /* replayable; NULL: none */
};

struct wait_cpu {
	struct stack_store store;
	struct stack_log wakers; /* never switched, because records of waits point into it */
	u64 generation;		 /* of the store, the wakers and the lost counters */
	struct wait_lost lost;
	struct recent recent[PF_BIT(LOG2_RECENT)];
};

OS_DECLARE_PER_CPU(struct wait_cpu, wait_cpus);
extern u64 waits_generation;   /* grows with each reset; 0: not ready */
extern u64 waits_since_cycles; /* TSC when waits were last reset or switched on */

static inline u32 wait_record_bytes(const struct wait_record *rec)
{
	return RECORD_BYTES(rec->nr_kernel + rec->nr_user);
}

#endif
