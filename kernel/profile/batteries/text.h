/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_BATTERIES_TEXT_H
#define PROFILE_BATTERIES_TEXT_H

/*
 * Reports and exports into memory, for a kernel whose console is slow or missing: read them with a
 * debugger, or send them elsewhere.
 */

#include <stdarg.h>
#include <stddef.h>

struct battery_text {
	char *buf;	   /* not terminated */
	size_t size, len;  /* of buf; of the text in it */
	size_t bytes_lost; /* of lines that had no room */
};

/*
 * Appends a line, whose last character is a newline, or counts it as lost. Returns its length. Any
 * context, on several CPUs at once: lines do not mix.
 */
int battery_text_vprintf(struct battery_text *text, const char *fmt, va_list args)
	__attribute__((__format__(__printf__, 2, 0)));

#endif
