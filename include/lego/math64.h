/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_MATH64_H
#define LEGO_MATH64_H

#include <lego/types.h>

/*
 * a * b / c with a 128-bit product, rounded down; plain C, any context. Saturates at ~0 when the
 * quotient does not fit 64 bits. c must not be 0.
 */
u64 mul_div_u64(u64 a, u64 b, u64 c);

/* a * b >> shift with a 128-bit product, shift < 64. */
static inline u64 mul_shift_u64(u64 a, u64 b, unsigned int shift)
{
	return (u64)(((unsigned __int128)a * b) >> shift);
}

#endif
