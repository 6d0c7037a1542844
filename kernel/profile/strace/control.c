// SPDX-License-Identifier: BSD-2-Clause
/*
 * Resets counting, for all processes or for one, and switches it on and off.
 *
 * Off turns the hooks into NOPs, by a static key. A call that is in flight at that moment is cut:
 * it counts as ended then, and its return value is ignored.
 *
 * A reset raises a generation number. Before anything else is done with a thread or process of an
 * older generation, strace_catch_up() resets it. The hot path does not look at generations, so the
 * reset also visits all threads, a few at a time. Cutting works in the same way.
 */

#include "strace.h"

#include "../words.h"

u64 strace_off_since_cycles;
u32 strace_nr_resets;

static bool on_at_boot = true;
static struct poll_lock switching; /* held while a thread switches the hooks */
static bool shown;		   /* trace output is on */

static struct profile_off_time off_time;

void strace_begin_off_time(struct profile_process *pp)
{
	os_assert_held(&strace_lock);
	pp->off_base_ns = off_time_total_ns(&off_time);
}

void strace_off_snapshot(const struct profile_process *pp, struct strace_snapshot *snap)
{
	snap->off = off_time_since(&off_time, pp ? pp->off_base_ns : off_time.base_ns);
}

static bool needs_cut(const struct profile_task *pt)
{
	return strace_in_flight(pt) && !pt->cut_cycles;
}

/* Asks a thread to end its call in flight as of now_cycles. Readers treat it as ended at once. */
static void cut_task(struct profile_task *pt, u64 now_cycles)
{
	u64 cycles, off_cycles;

	os_assert_held(&strace_lock);
	if (needs_cut(pt)) {
		strace_flight_cycles(pt, now_cycles, &cycles, &off_cycles);
		pt->cut_off_cycles = off_cycles;
		pt->cut_cycles = now_cycles;
	}
	strace_cut_return(pt);
	strace_notify(pt);
}

/* Asks a thread to clear its counters as of now_cycles. Readers treat them as cleared at once. */
static void reset_task(struct profile_task *pt, u64 now_cycles)
{
	u64 cycles = 0, off_cycles = 0;

	os_assert_held(&strace_lock);
	if (strace_in_flight(pt))
		strace_flight_cycles(pt, now_cycles, &cycles, &off_cycles);
	pt->reset_cycles = now_cycles;
	pt->reset_off_cycles = off_cycles;
	strace_note_return_reset(pt);
	strace_notify(pt);
}

static void reset_sums(struct profile_process *pp)
{
	os_assert_held(&strace_lock);
	strace_sum_clear(&pp->own);
	strace_sum_clear(&pp->before);
	strace_sum_clear(&pp->children);
	pp->nr_children = 0;
	pp->nr_resets++;
	strace_begin_off_time(pp);
}

void strace_begin_process(struct profile_process *pp)
{
	pp->nr_system_resets = strace_nr_resets;
	strace_begin_off_time(pp);
}

void strace_catch_up_process(struct profile_process *pp)
{
	os_assert_held(&strace_lock);
	if (pp->nr_system_resets == strace_nr_resets)
		return;
	pp->nr_system_resets = strace_nr_resets;
	reset_sums(pp);
}

void strace_catch_up(struct profile_task *pt)
{
	struct profile_process *pp = pt->process;

	os_assert_held(&strace_lock);
	strace_catch_up_process(pp);
	if (strace_off_since_cycles) {
		strace_cut_return(pt);
		if (needs_cut(pt))
			cut_task(pt, strace_off_since_cycles);
	}
	if (pt->nr_resets == pp->nr_resets)
		return;
	pt->nr_resets = pp->nr_resets;
	reset_task(pt, os_cycles());
}

/* Calls visit() for the tasks of pp or, with NULL, of all processes. See walk_visit(). */
static void visit_tasks(struct profile_process *pp, void (*visit)(struct profile_task *pt))
{
	walk_visit(&strace_lists, pp, strace_catch_up_process, visit);
}

void strace_reset(void)
{
	unsigned long flags = os_lock(&strace_lock);

	strace_nr_resets++;
	strace_sum_free(&strace_gone);
	strace_nr_gone = 0;
	off_time_reset(&off_time);
	os_unlock(&strace_lock, flags);
	visit_tasks(NULL, strace_catch_up);
}

void strace_reset_process(struct profile_process *pp)
{
	unsigned long flags = os_lock(&strace_lock);

	strace_catch_up_process(pp);
	reset_sums(pp);
	os_unlock(&strace_lock, flags);
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
		os_key_set(&profile_strace_key, false);
	pf_write_once(profile_strace_counts, on);
	if (on)
		os_key_set(&profile_strace_key, true);
}

void strace_switch_shown(bool on, void (*switch_key)(bool on))
{
	poll_lock(&switching);
	shown = on;
	if (!on && !profile_strace_counts)
		os_key_set(&profile_strace_key, false);
	switch_key(on);
	if (on)
		os_key_set(&profile_strace_key, true);
	poll_unlock(&switching);
}

static void set_off_since(u64 since_cycles)
{
	unsigned long flags = os_lock(&strace_lock);

	strace_off_since_cycles = since_cycles;
	off_time_switch(&off_time, since_cycles, false);
	os_unlock(&strace_lock, flags);
}

static void stop_task(struct profile_task *pt)
{
	strace_catch_up(pt);
	strace_notify(pt);
}

/*
 * To switch off, first turns the hooks into NOPs, then cuts calls in flight as of the time of the
 * switch, and sends the next call of each thread to the slow path. That path begins no call while
 * counting is off. But a hook on the fast path that had already begun can still leave a call in
 * flight after its thread was visited, and the hook at its exit may be a NOP. So the hooks are
 * switched on before threads are visited again: what is left in flight by then is cut, too, as of
 * the same time. Only then does counting begin.
 */
void strace_switch(bool on)
{
	poll_lock(&switching);
	if (on != !strace_off_since_cycles) {
		set_counts(on);
		if (!on)
			set_off_since(pf_max(os_cycles(), (u64)1));
		visit_tasks(NULL, on ? strace_catch_up : stop_task);
		if (on)
			set_off_since(0);
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
	/* Counting has been off since boot. */
	strace_off_since_cycles = pf_max(os_cycles(), (u64)1);
	if (on_at_boot)
		strace_switch(true);
	else
		off_time_switch(&off_time, true, true);
}
