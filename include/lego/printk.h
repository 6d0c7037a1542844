/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_PRINTK_H
#define LEGO_PRINTK_H

/*
 * The kernel log: a ring in memory and the serial console. A caller with interrupts on waits until
 * the line is sent; for one with interrupts off it is sent soon. Any context, NMI included
 * (there the console lock is only tried; a line that could not be printed at once is printed by
 * the next caller). A line starts with "[ssssss.uuuuuu] ", seconds since boot; a call without a
 * final newline is continued by the next call of the same CPU. Lines are cut at 1000 characters
 * and then end in "...".
 */

#include <lego/compiler.h>
#include <lego/types.h>
#include <stdarg.h>

int printk(const char *fmt, ...) __printf(1, 2);
int vprintk(const char *fmt, va_list args);

/* Undo what syslog(2) did to keep the log off the console: these are the last words. */
void printk_console_on(void);

/* Panic only: forget who holds the console lock and print straight to the UART from now on. */
void printk_bust_locks(void);

/* Says what the console has lost, when there is room again. Any context but NMI, no locks. */
void printk_say_loss(void);

/* Crash tests only: turn interrupts off, take the console lock and keep it. */
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
