// SPDX-License-Identifier: BSD-2-Clause
/* The parts of a C library that the kernel uses: memory and strings. */

#include "kernel.h"

void *memset(void *dst, int c, size_t n)
{
	void *to = dst;

	asm volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(c) : "memory");
	return dst;
}

void *memcpy(void *dst, const void *src, size_t n)
{
	void *to = dst;

	asm volatile("rep movsb" : "+D"(to), "+S"(src), "+c"(n) : : "memory");
	return dst;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const u8 *x = a, *y = b;

	for (; n--; x++, y++) {
		if (*x != *y)
			return *x - *y;
	}
	return 0;
}

size_t strlen(const char *s)
{
	size_t len = 0;

	while (s[len])
		len++;
	return len;
}

int strcmp(const char *a, const char *b)
{
	for (; *a && *a == *b; a++)
		b++;
	return (u8)*a - (u8)*b;
}
