/* SPDX-License-Identifier: BSD-2-Clause */
/* The hooks' half of the seam (os_hooks.h), for each profiler alone and for all of them. */
#include "kernel.h"
#define PROFILE_PORT_API 1
typedef struct thread os_task_t;
typedef struct program os_process_t;
typedef struct trap_frame os_regs_t;
typedef struct area os_area_t;
#define os_cycles()	     read_counter()
#define os_current_profile() (&this_thread()->profile)
#define os_off_cycles(pt)    time_off(pf_container_of(pt, struct thread, profile))
