/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_UART_H
#define ASM_UART_H

/* COM1, a 16550 at 115200 8N1. Without one, output goes nowhere. */

#include <lego/types.h>

/* Boot CPU, before the first output. */
void uart_early_init(void);

#define UART_FIFO_BYTES 16

/*
 * Is the chip ready for UART_FIFO_BYTES bytes? Then uart_send() may be called as often. Any
 * context. Callers keep each other out (console lock).
 */
bool uart_has_room(void);
void uart_send(u8 byte);

/* A panic's last words: polls, takes no lock. LF goes out as CR LF. */
void uart_write(const char *text);

/* Waits until the last byte has left the chip. Any context. */
void uart_flush(void);

/*
 * Receive by interrupt: BREAKs go to sysrq, bytes to sysrq or console_receive(). Boot CPU, the
 * IOAPIC and the clock ready, interrupts on.
 */
void uart_enable_irq(void);

/* Are there interrupts and a clock, so that what is queued will be sent? */
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
