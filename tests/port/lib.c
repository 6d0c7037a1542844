// SPDX-License-Identifier: BSD-2-Clause
/* The parts of a C library that the kernel uses: memory and strings. */

#include "kernel.h"

#define HEAP_BYTES (4ul << 20)

void *memset(void *dst, int c, size_t n)
{
	asm volatile("rep stosb" : "+D"(dst), "+c"(n) : "a"(c) : "memory");
	return (char *)dst - n;
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

/* Memory is never freed, so there is no free(). */
void *alloc(size_t size)
{
	static char heap[HEAP_BYTES] __attribute__((aligned(16)));
	static size_t used;
	u64 flags = irq_save();
	size_t at = (used + 15) & ~15ul;
	bool fits = size <= HEAP_BYTES - at;

	if (fits)
		used = at + size;
	irq_restore(flags);
	return fits ? heap + at : NULL;
}

/* The product has 128 bits. Returns all ones if the result does not fit. */
u64 mul_div(u64 a, u64 b, u64 c)
{
	u64 low, high, rest;

	asm("mulq %3" : "=a"(low), "=d"(high) : "a"(a), "r"(b) : "cc");
	if (high >= c)
		return ~0ul;
	asm("divq %4" : "=a"(low), "=d"(rest) : "a"(low), "d"(high), "r"(c) : "cc");
	return low;
}
