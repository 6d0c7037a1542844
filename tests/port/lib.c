// SPDX-License-Identifier: BSD-2-Clause
/* The functions of a C library that the kernel calls, and its log. */

#include "task.h"

void *memset(void *dst, int c, size_t n)
{
	for (u8 *to = dst; n--; to++)
		*to = c;
	return dst;
}

void *memcpy(void *dst, const void *src, size_t n)
{
	const u8 *from = src;

	for (u8 *to = dst; n--; to++)
		*to = *from++;
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

int strncmp(const char *a, const char *b, size_t n)
{
	for (; n && *a && *a == *b; a++, b++)
		n--;
	return n ? (u8)*a - (u8)*b : 0;
}

int strcmp(const char *a, const char *b)
{
	return strncmp(a, b, ~0ul);
}

int vprintk(const char *fmt, va_list args)
{
	static struct battery_lock lock;
	static char line[1024];
	u64 us = cycles_to_ns(read_cycles()) / 1000;
	u64 flags = panicking ? battery_irq_save() : battery_lock(&lock);
	int len = snprintf(line, sizeof(line), "[%5lu.%06lu] ", us / 1000000, us % 1000000);

	len += vsnprintf(line + len, sizeof(line) - len, fmt, args);
	for (const char *at = line; *at; at++)
		console_put(*at);
	if (!panicking)
		battery_unlock(&lock, flags);
	return len;
}

int printk(const char *fmt, ...)
{
	va_list args;
	int len;

	va_start(args, fmt);
	len = vprintk(fmt, args);
	va_end(args);
	return len;
}
