/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_WAITS_OS_H
#define PROFILE_WAITS_OS_H

/* What waits need from the kernel besides ../os_stacks.h. */

#include "../os_stacks.h"

/*
 * Return what the task has slept for: a name that is never freed, or NULL; and an address in user
 * memory, or 0.
 */
#ifndef os_wait_name
#define os_wait_name(task) NULL
#endif
#ifndef os_wait_addr
#define os_wait_addr(task) ((u64)0)
#endif
/* Returns the TSC of the moment when a task was woken, for profile_wake(). */
#ifndef os_woken_cycles
#define os_woken_cycles(task) ((void)(task), os_cycles())
#endif
/* os_wait_name() of a thread that waits for a child process. */
#ifndef OS_CHILD_WAIT
#define OS_CHILD_WAIT ""
#endif
/* Returns whether a name is that of a wait until a thread or a process ends. */
#ifndef os_is_end_wait
#define os_is_end_wait(name) ((void)(name), false)
#endif

/* Returns the task that has a struct profile_task. */
#ifndef os_task_of
#error "profile: define os_task_of(pt): the task that has a struct profile_task"
#endif

/*
 * os_task_is_off_cpu() returns whether a task is off its CPU, and stores whether it sleeps. For
 * such a task, os_task_cpu(), os_sleeper_syscall() and os_sleeper_stack() return its CPU, its
 * system call, and the kernel's part of its call chain. The task may run again at any time, so
 * their results may be outdated.
 */
#ifndef os_task_cpu
#ifdef os_task_is_off_cpu
#error "profile: define os_task_cpu(task): CPU of a task that is off it"
#endif
#define os_task_cpu(task) ((void)(task), 0u)
#endif
#ifndef os_sleeper_syscall
#ifdef os_task_is_off_cpu
#error "profile: define os_sleeper_syscall(task): its system call, or OS_NO_SYSCALL"
#endif
#define os_sleeper_syscall(task) OS_NO_SYSCALL
#endif
#ifndef os_sleeper_stack
#ifdef os_task_is_off_cpu
#error "profile: define os_sleeper_stack(task, pcs, max): the kernel's part of its call chain"
#endif
#define os_sleeper_stack(task, pcs, max) ((void)(pcs), 0)
#endif
#ifndef os_task_is_off_cpu
#define os_task_is_off_cpu(task, asleep) ((void)(task), *(asleep) = false)
#endif

/* Returns whether the code at pc belongs to the scheduler. Reports leave it out of chains. */
#ifndef os_in_scheduler
#define os_in_scheduler(pc) ((void)(pc), false)
#endif
/* Returns whether the code at pc belongs to the kernel's sleeping locks. */
#ifndef os_in_lock
#define os_in_lock(pc) ((void)(pc), false)
#endif

/*
 * Signals that a process has got or, if proc is NULL, all processes since boot, by number and by
 * what became of them. The last kind is all real-time signals.
 */
#ifndef OS_NR_SIGNAL_KINDS
#ifdef os_read_signals
#error "profile: define OS_NR_SIGNAL_KINDS: number of kinds of signals"
#endif
#define OS_NR_SIGNAL_KINDS 1
#endif
#ifndef OS_NR_SIGNAL_FATES
#ifdef os_read_signals
#error "profile: define OS_NR_SIGNAL_FATES: number of things that a signal can lead to"
#endif
#define OS_NR_SIGNAL_FATES 1
#endif
#ifndef OS_SIGNAL_FATES
#ifdef os_read_signals
#error "profile: define OS_SIGNAL_FATES: their names"
#endif
#define OS_SIGNAL_FATES ""
#endif
#ifndef os_read_signals
struct os_signal_counts {
	u64 kinds[OS_NR_SIGNAL_KINDS], fates[OS_NR_SIGNAL_FATES];
};
#define os_read_signals(proc, counts) ((void)(proc), (void)memset(counts, 0, sizeof(*(counts))))
#endif

#endif
