/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_MATH64_H
#define LEGO_MATH64_H

#include <lego/types.h>

/*
 * Returns a * b / c with a 128-bit product, rounded down, or ~0 if the result does not fit 64 bits.
 * c must not be 0. Any context.
 */
u64 mul_div_u64(u64 a, u64 b, u64 c);

#endif
