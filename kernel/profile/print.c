// SPDX-License-Identifier: BSD-2-Clause
/*
 * printf() and its variants for this folder, based on the functions of os.h. The kernel's own
 * functions are not called directly, because the compiler checks their formats: in a kernel whose
 * u64 is `unsigned long long`, every %lu would be an error, though it prints the same.
 */

#include "os.h"

int os_printk(const char *fmt, ...)
{
	va_list args;
	int len;

	va_start(args, fmt);
	len = os_vprintk(fmt, args);
	va_end(args);
	return len;
}

int os_snprintf(char *buf, size_t size, const char *fmt, ...)
{
	va_list args;
	int len;

	va_start(args, fmt);
	len = os_vsnprintf(buf, size, fmt, args);
	va_end(args);
	return len;
}

void os_text_printf(os_text_t *text, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	os_text_vprintf(text, fmt, args);
	va_end(args);
}
