/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_OS_HOOKS_H
#define PROFILE_OS_HOOKS_H

/*
 * The interface to the kernel, part one: what the hooks in the rest of the kernel need. Part two is
 * os.h. The header of the task structure may include this one, by way of <lego/profile.h>, so it
 * must not need that structure. Another kernel supplies these names in a header of its own, which
 * PROFILE_OS_HOOKS_HEADER names:
 *
 *	u8, u16, u32, u64, s32, s64, bool, size_t, NULL		bool is _Bool
 *	os_task_t, os_process_t, os_regs_t			may be incomplete types
 *	os_siginfo_t						the same; only for events of signals
 *	os_area_t						the same; only for images
 *	os_cpu(), OS_NR_CPUS, OS_DEFINE_PER_CPU() and what follows it below
 *	os_key_t, os_key_on(&key), os_key_set(&key, on), os_key_is_set(&key)
 *	os_keys_begin(), os_keys_add(&key, on), os_keys_commit()	sets several at once
 *	os_clock_begin(), os_clock_end(), OS_CLOCK_BODY(n)
 *	os_add(var, n), os_call(fn), os_call_1(fn, a), os_call_with(fn, a, b, c, d),
 *	os_saves_registers
 *	OS_U64_IS_LONG						defined if u64 is unsigned long
 *	os_cycles(), os_entry_cycles(), os_cycles_halves(&low, &high), os_current_profile(),
 *	os_off_cycles(pt), OS_HAS_EXEC_CYCLES
 *
 * os_current_profile() and os_off_cycles() are macros that may use the task structure.
 * <lego/profile_syscall.h> expands them, so it is included where that structure is complete.
 *
 * Defaults for most of these are in os_none_hooks.h, which a kernel's header may include last.
 */

#include "base.h"

#ifdef PROFILE_OS_HOOKS_HEADER
#include PROFILE_OS_HOOKS_HEADER
#else

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
typedef struct siginfo os_siginfo_t;
typedef struct vma os_area_t;

/*
 * Per-CPU variables. A kernel that has none defines only OS_NR_CPUS and os_cpu(), and they are
 * arrays (os_none_hooks.h). One that has them defines the first five names:
 *
 *	OS_DEFINE_PER_CPU(type, name)	defines a variable, also a static one
 *	OS_DECLARE_PER_CPU(type, name)	declares it
 *	os_per_cpu(name, cpu)		the copy of a CPU
 *	os_cpu()			the number of this CPU: 0, 1, ...
 *	os_this_cpu_ptr(&var)		a pointer to this CPU's copy
 *	OS_EACH_CPU(value)		the initial value, of all copies
 *	OS_PER_CPU(type)		the type of such a variable, to point to it
 *	os_local(name)			this CPU's copy, for os_this_cpu_*(var): each `var` is
 *					os_local(name) or a member of it
 *
 * Each os_this_cpu_*() is one instruction: no interrupt, NMI or migration tears it.
 */
#define OS_PER_CPU(type)		   __typeof__(type)
#define OS_EACH_CPU(...)		   __VA_ARGS__
#define os_local(name)			   (name)
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
/* Returns true if v was *p and is `new` now; else stores v in *p. */
#define os_this_cpu_try_cmpxchg(v, p, new) this_cpu_try_cmpxchg(v, p, new)

/*
 * A static key: a condition that rarely changes and costs a NOP while off. Set in process context.
 */
typedef struct static_key os_key_t;
#define os_key_on(key)			   static_key_on(key)
#define os_key_set(key, on)		   static_key_set(key, on)
#define os_key_is_set(key)		   static_key_is_set(key)
#define os_keys_begin()			   static_keys_begin()
#define os_keys_add(key, on)		   static_keys_add(key, on)
#define os_keys_commit()		   static_keys_commit()

/*
 * The clock of points, in cycles. The CPU moves no instruction out of a section between two reads.
 */
#define os_clock_begin()		   point_clock_begin()
#define os_clock_end()			   point_clock_end()
/* A section of n dependent instructions, to measure the overhead of the clock. */
#define OS_CLOCK_BODY(n)		   POINT_CLOCK_BODY(n)

/*
 * Adds to memory that only this CPU writes, in one instruction: interrupts and NMIs cannot tear it.
 */
#define os_add(var, n)			   point_add(var, n)

/*
 * Calls a function from a hook, hidden from the compiler. The function saves all registers
 * (os_saves_registers). If the compiler saw the call, it would assume that the call clobbers
 * registers, and the code around the hook would save them even while the hook is off.
 */
#define os_saves_registers		   __saves_registers
#define os_call_with(fn, a, b, c, d)	   point_call(fn, a, b, c, d)
#define os_call_1(fn, a)		   saving_call(fn, "D"(a))
#define os_call(fn)			   saving_call(fn)

/* Returns raw cycles, not ordered against other instructions. */
#define os_cycles()			   rdtsc()
/* Stores both halves, of 32 bits each, in variables of type u64. */
#define os_cycles_halves(low, high)	   rdtsc_halves(low, high)

/* Returns when the system call that has just begun entered the kernel, in os_cycles(). */
#define os_entry_cycles() \
	(IS_ENABLED(CONFIG_CPU_ACCOUNTING) ? this_cpu_read(cpu_account.entry_cycles) : rdtsc())

/* Makes the call begin now. Its thread does not leave the CPU before it reads os_entry_cycles(). */
#define os_entry_again()     cputime_begin_call()

/* The current task's part of the profiler. */
#define os_current_profile() (&current->profile)

/*
 * Returns how long the thread has been off a CPU, in cycles, since any fixed moment. Only
 * schedule() changes it: it adds the time from when the thread left its CPU until it was back.
 * A kernel that cannot tell has OS_HAS_EXEC_CYCLES 0; then tables have no CPU time.
 */
#define OS_HAS_EXEC_CYCLES   1
#define os_off_cycles(pt)                                                          \
	({                                                                         \
		const struct task *_task = container_of(pt, struct task, profile); \
		_task->exec_start_cycles - _task->sum_exec_cycles;                 \
	})

/* u64 is unsigned long, which %lu prints, so the compiler can check formats. */
#define OS_U64_IS_LONG

#endif

#ifdef OS_U64_IS_LONG
#define pf_printf(f, a) __attribute__((__format__(__printf__, f, a)))
#else
#define pf_printf(f, a)
#endif

#endif
