/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_OS_STACKS_H
#define PROFILE_OS_STACKS_H

/*
 * Samples, waits and events need two things more from the kernel than os.h has: what an interrupt
 * has hit, and call chains. os.h explains how a kernel supplies such names.
 */

#include "os.h"

/* Describe what a timer interrupt has hit. os_irq_depth() counts that interrupt, too. */
#ifndef os_regs_pc
#if defined(CONFIG_PROFILE_HEATMAP) || defined(CONFIG_PROFILE_TRACE)
#error "profile: define os_regs_pc(regs): the interrupted instruction"
#endif
#endif
#ifndef os_regs_sp
#ifdef CONFIG_PROFILE_HEATMAP
#error "profile: define os_regs_sp(regs): the interrupted stack pointer"
#endif
#endif
#ifndef os_regs_user
#ifdef CONFIG_PROFILE_HEATMAP
#error "profile: define os_regs_user(regs): whether it is user code"
#endif
#endif
#ifndef os_irq_depth
#ifdef CONFIG_PROFILE_HEATMAP
#error "profile: define os_irq_depth(): depth of interrupts, with this one"
#endif
#endif
/* The same for any interrupt. Any context, NMI included, with interrupts off. */
#ifndef os_regs_irqs_off
#ifdef CONFIG_PROFILE_HEATMAP
#error "profile: define os_regs_irqs_off(regs): whether interrupts were off there"
#endif
#endif

/*
 * Returns the number of the system call that the current task is in, or OS_NO_SYSCALL. The task has
 * a user mode, and regs are not those of user mode. Both are below 65536: of a larger number, such
 * as -1, the upper bits would spoil the sample.
 */
#ifndef os_task_syscall
#define os_task_syscall(task, regs) OS_NO_SYSCALL
#endif
#ifndef OS_NO_SYSCALL
#define OS_NO_SYSCALL 0xffff
#endif
/* Returns the key of a task, which changes with its name: see profile_task_changed(). */
#ifndef os_task_key
#define os_task_key(task) (os_task_profile(task)->samples.key)
#endif
/*
 * Returns the key_floor of the process with this number; ~0: there is none, or its report has been
 * printed. Without it, records of processes that have ended keep their numbers. Process context.
 */
#ifndef os_live_key_floor
#define os_live_key_floor(pid) ((void)(pid), 0ul)
#endif
/* Return the number of the code map of a task's or process's address space; 0: none is known. */
#ifndef os_task_code_map
#ifdef CONFIG_PROFILE_IMAGES
#error "profile: define os_task_code_map(task): profile_code_map() of a task's address space"
#endif
#define os_task_code_map(task) ((void)(task), 0u)
#endif
#ifndef os_process_code_map
#ifdef CONFIG_PROFILE_IMAGES
#error "profile: define os_process_code_map(proc): that of a process's address space"
#endif
#define os_process_code_map(proc) ((void)(proc), 0u)
#endif

/*
 * Call chains: see <profile/stack_walk.h>. Only with CONFIG_PROFILE_CALLCHAIN. os_stack_walk_init()
 * is called once, in process context; os_stack_matches_*() and os_user_regs() only if walks are
 * replayable.
 */
#ifndef os_stack_walk
#ifdef CONFIG_PROFILE_CALLCHAIN
#error "profile: define os_stack_walk(regs, pcs, max): walks a stack: <profile/stack_walk.h>"
#endif
#define os_stack_walk(regs, pcs, max) ((struct profile_stack_walk){ 0 })
#endif
#ifndef os_stack_walk_init
#define os_stack_walk_init() ((void)0)
#endif
/* Fills in registers for a stack walk that begins in the caller of the calling function. */
#ifndef os_regs_here
#if defined(CONFIG_PROFILE_WAITS) || \
	(defined(CONFIG_PROFILE_TRACE) && defined(CONFIG_PROFILE_CALLCHAIN))
#error "profile: define os_regs_here(regs): registers for a walk that begins in the caller"
#endif
#endif
/* Returns the registers with which the task entered the kernel from user mode. */
#ifndef os_user_regs
#define os_user_regs(task) NULL
#endif
/* Return whether a stack is that of a replayable walk: the kernel's part. */
#ifndef os_stack_matches_kernel
#define os_stack_matches_kernel(regs, pcs, nr) 0
#endif
/* The kernel's part of the current task, with registers by os_regs_here(). */
#ifndef os_stack_matches_here
#define os_stack_matches_here(task, regs, pcs, nr) os_stack_matches_kernel(regs, pcs, nr)
#endif
/* Compares the innermost nr addresses of any walk. regs: by os_regs_here(). */
#ifndef os_stack_matches_callers
#define os_stack_matches_callers(regs, pcs, nr) ((void)(regs), 0)
#endif
#ifndef os_stack_matches_frameless
#define os_stack_matches_frameless(regs, pcs, nr, replay) 0
#endif
/* The user's part, and why it ends. */
#ifndef os_stack_matches_user
#define os_stack_matches_user(regs, pcs, nr, end) \
	((void)(regs), (void)(pcs), (end) == PROFILE_STACK_WHOLE)
#endif
/* The same of a PROFILE_STACK_PATH. */
#ifndef os_stack_matches_path
#define os_stack_matches_path(regs, pcs, nr, end) ((void)(regs), (void)(pcs), false)
#endif

#endif
