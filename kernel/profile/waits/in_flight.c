// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finds waits that have not ended yet. The store gets a wait only when it ends. So a report also
 * walks over the threads of processes, and makes a record for each thread that is off its CPU: what
 * it waits for, since when, and with which kernel call chain. Kernel threads are left out, because
 * they wait for work. A wait that ends after the report has read the records, but before it reads
 * the thread, is only in the next report.
 */

#include "store.h"

#include "../programs.h"
#include "../process_lists.h"

/* The record that visit() gets. There is one reader at a time. */
static u64 buffer[(RECORD_BYTES(WAIT_MAX_DEPTH) + sizeof(u64) - 1) / sizeof(u64)];

/* Returns the life of a thread so far. One that has not run yet has none. */
static struct profile_thread_sums sums_of_thread(const struct profile_task *pt)
{
	u64 earlier_cycles = pt->waits.created_cycles + report_delay_of(pt);
	struct profile_thread_sums life = {
		.nr_threads = 1,
		.cycles = os_cycles() - earlier_cycles,
		.off_cycles = os_off_cycles(pt) - earlier_cycles, /* without the present wait */
		.nr_waits = pf_read_once(pt->waits.nr_waits),
		.nr_preempted = pf_read_once(pt->waits.nr_preempted),
		.ready_cycles = pf_read_once(pt->waits.ready_cycles),
		.nr_migrations = pf_read_once(pt->waits.nr_migrations),
	};

	return os_off_cycles(pt) ? life : (struct profile_thread_sums){ 0 };
}

/* The sums are of one moment, as the thread stays on its CPU. */
void waits_end_thread(struct profile_task *pt)
{
	struct profile_waits_process *waits = &pt->process->waits;
	struct profile_thread_sums life = sums_of_thread(pt);

	os_assert_held(&lists_lock);
	programs_add_threads(&waits->ended_threads, &life);
	waits_note_thread(&waits->longest, pt, life.cycles, life.off_cycles);
	if (pt->process->tasks == pt && !pt->next)
		waits_end_process(pt);
}

static void set_times(struct wait_record *rec, const struct profile_task *pt)
{
	u64 now = os_cycles(), since = pf_read_once(waits_since_cycles);
	u64 start = pf_min(pf_max(pf_read_once(pt->waits.out_cycles), since), now), woken = start;

	if (rec->kind == WAIT_SLEPT) {
		/* Pairs with the release in set_waker(). */
		u64 cycles = pf_load_acquire(&pt->waits.woken_cycles);

		woken = cycles ? pf_min(pf_max(cycles, start), now) : now;
		if (cycles &&
		    pf_read_once(pt->waits.waker_generation) == pf_read_once(waits_generation))
			rec->waker = pt->waits.waker;
	}
	rec->nr = 1;
	rec->asleep_cycles = woken - start;
	rec->ready_cycles = now - woken;
	rec->max_cycles = now - start;
}

/* Fills in the record of a wait. Returns false if the thread ran meanwhile. */
static bool read_wait(struct wait_record *rec, const struct profile_task *pt)
{
	os_task_t *task = os_task_of(pt);
	u64 nr_waits = pf_read_once(pt->waits.nr_waits);
	bool asleep;

	if (!os_task_is_off_cpu(task, &asleep))
		return false;
	memset(rec, 0, sizeof(*rec));
	rec->kind = asleep || pf_read_once(pt->waits.woken_cycles) ? WAIT_SLEPT : WAIT_PREEMPTED;
	rec->syscall = os_sleeper_syscall(task);
	rec->phase = pf_read_once(pt->waits.call_phase) >> PROFILE_PHASE_SHIFT;
	rec->process = stack_process_number(os_process_of(pt->process));
	os_task_comm(task, rec->comm);
	if (rec->kind == WAIT_SLEPT) {
		rec->name = os_wait_name(task);
		rec->addr = os_wait_addr(task);
	}
	rec->nr_kernel = os_sleeper_stack(task, rec->pcs, WAIT_MAX_DEPTH);
	set_times(rec, pt);
	return os_task_is_off_cpu(task, &asleep) && pf_read_once(pt->waits.nr_waits) == nr_waits;
}

