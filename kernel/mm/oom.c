// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <lego/mutex.h>
#include <lego/page.h>
#include <lego/printk.h>
#include <lego/process.h>
#include <lego/time.h>

/*
 * Memory is promised without being there, so a page fault can find none. Then the process with the
 * most of it is killed. Its private pages are taken away here and at once, by the thread that needs
 * memory: the victim may be waiting for a lock that this thread, in a system call, holds. Nobody
 * waits for memory with an mm->lock held, so that taking the victim's works.
 *
 * User pages stop at a reserve (page_is_scarce()), which page tables, system calls of others, and
 * threads on their way out live on. The kernel's own allocations do not wait: they fail, and the
 * call with them.
 */

#define RETRY_NS	10000000ULL   /* how often a waiting thread looks again */
#define KILL_TIMEOUT_NS 1000000000ULL /* a victim that is not gone by then is not waited for */
#define LAST_TIMEOUT_NS 5000000000ULL /* the same, before init is the next one */

static DEFINE_MUTEX(oom_lock); /* guards the rest; outside of any mm->lock */
static pid_t last_victim;
static u64 last_kill_ns;

struct choice {
	pid_t pid, init;
	u64 nr_pages;
	bool others_leaving;
};

/* What its end would give back: pages, page tables and areas. */
static u64 count_pages(const struct mm *mm)
{
	return READ_ONCE(mm->nr_pages) + READ_ONCE(mm->nr_tables) +
	       READ_ONCE(mm->nr_vmas) * sizeof(struct vma) / PAGE_SIZE;
}

/* For process_for_each(): interrupts are off. */
static bool consider(struct process *proc, void *arg)
{
	struct choice *choice = arg;
	u64 nr_pages = 0;

	spin_lock(&proc->lock);
	if (!proc->mm || proc->exiting)
		choice->others_leaving |= proc->mm && proc->pid != 1;
	else if (proc->pid == 1)
		choice->init = proc->pid;
	else
		nr_pages = count_pages(proc->mm);
	spin_unlock(&proc->lock);
	if (nr_pages > choice->nr_pages) {
		choice->nr_pages = nr_pages;
		choice->pid = proc->pid;
	}
	return true;
}

/* A victim is still on its way out. */
static bool kill_in_progress(u64 timeout_ns)
{
	struct process *proc;
	bool there;

	if (!last_victim || clock_monotonic_ns() - last_kill_ns > timeout_ns)
		return false;
	proc = process_find(last_victim);
	if (!proc)
		return false;
	there = READ_ONCE(proc->mm);
	process_put(proc);
	return there;
}

struct kill_users {
	const struct mm *mm;
	bool init_uses_it;
};

/* For process_for_each(): all who share the victim's memory go with it, but not init. */
static bool kill_user(struct process *proc, void *arg)
{
	struct kill_users *users = arg;

	if (READ_ONCE(proc->mm) != users->mm)
		return true;
	if (proc->pid == 1)
		users->init_uses_it = true;
	else
		process_kill(proc, SIGKILL);
	return true;
}

static void take_pages(struct mm *mm)
{
	rw_mutex_lock_write(&mm->lock);
	mm->oom_killed = true;
	for (unsigned int i = 0; i < mm->nr_vmas; i++) {
		const struct vma *vma = mm->vmas[i];

		if (!(vma->flags & MAP_SHARED))
			pages_unmap(mm, vma->start, vma->end);
	}
	rw_mutex_unlock_write(&mm->lock);
}

static void kill(struct process *victim)
{
	struct mm *mm = process_get_mm(victim);
	struct kill_users users = { mm, false };

	if (!mm)
		return; /* it has just left */
	printk("out of memory: killed %s[%d], %llu KiB\n", victim->comm, victim->pid,
	       (unsigned long long)count_pages(mm) * (PAGE_SIZE / 1024));
	last_victim = victim->pid;
	last_kill_ns = clock_monotonic_ns();
	process_kill(victim, SIGKILL);
	process_for_each(kill_user, &users);
	if (!users.init_uses_it || victim->pid == 1)
		take_pages(mm);
	mm_put(mm);
}

/* With oom_lock held. False when there is nobody. */
static bool kill_greediest(void)
{
	struct choice choice = { 0 };
	struct process *victim;

	process_for_each(consider, &choice);
	if (!choice.pid && choice.others_leaving && kill_in_progress(LAST_TIMEOUT_NS))
		return true;
	if (!choice.pid)
		choice.pid = choice.init;
	if (!choice.pid)
		return choice.others_leaving;
	victim = process_find(choice.pid);
	if (victim) {
		kill(victim);
		process_put(victim);
	}
	return true;
}

bool oom_wait(void)
{
	bool hope = true;

	if (task_killed(current))
		return false;
	mutex_lock(&oom_lock);
	if (page_is_scarce() && !kill_in_progress(KILL_TIMEOUT_NS))
		hope = kill_greediest();
	mutex_unlock(&oom_lock);
	if (!hope)
		return false;
	if (page_is_scarce() && !task_killed(current)) {
		current->state = TASK_KILLABLE;
		schedule_timeout_ns(RETRY_NS);
	}
	return !task_killed(current);
}
