// SPDX-License-Identifier: BSD-2-Clause
/*
 * Walks over processes and threads without stopping the machine. The lock of the lists is held for
 * one step of a walk, so the length of a step, not the number of threads, determines how long
 * interrupts are off.
 *
 * A walk is in a list while it is in progress. When its next thread or process is removed, the walk
 * is moved to the one after it. New processes are added at the end of their list, and a walk ends
 * before processes that are newer than itself. New threads are added at the front of their list,
 * which a walk has passed already.
 */

#include "process_lists.h"

os_lock_t lists_lock = OS_LOCK_INIT;
static u64 next_serial = 1;
static struct profile_process *processes, **processes_end = &processes; /* oldest first */
static struct profile_walk *walks;					/* in progress */

void lists_add_process(struct profile_process *pp)
{
	os_assert_held(&lists_lock);
	pp->serial = next_serial++;
	pp->next = NULL;
	pp->pprev = processes_end;
	*pp->pprev = pp;
	processes_end = &pp->next;
}

void lists_add_task(struct profile_process *pp, struct profile_task *pt)
{
	os_assert_held(&lists_lock);
	pt->process = pp;
	pt->next = pp->tasks;
	pt->pprev = &pp->tasks;
	if (pt->next)
		pt->next->pprev = &pt->next;
	pp->tasks = pt;
}

void lists_remove_process(struct profile_process *pp)
{
	os_assert_held(&lists_lock);
	os_assert(!pp->tasks);
	if (!pp->pprev)
		return;
	for (struct profile_walk *walk = walks; walk; walk = walk->next) {
		if (walk->process == pp)
			walk->process = pp->next;
	}
	*pp->pprev = pp->next;
	if (pp->next)
		pp->next->pprev = pp->pprev;
	else
		processes_end = pp->pprev;
	pp->pprev = NULL;
}

void lists_remove_task(struct profile_task *pt)
{
	os_assert_held(&lists_lock);
	for (struct profile_walk *walk = walks; walk; walk = walk->next) {
		if (walk->task == pt)
			walk->task = pt->next;
	}
	*pt->pprev = pt->next;
	if (pt->next)
		pt->next->pprev = pt->pprev;
	pt->process = NULL;
}

/* Returns the pointer to a walk in its list, or that at the end of the list. */
static struct profile_walk **link_of_walk(const struct profile_walk *walk)
{
	struct profile_walk **at = &walks;

	while (*at && *at != walk)
		at = &(*at)->next;
	return at;
}

void walk_begin(struct profile_walk *walk, const struct profile_process *only)
{
	os_assert_held(&lists_lock);
	walk->process = only ? NULL : processes;
	walk->task = only ? only->tasks : NULL;
	walk->end_serial = next_serial;
	if (*link_of_walk(walk)) /* its last report was not completed */
		return;
	walk->next = walks;
	/* A panic may come here in an NMI: the walk is in the list with its link, or not at all. */
	pf_barrier();
	pf_write_once(walks, walk);
}

void walk_end(struct profile_walk *walk)
{
	struct profile_walk **at = link_of_walk(walk);

	os_assert_held(&lists_lock);
	os_assert(*at == walk);
	pf_write_once(*at, walk->next);
}

struct profile_process *walk_next_process(struct profile_walk *walk)
{
	struct profile_process *pp = walk->process;

	os_assert_held(&lists_lock);
	if (!pp || pp->serial >= walk->end_serial)
		return NULL;
	walk->process = pp->next;
	walk->task = pp->tasks;
	return pp;
}

bool walk_step(struct profile_walk *walk, void (*visit_process)(struct profile_process *pp),
	       struct profile_task **pt)
{
	struct profile_process *pp;

	*pt = walk->task;
	if (*pt) {
		walk->task = (*pt)->next;
		return true;
	}
	pp = walk_next_process(walk);
	if (pp)
		visit_process(pp);
	return pp;
}

void walk_visit(const struct profile_process *only, u32 nr_a_step,
		void (*visit_process)(struct profile_process *pp),
		void (*visit_task)(struct profile_task *pt))
{
	unsigned long flags = os_lock(&lists_lock);
	struct profile_walk walk = { 0 };
	struct profile_task *pt;

	walk_begin(&walk, only);
	for (u32 nr = 1; walk_step(&walk, visit_process, &pt); nr++) {
		if (pt)
			visit_task(pt);
		if (nr % nr_a_step == 0) {
			os_unlock(&lists_lock, flags);
			flags = os_lock(&lists_lock);
		}
	}
	walk_end(&walk);
	os_unlock(&lists_lock, flags);
}
