/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_BATTERIES_PRINTF_H
#define PROFILE_BATTERIES_PRINTF_H

/*
 * As vsnprintf() and snprintf() of C, for %d %u %x %o %s %c and %%, with the flags - 0 #, with
 * width (zeros up to 64 digits) and precision (only of %s), also as *, and with the lengths l, ll
 * and z. Return the length of the whole text. If size is not 0, buf gets as much of it as fits, and
 * a NUL.
 */

#include <stdarg.h>
#include <stddef.h>

int battery_vsnprintf(char *buf, size_t size, const char *fmt, va_list args)
	__attribute__((__format__(__printf__, 3, 0)));
int battery_snprintf(char *buf, size_t size, const char *fmt, ...)
	__attribute__((__format__(__printf__, 3, 4)));

#endif
