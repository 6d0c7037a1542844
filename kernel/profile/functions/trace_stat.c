// SPDX-License-Identifier: BSD-2-Clause
/*
 * The files of Linux's function profiler: function_profile_enabled switches counting, and
 * trace_stat/function<n> has the calls of CPU n, by function. They show the counts of
 * /proc/profile/function_calls.
 */

#include "functions.h"

#include "../table.h"
#include "../words.h"
#include "tracers.h"

#define PATH_BYTES 32

static int show_enabled(os_text_t *text, const void *unused)
{
	os_text_printf(text, "%d\n", functions_are_counted());
	return 0;
}

/* Counts from zero on, as on Linux, unless counting is on already. */
static int write_enabled(const char *text, const void *unused)
{
	bool on = words_are(text, "1");

	if (!on && !words_are(text, "0"))
		return -OS_EINVAL;
	if (on == functions_are_counted())
		return 0;
	if (on)
		functions_reset();
	return functions_count(on);
}

static void print_row(const struct function_pair *pair)
{
	char name[OS_SYMBOL_BYTES], time[FUNCTION_US_BYTES], avg[FUNCTION_US_BYTES];
	u64 ns = os_cycles_to_ns(pair->cycles), start;

	if (!os_symbol_lookup(pair->function, &start, name, sizeof(name)))
		os_snprintf(name, sizeof(name), "0x%lx", pair->function);
	function_us(time, ns);
	function_us(avg, pair->nr ? ns / pair->nr : 0);
	report_printf("  %-30.30s  %10lu    %s us %*s    %s us\n", name, pair->nr, time,
		      (int)(8 - pf_min(strlen(time), (size_t)8)), "", avg);
}

static void print_cpu(const void *cpu)
{
	static struct function_snapshot snap; /* one report is made at a time */

	functions_snapshot_cpu(&snap, TRACE_CPU_OF(cpu));
	report_printf("  Function                               Hit    Time            Avg\n");
	report_printf("  --------                               ---    ----            ---\n");
	for (u32 i = 0; i < snap.nr_pairs; i++)
		print_row(&snap.pairs[i]);
}

static int show_cpu(os_text_t *text, const void *cpu)
{
	report_to_text(text, &table_text, print_cpu, cpu);
	return 0;
}

static void add_cpu(u32 cpu)
{
	char *path = os_alloc(PATH_BYTES); /* stays, as the file does */

	if (!path) {
		os_printk("profile: no memory for a file of trace_stat\n");
		return;
	}
	os_snprintf(path, PATH_BYTES, "trace_stat/function%u", cpu);
	trace_add_file((os_trace_file_t){ path, .show = show_cpu, .arg = TRACE_CPU(cpu) });
}

void function_stat_init(void)
{
	u32 cpu;

	trace_add_file((os_trace_file_t){ "function_profile_enabled", "0|1", .show = show_enabled,
					  .write = write_enabled });
	os_for_each_cpu(cpu)
		add_cpu(cpu);
}
