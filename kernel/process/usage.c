// SPDX-License-Identifier: BSD-2-Clause
/*
 * getrusage and times: the CPU time of threads, of processes, and of children that were waited for.
 */

#include "usage.h"

#include "process.h"
#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/string.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

#define RUSAGE_SELF	0
#define RUSAGE_CHILDREN (-1)
#define RUSAGE_THREAD	1

struct tms {
	s64 user, system, children_user, children_system; /* clock ticks */
};

u64 process_exec_cycles_locked(struct process *proc)
{
	u64 events[NR_CPU_EVENTS];
	struct cputime time = process_cputime(proc, events);

	return cputime_own(&time);
}

u64 process_exec_cycles(struct process *proc)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	u64 cycles = process_exec_cycles_locked(proc);

	spin_unlock_irqrestore(&proc->lock, flags);
	return cycles;
}

static u64 most_pages(const struct process *proc)
{
	u64 now = proc->mm ? READ_ONCE(proc->mm->max_pages) : 0;

	ASSERT_HELD(&proc->lock);
	return max(proc->max_pages, now);
}

u64 process_max_pages(struct process *proc)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	u64 nr = most_pages(proc);

	spin_unlock_irqrestore(&proc->lock, flags);
	return nr;
}

void process_get_peak(struct process *proc, u64 bytes[NR_MM_KINDS])
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);

	if (most_pages(proc) > proc->max_pages)
		mm_get_peak(proc->mm, bytes);
	else
		memcpy(bytes, proc->peak_of_kind, sizeof(proc->peak_of_kind));
	spin_unlock_irqrestore(&proc->lock, flags);
#pragma GCC unroll 8
	for (enum mm_kind kind = 0; kind < NR_MM_KINDS; kind++)
		bytes[kind] *= PAGE_SIZE;
}

static void set_events(struct usage *usage, const u64 events[NR_CPU_EVENTS])
{
	usage->nr_faults = events[CPU_FAULTS];
	usage->nr_voluntary = events[CPU_VOLUNTARY];
	usage->nr_involuntary = events[CPU_INVOLUNTARY];
}

static void get_own(struct process *proc, struct usage *usage)
{
	u64 events[NR_CPU_EVENTS];

	process_cpu_times(proc, &usage->times, events);
	set_events(usage, events);
	usage->max_pages = process_max_pages(proc);
}

static void get_thread(struct task *task, struct usage *usage)
{
	struct process *proc = task->proc;
	u64 events[NR_CPU_EVENTS] = { 0 };
	unsigned long flags;

	task_add_events(task, events);
	set_events(usage, events);
	flags = spin_lock_irqsave(&proc->lock);
	task_cpu_times(task, &usage->times);
	usage->max_pages = most_pages(proc);
	spin_unlock_irqrestore(&proc->lock, flags);
}

static void get_children(struct process *proc, struct usage *usage)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);

	usage->times.user_ns = proc->children_user_ns;
	usage->times.system_ns = proc->children_system_ns;
	usage->nr_faults = proc->children_faults;
	usage->nr_voluntary = proc->children_voluntary;
	usage->nr_involuntary = proc->children_involuntary;
	usage->max_pages = proc->children_max_pages;
	usage->io = proc->summed_io;
	spin_unlock_irqrestore(&proc->lock, flags);
}

void usage_of_process(struct process *proc, struct usage *usage)
{
	struct usage children;

	get_own(proc, usage);
	get_children(proc, &children);
	usage->times.user_ns += children.times.user_ns;
	usage->times.system_ns += children.times.system_ns;
	usage->nr_faults += children.nr_faults;
	usage->nr_voluntary += children.nr_voluntary;
	usage->nr_involuntary += children.nr_involuntary;
	usage->max_pages = max(usage->max_pages, children.max_pages);
	usage->io = children.io;
}

void usage_add_child(struct process *parent, const struct usage *child)
{
	unsigned long flags = spin_lock_irqsave(&parent->lock);

	parent->children_user_ns += child->times.user_ns;
	parent->children_system_ns += child->times.system_ns;
	parent->children_faults += child->nr_faults;
	parent->children_voluntary += child->nr_voluntary;
	parent->children_involuntary += child->nr_involuntary;
	parent->children_max_pages = max(parent->children_max_pages, child->max_pages);
	io_counts_add(&parent->summed_io, &child->io);
	spin_unlock_irqrestore(&parent->lock, flags);
}

static struct timeval64 to_timeval(u64 ns)
{
	return (struct timeval64){
		.sec = (s64)(ns / NSEC_PER_SEC),
		.usec = (s64)(ns % NSEC_PER_SEC / NSEC_PER_USEC),
	};
}

int usage_copy_to_user(struct rusage __user *user, const struct usage *usage)
{
	struct rusage copy = {
		.user = to_timeval(usage->times.user_ns),
		.system = to_timeval(usage->times.system_ns),
		.maxrss = (s64)(usage->max_pages * (PAGE_SIZE / 1024)),
		.minflt = (s64)usage->nr_faults,
		.nvcsw = (s64)usage->nr_voluntary,
		.nivcsw = (s64)usage->nr_involuntary,
	};

	return copy_to_user(user, &copy, sizeof(copy));
}

SYSCALL_DEFINE2(getrusage, int, who, struct rusage __user *, user)
{
	struct usage usage;

	switch (who) {
	case RUSAGE_SELF:
		get_own(current->proc, &usage);
		break;
	case RUSAGE_CHILDREN:
		get_children(current->proc, &usage);
		break;
	case RUSAGE_THREAD:
		get_thread(current, &usage);
		break;
	default:
		return -EINVAL;
	}
	return usage_copy_to_user(user, &usage);
}

SYSCALL_DEFINE1(times, struct tms __user *, user)
{
	struct usage own, children;
	struct tms tms;

	get_own(current->proc, &own);
	get_children(current->proc, &children);
	tms = (struct tms){
		.user = (s64)(own.times.user_ns / NSEC_PER_TICK),
		.system = (s64)(own.times.system_ns / NSEC_PER_TICK),
		.children_user = (s64)(children.times.user_ns / NSEC_PER_TICK),
		.children_system = (s64)(children.times.system_ns / NSEC_PER_TICK),
	};
	if (user && copy_to_user(user, &tms, sizeof(tms)))
		return -EFAULT;
	return (long)(clock_monotonic_ns() / NSEC_PER_TICK);
}
