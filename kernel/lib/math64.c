// SPDX-License-Identifier: BSD-2-Clause
/*
 * Divides 128 by 64 bits as on paper, with 32-bit digits (Knuth, The Art of Computer Programming 2,
 * 4.3.1, algorithm D). A digit guessed from the divisor's first digit is at most two too large if
 * the divisor's top bit is set.
 */

#include <lego/math64.h>

#define DIGIT_BITS 32
#define DIGIT_MASK 0xffffffffULL

/*
 * Returns the quotient digit of (high:digit) / divisor, where high < divisor and the divisor's top
 * bit is set. *high becomes the remainder.
 */
static u64 divide_digit(u64 *high, u64 digit, u64 divisor)
{
	u64 first = divisor >> DIGIT_BITS, second = divisor & DIGIT_MASK;
	u64 quotient = *high / first, rest = *high % first;

	while (quotient > DIGIT_MASK || quotient * second > (rest << DIGIT_BITS | digit)) {
		quotient--;
		rest += first;
		if (rest > DIGIT_MASK)
			break;
	}
	/* The product may wrap around, but the result fits. */
	*high = (*high << DIGIT_BITS | digit) - quotient * divisor;
	return quotient;
}

u64 mul_div_u64(u64 a, u64 b, u64 c)
{
	unsigned __int128 product = (unsigned __int128)a * b;
	u64 high = product >> 64, low = product, quotient;
	int shift;

	if (!high)
		return low / c;
	if (high >= c)
		return ~0ULL;

	shift = __builtin_clzll(c);
	product <<= shift;
	high = product >> 64;
	low = product;
	c <<= shift;
	quotient = divide_digit(&high, low >> DIGIT_BITS, c) << DIGIT_BITS;
	return quotient | divide_digit(&high, low & DIGIT_MASK, c);
}
