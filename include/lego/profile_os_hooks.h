/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_PROFILE_OS_HOOKS_H
#define LEGO_PROFILE_OS_HOOKS_H

/* This kernel's answers to kernel/profile/os_hooks.h. */

#include <asm/point_clock.h>
#include <lego/cputime.h>
#include <lego/percpu.h>
#include <lego/static_key.h>
#include <lego/types.h>

struct pt_regs;
struct process;
struct siginfo;
struct task;
struct vma;

typedef struct task os_task_t;
typedef struct process os_process_t;
typedef struct pt_regs os_regs_t;
#define os_siginfo_t struct siginfo
typedef struct vma os_area_t;

#define OS_DEFINE_PER_CPU(type, name)	   DEFINE_PER_CPU(type, name)
#define OS_DECLARE_PER_CPU(type, name)	   DECLARE_PER_CPU(type, name)
#define os_per_cpu(name, cpu)		   per_cpu(name, cpu)
#define os_cpu()			   smp_processor_id()
#define os_this_cpu_ptr(ptr)		   this_cpu_ptr(ptr)
#define os_this_cpu_read(var)		   this_cpu_read(var)
#define os_this_cpu_write(var, value)	   this_cpu_write(var, value)
#define os_this_cpu_add(var, n)		   this_cpu_add(var, n)
#define os_this_cpu_inc(var)		   this_cpu_inc(var)
#define os_this_cpu_plus(var, value)	   this_cpu_plus(var, value)
#define os_this_cpu_above(var, value)	   this_cpu_above(var, value)
#define os_this_cpu_below(var, value)	   this_cpu_below(var, value)
#define os_this_cpu_equal(var, value)	   this_cpu_equal(var, value)
#define os_this_cpu_lower(var, value)	   this_cpu_lower(var, value)
#define os_this_cpu_cmpxchg(var, old, new) this_cpu_cmpxchg(var, old, new)
#define os_this_cpu_try_cmpxchg(v, p, new) this_cpu_try_cmpxchg(v, p, new)

typedef struct static_key os_key_t;
#define os_keep_chain(pte, number) (*(pte) |= pte_chain_bits(number))
#define os_key_on(key)		   static_key_on(key)
#define os_key_set(key, on)	   static_key_set(key, on)
#define os_key_is_set(key)	   static_key_is_set(key)
#define os_keys_begin()		   static_keys_begin()
#define os_keys_add(key, on)	   static_keys_add(key, on)
#define os_keys_commit()	   static_keys_commit()

#define os_clock_begin() point_clock_begin()
#define os_clock_end()	 point_clock_end()
#define OS_CLOCK_BODY(n) POINT_CLOCK_BODY(n)

#define os_add(var, n) point_add(var, n)

#define os_saves_registers	     __saves_registers
#define os_call_with(fn, a, b, c, d) point_call(fn, a, b, c, d)
#define os_call_1(fn, a)	     saving_call(fn, "D"(a))
#define os_call(fn)		     saving_call(fn)
#define os_call_at_entry(fn)	     entry_call(fn)

#define os_cycles()		    rdtsc()
#define os_cycles_halves(low, high) rdtsc_halves(low, high)

#define os_entry_cycles() \
	(IS_ENABLED(CONFIG_CPU_ACCOUNTING) ? this_cpu_read(cpu_account.entry_cycles) : rdtsc())

#define os_entry_again() cputime_begin_call()

#define os_area_is_code(area) ((area)->prot & PROT_EXEC)

#define os_current_profile() (&current->profile)
#define os_current_dying()   (task_killed(current) && !READ_ONCE(current->took_signal))

#define os_off_cycles(pt) READ_ONCE(container_of(pt, const struct task, profile)->off_cycles)

#define PROFILE_PORT_API 1
#define OS_U64_IS_LONG

#endif
