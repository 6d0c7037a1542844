/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PORT_OS_HOOKS_H
#define PORT_OS_HOOKS_H

/*
 * The hooks' half of the profiler's seam: types, the clock, CPUs, and the current task for the
 * hooks around a system call. The defaults fit the rest: per-CPU variables are arrays, keys are
 * variables, and calls are normal ones.
 */

#include "kernel.h"

typedef struct task os_task_t;
typedef struct process os_process_t;
typedef struct pt_regs os_regs_t;

#define PROFILE_PORT_API     1
#define OS_NR_CPUS	     NR_CPUS
#define os_cpu()	     (this_cpu->id)
#define os_cycles()	     battery_cycles()
#define os_current_profile() (&current->profile)
#define os_off_cycles(pt)    battery_time_off(&pf_container_of(pt, struct task, profile)->time)

#endif
