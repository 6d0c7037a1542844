/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_UART_H
#define ASM_UART_H

/* COM1, a 16550 at 115200 8N1. Without one, output goes nowhere. */

#include <lego/types.h>

/* Boot CPU, before the first output. */
void uart_early_init(void);

/*
 * Send, waiting for room; LF goes out as CR LF. Any context; callers keep each other out
 * (console lock), and when one does not, in panic, the worst is mixed output.
 */
void uart_write(const char *buf, size_t len);

/*
 * Receive by interrupt: BREAKs go to sysrq, bytes to sysrq or the console. Boot CPU, IOAPIC
 * ready.
 */
void uart_enable_irq(void);

/*
 * From the boot CPU's tick: hand a BREAK that a transmitting CPU saw (reading the line status
 * clears it) to sysrq, should no receive interrupt have done it.
 */
void uart_poll_errors(void);

#endif
