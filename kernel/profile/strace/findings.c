// SPDX-License-Identifier: BSD-2-Clause
/*
 * Offers findings about system calls: those that take most of the CPU time, and page faults with
 * the calls that map memory. A loop often makes a few calls once each time around, so calls with
 * the same number as the first one are told with it.
 */

#include "strace.h"

#include "../findings.h"

#define MAX_CALLS  3
#define MIN_ERRORS 10 /* one call of so many has failed */

static int compare_cpu_time(const void *a_, const void *b_)
{
	const struct strace_entry *a = a_, *b = b_;

	return a->cpu_ns != b->cpu_ns ? compare_u64(b->cpu_ns, a->cpu_ns) :
					compare_u64(a->nr, b->nr);
}

/* Returns whether two calls were made equally often, within 1 %. */
static bool is_in_step(const struct strace_entry *a, const struct strace_entry *b)
{
	u64 more = pf_max(a->nr_calls, b->nr_calls), less = pf_min(a->nr_calls, b->nr_calls);

	return less >= 100 && (more - less) * 100 <= more;
}

/* Returns the number of the call's row: the table is sorted by wall time, as compare_strace(). */
static u32 row_of(const struct strace_snapshot *snap, const struct strace_entry *entry)
{
	u32 row = 1;

	for (u32 i = 0; i < snap->nr_entries; i++) {
		const struct strace_entry *other = &snap->entries[i];

		row += other->ns > entry->ns || (other->ns == entry->ns && other->nr < entry->nr);
	}
	return row;
}

/* Appends how many of the calls failed and the most frequent error, if that is a tenth or more. */
static size_t print_errors(char *line, size_t size, const struct strace_snapshot *snap,
			   const struct strace_entry *entry)
{
	const struct strace_error_entry *errors = &snap->errors[entry->first_error], *most = NULL;
	char count[FINDING_COUNT_BYTES] = "all";
	const char *name;

	for (u32 i = 0; i < entry->nr_error_kinds; i++) {
		if (!most || errors[i].nr > most->nr)
			most = &errors[i];
	}
	name = most ? errno_name(most->error) : NULL;
	if (!name || entry->nr_errors * MIN_ERRORS < entry->nr_calls)
		return 0;
	if (entry->nr_errors < entry->nr_calls)
		finding_count(count, entry->nr_errors);
	return os_snprintf(line, size, ", %s failed (%s%s)", count,
			   most->nr < entry->nr_errors ? "most: " : "", name);
}

static size_t print_call(char *line, size_t size, const struct strace_snapshot *snap,
			 const struct strace_entry *entry, bool alone)
{
	char count[FINDING_COUNT_BYTES], each[FINDING_COUNT_BYTES], name[REPORT_CALL_BYTES];
	size_t len;

	finding_count(count, entry->nr_calls);
	finding_each(each, entry->cpu_ns, entry->nr_calls);
	report_call(name, entry->nr, entry->name);
	if (alone)
		len = os_snprintf(line, size, "in %s: %s call%s, %s each", entry->name ?: name,
				  count, entry->nr_calls == 1 ? "" : "s", each);
	else
		len = os_snprintf(line, size, "%s %s, %s each", count, entry->name ?: name, each);
	return len + print_errors(line + len, size - len, snap, entry);
}

/* Returns whether a call can create a process with a copy of the memory. */
static bool is_fork(const char *name)
{
	return name && (!strcmp(name, "sys_fork") || !strcmp(name, "sys_clone") ||
			!strcmp(name, "sys_clone3"));
}

/* Appends the size of the processes that were forked, if a call that forks is told. */
static void print_forks(char *line, size_t size, const struct strace_snapshot *snap,
			const struct strace_entry *const *told, u32 nr)
{
	char count[FINDING_COUNT_BYTES], bytes[FINDING_COUNT_BYTES];
	bool forks = false;

	for (u32 i = 0; i < nr; i++)
		forks |= is_fork(told[i]->name);
	if (forks && snap->nr_forks)
		os_snprintf(line, size, "; %s fork%s of %s", finding_count(count, snap->nr_forks),
			    snap->nr_forks == 1 ? "" : "s",
			    finding_bytes(bytes, snap->forked_bytes / snap->nr_forks));
}

/* The entries are sorted by CPU time. */
static void find_calls(const struct finding_scope *scope, const struct strace_snapshot *snap)
{
	const struct strace_entry *told[MAX_CALLS];
	char line[FINDING_BYTES] = "in system calls: ", rows[32] = "";
	u32 nr = 0, row, last_row = 0;
	u64 ns = 0;
	size_t len = strlen(line), rows_len = 0;

	for (u32 i = 0; i < snap->nr_entries && nr < MAX_CALLS; i++) {
		const struct strace_entry *entry = &snap->entries[i];

		if (!entry->nr_calls)
			continue;
		if (i &&
		    report_percent(pf_min(entry->cpu_ns, scope->cpu_ns), scope->cpu_ns) <
			    FINDING_MIN_SHARE / 2 &&
		    !is_in_step(entry, &snap->entries[0]))
			continue;
		told[nr++] = entry;
		ns += entry->cpu_ns;
	}
	for (u32 i = 0; i < nr; i++) {
		row = row_of(snap, told[i]);
		last_row = pf_max(last_row, row);
		rows_len += os_snprintf(rows + rows_len, sizeof(rows) - rows_len, "%s%u",
					i ? ", " : "", row);
		if (nr == 1)
			len = 0;
		else if (i)
			len += os_snprintf(line + len, sizeof(line) - len, "; ");
		len += print_call(line + len, sizeof(line) - len, snap, told[i], nr == 1);
	}
	print_forks(line + len, sizeof(line) - len, snap, told, nr);
	if (last_row > scope->report->top && !scope->report->wide)
		finding_of_cpu_time(scope, ns, "%s [CPU time]", line);
	else if (nr)
		finding_of_cpu_time(scope, ns, "%s [Kernel strace: row%s %s]", line,
				    nr == 1 ? "" : "s", rows);
}

static u64 nr_calls_of(const struct strace_snapshot *snap, const char *name)
{
	for (u32 i = 0; i < snap->nr_entries; i++) {
		if (snap->entries[i].name && !strcmp(snap->entries[i].name, name))
			return snap->entries[i].nr_calls;
	}
	return 0;
}

static void find_faults(const struct finding_scope *scope, const struct strace_snapshot *snap)
{
	u64 ns = os_cycles_to_ns(scope->sums->cpu.faults);
	char count[FINDING_COUNT_BYTES], each[FINDING_COUNT_BYTES];

	finding_of_cpu_time(scope, ns,
			    "in page faults: %s, %s each; %lu brk, %lu mmap, %lu munmap "
			    "[CPU time; Kernel strace]",
			    finding_count(count, report_nr_faults(scope->sums)),
			    finding_each(each, ns, report_nr_faults(scope->sums)),
			    nr_calls_of(snap, "sys_brk"), nr_calls_of(snap, "sys_mmap"),
			    nr_calls_of(snap, "sys_munmap"));
}

void strace_find(const struct finding_scope *scope, struct strace_snapshot *snap)
{
	os_sort(snap->entries, snap->nr_entries, sizeof(snap->entries[0]), compare_cpu_time);
	if (STRACE_HAS_CPU_TIME)
		find_calls(scope, snap);
	find_faults(scope, snap);
}
