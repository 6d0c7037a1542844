/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PORT_BROKEN_OS_HOOKS_H
#define PORT_BROKEN_OS_HOOKS_H

/* The glue of the kernel beside this folder, with contracts that a boot parameter breaks. */

#include "../os_hooks.h"

/* Returns whether break=<contract> is on the command line. */
bool breaks(const char *contract);

/* There is a second CPU, which never runs. */
#undef OS_NR_CPUS
#define OS_NR_CPUS 2
#undef os_cpu
#define os_cpu() 0u

#undef os_off_cycles
#define os_off_cycles(pt)                                                                      \
	(breaks("off") ? -battery_time_off(&pf_container_of(pt, struct task, profile)->time) : \
	 breaks("runs") && (pt) != &current->profile ?                                         \
			 0 :                                                                   \
			 battery_time_off(&pf_container_of(pt, struct task, profile)->time))
extern struct task broken_task;
#undef os_current_profile
#define os_current_profile() (breaks("current") ? &broken_task.profile : &current->profile)
#undef os_cycles
#define os_cycles() \
	(breaks("clock") ? 1000 : breaks("backwards") ? ~battery_cycles() : battery_cycles())

#endif
