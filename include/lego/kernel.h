/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_KERNEL_H
#define LEGO_KERNEL_H

/* For every file: types, compiler attributes and small arithmetic. */

#include <lego/compiler.h>
#include <lego/types.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#define min(a, b)                                  \
	({                                         \
		__typeof__(a) _min_a = (a);        \
		__typeof__(b) _min_b = (b);        \
		_min_a < _min_b ? _min_a : _min_b; \
	})
#define max(a, b)                                  \
	({                                         \
		__typeof__(a) _max_a = (a);        \
		__typeof__(b) _max_b = (b);        \
		_max_a > _max_b ? _max_a : _max_b; \
	})

/* Powers of two only. */
#define ALIGN_DOWN(x, a) ((x) & ~((__typeof__(x))(a)-1))
#define ALIGN_UP(x, a)	 ALIGN_DOWN((x) + (__typeof__(x))(a)-1, a)
#define IS_ALIGNED(x, a) (((x) & ((__typeof__(x))(a)-1)) == 0)

#define DIV_ROUND_UP(n, d) (((n) + (d)-1) / (d))

#define BIT(n) (1ULL << (n))

#define BUILD_BUG_ON(cond) _Static_assert(!(cond), #cond)

/* 1 when the bool option is set, 0 when not; usable in plain C conditions. */
#define IS_ENABLED(option)	    _IS_ENABLED1(option)
#define _IS_ENABLED1(value)	    _IS_ENABLED2(_IS_ENABLED_##value)
#define _IS_ENABLED_1		    0,
#define _IS_ENABLED2(arg_or_junk)   _IS_ENABLED3(arg_or_junk 1, 0)
#define _IS_ENABLED3(_, value, ...) value

#endif
