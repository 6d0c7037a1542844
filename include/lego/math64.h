/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_MATH64_H
#define LEGO_MATH64_H

#include <lego/types.h>

/*
 * Returns a * b / c with a 128-bit product, rounded down, or ~0 if the result does not fit 64 bits.
 * c must not be 0. Any context.
 */
u64 mul_div_u64(u64 a, u64 b, u64 c);

/* Returns a * b >> shift with a 128-bit product; shift < 64. */
static inline u64 mul_shift_u64(u64 a, u64 b, unsigned int shift)
{
	return (u64)(((unsigned __int128)a * b) >> shift);
}

#endif
