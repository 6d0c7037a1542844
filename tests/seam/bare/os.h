/* SPDX-License-Identifier: BSD-2-Clause */
/* Glue, part two: a block for each level of porting.md. */
#ifndef BARE_OS_H
#define BARE_OS_H
#include "task.h"
#include <batteries/console.h>
#define os_vprintk(fmt, args) \
	battery_console_vprintf(put_char, os_cycles_to_ns(os_cycles()), false, fmt, args)
#define os_cycles_per_second()	 clock_rate()
#define os_current_task()	 this_task()
#define os_task_profile(task)	 (&(task)->profile)
#define os_task_process(task)	 ((task)->process)
#define os_process_profile(proc) (&(proc)->profile)
#define os_process_of(pp)	 pf_container_of(pp, struct process, profile)
#define os_process_pid(proc)	 ((proc)->pid)
#define os_process_name(proc)	 ((const char *)(proc)->name)
#define os_syscall_name(nr)	 call_name(nr)
#ifdef CONFIG_PROFILE_HEATMAP
#define OS_TICK_HZ		  TICKS_PER_SEC
#define os_irq_depth()		  interrupt_depth()
#define os_regs_pc(regs)	  ((regs)->pc)
#define os_regs_sp(regs)	  ((regs)->sp)
#define os_regs_user(regs)	  ((regs)->from_user)
#define os_regs_irqs_off(regs)	  ((regs)->interrupts_off)
#define os_task_tid(task)	  ((task)->tid)
#define os_task_idle(task)	  (!(task)->process)
#define os_task_comm(task, words) ((void)memcpy(words, (task)->name, 16))
#endif
#ifdef CONFIG_PROFILE_CALLCHAIN
#define os_regs_fp(regs)   ((regs)->fp)
#define os_regs_link(regs) ((regs)->ra)
#define os_stack_end(regs) (((regs)->sp | (STACK_BYTES - 1)) + 1)
#endif
#ifdef CONFIG_PROFILE_WAITS
#define os_task_exec_cycles(pt) battery_time_on(&os_task_of(pt)->time, os_cycles())
#define os_task_of(pt)		pf_container_of(pt, struct task, profile)
#define os_wait_name(task)	((void)(task), "channel")
#endif
#ifdef CONFIG_PROFILE_TRACE
#define os_task_state(task)    ((task)->wait_channel ? 1 : 0)
#define os_task_priority(task) ((void)(task), 120)
#define os_syscall_args(words) (memcpy(words, this_task()->args, 48), true)
#define os_signal_code(info)   ((void)(info), 0)
#endif
#ifdef CONFIG_PROFILE_EXPORT
#define os_physical_address(ptr) ((u64)(ptr))
#define os_random()		 os_cycles()
#endif
#include <batteries/os.h>
#endif
