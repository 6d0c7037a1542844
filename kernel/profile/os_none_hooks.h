/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_OS_NONE_HOOKS_H
#define PROFILE_OS_NONE_HOOKS_H

/*
 * Defaults for os_hooks.h, for names that the including header has not defined. Keys are variables
 * that are read each time. Per-CPU accesses take several instructions. So hooks must run where the
 * scheduler cannot move the thread to another CPU, and an interrupt that hits a point must not have
 * a point itself.
 */

/* One CPU, if the kernel has no per-CPU variables. */
#ifndef os_per_cpu
#define OS_DEFINE_PER_CPU(type, name)  __typeof__(type) name
#define OS_DECLARE_PER_CPU(type, name) extern __typeof__(type) name
#define os_per_cpu(name, cpu)	       (*((void)(cpu), &(name)))
#define os_cpu()		       0u
#define os_this_cpu_ptr(ptr)	       (ptr)
#endif

#ifndef os_this_cpu_read
#define os_this_cpu_read(var)	      pf_read_once(os_per_cpu(var, os_cpu()))
#define os_this_cpu_write(var, value) pf_write_once(os_per_cpu(var, os_cpu()), value)
#define os_this_cpu_add(var, n)	      ((void)(os_per_cpu(var, os_cpu()) += (n)))
#define os_this_cpu_inc(var)	      os_this_cpu_add(var, 1)
#define os_this_cpu_plus(var, value)  (os_this_cpu_read(var) + (value))
#define os_this_cpu_above(var, value) (os_this_cpu_read(var) > (value))
#define os_this_cpu_below(var, value) (os_this_cpu_read(var) < (value))
#define os_this_cpu_equal(var, value) (os_this_cpu_read(var) == (value))
#define os_this_cpu_lower(var, value) \
	os_this_cpu_write(var, pf_min(os_this_cpu_read(var), (__typeof__(var))(value)))
#define os_this_cpu_cmpxchg(var, old, new) pf_cmpxchg(&os_per_cpu(var, os_cpu()), old, new)
#define os_this_cpu_try_cmpxchg(var, old, new)                                                 \
	__atomic_compare_exchange_n(&os_per_cpu(var, os_cpu()), old, new, 0, __ATOMIC_SEQ_CST, \
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
#define os_keys_begin()	     ((void)0)
#define os_keys_add(key, on) os_key_set(key, on)
#define os_keys_commit()     ((void)0)
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
#define os_clock_end()	 os_cycles()
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
#define os_entry_again()  ((void)0)
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
#ifndef os_call
#define os_saves_registers
#define os_call(fn)		     fn()
#define os_call_1(fn, a)	     fn(a)
#define os_call_with(fn, a, b, c, d) fn(a, b, c, d)
#endif

#endif
