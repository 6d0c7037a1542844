// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the samples are made of, above the heatmap, and what they cannot show, below it. The
 * deadlines that found interrupts off or passed unseen are a sample of all time, so their share is
 * that of the time that was not seen.
 */

#include "internal.h"

static void print_source_line(const struct source_snapshot *snap)
{
	const struct source_settings *s = &snap->settings;

	if (s->source == SOURCE_NMI) {
		char seed[32] = "no jitter";

		if (snap->nmi_jitter)
			snprintf(seed, sizeof(seed), "seed %lu", s->seed);
		report_printf("source: nmi by %s, %u Hz, %s%s\n",
			      snap->nmi_timer ? snap->nmi_timer : "IPI of CPU 0's timer", s->hz,
			      snap->nmi_timer ? seed :
						"cannot see what CPU 0 does with "
						"interrupts off",
			      s->on ? "" : "; off");
	} else if (s->jitter) {
		report_printf("source: timer, %u Hz, seed %lu; cannot see code that runs with "
			      "interrupts off%s\n",
			      s->hz, s->seed, s->on ? "" : "; off");
	} else {
		report_printf("source: timer, %u Hz, no jitter; cannot see code that runs with "
			      "interrupts off%s\n",
			      s->hz, s->on ? "" : "; off");
	}
}

void report_print_source(const struct source_snapshot *snap)
{
	const struct source_counts *nr = &snap->all;
	u64 nr_due, nr_unseen;
	u32 percent;

	print_source_line(snap);
	nr_due = nr->taken + nr->missed + nr->own;
	report_printf("due: %lu = taken %lu + missed %lu + own %lu\n", nr_due, nr->taken,
		      nr->missed, nr->own);
	if (snap->settings.source == SOURCE_NMI) {
		percent = report_percent(nr->irqs_off, nr->taken);
		report_printf("interrupts off: %u.%02u %% of samples (%lu of %lu)\n", percent / 100,
			      percent % 100, nr->irqs_off, nr->taken);
		return;
	}
	nr_unseen = nr->late + nr->missed;
	percent = report_percent(nr_unseen, nr_due);
	report_printf("unseen: %u.%02u %% of CPU time (%lu of %lu came over %lu ns late, or not at "
		      "all)\n",
		      percent / 100, percent % 100, nr_unseen, nr_due, snap->limit_ns);
}

static void print_stretch(const struct source_stretch *stretch, u32 cpu)
{
	u64 start = stretch->pc;
	const char *name = stretch->user ? "[user]" : os_symbol_lookup(stretch->pc, &start);
	char where[64], comm[sizeof(stretch->comm) + 1] = "";

	for (u32 i = 0; i < sizeof(stretch->comm) && ((const char *)stretch->comm)[i]; i++) {
		comm[i] = ((const char *)stretch->comm)[i];
		/* A program calls itself what it likes. */
		if (comm[i] < ' ' || comm[i] > '~')
			comm[i] = '?';
	}
	if (stretch->user)
		start = stretch->pc;
	if (name && stretch->pc != start)
		snprintf(where, sizeof(where), "+%#lx", stretch->pc - start);
	else
		where[0] = '\0';
	report_printf("%14lu  %3u  %6u  %-15s  %016lx  %s%s\n", os_cycles_to_ns(stretch->cycles),
		      cpu, stretch->tid, comm, stretch->pc, name ? name : "[unknown]", where);
}

static void print_missed(const struct source_snapshot *snap)
{
	if (!snap->all.missed)
		return;
	report_printf("missed, by CPU:\n");
	for (u32 cpu = 0; cpu < SOURCE_MAX_CPUS; cpu++) {
		const struct source_counts *nr = &snap->cpus[cpu];

		if (nr->missed)
			report_printf("  CPU %2u: %lu of %lu\n", cpu, nr->missed,
				      nr->taken + nr->missed + nr->own);
	}
}

void report_print_unseen(const struct source_snapshot *snap)
{
	print_missed(snap);
	if (!snap->nr_stretches || snap->settings.source != SOURCE_TIMER)
		return;
	report_printf("interrupts off the longest, at least so long:\n");
	report_printf("            ns  CPU     tid  task             back on at\n");
	for (u32 i = 0; i < snap->nr_stretches; i++)
		print_stretch(&snap->longest[i], snap->stretch_cpu[i]);
}
