// SPDX-License-Identifier: BSD-2-Clause
/*
 * Remembers for how long something was switched off, and by which task, so that a report can say
 * so. The total time off only grows. A reset of counters stores the total as their base, and a
 * report subtracts the base. One lock guards all totals, because switches are rare.
 */

#include "off_time.h"

#include "util.h"

static os_lock_t off_lock = OS_LOCK_INIT;

static u64 now_ns(void)
{
	return os_cycles_to_ns(os_cycles());
}

void off_time_switch(struct profile_off_time *off, bool is_off, bool at_boot)
{
	u64 words[PF_ARRAY_SIZE(off->comm)] = { 0 };
	bool has_task = !at_boot && os_current_task();
	unsigned long flags;

	if (has_task)
		os_task_comm(os_current_task(), words);
	flags = os_lock(&off_lock);
	if (is_off && !off->is_off) {
		off->from_ns = now_ns();
		off->at_boot = at_boot;
		off->pid = has_task ? os_current_pid() : 0;
		memcpy(off->comm, words, sizeof(words));
	} else if (!is_off && off->is_off) {
		off->to_ns = now_ns();
		off->total_ns += off->to_ns - off->from_ns;
	}
	/* Pairs with the acquire in off_time_total_ns(). */
	pf_store_release(&off->is_off, is_off);
	os_unlock(&off_lock, flags);
}

static u64 total_ns(const struct profile_off_time *off)
{
	os_assert_held(&off_lock);
	return off->total_ns + (off->is_off ? now_ns() - off->from_ns : 0);
}

u64 off_time_sum_ns(const struct profile_off_time *off)
{
	bool locked;
	unsigned long flags = snapshot_lock(&off_lock, &locked);
	u64 ns = total_ns(off);

	snapshot_unlock(&off_lock, locked, flags);
	return ns;
}

void off_time_reset(struct profile_off_time *off)
{
	pf_write_once(off->base_ns, off_time_total_ns(off));
}

struct off_snapshot off_time_since(const struct profile_off_time *off, u64 base_ns)
{
	struct off_snapshot snap;
	bool locked;
	unsigned long flags = snapshot_lock(&off_lock, &locked);

	snap = (struct off_snapshot){ .time = *off, .ns = total_ns(off) - base_ns };
	snapshot_unlock(&off_lock, locked, flags);
	return snap;
}

struct off_snapshot off_time_since_reset(const struct profile_off_time *off)
{
	return off_time_since(off, pf_read_once(off->base_ns));
}
