/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_OS_NONE_HOOKS_H
#define PROFILE_OS_NONE_HOOKS_H

/*
 * Defaults for os_hooks.h, for names that the including header has not defined. Keys are variables
 * that are read each time. Per-CPU accesses take several instructions. So hooks must run where the
 * scheduler cannot move the thread to another CPU, and an interrupt that hits a point must not have
 * a point itself.
 */

#ifndef os_cycles
#error "profile: define os_cycles(): the time of a clock that always runs, in cycles"
#endif
#if defined(CONFIG_PROFILE_STRACE) && !defined(os_current_profile)
#error "profile: define os_current_profile(): the struct profile_task of the running task"
#endif
#if defined(CONFIG_PROFILE_WAITS) && !defined(os_off_cycles)
#error "profile: define os_off_cycles(pt): how long a thread has been off a CPU"
#endif
#if defined(os_cpu) && !defined(OS_DEFINE_PER_CPU) && !defined(OS_NR_CPUS)
#error "profile: define OS_NR_CPUS: the number of CPUs that os_cpu() counts"
#endif
#if defined(OS_NR_CPUS) && !defined(os_cpu)
#error "profile: define os_cpu(): the number of this CPU"
#endif
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
#endif

/* Per-CPU variables: arrays, if the kernel has none itself. The default is one CPU. */
#ifndef OS_DEFINE_PER_CPU
#ifndef OS_NR_CPUS
#define OS_NR_CPUS 1
#define os_cpu()   0u
#endif
#define OS_PER_CPU(type)	       __typeof__(__typeof__(type)[OS_NR_CPUS])
#define OS_DEFINE_PER_CPU(type, name)  OS_PER_CPU(type) name
#define OS_DECLARE_PER_CPU(type, name) extern OS_PER_CPU(type) name
/* clang-format would take the range for Objective-C. */
#define OS_EACH_CPU_RANGE 0 ... OS_NR_CPUS - 1
#define OS_EACH_CPU(...)                          \
	{                                         \
		[OS_EACH_CPU_RANGE] = __VA_ARGS__ \
	}
#define os_per_cpu(name, cpu) ((name)[cpu])
#define os_local(name)	      os_per_cpu(name, os_cpu())
#define os_this_cpu_ptr(ptr)  (ptr)
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
#ifndef os_this_cpu_try_cmpxchg
#define os_this_cpu_try_cmpxchg(var, old, new)                                              \
	__atomic_compare_exchange_n(os_this_cpu_ptr(&(var)), old, new, 0, __ATOMIC_SEQ_CST, \
				    __ATOMIC_SEQ_CST)
#endif

/* Keys that are read, not patched. */
#ifndef os_key_on
typedef struct {
	_Bool on;
} os_key_t;
#define os_key_on(key)	     pf_read_once((key)->on)
#define os_key_is_set(key)   pf_read_once((key)->on)
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

#ifndef os_cycles_halves
#define os_cycles_halves(low, high)      \
	do {                             \
		u64 _both = os_cycles(); \
                                         \
		*(low) = (u32)_both;     \
		*(high) = _both >> 32;   \
	} while (0)
#endif

/* The clock is os_cycles(), unordered. */
#ifndef os_clock_begin
#define os_clock_begin() os_cycles()
#endif
#ifndef os_clock_end
#define os_clock_end() os_cycles()
#endif
#ifndef OS_CLOCK_BODY
#define OS_CLOCK_BODY(n)                         \
	do {                                     \
		volatile unsigned int _i;        \
		for (_i = 0; _i < (n) / 4; _i++) \
			;                        \
	} while (0)
#endif

/* Nothing is known of a signal. */
#ifndef os_siginfo_t
#define os_siginfo_t void
#endif

#ifndef os_entry_cycles
#define os_entry_cycles() os_cycles()
#endif
#ifndef os_entry_again
#define os_entry_again() ((void)0)
#endif

/* It is not known when a thread was off a CPU. */
#ifdef os_off_cycles
#define OS_HAS_EXEC_CYCLES 1
#else
#define OS_HAS_EXEC_CYCLES 0
#define os_off_cycles(pt)  ((void)(pt), (u64)0)
#endif

/* Plain additions and plain calls. */
#ifndef os_add
#define os_add(var, n) ((void)((var) += (n)))
#endif
#ifndef os_saves_registers
#define os_saves_registers
#endif
#ifndef os_call
#define os_call(fn) fn()
#endif
#ifndef os_call_1
#define os_call_1(fn, a) fn(a)
#endif
#ifndef os_call_with
#define os_call_with(fn, a, b, c, d) fn(a, b, c, d)
#endif

#endif
