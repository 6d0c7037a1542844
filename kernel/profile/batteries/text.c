// SPDX-License-Identifier: BSD-2-Clause
/* Reserves room for a line by moving the end of the text, then prints the line there. */

#include "text.h"

#include "../base.h"
#include "printf.h"

int battery_text_vprintf(struct battery_text *text, const char *fmt, va_list args)
{
	size_t nr, at = pf_read_once(text->len);
	va_list copy;

	va_copy(copy, args);
	nr = battery_vsnprintf(NULL, 0, fmt, copy);
	va_end(copy);
	if (!nr)
		return 0;
	do {
		if (nr > text->size - at) {
			__atomic_fetch_add(&text->bytes_lost, nr, __ATOMIC_RELAXED);
			return nr;
		}
	} while (!__atomic_compare_exchange_n(&text->len, &at, at + nr, 0, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	battery_vsnprintf(text->buf + at, nr, fmt, args);
	text->buf[at + nr - 1] = '\n'; /* in place of the NUL, which is one too many */
	return nr;
}
