/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_PERCPU_H
#define ASM_PERCPU_H

/* %gs holds the offset from a variable in the image to this CPU's copy (see <lego/percpu.h>). */

#include <lego/types.h>

#define this_cpu_read(var)                                                \
	({                                                                \
		__typeof__(var) _read;                                    \
		asm volatile("mov %%gs:%1, %0" : "=r"(_read) : "m"(var)); \
		_read;                                                    \
	})

#define this_cpu_write(var, value)                                         \
	do {                                                               \
		__typeof__(var) _write = (value);                          \
		asm volatile("mov %1, %%gs:%0" : "=m"(var) : "r"(_write)); \
	} while (0)

/* Adds to memory in one instruction; a constant needs no register. */
#define this_cpu_add(var, value)                                                               \
	do {                                                                                   \
		__typeof__(var) _add = (value);                                                \
		_Static_assert(sizeof(var) == 4 || sizeof(var) == 8, "u32 or u64");            \
		if (sizeof(var) == 8)                                                          \
			asm volatile("addq %1, %%gs:%0" : "+m"(var) : "er"((u64)_add) : "cc"); \
		else                                                                           \
			asm volatile("addl %1, %%gs:%0" : "+m"(var) : "ir"((u32)_add) : "cc"); \
	} while (0)

/* Returns value + this CPU's var, in one add from memory. */
#define this_cpu_plus(var, value)                                               \
	({                                                                      \
		__typeof__(var) _sum = (value);                                 \
		asm volatile("add %%gs:%1, %0" : "+r"(_sum) : "m"(var) : "cc"); \
		_sum;                                                           \
	})

#define this_cpu_inc(var) this_cpu_add(var, 1)

/*
 * Compare this CPU's var with value, unsigned, in one compare with memory: equal, above or below.
 */
#define this_cpu_equal(var, value)                                                      \
	({                                                                              \
		bool _equal;                                                            \
		__typeof__(var) _to = (value);                                          \
		asm volatile("cmp %2, %%gs:%1" : "=@ccz"(_equal) : "m"(var), "r"(_to)); \
		_equal;                                                                 \
	})
#define this_cpu_above(var, value)                                                        \
	({                                                                                \
		bool _above;                                                              \
		__typeof__(var) _than = (value);                                          \
		asm volatile("cmp %2, %%gs:%1" : "=@cca"(_above) : "m"(var), "r"(_than)); \
		_above;                                                                   \
	})
#define this_cpu_below(var, value)                                                        \
	({                                                                                \
		bool _below;                                                              \
		__typeof__(var) _than = (value);                                          \
		asm volatile("cmp %2, %%gs:%1" : "=@ccb"(_below) : "m"(var), "r"(_than)); \
		_below;                                                                   \
	})

/* Returns whether a variable of 32 bits is at least a constant. */
#define this_cpu_at_least(var, constant)                                                    \
	({                                                                                  \
		bool _is;                                                                   \
		asm volatile("cmpl %2, %%gs:%1" : "=@ccae"(_is) : "m"(var), "i"(constant)); \
		_is;                                                                        \
	})

/*
 * Compares and exchanges without a lock prefix: atomic only against interrupts and NMIs of this
 * CPU. Returns the old value.
 */
#define this_cpu_cmpxchg(var, old, new)                                                          \
	({                                                                                       \
		__typeof__(var) _seen = (old), _new = (new);                                     \
		asm volatile("cmpxchg %2, %%gs:%1" : "+a"(_seen), "+m"(var) : "r"(_new) : "cc"); \
		_seen;                                                                           \
	})

/*
 * The same, but returns whether var was *(old) and is now new. If it was not, stores its value in
 * *(old).
 */
#define this_cpu_try_cmpxchg(var, old, new)                            \
	({                                                             \
		bool _done;                                            \
		__typeof__(var) _new = (new);                          \
		asm volatile("cmpxchg %3, %%gs:%2"                     \
			     : "=@ccz"(_done), "+a"(*(old)), "+m"(var) \
			     : "r"(_new));                             \
		_done;                                                 \
	})

/* Lowers var to value if var is higher. Atomic against interrupts and NMIs of this CPU. */
#define this_cpu_lower(var, value)                                                        \
	do {                                                                              \
		__typeof__(var) _was = this_cpu_read(var), _saw, _low = (value);          \
		while (_was > _low && (_saw = this_cpu_cmpxchg(var, _was, _low)) != _was) \
			_was = _saw;                                                      \
	} while (0)

#endif
