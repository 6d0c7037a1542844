// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints the line `sampling:` above the columns of the heatmap, and notes below its total: losses,
 * blind spot, and the longest stretches with interrupts off.
 */

#include "samples.h"
#include "../table.h"

#define MIN_EVIDENCE 16	 /* samples */
#define MIN_SHARE    100 /* in hundredths of a percent; less is not reported */

void report_print_source(const struct source_snapshot *snap)
{
	const struct source_settings *s = &snap->settings;
	const char *timer = OS_TICK_HZ ? "timer tick" : "APIC timer";
	char when[64] = "at regular intervals (no seed)";

	if (s->source == SOURCE_NMI)
		timer = snap->nmi_timer ? snap->nmi_timer : "CPU 0's APIC timer";
	if (snap->at_random)
		os_snprintf(when, sizeof(when), "at random moments (seed %lu)", s->seed);
	table_note("sampling: %s%s, %u per second and CPU %s%s",
		   s->source == SOURCE_NMI ? "NMI by " : "", timer, s->hz, when,
		   s->on ? "" : "; off now");
}

static void print_losses(const struct source_snapshot *snap)
{
	bool is_nmi = snap->settings.source == SOURCE_NMI;
	const struct source_sums *all = &snap->all;
	char self[64] = "";

	if (!all->lost && !all->self)
		return;
	if (all->self)
		os_snprintf(self, sizeof(self), "%s%lu in the profiler itself",
			    all->lost ? ", " : "", all->self);
	if (all->lost)
		table_note("%lu of %lu expected samples lost: %lu %s%s", all->lost + all->self,
			   all->expected, all->lost,
			   is_nmi ? "whose NMI came together with another" :
				    "late by a whole period",
			   self);
	else
		table_note("%lu of %lu expected samples lost: %s", all->self, all->expected, self);
}

/*
 * Prints how many samples were expected, taken and lost, if wide or if the numbers do not add up.
 * A CPU that is about to store a sample, whose deadline it has left behind, may have one too few.
 */
static void print_expected(const struct source_snapshot *snap, bool wide)
{
	const struct source_sums *all = &snap->all;
	u64 nr_left = all->leftover < 0 ? -(u64)all->leftover : (u64)all->leftover;
	char leftover[40] = "";

	if (nr_left)
		os_snprintf(leftover, sizeof(leftover), " + %ld left over", (long)all->leftover);
	if (wide || nr_left > snap->nr_cpus)
		table_note("expected: %lu samples by the clock and the rate = %lu taken + %lu "
			   "lost + %lu in the profiler%s",
			   all->expected, all->taken, all->lost, all->self, leftover);
}

/* Returns the share of late samples in hundredths of a percent; 0 if there are no samples. */
static u32 late_share(u64 nr_late, u64 nr_taken, u64 nr_lost)
{
	return report_percent(nr_late, nr_taken + nr_lost);
}

/*
 * Returns the share of samples that the machine itself (the host, or other virtual CPUs) made late,
 * in hundredths of a percent. It is measured by samples that no kernel code can have delayed: those
 * of CPUs that sleep with interrupts on, and those in user code that are later than any return to
 * user mode takes.
 */
static u32 machine_late_share(const struct source_snapshot *snap)
{
	const struct source_counts *nr = &snap->counts;
	u32 idle = 0, user = 0;

	if (snap->nr_taken[LATE_IDLE] >= MIN_EVIDENCE)
		idle = late_share(nr->late[LATE_IDLE] + nr->lost[LATE_IDLE],
				  snap->nr_taken[LATE_IDLE], nr->lost[LATE_IDLE]);
	if (snap->nr_taken[LATE_USER] >= MIN_EVIDENCE)
		user = late_share(nr->long_late[LATE_USER], snap->nr_taken[LATE_USER],
				  nr->lost[LATE_USER]);
	return pf_max(idle, user);
}

/* Returns why samples were lost, and what to do. */
static const char *loss_advice(const struct source_snapshot *snap)
{
	const u64 *nr = snap->nr_taken;

	if (snap->cpus_take_turns)
		return "CPUs take turns, and deadlines pass while others run: one CPU loses none";
	if (snap->settings.source == SOURCE_NMI && os_clock_counts_instructions())
		return "their NMIs came together: profile.hz= sets a lower rate";
	if (os_clock_counts_instructions() ||
	    (!snap->is_imprecise && machine_late_share(snap) < MIN_SHARE &&
	     nr[LATE_USER] + nr[LATE_IDLE] >= 2 * MIN_EVIDENCE))
		return "interrupts were off too long: profile.source=nmi samples such code";
	return "the host gave the CPUs too little time: run with no more CPUs than the host has, "
	       "or with icount, which loses none";
}

