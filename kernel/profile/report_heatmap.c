// SPDX-License-Identifier: BSD-2-Clause
/* The heatmap's table: see report.c. */

#include "internal.h"

/* Most samples first; equal numbers by address. */
static int compare_heat(const void *a_, const void *b_)
{
	const struct heat_entry *a = a_, *b = b_;

	return a->nr != b->nr ? compare_u64(b->nr, a->nr) : compare_u64(a->addr, b->addr);
}

static void print_heat_entry(u64 addr, const char *name, u64 nr, u64 nr_ticks)
{
	u32 percent = report_percent(nr, nr_ticks);

	report_printf("%016lx  %20s  %10lu  %6u.%02u\n", addr, name, nr, percent / 100,
		      percent % 100);
}

/* The reasons in one line; they add up to all attempts less what is in the store. */
static void print_drops(const struct heat_snapshot *snap)
{
	static const char *const reasons[NR_SAMPLE_DROPS] = {
#define SAMPLE_DROP_TEXT(name, text) [DROP_##name] = text,
		SAMPLE_DROPS(SAMPLE_DROP_TEXT)
#undef SAMPLE_DROP_TEXT
	};
	u64 nr = snap->nr_unread;
	char line[256];
	size_t len = 0;

	for (u32 i = 0; i < NR_SAMPLE_DROPS; i++) {
		if (!snap->nr_dropped_by[i])
			continue;
		nr += snap->nr_dropped_by[i];
		len += snprintf(line + len, sizeof(line) - len, "%s%lu %s", len ? ", " : "",
				snap->nr_dropped_by[i], reasons[i]);
	}
	if (snap->nr_unread)
		snprintf(line + len, sizeof(line) - len, "%s%lu while they were counted",
			 len ? ", " : "", snap->nr_unread);
	if (nr)
		report_printf("not in the store: %lu of %lu samples: %s\n", nr, snap->nr_attempts,
			      line);
}

/* What the profiler itself takes. */
static void print_self(const struct heat_snapshot *snap)
{
	u32 percent = report_percent(snap->self_ns, snap->cpu_ns);

	if (snap->self_ns)
		report_printf("sampling took %lu ns a sample, %u.%02u %% of all CPUs' time\n",
			      report_avg_ns(snap->self_ns, snap->nr_attempts), percent / 100,
			      percent % 100);
}

static void print_ticks(const struct heat_snapshot *snap, u64 nr_ticks)
{
	report_printf("ticks: %lu = user %lu + kernel %lu + irq %lu + idle %lu\n", nr_ticks,
		      snap->nr_class[HEAT_USER], snap->nr_class[HEAT_KERNEL],
		      snap->nr_class[HEAT_IRQ], snap->nr_class[HEAT_IDLE]);
	report_print_source(&snap->source);
	print_drops(snap);
	print_self(snap);
}

void report_print_heatmap(struct heat_snapshot *snap, u32 top)
{
	static const char *const rule = "----------------  --------------------  ----------  "
					"---------";
	u64 nr_ticks = 0, nr_more = 0;
	u32 percent, nr_shown = min(top, snap->nr_entries);
	char name[32];

	for (u32 i = 0; i < NR_HEAT_CLASSES; i++)
		nr_ticks += snap->nr_class[i];
	sort(snap->entries, snap->nr_entries, sizeof(snap->entries[0]), compare_heat);

	print_ticks(snap, nr_ticks);
	if (top == REPORT_TOP_ALL)
		report_printf("Kernel Heatmap (all)\n");
	else
		report_printf("Kernel Heatmap (top #%u)\n", top);
	report_printf("         Address              Function          NR          %%\n");
	report_printf("%s\n", rule);
	for (u32 i = 0; i < nr_shown; i++) {
		const struct heat_entry *entry = &snap->entries[i];

		print_heat_entry(entry->addr, entry->name, entry->nr, nr_ticks);
	}
	for (u32 i = nr_shown; i < snap->nr_entries; i++)
		nr_more += snap->entries[i].nr;
	if (nr_more) {
		snprintf(name, sizeof(name), "[%u more]", snap->nr_entries - nr_shown);
		print_heat_entry(0, name, nr_more, nr_ticks);
	}
	if (snap->nr_dropped)
		print_heat_entry(0, "[dropped]", snap->nr_dropped, nr_ticks);
	report_printf("%s\n", rule);
	percent = report_percent(nr_ticks, nr_ticks);
	report_printf("%16s  %20s  %10lu  %6u.%02u\n", "", "", nr_ticks, percent / 100,
		      percent % 100);
	report_print_unseen(&snap->source);
}
