/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_OS_H
#define PROFILE_OS_H

/*
 * The seam: everything this folder needs from a kernel. Another kernel, or a unit test,
 * supplies the same names in a header of its own, named by PROFILE_OS_HEADER.
 *
 * Besides the names below: u8..u64, bool, NULL, size_t; READ_ONCE, WRITE_ONCE, xchg, barrier,
 * smp_mb, smp_load_acquire, smp_store_release, cpu_relax, likely, unlikely, container_of, min,
 * max, IS_ENABLED, __used, __section, __aligned, __maybe_unused, __always_inline, noinline;
 * memset, memcpy, strcmp, strlen, strscpy; -EINVAL; DEFINE_PER_CPU, per_cpu, this_cpu_ptr and
 * this_cpu_read, write, add, inc, above, below, lower, raise, for_each_possible_cpu,
 * smp_processor_id, smp_left_cpu; struct static_key, static_key_on, static_key_set,
 * static_key_is_set; point_clock_begin, point_clock_end; printk (any context, one call is one
 * line), snprintf; sort, mul_div_u64, parse_u64, glob_match_list, BOOT_PARAM.
 */

#ifdef PROFILE_OS_HEADER
#include PROFILE_OS_HEADER
#else

#include <lego/atomic.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/fs.h>
#include <lego/irq.h>
#include <lego/kallsyms.h>
#include <lego/math64.h>
#include <lego/params.h>
#include <lego/percpu.h>
#include <lego/printk.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/smp.h>
#include <lego/sort.h>
#include <lego/spinlock.h>
#include <lego/string.h>
#include <lego/syscall.h>
#include <lego/sysrq.h>
#include <lego/time.h>
#include <lego/worker.h>

/* Tasks and processes, as the hooks get them. */
#define os_current_profile()	 (&current->profile)
#define os_current_dying()	 task_interrupted(current)
#define os_task_profile(task)	 (&(task)->profile)
#define os_task_process(task)	 ((task)->proc)
#define os_process_profile(proc) (&(proc)->profile)
#define os_process_of(pp)	 container_of(pp, struct process, profile)
#define os_process_pid(proc)	 ((proc)->pid)
#define os_process_name(proc)	 ((const char *)(proc)->comm)

#define os_cpu_online(cpu)			  cpu_online(cpu)

/* What the timer interrupt hit. os_irq_depth() counts that interrupt itself. */
#define os_regs_pc(regs)			  instruction_pointer(regs)
#define os_regs_user(regs)			  user_mode(regs)
#define os_in_idle_task()			  (current == sched_idle_task(smp_processor_id()))
#define os_irq_depth()				  this_cpu_read(irq_depth)
#define os_tick_hz()				  CONFIG_HZ

/* Raw cycles, not ordered against other instructions; and to nanoseconds, rounded to nearest. */
#define os_cycles()				  rdtsc()
#define os_cycles_to_ns(cycles)			  cycles_to_ns(cycles)

/* Make point_clock_begin() and _end() unordered, while no point is on. Process context. */
#define os_drop_fences()			  point_clock_drop_fences()

/* CPU time of the current task, in cycles. Process context. */
static inline u64 os_oncpu_cycles(void)
{
	return current->sum_exec_cycles + rdtsc() - current->exec_start_cycles;
}

/* Memory: any context but NMI, locks held, never sleeps; zeroed; NULL when there is none. */
#define os_zalloc(size)				  kzalloc(size)
#define os_free(ptr)				  kfree(ptr)

typedef spinlock_t os_lock_t;
#define OS_LOCK_INIT				  SPINLOCK_INIT
#define os_lock(lock)				  spin_lock_irqsave(lock)
#define os_unlock(lock, flags)			  spin_unlock_irqrestore(lock, flags)

/* In a loop that waits for another thread: process context, no lock held. */
static inline void os_wait_turn(void)
{
	cpu_relax();
	cond_resched();
}

/* The kernel is dying: other CPUs are stopped, locks mean nothing. */
#define os_panicking()				  panic_in_progress()

/* Names live for ever. NULL when there is none. *start: the address of the function. */
#define os_syscall_name(nr)			  syscall_name(nr)
#define os_symbol_lookup(addr, start)		  kallsyms_lookup(addr, start, NULL)

/*
 * Controls: a text file (<lego/fs.h>), a key of the sysrq, and a thread that calls a function when
 * it is woken. All are optional: a kernel without them makes them empty.
 */
#define os_add_file(directory, name, read, write) fs_add_text_file(directory, name, read, write)
#define OS_SYSRQ_KEY(ident, letter, help, run)	  SYSRQ_KEY(ident, letter, help, run)
#define OS_WORKER(ident, fn)			  struct worker ident = WORKER_INIT(ident, fn)
#define os_worker_start(worker, name)		  worker_start(worker, name)
#define os_worker_wake(worker)			  worker_wake(worker)

#endif
#endif
