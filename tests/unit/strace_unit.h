/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_STRACE_UNIT_H
#define TESTS_STRACE_UNIT_H

/* What the tests of system call tables share: a process with a thread, and its snapshot. */

#include "unit.h"

static struct process proc;
static struct task task;
static struct strace_snapshot snap;

static inline void start_process(struct process *p, int pid)
{
	p->pid = pid;
	snprintf(p->comm, sizeof(p->comm), "p%d", pid);
	memset(&p->profile, 0xa5, sizeof(p->profile));
	profile_process_init(p);
}

static inline void start_task(struct task *t, struct process *p)
{
	memset(&t->profile, 0xa5, sizeof(t->profile));
	t->proc = p;
	profile_task_init(t);
}

/* In its own context, as the kernel does. */
static inline void exit_task(struct task *t)
{
	struct task *before = host_current;

	host_current = t;
	profile_task_exit(t);
	host_current = before;
}

static inline int setup(void **state)
{
	host_fail_alloc = 0;
	host_step = 0;
	host_now = 1000;
	host_off = 0;
	host_dying = false;
	host_nr_allocated = 0;
	if (!static_key_is_set(&strace_key))
		strace_control_init();
	start_process(&proc, 1);
	start_task(&task, &proc);
	host_current = &task;
	return 0;
}

static inline int teardown(void **state)
{
	host_fail_alloc = 0;
	exit_task(&task);
	profile_process_release(&proc);
	strace_reset();
	assert_int_equal(host_nr_allocated, 0);
	return 0;
}

/* The entry of nr in snap; all zero when there is none. */
static inline const struct strace_entry *find_entry(u64 nr)
{
	static const struct strace_entry none;

	for (u32 i = 0; i < snap.nr_entries; i++) {
		if (snap.entries[i].nr == nr)
			return &snap.entries[i];
	}
	return &none;
}

/* The same of a fresh snapshot of proc. */
static inline const struct strace_entry *entry_of(u64 nr)
{
	strace_snapshot_process(&proc.profile, &snap);
	return find_entry(nr);
}

#endif
