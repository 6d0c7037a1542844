/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_WAITS_STORE_H
#define PROFILE_WAITS_STORE_H

/* The store of waits of each CPU. record.c writes to it, store.c reads it. */

#include "waits.h"

#define LOG2_RECENT	 9
#define RECORD_BYTES(nr) (sizeof(struct wait_record) + (nr) * sizeof(u64))

struct recent_wait {
	u64 task_key;
	struct wait_record *rec; /* replayable; NULL: none */
};

struct wait_cpu {
	struct stack_store store;
	struct stack_log wakers; /* never switched, because records of waits point into it */
	struct wait_lost lost;	 /* like the wakers, of the store's generation */
	struct recent_wait recent[PF_BIT(LOG2_RECENT)];
	u64 hashes[PF_BIT(LOG2_RECENT)]; /* of the keys of these records, without the process */
	u64 last_id; /* of the records that threads found last here; no other CPU has it */
	/* The record of the last wake-up that an ended thread has made; NULL: none. */
	struct wait_record *ended_waker;
};

OS_DECLARE_PER_CPU(struct wait_cpu, wait_cpus);
extern u64 waits_generation;   /* grows with each reset; 0: not ready */
extern u64 waits_since_cycles; /* TSC when waits were last reset or switched on */

/* No key matches it. */
extern struct wait_record waits_no_record;

/* The records that were found go. */
static inline void waits_forget_recent(struct wait_cpu *w)
{
	memset(w->recent, 0, sizeof(w->recent));
	w->ended_waker = NULL;
	w->last_id += PF_BIT(32);
}

static inline u32 wait_record_bytes(const void *rec_)
{
	const struct wait_record *rec = rec_;

	return RECORD_BYTES(rec->nr_kernel + rec->nr_user);
}

/* record.c: the process's last thread has ended; its key does not change any more. */
void waits_end_process(struct profile_task *pt);

/* findings.c: returns the first of the thread's sums, which is then that of these waits. */
struct profile_top_wait *waits_note_other(struct profile_task *pt, const char *name, u64 addr);

/* The same, if they may be those of the last time. Called by the thread. */
static inline struct profile_top_wait *waits_slept_for(struct profile_task *pt, const char *name,
						       u64 addr)
{
	struct profile_top_wait *top = &pt->waits.longest.top[0];

	if (pf_unlikely(top->name != name || top->addr != addr ||
			pt->waits.longest.generation != pf_read_once(waits_generation)))
		top = waits_note_other(pt, name, addr);
	return top;
}

#endif
