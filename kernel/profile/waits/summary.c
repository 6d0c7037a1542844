// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints the first lines of the report of a process, or of a run: the CPU time of the threads, and
 * their waiting time by what they waited for. The scheduler knows how long each thread was off its
 * CPU, and the records say why. Time that no record explains is "unknown". A process that mostly
 * waits for its children, like a shell, has one line.
 */

#include "waits.h"

#include "../accounts.h"
#include "../findings.h"
#include "../profiler.h"
#include "../programs.h"
#include "../table.h"

#define NR_NAMES 6

struct part {
	const char *name;
	u64 cycles;
};

/* Adds to the part with this name, or to the last part, "others". */
static void add_part(struct part *parts, const char *name, u64 cycles)
{
	u32 i = 0;

	while (i < NR_NAMES - 1 && parts[i].name && strcmp(parts[i].name, name))
		i++;
	if (!parts[i].name)
		parts[i].name = i < NR_NAMES - 1 ? name : "others";
	parts[i].cycles += cycles;
}

static int compare_parts(const void *a, const void *b)
{
	return compare_u64(((const struct part *)b)->cycles, ((const struct part *)a)->cycles);
}

/* Makes the parts, the longest first. */
static void add_rows(struct part *parts, const struct wait_view *view)
{
	for (u32 i = 0; i < view->nr_rows; i++) {
		const struct wait_row *row = &view->rows[i];

		if (row->asleep_cycles)
			add_part(parts, row->name, row->asleep_cycles);
	}
	os_sort(parts, NR_NAMES, sizeof(parts[0]), compare_parts);
}

static u64 usecs(u64 cycles)
{
	return os_cycles_to_ns(cycles) / 1000;
}

#define SECONDS(us) (us) / 1000000, (us) % 1000000

/* Appends a part to a line, unless it is below a microsecond. Returns the line's length. */
static size_t print_part(char *line, size_t size, size_t len, const char *name, u64 us)
{
	if (!us)
		return len;
	return len + os_snprintf(line + len, size - len, "%s%s %lu.%06lu", len ? " + " : " = ",
				 name, SECONDS(us));
}

/* Prints the waits, if there were any. The total is the sum of the parts as printed. */
static void print_waits(const struct profile_thread_sums *threads, const struct wait_view *view)
{
	struct part parts[NR_NAMES] = { 0 };
	u64 ready = threads->ready_cycles, known = ready, total = usecs(ready);
	char line[320] = "";
	size_t len = 0;

	add_rows(parts, view);
	for (u32 i = 0; i < NR_NAMES && parts[i].name; i++) {
		u64 us = usecs(parts[i].cycles);

		known += parts[i].cycles;
		total += us;
		len = print_part(line, sizeof(line), len, parts[i].name, us);
	}
	len = print_part(line, sizeof(line), len, "for a CPU", usecs(ready));
	/* Waits that had no room, while waits were off, or before a reset. */
	if (threads->off_cycles > known) {
		u64 us = usecs(threads->off_cycles - known);

		total += us;
		print_part(line, sizeof(line), len, "unknown", us);
	}
	if (total)
		report_printf("waited: %lu.%06lu s%s\n", SECONDS(total), line);
}

/* A part of the CPU time that has been printed. */
struct line {
	char text[320];
	size_t len;
	u64 us; /* sum of the parts */
};

static void add_to_line(struct line *line, const char *name, u64 cycles)
{
	line->len = print_part(line->text, sizeof(line->text), line->len, name, usecs(cycles));
	line->us += usecs(cycles);
}

/*
 * Prints the CPU time of the threads. The total is the sum of the parts as printed. There are none
 * if the kernel has no accounts.
 */
