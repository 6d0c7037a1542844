/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_SOURCE_H
#define PROFILE_SOURCE_H

/*
 * The state of the source of samples, shared by its files: source.c takes samples,
 * source_calibrate.c measures normal lateness and cost, source_snapshot.c reads the counters.
 */

#include "../seq.h"
#include "samples.h"

struct source_cpu {
	u64 slot; /* start of the slot of the next deadline, TSC */
	u64 random;
	bool moves_nmis; /* the boot CPU: its NMI handler sets the time of the next NMI */
	bool is_on;	 /* it has a deadline */
	u64 first_slot;	 /* start of the first slot since it was switched on, TSC */
	u64 seq;	 /* of changes of the fields below: see seq.h */
	u64 generation;	 /* of the fields below: read them as 0 if it is not sample_generation() */
	u64 nr_before;	 /* slots since first_slot that do not count: slots_before() */
	u64 expected;	 /* deadlines of earlier periods in which it was on */
	u64 nr_switches;
	struct source_counts counts;
	struct source_stretch longest[NR_STRETCHES]; /* cycles 0: free */
};
OS_DECLARE_PER_CPU(struct source_cpu, source_cpus);

struct source_state {
	/* The present settings. Changed by one thread at a time, while no samples are taken. */
	struct source_settings running;
	const char *nmi_timer; /* NULL: the boot CPU's sampling timer sends the NMIs */
	bool nmi_jitter;
	u64 period_cycles; /* length of the timer's slots */

	/* Normal lateness and cost, in cycles; 0: not measured yet. */
	u64 late_limit, idle_late_limit;
	bool is_imprecise; /* the timer's normal lateness varies too much */
	u64 sample_cycles; /* cost of a sample beyond what the store measures */
	u64 nmi_sample_cycles;

	/* The slots of the NMI timer; changed under reset_lock. */
	os_lock_t reset_lock;
	bool nmi_timer_is_on;
	u64 nr_nmi_slots;  /* ended from boot until NMIs were last switched off */
	u64 nmi_slot_base; /* source_nmi_slots() at the reset */
	u64 nr_nmi_switches, nmi_switches_base;
};
extern struct source_state source;

/* source.c */
void source_set_slots(u32 hz, bool jitter);
/* Starts or stops the timer's deadlines on this CPU. */
void source_time_here(bool on);

/* source_calibrate.c: process context, before anything is on. */
void source_calibrate(void);
void source_calibrate_nmis(void);
void source_note_lateness(u64 late_cycles);

/* Returns how many slots of a CPU had ended at a time. Its source is on. */
static inline u64 slots_over(const struct source_cpu *s, u64 at)
{
	return at > s->first_slot ? (at - s->first_slot) / source.period_cycles : 0;
}

/*
 * Returns how many slots of a CPU do not count because of the last reset. Its source is on, and the
 * samples of all slots before `slot` came before the reset. The slot itself counts if its sample
 * comes late, even if the slot had ended at the reset. Later slots that had ended do not count.
 * *nr_ahead is the number of future slots that samples before the reset had skipped for their own
 * time.
 */
static inline u64 slots_before(const struct source_cpu *s, u64 slot, bool sample_comes,
			       u64 *nr_ahead)
{
	u64 nr_over = slots_over(s, pf_read_once(sample_start_cycles)), nr = slots_over(s, slot);

	*nr_ahead = nr > nr_over + 1 ? nr - nr_over - 1 : 0;
	return nr < nr_over ? nr_over - sample_comes : nr - *nr_ahead;
}

/*
 * Returns how many slots of a CPU before `slot`, that of its next deadline, count since the reset.
 * The sample of each of them has been taken or lost. Its source is on.
 */
static inline u64 slots_done(const struct source_cpu *s, u64 slot, u64 nr_before)
{
	u64 nr = slots_over(s, slot);

	return nr > nr_before ? nr - nr_before : 0;
}

/* Returns how many deadlines before that of `slot` are in the future: the sampler skipped them. */
static inline u64 slots_ahead(u64 slot, u64 now)
{
	return slot > now + source.period_cycles ? (slot - now) / source.period_cycles : 0;
}

/* Returns how many slots of the machine's NMI timer have ended since boot. */
static inline u64 source_nmi_slots(void)
{
	os_assert_held(&source.reset_lock);
	return source.nr_nmi_slots + (source.nmi_timer_is_on ? os_nmi_slots() : 0);
}

#endif
