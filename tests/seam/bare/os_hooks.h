/* SPDX-License-Identifier: BSD-2-Clause */
/* Glue, part one, for a kernel that has nothing: batteries do the rest. */
#ifndef BARE_OS_HOOKS_H
#define BARE_OS_HOOKS_H
#include "kernel.h"
#include <batteries/cpu.h>
#define PROFILE_PORT_API 1
typedef struct task os_task_t;
typedef struct process os_process_t;
typedef struct trap_frame os_regs_t;
#define OS_NR_CPUS	     MAX_CPUS
#define os_cpu()	     cpu_number()
#define os_cycles()	     battery_cycles()
#define os_current_profile() (&this_task()->profile)
#ifdef CONFIG_PROFILE_WAITS
#define os_off_cycles(pt) battery_time_off(&pf_container_of(pt, struct task, profile)->time)
#endif
#endif