static void print_cpu_time(const struct report_summary *known, const char *more)
{
	struct line line = { .us = usecs(report_cpu_cycles(known)) };
	u64 nr_threads = known->threads.nr_threads;

	if (OS_HAS_CPU_TIMES && !more) {
		line.us = 0;
		add_to_line(&line, "user code", known->cpu.user);
		add_to_line(&line, "system calls", known->cpu.calls);
		add_to_line(&line, "page faults", known->cpu.faults);
		add_to_line(&line, "other exceptions", known->cpu.exceptions);
		add_to_line(&line, "interrupts", known->cpu.irqs);
	}
	report_printf("CPU time: %lu.%06lu s, %lu thread%s%s%s\n", SECONDS(line.us), nr_threads,
		      nr_threads == 1 ? "" : "s", line.text, more ?: "");
}

/* Prints who had the time of all CPUs since boot. */
static void print_machine_time(void)
{
	struct account accounts[NR_ACCOUNTS];
	u32 nr_cpus = accounts_read(accounts);
	struct line line = { 0 };

	for (u32 i = 0; i < NR_ACCOUNTS; i++)
		add_to_line(&line, accounts[i].owner, accounts[i].cycles);
	report_printf("time of %u CPU%s: %lu.%06lu s%s\n\n", nr_cpus, nr_cpus == 1 ? "" : "s",
		      SECONDS(line.us), line.text);
}

#define MANY_BYTES (10ull << 20)

struct memory_part {
	const char *name;
	u64 size; /* in KiB, or in tenths of a MiB */
};

static void print_size(char *text, size_t size, u64 nr, bool in_mib)
{
	if (in_mib)
		os_snprintf(text, size, "%lu.%lu", nr / 10, nr % 10);
	else
		os_snprintf(text, size, "%lu", nr);
}

static int compare_memory(const void *a, const void *b)
{
	return compare_u64(((const struct memory_part *)b)->size,
			   ((const struct memory_part *)a)->size);
}

/*
 * Prints the memory of a process at its peak, in KiB or, from 10 MiB on, with a tenth of a MiB. The
 * total is the sum of the parts as printed.
 */
static void print_memory(const struct report_summary *known)
{
	static const char *const names[OS_NR_MEMORY_KINDS] = { OS_MEMORY_KINDS };
	bool in_mib = report_memory(known->peak_bytes) >= MANY_BYTES;
	struct memory_part parts[OS_NR_MEMORY_KINDS];
	char line[192] = "", number[24];
	u64 total = 0;
	size_t len = 0;

	for (u32 i = 0; i < OS_NR_MEMORY_KINDS; i++) {
		u64 kib = known->peak_bytes[i] >> 10;

		parts[i] = (struct memory_part){ names[i], in_mib ? (kib * 10 + 512) >> 10 : kib };
	}
	os_sort(parts, OS_NR_MEMORY_KINDS, sizeof(parts[0]), compare_memory);
	for (u32 i = 0; i < OS_NR_MEMORY_KINDS && parts[i].size; i++) {
		total += parts[i].size;
		print_size(number, sizeof(number), parts[i].size, in_mib);
		len += os_snprintf(line + len, sizeof(line) - len, "%s%s %s", len ? " + " : "",
				   parts[i].name, number);
	}
	print_size(number, sizeof(number), total, in_mib);
	if (total)
		report_printf("memory: peak %s %s%s = %s\n", number, in_mib ? "MiB" : "KiB",
			      known->nr_processes > 1 ? " in a process" : "", line);
}

#define NR_SIGNALS_TOLD 4
#define MANY_SIGNALS	1000 /* that are worth a finding */

static struct os_signal_counts signals_base; /* of all processes, at the last reset */

static void reset_summary(void)
{
	os_read_signals(NULL, &signals_base);
}

