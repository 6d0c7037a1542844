/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_CONSOLE_H
#define LEGO_CONSOLE_H

/*
 * Output to the serial line, shared by the log and the terminal: a queue of bytes, sent in the
 * order of the calls. The UART's interrupt sends them, and so does a caller of printk() with
 * interrupts on. Each fills the UART's FIFO once at a time, so interrupts are on while they wait
 * for the line. Early in the boot, and in a panic, everything is sent before a call returns.
 */

#include <lego/kernel.h>
#include <lego/wait.h>

/*
 * For the log. Takes the lock, interrupts off. Returns false if another context holds the lock and
 * waiting could deadlock: in an NMI, or after a fault of the lock's holder.
 */
bool console_lock(void);
void console_unlock(void);

/*
 * Queues a line: the two texts and a newline. If the terminal is in the middle of a line, begins a
 * new one first. Waits for room only briefly, because interrupts are off. Without room the line is
 * lost and counted, and so is each further line until console_take_loss(). The lock is held.
 */
void console_put_line(const char *prefix, size_t prefix_len, const char *text, size_t len);

struct console_loss {
	u32 nr_lines;
	u64 stall_ns; /* how long the serial line accepted nothing */
};

/* Returns true once if lines were lost and there is room again. The lock is held. */
bool console_take_loss(struct console_loss *loss);

/*
 * Sends the bytes that are queued now, with interrupts on between two chunks. Gives up if the line
 * accepts nothing. With interrupts off, leaves the bytes to the UART's interrupt. Any context.
 */
void console_drain(void);

/* For panic only: from now on the lock is not needed, and callers wait until all is sent. */
void console_bust_lock(void);

/* Returns how many bytes of the log were never sent to the serial line. Any context. */
u64 console_nr_lost_bytes(void);

/*
 * For the terminal. Queues bytes unchanged. Leaves keep_bytes of room for others. Returns how many
 * bytes were queued. Any context but NMI.
 */
size_t console_queue(const u8 *buf, size_t n, size_t keep_bytes);

/* Returns how many more bytes have room. The result may be outdated. */
size_t console_room(void);
/* Returns true if all queued bytes have been given to the UART. */
bool console_is_empty(void);
/* Drops the bytes queued after the log's last line. */
void console_discard(void);

/* Woken when the queue is half empty or empty. */
extern struct wait_queue console_room_wait;
#define CONSOLE_QUEUE_BYTES 4096

/* Sends what fits into the FIFO. Called by the UART's interrupt. */
void console_transmit(void);

/* Handles a typed byte. Called by the UART's interrupt, interrupts off, on one CPU at a time. */
void console_receive(u8 byte);

#endif
