// SPDX-License-Identifier: BSD-2-Clause
/* The profile points' table: see report.c. */

#include "internal.h"

/* By name; points of one name in link order. */
static int compare_points(const void *a_, const void *b_)
{
	const struct point_entry *a = a_, *b = b_;
	int order = strcmp(a->name, b->name);

	return order ? order : compare_u64(a->serial, b->serial);
}

static void print_point_entry(const struct point_entry *entry, bool wide)
{
	const char *state = entry->enabled ? "on" : "off";
	char oncpu[32] = "-";
	u64 oncpu_ns = report_avg_ns(entry->oncpu_ns, entry->nr);

	if (!wide) {
		report_printf("%7s  %20s  %6lu.%09lu  %16lu  %16lu\n", state, entry->name,
			      entry->ns / NS_PER_SEC, entry->ns % NS_PER_SEC, entry->nr,
			      report_avg_ns(entry->ns, entry->nr));
		return;
	}
	if (entry->sleeps)
		snprintf(oncpu, sizeof(oncpu), "%lu", oncpu_ns);
	report_printf("%7s  %20s  %6lu.%09lu  %16lu  %16lu  %12lu  %12s  %12lu"
		      "  <=%10lu  <=%10lu  %12lu\n",
		      state, entry->name, entry->ns / NS_PER_SEC, entry->ns % NS_PER_SEC, entry->nr,
		      report_avg_ns(entry->ns, entry->nr), report_avg_ns(entry->net_ns, entry->nr),
		      oncpu, entry->min_ns, entry->p50_ns, entry->p99_ns, entry->max_ns);
}

/* Stars in proportion to the fullest bucket; one for every bucket that is not empty. */
static void print_histogram(const struct point_entry *entry)
{
	static const char stars[] = "****************************************";
	u64 most = 0;

	for (u32 i = 0; i < PROFILE_POINT_BUCKETS; i++)
		most = max(most, entry->nr_log2[i]);
	for (u32 i = 0; i < PROFILE_POINT_BUCKETS; i++) {
		u64 nr = entry->nr_log2[i];
		u64 nr_stars = most ? mul_div_u64(nr, sizeof(stars) - 1, most) : 0;

		if (nr)
			report_printf("%30s  2^%-2u cycles  %16lu  %.*s\n", entry->name, i, nr,
				      (int)max(nr_stars, 1ul), stars);
	}
}

static void print_point_anomalies(const struct point_entry *entry)
{
	if (entry->nr_backwards)
		report_printf("clock went backwards in %lu pairs of %s: not counted\n",
			      entry->nr_backwards, entry->name);
	if (entry->nr_migrated)
		report_printf("%lu pairs of %s ended on another CPU: counted\n", entry->nr_migrated,
			      entry->name);
	if (entry->nr_unmatched)
		report_printf("%lu ends of %s without a start: not counted\n", entry->nr_unmatched,
			      entry->name);
}

void report_print_points(struct point_snapshot *snap, bool wide, bool histogram)
{
	static const char *const rule = "-------  --------------------  ----------------  "
					"----------------  ----------------";
	static const char *const wide_head = "        net.ns      oncpu.ns        min.ns"
					     "        p50.ns        p99.ns        max.ns";
	static const char *const wide_rule = "  ------------  ------------  ------------"
					     "  ------------  ------------  ------------";

	sort(snap->entries, snap->nr_entries, sizeof(snap->entries[0]), compare_points);

	report_printf("Kernel Profile Points\n");
	report_printf(
		" status                  name             total                nr            "
		"avg.ns%s\n",
		wide ? wide_head : "");
	report_printf("%s%s\n", rule, wide ? wide_rule : "");
	for (u32 i = 0; i < snap->nr_entries; i++) {
		if (snap->entries[i].nr)
			print_point_entry(&snap->entries[i], wide);
	}
	report_printf("%s%s\n", rule, wide ? wide_rule : "");
	report_printf("an empty pair costs %lu ns and reads as %lu ns\n", snap->empty_pair_ns,
		      snap->empty_reading_ns);
	for (u32 i = 0; i < snap->nr_entries; i++)
		print_point_anomalies(&snap->entries[i]);
	if (snap->nr_not_shown)
		report_printf("no room for %u more points\n", snap->nr_not_shown);
	for (u32 i = 0; histogram && i < snap->nr_entries; i++)
		print_histogram(&snap->entries[i]);
}
