/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_MUTEX_H
#define LEGO_MUTEX_H

/* A sleeping lock. Waiters may get it in any order. Process context. */

#include <lego/wait.h>

struct mutex {
	struct task *owner; /* NULL: free */
	struct wait_queue wq;
	struct lock_map map;
};

#define MUTEX_INIT(name)                                                                \
	{                                                                               \
		NULL, WAIT_QUEUE_INIT_AT((name).wq, #name, LOCK_PLACE(#name " queue")), \
			LOCK_MAP_INIT(LOCK_PLACE(#name))                                \
	}
#define DEFINE_MUTEX(name) struct mutex name __cacheline_aligned = MUTEX_INIT(name)

#define mutex_init(mutex) \
	mutex_init_at(mutex, #mutex, LOCK_PLACE(#mutex), LOCK_PLACE(#mutex " queue"))
static inline void mutex_init_at(struct mutex *mutex, const char *name, const char *place,
				 const char *queue_place)
{
	mutex->owner = NULL;
	wait_queue_reset(&mutex->wq, name);
	lock_map_init(&mutex->map, place);
	lock_map_init(&mutex->wq.lock.map, queue_place);
}

void mutex_lock(struct mutex *mutex);
/* Returns -EINTR, without the mutex, if the thread is killed while it waits; else 0. */
int mutex_lock_killable(struct mutex *mutex);
/* Takes a mutex while others of the same class are held, in an order that cannot form a cycle. */
void mutex_lock_ordered(struct mutex *mutex);
bool mutex_trylock(struct mutex *mutex);
void mutex_unlock(struct mutex *mutex);

#endif
