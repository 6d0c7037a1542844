// SPDX-License-Identifier: BSD-2-Clause
/* Makes the line in a buffer that a lock guards. */

#include "console.h"

#include "cpu.h"
#include "printf.h"

int battery_console_vprintf(void (*put)(char c), unsigned long ns, bool in_panic, const char *fmt,
			    va_list args)
{
	static struct battery_lock lock;
	static char line[1024];
	unsigned long flags = in_panic ? 0 : battery_lock(&lock);
	unsigned long us = ns / 1000;
	int len = battery_snprintf(line, sizeof(line), "[%5lu.%06lu] ", us / 1000000, us % 1000000);

	len += battery_vsnprintf(line + len, sizeof(line) - len, fmt, args);
	for (const char *at = line; *at; at++)
		put(*at);
	if (!in_panic)
		battery_unlock(&lock, flags);
	return len;
}
