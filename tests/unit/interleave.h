/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_INTERLEAVE_H
#define TESTS_INTERLEAVE_H

/*
 * Runs up to three threads of a test in all interleavings with a bounded number of preemptions, one
 * after the other and always in the same order. Threads may be interrupts of another one. The code
 * under test is the kernel's own: the compiler reports each access to memory (-fsanitize=thread,
 * whose runtime interleave.c replaces), and this header, included before all others, redefines the
 * ordering primitives. An access to memory that il_share() has named is a step: another thread may
 * run before it.
 *
 * Stores go to a buffer of their CPU, as on x86: other CPUs see them later, in order. A full
 * barrier and a locked instruction empty the buffer. What the compiler may do is modelled, too: a
 * plain store and any other store may change places, unless a barrier or a release is between
 * them; and a pf_read_once() may be made before the plain loads before it, unless a barrier is
 * between them. Otherwise loads keep their order, as on x86. Functions of the C library are not
 * seen, except for memcpy() and memset(), which take a few steps.
 *
 * Any of the primitives, a site, can be broken: then it orders nothing. Tests show in this way that
 * they would find a missing barrier.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#undef __always_inline
#include <lego/string.h>

#include "../../kernel/profile/base.h"

struct il_site {
	const char *kind, *function; /* the primitive, or the variable that it changes */
	int line;
};

void il_full_barrier(const struct il_site *site);
void il_barrier(const struct il_site *site);
void il_locked(const struct il_site *site); /* before a cmpxchg or xchg */
void *il_copy(void *dst, const void *src, size_t bytes);
void *il_fill(void *dst, int byte, size_t bytes);
void il_relax(void); /* in a loop that waits for another thread */

#define IL_SITE(fn, kind)                                                         \
	({                                                                        \
		static const struct il_site _site = { kind, __func__, __LINE__ }; \
		fn(&_site);                                                       \
	})

#undef pf_read_once
#undef pf_write_once
#undef pf_load_acquire
#undef pf_store_release
#undef pf_mb
#undef pf_barrier
#undef pf_wmb
#undef pf_rmb
#undef pf_xchg
#undef pf_cmpxchg
#define pf_read_once(x)	    __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define pf_write_once(x, v) __atomic_store_n(&(x), v, __ATOMIC_RELAXED)
#define pf_load_acquire(p)  __atomic_load_n(p, __ATOMIC_RELAXED)
#define pf_store_release(p, v) \
	(IL_SITE(il_barrier, "pf_store_release"), __atomic_store_n(p, v, __ATOMIC_RELAXED))
#define pf_mb()	      IL_SITE(il_full_barrier, "pf_mb")
#define pf_barrier()  IL_SITE(il_barrier, "pf_barrier")
#define pf_wmb()      IL_SITE(il_barrier, "pf_wmb")
#define pf_rmb()      IL_SITE(il_barrier, "pf_rmb")
#define pf_xchg(p, v) (IL_SITE(il_locked, #p), __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST))
#define IL_CMPXCHG(p, old, new, order)                                       \
	({                                                                   \
		__typeof__(*(p)) _old = (old);                               \
		__atomic_compare_exchange_n(p, &_old, new, 0, order, order); \
		_old;                                                        \
	})
#define pf_cmpxchg(p, old, new) (IL_SITE(il_locked, #p), IL_CMPXCHG(p, old, new, __ATOMIC_SEQ_CST))

/* Relaxed: one instruction without a lock prefix, which interrupts cannot tear. */
#define IL_THIS_CPU(var)	  os_per_cpu(var, os_cpu())
#define os_this_cpu_read(var)	  pf_read_once(IL_THIS_CPU(var))
#define os_this_cpu_write(var, v) pf_write_once(IL_THIS_CPU(var), v)
#define os_this_cpu_add(var, n)	  os_add(IL_THIS_CPU(var), n)
#define os_this_cpu_inc(var)	  os_this_cpu_add(var, 1)
#define os_this_cpu_plus(var, v)  (os_this_cpu_read(var) + (v))
#define os_this_cpu_above(var, v) (os_this_cpu_read(var) > (v))
#define os_this_cpu_below(var, v) (os_this_cpu_read(var) < (v))
#define os_this_cpu_equal(var, v) (os_this_cpu_read(var) == (v))
#define os_this_cpu_lower(var, v) os_this_cpu_write(var, pf_min(os_this_cpu_read(var), (v)))
#define os_this_cpu_cmpxchg(var, o, n) \
	(IL_SITE(il_locked, #var), IL_CMPXCHG(&IL_THIS_CPU(var), o, n, __ATOMIC_RELAXED))
#define os_this_cpu_try_cmpxchg(var, old, new)                                         \
	(IL_SITE(il_locked, #var),                                                     \
	 __atomic_compare_exchange_n(&IL_THIS_CPU(var), old, new, 0, __ATOMIC_RELAXED, \
				     __ATOMIC_RELAXED))
#define os_add(var, n) ((void)__atomic_fetch_add(&(var), n, __ATOMIC_RELAXED))
#define os_cpu_relax() il_relax()

#undef memcpy
#undef memset
#define memcpy(dst, ...)     il_copy(dst, __VA_ARGS__) /* a literal may have commas */
#define memset(dst, byte, n) il_fill(dst, byte, n)

#define IL_MAX_THREADS 3

struct il_test {
	const char *name;
	void (*set_up)(void); /* before the first run; calls il_share() and il_keep() */
	struct {
		void (*run)(void); /* NULL: no more threads */
		unsigned int cpu;  /* that of an earlier thread: this one is its interrupt */
	} threads[IL_MAX_THREADS];
	void (*check)(void); /* after each run; NULL: nothing */
	unsigned int nr_preemptions;
	/*
	 * After all interleavings have passed, each site that was met is broken, one after the
	 * other. Each must make a run fail, except for those listed here as " function:kind ": x86
	 * keeps the order there without help, or nothing depends on it. NULL: none is broken.
	 */
	const char *unneeded;
};

/*
 * The tests of a program, up to one without a name. interleave.c has main(). With IL_VERBOSE=1 in
 * the environment, it prints the numbers of runs and the failures.
 */
extern const struct il_test il_tests[];

/*
 * Called by set_up(): il_share() makes memory known that threads share. Each run begins with its
 * content, and with that of the memory that il_keep() names.
 */
void il_share(void *addr, size_t bytes);
void il_keep(void *addr, size_t bytes);

/* Fails this run if ok is false. In threads and in check(). */
#define il_check(ok) il_check_(ok, __FILE__, __LINE__, #ok)
void il_check_(bool ok, const char *file, int line, const char *what);

/*
 * For interleave_tsan.c. A plain store is reported before it is made. A change reads and writes in
 * one step: il_middle_of_change() lets others run only if its site is broken. What follows a change
 * in the program depends on its result, so it is not seen before it.
 */
#define IL_UNSEEN __attribute__((__no_sanitize__("thread")))
enum il_kind {
	IL_PLAIN,
	IL_ONCE,
	IL_CHANGE
};
void il_before_load(const volatile void *addr);
void il_before_store(void *addr, unsigned long bytes);
u64 il_atomic_load(const volatile void *addr, unsigned int bytes);
void il_atomic_store(volatile void *addr, u64 value, unsigned int bytes, enum il_kind kind);
void il_begin_change(volatile void *addr, int order);
void il_middle_of_change(volatile void *addr);
void il_end_change(volatile void *addr, int order);

#endif
