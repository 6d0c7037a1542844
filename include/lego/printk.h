/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_PRINTK_H
#define LEGO_PRINTK_H

/*
 * The kernel log: a ring in memory and the serial console. A caller with interrupts on waits until
 * the line is sent; for one with interrupts off it is sent soon. Any context, NMI included (there
 * the console lock is only tried; a line that could not be printed at once is printed by the next
 * caller). A line starts with "[ssssss.uuuuuu] ", seconds since boot; a call without a final
 * newline is continued by the next call of the same CPU. Lines of more than 1000 characters are
 * truncated and end in "...".
 */

#include <lego/compiler.h>
#include <lego/types.h>
#include <stdarg.h>

int printk(const char *fmt, ...) __printf(1, 2);
int vprintk(const char *fmt, va_list args);

/*
 * Before a line that a user's program causes: takes room for it, at most 256 bytes. Returns false
 * if such lines have taken a quarter of the log since root cleared it, and no other lines followed.
 * log_has_user_room() only looks. Any context.
 */
bool log_take_user_line(void);
bool log_has_user_room(void);

/*
 * Prints the log on the console again, even if syslog(2) has switched that off. For the last
 * messages.
 */
void printk_console_on(void);

/* For panic only: ignores the console lock and prints directly to the UART from now on. */
void printk_bust_locks(void);

/* Reports lost lines, if the console has room again. Any context but NMI, no locks held. */
void printk_say_loss(void);

/* For crash tests only: turns interrupts off, takes the console lock and keeps it. */
void printk_hold_console(void);

/*
 * printf subset: d i u x X o c s p %% with flags "-0+ #", width, precision, '*', h hh l ll z.
 * %pE prints a string that somebody else chose, such as the name of a program or file: " and \ get
 * a \ in front, and bytes that are not printable ASCII become \xff.
 */
int vsnprintf(char *buf, size_t size, const char *fmt, va_list args);
int snprintf(char *buf, size_t size, const char *fmt, ...) __printf(3, 4);
int scnprintf(char *buf, size_t size, const char *fmt, ...) __printf(3, 4);

/* Prints n bytes as %pE does, NULs included. Returns as snprintf() does. */
size_t escape_bytes(char *buf, size_t size, const char *bytes, size_t n);

#endif
