/* SPDX-License-Identifier: BSD-2-Clause */
/* Needed by every profiler. */
#include "thread.h"

#define os_vprintk(fmt, args)		   klogv(fmt, args)
#define os_vsnprintf(buf, size, fmt, args) formatv(buf, size, fmt, args)
#define os_cycles_to_ns(cycles)		   counter_to_ns(cycles)
#define os_zalloc(size)			   heap_get(size)
#define os_free(ptr)			   heap_put(ptr)
typedef struct lock os_lock_t;
#define OS_LOCK_INIT		 LOCK_INIT
#define os_lock(lock)		 lock_take(lock)
#define os_unlock(lock, flags)	 lock_drop(lock, flags)
#define os_current_task()	 this_thread()
#define os_task_profile(task)	 (&(task)->profile)
#define os_task_process(task)	 ((task)->program)
#define os_process_profile(proc) (&(proc)->profile)
#define os_process_of(pp)	 pf_container_of(pp, struct program, profile)
#define os_process_pid(proc)	 ((proc)->id)
#define os_process_name(proc)	 ((const char *)(proc)->title)
