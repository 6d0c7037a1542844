// SPDX-License-Identifier: BSD-2-Clause
/*
 * Keeps the sums of profile points for each process: cycles and number of pairs of each point. The
 * end of a pair adds to the sums of the current thread (hooks.h). A thread that exits adds its sums
 * to those of its process, or leaves its table to it, which the next new thread goes on with. A
 * report adds the sums of the live threads to those of the process.
 *
 * A thread's table has an entry for each point, spaced like the points in their section. Behind
 * each is a second one: the sums at the last reset, which reports subtract. The table is allocated
 * with the thread, so an event never allocates. A process has room for one, if there are few
 * points. Idle CPUs, kernel threads, and threads without memory for a table add to the idle table
 * of their CPU, which is never read; a report says how many threads had no memory. A pair in an
 * interrupt counts for the interrupted thread, as the time of the interrupt does.
 */

#include "points.h"

#include "../hook_keys.h"
#include "../process_lists.h"

os_key_t profile_points_key;
OS_DEFINE_PER_CPU(u64, profile_points_offset);
OS_DEFINE_PER_CPU(u64, profile_idle_offset);
static OS_DEFINE_PER_CPU(void *, idle_table); /* profile_idle_offset points here */

static u32 nr_resets;

/*
 * The process that a report reads. A thread that exits before the report reaches it is read first.
 */
static struct {
	const struct profile_process *process;
	u32 number;
	void *table; /* the sums since the reset */
} reading;

static size_t table_bytes(void)
{
	return (char *)__stop_profile_points - (char *)__start_profile_points;
}

static u64 table_offset(const void *table)
{
	return (u64)table - (u64)__start_profile_points;
}

static struct profile_point_task *entry_at(const void *table, const struct profile_point *point)
{
	return __PROFILE_POINT_TASK(point, table_offset(table));
}

static struct profile_point_task *base_at(const void *table, const struct profile_point *point)
{
	PF_BUILD_BUG_ON(sizeof(*point) < 2 * sizeof(struct profile_point_task));
	return entry_at(table, point) + 1;
}

static void *task_table(const struct profile_task *pt)
{
	return pt->points.offset ? (void *)((u64)__start_profile_points + pt->points.offset) : NULL;
}

static void run_current(void *unused)
{
	static const struct profile_points_task none;
	const struct profile_task *pt = os_current_task() ? os_current_profile() : NULL;

	os_assert_irqs_off();
	profile_points_run(pt ? &pt->points : &none, pt ? os_off_cycles(pt) : 0);
}

int points_tasks_init(void)
{
	unsigned int cpu;

	hook_keys_register(HOOK_SWITCH, &profile_points_key, true);
	if (!reading.table)
		reading.table = os_zalloc(table_bytes());
	if (!reading.table)
		return -OS_ENOMEM;
	os_for_each_cpu(cpu) {
		void *table = os_per_cpu(idle_table, cpu);

		if (!table)
			table = os_zalloc(table_bytes());
		if (!table)
			return -OS_ENOMEM;
		os_per_cpu(idle_table, cpu) = table;
		os_per_cpu(profile_idle_offset, cpu) = table_offset(table);
		os_per_cpu(profile_points_offset, cpu) = table_offset(table);
	}
	return 0;
}

/*
 * Makes context switches update what points need of the thread, or stops that. Called before the
 * first point is switched on, and after the last one is switched off. Process context.
 */
bool points_tasks_are_known;

void points_tasks_switch(bool on)
{
	os_assert_process_context();
	if (os_key_is_set(&profile_points_key) == on)
		return;
	if (!on)
		pf_write_once(points_tasks_are_known, false);
	hook_key_set(&profile_points_key, on);
	if (on) {
		os_run_on_all_cpus(run_current);
		pf_write_once(points_tasks_are_known, true);
	}
}

static void begin_period(struct profile_process *pp, enum point_since since)
{
	os_assert_held(&lists_lock);
	pp->points.since = since;
	pp->points.since_cycles = os_cycles();
	pp->points.off_base_ns = off_time_total_ns(&points_off_time);
}

/* Restarts a table's sums: from now on, reports subtract their present values. */
static void restart_table(void *table)
{
	const struct profile_point *point;

	if (!table)
		return;
	for_each_point(point)
		*base_at(table, point) = *entry_at(table, point);
}

/*
 * Restarts the sums of a process, unless that was done since the last reset. Its threads follow one
 * by one.
 */
static void catch_up_process(struct profile_process *pp)
{
	os_assert_held(&lists_lock);
	if (pf_likely(pp->points.nr_resets == nr_resets))
		return;
	pp->points.nr_resets = nr_resets;
	begin_period(pp, POINTS_SINCE_RESET);
	restart_table(pp->points.sums);
}

/* Restarts the sums of a thread in the same way. Called before any other use of its sums. */
static void catch_up(struct profile_task *pt)
{
	os_assert_held(&lists_lock);
	catch_up_process(pt->process);
	if (pt->points.nr_resets == nr_resets)
		return;
	pt->points.nr_resets = nr_resets;
	restart_table(task_table(pt));
}

