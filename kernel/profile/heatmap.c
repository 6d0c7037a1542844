// SPDX-License-Identifier: BSD-2-Clause
/*
 * The heatmap: where the kernel was when samples were taken. Each is put into the sample store; all
 * else is done when a report is printed. One tick is one sample, so the rows add up to the ticks.
 */

#include "internal.h"

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
	const struct sample_books *books = samples_books(cpu);
	const struct sample_record *rec = NULL;
	u64 nr_ticks = 0, nr_stored = 0;

	while ((rec = samples_next(cpu, rec))) {
		if (rec->class != HEAT_USER && add_samples(snap, rec->pcs[0], rec->nr_held))
			nr_stored += rec->nr_held;
	}
	for (u32 i = 0; i < NR_HEAT_CLASSES; i++) {
		snap->nr_class[i] += books->nr_class[i];
		nr_ticks += books->nr_class[i];
	}
	snap->nr_attempts += books->nr_attempts;
	snap->nr_unread += books->nr_unread;
	for (u32 i = 0; i < NR_SAMPLE_DROPS; i++)
		snap->nr_dropped_by[i] += books->nr_dropped[i];
	snap->nr_dropped += nr_ticks - books->nr_class[HEAT_USER] - nr_stored;
	if (os_cpu_online(cpu)) {
		snap->self_ns += os_cycles_to_ns(books->self_cycles);
		snap->cpu_ns += os_cycles_to_ns(books->elapsed_cycles);
	}
}

void heatmap_snapshot(struct heat_snapshot *snap)
{
	unsigned int cpu;

	samples_hold();
	memset(snap, 0, sizeof(*snap));
	source_snapshot(&snap->source); /* at once, so that hardly a sample comes in between */
	for_each_possible_cpu(cpu)
		add_cpu(snap, cpu);
	samples_release();

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
