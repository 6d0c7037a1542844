// SPDX-License-Identifier: BSD-2-Clause
/*
 * One byte at a time: short, and right for memory that must be accessed aligned. Each loop has a
 * barrier, without which GCC would make a call of the function itself of it.
 */

#include "string.h"

#include "../base.h"

#define WEAK __attribute__((weak))

WEAK void *memset(void *dst, int c, size_t n)
{
	for (char *to = dst; n--; to++) {
		*to = c;
		pf_barrier();
	}
	return dst;
}

WEAK void *memcpy(void *dst, const void *src, size_t n)
{
	const char *from = src;

	for (char *to = dst; n--; to++) {
		*to = *from++;
		pf_barrier();
	}
	return dst;
}

WEAK void *memmove(void *dst, const void *src, size_t n)
{
	const char *from = src;
	char *to = dst;

	if ((unsigned long)to - (unsigned long)from >= n)
		return memcpy(dst, src, n);
	while (n--) {
		to[n] = from[n];
		pf_barrier();
	}
	return dst;
}

WEAK int memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *x = a, *y = b;

	for (; n--; x++, y++) {
		if (*x != *y)
			return *x - *y;
	}
	return 0;
}

WEAK size_t strlen(const char *s)
{
	size_t len = 0;

	while (s[len]) {
		len++;
		pf_barrier();
	}
	return len;
}

WEAK int strncmp(const char *a, const char *b, size_t n)
{
	for (; n && *a && *a == *b; a++, b++)
		n--;
	return n ? (unsigned char)*a - (unsigned char)*b : 0;
}

WEAK int strcmp(const char *a, const char *b)
{
	return strncmp(a, b, ~0ul);
}