/* Adds the sums of a table since the last reset to reading.table. */
static void read_table(const void *table)
{
	const struct profile_point *point;

	os_assert_held(&lists_lock);
	if (!table)
		return;
	for_each_point(point) {
		struct profile_point_task *sums = entry_at(reading.table, point);

		/*
		 * The end of a pair adds its cycles first, so cycles are read last: they include
		 * each counted pair. Pairs with the order of os_add().
		 */
		sums->nr += pf_read_once(entry_at(table, point)->nr) - base_at(table, point)->nr;
		pf_rmb();
		sums->cycles += pf_read_once(entry_at(table, point)->cycles) -
				base_at(table, point)->cycles;
	}
}

/* Reads a thread, unless this report has read it already. */
static void read_task(struct profile_task *pt)
{
	os_assert_held(&lists_lock);
	catch_up(pt);
	if (pt->points.reading == reading.number)
		return;
	pt->points.reading = reading.number;
	read_table(task_table(pt));
}

/* Returns an empty table, or NULL. */
static void *take_table(struct profile_process *pp)
{
	os_assert_held(&lists_lock);
	if (pp->points.uses_own || table_bytes() > sizeof(pp->points.own))
		return os_zalloc(table_bytes());
	pp->points.uses_own = true;
	return pp->points.own;
}

static void free_table(struct profile_process *pp, void *table)
{
	os_assert_held(&lists_lock);
	if (table != pp->points.own) {
		os_free(table);
		return;
	}
	memset(pp->points.own, 0, sizeof(pp->points.own));
	pp->points.uses_own = false;
}

void points_task_init(os_task_t *task)
{
	struct profile_task *pt = os_task_profile(task);
	struct profile_process *pp = pt->process;
	void *table;

	if (!pp || !table_bytes())
		return;
	catch_up_process(pp);
	pt->points.nr_resets = nr_resets;
	table = pp->points.sums;
	if (table) {
		pp->points.sums = NULL;
		pt->points.reading = reading.number; /* a report in progress has read it */
	} else {
		table = take_table(pp);
	}
	if (table)
		pt->points.offset = table_offset(table);
	else
		pp->points.nr_lost++;
}

/* Adds one table to another, including the sums at the last reset. */
static void add_table(void *to, const void *from)
{
	const struct profile_point *point;

	os_assert_held(&lists_lock);
	for_each_point(point) {
		if (!entry_at(from, point)->nr)
			continue;
		entry_at(to, point)->cycles += entry_at(from, point)->cycles;
		entry_at(to, point)->nr += entry_at(from, point)->nr;
		base_at(to, point)->cycles += base_at(from, point)->cycles;
		base_at(to, point)->nr += base_at(from, point)->nr;
	}
}

void points_task_exit(struct profile_task *pt)
{
	struct profile_process *pp = pt->process;
	void *table;

	if (!pp)
		return;
	catch_up(pt);
	if (pp == reading.process)
		read_task(pt);
	table = task_table(pt);
	pt->points.offset = 0;
	/* From here on, pairs that end on this CPU add to its idle table. */
	if (os_current_task() && pt == os_current_profile())
		profile_points_run(&pt->points, os_off_cycles(pt));
	if (table && pp->points.sums) {
		add_table(pp->points.sums, table);
		free_table(pp, table);
	} else if (table) {
		pp->points.sums = table;
	}
}

void points_process_init(struct profile_process *pp)
{
	begin_period(pp, POINTS_SINCE_START);
	pp->points.nr_resets = nr_resets;
}

void points_process_release(struct profile_process *pp)
{
	void *table = pp->points.sums;

	pp->points.sums = NULL;
	if (table != pp->points.own)
		os_free(table);
}

/* Restarts the sums of a process. The other threads are gone, so there are few tables. */
void points_process_exec(struct profile_process *pp)
{
	catch_up_process(pp);
	begin_period(pp, POINTS_SINCE_EXEC);
	restart_table(pp->points.sums);
	for (struct profile_task *pt = pp->tasks; pt; pt = pt->next) {
		catch_up(pt);
		restart_table(task_table(pt));
	}
}

void points_tasks_reset(void)
{
	unsigned long flags = os_lock(&lists_lock);

	nr_resets++;
	os_unlock(&lists_lock, flags);
	walk_visit(NULL, 1, catch_up_process, catch_up);
}

void points_read_process(const struct profile_process *pp)
{
	unsigned long flags = os_lock(&lists_lock);

	memset(reading.table, 0, table_bytes());
	reading.number++;
	reading.process = pp;
	read_table(pp->points.sums);
	os_unlock(&lists_lock, flags);
	walk_visit(pp, 1, catch_up_process, read_task);
	flags = os_lock(&lists_lock);
	reading.process = NULL;
	os_unlock(&lists_lock, flags);
}

struct profile_point_task points_read_sums(const struct profile_point *point)
{
	return *entry_at(reading.table, point);
}
