/* SPDX-License-Identifier: BSD-2-Clause */
/* Needed by samples, besides common.h. */
#define os_cycles_per_second()			  counter_hz()
#define os_irq_save()				  interrupts_off()
#define os_irq_restore(flags)			  interrupts_on(flags)
#define os_task_tid(task)			  ((u32)(task)->id)
#define os_task_idle(task)			  ((task)->is_idle)
#define os_task_comm(task, words)		  ((void)memcpy(words, (task)->program->title, 16))
#define os_symbol_lookup(addr, start, name, size) find_function(addr, name, size, start)
#define os_syscall_name(nr)			  call_name(nr)
#define os_regs_pc(regs)			  ((regs)->pc)
#define os_regs_sp(regs)			  ((regs)->sp)
#define os_regs_user(regs)			  ((long)(regs)->pc >= 0)
#define os_regs_irqs_off(regs)			  ((void)(regs), 0)
#define os_irq_depth()				  1u
#define OS_TICK_HZ				  100
