/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_OFF_TIME_H
#define PROFILE_OFF_TIME_H

/* Remembers for how long something was switched off, and by which task: see off_time.c. */

#include <profile/profile.h>

struct profile_off_time {
	u64 total_ns; /* the sum of all times off that are over */
	u64 base_ns;  /* total time off at the last reset of the counters */
	u64 from_ns;  /* start of the latest time off */
	u64 to_ns;    /* its end, if it is over */
	u64 comm[2];  /* the name of the task that switched it off; empty: unknown */
	u32 pid;      /* the process of that task */
	bool at_boot; /* the boot parameter did */
	bool is_off;
};

/*
 * Notes that something is off, or on, from now on, switched by the current task, if there is one,
 * or, with at_boot, by a boot parameter. Any context but NMI.
 */
void off_time_switch(struct profile_off_time *off, bool is_off, bool at_boot);

/* Returns the total time off until now, in ns: a base for off_time_since(). */
u64 off_time_sum_ns(const struct profile_off_time *off);
static inline u64 off_time_total_ns(const struct profile_off_time *off)
{
	/* Each thread and process asks. A switch back on stores the total first. */
	return pf_likely(!pf_load_acquire(&off->is_off) && !pf_read_once(off->total_ns)) ?
		       0 :
		       off_time_sum_ns(off);
}

/* Makes the present total the base: the counters that it concerns are reset. */
void off_time_reset(struct profile_off_time *off);

struct off_snapshot {
	struct profile_off_time time;
	u64 ns; /* time off since a base */
};

struct off_snapshot off_time_since(const struct profile_off_time *off, u64 base_ns);
struct off_snapshot off_time_since_reset(const struct profile_off_time *off);

/*
 * report.c: prints for how long something was in a state such as "off". Prints nothing if it never
 * was.
 */
void report_print_off(const char *name, const char *state, const struct off_snapshot *snap);

#endif
