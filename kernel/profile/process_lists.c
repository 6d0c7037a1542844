// SPDX-License-Identifier: BSD-2-Clause
/*
 * Walks over processes and threads without stopping the machine. The lock of the lists is held for
 * one step of a walk, so the length of a step, not the number of threads, determines how long
 * interrupts are off.
 *
 * A walk is in lists->walks while it is in progress. When its next thread or process is removed,
 * the walk is moved to the one after it. New processes are added at the end of their list, and a
 * walk ends before processes that are newer than itself. New threads are added at the front of
 * their list, which a walk has passed already.
 */

#include "process_lists.h"

static struct profile_process_link *link_of_process(const struct process_lists *lists,
						    const struct profile_process *pp)
{
	return (struct profile_process_link *)((char *)pp + lists->process_link);
}

static struct profile_task_link *link_of_task(const struct process_lists *lists,
					      const struct profile_task *pt)
{
	return (struct profile_task_link *)((char *)pt + lists->task_link);
}

void lists_add_process(struct process_lists *lists, struct profile_process *pp)
{
	struct profile_process_link *link = link_of_process(lists, pp);

	os_assert_held(lists->lock);
	link->serial = lists->next_serial++;
	link->next = NULL;
	link->pprev = lists->processes_end;
	*link->pprev = pp;
	lists->processes_end = &link->next;
}

void lists_add_task(struct process_lists *lists, struct profile_process *pp,
		    struct profile_task *pt)
{
	struct profile_task **tasks = &link_of_process(lists, pp)->tasks;
	struct profile_task_link *link = link_of_task(lists, pt);

	os_assert_held(lists->lock);
	link->next = *tasks;
	link->pprev = tasks;
	if (link->next)
		link_of_task(lists, link->next)->pprev = &link->next;
	*tasks = pt;
}

void lists_remove_process(struct process_lists *lists, struct profile_process *pp)
{
	struct profile_process_link *link = link_of_process(lists, pp);

	os_assert_held(lists->lock);
	os_assert(!link->tasks);
	if (!link->pprev)
		return;
	for (struct profile_walk *walk = lists->walks; walk; walk = walk->next) {
		if (walk->process == pp)
			walk->process = link->next;
	}
	*link->pprev = link->next;
	if (link->next)
		link_of_process(lists, link->next)->pprev = link->pprev;
	else
		lists->processes_end = link->pprev;
	link->pprev = NULL;
}

void lists_remove_task(struct process_lists *lists, struct profile_task *pt)
{
	struct profile_task_link *link = link_of_task(lists, pt);

	os_assert_held(lists->lock);
	for (struct profile_walk *walk = lists->walks; walk; walk = walk->next) {
		if (walk->task == pt)
			walk->task = link->next;
	}
	*link->pprev = link->next;
	if (link->next)
		link_of_task(lists, link->next)->pprev = link->pprev;
}

/* Returns the pointer to a walk in its list, or that at the end of the list. */
static struct profile_walk **link_of_walk(const struct profile_walk *walk)
{
	struct profile_walk **at = &walk->lists->walks;

	while (*at && *at != walk)
		at = &(*at)->next;
	return at;
}

void walk_begin(struct profile_walk *walk, struct process_lists *lists,
		const struct profile_process *only)
{
	os_assert_held(lists->lock);
	walk->lists = lists;
	walk->process = only ? NULL : lists->processes;
	walk->task = only ? link_of_process(lists, only)->tasks : NULL;
	walk->end_serial = lists->next_serial;
	if (*link_of_walk(walk)) /* its last report was not completed */
		return;
	walk->next = lists->walks;
	/* A panic may come here in an NMI: the walk is in the list with its link, or not at all. */
	pf_barrier();
	pf_write_once(lists->walks, walk);
}

void walk_end(struct profile_walk *walk)
{
	struct profile_walk **at = link_of_walk(walk);

	os_assert_held(walk->lists->lock);
	os_assert(*at == walk);
	pf_write_once(*at, walk->next);
}

struct profile_process *walk_next_process(struct profile_walk *walk)
{
	struct profile_process *pp = walk->process;
	struct profile_process_link *link;

	os_assert_held(walk->lists->lock);
	if (!pp)
		return NULL;
	link = link_of_process(walk->lists, pp);
	if (link->serial >= walk->end_serial)
		return NULL;
	walk->process = link->next;
	walk->task = link->tasks;
	return pp;
}

bool walk_step(struct profile_walk *walk, void (*visit_process)(struct profile_process *pp),
	       struct profile_task **pt)
{
	struct profile_process *pp;

	*pt = walk->task;
	if (*pt) {
		walk->task = link_of_task(walk->lists, *pt)->next;
		return true;
	}
	pp = walk_next_process(walk);
	if (pp)
		visit_process(pp);
	return pp;
}

void walk_visit(struct process_lists *lists, const struct profile_process *only,
		void (*visit_process)(struct profile_process *pp),
		void (*visit_task)(struct profile_task *pt))
{
	unsigned long flags = os_lock(lists->lock);
	struct profile_walk walk = { 0 };
	struct profile_task *pt;

	walk_begin(&walk, lists, only);
	for (u32 nr = 1; walk_step(&walk, visit_process, &pt); nr++) {
		if (pt)
			visit_task(pt);
		if (nr % lists->nr_a_step == 0) {
			os_unlock(lists->lock, flags);
			flags = os_lock(lists->lock);
		}
	}
	walk_end(&walk);
	os_unlock(lists->lock, flags);
}
