// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads the tables for a report, one thread after another, and releases lists_lock in between. So
 * the time with interrupts off does not grow with the number of threads and processes.
 *
 * Counters can move while the reader is between two steps: a thread exits or calls execve, or a
 * process is waited for or released. These events first let the reader read the counters
 * (strace_read_task(), strace_read_process(), strace_read_children()). The sums of a process are
 * read before its threads, and only once, so a thread that has been read can add its counters to
 * them later. After a reset in between, the reader starts again.
 */

#include "strace.h"

#define RESET_TRIES 4

/* The first two entries of the table of processes, which stand for several processes. */
enum {
	ENTRY_GONE,
	ENTRY_OTHERS,
	NR_SPECIAL_ENTRIES
};

/* The state of the reader, guarded by lists_lock. One report is made at a time. */
static struct {
	struct profile_walk walk;
	u32 number;			 /* of this report; threads that were read store it */
	struct profile_process *process; /* being read; NULL: none, or it has been released */
	u32 nr_resets;			 /* of that process, when its reading began */
	u64 last_serial;		 /* of the last process whose reading has begun */
	u32 row;			 /* the offset of the next row of walk.task; 0: the first */
	struct strace_system_snapshot *system; /* NULL: the report is of one process */
	struct strace_process_entry *entry;    /* of the process, in `system` */
} reader;

/* Adds the totals of what was merged since the last call of this function. */
static void add_to_entry(struct strace_process_entry *entry)
{
	struct strace_totals taken = strace_take_totals();

	entry->nr_calls += taken.nr_calls;
	entry->nr_errors += taken.nr_errors;
	entry->ns += taken.ns;
	entry->cpu_ns += taken.cpu_ns;
}

/* The calls merged so far belong to the process that is being read. */
static void add_to_process(void)
{
	if (reader.system && reader.process)
		add_to_entry(reader.entry);
}

/* Returns a new entry in the table of processes or, if it is full, the entry of the others. */
static struct strace_process_entry *entry_for(const struct profile_process *pp)
{
	struct strace_system_snapshot *system = reader.system;
	struct strace_process_entry *entry;

	if (system->nr_entries == PF_ARRAY_SIZE(system->entries)) {
		system->entries[ENTRY_OTHERS].nr_threads++;
		return &system->entries[ENTRY_OTHERS];
	}
	entry = &system->entries[system->nr_entries++];
	*entry = (struct strace_process_entry){ 0 };
	entry->pid = os_process_pid(os_process_of(pp));
	entry->nr_threads = pp->strace.nr_accumulated_threads;
	os_strscpy(entry->name, os_process_name(os_process_of(pp)), sizeof(entry->name));
	return entry;
}

/* Reads the calls of children that are gone, once for each report of all processes. */
void strace_read_children(struct profile_process *pp)
{
	os_assert_held(&lists_lock);
	if (!reader.system || pp->strace.reading == reader.number)
		return;
	pp->strace.reading = reader.number;
	add_to_process();
	strace_merge_sum(&pp->strace.children);
	add_to_entry(&reader.system->entries[ENTRY_GONE]);
}

/* Merges the sums of a process. The next steps read its threads. */
static void begin_process(struct profile_process *pp)
{
	os_assert_held(&lists_lock);
	strace_catch_up_process(pp);
	strace_read_children(pp);
	if (reader.system && pp->strace.is_gone)
		return;
	reader.process = pp;
	reader.last_serial = pp->serial;
	reader.nr_resets = pp->strace.nr_resets;
	reader.row = 0;
	if (reader.system) {
		reader.entry = entry_for(pp);
		strace_merge_sum(&pp->strace.before);
	}
	strace_merge_sum(&pp->strace.exited);
}

static void end_process(void)
{
	add_to_process();
	reader.process = NULL;
}

/*
 * Takes one step: reads some rows of a thread, or begins the next process. Returns false at the
 * end. Threads that start after the reader has begun their process are not read.
 */
