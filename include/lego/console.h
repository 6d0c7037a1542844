/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_CONSOLE_H
#define LEGO_CONSOLE_H

/*
 * The way out to the serial line, shared by the log and the terminal: a queue of bytes, which go
 * out in the order of the calls. The UART's interrupt sends them, and so does a caller of printk()
 * that has interrupts on. Each sends a FIFO's worth at a time, so interrupts are on while the line
 * is waited for. Early in the boot and in a panic all is sent before a call returns.
 */

#include <lego/kernel.h>
#include <lego/wait.h>

/*
 * The log's side. Interrupts off. False when waiting could deadlock (an NMI, or a fault of who
 * holds the lock) and the lock is taken.
 */
bool console_lock(void);
void console_unlock(void);

/*
 * Queues a line, which is the two texts and a newline, behind what is queued, and begins a line of
 * its own for it. Waits for room only as long as may be with interrupts off. Without room the line
 * is lost and counted, and so is each line after it, until console_take_loss(). With the lock.
 */
void console_put_line(const char *prefix, size_t prefix_len, const char *text, size_t len);

struct console_loss {
	u32 nr_lines;
	u64 stall_ns; /* for so long the serial line took nothing */
};

/* Returns true, once, if lines were lost and there is room again. With the lock. */
bool console_take_loss(struct console_loss *loss);

/*
 * Sends what is queued now, with interrupts on between two pieces. Gives up when the line takes
 * nothing. A caller that has interrupts off leaves the bytes to the UART's interrupt. Any context.
 */
void console_drain(void);

/* Panic only: from now on the lock is nobody's, and callers wait until all is sent. */
void console_bust_lock(void);

/* Returns how many bytes of the log the serial line did not take. Any context. */
u64 console_nr_lost_bytes(void);

/*
 * The terminal's side: bytes to send, as they are. Returns how many there was room for; keep_bytes
 * of the room are left to others. Any context but NMI.
 */
size_t console_queue(const u8 *buf, size_t n, size_t keep_bytes);

/* Room for so many bytes more. The answer may be old. */
size_t console_room(void);
/* Has all that was queued been handed to the UART? */
bool console_is_empty(void);
/* Drops what is queued behind the log's last line. */
void console_discard(void);

/* Woken when the queue is half empty or empty. */
extern struct wait_queue console_room_wait;
#define CONSOLE_QUEUE_BYTES 4096

/* From the UART's interrupt: send what fits into the FIFO. */
void console_transmit(void);

/* From the UART's interrupt: a byte was typed. Interrupts off, one CPU at a time. */
void console_receive(u8 byte);

#endif
