// SPDX-License-Identifier: BSD-2-Clause
/*
 * The heatmap: where the kernel was when the timer ticked. The tick looks at what it
 * interrupted and puts it into the sample store; all else is done when a report is printed. One
 * tick is one sample, so the rows add up to the ticks. The timer cannot interrupt code that
 * runs with interrupts off: such time is booked on the instruction that turns them on.
 */

#include "internal.h"

static struct sample_snapshot cpu_samples; /* used by the printer of the one report */

void profile_tick(const struct pt_regs *regs)
{
	enum heat_class class = HEAT_KERNEL;

	if (os_regs_user(regs))
		class = HEAT_USER;
	else if (os_irq_depth() > 1)
		class = HEAT_IRQ;
	else if (os_in_idle_task())
		class = HEAT_IDLE;
	sample_add(class, os_regs_pc(regs));
}

/* While entries are collected, entries[] is a hash by address; nr == 0: free. */
static bool add_samples(struct heat_snapshot *snap, u64 pc, u64 nr)
{
	u64 addr = pc;
	const char *name = os_symbol_lookup(pc, &addr);
	u32 i;

	if (!name)
		addr = pc;
	i = addr * 0x9e3779b97f4a7c15ull >> 32;
	for (u32 probe = 0; probe < HEATMAP_MAX_ENTRIES; probe++) {
		struct heat_entry *entry = &snap->entries[(i + probe) % HEATMAP_MAX_ENTRIES];

		if (entry->nr && entry->addr != addr)
			continue;
		entry->addr = addr;
		entry->name = name ? name : "[unknown]";
		entry->nr += nr;
		return true;
	}
	return false;
}

static void add_cpu(struct heat_snapshot *snap, unsigned int cpu)
{
	/* First, so that a tick in between does not look missed. */
	u64 nr_due = sample_nr_due();
	u64 nr_stored = 0, nr_kernel, nr_ticks = 0;

	if (!sample_snapshot_cpu(cpu, &cpu_samples))
		memset(&cpu_samples, 0, sizeof(cpu_samples));
	for (u32 i = 0; i < SAMPLE_SLOTS; i++) {
		const struct sample_slot *slot = &cpu_samples.slots[i];

		if (slot->nr && add_samples(snap, slot->pc, slot->nr))
			nr_stored += slot->nr;
	}
	for (u32 i = 0; i < NR_HEAT_CLASSES; i++) {
		snap->nr_class[i] += cpu_samples.nr_class[i];
		nr_ticks += cpu_samples.nr_class[i];
	}
	nr_kernel = nr_ticks - cpu_samples.nr_class[HEAT_USER];
	snap->nr_dropped += nr_kernel - nr_stored;
	if (os_cpu_online(cpu)) {
		nr_due = max(nr_due, nr_ticks);
		snap->nr_due += nr_due;
		snap->nr_missed += nr_due - nr_ticks;
	}
}

void heatmap_snapshot(struct heat_snapshot *snap)
{
	unsigned int cpu;
	u64 epoch;

	/* Again if there was a reset meanwhile. */
	do {
		epoch = sample_current_epoch();
		memset(snap, 0, sizeof(*snap));
		for_each_possible_cpu(cpu)
			add_cpu(snap, cpu);
	} while (epoch != sample_current_epoch());

	for (u32 i = 0; i < HEATMAP_MAX_ENTRIES; i++) {
		if (snap->entries[i].nr)
			snap->entries[snap->nr_entries++] = snap->entries[i];
	}
	if (snap->nr_class[HEAT_USER]) {
		snap->entries[snap->nr_entries++] = (struct heat_entry){
			.name = "[user]",
			.nr = snap->nr_class[HEAT_USER],
		};
	}
}
