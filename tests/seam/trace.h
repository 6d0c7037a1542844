/* SPDX-License-Identifier: BSD-2-Clause */
/* Needed by events, besides common.h. */
#define os_regs_pc(regs)			  ((regs)->pc)
#define os_task_state(task)			  ((void)(task), 0)
#define os_task_tid(task)			  ((u32)(task)->id)
#define os_task_priority(task)			  ((void)(task), 120)
#define os_syscall_args(args)			  (memcpy(args, this_thread()->registers, 48), true)
#define os_signal_code(info)			  ((void)(info), 0)
#define os_symbol_lookup(addr, start, name, size) find_function(addr, name, size, start)
#ifndef CONFIG_PROFILE_HEATMAP /* samples.h has it */
#define os_task_idle(task) ((task)->is_idle)
#endif
