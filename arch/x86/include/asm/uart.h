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

void uart_write_raw(const u8 *buf, size_t len); /* the same, byte by byte as it is */

/* Send what the chip has room for right now. Bytes sent. As uart_write(). */
size_t uart_try_send(const u8 *buf, size_t len);

/*
 * Receive by interrupt: BREAKs go to sysrq, bytes to sysrq or console_receive(). Boot CPU, IOAPIC
 * ready.
 */
void uart_enable_irq(void);

/* Are there interrupts, so that what is queued will be sent? */
bool uart_has_irq(void);

/* Have the interrupt call console_transmit() whenever there is room. Any context but NMI. */
void uart_send_irq(bool on);

/*
 * Leave what comes in inside the chip, until it has no room and the other side waits: nobody has
 * room for it. A BREAK is still noticed, and the key behind it read. Any context but NMI.
 */
void uart_throttle(bool on);

/* Send a BREAK, until off. Process context. */
void uart_set_break(bool on);

/*
 * From the boot CPU's tick: hand a BREAK that a transmitting CPU saw (reading the line status
 * clears it) to sysrq, should no receive interrupt have done it.
 */
void uart_poll_errors(void);

#endif
