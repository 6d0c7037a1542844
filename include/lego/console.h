/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_CONSOLE_H
#define LEGO_CONSOLE_H

/*
 * The way out to the serial line, shared by the log, which polls, and the terminal, which queues
 * bytes that the UART's interrupt sends. What goes out is in the order of the calls.
 */

#include <lego/kernel.h>
#include <lego/wait.h>

/*
 * The log's side. Interrupts off. False when waiting could deadlock (an NMI, or a fault of who
 * holds the lock) and the lock is taken.
 */
bool console_lock(void);
void console_unlock(void);

/* With the lock: send what is queued, then a newline if the cursor is not at a line's start. */
void console_begin_line(void);
/* With the lock, after console_begin_line(): text with a newline at its end; LF becomes CR LF. */
void console_print(const char *text, size_t len);

/*
 * Send what is queued now, with interrupts on in between, so that the lock need not be held for so
 * long. Any context; does nothing where interrupts are off.
 */
void console_drain(void);

/* Panic only: send what is queued; from now on the lock is nobody's. */
void console_bust_lock(void);

/*
 * The terminal's side: bytes to send, as they are. Returns how many there was room for; keep_bytes
 * of the room are left to others. Any context but NMI.
 */
size_t console_queue(const u8 *buf, size_t n, size_t keep_bytes);

/* Room for so many bytes more. The answer may be old. */
size_t console_room(void);
/* Has all that was queued been handed to the UART? */
bool console_is_empty(void);
/* Drop what is queued. */
void console_discard(void);

/* Woken when the queue is half empty or empty. */
extern struct wait_queue console_room_wait;
#define CONSOLE_QUEUE_BYTES 4096

/* From the UART's interrupt: send what fits into the FIFO. */
void console_transmit(void);

/* From the UART's interrupt: a byte was typed. Interrupts off, one CPU at a time. */
void console_receive(u8 byte);

#endif
