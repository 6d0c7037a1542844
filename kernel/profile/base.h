/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_BASE_H
#define PROFILE_BASE_H

/*
 * Helpers that need only a compiler, GCC or clang, and no kernel. Their names have a prefix,
 * because the kernel may have its own `min` or `likely`. They also work with gnu89, because hooks
 * are compiled with the flags of their callers.
 */

#if __SIZEOF_POINTER__ != 8 || __SIZEOF_LONG__ != 8
#error "profile: 32-bit kernels are not supported: pointers and longs must have 64 bits"
#endif

#define pf_likely(x)   __builtin_expect(!!(x), 1)
#define pf_unlikely(x) __builtin_expect(!!(x), 0)

#define pf_always_inline inline __attribute__((__always_inline__))
#define pf_noinline	 __attribute__((__noinline__))
#define pf_unused	 __attribute__((__unused__))
#define pf_used		 __attribute__((__used__))
/* The last member of a struct that may have no other: without it, C++ would make it a byte long. */
#define pf_may_be_empty	 char none[0]
#define pf_section(name) __attribute__((__section__(name)))
#define pf_aligned(n)	 __attribute__((__aligned__(n)))

/*
 * Keeps the compiler, not the CPU, from moving memory accesses across this line. For the order that
 * interrupts of this CPU see.
 */
#define pf_barrier() asm volatile("" ::: "memory")
/*
 * After the last call of a function: keeps the compiler from making that call a jump, which would
 * hide the function in call chains.
 */
#define pf_no_tail_call() asm volatile("")

/* One access that is not torn, repeated or dropped by the compiler. */
#define pf_read_once(x)	    (*(const volatile __typeof__(x) *)&(x))
#define pf_write_once(x, v) (*(volatile __typeof__(x) *)&(x) = (v))

#define pf_load_acquire(p)     __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define pf_store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define pf_mb()		       __atomic_thread_fence(__ATOMIC_SEQ_CST)

/*
 * The order that other CPUs see, as Linux's smp_wmb() and smp_rmb(): stores before this line come
 * before stores after it, and loads before loads. Each needs its partner on the other CPU. x86
 * keeps both orders by itself, so there they cost no instruction. Where the store or load beside
 * them is a plain one, pf_store_release() and pf_load_acquire() are shorter.
 */
#ifdef __x86_64__
#define pf_wmb() pf_barrier()
#define pf_rmb() pf_barrier()
#else
#define pf_wmb() __atomic_thread_fence(__ATOMIC_RELEASE)
#define pf_rmb() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#endif

/* Fully ordered; both return the old value. The value has 32 or 64 bits, or is a pf_flag_t. */
#define pf_xchg(p, v) __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST)
#define pf_cmpxchg(p, old, new)                                                                    \
	({                                                                                         \
		__typeof__(*(p)) _old = (old);                                                     \
		__atomic_compare_exchange_n(p, &_old, new, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
		_old;                                                                              \
	})

/* A bool for pf_xchg(). riscv64 exchanges no bytes, and compilers would call libgcc. */
#ifdef __riscv
typedef unsigned int pf_flag_t;
#else
typedef _Bool pf_flag_t;
#endif

#define pf_min(a, b)                               \
	({                                         \
		__typeof__(a) _min_a = (a);        \
		__typeof__(b) _min_b = (b);        \
		_min_a < _min_b ? _min_a : _min_b; \
	})
#define pf_max(a, b)                               \
	({                                         \
		__typeof__(a) _max_a = (a);        \
		__typeof__(b) _max_b = (b);        \
		_max_a > _max_b ? _max_a : _max_b; \
	})

/* Returns the base-2 logarithm of x, which is not 0, rounded down. */
static pf_always_inline unsigned int pf_log2_by_halves(unsigned long long x)
{
	unsigned int log2 = 0, bits;

	for (bits = 32; bits; bits /= 2) {
		if (x >> bits) {
			x >>= bits;
			log2 += bits;
		}
	}
	return log2;
}

/* The same. riscv64 without Zbb has no instruction for it, and compilers would call libgcc. */
#if defined(__riscv) && !defined(__riscv_zbb)
#define pf_floor_log2(x) pf_log2_by_halves(x)
#else
#define pf_floor_log2(x) (63u - (unsigned int)__builtin_clzll(x))
#endif

/* The base-2 logarithm of a time, rounded down, but at least `least`: see histogram.h. */
#define pf_log2(cycles, least) pf_floor_log2((cycles) | 1ull << (least))

/* 2^64 by the golden ratio: the upper bits of a product with it are a good hash. */
#define PF_HASH_FACTOR 0x9e3779b97f4a7c15ull

#define PF_ARRAY_SIZE(a)		 (sizeof(a) / sizeof((a)[0]))
#define PF_BIT(n)			 (1ULL << (n))
#define PF_BUILD_BUG_ON(cond)		 _Static_assert(!(cond), #cond)
#define pf_container_of(p, type, member) ((type *)((char *)(p) - __builtin_offsetof(type, member)))

/* Evaluates to 1 if an option is defined as 1, else to 0: for conditions in plain C. */
#define PF_IS_ENABLED(option)	       _PF_IS_ENABLED1(option)
#define _PF_IS_ENABLED1(value)	       _PF_IS_ENABLED2(_PF_IS_ENABLED_##value)
#define _PF_IS_ENABLED_1	       0,
#define _PF_IS_ENABLED2(arg_or_junk)   _PF_IS_ENABLED3(arg_or_junk 1, 0)
#define _PF_IS_ENABLED3(_, value, ...) value

#endif
