/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_COMPILER_H
#define LEGO_COMPILER_H

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define __packed	__attribute__((packed))
#define __aligned(n)	__attribute__((aligned(n)))
#define __section(s)	__attribute__((section(s)))
#define __used		__attribute__((used))
#define __maybe_unused	__attribute__((unused))
#define __noreturn	__attribute__((noreturn))
#define __printf(f, a)	__attribute__((format(printf, f, a)))
#define __must_check	__attribute__((warn_unused_result))
#define __always_inline inline __attribute__((always_inline))
#define noinline	__attribute__((noinline))
#define fallthrough	__attribute__((fallthrough))

/*
 * Sections (kernel.lds.S) that keep a CPU's writes from slowing down other CPUs' reads.
 * __cacheline_aligned: the object is written often, and has cache lines of its own. __read_mostly:
 * the object is read often, and stands among others that are seldom written.
 */
#define __cacheline_aligned __aligned(64) __section(".data..cacheline_aligned")
#define __read_mostly	    __section(".data..read_mostly")

/* A function that the profiler of functions cannot patch: see scripts/function_places.py. */
#define notrace __attribute__((patchable_function_entry(0)))

/* Marks a pointer into user memory: only the functions of <lego/uaccess.h> may follow it. */
#define __user

/* Keeps the compiler, not the CPU, from moving memory accesses across this line. */
#define barrier() asm volatile("" ::: "memory")

/* One untorn access the compiler may neither repeat nor drop. */
#define READ_ONCE(x)	 (*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))

#define smp_load_acquire(p)	__atomic_load_n(p, __ATOMIC_ACQUIRE)
#define smp_store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)

#endif
