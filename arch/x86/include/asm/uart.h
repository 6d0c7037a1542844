/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_UART_H
#define ASM_UART_H

/* COM1, a 16550 at 115200 8N1. Without one, output is discarded. */

#include <lego/types.h>

/* Sets up the chip. Boot CPU, before the first output. */
void uart_early_init(void);

#define UART_FIFO_BYTES 16

/*
 * Returns whether the chip has room for UART_FIFO_BYTES bytes, so that uart_send() may be called
 * that often. Any context. The caller holds the console lock.
 */
bool uart_has_room(void);
void uart_send(u8 byte);

/* Writes text in a panic: polls, takes no lock. Sends LF as CR LF. */
void uart_write(const char *text);

/* Waits until the last byte has left the chip. Any context. */
void uart_flush(void);

/*
 * Starts receiving by interrupt: BREAKs go to sysrq, bytes to sysrq or console_receive(). Boot CPU,
 * with the IOAPIC and the clock ready and interrupts on.
 */
void uart_enable_irq(void);

/* Returns whether interrupts and the clock work, so that queued bytes will be sent. */
bool uart_has_irq(void);

/* Makes the interrupt call console_transmit() whenever there is room. Any context but NMI. */
void uart_send_irq(bool on);

/*
 * Stops taking bytes, because no reader has room for them. The chip fills up, and the other side
 * must wait. A BREAK is still noticed, and the key after it is read. Any context but NMI.
 */
void uart_throttle(bool on);

/* Sends a BREAK, until called with off. Process context. */
void uart_set_break(bool on);

/*
 * Called from the boot CPU's tick. Passes a BREAK to sysrq that a transmitting CPU saw, if no
 * receive interrupt has done so: reading the line status clears it.
 */
void uart_poll_errors(void);

#endif
