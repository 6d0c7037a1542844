// SPDX-License-Identifier: BSD-2-Clause
/* Parses numbers. Separate from the command line, so that it also builds on a host. */

#include <lego/params.h>

#include <lego/errno.h>

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int parse_u64(const char *text, u64 *value)
{
	unsigned int base = 10;
	u64 result = 0;

	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		text += 2;
	}
	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		int digit = digit_value(*text);

		if (digit < 0 || digit >= (int)base)
			return -EINVAL;
		if (__builtin_mul_overflow(result, (u64)base, &result) ||
		    __builtin_add_overflow(result, (u64)digit, &result))
			return -ERANGE;
	}
	*value = result;
	return 0;
}