/* Where CPUs take turns, the code that a deadline would hit does not decide whether it is lost. */
u32 source_many_lost(const struct source_snapshot *snap)
{
	return snap->cpus_take_turns ? 1000 : 500;
}

void report_warn_of_losses(const struct source_snapshot *snap)
{
	u64 nr_lost = snap->all.lost + snap->all.self;
	u32 share = report_percent(nr_lost, snap->all.expected);

	if (nr_lost >= MIN_EVIDENCE && share > source_many_lost(snap))
		report_printf("profile: %u %% of the samples were lost, so their shares are not "
			      "exact: %s\n",
			      share / 100, loss_advice(snap));
}

static void print_percent_off(u32 percent)
{
	table_note("blind spot: at least %u.%02u %% of busy time ran with interrupts off; its "
		   "samples are charged to the code that turned them on",
		   percent / 100, percent % 100);
}

/*
 * Prints the share of busy time that ran with interrupts off. Deadlines are at random moments, so
 * it is the share of deadlines that found interrupts off. Neither number includes idle time, in
 * which interrupts are on.
 */
static void print_blind_spot(const struct source_snapshot *snap, bool wide)
{
	const struct source_counts *nr = &snap->counts;
	u64 nr_lost = nr->lost[LATE_USER] + nr->lost[LATE_KERNEL];
	u64 nr_late = nr->late[LATE_USER] + nr->late[LATE_KERNEL] + nr_lost;
	u64 nr_busy = snap->nr_taken[LATE_USER] + snap->nr_taken[LATE_KERNEL] + nr_lost;
	u32 busy = report_percent(nr_late, nr_busy), machine = machine_late_share(snap);
	u64 nr_long_late = nr->long_late[LATE_KERNEL];
	u32 long_late = report_percent(nr_long_late, nr_busy);

	if (nr_late < MIN_EVIDENCE) {
		if (wide)
			table_note("blind spot: %lu of %lu samples of busy time came late: too "
				   "few to tell its size",
				   nr_late, nr_busy);
	} else if (machine * 2 < busy && !snap->is_imprecise) {
		if (wide || report_percent(nr_late, snap->all.taken + nr_lost) >= MIN_SHARE)
			print_percent_off(busy);
	} else if (nr_long_late >= MIN_EVIDENCE && long_late >= MIN_SHARE &&
		   machine * 4 < long_late) {
		print_percent_off(long_late);
	} else if (!snap->cpus_take_turns) {
		table_note("timer interrupts came late (the host gave the CPU no time): shares "
			   "are approximate; icount with one CPU gives exact ones");
	}
}

static void print_irqs_off(const struct source_snapshot *snap)
{
	u32 percent = report_percent(snap->nr_irqs_off, snap->all.taken);

	table_note("interrupts were off in %u.%02u %% of samples (%lu of %lu)", percent / 100,
		   percent % 100, snap->nr_irqs_off, snap->all.taken);
}

enum {
	LENGTH,
	CPU,
	TID,
	TASK,
	ADDRESS,
	PLACE,
	NR_COLUMNS,
};

static const struct column columns[NR_COLUMNS] = {
	[LENGTH] = { "ns", "at_least_ns", COLUMN_COUNT, 14 },
	[CPU] = { "CPU", "cpu", COLUMN_COUNT, 3 },
	[TID] = { "tid", "tid", COLUMN_COUNT, 6 },
	[TASK] = { "task", "task", COLUMN_TEXT, 15, .left = true },
	[ADDRESS] = { "turned on again at", "address", COLUMN_ADDRESS, 16, .left = true },
	[PLACE] = { "", "place", COLUMN_TEXT, .left = true },
};

static const struct table table = TABLE(columns, .no_rules = true);

