/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_OS_HOOKS_H
#define PROFILE_OS_HOOKS_H

/*
 * The interface to the kernel, part one: what the hooks in the rest of the kernel need. Part two is
 * os.h. The header of the task structure may include this one, by way of <profile/profile.h>, so it
 * must not need that structure. A kernel supplies these names in a header of its own, which
 * PROFILE_OS_HOOKS_HEADER names; what it leaves out gets the default given here:
 *
 *	u8, u16, u32, u64, s32, s64, bool, size_t, NULL		bool is _Bool
 *	os_task_t, os_process_t, os_regs_t			may be incomplete types
 *	os_siginfo_t						the same; only for events of signals
 *	os_area_t						the same; only for images
 *	PROFILE_PORT_API					1: see below
 *	OS_U64_IS_LONG						only if u64 is unsigned long:
 *								formats are checked then
 *
 * os_current_profile() and os_off_cycles() are macros that may use the task structure.
 * <profile/syscall.h> and profile_task_runs() expand them, so that structure is complete there.
 */

#include "base.h"

#ifndef PROFILE_OS_HOOKS_HEADER
#define PROFILE_OS_HOOKS_HEADER <lego/profile_os_hooks.h>
#endif
#include PROFILE_OS_HOOKS_HEADER

/*
 * The version of these contracts that your headers are written for. It changes when a name gets
 * another meaning; CHANGELOG.md says which.
 */
#ifndef PROFILE_PORT_API
/* If your header has it, was another os_hooks.h included? Put its directory before src/. */
#error "profile: define PROFILE_PORT_API 1: the version of the contracts that your headers meet"
#elif PROFILE_PORT_API != 1
#error "profile: the contracts have version 1: see CHANGELOG.md, then set PROFILE_PORT_API to 1"
#endif

#ifdef OS_U64_IS_LONG
#define pf_printf(f, a) __attribute__((__format__(__printf__, f, a)))
#else
#define pf_printf(f, a)
#endif

#ifndef os_siginfo_t
#define os_siginfo_t void
#endif

/*
 * CPUs and per-CPU variables. A kernel that has no such variables defines only OS_NR_CPUS and
 * os_cpu(), and they are arrays; without these, there is one CPU. One that has them defines the
 * first five names:
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
 */
#ifdef OS_DEFINE_PER_CPU
#ifndef OS_DECLARE_PER_CPU
#error "profile: define OS_DECLARE_PER_CPU(type, name): declares a per-CPU variable"
#endif
#ifndef os_per_cpu
#error "profile: define os_per_cpu(name, cpu): a CPU's copy of a per-CPU variable"
#endif
#ifndef os_this_cpu_ptr
#error "profile: define os_this_cpu_ptr(ptr): pointer to this CPU's copy"
#endif
#ifndef os_cpu
#error "profile: define os_cpu(): the number of this CPU"
#endif
#ifndef OS_PER_CPU
#define OS_PER_CPU(type) __typeof__(type)
#endif
#ifndef OS_EACH_CPU
#define OS_EACH_CPU(...) __VA_ARGS__
#endif
#ifndef os_local
#define os_local(name) (name)
#endif
#else
#ifndef OS_NR_CPUS
#ifdef os_cpu
#error "profile: define OS_NR_CPUS: the number of CPUs that os_cpu() counts"
#endif
#define OS_NR_CPUS 1
#define os_cpu()   0u
#endif
#ifndef os_cpu
#error "profile: define os_cpu(): the number of this CPU"
#endif
#define OS_PER_CPU(type)	       __typeof__(__typeof__(type)[OS_NR_CPUS])
#define OS_DEFINE_PER_CPU(type, name)  OS_PER_CPU(type) name
#define OS_DECLARE_PER_CPU(type, name) extern OS_PER_CPU(type) name
/* clang-format would take the range for Objective-C. */
#define OS_EACH_CPU_RANGE	       0 ... OS_NR_CPUS - 1
#define OS_EACH_CPU(...)                          \
	{                                         \
		[OS_EACH_CPU_RANGE] = __VA_ARGS__ \
	}
#define os_per_cpu(name, cpu) ((name)[cpu])
#define os_local(name)	      os_per_cpu(name, os_cpu())
#define os_this_cpu_ptr(ptr)  (ptr)
#endif

/*
 * Accesses to this CPU's copy. Each is one instruction, so no interrupt, NMI or migration tears it.
 * The defaults take several. Then hooks must run where the scheduler cannot move the thread to
 * another CPU, and an interrupt that hits a point must not have a point itself.
 */
#ifndef os_this_cpu_read
#define os_this_cpu_read(var) pf_read_once(*os_this_cpu_ptr(&(var)))
#endif
#ifndef os_this_cpu_write
#define os_this_cpu_write(var, value) pf_write_once(*os_this_cpu_ptr(&(var)), value)
#endif
#ifndef os_this_cpu_add
#define os_this_cpu_add(var, n) ((void)(*os_this_cpu_ptr(&(var)) += (n)))
#endif
#ifndef os_this_cpu_inc
#define os_this_cpu_inc(var) os_this_cpu_add(var, 1)
#endif
#ifndef os_this_cpu_plus
#define os_this_cpu_plus(var, value) (os_this_cpu_read(var) + (value))
#endif
#ifndef os_this_cpu_above
#define os_this_cpu_above(var, value) (os_this_cpu_read(var) > (value))
#endif
#ifndef os_this_cpu_below
#define os_this_cpu_below(var, value) (os_this_cpu_read(var) < (value))
#endif
#ifndef os_this_cpu_equal
#define os_this_cpu_equal(var, value) (os_this_cpu_read(var) == (value))
#endif
#ifndef os_this_cpu_lower
#define os_this_cpu_lower(var, value) \
	os_this_cpu_write(var, pf_min(os_this_cpu_read(var), (__typeof__(var))(value)))
