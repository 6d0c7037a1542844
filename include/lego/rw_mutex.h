/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_RW_MUTEX_H
#define LEGO_RW_MUTEX_H

/*
 * A sleeping lock that many readers or one writer hold. Process context. A writer that waits keeps
 * new readers out, so a stream of writers can keep readers waiting: it is for data that is mostly
 * read.
 */

#include <lego/wait.h>

struct rw_mutex {
	u32 holders; /* number of readers, or RW_MUTEX_WRITER */
	u32 nr_writers_waiting;
	struct wait_queue wq;
};

#define RW_MUTEX_WRITER (1U << 31)

void rw_mutex_init(struct rw_mutex *lock);

void rw_mutex_lock_read(struct rw_mutex *lock);
void rw_mutex_unlock_read(struct rw_mutex *lock);

void rw_mutex_lock_write(struct rw_mutex *lock);
void rw_mutex_unlock_write(struct rw_mutex *lock);

#endif
