// SPDX-License-Identifier: BSD-2-Clause
/*
 * The only formatter. It gets a copy of the counters, sorts it and prints it, one printk() a
 * line; it allocates nothing and takes no lock. The formats are fixed to the byte in README.md.
 *
 * Every percentage is rounded half up from its own exact ratio and never adjusted. Totals are
 * the sums of what the rows print, so a reader can check each column with a calculator.
 */

#include "internal.h"

#define NS_PER_SEC  1000000000ul
#define NS_PER_USEC 1000ul

u32 report_percent(u64 part, u64 total)
{
	/* floor(x + 1/2) == floor((floor(2x) + 1) / 2) */
	return total ? (mul_div_u64(part, 20000, total) + 1) / 2 : 0;
}

static u64 divide_up(u64 a, u64 b)
{
	return a / b + (a % b != 0);
}

u64 report_usecs_per_call(u64 ns, u64 n)
{
	return n ? divide_up(divide_up(ns, NS_PER_USEC), n) : 0;
}

u64 report_avg_ns(u64 ns, u64 n)
{
	return n ? divide_up(ns, n) : 0;
}

/* Sums stop at the largest number instead of starting again at zero. */
static u64 add_saturating(u64 a, u64 b)
{
	return a + b < a ? ~0ull : a + b;
}

static int compare_u64(u64 a, u64 b)
{
	return (a > b) - (a < b);
}

/* Most time first; equal times by number. */
static int compare_strace(const void *a_, const void *b_)
{
	const struct strace_entry *a = a_, *b = b_;

	return a->ns != b->ns ? compare_u64(b->ns, a->ns) : compare_u64(a->nr, b->nr);
}

static void print_strace_entry(const struct strace_entry *entry, u64 total_ns)
{
	u32 percent = report_percent(entry->ns, total_ns);
	const char *name = entry->name;
	char number[32];

	if (!name) {
		snprintf(number, sizeof(number), "sys_%ld", (long)entry->nr);
		name = number;
	}
	printk("%3u.%02u %4lu.%09lu %11lu %9lu %9lu %s\n", percent / 100, percent % 100,
	       entry->ns / NS_PER_SEC, entry->ns % NS_PER_SEC,
	       report_usecs_per_call(entry->ns, entry->nr_calls), entry->nr_calls, entry->nr_errors,
	       name);
}

void report_print_strace(struct strace_snapshot *snap)
{
	static const char *const rule = "------ -------------- ----------- --------- --------- "
					"----------------";
	u64 total_ns = 0, nr_calls = 0, nr_errors = 0;
	u32 percent;

	for (u32 i = 0; i < snap->nr_entries; i++) {
		total_ns = add_saturating(total_ns, snap->entries[i].ns);
		nr_calls = add_saturating(nr_calls, snap->entries[i].nr_calls);
		nr_errors = add_saturating(nr_errors, snap->entries[i].nr_errors);
	}
	sort(snap->entries, snap->nr_entries, sizeof(snap->entries[0]), compare_strace);

	printk("Kernel strace\n");
	printk("Task: %d:%d nr_accumulated_threads: %u\n", snap->pid, snap->pid,
	       snap->nr_accumulated_threads);
	printk("%% time        seconds  usecs/call     calls    errors syscall\n");
	printk("%s\n", rule);
	for (u32 i = 0; i < snap->nr_entries; i++)
		print_strace_entry(&snap->entries[i], total_ns);
	printk("%s\n", rule);
	percent = report_percent(total_ns, total_ns);
	printk("%3u.%02u %4lu.%09lu %11s %9lu %9lu total\n", percent / 100, percent % 100,
	       total_ns / NS_PER_SEC, total_ns % NS_PER_SEC, "", nr_calls, nr_errors);
	if (snap->nr_backwards)
		printk("clock went backwards in %lu calls: counted without time\n",
		       snap->nr_backwards);
}

/* Most samples first; equal numbers by address. */
static int compare_heat(const void *a_, const void *b_)
{
	const struct heat_entry *a = a_, *b = b_;

	return a->nr != b->nr ? compare_u64(b->nr, a->nr) : compare_u64(a->addr, b->addr);
}

static void print_heat_entry(u64 addr, const char *name, u64 nr, u64 nr_ticks)
{
	u32 percent = report_percent(nr, nr_ticks);

	printk("%016lx  %20s  %10lu  %6u.%02u\n", addr, name, nr, percent / 100, percent % 100);
}

