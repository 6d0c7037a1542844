// SPDX-License-Identifier: BSD-2-Clause
/*
 * The processes whose memory is sampled. Each has a slot, found by the worker when the process is
 * at most a period old, and keeps it when it has ended, for the report of a run. Without a free
 * slot, the ended process with the smallest working set loses its own. The worker shows a slot's
 * regions at the end of each period, and keeps some of these moments as a history: when it is full,
 * every second moment is dropped, and from then on fewer are kept.
 */

#include "working_set.h"

#include "../process_lists.h"

#define VISITED_AT_A_TIME 64

static struct working_set_slot *slots[WORKING_SET_SLOTS];
static os_lock_t working_set_lock = OS_LOCK_INIT;
static u32 nr_without_slot, nr_found_without;

/* Returns how many slots there may be: together at most a 64th of the machine's memory. */
static u32 max_slots(void)
{
	u64 max = os_memory_bytes() / 64 / sizeof(struct working_set_slot);

	return pf_min(pf_max(max, 1ull), (u64)WORKING_SET_SLOTS);
}

struct working_set_slot *working_set_slot_at(u32 i)
{
	return pf_load_acquire(&slots[i]);
}

static void set_process(struct working_set_slot *slot, u32 i, struct profile_process *pp)
{
	os_process_t *proc = os_process_of(pp);
	unsigned long flags;

	os_assert_held(&lists_lock);
	flags = os_lock(&working_set_lock);
	slot->view.ns = 0;
	slot->nr_moments = 0;
	os_unlock(&working_set_lock, flags);
	slot->pid = os_process_pid(proc);
	os_strscpy(slot->name, os_process_name(proc), sizeof(slot->name));
	slot->generation = 0;
	slot->has_just_begun = false;
	slot->program = os_process_program(proc);
	slot->pp = pp;
	pp->working_set.slot = i + 1;
}

static u64 most_of(const struct working_set_slot *slot)
{
	return slot->view.ns ? 1 + slot->view.long_pages : 0;
}

/* Returns the number of a slot for a process, or WORKING_SET_SLOTS. */
static u32 find_slot(void)
{
	u32 found = WORKING_SET_SLOTS, nr = max_slots();

	for (u32 i = 0; i < nr; i++) {
		if (!slots[i])
			return i;
		if (!slots[i]->pp &&
		    (found == WORKING_SET_SLOTS || most_of(slots[i]) < most_of(slots[found])))
			found = i;
	}
	return found;
}

static void find_process(struct profile_process *pp)
{
	struct working_set_slot *slot;
	u32 i;

	if (pp->working_set.slot || pp->has_ended)
		return;
	i = find_slot();
	slot = i < WORKING_SET_SLOTS ? slots[i] : NULL;
	if (i < WORKING_SET_SLOTS && !slot)
		slot = os_zalloc(sizeof(*slot));
	if (!slot) {
		nr_found_without++;
		return;
	}
	set_process(slot, i, pp);
	pf_store_release(&slots[i], slot); /* pairs with the acquire in working_set_slot_at() */
}

static void visit_no_task(struct profile_task *pt)
{
}

void working_set_find_processes(void)
{
	nr_found_without = 0;
	walk_visit(NULL, VISITED_AT_A_TIME, find_process, visit_no_task);
	pf_write_once(nr_without_slot, nr_found_without);
}

u32 working_set_nr_without_slot(void)
{
	return pf_read_once(nr_without_slot);
}

void working_set_forget(struct profile_process *pp)
{
	os_assert_held(&lists_lock);
	if (pp->working_set.slot)
		slots[pp->working_set.slot - 1]->pp = NULL;
}

/*
 * Returns whether a process with a program of its own has begun in the last second, and not before
 * the last reset. Then it has touched all its pages since; a child of fork() has those of its
 * parent.
 */
static bool has_just_begun(os_process_t *proc)
{
	u64 since_ns = os_cycles_to_ns(os_cycles()) - pf_read_once(working_set_begin_ns);
	u64 age_ns = os_process_age_ns(proc);

	return os_process_program(proc) && age_ns != OS_NO_AGE &&
	       age_ns <= pf_min(since_ns, WORKING_SET_SHORT_NS);
}

