// SPDX-License-Identifier: BSD-2-Clause
/*
 * The runtime of -fsanitize=thread for interleave.c: the compiler calls these functions before each
 * access to memory, or instead of it if it is an atomic one. Their names and types are fixed.
 */
#include "unit.h"

#define unseen IL_UNSEEN

#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wbuiltin-declaration-mismatch"
unseen void __tsan_init(void)
{
}

unseen void __tsan_func_entry(void *pc)
{
}

unseen void __tsan_func_exit(void)
{
}

unseen void __tsan_read_range(void *addr, unsigned long bytes)
{
	il_before_load(addr);
}

unseen void __tsan_write_range(void *addr, unsigned long bytes)
{
	il_before_store(addr, bytes);
}

#define DEFINE_PLAIN(bytes)                                   \
	unseen void __tsan_read##bytes(void *addr)            \
	{                                                     \
		il_before_load(addr);                         \
	}                                                     \
	unseen void __tsan_write##bytes(void *addr)           \
	{                                                     \
		il_before_store(addr, bytes);                 \
	}                                                     \
	unseen void __tsan_unaligned_read##bytes(void *addr)  \
	{                                                     \
		il_before_load(addr);                         \
	}                                                     \
	unseen void __tsan_unaligned_write##bytes(void *addr) \
	{                                                     \
		il_before_store(addr, bytes);                 \
	}

DEFINE_PLAIN(1)
DEFINE_PLAIN(2)
DEFINE_PLAIN(4)
DEFINE_PLAIN(8)
DEFINE_PLAIN(16)

#define DEFINE_ATOMIC(bits)                                                                      \
	unseen u##bits __tsan_atomic##bits##_load(const volatile u##bits *p, int order)          \
	{                                                                                        \
		return il_atomic_load(p, sizeof(*p));                                            \
	}                                                                                        \
	unseen void __tsan_atomic##bits##_store(volatile u##bits *p, u##bits v, int order)       \
	{                                                                                        \
		il_atomic_store(p, v, sizeof(v), IL_ONCE);                                       \
	}                                                                                        \
	unseen u##bits __tsan_atomic##bits##_exchange(volatile u##bits *p, u##bits v, int order) \
	{                                                                                        \
		u##bits old;                                                                     \
                                                                                                 \
		il_begin_change(p, order);                                                       \
		old = *p;                                                                        \
		il_middle_of_change(p);                                                          \
		il_atomic_store(p, v, sizeof(v), IL_CHANGE);                                     \
		il_end_change(p, order);                                                         \
		return old;                                                                      \
	}                                                                                        \
	unseen int __tsan_atomic##bits##_compare_exchange_strong(                                \
		volatile u##bits *p, u##bits *expected, u##bits v, int order, int fail_order)    \
	{                                                                                        \
		u##bits old;                                                                     \
		int same;                                                                        \
                                                                                                 \
		il_begin_change(p, order);                                                       \
		old = *p;                                                                        \
		same = old == *expected;                                                         \
		il_middle_of_change(p);                                                          \
		if (same)                                                                        \
			il_atomic_store(p, v, sizeof(v), IL_CHANGE);                             \
		else                                                                             \
			*expected = old;                                                         \
		il_end_change(p, order);                                                         \
		return same;                                                                     \
	}

#define DEFINE_FETCH(bits, name, op)                                                      \
	unseen u##bits __tsan_atomic##bits##_fetch_##name(volatile u##bits *p, u##bits v, \
							  int order)                      \
	{                                                                                 \
		u##bits old;                                                              \
                                                                                          \
		il_begin_change(p, order);                                                \
		old = *p;                                                                 \
		il_atomic_store(p, old op v, sizeof(v), IL_CHANGE);                       \
		il_end_change(p, order);                                                  \
		return old;                                                               \
	}

DEFINE_ATOMIC(8)
DEFINE_ATOMIC(16)
DEFINE_ATOMIC(32)
DEFINE_ATOMIC(64)
DEFINE_FETCH(32, add, +)
DEFINE_FETCH(32, sub, -)
DEFINE_FETCH(64, add, +)