static bool read_step(void)
{
	struct profile_task *pt = reader.walk.task;
	struct profile_process *pp;

	os_assert_held(&lists_lock);
	if (pt) {
		if (pt->strace.reading != reader.number) {
			strace_catch_up(pt);
			if (!strace_merge_task(pt, &reader.row))
				return true;
			pt->strace.reading = reader.number;
		}
		reader.row = 0;
		reader.walk.task = pt->next;
		return true;
	}
	if (!reader.system)
		return false;
	end_process();
	pp = walk_next_process(&reader.walk);
	if (pp)
		begin_process(pp);
	return pp;
}

/* Takes all steps. Releases lists_lock between two steps, except in a panic. */
static void read_all(bool *locked, unsigned long *flags)
{
	while (read_step()) {
		snapshot_unlock(&lists_lock, *locked, *flags);
		*flags = snapshot_lock(&lists_lock, locked);
	}
}

static pf_noinline void read_task(struct profile_task *pt)
{
	bool is_next = pt == reader.walk.task;
	u32 row = is_next ? reader.row : 0;

	strace_catch_up(pt);
	while (!strace_merge_task(pt, &row))
		;
	pt->strace.reading = reader.number;
	if (is_next)
		reader.row = 0; /* the walk goes on with the next thread, from its first row */
}

void strace_read_task(struct profile_task *pt)
{
	os_assert_held(&lists_lock);
	if (reader.process && pt->process == reader.process && pt->strace.reading != reader.number)
		read_task(pt);
}

void strace_skip_task(struct profile_task *pt)
{
	os_assert_held(&lists_lock);
	if (pt->process == reader.process)
		pt->strace.reading = reader.number;
}

void strace_read_process(struct profile_process *pp)
{
	os_assert_held(&lists_lock);
	if (pp == reader.process)
		end_process();
	strace_read_children(pp);
	if (!reader.system || pp->serial <= reader.last_serial ||
	    pp->serial >= reader.walk.end_serial)
		return;
	add_to_process();
	strace_merge_sum(&pp->strace.before);
	strace_merge_sum(&pp->strace.exited);
	add_to_entry(entry_for(pp));
}

static void begin_reading(struct profile_process *pp, struct strace_system_snapshot *system)
{
	os_assert_held(&lists_lock);
	strace_clear_merge();
	reader.number++;
	reader.process = NULL;
	reader.last_serial = 0;
	reader.system = system;
	walk_begin(&reader.walk, pp);
}

static void end_reading(void)
{
	os_assert_held(&lists_lock);
	reader.process = NULL;
	reader.system = NULL;
	walk_end(&reader.walk);
}

static void begin_snapshot(struct profile_process *pp, bool family, struct strace_snapshot *snap)
{
	strace_catch_up_process(pp);
	snap->pid = os_process_pid(os_process_of(pp));
	strace_off_snapshot(pp, snap);
	os_strscpy(snap->name, os_process_name(os_process_of(pp)), sizeof(snap->name));
	snap->nr_accumulated_threads = pp->strace.nr_accumulated_threads;
	snap->nr_children = pp->strace.nr_children;
	snap->before = strace_totals_of(&pp->strace.before);
	snap->children = strace_totals_of(&pp->strace.children);
	begin_reading(pp, NULL);
	if (family) {
		strace_merge_sum(&pp->strace.before);
		strace_merge_sum(&pp->strace.children);
	}
	begin_process(pp);
}

/* Returns true if the process was reset while it was read. It may have been released since. */
static bool was_reset(void)
{
	os_assert_held(&lists_lock);
	if (!reader.process)
		return false;
	strace_catch_up_process(reader.process);
	return reader.process->strace.nr_resets != reader.nr_resets;
}

