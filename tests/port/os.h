/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PORT_OS_H
#define PORT_OS_H

/*
 * The rest of the profiler's seam; kernel/profile/os.h has the contracts. This kernel has one CPU,
 * tasks that always run in the kernel, and a periodic tick. It has no files, workers and NMIs.
 * What is missing here comes from batteries.
 */

#include "task.h"

#include <batteries/stack.h>

/* Text. */
#define os_vprintk(fmt, args) vprintk(fmt, args)

/* Boot parameters are in a section. Without the alignment, there may be gaps in the array. */
#define OS_BOOT_PARAM(ident, name_, form, set_)                                             \
	static const struct boot_param boot_param_##ident pf_used pf_section("boot_params") \
		pf_aligned(8) = { name_, set_ }

/* The clock. */
#define os_cycles_per_second() cycles_per_second

/* Memory and locks. On one CPU, a lock only keeps interrupts off. */
#define os_memory_bytes()      (64ul << 20)
#define os_lock(lock)	       ((void)(lock), irq_save())
#define os_unlock(lock, flags) ((void)(lock), irq_restore(flags))
#define OS_LOCK_INIT	       0
typedef char os_lock_t;
#define os_panicking() panicking

/* Tasks and processes. */
#define os_current_task()	  current
#define os_task_profile(task)	  (&(task)->profile)
#define os_task_process(task)	  ((task)->proc)
#define os_task_tid(task)	  ((task)->tid)
#define os_task_pid(task)	  task_pid(task)
#define os_task_comm(task, words) ((void)memcpy(words, (task)->name, 16))
#define os_process_profile(proc)  (&(proc)->profile)
#define os_process_of(pp)	  pf_container_of(pp, struct process, profile)
#define os_process_pid(proc)	  ((proc)->pid)
#define os_process_name(proc)	  ((const char *)(proc)->name)
#define os_process_age_ns(proc)	  process_age_ns(proc) /* a process has no exit status */

/* strace. */
#define os_task_exec_cycles(pt) task_exec_cycles(pf_container_of(pt, struct task, profile))
#define os_syscall_name(nr)	syscall_name(nr)

/* Samples. The tick always interrupts the kernel, as there is no user mode. */
#define os_regs_pc(regs)	    ((regs)->rip)
#define os_regs_sp(regs)	    ((regs)->rsp)
#define os_regs_user(regs)	    ((void)(regs), false)
#define os_regs_irqs_off(regs)	    (!((regs)->rflags & FLAGS_INTERRUPTS))
#define os_irq_depth()		    1u
#define os_task_idle(task)	    (!(task)->proc)
#define os_task_syscall(task, regs) ((task)->syscall)
#define OS_NO_SYSCALL		    NO_SYSCALL
#define OS_TICK_HZ		    TICK_HZ

/* Call chains. The idle task's stack has no end of its own: frames end with a pointer of 0. */
static inline struct profile_stack_walk os_stack_walk(const os_regs_t *regs, u64 *pcs, u32 max)
{
	struct battery_stack stack = { regs->rip, regs->rbp, 0, regs->rsp,
				       regs->rsp + STACK_BYTES };

	return battery_stack_walk(&stack, pcs, max);
}
#define os_stack_walk os_stack_walk

#include <batteries/os.h>

#endif
