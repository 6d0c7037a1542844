// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reset, on and off, and the files: /proc/profile/strace for all processes, /proc/<pid>/strace for
 * one. Reading shows the wide tables; what can be written is "on", "off" and "reset".
 *
 * Off for all patches the hooks into NOPs (a static key); off for one process leads its threads
 * past the counters. A call that is in flight when counting is switched off has its time until
 * then; its end is not looked for.
 */

#include "internal.h"

#include "live.h"

u64 strace_off_since_cycles;

static bool off_at_boot;
static bool switching; /* one at a time */

static bool needs_cut(const struct profile_task *pt)
{
	return strace_in_flight(pt) && !pt->cut_cycles;
}

/* Counting of the thread's call in flight ends now, for who switches it off. */
static void cut_task(struct profile_task *pt, u64 now_cycles)
{
	u64 cycles, off_cycles;

	if (needs_cut(pt)) {
		strace_flight_cycles(pt, now_cycles, &cycles, &off_cycles);
		pt->cut_off_cycles = off_cycles;
		pt->cut_cycles = now_cycles;
	}
	strace_notify(pt);
}

static void reset_task(struct profile_task *pt, u64 now_cycles)
{
	u64 cycles = 0, off_cycles = 0;

	if (strace_in_flight(pt))
		strace_flight_cycles(pt, now_cycles, &cycles, &off_cycles);
	pt->reset_cycles = now_cycles;
	pt->reset_off_cycles = off_cycles;
	strace_notify(pt);
	/* Without a row it ends under the lock only, so nobody else is looking. */
	if (strace_in_flight(pt) && !pt->row && !pt->cut_cycles) {
		pt->process->own.overflow[pt->overflow].nr_calls++;
		pt->base_off_cycles -= off_cycles;
		pt->start_cycles = now_cycles;
		pt->carry_cycles = 0;
	}
}

static void reset_locked(struct profile_process *pp, u64 now_cycles)
{
	strace_sum_clear(&pp->own);
	strace_sum_free(&pp->before);
	strace_sum_free(&pp->children);
	pp->nr_children = 0;
	for (struct profile_task *pt = pp->tasks; pt; pt = pt->next)
		reset_task(pt, now_cycles);
}

void strace_reset(void)
{
	unsigned long flags = os_lock(&strace_lock);
	u64 now_cycles = os_cycles();

	for (struct profile_process *pp = strace_processes; pp; pp = pp->next)
		reset_locked(pp, now_cycles);
	strace_sum_free(&strace_gone);
	strace_nr_gone = 0;
	os_unlock(&strace_lock, flags);
}

void strace_reset_process(struct profile_process *pp)
{
	unsigned long flags = os_lock(&strace_lock);

	reset_locked(pp, os_cycles());
	os_unlock(&strace_lock, flags);
}

static void cut_process(struct profile_process *pp, u64 now_cycles)
{
	for (struct profile_task *pt = pp->tasks; pt; pt = pt->next)
		cut_task(pt, now_cycles);
}

void strace_switch_process(struct profile_process *pp, bool on)
{
	unsigned long flags = os_lock(&strace_lock);

	if (pp->off == on) {
		pp->off = !on;
		cut_process(pp, os_cycles());
	}
	os_unlock(&strace_lock, flags);
}

/*
 * The hooks' keys. Calls that are shown, but not counted, must not meet a hook that takes it that
 * they are counted because nothing else is on: so the outer key is switched while live_key is on.
 */
bool strace_counts;

static void start_switching(void)
{
	while (xchg(&switching, true))
		os_wait_turn();
}

static void stop_switching(void)
{
	smp_store_release(&switching, false);
}

static bool live_is_set(void)
{
	return IS_ENABLED(CONFIG_PROFILE_STRACE_LIVE) && static_key_is_set(&live_key);
}

static void set_counts(bool on)
{
	if (!on && !live_is_set())
		static_key_set(&strace_key, false);
	WRITE_ONCE(strace_counts, on);
	if (on)
		static_key_set(&strace_key, true);
}

#ifdef CONFIG_PROFILE_STRACE_LIVE
void strace_switch_live(bool on)
{
	start_switching();
	if (!on && !strace_counts)
		static_key_set(&strace_key, false);
	static_key_set(&live_key, on);
	if (on)
		static_key_set(&strace_key, true);
	stop_switching();
}
#endif

/*
 * Once the hooks are NOPs, calls in flight are cut. A hook that had begun before is over by the
 * time they are switched on again: what it left in flight is cut, too, at the same time.
 */
void strace_switch(bool on)
{
	unsigned long flags;
	u64 now_cycles;

	start_switching();
	if (on == !strace_off_since_cycles)
		goto out;
	if (!on)
		set_counts(false);
	flags = os_lock(&strace_lock);
	now_cycles = on ? strace_off_since_cycles : max(os_cycles(), (u64)1);
	for (struct profile_process *pp = strace_processes; pp; pp = pp->next)
		cut_process(pp, now_cycles);
	strace_off_since_cycles = on ? 0 : now_cycles;
	os_unlock(&strace_lock, flags);
	if (on)
		set_counts(true);
out:
	stop_switching();
}

static int set_strace(const char *value)
{
	bool off = !strcmp(value, "off");

	if (!off && strcmp(value, "on"))
		return -EINVAL;
	off_at_boot = off;
	return 0;
}
BOOT_PARAM(profile_strace, "profile.strace", "on|off", set_strace);

/* What a shell writes ends in a newline. */
static bool is_word(const char *text, const char *word)
{
	size_t len = strlen(text);

	if (len && text[len - 1] == '\n')
		len--;
	return len == strlen(word) && !memcmp(text, word, len);
}

static int show_system(os_text_t *text)
{
	profile_strace_text(text, NULL);
	return 0;
}

static int write_system(const char *text)
{
	if (is_word(text, "reset"))
		strace_reset();
	else if (is_word(text, "on") || is_word(text, "off"))
		strace_switch(is_word(text, "on"));
	else
		return -EINVAL;
	return 0;
}

static int show_process(os_text_t *text, struct process *proc)
{
	profile_strace_text(text, proc);
	return 0;
}

static int write_process(const char *text, struct process *proc)
{
	struct profile_process *pp = os_process_profile(proc);

	if (is_word(text, "reset"))
		strace_reset_process(pp);
	else if (is_word(text, "on") || is_word(text, "off"))
		strace_switch_process(pp, is_word(text, "on"));
	else
		return -EINVAL;
	return 0;
}

void strace_control_init(void)
{
	/* As if it had been off since the boot. */
	strace_off_since_cycles = max(os_cycles(), (u64)1);
	if (!off_at_boot)
		strace_switch(true);
	if (os_add_file("profile/strace", show_system, write_system) ||
	    os_add_process_file("strace", show_process, write_process))
		printk("profile: no memory for the files of strace\n");
}
