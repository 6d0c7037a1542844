/* SPDX-License-Identifier: BSD-2-Clause */
/* Glue, part two: all that points and strace need. */
#ifndef HOST_OS_H
#define HOST_OS_H

#include "task.h"

#include <stdio.h>
#include <stdlib.h>

#define os_vprintk(fmt, args)		   vprintf(fmt, args)
#define os_vsnprintf(buf, size, fmt, args) vsnprintf(buf, size, fmt, args)
#define os_cycles_to_ns(cycles)		   (cycles)
#define os_zalloc(size)			   calloc(1, size)
#define os_free(ptr)			   free(ptr)

/* One thread, and no interrupts: nothing to lock. */
typedef char os_lock_t;
#define OS_LOCK_INIT	       0
#define os_lock(lock)	       ((void)(lock), 0ul)
#define os_unlock(lock, flags) ((void)(lock), (void)(flags))

#define os_current_task()	 current
#define os_task_profile(task)	 (&(task)->profile)
#define os_task_process(task)	 ((task)->process)
#define os_process_profile(proc) (&(proc)->profile)
#define os_process_of(pp)	 pf_container_of(pp, struct process, profile)
#define os_process_pid(proc)	 ((proc)->pid)
#define os_process_name(proc)	 ((proc)->name)

#define os_syscall_name(nr) ((nr) == CALL_SUM ? "sys_sum" : "sys_fail")

#endif
