/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_CONSOLE_H
#define LEGO_CONSOLE_H

/* The serial console as a character device: 5:1 /dev/console and 4:64 /dev/ttyS0. */

#include <lego/kernel.h>

struct file_ops;

/*
 * A byte typed at the console. From the UART's interrupt, interrupts off, on one CPU at a time;
 * without room for it, it is dropped.
 */
void console_receive(u8 byte);

/*
 * Reads wait for at least one byte; what is there is returned. Writes go out raw, in order with
 * the log.
 */
extern const struct file_ops console_file_ops;

#endif