static void print_ticks(const struct heat_snapshot *snap, u64 nr_ticks)
{
	printk("ticks: %lu = user %lu + kernel %lu + irq %lu + idle %lu\n", nr_ticks,
	       snap->nr_class[HEAT_USER], snap->nr_class[HEAT_KERNEL], snap->nr_class[HEAT_IRQ],
	       snap->nr_class[HEAT_IDLE]);
	printk("source: timer, %u Hz; cannot see code that runs with interrupts off\n",
	       (unsigned int)os_tick_hz());
	if (snap->nr_missed)
		printk("missed: %lu of %lu ticks that were due\n", snap->nr_missed, snap->nr_due);
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
		printk("Kernel Heatmap (all)\n");
	else
		printk("Kernel Heatmap (top #%u)\n", top);
	printk("         Address              Function          NR          %%\n");
	printk("%s\n", rule);
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
	printk("%s\n", rule);
	percent = report_percent(nr_ticks, nr_ticks);
	printk("%16s  %20s  %10lu  %6u.%02u\n", "", "", nr_ticks, percent / 100, percent % 100);
}

/* By name; points of one name in link order. */
static int compare_points(const void *a_, const void *b_)
{
	const struct point_entry *a = a_, *b = b_;
	int order = strcmp(a->name, b->name);

	return order ? order : compare_u64(a->serial, b->serial);
}

static void print_point_entry(const struct point_entry *entry, bool wide)
{
	char oncpu[32] = "-";
	u64 oncpu_ns = report_avg_ns(entry->oncpu_ns, entry->nr);

	if (!wide) {
		printk("%7s  %20s  %6lu.%09lu  %16lu  %16lu\n", entry->enabled ? "on" : "off",
		       entry->name, entry->ns / NS_PER_SEC, entry->ns % NS_PER_SEC, entry->nr,
		       report_avg_ns(entry->ns, entry->nr));
		return;
	}
	if (entry->sleeps)
		snprintf(oncpu, sizeof(oncpu), "%lu", oncpu_ns);
	printk("%7s  %20s  %6lu.%09lu  %16lu  %16lu  %12lu  %12s  %12lu  <=%10lu  <=%10lu  %12lu\n",
	       entry->enabled ? "on" : "off", entry->name, entry->ns / NS_PER_SEC,
	       entry->ns % NS_PER_SEC, entry->nr, report_avg_ns(entry->ns, entry->nr),
	       report_avg_ns(entry->net_ns, entry->nr), oncpu, entry->min_ns, entry->p50_ns,
	       entry->p99_ns, entry->max_ns);
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
			printk("%30s  2^%-2u cycles  %16lu  %.*s\n", entry->name, i, nr,
			       (int)max(nr_stars, 1ul), stars);
	}
}

static void print_point_anomalies(const struct point_entry *entry)
{
	if (entry->nr_backwards)
		printk("clock went backwards in %lu pairs of %s: not counted\n",
		       entry->nr_backwards, entry->name);
	if (entry->nr_migrated)
		printk("%lu pairs of %s ended on another CPU: counted\n", entry->nr_migrated,
		       entry->name);
	if (entry->nr_unmatched)
		printk("%lu ends of %s without a start: not counted\n", entry->nr_unmatched,
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

	printk("Kernel Profile Points\n");
	printk(" status                  name             total                nr            "
	       "avg.ns%s\n",
	       wide ? wide_head : "");
	printk("%s%s\n", rule, wide ? wide_rule : "");
	for (u32 i = 0; i < snap->nr_entries; i++) {
		if (snap->entries[i].nr)
			print_point_entry(&snap->entries[i], wide);
	}
	printk("%s%s\n", rule, wide ? wide_rule : "");
	printk("an empty pair costs %lu ns and reads as %lu ns\n", snap->empty_pair_ns,
	       snap->empty_reading_ns);
	for (u32 i = 0; i < snap->nr_entries; i++)
		print_point_anomalies(&snap->entries[i]);
	if (snap->nr_not_shown)
		printk("no room for %u more points\n", snap->nr_not_shown);
	for (u32 i = 0; histogram && i < snap->nr_entries; i++)
		print_histogram(&snap->entries[i]);
}