#endif
#ifndef os_this_cpu_cmpxchg
#define os_this_cpu_cmpxchg(var, old, new) pf_cmpxchg(os_this_cpu_ptr(&(var)), old, new)
#endif
/* Returns true if v was *p and is `new` now; else stores v in *p. */
#ifndef os_this_cpu_try_cmpxchg
#define os_this_cpu_try_cmpxchg(var, old, new)                                              \
	__atomic_compare_exchange_n(os_this_cpu_ptr(&(var)), old, new, 0, __ATOMIC_SEQ_CST, \
				    __ATOMIC_SEQ_CST)
#endif

/*
 * A static key: a condition that rarely changes and costs a NOP while off. Set in process context.
 * os_keys_begin(), os_keys_add() for each and os_keys_commit() set several at once. By default,
 * keys are variables that are read each time.
 */
#ifndef os_key_on
typedef struct {
	_Bool on;
} os_key_t;
#define os_key_on(key) pf_read_once((key)->on)
#endif
#ifndef os_key_is_set
#define os_key_is_set(key) pf_read_once((key)->on)
#endif
#ifndef os_key_set
#define os_key_set(key, on_) pf_write_once((key)->on, on_)
#endif
#ifndef os_keys_begin
#define os_keys_begin() ((void)0)
#endif
#ifndef os_keys_add
#define os_keys_add(key, on) os_key_set(key, on)
#endif
#ifndef os_keys_commit
#define os_keys_commit() ((void)0)
#endif

/*
 * Keeps the number of a call chain with the mapping of a page, whose entry in the page table is
 * *entry. Optional: without it, it is not known what programs have unmapped.
 */
#ifndef os_keep_chain
#define os_keep_chain(entry, number) ((void)(entry), (void)(number))
#endif

/* Returns raw cycles, not ordered against other instructions. */
#ifndef os_cycles
#error "profile: define os_cycles(): the time of a clock that always runs, in cycles"
#endif
/* Stores both halves, of 32 bits each, in variables of type u64. */
#ifndef os_cycles_halves
#define os_cycles_halves(low, high)      \
	do {                             \
		u64 _both = os_cycles(); \
                                         \
		*(low) = (u32)_both;     \
		*(high) = _both >> 32;   \
	} while (0)
#endif
/* Returns when the system call that has just begun entered the kernel, in os_cycles(). */
#ifndef os_entry_cycles
#define os_entry_cycles() os_cycles()
#endif
/* Makes the call begin now. Its thread does not leave the CPU before it reads os_entry_cycles(). */
#ifndef os_entry_again
#define os_entry_again() ((void)0)
#endif

/*
 * The clock of points, in cycles. The CPU moves no instruction out of a section between two reads.
 * By default, it is os_cycles().
 */
#ifndef os_clock_begin
#define os_clock_begin() os_cycles()
#endif
#ifndef os_clock_end
#define os_clock_end() os_cycles()
#endif
/* A section of n dependent instructions, to measure the overhead of the clock. */
#ifndef OS_CLOCK_BODY
#define OS_CLOCK_BODY(n)                         \
	do {                                     \
		volatile unsigned int _i;        \
		for (_i = 0; _i < (n) / 4; _i++) \
			;                        \
	} while (0)
#endif

/* The current task's part of the profiler. */
#if !defined(os_current_profile) && \
	(defined(CONFIG_PROFILE_STRACE) || defined(CONFIG_PROFILE_POINTS))
#error "profile: define os_current_profile(): the struct profile_task of the running task"
#endif

/* Returns whether the current task is being killed, so its call returns nothing to a program. */
#ifndef os_current_dying
#define os_current_dying() 0
#endif

/*
 * Returns how long the thread has been off a CPU, in cycles, since any fixed moment before it was
 * created. Only schedule() changes it: it adds the time from when the thread left its CPU until it
 * was back. A kernel that cannot tell leaves it out; then tables have no CPU time.
 */
#ifdef os_off_cycles
#define OS_HAS_EXEC_CYCLES 1
#else
#ifdef CONFIG_PROFILE_WAITS
#error "profile: define os_off_cycles(pt): how long a thread has been off a CPU"
#endif
#define OS_HAS_EXEC_CYCLES 0
#define os_off_cycles(pt)  ((void)(pt), (u64)0)
#endif

/*
 * Adds to memory that only this CPU writes, in one instruction: interrupts and NMIs cannot tear it.
 * Other CPUs see the sum of one os_add() before that of the next; x86 keeps this order by itself.
 */
#ifndef os_add
#define os_add(var, n) pf_store_release(&(var), (var) + (n))
#endif

/*
 * Calls a function from a hook, hidden from the compiler. The function saves all registers
 * (os_saves_registers). If the compiler saw the call, it would assume that the call clobbers
 * registers, and the code around the hook would save them even while the hook is off. By default,
 * these are plain calls.
 */
#ifndef os_saves_registers
#define os_saves_registers
#endif
#ifndef os_call
#define os_call(fn) fn()
#endif
/* The same where the caller uses only its first argument yet: fn need not save registers. */
#ifndef os_call_at_entry
#define os_call_at_entry(fn) fn()
#endif
#ifndef os_call_1
#define os_call_1(fn, a) fn(a)
#endif
#ifndef os_call_with
#define os_call_with(fn, a, b, c, d) fn(a, b, c, d)
#endif

#endif