static void read_process(struct profile_process *pp, bool family, struct strace_snapshot *snap,
			 bool *locked, unsigned long *flags)
{
	int tries = RESET_TRIES;

	do {
		begin_snapshot(pp, family, snap);
		read_all(locked, flags);
	} while (was_reset() && --tries);
	end_reading();
}

static void snapshot_of_process(struct profile_process *pp, bool family,
				struct strace_snapshot *snap)
{
	bool locked;
	unsigned long flags = snapshot_lock(&lists_lock, &locked);

	read_process(pp, family, snap, &locked, &flags);
	snapshot_unlock(&lists_lock, locked, flags);
	strace_take_merged(snap);
}

void strace_snapshot_process(struct profile_process *pp, struct strace_snapshot *snap)
{
	snapshot_of_process(pp, false, snap);
}

void strace_snapshot_family(struct profile_process *pp, struct strace_snapshot *snap)
{
	snapshot_of_process(pp, true, snap);
}

bool strace_snapshot_next(u64 *serial, struct strace_snapshot *snap)
{
	static struct profile_walk walk;
	struct profile_process *pp;
	bool locked;
	unsigned long flags = snapshot_lock(&lists_lock, &locked);

	if (!*serial)
		walk_begin(&walk, NULL);
	while ((pp = walk_next_process(&walk)) && pf_read_once(pp->has_ended)) {
		snapshot_unlock(&lists_lock, locked, flags);
		flags = snapshot_lock(&lists_lock, &locked);
	}
	if (pp) {
		*serial = pp->serial;
		read_process(pp, false, snap, &locked, &flags);
	} else {
		walk_end(&walk);
	}
	snapshot_unlock(&lists_lock, locked, flags);
	if (pp)
		strace_take_merged(snap);
	return pp;
}

static void begin_system(struct strace_snapshot *snap, struct strace_system_snapshot *system)
{
	struct strace_process_entry *gone = &system->entries[ENTRY_GONE],
				    *others = &system->entries[ENTRY_OTHERS];

	strace_off_snapshot(NULL, snap);
	memset(system->entries, 0, NR_SPECIAL_ENTRIES * sizeof(*gone));
	system->nr_entries = NR_SPECIAL_ENTRIES;
	gone->nr_threads = strace_nr_gone;
	os_strscpy(gone->name, "[gone]", sizeof(gone->name));
	os_strscpy(others->name, "[others]", sizeof(others->name));
	begin_reading(NULL, system);
	strace_merge_sum(&strace_gone);
	add_to_entry(gone);
}

/* Returns true if the two tables have the same number of calls and errors; for an assertion. */
static pf_unused bool tables_agree(const struct strace_snapshot *snap,
				   const struct strace_system_snapshot *system)
{
	u64 nr_calls = 0, nr_errors = 0;

	for (u32 i = 0; i < snap->nr_entries; i++) {
		nr_calls += snap->entries[i].nr_calls;
		nr_errors += snap->entries[i].nr_errors;
	}
	for (u32 i = 0; i < system->nr_entries; i++) {
		nr_calls -= system->entries[i].nr_calls;
		nr_errors -= system->entries[i].nr_errors;
	}
	return !nr_calls && !nr_errors;
}

void strace_snapshot_system(struct strace_snapshot *snap, struct strace_system_snapshot *system)
{
	int tries = RESET_TRIES;
	unsigned long flags;
	u32 nr_resets;
	bool locked;

	*system = (struct strace_system_snapshot){ 0 };
	snap->before = snap->children = (struct strace_totals){ 0 };
	snap->nr_children = 0;
	flags = snapshot_lock(&lists_lock, &locked);
	do {
		nr_resets = strace_nr_resets;
		begin_system(snap, system);
		read_all(&locked, &flags);
	} while (nr_resets != strace_nr_resets && --tries);
	end_reading();
	snapshot_unlock(&lists_lock, locked, flags);
	strace_take_merged(snap);
	os_assert(tables_agree(snap, system));
}
