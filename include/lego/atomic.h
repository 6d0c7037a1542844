/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_ATOMIC_H
#define LEGO_ATOMIC_H

/* Read-modify-write operations are fully ordered; atomic_read and atomic_set order nothing. */

#include <lego/kernel.h>

typedef struct {
	int counter;
} atomic_t;

#define ATOMIC_INIT(v) \
	{              \
		(v)    \
	}

static inline int atomic_read(const atomic_t *v)
{
	return READ_ONCE(v->counter);
}

static inline void atomic_set(atomic_t *v, int i)
{
	WRITE_ONCE(v->counter, i);
}

/* Return the new value. */
static inline int atomic_add_return(atomic_t *v, int i)
{
	return __atomic_add_fetch(&v->counter, i, __ATOMIC_SEQ_CST);
}

static inline void atomic_inc(atomic_t *v)
{
	atomic_add_return(v, 1);
}

static inline void atomic_dec(atomic_t *v)
{
	atomic_add_return(v, -1);
}

/* Returns true if the new value is zero. */
static inline bool atomic_dec_and_test(atomic_t *v)
{
	return atomic_add_return(v, -1) == 0;
}

/* Work on any integer or pointer object; cmpxchg and xchg return the old value. */
#define xchg(ptr, val) __atomic_exchange_n(ptr, val, __ATOMIC_SEQ_CST)
#define cmpxchg(ptr, old, new)                                                        \
	({                                                                            \
		__typeof__(*(ptr)) _old = (old);                                      \
		__atomic_compare_exchange_n(ptr, &_old, new, false, __ATOMIC_SEQ_CST, \
					    __ATOMIC_SEQ_CST);                        \
		_old;                                                                 \
	})
#define atomic_or_bits(ptr, bits)  __atomic_fetch_or(ptr, bits, __ATOMIC_SEQ_CST)
#define atomic_and_bits(ptr, bits) __atomic_fetch_and(ptr, bits, __ATOMIC_SEQ_CST)
#define smp_mb()		   __atomic_thread_fence(__ATOMIC_SEQ_CST)

#endif