/* Drops what is known of the program before an execve. */
static void check_program(struct working_set_slot *slot, os_process_t *proc)
{
	bool has_exec = slot->program != os_process_program(proc);
	bool was_sampled = slot->generation == pf_read_once(working_set_generation);

	if (has_exec)
		set_process(slot, slot->pp->working_set.slot - 1, slot->pp);
	if (!slot->generation)
		slot->has_just_begun |= (has_exec && was_sampled) || has_just_begun(proc);
}

os_mm_t *working_set_slot_mm(struct working_set_slot *slot)
{
	unsigned long flags = os_lock(&lists_lock);
	os_mm_t *mm = NULL;

	if (slot->pp && !slot->pp->has_ended) {
		mm = os_mm_get(os_process_of(slot->pp));
		if (mm)
			check_program(slot, os_process_of(slot->pp));
	}
	os_unlock(&lists_lock, flags);
	return mm;
}

static void halve_history(struct working_set_slot *slot)
{
	for (u32 i = 1; i < WORKING_SET_MOMENTS / 2; i++)
		slot->moments[i] = slot->moments[2 * i];
	slot->nr_moments = WORKING_SET_MOMENTS / 2;
	slot->moment_every *= 2;
}

static void add_moment(struct working_set_slot *slot, u64 now_ns)
{
	struct working_set_moment *moment;

	if (!slot->nr_moments)
		slot->moment_every = 1;
	else if (--slot->until_moment)
		return;
	if (slot->nr_moments == WORKING_SET_MOMENTS)
		halve_history(slot);
	slot->until_moment = slot->moment_every;
	moment = &slot->moments[slot->nr_moments++];
	moment->ns = now_ns;
	moment->nr_cells = slot->regions.nr;
	for (u32 i = 0; i < slot->regions.nr; i++) {
		const struct region *region = &slot->regions.all[i];

		moment->cells[i] = (struct working_set_cell){
			.start = region->start,
			.nr_pages = (region->end - region->start) / OS_PAGE_BYTES,
			.accessed = region->accessed / 100,
			.written = region->written / 100,
		};
	}
}

static void make_view(struct working_set_slot *slot, u64 now_ns)
{
	const struct regions *regions = &slot->regions;
	struct working_set_view *view = &slot->view;

	view->ns = now_ns;
	view->pid = slot->pid;
	memcpy(view->name, slot->name, sizeof(view->name));
	view->short_pages = regions_working_set(regions, now_ns, WORKING_SET_SHORT_NS);
	view->long_pages = regions_working_set(regions, now_ns, WORKING_SET_LONG_NS);
	view->resident_pages = 0;
	view->nr_rows = regions->nr;
	for (u32 i = 0; i < regions->nr; i++) {
		const struct region *region = &regions->all[i];

		view->resident_pages += region->nr_pages;
		view->rows[i] = (struct working_set_row){
			.start = region->start,
			.end = region->end,
			.nr_pages = region->nr_pages,
			.accessed_ns = region->accessed_ns,
			.age = region->age,
			.accessed = region->accessed,
			.written = region->written,
			.kind = region->kind,
		};
	}
}

void working_set_publish(struct working_set_slot *slot, u64 now_ns)
{
	unsigned long flags = os_lock(&working_set_lock);

	if (slot->view_generation != slot->generation)
		slot->nr_moments = 0;
	slot->view_generation = slot->generation;
	make_view(slot, now_ns);
	add_moment(slot, now_ns);
	os_unlock(&working_set_lock, flags);
}

/* Returns whether the view and the history are of now. The lock is held, but in a panic. */
static bool is_known(const struct working_set_slot *slot)
{
	return slot->view.ns && slot->view_generation == pf_read_once(working_set_generation);
}

bool working_set_copy(const struct working_set_slot *slot, struct working_set_view *view)
{
	bool locked, known;
	unsigned long flags = snapshot_lock(&working_set_lock, &locked);

	known = is_known(slot);
	if (known)
		*view = slot->view;
	snapshot_unlock(&working_set_lock, locked, flags);
	return known;
}

bool working_set_copy_moment(const struct working_set_slot *slot, u32 i,
			     struct working_set_moment *moment)
{
	bool locked, known;
	unsigned long flags = snapshot_lock(&working_set_lock, &locked);

	known = is_known(slot) && i < slot->nr_moments;
	if (known)
		*moment = slot->moments[i];
	snapshot_unlock(&working_set_lock, locked, flags);
	return known;
}
