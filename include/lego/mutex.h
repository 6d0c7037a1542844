/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_MUTEX_H
#define LEGO_MUTEX_H

/* A sleeping lock, taken in no strict order. Process context. */

#include <lego/wait.h>

struct mutex {
	struct task *owner; /* NULL: free */
	struct wait_queue wq;
};

#define MUTEX_INIT(name)                         \
	{                                        \
		NULL, WAIT_QUEUE_INIT((name).wq) \
	}
#define DEFINE_MUTEX(name) struct mutex name = MUTEX_INIT(name)

void mutex_init(struct mutex *mutex);
void mutex_lock(struct mutex *mutex);
bool mutex_trylock(struct mutex *mutex);
void mutex_unlock(struct mutex *mutex);

#endif
