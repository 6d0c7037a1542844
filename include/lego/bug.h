/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_BUG_H
#define LEGO_BUG_H

/* Checks for the kernel's own mistakes, never for input. Any context. */

#include <lego/compiler.h>
#include <lego/types.h>

/*
 * Stops the other CPUs, prints the reason, the registers and the profiler's report, and ends the
 * machine. The report takes no locks. A fault inside panic() ends the machine at once.
 */
void panic(const char *fmt, ...) __printf(1, 2) __noreturn;

/* Returns true once panic() has begun. Other CPUs are stopped before it prints. Any context. */
extern int panic_cpu; /* the one that panics first, or -1 */
static inline bool panic_in_progress(void)
{
	return READ_ONCE(panic_cpu) >= 0;
}

void bug_fail(const char *file, int line, const char *expr) __noreturn;
void warn_print(const char *file, int line, const char *expr);

#define BUG() bug_fail(__FILE__, __LINE__, "BUG()")
#define BUG_ON(cond)                                         \
	do {                                                 \
		if (unlikely(cond))                          \
			bug_fail(__FILE__, __LINE__, #cond); \
	} while (0)
#define WARN_ON(cond)                                          \
	({                                                     \
		bool _warn = (cond);                           \
		if (unlikely(_warn))                           \
			warn_print(__FILE__, __LINE__, #cond); \
		unlikely(_warn);                               \
	})

#endif
