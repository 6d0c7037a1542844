/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_RW_MUTEX_H
#define LEGO_RW_MUTEX_H

/*
 * A sleeping lock that many readers or one writer can hold. Process context. Sleepers get it in the
 * order in which they came, but a few running tasks may overtake them.
 */

#include <lego/wait.h>

struct rw_mutex {
	u32 holders;	    /* number of readers, or RW_MUTEX_WRITER */
	u32 nr_overtakings; /* since a sleeper got it */
	struct wait_queue wq;
	struct lock_map map;
};

#define RW_MUTEX_WRITER (1U << 31)

#define DEFINE_RW_MUTEX(name)                                                           \
	struct rw_mutex name __cacheline_aligned = {                                    \
		.wq = WAIT_QUEUE_INIT_AT((name).wq, #name, LOCK_PLACE(#name " queue")), \
		.map = LOCK_MAP_INIT(LOCK_PLACE(#name)),                                \
	}

#define rw_mutex_init(lock) \
	rw_mutex_init_at(lock, #lock, LOCK_PLACE(#lock), LOCK_PLACE(#lock " queue"))
static inline void rw_mutex_init_at(struct rw_mutex *lock, const char *name, const char *place,
				    const char *queue_place)
{
	lock->holders = 0;
	lock->nr_overtakings = 0;
	wait_queue_reset(&lock->wq, name);
	lock_map_init(&lock->map, place);
	lock_map_init(&lock->wq.lock.map, queue_place);
}

void rw_mutex_lock_read(struct rw_mutex *lock);
/* Returns false if a writer has the lock, or anybody waits for it; rarely beside other readers. */
bool rw_mutex_trylock_read(struct rw_mutex *lock);
void rw_mutex_unlock_read(struct rw_mutex *lock);

void rw_mutex_lock_write(struct rw_mutex *lock);
/* Return -EINTR, without the lock, if the thread is killed while it waits; else 0. */
int rw_mutex_lock_read_killable(struct rw_mutex *lock);
int rw_mutex_lock_write_killable(struct rw_mutex *lock);

void rw_mutex_unlock_write(struct rw_mutex *lock);

/* Makes the writer a reader, without another writer in between. */
void rw_mutex_downgrade(struct rw_mutex *lock);

#endif
