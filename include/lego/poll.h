/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_POLL_H
#define LEGO_POLL_H

/* Waiting for several files at once: what poll() and select() share with the files. */

#include <lego/types.h>
#include <lego/wait.h>

/* Linux's values. */
#define POLLIN	   0x0001
#define POLLPRI	   0x0002
#define POLLOUT	   0x0004
#define POLLERR	   0x0008
#define POLLHUP	   0x0010
#define POLLNVAL   0x0020
#define POLLRDNORM 0x0040
#define POLLRDBAND 0x0080
#define POLLWRNORM 0x0100
#define POLLWRBAND 0x0200

struct poll_table;

/*
 * Wakers use wake_up_all(): who polls is woken, but takes nothing.
 *
 * From file_ops.poll: have wq wake the caller of poll(). table NULL: nothing to do. Process
 * context, no spinlock held; call it before looking at the state that wq announces.
 */
void poll_wait(struct poll_table *table, struct wait_queue *wq);

#endif
