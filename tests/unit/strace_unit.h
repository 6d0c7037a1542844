/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_STRACE_UNIT_H
#define TESTS_STRACE_UNIT_H

/*
 * Shared by the tests of system call tables: a process with a thread, its snapshot, a child, and
 * calls of all kinds.
 */

#include "unit.h"

static struct process proc;
static struct task task;
static struct strace_snapshot snap;
static struct process child;
static struct task child_task;

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

/* Ends a task in its own context, as the kernel does. */
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
	host_off = 500;
	host_dying = false;
	host_nr_allocated = 0;
	if (!os_key_is_set(&profile_strace_key))
		profile_init();
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

/* Returns the entry of nr in snap, all zero if there is none. */
static inline const struct strace_entry *find_entry(u64 nr)
{
	static const struct strace_entry none;

	for (u32 i = 0; i < snap.nr_entries; i++) {
		if (snap.entries[i].nr == nr)
			return &snap.entries[i];
	}
	return &none;
}

/* Returns the number of calls in snap. */
static inline u64 all_calls(void)
{
	u64 sum = 0;

	for (u32 i = 0; i < snap.nr_entries; i++)
		sum += snap.entries[i].nr_calls;
	return sum;
}

/* Takes a snapshot of proc and returns the entry of nr. */
static inline const struct strace_entry *entry_of(u64 nr)
{
	strace_snapshot_process(&proc.profile, &snap);
	return find_entry(nr);
}

static inline void start(struct process *p, int pid, struct task *t)
{
	start_process(p, pid);
	start_task(t, p);
}

static inline void expect(u64 nr, u64 nr_calls, u64 nr_errors, u64 ns, u64 nr_in_flight)
{
	const struct strace_entry *entry = entry_of(nr);

	assert_int_equal(entry->nr_calls, nr_calls);
	assert_int_equal(entry->nr_errors, nr_errors);
	assert_int_equal(entry->ns, ns);
	assert_int_equal(entry->nr_in_flight, nr_in_flight);
}

static inline u64 nr_errors_of(u64 nr, u32 error)
{
	const struct strace_entry *entry = entry_of(nr);

	for (u32 i = 0; i < entry->nr_error_kinds; i++) {
		const struct strace_error_entry *slot = &snap.errors[entry->first_error + i];

		if (slot->error == error)
			return slot->nr;
	}
	return 0;
}

static inline void sleep_for(u64 cycles)
{
	host_now += cycles;
	host_off += cycles;
}

static inline void interrupt_call(u64 nr, u64 cycles)
{
	profile_syscall_enter(nr);
	host_now += cycles;
	profile_syscall_exit(-512);
}

static inline void wait_for_child(void)
{
	host_current = &task;
	exit_task(&child_task);
	child.profile.has_ended = true;
	profile_process_waited(&child);
	profile_process_release(&child);
}

#endif
