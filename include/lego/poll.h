/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_POLL_H
#define LEGO_POLL_H

/*
 * Polling of files, for poll(), select() and epoll. file_ops.poll returns the events that a file
 * has now, and passes the wait queues that are woken at a change to poll_wait(). There poll() and
 * select() queue their task, epoll a callback.
 */

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
#define POLLRDHUP  0x2000

/* Always reported, even if not asked for. */
#define POLL_ALWAYS (POLLERR | POLLHUP)
#define POLL_OUTPUT (POLLOUT | POLLWRNORM | POLLWRBAND) /* events that mean room to write */

struct poll_table {
	void (*add)(struct poll_table *table, struct wait_queue *wq);
	u32 events; /* the events that the caller waits for, besides POLL_ALWAYS */
};

/* The maximum number of wait queues of a file. */
#define POLL_MAX_QUEUES 3

/*
 * Called by file_ops.poll: registers the poller at wq, unless table is NULL. Must be called before
 * looking at the state whose changes wq announces. Wakers use wake_up() or wake_up_all(), because
 * a poller that is woken takes nothing. Process context, no spinlock held.
 */
static inline void poll_wait(struct poll_table *table, struct wait_queue *wq)
{
	if (table)
		table->add(table, wq);
}

/*
 * The same for a file with a queue for each direction: uses only those that the caller waits for.
 * Both queues are woken for POLL_ALWAYS.
 */
static inline void poll_wait_ends(struct poll_table *table, struct wait_queue *read_wq,
				  struct wait_queue *write_wq)
{
	if (!table)
		return;
	if (table->events & POLL_OUTPUT)
		table->add(table, write_wq);
	if (table->events & ~(POLL_OUTPUT | POLL_ALWAYS) || !(table->events & POLL_OUTPUT))
		table->add(table, read_wq);
}

#endif