/* Moves the most frequent kinds to names and nr, and the sum of the others behind them. */
static void pick_signals(u64 *kinds, const char **names, u64 *nr)
{
	for (u32 told = 0; told < NR_SIGNALS_TOLD; told++) {
		u32 most = 0;

		for (u32 i = 1; i < OS_NR_SIGNAL_KINDS; i++)
			most = kinds[i] > kinds[most] ? i : most;
		names[told] = report_signal(most + 1) ?: "real-time";
		nr[told] = kinds[most];
		kinds[most] = 0;
	}
	names[NR_SIGNALS_TOLD] = "others";
	nr[NR_SIGNALS_TOLD] = 0;
	for (u32 i = 0; i < OS_NR_SIGNAL_KINDS; i++)
		nr[NR_SIGNALS_TOLD] += kinds[i];
}

/* Reads the signals of a process or, if proc is NULL, of a run. Returns their number. */
static u64 read_signals(os_process_t *proc, struct os_signal_counts *counts)
{
	u64 sum = 0;

	os_read_signals(proc, counts);
	for (u32 i = 0; i < OS_NR_SIGNAL_KINDS; i++) {
		counts->kinds[i] -= proc ? 0 : signals_base.kinds[i];
		sum += counts->kinds[i];
	}
	for (u32 i = 0; i < OS_NR_SIGNAL_FATES; i++)
		counts->fates[i] -= proc ? 0 : signals_base.fates[i];
	return sum;
}

/* Copies the function that sets timers most often: ", timer set by main < _start". */
static void print_timers(char *text, size_t size, os_process_t *proc)
{
	u64 process = proc ? stack_process_number(proc) : 0, most = 0;
	const struct wait_record *best = NULL;
	char functions[96];
	unsigned int cpu;

	text[0] = '\0';
	waits_pin();
	os_for_each_cpu(cpu) {
		const struct wait_record *rec = NULL;

		while ((rec = waits_next(cpu, rec))) {
			if (rec->kind != TIMER_SET || (process && rec->process != process) ||
			    waits_read(cpu, rec).nr <= most)
				continue;
			most = waits_read(cpu, rec).nr;
			best = rec;
		}
	}
	if (best) {
		report_wait_user_functions(best, functions, sizeof(functions));
		if (functions[0])
			os_snprintf(text, size, ", timer set by %s", functions);
	}
	waits_unpin();
}

/*
 * Offers interrupts with the signals that came, if there were many: the timers that send them are
 * the likely cause.
 */
static void find_waits(const struct finding_scope *scope)
{
	char count[FINDING_COUNT_BYTES], most[FINDING_COUNT_BYTES], timers[128];
	const char *names[NR_SIGNALS_TOLD + 1];
	u64 nr[NR_SIGNALS_TOLD + 1], sum;
	struct os_signal_counts counts;

	sum = read_signals(scope->report->proc, &counts);
	if (sum < MANY_SIGNALS)
		return;
	pick_signals(counts.kinds, names, nr);
	print_timers(timers, sizeof(timers), scope->report->proc);
	finding_of_cpu_time(scope, os_cycles_to_ns(scope->sums->cpu.irqs),
			    "in interrupts; %s signals came, %s of them %s%s [CPU time; events]",
			    finding_count(count, sum), finding_count(most, nr[0]), names[0],
			    timers);
}

/* Prints the signals of a process or, if proc is NULL, of a run; nothing if there were none. */
static void print_signals(char *text, size_t size, os_process_t *proc)
{
	static const char *const fate_names[OS_NR_SIGNAL_FATES] = { OS_SIGNAL_FATES };
	struct os_signal_counts counts;
	const char *names[NR_SIGNALS_TOLD + 1];
	char kinds[128], fates[128];
	u64 nr[NR_SIGNALS_TOLD + 1], sum = read_signals(proc, &counts);

	pick_signals(counts.kinds, names, nr);
	report_kinds(kinds, sizeof(kinds), false, names, nr, PF_ARRAY_SIZE(nr));
	report_kinds(fates, sizeof(fates), true, fate_names, counts.fates, OS_NR_SIGNAL_FATES);
	if (sum)
		os_snprintf(text, size, ", %lu signal%s%s%s", sum, sum == 1 ? "" : "s", kinds,
			    fates);
}

