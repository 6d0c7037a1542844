// SPDX-License-Identifier: BSD-2-Clause
/*
 * The only formatter. It gets a copy of the counters, sorts it and prints it, one line a
 * call; it allocates nothing and takes no lock. The formats are fixed to the byte in README.md.
 *
 * Every percentage is rounded half up from its own exact ratio and never adjusted. Totals are
 * the sums of what the rows print, so a reader can check each column with a calculator.
 */

#include "internal.h"

#define NS_PER_USEC 1000ul

static os_text_t *report_text; /* NULL: the console */

void report_to(os_text_t *text)
{
	report_text = text;
}

/* What a dying machine says goes to the console, whatever it was doing. */
void report_printf(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	if (report_text && !os_panicking())
		os_text_vprintf(report_text, fmt, args);
	else
		vprintk(fmt, args);
	va_end(args);
}

void report_copy_printable(char *dst, const char *src, size_t size)
{
	strscpy(dst, src, size);
	for (; *dst; dst++) {
		if (*dst < ' ' || *dst > '~')
			*dst = '?';
	}
}

u32 report_percent(u64 part, u64 total)
{
	/* floor(x + 1/2) == floor((floor(2x) + 1) / 2) */
	return total ? (mul_div_u64(part, 20000, total) + 1) / 2 : 0;
}

static u64 divide_up(u64 a, u64 b)
{
	return a / b + (a % b != 0);
}

u64 report_usecs_per_call(u64 ns, u64 n)
{
	return n ? divide_up(divide_up(ns, NS_PER_USEC), n) : 0;
}

u64 report_avg_ns(u64 ns, u64 n)
{
	return n ? divide_up(ns, n) : 0;
}
