// SPDX-License-Identifier: BSD-2-Clause
/*
 * Resets counting, for all processes or for one, and switches it on and off. task.c says how this
 * reaches the threads. Off turns the hooks into NOPs, by a static key.
 */

#include "strace.h"

#include "../hook_keys.h"
#include "../words.h"

static bool on_at_boot = true;
static struct poll_lock switching; /* held while a thread switches the hooks */
static bool shown;		   /* trace output is on */

#define NR_A_STEP 16 /* threads and processes */

/* Calls visit() for the tasks of pp or, with NULL, of all processes. See walk_visit(). */
static void visit_tasks(struct profile_process *pp, void (*visit)(struct profile_task *pt))
{
	walk_visit(pp, NR_A_STEP, strace_catch_up_process, visit);
}

void strace_reset(void)
{
	unsigned long flags = os_lock(&lists_lock);

	strace_nr_resets++;
	strace_sum_free(&strace_gone);
	strace_free_spares();
	strace_nr_gone = 0;
	off_time_reset(&strace_off_time);
	os_unlock(&lists_lock, flags);
	visit_tasks(NULL, strace_catch_up);
}

void profile_free_spare_tables(void)
{
	unsigned long flags = os_lock(&lists_lock);

	strace_free_spares();
	os_unlock(&lists_lock, flags);
}

void strace_reset_process(struct profile_process *pp)
{
	unsigned long flags = os_lock(&lists_lock);

	strace_catch_up_process(pp);
	/* The table of all processes keeps the calls of those that are gone. */
	strace_read_children(pp);
	strace_sum_fold(&strace_gone, &pp->strace.children);
	strace_reset_sums(pp);
	os_unlock(&lists_lock, flags);
	visit_tasks(pp, strace_catch_up);
}

/*
 * The keys of the hooks. profile_strace_key is on while calls are counted or printed,
 * profile_live_key while they are printed. If only profile_strace_key is on, the hooks count calls
 * without reading profile_strace_counts. So if calls are printed but not counted, profile_live_key
 * must be on whenever profile_strace_key is.
 */
bool profile_strace_counts;

static void set_counts(bool on)
{
	os_assert(switching.is_held);
	if (!on && !shown)
		hook_key_set(&profile_strace_key, false);
	pf_write_once(profile_strace_counts, on);
	if (on)
		hook_key_set(&profile_strace_key, true);
}

void strace_switch_shown(bool on, void (*switch_key)(bool on))
{
	poll_lock(&switching);
	shown = on;
	if (!on && !profile_strace_counts)
		hook_key_set(&profile_strace_key, false);
	switch_key(on);
	if (on)
		hook_key_set(&profile_strace_key, true);
	poll_unlock(&switching);
}

static void set_off_since(u64 since_cycles)
{
	unsigned long flags = os_lock(&lists_lock);

	strace_off_since_cycles = since_cycles;
	off_time_switch(&strace_off_time, since_cycles, false);
	os_unlock(&lists_lock, flags);
}

/*
 * To switch off, first leaves a note in each thread, then turns the hooks into NOPs; to switch on,
 * the other way round. So calls in flight end as of the time of the switch, and the next call takes
 * the slow path, which begins no call while counting is off. A hook that had already begun can
 * still leave a call in flight after that. It ends in the same way, because the note stays until
 * the thread follows it. While the hooks change, a CPU may find one of the two at the entry and at
 * the end of a call changed, but not yet the other: nothing may begin then.
 */
void strace_switch(bool on)
{
	poll_lock(&switching);
	if (on != !strace_off_since_cycles) {
		if (on)
			set_counts(true);
		set_off_since(on ? 0 : pf_max(os_cycles(), (u64)1));
		if (!on) {
			visit_tasks(NULL, strace_catch_up);
			set_counts(false);
		}
	}
	poll_unlock(&switching);
}

static int set_strace(const char *value)
{
	return words_on_off(value, &on_at_boot);
}
/* Whether system calls are counted: on by default. */
OS_BOOT_PARAM(profile_strace, "profile.strace", "on|off", set_strace);

void strace_control_init(void)
{
	hook_keys_register(HOOK_CALL, &profile_strace_key, true);
	/* Counting has been off since boot. */
	strace_off_since_cycles = pf_max(os_cycles(), (u64)1);
	if (on_at_boot)
		strace_switch(true);
	else
		off_time_switch(&strace_off_time, true, true);
}
