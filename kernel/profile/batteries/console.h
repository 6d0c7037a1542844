/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_BATTERIES_CONSOLE_H
#define PROFILE_BATTERIES_CONSOLE_H

/* Lines for a console that takes one character at a time. */

#include <stdarg.h>
#include <stdbool.h>

/*
 * Prints a line by put(), with the time before it as in Linux's log, `[    1.250000] `, and returns
 * its length. A line has at most 1023 bytes. Any context but NMI, on several CPUs at once: lines do
 * not mix. in_panic: takes no lock, as the CPU that holds it may have stopped.
 */
int battery_console_vprintf(void (*put)(char c), unsigned long ns, bool in_panic, const char *fmt,
			    va_list args) __attribute__((__format__(__printf__, 4, 0)));

#endif
