/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_SAMPLES_HOOKS_H
#define PROFILE_SAMPLES_HOOKS_H

/*
 * The hooks of samples, a part of <profile/profile.h>, and what they keep of threads and processes.
 */

struct profile_samples_task {
#ifdef CONFIG_PROFILE_HEATMAP
	u64 key; /* see profile_task_changed(); the low byte follows the number of execs */
#endif
	pf_may_be_empty;
};

struct profile_samples_process {
#ifdef CONFIG_PROFILE_HEATMAP
	u64 key_floor;	/* less than the key of all its tasks, not less than that of older tasks */
	u64 nr_dropped; /* that had no room since the last reset: see samples/store.c */
#endif
	pf_may_be_empty;
};

#ifdef CONFIG_PROFILE_HEATMAP
/* Which source of samples is on, and when the next sample of this CPU is due. */
extern os_key_t profile_timer_key, profile_nmi_key;
OS_DECLARE_PER_CPU(u64, profile_deadline); /* TSC; ~0: never */
void profile_timer_came(const os_regs_t *regs, u64 cycles);
void profile_nmi_came(const os_regs_t *regs);

/*
 * Gives the current task a new task_key, so that its samples are not added to earlier records.
 * Called when it gets another name or program, or leaves its process. Process context.
 */
void profile_task_changed(os_task_t *task);

/*
 * Takes a sample if one is due. Called in each CPU's timer interrupt, interrupts off. cycles: the
 * TSC when the interrupt came, from which it follows whether interrupts were off before.
 */
static inline void profile_tick(const os_regs_t *regs, u64 cycles)
{
	if (os_key_on(&profile_timer_key))
		profile_timer_came(regs, cycles);
}

/* Lowers the deadline for which this CPU's timer is about to be set, if a sample is due earlier. */
static inline void profile_next_deadline(u64 *deadline)
{
	if (os_key_on(&profile_timer_key) &&
	    os_this_cpu_read(os_local(profile_deadline)) < *deadline)
		*deadline = os_this_cpu_read(os_local(profile_deadline));
}

/* Takes a sample. Called by the NMI handler. Sets *handled if the NMI may be the profiler's. */
static inline void profile_nmi(const os_regs_t *regs, bool *handled)
{
	if (os_key_on(&profile_nmi_key)) {
		*handled = true;
		profile_nmi_came(regs);
	}
}
#else
static inline void profile_task_changed(os_task_t *task)
{
}
static inline void profile_tick(const os_regs_t *regs, u64 cycles)
{
}
static inline void profile_next_deadline(u64 *deadline)
{
}
static inline void profile_nmi(const os_regs_t *regs, bool *handled)
{
}
#endif

#endif