static void print_stretch(const struct source_stretch *stretch, u32 cpu)
{
	u64 start;
	char name[OS_SYMBOL_BYTES], place[256], comm[sizeof(stretch->comm) + 1] = "";
	struct cell cells[NR_COLUMNS] = {
		[LENGTH] = cell_nr(os_cycles_to_ns(stretch->cycles)),
		[CPU] = cell_nr(cpu),
		[TID] = cell_nr(stretch->tid),
		[TASK] = cell_text(comm),
		[ADDRESS] = cell_nr(stretch->pc),
		[PLACE] = cell_text(stretch->user ? "[user]" : "[unknown]"),
	};

	memcpy(comm, stretch->comm, sizeof(stretch->comm));
	if (!stretch->user && os_symbol_lookup(stretch->pc, &start, name, sizeof(name))) {
		if (stretch->pc == start)
			os_snprintf(place, sizeof(place), "%s", name);
		else
			os_snprintf(place, sizeof(place), "%s+%#lx", name, stretch->pc - start);
		cells[PLACE] = cell_text(place);
	}
	table_row(cells);
}

static void print_losses_by_cpu(const struct source_snapshot *snap)
{
	if (!snap->all.lost)
		return;
	table_note("lost, by CPU:");
	for (u32 cpu = 0; cpu < SOURCE_MAX_CPUS; cpu++) {
		const struct source_sums *sums = &snap->cpus[cpu];

		if (sums->lost)
			table_note("  CPU %2u: %lu of %lu", cpu, sums->lost, sums->expected);
	}
}

/* Returns the number of stretches. Only the source `timer` measures them. */
static u32 nr_stretches(const struct source_snapshot *snap)
{
	return snap->settings.source == SOURCE_TIMER ? snap->nr_stretches : 0;
}

static void print_stretches(const struct source_snapshot *snap)
{
	table_head();
	for (u32 i = 0; i < nr_stretches(snap); i++)
		print_stretch(&snap->longest[i], snap->stretch_cpu[i]);
}

void report_print_stretches(const struct source_snapshot *snap)
{
	table_begin(&table, "Longest stretches with interrupts off");
	table_note("lower bounds; idle left out");
	report_print_source(snap);
	print_stretches(snap);
	table_end_without_total();
}

void report_print_source_notes(const struct source_snapshot *snap, bool wide)
{
	print_losses(snap);
	print_expected(snap, wide);
	if (wide)
		print_losses_by_cpu(snap);
	if (snap->settings.source == SOURCE_NMI)
		print_irqs_off(snap);
	else if (!OS_TICK_HZ)
		print_blind_spot(snap, wide);
	if (!wide || !nr_stretches(snap))
		return;
	table_note("longest stretches with interrupts off (lower bounds; idle left out):");
	table_begin(&table, NULL);
	print_stretches(snap);
}

enum {
	S_CPU,
	S_SOURCE,
	S_HZ,
	S_OTHER_RATE,
	S_EXPECTED,
	S_TAKEN,
	S_LOST,
	S_SELF,
	S_NR_COLUMNS,
};

static const struct column source_columns[S_NR_COLUMNS] = {
	[S_CPU] = { NULL, "cpu", COLUMN_COUNT },
	[S_SOURCE] = { NULL, "source", COLUMN_TEXT },
	[S_HZ] = { NULL, "hz", COLUMN_COUNT },
	[S_OTHER_RATE] = { NULL, "other_rate_ns", COLUMN_COUNT },
	[S_EXPECTED] = { NULL, "expected", COLUMN_COUNT },
	[S_TAKEN] = { NULL, "taken", COLUMN_COUNT },
	[S_LOST] = { NULL, "lost", COLUMN_COUNT },
	[S_SELF] = { NULL, "self", COLUMN_COUNT },
};

static const struct table source_table = TABLE(source_columns);

void report_print_sources(const struct source_snapshot *snap)
{
	const struct source_settings *s = &snap->settings;

	table_begin(&source_table, "Source of samples");
	for (u32 i = 0; i < snap->nr_cpus; i++) {
		struct cell cells[S_NR_COLUMNS] = {
			[S_CPU] = cell_nr(i),
			[S_SOURCE] = cell_text(s->source == SOURCE_NMI ? "nmi" : "timer"),
			[S_HZ] = cell_nr(s->hz),
			[S_OTHER_RATE] = cell_nr(snap->borrowed.ns),
			[S_EXPECTED] = cell_nr(snap->cpus[i].expected),
			[S_TAKEN] = cell_nr(snap->cpus[i].taken),
			[S_LOST] = cell_nr(snap->cpus[i].lost),
			[S_SELF] = cell_nr(snap->cpus[i].self),
		};

		table_row(cells);
	}
	table_end_without_total();
}
