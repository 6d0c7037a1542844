/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PORT_OS_H
#define PORT_OS_H

/*
 * The rest of the profiler's seam; kernel/profile/os.h has the contracts. This kernel has CPUs,
 * tasks that always run in the kernel, and a periodic tick. It has no files, workers and NMIs.
 * What is missing here comes from batteries; contracts about registers are in arch.h.
 */

#include "task.h"

#include <batteries/console.h>

/* Text. */
#define os_vprintk(fmt, args) \
	battery_console_vprintf(console_put, os_cycles_to_ns(os_cycles()), panicking, fmt, args)

/* The clock. */
#define os_cycles_per_second() cycles_per_second

/* CPUs. */
#define os_cpu_online(cpu) ((cpu) < pf_load_acquire(&nr_cpus_up))
#define os_panicking()	   panicking

/* Tasks and processes. */
#define os_current_task()	  current
#define os_task_profile(task)	  (&(task)->profile)
#define os_task_process(task)	  ((task)->proc)
#define os_task_idle(task)	  (!(task)->proc)
#define os_task_tid(task)	  ((task)->tid)
#define os_task_comm(task, words) ((void)memcpy(words, (task)->name, 16))
#define os_process_profile(proc)  (&(proc)->profile)
#define os_process_of(pp)	  pf_container_of(pp, struct process, profile)
#define os_process_pid(proc)	  ((proc)->pid)
#define os_process_name(proc)	  ((proc)->name)
/* A process has no exit status. */
#define os_process_age_ns(proc) os_cycles_to_ns(os_cycles() - (proc)->start_cycles)

/* strace. */
#define os_task_exec_cycles(pt) battery_time_on(&os_task_of(pt)->time, os_cycles())
#define os_syscall_name(nr)	((nr) < NR_SYSCALLS ? syscall_names[nr] : NULL)

/* Samples. The tick always interrupts the kernel, as there is no user mode. */
#define os_regs_user(regs)	    ((void)(regs), false)
#define os_irq_depth()		    (this_cpu->irq_depth)
#define os_task_syscall(task, regs) ((task)->syscall)
#define OS_NO_SYSCALL		    NO_SYSCALL
#define OS_TICK_HZ		    TICK_HZ

/* Call chains. The idle task's stack has no end of its own: frames end with a pointer of 0. */
#define os_stack_end(regs) (os_regs_sp(regs) + STACK_BYTES)

/* Waits and events. */
#define os_task_of(pt)	       pf_container_of(pt, struct task, profile)
#define os_wait_name(task)     ((task)->sleeps_for ?: "start")
#define os_in_scheduler(pc)    ((pc) >= (u64)scheduler_begin && (pc) < (u64)scheduler_end)
#define os_task_state(task)    (!(task)->is_awake)
#define os_task_priority(task) ((void)(task), 120)
#define os_syscall_args(words) \
	((void)memset(words, 0, 6 * sizeof(u64)), (words)[0] = current->arg, true)
#define os_signal_code(info) ((void)(info), 0)

/* Exports. No program of this kernel could forge one. */
#define os_physical_address(ptr) ((u64)(ptr))
#define os_random()		 os_cycles()

#include <batteries/os.h>

#endif
