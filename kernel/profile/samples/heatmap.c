// SPDX-License-Identifier: BSD-2-Clause
/*
 * Makes the heatmap: the samples of a process, or of the machine, by function. It reads the sample
 * store when a report is printed, and costs nothing before. Each sample is in exactly one row, so
 * the rows add up to the total.
 */

#include "samples.h"

/*
 * Adds samples that are not in the store to the machine's table. Their process is unknown, so no
 * process's table has them.
 */
static void add_unstored(struct heat_snapshot *snap)
{
	for (u32 i = 0; i < NR_HEAT_CLASSES; i++) {
		if (i != HEAT_USER)
			snap->nr_dropped += snap->nr_class[i] - snap->nr_scope_class[i];
		snap->nr_scope_class[i] = snap->nr_class[i];
	}
}

static void add_cpu(struct heat_snapshot *snap, unsigned int cpu)
{
	const struct sample_stats *stats = samples_stats(cpu);

	for (u32 i = 0; i < NR_HEAT_CLASSES; i++)
		snap->nr_class[i] += stats->nr_class[i];
	snap->nr_attempts += stats->nr_attempts;
	snap->nr_unread += stats->nr_unread;
	for (u32 i = 0; i < NR_SAMPLE_DROPS; i++)
		snap->nr_dropped_by[i] += stats->nr_dropped[i];
	if (os_cpu_online(cpu)) {
		snap->self_ns += os_cycles_to_ns(source_sampling_cycles(stats));
		snap->cpu_ns += os_cycles_to_ns(stats->elapsed_cycles);
	}
}

static u64 boot_generation;

void heatmap_init(void)
{
	boot_generation = sample_generation();
}

bool heatmap_was_reset(void)
{
	return sample_generation() != boot_generation;
}

struct sample_scope sample_scope(os_process_t *proc)
{
	if (!proc)
		return (struct sample_scope){ 0 };
	return (struct sample_scope){
		.pid = os_process_pid(proc),
		.key_floor = os_process_profile(proc)->samples.key_floor,
	};
}

/* For an assertion. Returns true if each sample in scope is in one row, or was dropped. */
static pf_unused bool rows_add_up(const struct heat_snapshot *snap)
{
	u64 nr = snap->nr_dropped;

	for (u32 i = 0; i < snap->view->nr_rows; i++)
		nr += snap->view->rows[i].nr;
	for (u32 i = 0; i < NR_HEAT_CLASSES; i++)
		nr -= snap->nr_scope_class[i];
	return !nr;
}

void heatmap_snapshot(struct heat_snapshot *snap, struct view *view,
		      const struct sample_scope *scope)
{
	unsigned int cpu;

	samples_pin();
	memset(snap, 0, sizeof(*snap));
	snap->scope = *scope;
	source_snapshot(&snap->source); /* at once, so that few samples come in between */
	os_for_each_cpu(cpu)
		add_cpu(snap, cpu);
	snap->elapsed_ns = os_cycles_to_ns(samples_stats(0)->elapsed_cycles);
	snap->was_reset = heatmap_was_reset();
	view_heatmap(view, scope);
	samples_unpin();

	snap->view = view;
	snap->nr_dropped = view->nr_dropped;
	memcpy(snap->nr_scope_class, view->nr_class, sizeof(view->nr_class));
	if (!scope->pid && !scope->is_run)
		add_unstored(snap);
	if (snap->nr_scope_class[HEAT_USER]) {
		view->rows[view->nr_rows++] = (struct view_row){
			.name = "[user]",
			.nr = snap->nr_scope_class[HEAT_USER],
		};
	}
	os_assert(rows_add_up(snap));
	view_sort(view);
}
