/* SPDX-License-Identifier: BSD-2-Clause */
/* Glue, part two: a block for each level of porting.md. */
#ifndef BARE_OS_H
#define BARE_OS_H
#include "task.h"
#define os_vprintk(fmt, args)	 put_line(fmt, args)
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
#include <batteries/stack.h>
static inline struct profile_stack_walk os_stack_walk(const os_regs_t *regs, u64 *pcs, u32 max)
{
	struct battery_stack stack = { regs->pc, regs->fp, regs->ra, regs->sp, 0 };

	stack.high = (regs->sp | (STACK_BYTES - 1)) + 1;
	if (regs->from_user)
		return battery_stack_user(regs->pc, pcs);
	return battery_stack_walk(&stack, pcs, max);
}
#define os_stack_walk os_stack_walk
#define os_regs_here(regs)                                    \
	do {                                                  \
		memset(regs, 0, sizeof(*(regs)));             \
		battery_caller(&(regs)->pc, &(regs)->fp);     \
		(regs)->sp = (u64)__builtin_frame_address(0); \
	} while (0)
#endif
#ifdef CONFIG_PROFILE_WAITS
static inline u64 os_task_exec_cycles(const struct profile_task *pt)
{
	const struct task *task = pf_container_of(pt, struct task, profile);

	return task->ran + (task == this_task() ? os_cycles() - task->on_since : 0);
}
#define os_task_exec_cycles os_task_exec_cycles
#define os_task_of(pt)	    pf_container_of(pt, struct task, profile)
#define os_wait_name(task)  ((void)(task), "channel")
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