/* The process whose threads are being visited. One reader at a time. */
static struct {
	report_add_fn *add;
	bool is_running;
	char name[17];
	struct report_summary part;
} visited;

static void end_visit(void)
{
	if (visited.is_running)
		visited.add(visited.name, &visited.part);
	visited.is_running = false;
}

static void begin_visit(struct profile_process *pp)
{
	end_visit();
	visited.is_running = !pp->has_ended;
	os_strscpy(visited.name, os_process_name(os_process_of(pp)), sizeof(visited.name));
	visited.part = (struct report_summary){
		.nr_processes = 1,
		.threads = pp->waits.ended_threads,
	};
	report_add_faults(&visited.part, os_process_faults(os_process_of(pp)));
	os_process_cpu_times(os_process_of(pp), &visited.part.cpu);
}

/* Returns what the end of the thread would add now, with the present wait. */
static struct profile_thread_sums life_so_far(const struct profile_task *pt)
{
	struct profile_thread_sums life = sums_of_thread(pt);

	life.off_cycles = life.cycles - pf_min(life.cycles, os_task_exec_cycles(pt));
	return life;
}

/* Adds what the end of the thread would add now. */
static void visit_thread(const struct profile_task *pt)
{
	struct wait_record *rec = (struct wait_record *)buffer;
	struct profile_thread_sums life = life_so_far(pt);

	if (!life.nr_threads)
		return;
	if (read_wait(rec, pt))
		life.ready_cycles += rec->ready_cycles;
	report_add_faults(&visited.part, os_task_faults(os_task_of(pt)));
	programs_add_threads(&visited.part.threads, &life);
}

void waits_visit_running(report_add_fn *add)
{
	struct profile_walk walk = { 0 };
	struct profile_task *pt;
	unsigned long flags = os_lock(&lists_lock);

	visited.add = add;
	walk_begin(&walk, NULL);
	while (walk_step(&walk, begin_visit, &pt)) {
		if (pt)
			visit_thread(pt);
		os_unlock(&lists_lock, flags);
		flags = os_lock(&lists_lock);
	}
	walk_end(&walk);
	end_visit();
	os_unlock(&lists_lock, flags);
}

static void visit_process(struct profile_process *unused)
{
}

static struct profile_longest *longest; /* of the threads visited so far */

static void visit_longest(struct profile_process *pp)
{
	if (!pp->has_ended)
		waits_note_longest(longest, &pp->waits.longest);
}

static void note_thread(struct profile_longest *found, const struct profile_task *pt)
{
	struct profile_thread_sums life = life_so_far(pt);

	if (life.nr_threads)
		waits_note_thread(found, pt, life.cycles, life.off_cycles);
}

void waits_visit_longest(struct profile_longest *found)
{
	struct profile_walk walk = { 0 };
	struct profile_task *pt;
	unsigned long flags = os_lock(&lists_lock);

	longest = found;
	walk_begin(&walk, NULL);
	while (walk_step(&walk, visit_longest, &pt)) {
		if (pt)
			note_thread(found, pt);
		os_unlock(&lists_lock, flags);
		flags = os_lock(&lists_lock);
	}
	walk_end(&walk);
	os_unlock(&lists_lock, flags);
}

void waits_visit_in_flight(os_process_t *proc, wait_visit_fn *visit)
{
	struct wait_record *rec = (struct wait_record *)buffer;
	struct profile_walk walk = { 0 };
	struct profile_task *pt;
	unsigned long flags;
	bool locked;

	/* While waits are off, no hook notes when a thread leaves its CPU. */
	if (waits_off_time.is_off)
		return;
	flags = snapshot_lock(&lists_lock, &locked);
	walk_begin(&walk, proc ? os_process_profile(proc) : NULL);
	while (walk_step(&walk, visit_process, &pt)) {
		bool waits = pt && read_wait(rec, pt);
		unsigned int cpu = waits ? os_task_cpu(os_task_of(pt)) : 0;

		snapshot_unlock(&lists_lock, locked, flags);
		if (waits)
			visit(cpu, rec);
		flags = snapshot_lock(&lists_lock, &locked);
	}
	walk_end(&walk);
	snapshot_unlock(&lists_lock, locked, flags);
}