/*
 * Prints the numbers of events, without those that were not counted all the time. The wait for the
 * first run of a thread is no switch from that thread.
 */
static void print_events(const struct report_summary *known, os_process_t *proc)
{
	static const char *const switch_kinds[] = { "involuntary", "migrations" };
	static const char *const fault_kinds[OS_NR_FAULT_KINDS] = { OS_FAULT_KINDS };
	const struct profile_thread_sums *threads = &known->threads;
	u64 nr_switches[] = { threads->nr_preempted, threads->nr_migrations };
	char calls[48] = "", switches[112] = "", kinds[64], faults[128], signals[288] = "";

	if (known->has_calls)
		os_snprintf(calls, sizeof(calls), "%lu system calls, ", known->nr_calls);
	report_kinds(kinds, sizeof(kinds), false, switch_kinds, nr_switches, 2);
	if (!off_time_total_ns(&waits_off_time))
		os_snprintf(switches, sizeof(switches), ", %lu context switches%s",
			    threads->nr_waits - pf_min(threads->nr_waits, threads->nr_threads),
			    kinds);
	report_kinds(faults, sizeof(faults), false, fault_kinds, known->nr_faults,
		     OS_NR_FAULT_KINDS);
	print_signals(signals, sizeof(signals), proc);
	report_printf("events: %s%lu page faults%s%s%s\n", calls, report_nr_faults(known), faults,
		      switches, signals);
	print_memory(known);
}

/* Returns how long the threads slept until a child process ended or stopped. */
static u64 child_cycles(const struct wait_view *view)
{
	u64 cycles = 0;

	for (u32 i = 0; i < view->nr_rows; i++) {
		if (!strcmp(view->rows[i].name, OS_CHILD_WAIT))
			cycles += view->rows[i].asleep_cycles;
	}
	return cycles;
}

static void print_parent(const struct report_summary *known, u64 child_cycles)
{
	char more[96];

	os_snprintf(more, sizeof(more), "; waited for children: %lu.%06lu of %lu.%06lu s",
		    SECONDS(usecs(child_cycles)), SECONDS(usecs(known->threads.cycles)));
	print_cpu_time(known, more);
}

/* Prints why the process took longer on a clock. */
static void print_delay(const struct report *report)
{
	u64 us = usecs(report->delay_cycles);

	if (us)
		report_printf("delayed by reports of other processes: %lu.%06lu s, not in any of "
			      "these times\n",
			      SECONDS(us));
}

static void print_process(const struct report *report)
{
	struct report_summary known = { 0 };

	report_summarize(report->proc, &known);
	waits_make_view(report->proc, wait_by_reason);
	findings_print(report, &known);
	if (!report->wide && child_cycles(&wait_view) > known.threads.cycles / 2) {
		print_parent(&known, child_cycles(&wait_view));
	} else {
		print_cpu_time(&known, NULL);
		print_waits(&known.threads, &wait_view);
		print_events(&known, report->proc);
	}
	print_delay(report);
	report_printf("\n");
}

static void print_run(const struct report *report)
{
	struct report_summary known;

	programs_read(&known);
	waits_make_view(NULL, wait_by_reason_of_processes);
	findings_print(report, &known);
	print_cpu_time(&known, NULL);
	print_waits(&known.threads, &wait_view);
	print_events(&known, NULL);
	report_printf("\n");
	programs_print(report->top);
}

/* report_print_waits() prints the view later. The waits are pinned until then. */
static void print(const struct report *report)
{
	if (report->proc)
		print_process(report);
	else if (report->is_run)
		print_run(report);
	else if (OS_HAS_CPU_TIMES)
		print_machine_time();
}

PROFILER(summary) = {
	.name = "summary",
	.place = 5,
	.reset = reset_summary,
	.print = print,
	.find = find_waits,
};
